//! Flame graphs: an HTML page with search, zoom and an inverted view. Its script draws the frames
//! and loads nothing.

use super::Export;
use super::frames::colors;
use super::tree::{Label, LabelTree, Shown};
use crate::present::json;
use crate::present::names::region_title;
use crate::present::numbers::some;
use crate::present::text::harmless;
use crate::report::page::narrowed_to;
use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::hash::BuildHasher;
use std::io::Write;
use vmscope_records::SampleClock;
use vmscope_symbolizer::Region;

const BODY: &str = include_str!("flamegraph/page.html");
const STYLE: &str = include_str!("flamegraph/page.css");
const SCRIPT: &str = include_str!("flamegraph/page.js");

/// Maximum bytes of names and frames. Larger graphs lack their narrowest frames.
const MOST_BYTES: usize = 32 << 20;

/// Numbers of a frame in [`Data::views`].
const NUMBERS: usize = 4;

/// Maximum length of titles.
const LONGEST_TITLE: usize = 120;

/// What the script reads.
#[derive(Serialize)]
struct Data {
    title: String,
    about: Vec<String>,
    /// Name, color and samples in the order of [`Region::ALL`].
    regions: Vec<(&'static str, String, u64)>,
    labels: Vec<Named>,
    /// Depth, label, total and own samples of each frame: callers first, and inverted.
    views: [Vec<u64>; 2],
}

/// Name, index of the region, whether inlined, color.
type Named = (String, Option<usize>, bool, String);

pub(super) fn write(export: &Export<'_>, out: &mut dyn Write) -> Result<()> {
    let tree = LabelTree::of(export);
    let (frames, least) = Frames::of(&tree, export.summary.total);
    let is_native = export.profile.is_native();
    let regions = Region::ALL.into_iter().zip(export.summary.regions);
    let regions = regions.map(|(region, samples)| {
        let title = region_title(region, is_native);
        (title, hex(colors(region).0), samples)
    });
    let data = Data {
        title: title(export),
        about: about(export, least),
        regions: regions.collect(),
        labels: frames.labels,
        views: frames.views,
    };
    let mut text = Vec::new();
    json::write(&mut text, &data)?;
    // Nothing in a name ends the script's element.
    let text = String::from_utf8(text)?.replace('<', "\\u003c");
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <title>flame graph</title>\n<style>{STYLE}</style>\n{BODY}\
         <script type=\"application/json\" id=\"data\">{text}</script>\n\
         <script>{SCRIPT}</script>\n</html>\n"
    )?;
    Ok(())
}

/// Source of a Content-Security-Policy: this very text.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// Frames of both views, with their labels.
#[derive(Default)]
struct Frames {
    labels: Vec<Named>,
    views: [Vec<u64>; 2],
    /// Index in `labels` by the tree's.
    index: FxHashMap<u32, u64>,
    bytes: usize,
}

struct TooMuch;

impl Frames {
    /// All frames, or the widest; and the samples of the narrowest.
    fn of(tree: &LabelTree, total: u64) -> (Self, u64) {
        let mut least = 1u64;
        loop {
            match Self::wide(tree, total, least) {
                Ok(frames) => return (frames, least),
                Err(TooMuch) => least = least.saturating_mul(2),
            }
        }
    }

    /// Frames of at least `least` samples, on one of all samples.
    fn wide(tree: &LabelTree, total: u64, least: u64) -> Result<Self, TooMuch> {
        let mut frames = Frames {
            labels: vec![("all".to_owned(), None, false, hex(ROOT))],
            views: [vec![0, 0, total, 0], vec![0, 0, total, 0]],
            ..Frames::default()
        };
        tree.each_frame(least, |frame| frames.add(0, frame, tree))?;
        tree.each_frame_inverted(least, |frame| frames.add(1, frame, tree))?;
        Ok(frames)
    }

    fn add(&mut self, view: usize, frame: Shown, tree: &LabelTree) -> Result<(), TooMuch> {
        self.bytes += NUMBERS * size_of::<u64>();
        let label = *self.index.entry(frame.label).or_insert_with(|| {
            let label = &tree.labels[frame.label as usize];
            self.bytes += size_of::<Named>() + label.name.len();
            let region = label.region.map(|region| region as usize);
            let named = (label.name.clone(), region, label.inlined, color(label));
            self.labels.push(named);
            self.labels.len() as u64 - 1
        });
        let numbers = [frame.depth as u64 + 1, label, frame.total, frame.own];
        self.views[view].extend(numbers);
        if self.bytes > MOST_BYTES {
            return Err(TooMuch);
        }
        Ok(())
    }
}

fn title(export: &Export<'_>) -> String {
    let title = match export.vm() {
        Some(vm) => format!("{vm}: {}", export.command()),
        None => export.command(),
    };
    shortened(&harmless(&title))
}

/// Samples, filter and what is left out.
fn about(export: &Export<'_>, least: u64) -> Vec<String> {
    let clock = match export.session().map(|session| session.clock) {
        Some(SampleClock::Wall) => "wall-clock time",
        _ => "CPU time",
    };
    let samples = some(export.summary.total, "sample", "samples");
    let filter = narrowed_to(export.profile, export.filter, export.summary);
    let narrow = (least > 1).then(|| format!("frames of fewer than {least} samples are left out"));
    let samples = std::iter::once(format!("{samples} of {clock}"));
    samples.chain(filter).chain(narrow).collect()
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

fn color(label: &Label) -> String {
    let base = label.region.map_or(ROOT, |region| colors(region).0);
    // Equal names have equal shades in all pictures.
    let shade = FxBuildHasher.hash_one(label.name.as_str()) >> 32;
    let shade = u8::try_from(shade % SHADES).unwrap_or(0);
    hex(base.map(|part| {
        let part = part.saturating_sub(shade);
        if label.inlined { paler(part) } else { part }
    }))
}

fn paler(part: u8) -> u8 {
    let way = u16::from(u8::MAX - part) * PALER / 256;
    part.saturating_add(u8::try_from(way).unwrap_or(0))
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}
