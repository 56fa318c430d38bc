//! What entries and ranges are called.

use super::Page;
use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_symbolizer::profile::{Entry, Site};
use vmscope_symbolizer::{EntryId, Profile, Region, Summary};

impl Page<'_> {
    pub(super) fn samples_of(&self, id: EntryId) -> u64 {
        self.summary.entries.get(id as usize).copied().unwrap_or(0)
    }

    pub(super) fn name_of(&self, id: EntryId) -> String {
        let Some(entry) = self.profile.entries.get(id as usize) else {
            return String::new();
        };
        let mut name = entry.name.clone();
        if let Some(place) = begin_of(entry, self.namesakes.contains(&id)) {
            name.push_str(&format!(" {place}"));
        }
        if !entry.tier.is_empty() {
            name.push_str(&format!(" ({})", entry.tier));
        }
        if !entry.cases.is_empty() {
            let cases: Vec<String> = entry
                .cases
                .iter()
                .map(|case| format!("{} -> {}", case.class, case.target))
                .collect();
            name.push_str(&format!(" - {} ({})", cases.len(), cases.join(", ")));
        }
        // Where a function is from matters for libraries and the kernel's modules.
        let tell = matches!(entry.region, Region::Library)
            || (entry.region == Region::Kernel && entry.module != "[kernel]");
        if tell && !entry.module.is_empty() && !entry.name.contains(&entry.module) {
            name.push_str(&format!(" [{}]", entry.module.trim_matches(['[', ']'])));
        }
        name
    }
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

/// Entries that would be called the same by the last components of their files.
pub(super) fn namesakes(profile: &Profile, summary: &Summary) -> FxHashSet<EntryId> {
    let mut by_name = FxHashMap::default();
    let mut namesakes = FxHashSet::default();
    let hit = profile.entries.iter().zip(&summary.entries).zip(0..);
    for ((entry, _), id) in hit.filter(|((entry, n), _)| **n > 0 && !entry.file.is_empty()) {
        let short = last_component(&entry.file);
        let name = (&entry.name, &entry.tier, &entry.module, short, entry.line);
        if let Some(other) = by_name.insert(name, id) {
            namesakes.extend([other, id]);
        }
    }
    namesakes
}

fn last_component(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A range's name: `from->to`, or line and the functions it was inlined through.
pub(super) fn range_name(site: &Site) -> Option<String> {
    let bytecode = |pc: Option<vmscope_records::BytecodePc>, none: &str| {
        pc.map_or_else(|| none.to_owned(), |pc| pc.to_string())
    };
    let mut name = if site.bounded {
        format!(
            "{}->{}",
            bytecode(site.from, "entry"),
            bytecode(site.to, "end")
        )
    } else if let Some(from) = site.from {
        match site.frame.line {
            Some(line) => format!("{from} (line {line})"),
            None => from.to_string(),
        }
    } else {
        place_of(&site.frame)?
    };
    for outer in &site.via {
        name.push_str(" < ");
        name.push_str(&outer.name);
        match (outer.bytecode, outer.line) {
            (Some(pc), _) => name.push_str(&format!("@{pc}")),
            (None, Some(line)) => name.push_str(&format!(":{line}")),
            (None, None) => {}
        }
    }
    Some(name)
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
