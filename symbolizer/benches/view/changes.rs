//! What a key changes: filters to count by.

use vmscope_records::TimeNs;
use vmscope_symbolizer::{Filter, Id, Only, Region, ThreadId};

pub const CHANGES: [&str; 7] = ["all", "half", "most", "tenth", "threads", "region", "name"];

/// A change of that name, of a recording that ends at `end`.
pub fn filter(change: &str, end: u64) -> Filter {
    let window = |from: u64, to: u64| Filter {
        from: Some(TimeNs(end / 1000 * from + 12_345)),
        to: Some(TimeNs(end / 1000 * to + 54_321)),
        ..Filter::default()
    };
    match change {
        "all" => Filter::default(),
        "half" => window(250, 751),
        "most" => window(13, 987),
        "tenth" => window(711, 812),
        "threads" => Filter {
            threads: Some([1, 4, 5].map(ThreadId::of).into_iter().collect()),
            ..window(50, 949)
        },
        "region" => Filter {
            only: Only {
                regions: vec![Region::Generated],
                ..Only::default()
            },
            ..window(50, 949)
        },
        _ => Filter {
            only: Only {
                names: vec!["Module7.".into()],
                ..Only::default()
            },
            ..Filter::default()
        },
    }
}
