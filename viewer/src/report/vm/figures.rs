//! The figures of a VM over a window, by section.

use rustc_hash::FxHashMap;
use vmscope_records::{Counter, CounterMeaning, TimeNs};

/// So many figures of a process are told of.
const MAX_FIGURES: usize = 1000;

/// Figures that a VM tells together.
#[derive(Clone, Debug, PartialEq)]
pub struct Section<'a> {
    /// In the VM's words.
    pub name: &'a str,
    /// In the order in which it tells them.
    pub figures: Vec<Figure<'a>>,
}

/// A figure of a VM over the report's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure<'a> {
    /// In the VM's words.
    pub name: &'a str,
    /// `bytes`, `ns` …; empty for a plain count.
    pub unit: &'a str,
    /// A level, or a total since the VM's start.
    pub meaning: CounterMeaning,
    /// The value that the window began with, or the first one in it.
    pub first: f64,
    /// The newest value.
    pub last: f64,
    /// The least value, `first` included.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// When `first` and `last` were read: VMs are asked about once a second, so that is
    /// not quite the window.
    pub read: (TimeNs, TimeNs),
}

impl Figure<'_> {
    /// What it changed by, or grew by.
    pub fn change(&self) -> f64 {
        self.last - self.first
    }

    /// How fast it grew, between the times at which it was read; 0 where that is once.
    pub fn per_second(&self) -> f64 {
        let seconds = self.read.1.since(self.read.0).as_secs_f64();
        if seconds > 0.0 {
            self.change() / seconds
        } else {
            0.0
        }
    }
}

/// The figures of one process that have a value by the end of `window`, and how many
/// values there was no room for.
pub(super) fn figures_of<'a>(
    counters: &[&'a Counter],
    window: (TimeNs, TimeNs),
) -> (Vec<Section<'a>>, u64) {
    let (from, to) = window;
    let mut sections: Vec<Section> = Vec::new();
    let mut section_of: FxHashMap<&str, usize> = FxHashMap::default();
    let mut place_of: FxHashMap<(&str, &str), (usize, usize)> = FxHashMap::default();
    let mut left_out = 0;
    for counter in counters.iter().filter(|counter| counter.time <= to) {
        let (section, name, value) = (&*counter.section, &*counter.name, counter.value);
        let fresh = Figure {
            name,
            unit: &counter.unit,
            meaning: counter.meaning,
            first: value,
            last: value,
            min: value,
            max: value,
            read: (counter.time, counter.time),
        };
        let Some(&(section, place)) = place_of.get(&(section, name)) else {
            if place_of.len() >= MAX_FIGURES {
                left_out += 1;
                continue;
            }
            let at = *section_of.entry(section).or_insert_with(|| {
                let figures = Vec::new();
                sections.push(Section {
                    name: section,
                    figures,
                });
                sections.len() - 1
            });
            if let Some(slot) = sections.get_mut(at) {
                place_of.insert((section, name), (at, slot.figures.len()));
                slot.figures.push(fresh);
            }
            continue;
        };
        let figures = sections
            .get_mut(section)
            .map(|section| &mut section.figures);
        if let Some(figure) = figures.and_then(|figures| figures.get_mut(place)) {
            if counter.time <= from {
                *figure = fresh;
            } else {
                figure.last = value;
                figure.read.1 = counter.time;
                figure.min = figure.min.min(value);
                figure.max = figure.max.max(value);
            }
        }
    }
    (sections, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_records::ProcessKey;

    fn counter(time: u64, name: &str, value: f64) -> Counter {
        Counter {
            process: ProcessKey(1),
            time: TimeNs(time),
            section: "Heap".to_owned(),
            name: name.to_owned(),
            unit: "bytes".to_owned(),
            meaning: CounterMeaning::Gauge,
            value,
        }
    }

    #[test]
    fn a_figure_begins_with_the_value_that_the_window_found() {
        let told = [
            (0, 9.0),
            (5, 4.0),
            (11, 2.0),
            (15, 8.0),
            (20, 6.0),
            (25, 99.0),
        ];
        let told: Vec<Counter> = told.iter().map(|&(t, v)| counter(t, "eden", v)).collect();
        let told: Vec<&Counter> = told.iter().collect();
        let (sections, left_out) = figures_of(&told, (TimeNs(10), TimeNs(20)));
        let figure = sections[0].figures[0];
        assert_eq!((figure.first, figure.last), (4.0, 6.0));
        assert_eq!((figure.min, figure.max), (2.0, 8.0));
        assert_eq!((figure.change(), figure.per_second()), (2.0, 2.0 / 15e-9));
        assert_eq!(left_out, 0);
    }

    #[test]
    fn names_without_end_are_bounded() {
        let all: Vec<Counter> = (0..3000).map(|n| counter(1, &n.to_string(), 0.0)).collect();
        let all: Vec<&Counter> = all.iter().collect();
        let (sections, left_out) = figures_of(&all, (TimeNs(0), TimeNs(9)));
        assert_eq!(sections[0].figures.len(), MAX_FIGURES);
        assert_eq!(left_out, 2000);
    }
}
