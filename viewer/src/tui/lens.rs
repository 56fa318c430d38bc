//! What is looked at: the filters that all views honour, and their names for the
//! breadcrumb, where each can be removed.

use crate::report::words::count;
use rustc_hash::FxHashSet;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{Filter, Profile};

/// The filters of all views.
#[derive(Clone, Debug, Default)]
pub struct Lens {
    filter: Filter,
    /// In the order in which they came.
    kinds: Vec<Kind>,
    version: u64,
}

/// A filter that can be removed by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A window of time.
    Window,
    /// Some threads.
    Threads,
}

/// A change of the filters.
#[derive(Clone, Debug, PartialEq)]
pub enum Narrow {
    /// Only from the first instant to before the second; `None` for all.
    Window(Option<(TimeNs, TimeNs)>),
    /// Only these threads, by index in the trace; `None` for all.
    Threads(Option<FxHashSet<u32>>),
    /// Without the newest filter.
    DropNewest,
    /// Without that one.
    Drop(Kind),
    /// Without any.
    DropAll,
}

impl Lens {
    /// The filter.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Changes with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether everything is shown.
    pub fn is_open(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The filters, in the order in which they came.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The window that is chosen.
    pub fn window(&self) -> Option<(TimeNs, TimeNs)> {
        Some((self.filter.from?, self.filter.to?))
    }

    /// Changes the filters; whether that changed anything.
    pub fn narrow(&mut self, narrow: Narrow) -> bool {
        let kind = match narrow {
            Narrow::Window(window) => {
                let window = window.filter(|(from, to)| from < to);
                let (from, to) = window.unzip();
                if (self.filter.from, self.filter.to) == (from, to) {
                    return false;
                }
                (self.filter.from, self.filter.to) = (from, to);
                (Kind::Window, window.is_some())
            }
            Narrow::Threads(threads) => {
                if self.filter.threads == threads {
                    return false;
                }
                let is_set = threads.is_some();
                self.filter.threads = threads;
                (Kind::Threads, is_set)
            }
            Narrow::DropNewest => {
                let Some(&newest) = self.kinds.last() else {
                    return false;
                };
                return self.narrow(Narrow::Drop(newest));
            }
            Narrow::Drop(Kind::Window) => return self.narrow(Narrow::Window(None)),
            Narrow::Drop(Kind::Threads) => return self.narrow(Narrow::Threads(None)),
            Narrow::DropAll => {
                let was_open = self.is_open();
                *self = Lens {
                    version: self.version + u64::from(!was_open),
                    ..Lens::default()
                };
                return !was_open;
            }
        };
        let (kind, is_set) = kind;
        self.kinds.retain(|other| *other != kind);
        if is_set {
            self.kinds.push(kind);
        }
        self.version += 1;
        true
    }

    /// Goes back to filters that were there before.
    pub fn restore(&mut self, older: Lens) {
        *self = Lens {
            version: self.version + 1,
            ..older
        };
    }

    /// What a filter is called in the breadcrumb.
    pub fn label(&self, kind: Kind, profile: &Profile, begin: TimeNs) -> String {
        match kind {
            Kind::Window => {
                let (from, to) = self.window().unwrap_or((begin, begin));
                let at = |time: TimeNs| time.since(begin).as_secs_f64();
                format!("{:.3}-{:.3} s", at(from), at(to))
            }
            Kind::Threads => {
                let threads = self.filter.threads.as_ref();
                let mut chosen = threads.into_iter().flatten();
                match (chosen.next(), chosen.next()) {
                    (Some(&one), None) => {
                        let thread = profile.trace.threads.get(one as usize);
                        let name = thread.map_or("", |thread| thread.thread.name.as_str());
                        format!("thread {name}")
                    }
                    _ => format!(
                        "{} threads",
                        count(threads.map_or(0, |threads| threads.len() as u64))
                    ),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_come_and_go_one_by_one() {
        let mut lens = Lens::default();
        assert!(!lens.narrow(Narrow::DropNewest));
        assert!(lens.narrow(Narrow::Window(Some((TimeNs(1), TimeNs(5))))));
        assert!(lens.narrow(Narrow::Threads(Some([3].into_iter().collect()))));
        assert!(!lens.narrow(Narrow::Window(Some((TimeNs(1), TimeNs(5))))));
        assert_eq!(lens.kinds(), [Kind::Window, Kind::Threads]);
        let version = lens.version();
        assert!(lens.narrow(Narrow::DropNewest));
        assert!(lens.version() > version);
        assert_eq!(lens.kinds(), [Kind::Window]);
        assert_eq!(lens.window(), Some((TimeNs(1), TimeNs(5))));
        assert!(lens.narrow(Narrow::DropAll));
        assert!(lens.is_open() && lens.filter().from.is_none());
    }

    #[test]
    fn an_empty_window_is_none() {
        let mut lens = Lens::default();
        assert!(!lens.narrow(Narrow::Window(Some((TimeNs(5), TimeNs(5))))));
        assert!(lens.is_open());
    }
}
