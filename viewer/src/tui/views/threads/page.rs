//! Table of threads.

use super::Activity;
use crate::present::document::Value;
use crate::present::names::{role_name, thread_name};
use crate::present::numbers::{count, ratio, some};
use crate::present::text;
use crate::queries::by_region;
use crate::queries::threads::{Group, ROLES, ThreadUse, Threads, knows_kernel, life};
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::widgets::data_table::{Column, Piece, Room, Rows, Sort, SortKey};
use crate::tui::widgets::search::Finder;
use vmscope_records::TimeNs;
use vmscope_symbolizer::ThreadId;
use vmscope_symbolizer::trace::TraceThread;

const INCLUDED: usize = 0;
const NAME: usize = 1;
const TID: usize = 2;
const ROLE: usize = 3;
const SAMPLES: usize = 4;
const SHARE: usize = 5;
const CPU: usize = 6;
const DELIVERED: usize = 7;
const KERNEL: usize = 8;
const REGIONS: usize = 9;
pub const ACTIVITY: usize = 10;
const FROM: usize = 11;
const TO: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// Index in [`Page::groups`].
    Group(usize),
    /// Index in [`Threads::all`].
    Thread(usize),
}

/// Identity of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// Name of a group.
    Group(String),
    /// Trace index of a thread.
    Thread(ThreadId),
}

/// Data of the table.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub cx: Cx<'a>,
    pub threads: &'a Threads,
    /// `None` without grouping.
    pub groups: Option<&'a [Group]>,
    /// Activity of visible rows; `None` before the first answer.
    pub activity: Option<Activity<'a>>,
}

impl<'a> Page<'a> {
    /// Threads of a row, by trace index.
    pub fn threads_of(&self, row: Row) -> &'a [ThreadId] {
        match row {
            Row::Group(group) => &self.group(group).threads,
            Row::Thread(at) => std::slice::from_ref(&self.threads.all[at].0),
        }
    }

    fn group(&self, group: usize) -> &'a Group {
        // Group rows exist only with groups.
        &self.groups.unwrap_or_default()[group]
    }

    fn used(&self, row: Row) -> &'a ThreadUse {
        match row {
            Row::Group(group) => &self.group(group).used,
            Row::Thread(at) => &self.threads.all[at].1,
        }
    }

    fn thread(&self, row: Row) -> Option<&'a TraceThread> {
        match row {
            Row::Group(_) => None,
            Row::Thread(at) => {
                let (thread, _) = self.threads.all[at];
                Some(&self.cx.profile.trace.threads[thread])
            }
        }
    }

    fn life(&self, row: Row) -> (Option<TimeNs>, Option<TimeNs>) {
        match row {
            Row::Group(_) => (None, None),
            Row::Thread(at) => {
                let (thread, _) = self.threads.all[at];
                life(self.cx.profile, self.cx.begin, thread)
            }
        }
    }

    /// Inclusion sign of a row: all, some or no threads.
    fn included(&self, row: Row) -> (&'static str, Role) {
        let filter = self.cx.filters.filter();
        let threads = self.threads_of(row);
        let is_in = |thread: &&ThreadId| filter.takes_thread(**thread);
        match threads.iter().filter(is_in).count() {
            0 => ("-", Role::Dim),
            n if n < threads.len() => ("*", Role::Text),
            _ => ("+", Role::Text),
        }
    }

    fn group_label(&self, group: usize, room: usize) -> String {
        let Group { name, threads, .. } = self.group(group);
        let whole = some(threads.len() as u64, "thread", "threads");
        let whole = format!("{name} ({whole})");
        match text::width(&whole) > room {
            true => format!("{name} ({})", threads.len()),
            false => whole,
        }
    }

    /// Bar of a row's samples by region.
    fn regions(&self, row: Row, room: &Room<'_>) -> Vec<Piece> {
        let cells = by_region::stacked(&self.used(row).regions, room.width);
        let is_native = self.cx.profile.is_native();
        let pieces = cells.into_iter().map(|region| Piece {
            text: room.theme.fill(region, is_native).to_string(),
            role: Role::Region(region),
        });
        pieces.collect()
    }
}

