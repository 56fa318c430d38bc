//! Collections: exact counts from VM counters, pauses from observed collections.

use super::{Figure, Section};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use vmscope_records::{
    COLLECTION_TIME_SUFFIX, COLLECTIONS_SECTION, COLLECTIONS_TOTAL, CYCLE_PARTS_UNIT, Collection,
    CounterMeaning, SpaceUse, TimeNs,
};

/// Maximum number of rows.
const MAX_COLLECTORS: usize = 32;

/// Maximum number of causes, and of kinds, per row.
const MAX_WORDS: usize = 16;

const MAX_SPACES: usize = 32;

/// Collections of one process in a window.
#[derive(Debug, Default)]
pub struct Collected<'a> {
    /// All collections and concurrent cycles, if the VM counts them beside `collectors`.
    pub all: Option<Figure<'a>>,
    /// By collector and kind, in the VM's order.
    pub collectors: Vec<Collector<'a>>,
    /// Observed collections of kinds beyond the maximum.
    pub left_out: u64,
    /// Spaces around the last collection with spaces.
    pub spaces: &'a [SpaceUse],
    /// Other figures of the section.
    pub others: Vec<Figure<'a>>,
}

/// Collections of one kind.
#[derive(Debug, Default)]
pub struct Collector<'a> {
    /// [`Collection::label`].
    pub label: String,
    /// Number of collections, or of parts of cycles, by the VM's counter: exact. `None` as well if
    /// the counters were not read near the window's ends.
    pub count: Option<Figure<'a>>,
    /// Duration in ns, by the VM's counter, as `count`.
    pub time: Option<Figure<'a>>,
    /// Whether the row counts parts of concurrent cycles: pauses, phases.
    pub is_of_parts: bool,
    /// Number of observed collections; polls may miss some.
    pub seen: u64,
    /// Number with observed begin and end.
    pub observed: u64,
    /// Observed pauses in ns, ascending: whole collections, or stop-the-world phases of concurrent
    /// ones.
    pub pauses: Vec<u64>,
    /// Causes of observed collections.
    pub causes: Words<'a>,
    /// Kinds, if the VM's counter does not separate them.
    pub kinds: Words<'a>,
}

/// Words with counts, most frequent first.
#[derive(Debug, Default)]
pub struct Words<'a> {
    pub listed: Vec<(&'a str, u64)>,
    /// Count of all further words.
    pub others: u64,
}

impl Collector<'_> {
    /// Median of observed pauses (the lower of two).
    pub fn median(&self) -> Option<u64> {
        let middle = self.pauses.len().checked_sub(1)? / 2;
        self.pauses.get(middle).copied()
    }
}

/// Collections of a process; removes the section of their counters from `sections`. `None` without
/// any report.
pub(super) fn collected<'a>(
    collections: &[&'a Collection],
    sections: &mut Vec<Section<'a>>,
    window: (TimeNs, TimeNs),
) -> Option<Collected<'a>> {
    let mut collected = Collected::default();
    let of_collectors = |section: &Section| section.name == COLLECTIONS_SECTION;
    let at = sections.iter().position(of_collectors);
    let section = at.map(|at| sections.remove(at));
    for figure in section.iter().flat_map(|section| &section.figures) {
        collected.take(*figure);
    }
    let mut seen: Vec<&Collection> = collections.to_vec();
    seen.retain(|one| overlaps(one, window));
    seen.sort_by_key(|one| one.end.or(one.begin).unwrap_or(one.time));
    let mut words: Vec<[FxHashMap<&str, u64>; 2]> = Vec::new();
    for one in &seen {
        let Some(place) = collected.place_of(one) else {
            collected.left_out += 1;
            continue;
        };
        words.resize_with(words.len().max(place + 1), Default::default);
        let row = &mut collected.collectors[place];
        let [causes, kinds] = &mut words[place];
        row.seen += 1;
        row.observed += u64::from(one.begin.is_some() && one.end.is_some());
        row.pauses.extend(pauses_of(one));
        *causes.entry(&one.cause).or_default() += u64::from(!one.cause.is_empty());
        let is_told = row.label == Collection::label(&one.collector, &one.kind);
        *kinds.entry(&one.kind).or_default() += u64::from(!is_told);
    }
    for (row, [causes, kinds]) in collected.collectors.iter_mut().zip(words) {
        row.pauses.sort_unstable();
        (row.causes, row.kinds) = (most(causes), most(kinds));
    }
    let counts = collected.collectors.iter().filter_map(|row| row.count);
    if !counts
        .chain(collected.all)
        .all(|count| covers(&count, window))
    {
        collected.all = None;
        for row in &mut collected.collectors {
            (row.count, row.time) = (None, None);
        }
    }
    for row in &mut collected.collectors {
        if let Some(count) = &mut row.count {
            // Observed after the last reading, or before the first.
            #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
            let seen = row.seen as f64;
            count.last = count.last.max(count.first + seen);
        }
    }
    let last = seen.iter().rev().find(|one| !one.spaces.is_empty());
    let spaces = last.map_or(&[][..], |one| one.spaces.as_slice());
    collected.spaces = spaces.get(..MAX_SPACES).unwrap_or(spaces);
    let is_empty = collected.collectors.is_empty() && collected.others.is_empty();
    let is_empty = is_empty && collected.all.is_none();
    (!is_empty || collected.left_out > 0).then_some(collected)
}

