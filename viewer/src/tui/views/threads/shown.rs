//! What the view shows, for copying and exporting.

use super::facts::kernel_share;
use super::{Threads, draw};
use crate::report::text::role_name;
use crate::report::words::ratio;
use crate::tui::document::{Cell, Document, Part, Table, each};
use crate::tui::views::Cx;
use vmscope_records::TimeNs;
use vmscope_symbolizer::Stop;

impl Threads {
    /// All threads; `None` where it was stopped.
    pub(super) fn table(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        let columns = [
            "included",
            "thread",
            ">tid",
            "role",
            ">samples",
            ">share",
            ">CPU",
            ">of promised",
            ">kernel",
            ">from",
            ">to",
        ];
        let mut table = Table::new("", &columns);
        let (Some(facts), Some(rows)) = (self.facts.get(), self.rows.get()) else {
            return Some(Document::default());
        };
        let filter = cx.filters.filter();
        each(rows.sorted.iter(), stop, |&at| {
            let Some(fact) = facts.all.get(at) else {
                return;
            };
            let Some(thread) = cx.profile.trace.threads.get(fact.thread as usize) else {
                return;
            };
            let (from, to) = draw::life(cx, fact.thread);
            let seconds = |time: Option<TimeNs>| {
                time.map_or(Cell::Empty, |time| Cell::Seconds(cx.seconds(time)))
            };
            let share = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Share);
            let word = if filter.takes_thread(fact.thread) {
                "yes"
            } else {
                "no"
            };
            let cpu = fact.account.cpu;
            table.rows.push(vec![
                Cell::Text(word.to_owned()),
                Cell::Text(thread.thread.name.clone()),
                Cell::Count(u64::from(thread.thread.tid.0)),
                Cell::Text(role_name(thread.thread.role).to_owned()),
                Cell::Count(fact.samples),
                Cell::Share(ratio(fact.samples, facts.samples)),
                cpu.map_or(Cell::Empty, |cpu| Cell::Seconds(cpu.as_secs_f64())),
                share(draw::delivered(fact)),
                share(draw::knows_kernel(cx).then(|| kernel_share(fact))),
                seconds(from),
                seconds(to),
            ]);
        })?;
        Some(Document {
            title: "Threads".to_owned(),
            parts: vec![Part::Table(table)],
        })
    }
}
