//! Collections, concurrent cycles and pauses: exact counts from VM counters, durations from observed
//! ones.

use super::{Figure, Section};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use vmscope_records::{
    COLLECTION_TIME_SUFFIX, COLLECTIONS_SECTION, Collection, CollectionScope, CounterMeaning,
    SpaceUse, TimeNs,
};

/// Maximum number of rows.
const MAX_COLLECTORS: usize = 32;

/// Maximum number of causes, and of kinds, per row.
const MAX_WORDS: usize = 16;

const MAX_SPACES: usize = 32;

/// Collections of one process in a window.
#[derive(Debug, Default)]
pub struct Collected<'a> {
    /// By collector and kind, in the VM's order.
    pub collectors: Vec<Collector<'a>>,
    /// Observed collections of kinds beyond the maximum.
    pub left_out: u64,
    /// Spaces around the last collection with spaces.
    pub spaces: &'a [SpaceUse],
    /// Other figures of the section.
    pub others: Vec<Figure<'a>>,
}

/// Collections, cycles or pauses of one kind.
#[derive(Debug, Default)]
pub struct Collector<'a> {
    /// [`Collection::label`].
    pub label: String,
    /// What the row counts; `None` if unknown.
    pub scope: Option<CollectionScope>,
    /// Their number by the VM's counter: exact. `None` as well if the counters were not read near the
    /// window's ends.
    pub count: Option<Figure<'a>>,
    /// Duration in ns, by the VM's counter, as `count`.
    pub time: Option<Figure<'a>>,
    /// Number of observed ones; polls may miss some.
    pub seen: u64,
    /// Number with observed begin and end.
    pub observed: u64,
    /// Pauses of known duration in ns, ascending: whole collections, pauses of cycles, or
    /// stop-the-world phases of cycles.
    pub pauses: Vec<u64>,
    /// Number of pauses of unknown duration, and a duration in ns that none of them exceeded.
    pub missed: (u64, Option<u64>),
    /// Causes of observed collections.
    pub causes: Words<'a>,
    /// Kinds, if the VM's counter does not separate them.
    pub kinds: Words<'a>,
    /// Durations of observed phases, without phases inside of phases, longest first.
    pub phases: Vec<PhaseTime<'a>>,
}

