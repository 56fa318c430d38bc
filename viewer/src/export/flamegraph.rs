//! Flame graphs: SVGs with search and zoom, by inferno.

use super::Export;
use super::frames::colors;
use super::tree::{Label, LabelTree, Style};
use crate::present::names::region_key;
use crate::present::numbers::some;
use crate::present::text::harmless;
use anyhow::{Context, Result};
use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{Options, from_lines};
use rustc_hash::FxBuildHasher;
use std::convert::Infallible;
use std::hash::BuildHasher;
use std::io::Write;
use vmscope_records::SampleClock;
use vmscope_symbolizer::Region;

/// The narrowest frame, as a fraction of all samples: a tenth of a pixel of 1,200.
const NARROWEST: u64 = 10_000;

/// Maximum text for inferno. Hostile stacks, deep or with long names, get wider narrowest frames.
const MOST_TEXT_BYTES: usize = 64 << 20;

/// Maximum length of titles and subtitles.
const LONGEST_TITLE: usize = 120;

pub(super) fn write(export: &Export<'_>, out: &mut dyn Write) -> Result<()> {
    let tree = LabelTree::of(export, Style::Words);
    let mut palette = palette(&tree.labels);
    let mut options = Options::default();
    options.title = title(export);
    options.subtitle = Some(subtitle(export, &tree.labels));
    options.bgcolors = Some(BackgroundColor::Flat(Color::new(0xf8, 0xf8, 0xf8)));
    options.palette_map = Some(&mut palette);
    // Lines are sorted by name already.
    options.no_sort = true;
    let text = lines(&tree, export.summary.total);
    from_lines(&mut options, text.lines(), out).context("cannot draw the flame graph")
}

fn lines(tree: &LabelTree, total: u64) -> String {
    let mut least = total.div_ceil(NARROWEST).max(1);
    loop {
        let mut text = String::new();
        let mut too_much = false;
        let result: Result<(), Infallible> = tree.each_line(least, |stack, samples| {
            too_much |= text.len() + stack.len() > MOST_TEXT_BYTES;
            if !too_much {
                text.push_str(stack);
                text.push_str(&format!(" {samples}\n"));
            }
            Ok(())
        });
        let Ok(()) = result;
        if !too_much {
            return text;
        }
        least = least.saturating_mul(2);
    }
}

fn title(export: &Export<'_>) -> String {
    let title = match export.vm() {
        Some(vm) => format!("{vm}: {}", export.command()),
        None => export.command(),
    };
    shortened(&harmless(&title))
}

fn subtitle(export: &Export<'_>, labels: &[Label]) -> String {
    let clock = match export.session().map(|session| session.clock) {
        Some(SampleClock::Wall) => "wall-clock time",
        _ => "CPU time",
    };
    let is_there = |region: &Region| labels.iter().any(|label| label.region == Some(*region));
    let regions = Region::ALL.into_iter().filter(is_there);
    let is_native = export.profile.is_native();
    let legend =
        regions.map(|region| format!("{} {}", colors(region).0, region_key(region, is_native)));
    let legend: Vec<String> = legend.collect();
    let samples = some(export.summary.total, "sample", "samples");
    format!(
        "{samples} of {clock} - {}; inlined functions are paler",
        legend.join(", ")
    )
}

fn shortened(text: &str) -> String {
    if text.chars().nth(LONGEST_TITLE).is_none() {
        return text.to_owned();
    }
    let head: String = text.chars().take(LONGEST_TITLE - 3).collect();
    head + "..."
}

/// Color of processes and threads.
const ROOT: [u8; 3] = [0xd0, 0xd0, 0xd0];

/// Maximum shade difference of neighbours in a region.
const SHADES: u64 = 24;

/// Paleness of inlined frames, in parts of 256 of the way to white.
const PALER: u16 = 96;

fn palette(labels: &[Label]) -> PaletteMap {
    let mut palette = PaletteMap::default();
    // inferno's root frame has an empty name.
    palette.insert("", Color::new(ROOT[0], ROOT[1], ROOT[2]));
    for label in labels {
        let base = label.region.map_or(ROOT, |region| colors(region).1);
        // Equal names have equal shades in all pictures.
        let shade = FxBuildHasher.hash_one(label.text.as_str()) >> 32;
        let shade = u8::try_from(shade % SHADES).unwrap_or(0);
        let [r, g, b] = base.map(|part| {
            let part = part.saturating_sub(shade);
            if label.inlined { paler(part) } else { part }
        });
        palette.insert(&label.text, Color::new(r, g, b));
    }
    palette
}

fn paler(part: u8) -> u8 {
    let way = u16::from(u8::MAX - part) * PALER / 256;
    part.saturating_add(u8::try_from(way).unwrap_or(0))
}
