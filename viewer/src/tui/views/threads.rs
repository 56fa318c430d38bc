//! The threads: each with its role, its share and its activity over time; which of them
//! all views include.

mod draw;
mod facts;
#[cfg(test)]
mod tests;

use super::by_region::{self, GROUPS};
use super::{Act, Choice, Click, Cx, Find, Press, View};
use crate::report::text::role_name;
use crate::report::words::ratio;
use crate::tui::jobs::{Answer, Fetched, Question, Stamp};
use crate::tui::keys::{Binding, Command, ch, own};
use crate::tui::lens::Narrow;
use crate::tui::shown::{Cell, Part, Shown, Table};
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::table;
use facts::{By, Facts, Group, Key, ROLES, Row, Rows, Wanted, kernel_share};
use ratatui::Frame;
use ratatui::layout::Rect;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use vmscope_records::{ThreadRole, TimeNs};
use vmscope_symbolizer::slices::{By as Counted, Columns, ColumnsOf};
use vmscope_symbolizer::{Filter, Profile};

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Toggle, &[ch(' ')], "include", "include this thread or group, or leave it out, in all views"),
    own(Command::Sort, &[ch('s')], "sort", "sort by samples, CPU time, kernel share, name, tid, role, start"),
    own(Command::Reverse, &[ch('S')], "", "sort the other way round"),
    own(Command::Group, &[ch('b')], "group", "group by role, name without numbers, process"),
    own(Command::GroupBack, &[ch('B')], "", "group by the one before"),
];

/// Numbers of [`Choice`]s.
const ALL: u16 = 0;
const OTHERS: u16 = 2;
const INVERT: u16 = 3;
const ONLY_ROLE: u16 = 10;
const WITH_ROLE: u16 = 20;
const WITHOUT_ROLE: u16 = 30;
const SORT: u16 = 40;

/// What the activity of some rows was asked for.
#[derive(Clone, Debug, PartialEq)]
struct Sparks {
    rows: Vec<Key>,
    columns: usize,
    window: (TimeNs, TimeNs),
    everybody: Filter,
    version: u64,
}

/// The view.
#[derive(Debug, Default)]
pub struct Threads {
    wanted: Wanted,
    list: ListState,
    /// What is selected: it stays so when the order changes.
    chosen: Option<Key>,
    facts: Fetched<Filter, Arc<Facts>>,
    /// Counts the answers, which the rows are made of.
    version: u64,
    rows: Fetched<(Wanted, u64), Rows>,
    sparks: Fetched<Sparks, Columns>,
    origin: Option<usize>,
}

/// The filter without what this view chooses.
fn everybody(cx: &Cx<'_>) -> Filter {
    cx.lens.filter().of_all_threads()
}

fn all(profile: &Profile) -> impl Iterator<Item = u32> {
    let threads = (0u32..).zip(&profile.trace.threads);
    let threads = threads.filter(|(_, one)| !one.is_nobody());
    threads.map(|(thread, _)| thread)
}

/// A change of which threads are included, unless none would be.
fn change(cx: &Cx<'_>, to: Filter) -> Vec<Act> {
    if !all(cx.profile).any(|thread| to.takes_thread(thread)) {
        return vec![Act::Say("one thread at least is included".to_owned())];
    }
    // Where all are chosen one by one, those that begin later are meant, too.
    let is_all = all(cx.profile).all(|thread| to.takes_thread(thread));
    vec![Act::Narrow(match to.threads {
        _ if is_all => Narrow::Threads(None),
        Some(chosen) => Narrow::Threads(Some(chosen)),
        None => Narrow::WithoutThreads(to.without),
    })]
}

/// Only these threads.
pub(super) fn only(threads: &[u32]) -> Vec<Act> {
    let chosen = threads.iter().copied().collect();
    vec![Act::Narrow(Narrow::Threads(Some(chosen)))]
}

