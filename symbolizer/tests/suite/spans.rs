//! Samples in spans of time, such as collections.

use crate::recordings;
use crate::recordings::screens::{self, ms};
use vmscope_records::TimeNs;
use vmscope_symbolizer::time_buckets::{InSpan, Span};
use vmscope_symbolizer::{Filter, Profile, Region, Stop, Summary, profile_of};

fn java() -> Profile {
    profile_of(
        recordings::read(&screens::java()).unwrap(),
        Vec::new(),
        true,
    )
}

fn span(from: u64, to: u64) -> Span {
    Span {
        from: TimeNs(ms(from)),
        to: TimeNs(ms(to)),
        thread: None,
    }
}

fn counted(profile: &Profile, filter: &Filter, spans: &[Span]) -> Vec<InSpan> {
    let all = InSpan::of_spans(profile, filter, spans, &Stop::new()).unwrap();
    all.into_iter().map(Option::unwrap).collect()
}

#[test]
fn a_span_has_what_the_summary_of_its_window_has() {
    let profile = java();
    // Adjacent, overlapping, complete, empty and reversed spans.
    let spans = [
        (11_640, 11_827),
        (10_425, 11_150),
        (0, 30_000),
        (15_100, 15_101),
        (9, 3),
    ];
    let spans = spans.map(|(from, to)| span(from, to));
    for (one, in_span) in spans
        .iter()
        .zip(counted(&profile, &Filter::default(), &spans))
    {
        let filter = Filter {
            from: Some(one.from),
            to: Some(one.to),
            ..Filter::default()
        };
        let summary = Summary::with_errors(&profile, &filter);
        assert_eq!(in_span.regions, summary.regions, "{one:?}");
        assert_eq!(in_span.total(), summary.total);
    }
    let all = counted(&profile, &Filter::default(), &spans);
    assert_eq!(all[2].of(Region::Gc), 1_916);
    assert_eq!((all[3].total(), all[4].total()), (0, 0));
}

#[test]
fn a_span_honours_the_filter_and_its_thread() {
    let profile = java();
    let mut filter = Filter::default();
    filter.only.regions = vec![Region::Gc];
    filter.to = Some(TimeNs(ms(11_700)));
    let of_thread = |thread| Span {
        thread: Some(thread),
        ..span(11_640, 11_827)
    };
    let mut spans: Vec<Span> = profile.trace.threads.ids().map(of_thread).collect();
    spans.push(span(11_640, 11_827));
    spans.push(span(11_640, 11_700));
    let counts = counted(&profile, &filter, &spans);
    let [by_thread @ .., whole, until] = &counts[..] else {
        panic!("{counts:?}");
    };
    assert_eq!(whole, until);
    assert!(whole.total() > 0 && whole.total() == whole.of(Region::Gc));
    let sum: u64 = by_thread.iter().map(InSpan::total).sum();
    assert_eq!(sum, whole.total());
    assert!(by_thread.iter().filter(|one| one.total() > 0).count() > 1);
}

#[test]
fn a_span_before_the_window_is_not_known() {
    let mut profile = java();
    let spans = [span(1_000, 5_000), span(15_000, 19_000)];
    let [old, recent] = [0, 1].map(|one| counted(&profile, &Filter::default(), &spans)[one]);
    assert!(old.total() > 0 && recent.total() > 0);
    let samples = &mut profile.trace.samples;
    assert!(
        profile
            .time_buckets
            .drop_before(samples, TimeNs(ms(15_000)))
            > 0
    );
    let all = InSpan::of_spans(&profile, &Filter::default(), &spans, &Stop::new());
    assert_eq!(all, Some(vec![None, Some(recent)]));
}

#[test]
fn counting_stops_when_that_is_wished() {
    let stop = Stop::new();
    stop.stop();
    let spans = [span(0, 20_000)];
    assert!(InSpan::of_spans(&java(), &Filter::default(), &spans, &stop).is_none());
}
