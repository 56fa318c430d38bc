//! speedscope's own format (speedscope.app/file-format-schema.json): a sampled profile for each
//! thread, every sample in time order.

use super::frames::{FrameText, frames_of};
use super::{Export, who};
use crate::present::json;
use anyhow::Result;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::io::Write;
use vmscope_symbolizer::stacks::{StackTree, each_stack};
use vmscope_symbolizer::{SiteId, StackId};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
struct File {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: String,
    exporter: String,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: Shared,
    profiles: Vec<Sampled>,
}

#[derive(Serialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct Frame {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    file: String,
    #[serde(skip_serializing_if = "is_unknown")]
    line: u32,
}

/// A thread. Times are sums of periods: CPU time.
#[derive(Serialize)]
struct Sampled {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    #[serde(rename = "startValue")]
    start: u64,
    #[serde(rename = "endValue")]
    end: u64,
    /// Indices of frames, outermost first.
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_unknown(line: &u32) -> bool {
    *line == 0
}

pub(super) fn write(export: &Export<'_>, out: &mut dyn Write) -> Result<()> {
    // Node and number of samples in a row, by thread.
    let mut runs = export.profile.trace.threads.with_each(Vec::new());
    let tree = each_stack(export.profile, export.filter, |sample| {
        let runs: &mut Vec<(StackId, u64)> = &mut runs[sample.thread];
        match runs.last_mut() {
            Some((node, samples)) if *node == sample.node => *samples += 1,
            _ => runs.push((sample.node, 1)),
        }
    });
    let period = export
        .session()
        .map_or(1, |session| session.period.0.max(1));
    let mut frames = Frames::default();
    let threads = who::threads(&export.profile.trace);
    let mut profiles = Vec::new();
    for (who, runs) in threads.iter().zip(runs) {
        if runs.is_empty() {
            continue;
        }
        let total: u64 = runs.iter().map(|(_, samples)| samples).sum();
        let stacks = runs
            .iter()
            .map(|(node, _)| frames.stack(export, &tree, *node));
        profiles.push((
            total,
            Sampled {
                kind: "sampled",
                name: format!("{} tid={} ({})", who.name, who.tid.0, who.process_name),
                unit: "nanoseconds",
                start: 0,
                end: total.saturating_mul(period),
                samples: stacks.collect(),
                weights: runs.iter().map(|(_, n)| n.saturating_mul(period)).collect(),
            },
        ));
    }
    let busiest = profiles.iter().enumerate();
    let active = busiest.max_by_key(|(at, (total, _))| (*total, std::cmp::Reverse(*at)));
    let file = File {
        schema: SCHEMA,
        name: export.command(),
        exporter: format!("vmscope {}", env!("CARGO_PKG_VERSION")),
        active: active.map_or(0, |(at, _)| at),
        shared: Shared { frames: frames.all },
        profiles: profiles.into_iter().map(|(_, profile)| profile).collect(),
    };
    json::write(out, &file)?;
    Ok(())
}

/// Distinct frames.
#[derive(Default)]
struct Frames {
    all: Vec<Frame>,
    index: FxHashMap<Frame, u32>,
    /// Frames of each site, outermost first.
    of_site: FxHashMap<SiteId, Vec<u32>>,
}

impl Frames {
    /// Frames of a stack, outermost first.
    fn stack(&mut self, export: &Export<'_>, tree: &StackTree, node: StackId) -> Vec<u32> {
        let sites: Vec<SiteId> = tree.path(node).collect();
        let mut stack = Vec::new();
        for site in sites.into_iter().rev() {
            if !self.of_site.contains_key(&site) {
                let frames = frames_of(export.profile, site, export.inlined);
                let frames = frames.map(|frame| {
                    self.number(Frame {
                        name: frame.name(export.profile),
                        file: frame.file(),
                        line: frame.line(),
                    })
                });
                let frames = frames.collect();
                self.of_site.insert(site, frames);
            }
            stack.extend(self.of_site.get(&site).into_iter().flatten());
        }
        stack
    }

    fn number(&mut self, frame: Frame) -> u32 {
        if let Some(&number) = self.index.get(&frame) {
            return number;
        }
        // Frames are pairs of function and line: far fewer than 2^32.
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(frame.clone());
        self.index.insert(frame, number);
        number
    }
}