impl<'a> Collected<'a> {
    /// Number of whole collections by kind, else of all collections and concurrent cycles, by the
    /// VM's counters. (G1's number of all has the pauses of its cycles, too.)
    pub fn whole(&self) -> Option<f64> {
        let all = self.all.map(|all| all.change());
        self.counts(false).or(all)
    }

    /// Number of parts of concurrent cycles (pauses, phases), by the VM's counters.
    pub fn parts(&self) -> Option<f64> {
        self.counts(true)
    }

    fn counts(&self, of_parts: bool) -> Option<f64> {
        let rows = self.collectors.iter();
        let rows = rows.filter(|row| row.is_of_parts == of_parts);
        let counts = rows.filter_map(|row| row.count);
        counts.map(|count| count.change()).reduce(|a, b| a + b)
    }

    /// Adds a figure of the collections' section.
    fn take(&mut self, figure: Figure<'a>) {
        let time = (figure.unit == "ns").then(|| figure.name.strip_suffix(COLLECTION_TIME_SUFFIX));
        let (label, is_time) = match time.flatten() {
            Some(label) => (label, true),
            None => (figure.name, false),
        };
        let is_total = figure.meaning == CounterMeaning::Total;
        if figure.name == COLLECTIONS_TOTAL {
            self.all = Some(figure);
            return;
        }
        let is_count = figure.unit.is_empty() || figure.unit == CYCLE_PARTS_UNIT;
        if !is_total || !(is_time || is_count) {
            self.others.push(figure);
            return;
        }
        let Some(place) = self.place(label) else {
            self.others.push(figure);
            return;
        };
        let row = &mut self.collectors[place];
        match is_time {
            true => row.time = Some(figure),
            false => {
                row.is_of_parts = figure.unit == CYCLE_PARTS_UNIT;
                row.count = Some(figure);
            }
        }
    }

    /// Row of a collection: row of the VM's counter, else a new row.
    fn place_of(&mut self, one: &Collection) -> Option<usize> {
        let label = Collection::label(&one.collector, &one.kind);
        let known = |label: &str| self.collectors.iter().position(|row| row.label == label);
        (known(&label).or_else(|| known(&one.collector))).or_else(|| self.place(&label))
    }

    /// Row of a label, created if there is room.
    fn place(&mut self, label: &str) -> Option<usize> {
        let known = self.collectors.iter().position(|row| row.label == label);
        if known.is_none() && self.collectors.len() < MAX_COLLECTORS {
            self.collectors.push(Collector {
                label: label.to_owned(),
                ..Collector::default()
            });
            return Some(self.collectors.len() - 1);
        }
        known
    }
}

/// Whether a counter's readings miss at most a tenth of a window.
fn covers(figure: &Figure, (from, to): (TimeNs, TimeNs)) -> bool {
    let (first, last) = figure.read;
    let after = match to {
        TimeNs(u64::MAX) => 0,
        to => to.since(last).0,
    };
    let apart = from.since(first).0.saturating_add(after);
    apart.saturating_mul(10) <= last.since(from).0
}

/// Whether a collection was in a window, as far as observed. Touching intervals do not overlap.
pub fn overlaps(one: &Collection, (from, to): (TimeNs, TimeNs)) -> bool {
    let first = one.begin.or(one.end).unwrap_or(one.time);
    let last = one.end.or(one.begin).unwrap_or(one.time);
    (last > from || first >= from) && first < to
}

