//! Windows of collections: the selected one's, its neighbours'.

use super::Collector;
use crate::queries::collections::{Row, takes_process};
use crate::tui::filter_state::FilterChange;
use crate::tui::views::{Act, Cx};
use vmscope_records::TimeNs;

impl Collector {
    /// Makes a collection's time the window of all views.
    pub(super) fn window_of(row: &Row) -> Vec<Act> {
        match row.span() {
            Some(span) => vec![Act::FilterChange(FilterChange::Window(Some(span)))],
            None => vec![Act::Say(format!(
                "{} of this collection was observed: no window",
                row.seen()
            ))],
        }
    }

    /// Selects the previous or next collection in time. Under a window filter the table lacks it:
    /// its time becomes the window.
    pub(super) fn neighbour(&mut self, is_later: bool, cx: &Cx<'_>) -> Vec<Act> {
        let Some(now) = self.row().map(|row| row.time) else {
            return Vec::new();
        };
        let distance = |time: TimeNs| match is_later {
            true => (time > now).then(|| time.since(now)),
            false => (time < now).then(|| now.since(time)),
        };
        if cx.filters.window().is_none() {
            let rows = self.all.get().into_iter().flat_map(|all| &all.rows);
            let near = rows.filter_map(|row| Some((distance(row.time)?, row.key)));
            if let Some((_, key)) = near.min_by_key(|(distance, _)| *distance) {
                self.with_table(cx, |table, page, height| {
                    table.select_key(page, &key, height)
                });
            }
            return Vec::new();
        }
        let takes = takes_process(cx.profile, cx.filters.filter());
        let all = cx.profile.trace.collections.iter();
        let spans = all.filter(|one| takes(one.process)).filter_map(|one| {
            let (from, to) = (one.begin?, one.end?);
            let is_shown = from < to && from <= cx.end;
            Some((distance(from).filter(|_| is_shown)?, (from, to), one))
        });
        let Some((_, span, one)) = spans.min_by_key(|(distance, ..)| *distance) else {
            return vec![Act::Say("no further collection".to_owned())];
        };
        self.table.expect(Row::key_of(one));
        vec![Act::FilterChange(FilterChange::Window(Some(span)))]
    }
}
