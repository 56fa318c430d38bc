//! The document of `vmscope gc`: what collections took, which objects they worked for, and what
//! would help.

use super::names::Names;
use super::{
    HOW, Loaded, Wanted, activity, counted, dependent_samples, has_any, holders, unfinalized,
};
use crate::present::document::{Document, Part, Table, Value};
use crate::present::numbers::{bytes, milliseconds, percent, some};
use vmscope_symbolizer::lifetimes::Lifetimes;
use vmscope_symbolizer::lifetimes::advice::{Advice, Advised, Change, Reproduction};
use vmscope_symbolizer::lifetimes::cost::{CollectorCost, GroupCost, Work};
use vmscope_symbolizer::lifetimes::estimate::Estimate;
use vmscope_symbolizer::lifetimes::holders::{Held, holders as held_by};
use vmscope_symbolizer::lifetimes::least_squares::LEAST_OBSERVATIONS;

/// The collector's time, its groups and advice.
pub struct Collector {
    pub cost: CollectorCost,
    pub advice: Vec<Advice>,
    /// The replay that the advice rests on.
    reproduction: Option<Reproduction>,
    /// The holders of the groups.
    held: Vec<Held>,
}

impl Collector {
    pub fn of(lifetimes: &Lifetimes, wanted: &Wanted) -> Self {
        let cost = CollectorCost::of(lifetimes, wanted.grouping);
        let advised = Advised::of(lifetimes, wanted.grouping, &cost);
        Collector {
            cost,
            advice: advised.advice,
            reproduction: advised.reproduction,
            held: held_by(lifetimes, wanted.grouping),
        }
    }

    /// Nanoseconds of all collections.
    pub fn ns(&self) -> f64 {
        self.cost.scavenges.ns + self.cost.fulls.ns
    }

    /// The first lines of a report, with their titles: whom the collector works for, and the most
    /// effective changes of parameters and of the program.
    pub fn headline(&self, names: &Names<'_>) -> Vec<(&'static str, String)> {
        let all = self.ns();
        let first = self.cost.groups.first();
        let first = first.filter(|group| all > 0.0 && group.certain() > 0.0);
        let mut lines: Vec<_> = first
            .map(|group| {
                let time = within(group.both);
                let share = percent(group.both.value / all);
                let name = names.group(group.key);
                (
                    "Collector works for:",
                    format!("{name}: {share} of its time, {time}"),
                )
            })
            .into_iter()
            .collect();
        let of_program = |one: &&Advice| matches!(one.change, Change::Avoid(_));
        let advice =
            |is_program: bool| self.advice.iter().find(|one| of_program(one) == is_program);
        for one in [advice(false), advice(true)].into_iter().flatten() {
            let what = self.change(names, &one.change);
            lines.push(("Advice:", format!("{what}: saves {}", within(one.saving))));
        }
        lines
    }

    /// What to do.
    fn change(&self, names: &Names<'_>, change: &Change) -> String {
        match change {
            Change::Pretenure(groups) => {
                let held_by = holders::suffix(&self.held, names, groups);
                let groups: Vec<String> = groups.iter().map(|key| names.group(*key)).collect();
                format!("pretenure {}{held_by}", groups.join(" and "))
            }
            Change::Eden(now, then) => {
                format!("enlarge eden from {} to {}", bytes(*now), bytes(*then))
            }
            Change::OldGrowth => {
                "let old space grow twice as much between full collections".to_owned()
            }
            Change::Tenuring(now, then) => format!(
                "change the tenuring threshold from {:.0} % to {:.0} %",
                100.0 * now,
                100.0 * then
            ),
            Change::Avoid(key) => format!("do without {}", names.group(*key)),
        }
    }
}

pub fn document(loaded: &Loaded<'_>, wanted: &Wanted) -> Document {
    let lifetimes = loaded.lifetimes;
    let names = Names::new(loaded.trace, lifetimes);
    let collector = Collector::of(lifetimes, wanted);
    let headline = collector.headline(&names).into_iter();
    let mut lines: Vec<String> = headline
        .map(|(title, text)| format!("{title} {text}"))
        .collect();
    lines.extend(model("scavenge", &collector.cost.scavenges));
    lines.extend(model("full collection", &collector.cost.fulls));
    let has_objects = has_any(lifetimes);
    if has_objects {
        lines.push(unattributed(&collector));
    } else {
        lines.push(format!("No object was recorded. {HOW}"));
    }
    lines.extend(collector.reproduction.as_ref().map(replay));
    lines.extend(dependent_samples(lifetimes));
    lines.extend(activity::rate(lifetimes));
    lines.extend(unfinalized(loaded.trace));
    lines.extend(counted(lifetimes));
    let mut parts = vec![
        Part::Text(lines),
        Part::Table(kinds(lifetimes, &collector.cost)),
    ];
    if has_objects {
        parts.push(Part::Table(groups(&names, &collector, wanted)));
        parts.push(Part::Table(advised(&names, &collector)));
        parts.extend(holders::table(&collector.held, &names, wanted).map(Part::Table));
    }
    parts.extend(activity::parts(lifetimes, wanted));
    Document {
        title: format!("The collector's time, by {}", wanted.by),
        parts,
    }
}