/// All observed phases of one name.
#[derive(Clone, Copy, Debug)]
pub struct PhaseTime<'a> {
    /// The VM's word.
    pub name: &'a str,
    /// Number of phases.
    pub count: u64,
    /// Their duration, in ns.
    pub time: u64,
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

    /// A duration in ns that no pause exceeded; `None` if unknown. If it is the longest known pause,
    /// no missed one was longer.
    pub fn longest_at_most(&self) -> Option<u64> {
        let (missed, bound) = self.missed;
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let [known, seen] = [self.pauses.len() as u64 + missed, self.seen].map(|n| n as f64);
        let all = self.count.map_or(seen, |count| count.change().max(seen));
        let is_pause = self.scope.is_some_and(CollectionScope::is_pause);
        let longest = self.pauses.last().copied().unwrap_or(0);
        let bound = if missed == 0 { Some(0) } else { bound };
        bound
            .filter(|_| is_pause && all <= known)
            .map(|bound| bound.max(longest))
    }

    /// Notes the pauses of an observed collection, and missed ones before it.
    fn pause(&mut self, one: &Collection) {
        self.pauses.extend(pauses_of(one));
        if !one.scope.is_pause() {
            return;
        }
        match (one.missed, one.missed_ns) {
            (0, _) => {}
            (1, Some(ns)) => self.pauses.push(ns),
            (missed, ns) => {
                let (all, bound) = self.missed;
                let bound = if all == 0 { Some(0) } else { bound };
                self.missed = (
                    all.saturating_add(missed),
                    bound.zip(ns).map(|(a, b)| a.max(b)),
                );
            }
        }
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
    let mut phases: Vec<FxHashMap<&str, (u64, u64)>> = Vec::new();
    for one in &seen {
        let Some(place) = collected.place_of(one) else {
            collected.left_out += 1;
            continue;
        };
        words.resize_with(words.len().max(place + 1), Default::default);
        phases.resize_with(words.len(), Default::default);
        for (name, time) in outer_phases(one) {
            let (count, all) = phases[place].entry(name).or_default();
            (*count, *all) = (*count + 1, all.saturating_add(time));
        }
        let row = &mut collected.collectors[place];
        let [causes, kinds] = &mut words[place];
        row.seen += 1;
        row.observed += u64::from(one.begin.is_some() && one.end.is_some());
        row.pause(one);
        row.scope = row.scope.or(Some(one.scope));
        *causes.entry(&one.cause).or_default() += u64::from(!one.cause.is_empty());
        let is_told = row.label == Collection::label(&one.collector, &one.kind);
        *kinds.entry(&one.kind).or_default() += u64::from(!is_told);
    }
    for (row, [causes, kinds]) in collected.collectors.iter_mut().zip(words) {
        row.pauses.sort_unstable();
        (row.causes, row.kinds) = (most(causes), most(kinds));
    }
    for (row, phases) in collected.collectors.iter_mut().zip(phases) {
        row.phases = longest(phases);
    }
    let mut counts = collected.collectors.iter().filter_map(|row| row.count);
    if !counts.all(|count| covers(&count, window)) {
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
    (!is_empty || collected.left_out > 0).then_some(collected)
}

impl<'a> Collected<'a> {
    /// Number of collections, cycles or pauses of cycles, by the VM's counters.
    pub fn count(&self, scope: CollectionScope) -> Option<f64> {
        let rows = self.collectors.iter();
        let rows = rows.filter(|row| row.scope == Some(scope));
        let counts = rows.filter_map(|row| row.count);
        counts.map(|count| count.change()).reduce(|a, b| a + b)
    }

    /// Duration of all pauses in ns, by the VM's counters; `None` if it has none.
    pub fn pause_time(&self) -> Option<f64> {
        let rows = self.collectors.iter();
        let rows = rows.filter(|row| row.scope.is_some_and(CollectionScope::is_pause));
        let times = rows.filter_map(|row| row.time);
        times.map(|time| time.change()).reduce(|a, b| a + b)
    }

    /// Adds a figure of the collections' section.
    fn take(&mut self, figure: Figure<'a>) {
        let time = (figure.unit == "ns").then(|| figure.name.strip_suffix(COLLECTION_TIME_SUFFIX));
        let (label, is_time) = match time.flatten() {
            Some(label) => (label, true),
            None => (figure.name, false),
        };
        let is_total = figure.meaning == CounterMeaning::Total;
        let mut scopes = CollectionScope::ALL.into_iter();
        let scope = scopes.find(|scope| scope.unit() == figure.unit);
        if !is_total || !(is_time || scope.is_some()) {
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
                row.scope = scope;
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

/// Whether a collection, as far as observed, was in a window. Touching intervals do not overlap.
pub fn overlaps(one: &Collection, (from, to): (TimeNs, TimeNs)) -> bool {
    let first = one.begin.or(one.end).unwrap_or(one.time);
    let last = one.end.or(one.begin).unwrap_or(one.time);
    (last > from || first >= from) && first < to
}

/// Observed stop-the-world times, in ns.
fn pauses_of(one: &Collection) -> impl Iterator<Item = u64> + '_ {
    let length = |begin: Option<TimeNs>, end: Option<TimeNs>| Some(end?.since(begin?).0);
    let is_pause = one.scope.is_pause();
    let whole = is_pause.then(|| length(one.begin, one.end));
    // Nested stop-the-world phases are parts of the outer pause.
    let stops = |within: Option<u32>| {
        let outer = within.and_then(|index| one.phases.get(index as usize));
        outer.is_some_and(|outer| outer.stop_the_world)
    };
    let phases = one
        .phases
        .iter()
        .filter(move |phase| !is_pause && phase.stop_the_world && !stops(phase.within));
    let phases = phases.filter_map(move |phase| length(phase.begin, phase.end));
    whole.flatten().into_iter().chain(phases)
}

/// Names and durations in ns of the observed phases that no other phase contains.
fn outer_phases(one: &Collection) -> impl Iterator<Item = (&str, u64)> {
    let phases = one.phases.iter().filter(|phase| phase.within.is_none());
    phases.filter_map(|phase| Some((phase.name.as_str(), phase.end?.since(phase.begin?).0)))
}

fn longest(phases: FxHashMap<&str, (u64, u64)>) -> Vec<PhaseTime<'_>> {
    let times = phases.into_iter();
    let times = times.map(|(name, (count, time))| PhaseTime { name, count, time });
    let mut times: Vec<PhaseTime> = times.collect();
    times.sort_by_key(|phase| (Reverse(phase.time), phase.name));
    times.truncate(MAX_WORDS);
    times
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
            scope: CollectionScope::Whole,
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
        concurrent.scope = CollectionScope::Cycle;
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
            let figure = Figure {
                read,
                ..total("G1, young", "", 0.0, change)
            };
            let mut sections = section(vec![figure]);
            let window = (TimeNs(window.0), TimeNs(window.1));
            let one = collected(&all, &mut sections, window).expect("collections");
            (one.count(CollectionScope::Whole), one.collectors[0].seen)
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
    fn collections_cycles_and_pauses_are_counted_apart() {
        let figures = vec![
            total("G1, young", "", 5.0, 12.0),
            total("G1, young time", "ns", 0.0, 40.0),
            total("G1, full", "", 1.0, 3.0),
            total("G1, pause", "pauses", 2.0, 6.0),
            total("G1, pause time", "ns", 0.0, 2.0),
            total("G1, cycle", "cycles", 8.0, 10.0),
            total("G1, cycle time", "ns", 0.0, 900.0),
            // Of an older vmscope.
            total("Shenandoah", "pauses or phases", 0.0, 139.0),
            total("Shenandoah time", "ns", 0.0, 10_270.0),
        ];
        let one = collected(&[], &mut section(figures), WINDOW).expect("collections");
        let counts = CollectionScope::ALL.map(|scope| one.count(scope));
        assert_eq!(counts, [Some(9.0), Some(2.0), Some(4.0)]);
        assert_eq!(one.pause_time(), Some(42.0));
        assert_eq!(one.others.len(), 1);
    }

    #[test]
    fn the_longest_pause_is_known_or_bounded_or_only_observed() {
        let longest = |missed: &[(u64, Option<u64>)], counted: f64| {
            let all: Vec<Collection> = missed
                .iter()
                .zip(1..)
                .map(|(&(missed, missed_ns), key)| Collection {
                    missed,
                    missed_ns,
                    ..collection(key, 200 + key * 20, 205 + key * 20, "")
                })
                .collect();
            let all: Vec<&Collection> = all.iter().collect();
            let mut sections = section(vec![total("G1, young", "", 0.0, counted)]);
            let one = collected(&all, &mut sections, WINDOW).expect("collections");
            let row = &one.collectors[0];
            (row.pauses.last().copied(), row.longest_at_most())
        };
        assert_eq!(longest(&[(0, None)], 1.0), (Some(5), Some(5)));
        // One missed pause has an exact duration.
        assert_eq!(longest(&[(0, None), (1, Some(9))], 3.0), (Some(9), Some(9)));
        assert_eq!(
            longest(&[(3, Some(8)), (2, Some(4))], 7.0),
            (Some(5), Some(8))
        );
        assert_eq!(longest(&[(3, Some(4))], 4.0), (Some(5), Some(5)));
        assert_eq!(longest(&[(3, None), (2, Some(4))], 7.0), (Some(5), None));
        // Polls account for four pauses only.
        assert_eq!(longest(&[(3, Some(4))], 5.0), (Some(5), None));
    }

    #[test]
    fn nothing_told_is_nothing() {
        assert!(collected(&[], &mut Vec::new(), WINDOW).is_none());
    }
}
