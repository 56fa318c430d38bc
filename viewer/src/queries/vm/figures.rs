//! Figures of a VM over a window, by section.

use rustc_hash::FxHashMap;
use vmscope_records::{Counter, CounterMeaning, TimeNs};

/// Maximum number of figures per process.
const MAX_FIGURES: usize = 1000;

/// Related figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Section<'a> {
    /// In the VM's words.
    pub name: &'a str,
    /// In the VM's order.
    pub figures: Vec<Figure<'a>>,
}

/// VM figure over a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure<'a> {
    /// In the VM's words.
    pub name: &'a str,
    /// `bytes`, `ns` …; empty for a plain count.
    pub unit: &'a str,
    pub meaning: CounterMeaning,
    /// Value at the window's begin, or first value in the window.
    pub first: f64,
    pub last: f64,
    pub min: f64,
    pub max: f64,
    /// Times of `first` and `last`: polls happen about once a second, not at the window's ends.
    pub read: (TimeNs, TimeNs),
}

impl Figure<'_> {
    pub fn change(&self) -> f64 {
        self.last - self.first
    }

    /// Rate between the times of `first` and `last`; 0 for a single value.
    pub fn per_second(&self) -> f64 {
        let seconds = self.read.1.since(self.read.0).as_secs_f64();
        if seconds > 0.0 {
            self.change() / seconds
        } else {
            0.0
        }
    }
}

/// Figures of one process with a value by the end of `window`, and the number of omitted values.
pub(super) fn figures_of<'a>(
    counters: &[&'a Counter],
    window: (TimeNs, TimeNs),
) -> (Vec<Section<'a>>, u64) {
    let (from, to) = window;
    let mut sections: Vec<Section> = Vec::new();
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
        let Some(&(at, place)) = place_of.get(&(section, name)) else {
            if place_of.len() >= MAX_FIGURES {
                left_out += 1;
                continue;
            }
            let known = sections.iter().position(|known| known.name == section);
            let at = known.unwrap_or(sections.len());
            if known.is_none() {
                sections.push(Section {
                    name: section,
                    figures: Vec::new(),
                });
            }
            let figures = &mut sections[at].figures;
            place_of.insert((section, name), (at, figures.len()));
            figures.push(fresh);
            continue;
        };
        let figure = &mut sections[at].figures[place];
        if counter.time <= from {
            *figure = fresh;
        } else {
            figure.last = value;
            figure.read.1 = counter.time;
            figure.min = figure.min.min(value);
            figure.max = figure.max.max(value);
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
    fn figures_are_the_same_in_whatever_order_they_are_told() {
        // In turn, some left out, turned round, another that comes late: by value, 10 + figure.
        let rounds: [&[u32]; 5] = [
            &[0, 1, 2, 3],
            &[0, 2, 3],
            &[3, 2, 1, 0],
            &[1, 4, 1],
            &[0, 1],
        ];
        let mut told = Vec::new();
        for (time, round) in rounds.iter().enumerate() {
            told.extend(round.iter().map(|figure| Counter {
                section: format!("section {}", figure / 2),
                ..counter(
                    time as u64,
                    &format!("figure {}", figure % 2),
                    f64::from(10 + figure),
                )
            }));
        }
        let told: Vec<&Counter> = told.iter().collect();
        let (sections, _) = figures_of(&told, (TimeNs(0), TimeNs(9)));
        let found = sections.iter().flat_map(|section| {
            let of = |figure: &Figure| (figure.first, figure.min, figure.max, figure.read.1.0);
            section.figures.iter().map(of)
        });
        let found: Vec<(f64, f64, f64, u64)> = found.collect();
        let all = [(10.0, 4), (11.0, 4), (12.0, 2), (13.0, 2), (14.0, 3)];
        assert_eq!(found, all.map(|(value, last)| (value, value, value, last)));
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