/// Without these threads. Where only some are chosen, those are fewer; else these are left
/// out, and those that begin later are included.
fn leave_out(cx: &Cx<'_>, threads: &[u32]) -> Vec<Act> {
    let mut to = cx.lens.filter().clone();
    match &mut to.threads {
        Some(chosen) => chosen.retain(|thread| !threads.contains(thread)),
        None => to.without.extend(threads),
    }
    change(cx, to)
}

/// With these threads, too.
fn include(cx: &Cx<'_>, threads: &[u32]) -> Vec<Act> {
    let mut to = cx.lens.filter().clone();
    match &mut to.threads {
        Some(chosen) => chosen.extend(threads),
        None => to.without.retain(|thread| !threads.contains(thread)),
    }
    change(cx, to)
}

/// Leaves these threads out where all of them are included, and includes them else.
pub(super) fn toggle(cx: &Cx<'_>, threads: &[u32]) -> Vec<Act> {
    let filter = cx.lens.filter();
    if threads.iter().all(|thread| filter.takes_thread(*thread)) {
        leave_out(cx, threads)
    } else {
        include(cx, threads)
    }
}

/// Whether a thread's name, tid or role has `pattern` in it.
pub(super) fn matches(profile: &Profile, thread: u32, pattern: &str) -> bool {
    let thread = profile.trace.threads.get(thread as usize);
    thread.is_some_and(|thread| {
        let thread = &thread.thread;
        let text = format!("{} {} {}", thread.name, thread.tid, role_name(thread.role));
        text.to_lowercase().contains(&pattern.to_lowercase())
    })
}

fn next<T: Copy + PartialEq>(all: &[T], now: T, by: usize) -> Option<T> {
    let at = all.iter().position(|one| *one == now)?;
    all.get((at + by) % all.len()).copied()
}

impl Threads {
    fn shown_rows(&self) -> &[Row] {
        self.rows.get().map_or(&[], |rows| rows.shown.as_slice())
    }

    fn selected(&self) -> Option<&Row> {
        self.shown_rows().get(self.list.selected())
    }

    fn height(area: Rect) -> usize {
        // The last line tells how many are included.
        table::height(area).saturating_sub(1)
    }

    /// Opens or closes the group that is selected, or that the thread is of.
    fn open(&mut self, open: bool) {
        let at = self.list.selected();
        let rows = self.shown_rows().iter().take(at + 1).rev();
        let name = rows
            .filter_map(|row| match &row.key {
                Key::Group(name) => Some(name.clone()),
                Key::Thread(_) => None,
            })
            .next();
        if let Some(name) = name {
            self.wanted.closed.retain(|other| *other != name);
            if !open {
                self.chosen = Some(Key::Group(name.clone()));
                self.wanted.closed.push(name);
                self.wanted.closed.sort();
            }
        }
    }

    fn of_choice(&mut self, number: u16, cx: &Cx<'_>) -> Vec<Act> {
        let role = |from: u16| ROLES.get(usize::from(number - from)).copied();
        let of_role = |role: Option<ThreadRole>| -> Vec<u32> {
            let threads = cx.profile.trace.threads.iter().zip(0u32..);
            let of_role = threads.filter(|(thread, _)| Some(thread.thread.role) == role);
            of_role.map(|(_, index)| index).collect()
        };
        match number {
            ALL => vec![Act::Narrow(Narrow::Threads(None))],
            OTHERS => {
                let these = self.selected().map(|row| Arc::clone(&row.threads));
                leave_out(cx, these.as_deref().unwrap_or_default())
            }
            INVERT => {
                let mut to = cx.lens.filter().clone();
                (to.threads, to.without) = match to.threads {
                    None => (Some(to.without), FxHashSet::default()),
                    Some(chosen) => (None, chosen),
                };
                change(cx, to)
            }
            ONLY_ROLE..WITH_ROLE => {
                let mut to = everybody(cx);
                to.threads = Some(of_role(role(ONLY_ROLE)).into_iter().collect());
                change(cx, to)
            }
            WITH_ROLE..WITHOUT_ROLE => include(cx, &of_role(role(WITH_ROLE))),
            WITHOUT_ROLE..SORT => leave_out(cx, &of_role(role(WITHOUT_ROLE))),
            _ => {
                if let Some(by) = By::ALL.get(usize::from(number.saturating_sub(SORT))) {
                    self.wanted.by = *by;
                }
                Vec::new()
            }
        }
    }