/// Observed stop-the-world times, in ns.
fn pauses_of(one: &Collection) -> impl Iterator<Item = u64> + '_ {
    let length = |begin: Option<TimeNs>, end: Option<TimeNs>| Some(end?.since(begin?).0);
    let whole = one.stop_the_world.then(|| length(one.begin, one.end));
    // Nested stop-the-world phases are parts of the outer pause.
    let stops = |within: Option<u32>| {
        let outer = within.and_then(|index| one.phases.get(index as usize));
        outer.is_some_and(|outer| outer.stop_the_world)
    };
    let phases = one
        .phases
        .iter()
        .filter(move |phase| !one.stop_the_world && phase.stop_the_world && !stops(phase.within));
    let phases = phases.filter_map(move |phase| length(phase.begin, phase.end));
    whole.flatten().into_iter().chain(phases)
}

fn most(words: FxHashMap<&str, u64>) -> Words<'_> {
    let words: BTreeMap<&str, u64> = words.into_iter().filter(|(_, n)| *n > 0).collect();
    let mut listed: Vec<(&str, u64)> = words.into_iter().collect();
    // Stable: words break ties.
    listed.sort_by_key(|(_, count)| Reverse(*count));
    let others = listed.iter().skip(MAX_WORDS).map(|(_, count)| count).sum();
    listed.truncate(MAX_WORDS);
    Words { listed, others }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "tests fail by it")]
mod tests {
    use super::*;
    use vmscope_records::{CollectionKey, Phase};

    const WINDOW: (TimeNs, TimeNs) = (TimeNs(100), TimeNs(1000));

    fn collection(key: u64, begin: u64, end: u64, cause: &str) -> Collection {
        Collection {
            key: CollectionKey(key),
            time: TimeNs(end),
            collector: "G1".to_owned(),
            kind: "young".to_owned(),
            cause: cause.to_owned(),
            begin: Some(TimeNs(begin)),
            end: Some(TimeNs(end)),
            stop_the_world: true,
            ..Collection::default()
        }
    }

    fn total<'a>(name: &'a str, unit: &'a str, first: f64, last: f64) -> Figure<'a> {
        Figure {
            name,
            unit,
            meaning: CounterMeaning::Total,
            first,
            last,
            min: first,
            max: last,
            read: WINDOW,
        }
    }

