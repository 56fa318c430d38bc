//! Collections: exact numbers from the VM's own counters, pauses from those that were
//! observed.

use super::{Figure, Section};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use vmscope_records::{
    COLLECTION_TIME_SUFFIX, COLLECTIONS_SECTION, Collection, CounterMeaning, SpaceUse, TimeNs,
};

/// So many kinds of collection are told apart.
const MAX_COLLECTORS: usize = 32;

/// So many causes, or kinds, of one collector; the rest is summed up.
const MAX_WORDS: usize = 16;

/// So many spaces are shown.
const MAX_SPACES: usize = 32;

/// The collections of one process in a window.
#[derive(Debug, Default)]
pub struct Collected<'a> {
    /// By collector and kind, in the order in which the VM tells them.
    pub collectors: Vec<Collector<'a>>,
    /// Collections that are seen, of more kinds than there is room for.
    pub left_out: u64,
    /// The spaces around the last collection that tells of any.
    pub spaces: &'a [SpaceUse],
    /// Other figures of that section.
    pub others: Vec<Figure<'a>>,
}

/// Collections of one kind.
#[derive(Debug, Default)]
pub struct Collector<'a> {
    /// What they are called: [`Collection::label`].
    pub label: String,
    /// How many there were, by the VM's own count: exact.
    pub count: Option<Figure<'a>>,
    /// How long they took, likewise, in nanoseconds.
    pub time: Option<Figure<'a>>,
    /// How many were seen, by looks that may miss some.
    pub seen: u64,
    /// Those of which begin and end were observed.
    pub observed: u64,
    /// The pauses that were observed, in nanoseconds, ascending: whole collections, or of
    /// a concurrent one its phases in which the world stood still.
    pub pauses: Vec<u64>,
    /// What caused those that were seen, most frequent first.
    pub causes: Words<'a>,
    /// Of which kinds they were, where the VM's count does not tell those apart.
    pub kinds: Words<'a>,
}

/// Words with their counts, most frequent first, and what there is no room for.
#[derive(Debug, Default)]
pub struct Words<'a> {
    /// The words.
    pub listed: Vec<(&'a str, u64)>,
    /// How many more there are, counted together.
    pub others: u64,
}

impl Collector<'_> {
    /// The middle one of the observed pauses (the lower one of two).
    pub fn median(&self) -> Option<u64> {
        let middle = self.pauses.len().checked_sub(1)? / 2;
        self.pauses.get(middle).copied()
    }
}

/// The collections of a process; takes the section of their counters out of `sections`.
/// `None` where nothing is told of any.
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
    let (from, to) = window;
    let in_window = |one: &&&Collection| {
        let ended = one.end.or(one.begin).unwrap_or(one.time);
        ended >= from && one.begin.or(one.end).unwrap_or(one.time) <= to
    };
    let mut seen: Vec<&Collection> = collections.iter().filter(in_window).copied().collect();
    seen.sort_by_key(|one| one.end.or(one.begin).unwrap_or(one.time));
    let mut words: Vec<[FxHashMap<&str, u64>; 2]> = Vec::new();
    for one in &seen {
        let Some(place) = collected.place_of(one) else {
            collected.left_out += 1;
            continue;
        };
        words.resize_with(words.len().max(place + 1), Default::default);
        if let (Some(row), Some([causes, kinds])) =
            (collected.collectors.get_mut(place), words.get_mut(place))
        {
            row.seen += 1;
            row.observed += u64::from(one.begin.is_some() && one.end.is_some());
            row.pauses.extend(pauses_of(one));
            *causes.entry(&one.cause).or_default() += u64::from(!one.cause.is_empty());
            let is_told = row.label == Collection::label(&one.collector, &one.kind);
            *kinds.entry(&one.kind).or_default() += u64::from(!is_told);
        }
    }
    for (row, [causes, kinds]) in collected.collectors.iter_mut().zip(words) {
        row.pauses.sort_unstable();
        (row.causes, row.kinds) = (most(causes), most(kinds));
    }
    let last = seen.iter().rev().find(|one| !one.spaces.is_empty());
    let spaces = last.map_or(&[][..], |one| one.spaces.as_slice());
    collected.spaces = spaces.get(..MAX_SPACES).unwrap_or(spaces);
    let is_empty = collected.collectors.is_empty() && collected.others.is_empty();
    (!is_empty || collected.left_out > 0).then_some(collected)
}

impl<'a> Collected<'a> {
    /// Takes a figure of the collections' section.
    fn take(&mut self, figure: Figure<'a>) {
        let time = (figure.unit == "ns").then(|| figure.name.strip_suffix(COLLECTION_TIME_SUFFIX));
        let (label, is_time) = match time.flatten() {
            Some(label) => (label, true),
            None => (figure.name, false),
        };
        let is_total = figure.meaning == CounterMeaning::Total;
        if !is_total || !(is_time || figure.unit.is_empty()) {
            self.others.push(figure);
            return;
        }
        let Some(place) = self.place(label) else {
            self.others.push(figure);
            return;
        };
        if let Some(row) = self.collectors.get_mut(place) {
            *(if is_time {
                &mut row.time
            } else {
                &mut row.count
            }) = Some(figure);
        }
    }

    /// The row of a collection: the one that the VM's own count has, else its own.
    fn place_of(&mut self, one: &Collection) -> Option<usize> {
        let label = Collection::label(&one.collector, &one.kind);
        let known = |label: &str| self.collectors.iter().position(|row| row.label == label);
        (known(&label).or_else(|| known(&one.collector))).or_else(|| self.place(&label))
    }

    /// The row of that label, made now if there is room.
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

/// The times for which the world was observed to stand still, in nanoseconds.
fn pauses_of(one: &Collection) -> impl Iterator<Item = u64> + '_ {
    let length = |begin: Option<TimeNs>, end: Option<TimeNs>| Some(end?.since(begin?).0);
    let whole = one.stop_the_world.then(|| length(one.begin, one.end));
    // The phases of one that stops the world are parts of its pause; so are phases of
    // phases that do.
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
    // Stable: the words themselves break ties.
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
    fn nothing_told_is_nothing() {
        assert!(collected(&[], &mut Vec::new(), WINDOW).is_none());
    }
}