    /// Keeps what was selected selected.
    fn reselect(&mut self, cx: &Cx<'_>) {
        let rows = self.shown_rows();
        let count = rows.len();
        let at = rows
            .iter()
            .position(|row| Some(&row.key) == self.chosen.as_ref());
        let at = at.unwrap_or(self.list.selected());
        self.list.select(at, count, Self::height(cx.area));
    }

    /// What the rows on the screen need; the columns of the screen for a row's activity.
    fn sparks_of(&self, cx: &Cx<'_>) -> Sparks {
        let height = Self::height(cx.area);
        let top = self.list.top(self.shown_rows().len(), height);
        let rows = self.shown_rows().iter().skip(top).take(height);
        let (from, to) = cx.window();
        Sparks {
            rows: rows.map(|row| row.key.clone()).collect(),
            columns: draw::activity_columns(cx.area),
            window: (from, TimeNs(to.0.saturating_add(1))),
            everybody: everybody(cx),
            version: self.version,
        }
    }
}

impl View for Threads {
    fn bindings(&self) -> &'static [Binding] {
        BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        let (rows, height) = (self.shown_rows().len(), Self::height(cx.area));
        if self.list.act(command, rows, height) {
            self.chosen = self.selected().map(|row| row.key.clone());
            return Vec::new();
        }
        let threads = self.selected().map(|row| Arc::clone(&row.threads));
        match (command, threads) {
            (Command::Toggle, Some(threads)) => return toggle(cx, &threads),
            (Command::Only | Command::Open, Some(threads)) => {
                return only(&threads);
            }
            (Command::Left, _) => self.open(false),
            (Command::Right, _) => self.open(true),
            (Command::Own(number), _) => return self.of_choice(number, cx),
            (Command::Sort, _) => {
                self.wanted.by = next(&By::ALL, self.wanted.by, 1).unwrap_or_default();
            }
            (Command::Reverse, _) => self.wanted.reverse ^= true,
            (Command::Group, _) => {
                self.wanted.group = next(&Group::ALL, self.wanted.group, 1).unwrap_or_default();
            }
            (Command::GroupBack, _) => {
                let by = Group::ALL.len() - 1;
                self.wanted.group = next(&Group::ALL, self.wanted.group, by).unwrap_or_default();
            }
            _ => {}
        }
        Vec::new()
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let (rows, height) = (self.shown_rows().len(), Self::height(cx.area));
        let Some(line) = click.at.y.checked_sub(cx.area.y + 1).map(usize::from) else {
            return Vec::new();
        };
        if line >= height && matches!(click.what, Press::Down | Press::Double) {
            return Vec::new();
        }
        let is_row = self.list.press(click.what, line, rows, height);
        self.chosen = self.selected().map(|row| row.key.clone());
        if !is_row {
            return Vec::new();
        }
        // The first column is what a click there changes.
        match click.what {
            Press::Double => self.act(Command::Open, cx),
            Press::Down if click.at.x == cx.area.x => self.act(Command::Toggle, cx),
            _ => Vec::new(),
        }
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        // Which threads are included changes nothing here.
        let stamp = Stamp {
            lens: 0,
            ..cx.stamp
        };
        let filter = everybody(cx);
        let facts = self
            .facts
            .ask(0, filter.clone(), stamp, move |profile, stop| {
                Facts::of(profile, &filter, stop)
            });
        let mut questions: Vec<Question> = facts.into_iter().collect();
        if let Some(facts) = self.facts.get().map(Arc::clone) {
            let wanted = self.wanted.clone();
            let key = (wanted.clone(), self.version);
            let rows = self
                .rows
                .ask(1, key, Stamp::default(), move |profile, stop| {
                    Rows::of(profile, &facts, &wanted, stop)
                });
            questions.extend(rows);
        }
        let key = self.sparks_of(cx);
        if !key.rows.is_empty() && key.columns > 0 {
            let height = Self::height(cx.area);
            let top = self.list.top(self.shown_rows().len(), height);
            let rows = self.shown_rows().iter().skip(top).take(height);
            let is_own = |row: &&Row| matches!(row.key, Key::Thread(_)) || !row.open;
            let rows = rows.zip(0u32..).filter(|(row, _)| is_own(row));
            let threads: Vec<(u32, Arc<[u32]>)> = rows
                .map(|(row, number)| (number, Arc::clone(&row.threads)))
                .collect();
            let asked = key.clone();
            let sparks = self.sparks.ask(2, key, stamp, move |profile, stop| {
                let mut of_thread = vec![u32::MAX; profile.trace.threads.len()];
                for (number, threads) in &threads {
                    for &thread in threads.iter() {
                        if let Some(slot) = of_thread.get_mut(thread as usize) {
                            *slot = *number;
                        }
                    }
                }
                let what = ColumnsOf {
                    window: asked.window,
                    columns: asked.columns,
                    by: Counted::Rows {
                        of_thread: &of_thread,
                        rows: u32::try_from(asked.rows.len()).unwrap_or(0),
                        of_site: &by_region::of_sites(profile),
                        groups: GROUPS,
                    },
                };
                Columns::of(profile, &what, &asked.everybody, stop)
            });
            questions.extend(sparks);
        }
        questions
    }

    fn answer(&mut self, number: u8, answer: Option<Answer>, cx: &Cx<'_>) {
        match number {
            0 => {
                self.facts.take(answer);
                self.version += 1;
            }
            1 => {
                self.rows.take(answer);
                self.reselect(cx);
            }
            _ => self.sparks.take(answer),
        }
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        if pattern.is_empty() {
            self.origin = None;
            return true;
        }
        let now = *self.origin.get_or_insert(self.list.selected());
        let rows = self.shown_rows();
        let count = rows.len();
        let found = super::next_match(count, now, self.list.selected(), find, |index| {
            rows.get(index).is_some_and(|row| match &row.key {
                Key::Thread(thread) => matches(cx.profile, *thread, pattern),
                Key::Group(name) => name.to_lowercase().contains(&pattern.to_lowercase()),
            })
        });
        if let Some(found) = found {
            self.list.select(found, count, Self::height(cx.area));
            self.chosen = self.selected().map(|row| row.key.clone());
        }
        found.is_some()
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        self.draw_all(cx, frame, area);
    }

    fn shown(&self, cx: &Cx<'_>) -> Shown {
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
            return Shown::default();
        };
        let filter = cx.lens.filter();
        for fact in rows.sorted.iter().filter_map(|&at| facts.all.get(at)) {
            let Some(thread) = cx.profile.trace.threads.get(fact.thread as usize) else {
                continue;
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
        }
        Shown {
            title: "Threads".to_owned(),
            parts: vec![Part::Table(table)],
        }
    }

    fn choices(&self, _cx: &Cx<'_>) -> Vec<Choice> {
        let choice = |number, text: &str| Choice {
            text: text.to_owned(),
            number,
        };
        let mut all = vec![
            choice(ALL, "threads: include all"),
            choice(OTHERS, "threads: all that are included but this"),
            choice(INVERT, "threads: those that are left out, instead"),
        ];
        for (role, number) in ROLES.into_iter().zip(0..) {
            let name = role_name(role);
            for (from, words) in [
                (ONLY_ROLE, "only role"),
                (WITH_ROLE, "include role"),
                (WITHOUT_ROLE, "leave out role"),
            ] {
                all.push(choice(from + number, &format!("threads: {words} {name}")));
            }
        }
        for (by, number) in By::ALL.into_iter().zip(SORT..) {
            all.push(choice(number, &format!("sort by {}", by.name())));
        }
        all
    }

    fn crumb(&self, _cx: &Cx<'_>) -> String {
        self.wanted.group.name().to_owned()
    }

    fn is_pending(&self) -> bool {
        self.facts.is_pending() || self.rows.is_pending() || self.sparks.is_pending()
    }
}
