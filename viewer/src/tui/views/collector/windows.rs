//! From a collection to its time, and to that of its neighbours.

use super::Collector;
use crate::queries::collections::{Row, processes};
use crate::tui::filter_state::FilterChange;
use crate::tui::views::{Act, Cx};

impl Collector {
    /// The collection's own time for all views.
    pub(super) fn window_of(row: &Row) -> Vec<Act> {
        match row.span() {
            Some((from, to)) => vec![Act::FilterChange(FilterChange::Window(Some((from, to))))],
            None => {
                let text = format!(
                    "{} of this collection was observed: it has no window",
                    row.seen()
                );
                vec![Act::Say(text)]
            }
        }
    }

    /// Goes to the collection before or after the selected one in time. Where a window is
    /// chosen, other collections are not in the table, but they are in the trace.
    pub(super) fn neighbour(&mut self, later: bool, cx: &Cx<'_>) -> Vec<Act> {
        let Some(row) = self.row().cloned() else {
            return Vec::new();
        };
        if cx.filters.window().is_some() {
            let processes = processes(cx.profile, cx.filters.filter());
            let spans = cx.profile.trace.collections.iter().filter(|one| {
                let processes = processes.as_ref();
                processes.is_none_or(|processes| processes.contains(&one.process))
            });
            let spans = spans.filter_map(|one| Some((one.begin?, one.end?, Row::key_of(one))));
            let spans = spans.filter(|(from, to, _)| from < to && *from <= cx.end);
            let next = if later {
                spans.filter(|one| one.0 > row.time).min_by_key(|one| one.0)
            } else {
                spans.filter(|one| one.0 < row.time).max_by_key(|one| one.0)
            };
            return match next {
                Some((from, to, key)) => {
                    self.table.expect(key);
                    vec![Act::FilterChange(FilterChange::Window(Some((from, to))))]
                }
                None => vec![Act::Say("there is no further collection".to_owned())],
            };
        }
        let others = self.all.get().into_iter().flat_map(|all| &all.rows);
        let next = if later {
            let others = others.filter(|one| one.time > row.time);
            others.min_by_key(|one| one.time)
        } else {
            let others = others.filter(|one| one.time < row.time);
            others.max_by_key(|one| one.time)
        };
        if let Some(key) = next.map(|one| one.key) {
            self.select(&key, cx);
        }
        Vec::new()
    }
}
