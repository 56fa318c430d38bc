//! A flame graph: an SVG that is searched and zoomed in a browser, by inferno.

use super::Export;
use super::tree::{Label, LabelTree, Style};
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

/// The narrowest frame is this part of all samples: a tenth of a pixel of 1,200.
const NARROWEST: u64 = 10_000;

/// The most text that inferno is handed: stacks of hostile depth with hostile names get
/// wider narrowest frames.
const MOST_TEXT_BYTES: usize = 64 << 20;

/// A title or a subtitle is no longer than what fits.
const LONGEST_TITLE: usize = 120;

/// Writes the picture.
pub(super) fn write(export: &Export<'_>, out: &mut dyn Write) -> Result<()> {
    let tree = LabelTree::of(export, Style::Words);
    let mut palette = palette(&tree.labels);
    let mut options = Options::default();
    options.title = title(export);
    options.subtitle = Some(subtitle(export, &tree.labels));
    options.bgcolors = Some(BackgroundColor::Flat(Color::new(0xf8, 0xf8, 0xf8)));
    options.palette_map = Some(&mut palette);
    // Lines come in the order of their names already.
    options.no_sort = true;
    let text = lines(&tree, export.summary.total);
    from_lines(&mut options, text.lines(), out).context("the flame graph can't be drawn")
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
    let session = export.profile.trace.session.as_ref();
    let command = session.map_or_else(String::new, |session| session.command.join(" "));
    let vm = session.map(|session| &session.vm);
    let title = match vm {
        Some(vm) if vm.kind != "native" => {
            let vm = format!("{} {}", vm.kind, vm.version);
            format!("{}: {command}", vm.trim_end())
        }
        _ => command,
    };
    shortened(&harmless(&title))
}

fn subtitle(export: &Export<'_>, labels: &[Label]) -> String {
    let session = export.profile.trace.session.as_ref();
    let clock = match session.map(|session| session.clock) {
        Some(SampleClock::Wall) => "wall-clock time",
        _ => "CPU time",
    };
    let is_there = |region: &&(Region, &str, [u8; 3])| {
        labels.iter().any(|label| label.region == Some(region.0))
    };
    let legend = COLORS
        .iter()
        .filter(is_there)
        .map(|(region, color, _)| format!("{color} {}", region.name()));
    let legend: Vec<String> = legend.collect();
    let samples = some(export.summary.total, "sample", "samples");
    format!(
        "{samples} of {clock} - {}; paler where inlined",
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

/// The color of each region, with its name for the legend.
const COLORS: [(Region, &str, [u8; 3]); 9] = [
    (Region::Generated, "green", [0x5f, 0xc8, 0x55]),
    (Region::Interpreter, "turquoise", [0x45, 0xc4, 0xb8]),
    (Region::Gc, "red", [0xe8, 0x6a, 0x5c]),
    (Region::Compiler, "violet", [0xb0, 0x84, 0xe0]),
    (Region::Vm, "yellow", [0xe6, 0xc4, 0x4a]),
    (Region::Library, "blue", [0x72, 0xa8, 0xe6]),
    (Region::Kernel, "orange", [0xee, 0x96, 0x4a]),
    (Region::Idle, "white", [0xe8, 0xe8, 0xe8]),
    (Region::Unknown, "grey", [0xb4, 0xb4, 0xb4]),
];

/// Processes and threads.
const ROOT: [u8; 3] = [0xd0, 0xd0, 0xd0];

/// By how much neighbours of one region may differ, so that they can be told apart.
const SHADES: u64 = 24;

/// By how much what was inlined is paler, in parts of 256 of the way to white.
const PALER: u16 = 96;

fn palette(labels: &[Label]) -> PaletteMap {
    let mut palette = PaletteMap::default();
    // inferno's frame for everything has no name.
    palette.insert("", Color::new(ROOT[0], ROOT[1], ROOT[2]));
    for label in labels {
        let of_region = |region| COLORS.iter().find(|(other, ..)| *other == region);
        let base = label
            .region
            .and_then(of_region)
            .map_or(ROOT, |(.., rgb)| *rgb);
        // The same name has the same shade in every picture.
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