/// A sentence about the model of a kind of collection.
fn model(name: &str, work: &Work) -> Option<String> {
    if work.collections == 0 {
        return None;
    }
    let Some(fit) = &work.fit else {
        let some = some(work.collections, "collection", "collections");
        return Some(format!(
            "{name}: no model, {some} observed with their surviving bytes (at least {LEAST_OBSERVATIONS} needed)"
        ));
    };
    let mega = f64::from(1 << 20);
    let terms = [
        (work.fixed(), ""),
        (work.per_byte().times(mega), " for each MiB that survives"),
        (
            work.per_object().times(1e3),
            " for each 1,000 objects that survive",
        ),
        (
            work.per_fresh_byte().times(mega),
            " for each MiB of memory that it uses for the first time",
        ),
    ];
    let terms = terms.iter().filter(|(term, _)| term.value > 0.0);
    let terms: Vec<String> = terms
        .map(|(term, unit)| format!("{}{unit}", within(*term)))
        .collect();
    let (terms, explained) = (terms.join(", "), percent(fit.explained));
    let times = if work.is_cpu {
        "CPU times"
    } else {
        "durations"
    };
    Some(format!(
        "Model: a {name} takes {terms}; that explains {explained} of the variance of {} {times}",
        fit.residuals.len(),
    ))
}

/// How well the replay reproduces the recording.
fn replay(reproduction: &Reproduction) -> String {
    let one = |name: &str, (replayed, recorded): (f64, f64)| {
        format!("{replayed:.1} {name} (recorded: {recorded})")
    };
    let copied = |size: f64| bytes(size.max(0.0) as u64);
    let text = format!(
        "Replay of the recorded allocations: {}, {}, {} copied (recorded: {})",
        one("scavenges", reproduction.scavenges),
        one("full collections", reproduction.fulls),
        copied(reproduction.copied_bytes.0),
        copied(reproduction.copied_bytes.1),
    );
    if reproduction.is_faithful() {
        text
    } else {
        format!("{text}; too far from it for advice on parameters and pretenuring")
    }
}

/// A time in nanoseconds with its 95 % half-width.
fn within(ns: Estimate) -> String {
    format!("{} ± {}", milliseconds(ns.value), milliseconds(ns.error))
}

fn unattributed(collector: &Collector) -> String {
    let share = match collector.ns() {
        all if all > 0.0 => collector.cost.unattributed / all,
        _ => 0.0,
    };
    let (ns, share) = (
        milliseconds(collector.cost.unattributed.abs()),
        percent(share.abs()),
    );
    if collector.cost.unattributed < 0.0 {
        return format!(
            "The model gives the groups {ns} ({share}) more than the collections took: its error"
        );
    }
    format!(
        "{ns} ({share} of the collector's time) belong to no recorded object: objects from before \
         the recording, or time that the model does not explain"
    )
}

fn kinds(lifetimes: &Lifetimes, cost: &CollectorCost) -> Table {
    let mut table = Table::new(
        "Collections",
        &[
            "kind",
            ">number",
            ">time",
            ">mean",
            ">of elapsed time",
            ">survived",
            ">tenured",
        ],
    );
    let elapsed = lifetimes.run_ns() as f64;
    for (name, work) in [("scavenge", &cost.scavenges), ("full", &cost.fulls)] {
        let count = work.collections as f64;
        table.rows.push(vec![
            Value::Text(name.to_owned()),
            Value::Count(work.collections),
            Value::Seconds(work.ns / 1e9),
            Value::Seconds(work.ns / 1e9 / count.max(1.0)),
            Value::Share(work.ns / elapsed.max(1.0)),
            Value::Bytes(work.survived_bytes as u64),
            Value::Bytes(work.tenured_bytes as u64),
        ]);
    }
    table
}

fn groups(names: &Names<'_>, collector: &Collector, wanted: &Wanted) -> Table {
    let title = format!("The collector's time by {}", wanted.by);
    let mut table = Table::new(
        &title,
        &[
            wanted.by,
            ">share of its time",
            ">time",
            ">±",
            ">by surviving",
            ">by allocating",
            ">allocated",
            ">copied",
            ">tenured",
        ],
    );
    let all = collector.ns().max(1.0);
    let (shown, others) = collector
        .cost
        .groups
        .split_at(collector.cost.groups.len().min(wanted.rows));
    let row = |name: String, groups: &[GroupCost]| {
        let sum = |of: &dyn Fn(&GroupCost) -> Estimate| {
            groups
                .iter()
                .map(of)
                .fold(Estimate::default(), Estimate::plus)
        };
        let seconds = |estimate: f64| Value::Seconds(estimate / 1e9);
        let of_bytes = |estimate: Estimate| Value::Bytes(estimate.value.max(0.0) as u64);
        let both = sum(&|one| one.both);
        vec![
            Value::Text(name),
            Value::Share(both.value / all),
            seconds(both.value),
            seconds(both.error),
            seconds(sum(&|one| one.surviving).value),
            seconds(sum(&|one| one.allocating).value),
            of_bytes(sum(&|one| one.allocated_bytes)),
            of_bytes(sum(&|one| one.copied_bytes)),
            of_bytes(sum(&|one| one.tenured_bytes)),
        ]
    };
    for group in shown {
        table
            .rows
            .push(row(names.group(group.key), std::slice::from_ref(group)));
    }
    if !others.is_empty() {
        let name = some(others.len() as u64, "more", "more");
        table.rows.push(row(name, others));
    }
    table
}

fn advised(names: &Names<'_>, collector: &Collector) -> Table {
    let mut table = Table::new(
        "Advice with predicted savings",
        &["change", ">saves", ">±", ">share of the collector's time"],
    );
    let all = collector.ns().max(1.0);
    for one in &collector.advice {
        table.rows.push(vec![
            Value::Text(collector.change(names, &one.change)),
            Value::Seconds(one.saving.value / 1e9),
            Value::Seconds(one.saving.error / 1e9),
            Value::Share(one.saving.value / all),
        ]);
    }
    if table.rows.is_empty() {
        table.title = "Advice: none that the data support".to_owned();
    }
    table
}
