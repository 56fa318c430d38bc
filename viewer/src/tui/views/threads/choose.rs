//! Changes of the thread filter, from keys, palette and other views.

use super::{Threads, everybody};
use crate::present::names::role_name;
use crate::queries::threads::ROLES;
use crate::tui::filter_state::FilterChange;
use crate::tui::views::{Act, Choice, Cx};
use rustc_hash::FxHashSet;
use vmscope_records::ThreadRole;
use vmscope_symbolizer::{Filter, Profile, ThreadId};

/// Numbers of palette lines.
const ALL: u16 = 0;
const OTHERS: u16 = 2;
const INVERT: u16 = 3;
const ONLY_ROLE: u16 = 10;
const WITH_ROLE: u16 = 20;
const WITHOUT_ROLE: u16 = 30;
pub(super) const SORT: u16 = 40;

/// Threads, without merged ones (`TraceThread::is_nobody`).
pub(super) fn all(profile: &Profile) -> impl Iterator<Item = ThreadId> {
    let threads = profile.trace.threads.enumerated();
    let threads = threads.filter(|(_, one)| !one.is_nobody());
    threads.map(|(thread, _)| thread)
}

/// Changes the thread filter; refuses to exclude every thread.
fn change(cx: &Cx<'_>, to: Filter) -> Vec<Act> {
    if !all(cx.profile).any(|thread| to.takes_thread(thread)) {
        return vec![Act::Say(
            "at least one thread must stay included".to_owned(),
        )];
    }
    // A choice of every thread includes later threads, too.
    let is_all = all(cx.profile).all(|thread| to.takes_thread(thread));
    vec![Act::FilterChange(match to.threads {
        _ if is_all => FilterChange::Threads(None),
        Some(chosen) => FilterChange::Threads(Some(chosen)),
        None => FilterChange::WithoutThreads(to.without),
    })]
}

/// Includes these threads alone.
pub(in crate::tui::views) fn only(threads: &[ThreadId]) -> Vec<Act> {
    let chosen = threads.iter().copied().collect();
    vec![Act::FilterChange(FilterChange::Threads(Some(chosen)))]
}

/// Excludes threads: from a list of included threads, or by a list of excluded threads, which
/// includes later threads.
fn leave_out(cx: &Cx<'_>, threads: &[ThreadId]) -> Vec<Act> {
    let mut to = cx.filters.filter().clone();
    match &mut to.threads {
        Some(chosen) => chosen.retain(|thread| !threads.contains(thread)),
        None => to.without.extend(threads),
    }
    change(cx, to)
}

/// Includes further threads.
fn include(cx: &Cx<'_>, threads: &[ThreadId]) -> Vec<Act> {
    let mut to = cx.filters.filter().clone();
    match &mut to.threads {
        Some(chosen) => chosen.extend(threads),
        None => to.without.retain(|thread| !threads.contains(thread)),
    }
    change(cx, to)
}

/// Excludes threads if the filter includes all of them, else includes them.
pub(in crate::tui::views) fn toggle(cx: &Cx<'_>, threads: &[ThreadId]) -> Vec<Act> {
    let filter = cx.filters.filter();
    if threads.iter().all(|thread| filter.takes_thread(*thread)) {
        leave_out(cx, threads)
    } else {
        include(cx, threads)
    }
}

impl Threads {
    pub(super) fn of_choice(&mut self, number: u16, cx: &Cx<'_>) -> Vec<Act> {
        let role = |from: u16| ROLES.get(usize::from(number - from)).copied();
        let of_role = |role: Option<ThreadRole>| -> Vec<ThreadId> {
            let threads = cx.profile.trace.threads.enumerated();
            let of_role = threads.filter(|(_, thread)| Some(thread.thread.role) == role);
            of_role.map(|(id, _)| id).collect()
        };
        match number {
            ALL => vec![Act::FilterChange(FilterChange::Threads(None))],
            OTHERS => {
                let these = self.selected(cx);
                leave_out(cx, these.as_deref().unwrap_or_default())
            }
            INVERT => {
                let mut to = cx.filters.filter().clone();
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
                let line = number.saturating_sub(SORT);
                self.with_table(cx, |table, page, height| table.choose(page, line, height));
                Vec::new()
            }
        }
    }
}

/// Palette lines of the thread filter.
pub(super) fn choices() -> Vec<Choice> {
    let choice = |number, text: &str| Choice {
        text: text.to_owned(),
        number,
    };
    let mut all = vec![
        choice(ALL, "threads: include all"),
        choice(OTHERS, "threads: exclude this one"),
        choice(INVERT, "threads: invert the selection"),
    ];
    for (role, number) in ROLES.into_iter().zip(0..) {
        let name = role_name(role);
        for (from, words) in [
            (ONLY_ROLE, "only role"),
            (WITH_ROLE, "include role"),
            (WITHOUT_ROLE, "exclude role"),
        ] {
            all.push(choice(from + number, &format!("threads: {words} {name}")));
        }
    }
    all
}
