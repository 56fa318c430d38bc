//! What kinds of constituents are called on the map.

use super::cells::{Sort, Total};
use vmscope_records::ConstituentKind;

/// What a sort is called.
pub fn name_of(sort: &Sort) -> String {
    use ConstituentKind as Kind;
    let kind = match &sort.kind {
        Kind::Method => "methods",
        Kind::Block => "blocks",
        Kind::ClosedPic => "closed PICs",
        Kind::OpenPic => "open PICs",
        Kind::Trampoline => "trampolines",
        Kind::Enilopmart => "enilopmarts",
        Kind::Stub => "stubs",
        Kind::Interpreter => "interpreter",
        Kind::Adapter => "adapters",
        Kind::RegExp => "regular expressions",
        Kind::Other(name) => name.as_str(),
        _ => "other",
    };
    if sort.tier.is_empty() {
        kind.to_owned()
    } else {
        format!("{kind} {}", sort.tier)
    }
}

/// Gives each sort a letter of its own: of its tier (`1` for C1, `2` for C2), else its kind.
pub fn letters(totals: &mut [Total]) {
    let mut order: Vec<usize> = (0..totals.len()).collect();
    order.sort_by_key(|&at| totals.get(at).map(|total| name_of(&total.sort)));
    let mut used: Vec<char> = Vec::new();
    for at in order {
        let Some(total) = totals.get_mut(at) else {
            continue;
        };
        let tier = total.sort.tier.as_str();
        let digits = tier.chars().filter(char::is_ascii_digit);
        let upper = |c: char| c.to_ascii_uppercase();
        let of_kind = name_of(&Sort {
            tier: String::new(),
            ..total.sort.clone()
        });
        let wanted: Vec<char> = digits
            .chain(tier.chars().filter(char::is_ascii_alphabetic).map(upper))
            .chain(of_kind.chars().filter(char::is_ascii_alphabetic).map(upper))
            .chain('A'..='Z')
            .chain('a'..='z')
            .collect();
        let found = wanted.into_iter().find(|letter| !used.contains(letter));
        total.letter = found.unwrap_or('*');
        used.push(total.letter);
    }
}
