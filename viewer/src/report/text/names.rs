//! What entries and ranges are called.

use super::Page;
use vmscope_symbolizer::profile::Site;
use vmscope_symbolizer::{EntryId, Region};

impl Page<'_> {
    pub(super) fn samples_of(&self, id: EntryId) -> u64 {
        self.summary.entries.get(id as usize).copied().unwrap_or(0)
    }

    pub(super) fn name_of(&self, id: EntryId) -> String {
        let Some(entry) = self.profile.entries.get(id as usize) else {
            return String::new();
        };
        let mut name = entry.name.clone();
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
    let file = frame.file.rsplit('/').next().unwrap_or(&frame.file);
    Some(if file.is_empty() {
        format!("line {line}")
    } else {
        format!("{file}:{line}")
    })
}