impl Rows for Page<'_> {
    type Row = Row;
    type Key = Key;

    fn columns(&self, width: u16) -> Vec<Column> {
        let width = usize::from(width);
        let name = (width / 5).clamp(14, 40);
        let regions = (width / 10).clamp(8, 20);
        let like_samples = Sort::Like(SAMPLES);
        vec![
            Column::left("", "included", 1),
            Column::left("thread", "thread", name).sort(Sort::Up),
            Column::right("tid", "tid", 8).rank(6).sort(Sort::Up),
            Column::left("role", "role", 9).rank(1).sort(Sort::Up),
            Column::right("samples", "samples", 9)
                .rank(4)
                .sort(Sort::Down),
            Column::right("share", "share", 7).sort(like_samples),
            Column::right("CPU s", "CPU", 8).rank(2).sort(Sort::Down),
            Column::right("told %", "of promised", 6).rank(5),
            Column::right("kern %", "kernel", 6)
                .rank(3)
                .sort(Sort::Down),
            Column::left("regions", "", regions),
            Column::left("activity", "", (width / 4).max(12)),
            Column::right("from s", "from", 9).rank(7).sort(Sort::Up),
            Column::right("to s", "to", 9).rank(8),
        ]
    }

    fn stretch(&self) -> usize {
        ACTIVITY
    }

    fn sorts(&self) -> Vec<usize> {
        vec![SAMPLES, CPU, KERNEL, NAME, TID, ROLE, FROM]
    }

    fn tree_column(&self) -> usize {
        NAME
    }

    fn is_tree(&self) -> bool {
        self.groups.is_some()
    }

    fn is_open_at_first(&self, _row: Row) -> bool {
        true
    }

    fn can_open(&self, row: Row) -> bool {
        matches!(row, Row::Group(_))
    }

    fn children(&self, parent: Option<Row>) -> Vec<Row> {
        match (parent, self.groups) {
            (None, Some(groups)) => (0..groups.len()).map(Row::Group).collect(),
            (None, None) => (0..self.threads.all.len()).map(Row::Thread).collect(),
            (Some(Row::Group(group)), _) => {
                let members = self.group(group).members.iter();
                members.map(|&at| Row::Thread(at)).collect()
            }
            (Some(Row::Thread(_)), _) => Vec::new(),
        }
    }

    fn key(&self, row: Row) -> Key {
        match row {
            Row::Group(group) => Key::Group(self.group(group).name.clone()),
            Row::Thread(at) => Key::Thread(self.threads.all[at].0),
        }
    }

    fn value(&self, row: Row, column: usize) -> Value {
        let used = self.used(row);
        let thread = self.thread(row).map(|one| &one.thread);
        let (from, to) = self.life(row);
        let share = |value: Option<f64>| value.map_or(Value::Empty, Value::Share);
        let seconds = |time: Option<TimeNs>| {
            time.map_or(Value::Empty, |time| Value::Seconds(self.cx.seconds(time)))
        };
        let word = |text: &str| Value::Text(text.to_owned());
        match (column, row) {
            (INCLUDED, _) => word(match self.included(row).0 {
                "-" => "no",
                "*" => "some",
                _ => "yes",
            }),
            (NAME, Row::Group(group)) => word(&self.group(group).name),
            (NAME, _) => thread.map_or(Value::Empty, |thread| word(&thread.name)),
            (TID, _) => thread.map_or(Value::Empty, |one| Value::Count(u64::from(one.tid.0))),
            (ROLE, _) => thread.map_or(Value::Empty, |thread| word(role_name(thread.role))),
            (SAMPLES, _) => Value::Count(used.samples),
            (SHARE, _) => Value::Share(self.share(row)),
            (CPU, _) => {
                let cpu = used.account.cpu;
                cpu.map_or(Value::Empty, |cpu| Value::Seconds(cpu.as_secs_f64()))
            }
            (DELIVERED, _) => share(used.delivered()),
            (KERNEL, _) => share(knows_kernel(self.cx.profile).then(|| used.kernel_share())),
            (FROM, _) => seconds(from),
            (TO, _) => seconds(to),
            _ => Value::Empty,
        }
    }

    fn sort_key(&self, row: Row, column: usize) -> SortKey {
        match (column, self.thread(row)) {
            (ROLE, Some(thread)) => {
                let place = ROLES.iter().position(|role| *role == thread.thread.role);
                SortKey::Number(place.unwrap_or(ROLES.len()) as u64)
            }
            _ => SortKey::of(&self.value(row, column)),
        }
    }

    fn cell(&self, row: Row, column: usize, room: &Room<'_>) -> Vec<Piece> {
        let (sign, role) = self.included(row);
        let text = match (column, self.value(row, column)) {
            (INCLUDED, _) => sign.to_owned(),
            (NAME, _) => match (row, self.thread(row)) {
                (Row::Group(group), _) => {
                    return Piece::cell(Role::Strong, self.group_label(group, room.width));
                }
                (_, thread) => {
                    thread.map_or_else(String::new, |one| thread_name(&one.thread).into_owned())
                }
            },
            (TID, Value::Count(tid)) => tid.to_string(),
            (SHARE, Value::Share(share)) => {
                return Piece::cell(Role::Heat(share), format!("{:.2}%", share * 100.0));
            }
            (CPU, Value::Empty) => "?".to_owned(),
            (KERNEL, _) if self.used(row).samples == 0 => String::new(),
            (REGIONS, _) => return self.regions(row, room),
            (ACTIVITY, _) => {
                let activity = self.activity.map(|activity| {
                    activity.cells(&self.key(row), self.threads_of(row).len(), room)
                });
                return activity.unwrap_or_default();
            }
            (_, Value::Text(text)) => text,
            (_, Value::Count(number) | Value::Bytes(number)) => count(number),
            (_, Value::Share(share)) => format!("{:.1}", share * 100.0),
            (_, Value::Seconds(seconds)) => format!("{seconds:.3}"),
            (_, Value::Empty) => String::new(),
        };
        Piece::cell(role, text)
    }

    fn fits(&self, row: Row, text: &mut Finder) -> bool {
        match row {
            Row::Group(group) => text.is_in(&self.group(group).name),
            Row::Thread(at) => super::matches(self.cx.profile, self.threads.all[at].0, text),
        }
    }

    fn share(&self, row: Row) -> f64 {
        ratio(self.used(row).samples, self.threads.samples)
    }
}
