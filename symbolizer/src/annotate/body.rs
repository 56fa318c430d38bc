//! Tree of a method's places and inlined methods.

use super::subject::subject_of;
use super::{Inlined, MAX_DEPTH, Row, Spot, Subject, Tally, frames};
use crate::profile::{EntryKind, Frame, Profile, Site};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vmscope_records::{Exactness, Method, Position};

/// Samples of one site.
pub(super) struct Worked {
    pub samples: u64,
    pub exactness: Exactness,
    /// Index in [`super::Annotation::tiers`].
    pub tier: usize,
    /// Number of tiers.
    pub tiers: usize,
}

#[derive(Default)]
pub(super) struct Tree {
    root: Node,
    /// Error groups, at the root only: own samples of each place, and each inlined method.
    groups: u32,
}

#[derive(Default)]
struct Node(FxHashMap<Spot, Place>);

#[derive(Default)]
struct Place {
    line: Option<u32>,
    own: Tally,
    group: Option<u32>,
    inlined: FxHashMap<Subject, Callee>,
}

struct Callee {
    name: Arc<str>,
    all: Tally,
    group: Option<u32>,
    node: Node,
}

impl Tree {
    /// Adds a site's samples, with the method at `depth` of the site's chain; returns their group.
    /// `after`: see [`Spot::Range`].
    pub fn put(
        &mut self,
        profile: &Profile,
        site: &Site,
        depth: usize,
        worked: &Worked,
        after: bool,
    ) -> Option<u32> {
        let chain: Vec<&Frame> = frames(site).take(depth + 1).collect();
        let mut group = None;
        let mut node = &mut self.root;
        // From the method inwards; deeper levels count at the last level.
        for (level, &frame) in chain.iter().enumerate().rev() {
            let spot = spot_of(profile, site, frame, level == 0, after);
            let place = node.0.entry(spot).or_default();
            place.line = place.line.or(frame.line);
            let inner = level.checked_sub(1).and_then(|inner| chain.get(inner));
            let Some(inner) = inner.filter(|_| depth - level < MAX_DEPTH) else {
                place.own.add(worked);
                return group.or_else(|| Some(group_in(&mut place.group, &mut self.groups)));
            };
            let subject = subject_of(profile, site, inner);
            let callee = place.inlined.entry(subject).or_insert_with(|| Callee {
                name: Arc::clone(&inner.name),
                all: Tally::default(),
                group: None,
                node: Node::default(),
            });
            callee.all.add(worked);
            group.get_or_insert_with(|| group_in(&mut callee.group, &mut self.groups));
            node = &mut callee.node;
        }
        group
    }

    pub fn groups(&self) -> usize {
        self.groups as usize
    }

    /// Rows with errors by group.
    pub fn into_rows(self, errors: &[f64]) -> Vec<Row> {
        self.root.into_rows(errors)
    }
}

impl Node {
    /// Recursion depth: at most [`MAX_DEPTH`], limited by [`Tree::put`].
    fn into_rows(self, errors: &[f64]) -> Vec<Row> {
        let error = |group: Option<u32>| errors.get(group? as usize).copied();
        let mut rows: Vec<Row> = (self.0.into_iter())
            .map(|(spot, place)| {
                let mut inlined: Vec<Inlined> = (place.inlined.into_iter())
                    .map(|(subject, callee)| Inlined {
                        subject,
                        name: callee.name,
                        all: callee.all,
                        error: error(callee.group),
                        rows: callee.node.into_rows(errors),
                    })
                    .collect();
                inlined.sort_by(|a, b| {
                    let samples = b.all.samples().cmp(&a.all.samples());
                    samples.then_with(|| a.name.cmp(&b.name))
                });
                Row {
                    spot,
                    line: place.line,
                    own: place.own,
                    error: error(place.group),
                    inlined,
                    called: 0,
                }
            })
            .collect();
        rows.sort_by(|a, b| order(&a.spot).cmp(&order(&b.spot)));
        rows
    }
}

fn group_in(slot: &mut Option<u32>, groups: &mut u32) -> u32 {
    *slot.get_or_insert_with(|| {
        let group = *groups;
        *groups += 1;
        group
    })
}

/// Sort key: entry first, then code order, unknown last.
pub(super) fn order(spot: &Spot) -> (u8, &str, u64, u64) {
    match spot {
        Spot::Entry => (0, "", 0, 0),
        Spot::Bytecode(pc) => (1, "", u64::from(pc.0) + 1, u64::from(pc.0)),
        Spot::Range { from, to, after } => {
            let first = from.map_or(0, |from| u64::from(from.0) + 1 + u64::from(*after));
            (1, "", first, to.map_or(u64::MAX, |to| u64::from(to.0)))
        }
        Spot::Line { file, line } => (2, file, u64::from(*line), 0),
        Spot::Unknown => (3, "", 0, 0),
    }
}

/// Place of one frame of a site. Only innermost frames can have ranges.
pub(super) fn spot_of(
    profile: &Profile,
    site: &Site,
    frame: &Frame,
    innermost: bool,
    after: bool,
) -> Spot {
    if innermost && site.bounded {
        return Spot::Range {
            from: site.from,
            to: site.to,
            after,
        };
    }
    let bytecode = frame.bytecode.or(site.from.filter(|_| innermost));
    if let Some(pc) = bytecode {
        return Spot::Bytecode(pc);
    }
    if let Some(line) = frame.line {
        return Spot::Line {
            file: Arc::clone(&frame.file),
            line,
        };
    }
    // In a VM's method, a known place without bytecode or line means the entry. Native code has
    // compiler-added places without lines.
    let generated = matches!(profile.entries[site.entry].kind, EntryKind::Code(_));
    if generated && frame.method.is_some() && site.exactness != Exactness::MethodOnly {
        Spot::Entry
    } else {
        Spot::Unknown
    }
}

/// Place of a covers map's frame, consistent with [`spot_of`].
pub(super) fn spot_in_code(
    method: Option<&Method>,
    position: Position,
    exactness: Exactness,
) -> Spot {
    match position {
        Position::Bytecode(pc) => Spot::Bytecode(pc),
        Position::Line(line) => Spot::Line {
            file: method.map_or("", |method| &method.file).into(),
            line,
        },
        Position::Unknown if method.is_some() && exactness != Exactness::MethodOnly => Spot::Entry,
        Position::Unknown => Spot::Unknown,
    }
}
