//! What entries and ranges are called.

use super::shorten::{chain, label};
use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{BytecodePc, Exactness};
use vmscope_symbolizer::profile::{Entry, Site};
use vmscope_symbolizer::{EntryId, Profile, Region, Summary};

/// What an entry is called in full. `namesakes`: see [`namesakes`].
pub fn name_of(profile: &Profile, namesakes: &FxHashSet<EntryId>, id: EntryId) -> String {
    named(profile, namesakes, id, true, |name, place, tail| {
        let place = place.map_or_else(String::new, |place| format!(" {place}"));
        format!("{name}{place}{tail}")
    })
}

/// The same in at most so many columns; without its tier where something beside it says that.
pub fn label_of(
    profile: &Profile,
    namesakes: &FxHashSet<EntryId>,
    id: EntryId,
    with_tier: bool,
    columns: usize,
) -> String {
    named(profile, namesakes, id, with_tier, |name, place, tail| {
        label(name, place, tail, columns)
    })
}

/// Puts together an entry's name, where it begins, and what else tells it apart.
fn named(
    profile: &Profile,
    namesakes: &FxHashSet<EntryId>,
    id: EntryId,
    with_tier: bool,
    together: impl FnOnce(&str, Option<&str>, &str) -> String,
) -> String {
    let Some(entry) = profile.entries.get(id as usize) else {
        return String::new();
    };
    let mut tail = String::new();
    let mut place = begin_of(entry, namesakes.contains(&id));
    // Where there is no class, it is the place that tells methods apart: it stays.
    if (entry.module.is_empty() || namesakes.contains(&id))
        && let Some(place) = place.take()
    {
        tail.push_str(&format!(" {place}"));
    }
    if with_tier && !entry.tier.is_empty() {
        tail.push_str(&format!(" ({})", entry.tier));
    }
    if !entry.cases.is_empty() {
        let cases: Vec<String> = entry
            .cases
            .iter()
            .map(|case| format!("{} -> {}", case.class, case.target))
            .collect();
        tail.push_str(&format!(" - {} ({})", cases.len(), cases.join(", ")));
    }
    // Where a function is from matters for libraries and the kernel's modules.
    let tell = matches!(entry.region, Region::Library)
        || (entry.region == Region::Kernel && entry.module != "[kernel]");
    if tell && !entry.module.is_empty() && !entry.name.contains(&entry.module) {
        tail.push_str(&format!(" [{}]", entry.module.trim_matches(['[', ']'])));
    }
    together(&entry.name, place.as_deref(), &tail)
}

/// Where a method begins in its source, as far as that tells it apart: `file:line`.
fn begin_of(entry: &Entry, whole_path: bool) -> Option<String> {
    let file = if whole_path {
        &entry.file
    } else {
        last_component(&entry.file)
    };
    match entry.line {
        Some(line) if file.is_empty() => Some(format!("line {line}")),
        Some(line) => Some(format!("{file}:{line}")),
        // A class tells where a method is better than a file does.
        None if file.is_empty() || !entry.module.is_empty() => None,
        None => Some(file.to_owned()),
    }
}

/// Entries with samples that would be called the same by the last components of their files.
pub fn namesakes(profile: &Profile, summary: &Summary) -> FxHashSet<EntryId> {
    hit_namesakes(&namesakes_of(profile), summary)
}

/// Of entries that would be called the same, those of which a summary counts several.
pub fn hit_namesakes(all: &[Vec<EntryId>], summary: &Summary) -> FxHashSet<EntryId> {
    let is_hit = |entry: &EntryId| summary.entries.get(*entry as usize).is_some_and(|n| *n > 0);
    let mut namesakes = FxHashSet::default();
    for alike in all {
        let hit = || alike.iter().copied().filter(is_hit);
        if hit().nth(1).is_some() {
            namesakes.extend(hit());
        }
    }
    namesakes
}

/// All entries that would be called the same, those that would be so together.
pub fn namesakes_of(profile: &Profile) -> Vec<Vec<EntryId>> {
    let mut by_name: FxHashMap<_, Vec<EntryId>> = FxHashMap::default();
    let entries = profile.entries.iter().zip(0..);
    for (entry, id) in entries.filter(|(entry, _)| !entry.file.is_empty()) {
        let short = last_component(&entry.file);
        let name = (&entry.name, &entry.tier, &entry.module, short, entry.line);
        by_name.entry(name).or_default().push(id);
    }
    by_name.into_values().filter(|all| all.len() > 1).collect()
}

fn last_component(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A range's name: `from->to`, or line and the functions it was inlined through.
pub fn range_name(site: &Site) -> Option<String> {
    let mut name = range_place(site)?;
    for (outer, at) in outer_of(site) {
        name.push_str(&format!(" < {outer}{at}"));
    }
    Some(name)
}

/// The same in at most so many columns; `~` before what is approximate.
pub fn range_label(site: &Site, columns: usize) -> Option<String> {
    let mut place = range_place(site)?;
    let mut short = match site.from {
        Some(from) if !site.bounded => from.to_string(),
        _ => place.clone(),
    };
    if site.exactness == Exactness::Approximate {
        place.insert(0, '~');
        short.insert(0, '~');
    }
    Some(chain((&place, &short), &outer_of(site), columns))
}

/// What a range was inlined through, innermost first, and where in each.
fn outer_of(site: &Site) -> Vec<(&str, String)> {
    let frames = site.via.iter().map(|outer| {
        let at = match (outer.bytecode, outer.line) {
            (Some(pc), _) => format!("@{pc}"),
            (None, Some(line)) => format!(":{line}"),
            (None, None) => String::new(),
        };
        (&*outer.name, at)
    });
    frames.collect()
}

fn range_place(site: &Site) -> Option<String> {
    let bytecode = |pc: Option<BytecodePc>, none: &str| {
        pc.map_or_else(|| none.to_owned(), |pc| pc.to_string())
    };
    if site.bounded {
        let (from, to) = (bytecode(site.from, "entry"), bytecode(site.to, "end"));
        Some(format!("{from}->{to}"))
    } else if let Some(from) = site.from {
        Some(match site.frame.line {
            Some(line) => format!("{from} (line {line})"),
            None => from.to_string(),
        })
    } else if site.exactness == Exactness::Exact && site.frame.method.is_some() {
        // An interpreter that has not begun with the first bytecode.
        Some(place_of(&site.frame).unwrap_or_else(|| "entry".to_owned()))
    } else {
        place_of(&site.frame)
    }
}

fn place_of(frame: &vmscope_symbolizer::profile::Frame) -> Option<String> {
    let line = frame.line?;
    let file = last_component(&frame.file);
    Some(if file.is_empty() {
        format!("line {line}")
    } else {
        format!("{file}:{line}")
    })
}
