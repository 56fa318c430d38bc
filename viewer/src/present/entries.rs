//! Names of entries and ranges.

use super::numbers::points;
use super::shorten::{Name, chain, labels};
use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{BytecodePc, Exactness};
use vmscope_symbolizer::profile::{Entry, Frame, Site, last_component, place_text};
use vmscope_symbolizer::{EntryId, Profile, Region, Summary};

/// Full name of an entry. `namesakes`: see [`namesakes`].
pub fn name_of(profile: &Profile, namesakes: &FxHashSet<EntryId>, id: EntryId) -> String {
    parts_of(profile, namesakes, id, true).full()
}

/// Names of the rows of one table, each shortened to at most `columns`.
pub fn labels_of(
    profile: &Profile,
    namesakes: &FxHashSet<EntryId>,
    ids: impl IntoIterator<Item = EntryId>,
    columns: usize,
) -> Vec<String> {
    let names = ids.into_iter();
    let names = names.map(|id| (parts_of(profile, namesakes, id, true), columns));
    labels(&names.collect::<Vec<_>>())
}

/// An entry's name, place and further distinctions, with or without tier.
pub fn parts_of<'a>(
    profile: &'a Profile,
    namesakes: &FxHashSet<EntryId>,
    id: EntryId,
    with_tier: bool,
) -> Name<'a> {
    let entry = &profile.entries[id];
    let mut tail = String::new();
    let mut place = begin_of(entry, namesakes.contains(&id));
    // Without a class, the place distinguishes methods: it stays.
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
    // The origin matters for libraries and kernel modules.
    let tell = matches!(entry.region, Region::Library)
        || (entry.region == Region::Kernel && entry.module != "[kernel]");
    if tell && !entry.module.is_empty() && !entry.name.contains(&entry.module) {
        tail.push_str(&format!(" [{}]", entry.module.trim_matches(['[', ']'])));
    }
    let name = entry.name.as_str();
    Name { name, place, tail }
}

/// Begin of a method in its source, if it distinguishes methods: `file:line`.
fn begin_of(entry: &Entry, whole_path: bool) -> Option<String> {
    let file = if whole_path {
        &entry.file
    } else {
        last_component(&entry.file)
    };
    // A class locates a method better than a file.
    let is_known = entry.line.is_some() || (!file.is_empty() && entry.module.is_empty());
    is_known.then(|| place_text(file, entry.line))
}

/// Entries with samples and equal names, up to the folders of their files.
pub fn namesakes(profile: &Profile, summary: &Summary) -> FxHashSet<EntryId> {
    hit_namesakes(&namesakes_of(profile), summary)
}

/// Groups of equal names reduced to entries with samples.
pub fn hit_namesakes(all: &[Vec<EntryId>], summary: &Summary) -> FxHashSet<EntryId> {
    let is_hit = |entry: &EntryId| summary.samples_of(*entry) > 0;
    let mut namesakes = FxHashSet::default();
    for alike in all {
        let hit = || alike.iter().copied().filter(is_hit);
        if hit().nth(1).is_some() {
            namesakes.extend(hit());
        }
    }
    namesakes
}

/// All groups of entries with equal names.
pub fn namesakes_of(profile: &Profile) -> Vec<Vec<EntryId>> {
    let mut by_name: FxHashMap<_, Vec<EntryId>> = FxHashMap::default();
    let entries = profile.entries.enumerated();
    for (id, entry) in entries.filter(|(_, entry)| !entry.file.is_empty()) {
        let short = last_component(&entry.file);
        let name = (&entry.name, &entry.tier, &entry.module, short, entry.line);
        by_name.entry(name).or_default().push(id);
    }
    by_name.into_values().filter(|all| all.len() > 1).collect()
}

/// Name and place of a function inlined into a native function: `> name file:line`.
pub fn inlined_name(frame: &Frame) -> Name<'_> {
    Name {
        name: &frame.name,
        place: None,
        tail: place_of(frame).map_or_else(String::new, |place| format!(" {place}")),
    }
}

/// Mark of an inlined function.
pub const INLINED: &str = "> ";

/// Name of a range: `from->to`, or line, and the functions it was inlined through.
pub fn range_name(profile: &Profile, site: &Site) -> Option<String> {
    let mut name = match profile.inlined_at(site) {
        Some(frame) => format!("{INLINED}{}", inlined_name(frame).full()),
        None => range_place(site).or_else(|| called(site))?,
    };
    for (outer, at) in outer_of(profile, site) {
        name.push_str(&format!(" < {outer}{at}"));
    }
    Some(name)
}

/// The same in at most `columns`; `~` marks approximate ranges.
pub fn range_label(profile: &Profile, site: &Site, columns: usize) -> Option<String> {
    let (mut place, mut short) = match (profile.inlined_at(site), site.from) {
        (Some(frame), _) => {
            let name = inlined_name(frame);
            let columns = columns.saturating_sub(INLINED.len());
            let [long, short] = [columns, columns / 2].map(|columns| name.label(columns));
            (format!("{INLINED}{long}"), format!("{INLINED}{short}"))
        }
        (None, Some(from)) if !site.bounded => (range_place(site)?, from.to_string()),
        (None, _) => {
            let place = range_place(site).or_else(|| called(site))?;
            (place.clone(), place)
        }
    };
    if site.exactness == Exactness::Approximate {
        place.insert(0, '~');
        short.insert(0, '~');
    }
    Some(chain((&place, &short), &outer_of(profile, site), columns))
}

/// The place of code without a frame: only its caller is known.
fn called(site: &Site) -> Option<String> {
    site.caller.map(|_| "called".to_owned())
}

/// Functions a range was inlined through, or called from, innermost first, with the place in each.
fn outer_of<'a>(profile: &'a Profile, site: &'a Site) -> Vec<(&'a str, String)> {
    let frames = site.via.iter().chain(profile.callers_of(site));
    let frames = frames.map(|outer| {
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
    if site.bounded || site.from.is_some() {
        let mut place = bytecode(site.from, "entry");
        if site.bounded {
            place += &format!("->{}", bytecode(site.to, "end"));
        }
        if let Some(line) = site.frame.line {
            place += &format!(" (line {line})");
        }
        Some(place)
    } else if site.exactness == Exactness::Exact && site.frame.method.is_some() {
        // An interpreter before the first bytecode.
        Some(place_of(&site.frame).unwrap_or_else(|| "entry".to_owned()))
    } else {
        place_of(&site.frame)
    }
}

/// File and line; `None` without a line.
pub fn place_of(frame: &Frame) -> Option<String> {
    let line = frame.line?;
    Some(place_text(last_component(&frame.file), Some(line)))
}

/// An entry's share, marked if its samples are mostly inferred.
pub fn marked(summary: &Summary, entry: EntryId, share: String) -> String {
    match summary.is_inferred(entry) {
        true => format!("~{share}"),
        false => share,
    }
}

/// Explains the mark and names the worst inference error, at least 0.01 points; `None` without marked entries.
pub fn inference(summary: &Summary) -> Option<String> {
    let error = points(summary.worst_inference()?.max(0.0001));
    Some(format!(
        "~: most samples' method is inferred from machine code, with an inference error of up to \
         ±{error} points; the ± of entries contains it"
    ))
}