    fn section<'a>(figures: Vec<Figure<'a>>) -> Vec<Section<'a>> {
        vec![Section {
            name: COLLECTIONS_SECTION,
            figures,
        }]
    }

    #[test]
    fn counts_are_the_vms_and_pauses_those_observed() {
        let mut concurrent = collection(4, 300, 900, "");
        concurrent.kind = "concurrent".to_owned();
        concurrent.stop_the_world = false;
        let phase = |stops, within, begin: Option<u64>| Phase {
            stop_the_world: stops,
            within,
            begin: begin.map(TimeNs),
            end: Some(TimeNs(407)),
            ..Phase::default()
        };
        concurrent.phases = vec![
            phase(true, None, Some(400)),
            phase(true, Some(0), Some(402)),
            phase(false, None, Some(403)),
            phase(true, None, None),
        ];
        let mut begun = collection(5, 950, 0, "Metadata");
        begun.end = None;
        let all = [
            collection(1, 10, 20, "before"),
            collection(2, 200, 230, "Evacuation"),
            collection(3, 250, 260, "Evacuation"),
            concurrent,
            begun,
        ];
        let all: Vec<&Collection> = all.iter().collect();
        let figures = vec![
            total("G1, young", "", 5.0, 12.0),
            total("G1, young time", "ns", 0.0, 90.0),
            total("threads", "threads", 1.0, 2.0),
        ];
        let mut sections = section(figures);
        let collected = collected(&all, &mut sections, WINDOW).expect("collections");
        assert!(sections.is_empty());
        assert_eq!(collected.others.len(), 1);
        let [young, other] = &collected.collectors[..] else {
            panic!("{collected:?}");
        };
        assert_eq!(young.count.map(|f| f.change()), Some(7.0));
        assert_eq!(young.time.map(|f| f.change()), Some(90.0));
        assert_eq!((young.seen, young.observed), (3, 2));
        assert_eq!(
            (&young.pauses[..], young.median()),
            (&[10, 30][..], Some(10))
        );
        assert_eq!(young.causes.listed, [("Evacuation", 2), ("Metadata", 1)]);
        assert!(young.kinds.listed.is_empty());
        assert_eq!(other.label, "G1, concurrent");
        assert_eq!((&other.pauses[..], other.count), (&[7][..], None));
    }

    #[test]
    fn kinds_that_the_vm_counts_together_are_told_beside() {
        let all = [collection(1, 200, 210, ""), collection(2, 300, 310, "")];
        let all: Vec<&Collection> = all.iter().collect();
        let mut sections = section(vec![total("G1", "", 0.0, 2.0)]);
        let collected = collected(&all, &mut sections, WINDOW).expect("collections");
        assert_eq!(collected.collectors.len(), 1);
        assert_eq!(collected.collectors[0].kinds.listed, [("young", 2)]);
    }

    #[test]
    fn kinds_and_causes_without_end_are_bounded() {
        let all: Vec<Collection> = (0..500)
            .map(|n| Collection {
                kind: format!("kind {}", n % 100),
                cause: format!("cause {n}"),
                ..collection(n, 200, 210, "")
            })
            .collect();
        let all: Vec<&Collection> = all.iter().collect();
        let one = collected(&all, &mut Vec::new(), WINDOW).expect("collections");
        assert_eq!(one.collectors.len(), MAX_COLLECTORS);
        assert_eq!(one.left_out, (100 - MAX_COLLECTORS as u64) * 5);
        let mut sections = section(vec![total("G1", "", 0.0, 2.0)]);
        let one = collected(&all, &mut sections, WINDOW).expect("collections");
        let causes = &one.collectors[0].causes;
        assert_eq!((causes.listed.len(), causes.others), (MAX_WORDS, 500 - 16));
    }

    #[test]
    fn counters_that_were_not_read_at_the_windows_ends_count_nothing() {
        let all = [collection(1, 930, 931, ""), collection(2, 950, 960, "")];
        let all: Vec<&Collection> = all.iter().collect();
        let counts = |read: (u64, u64), change: f64, window: (u64, u64)| {
            let read = (TimeNs(read.0), TimeNs(read.1));
            let figures = ["G1, young", "cycles and collections"].map(|name| Figure {
                read,
                ..total(name, "", 0.0, change)
            });
            let mut sections = section(figures.into());
            let window = (TimeNs(window.0), TimeNs(window.1));
            let one = collected(&all, &mut sections, window).expect("collections");
            (one.whole(), one.collectors[0].seen)
        };
        let end = u64::MAX;
        assert_eq!(counts((100, 980), 2.0, (100, end)), (Some(2.0), 2));
        assert_eq!(counts((90, 980), 7.0, (100, 1000)), (Some(7.0), 2));
        // All readings precede the window.
        assert_eq!(counts((900, 900), 0.0, (920, 970)), (None, 2));
        assert_eq!(counts((500, 900), 7.0, (920, 970)), (None, 2));
        // Far from its ends.
        assert_eq!(counts((100, 980), 7.0, (500, end)), (None, 2));
        assert_eq!(counts((100, 800), 7.0, (100, 1000)), (None, 2));
        // The last one was not read.
        assert_eq!(counts((100, 940), 1.0, (100, end)), (Some(2.0), 2));
    }

    #[test]
    fn the_number_of_all_collections_is_not_added_to_its_parts() {
        let figures = vec![
            total("Copy, young", "", 5.0, 12.0),
            total("MSC, full", "", 1.0, 3.0),
            total(
                "G1, pause of a concurrent cycle",
                CYCLE_PARTS_UNIT,
                2.0,
                6.0,
            ),
            total("cycles and collections", "", 8.0, 21.0),
        ];
        let one = collected(&[], &mut section(figures), WINDOW).expect("collections");
        assert_eq!(one.collectors.len(), 3);
        assert_eq!((one.whole(), one.parts()), (Some(9.0), Some(4.0)));
        // Only cycles are counted (Z), or only parts of them (Shenandoah).
        let figures = vec![total("cycles and collections", "", 1.0, 3.0)];
        let one = collected(&[], &mut section(figures), WINDOW).expect("collections");
        assert_eq!((one.whole(), one.parts()), (Some(2.0), None));
        let figures = vec![total("Shenandoah", CYCLE_PARTS_UNIT, 1.0, 9.0)];
        let one = collected(&[], &mut section(figures), WINDOW).expect("collections");
        assert_eq!((one.whole(), one.parts()), (None, Some(8.0)));
    }

    #[test]
    fn nothing_told_is_nothing() {
        assert!(collected(&[], &mut Vec::new(), WINDOW).is_none());
    }
}
