//! Machine code of each place of a method, from pc maps; includes code without samples.

use super::body::spot_in_code;
use super::find::are_namesakes;
use super::subject::method_of;
use super::{MAX_DEPTH, Spot, Subject};
use crate::profile::Profile;
use rustc_hash::FxHashMap;
use std::cell::LazyCell;
use vmscope_records::{BoundaryRule, Constituent, ConstituentKey, Method, MethodKey, PcMap};

/// One step of a path from the annotated method inwards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The annotated method first, then inlined methods.
    pub subject: Subject,
    /// Place in the method.
    pub spot: Spot,
}

/// A piece of machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First byte, relative to the code's start.
    pub start: u32,
    /// End, exclusive.
    pub end: u32,
    /// Executed places from the annotated method inwards; never empty. [`super::annotate`] uses
    /// equal places.
    pub path: Vec<Step>,
}

/// Machine code of each constituent of `codes` (keys from [`super::Origin::Code`]): pieces
/// executing the method or methods inlined into it, ordered by address.
#[must_use]
pub fn machine_code(
    profile: &Profile,
    chosen: &Subject,
    codes: &[ConstituentKey],
) -> Vec<Vec<Piece>> {
    let mut known: FxHashMap<ConstituentKey, &Constituent> = FxHashMap::default();
    let all = profile.trace.code.constituents.iter();
    known.extend(all.filter_map(|one| codes.contains(&one.key).then_some((one.key, one))));
    let stand_ins: Lazy<'_> = LazyCell::new(Box::new(|| StandIns::new(profile)));
    let pieces = |code| match known.get(code) {
        Some(constituent) => of_constituent(profile, chosen, constituent, &stand_ins),
        None => Vec::new(),
    };
    codes.iter().map(pieces).collect()
}

fn of_constituent(
    profile: &Profile,
    chosen: &Subject,
    constituent: &Constituent,
    stand_ins: &Lazy<'_>,
) -> Vec<Piece> {
    let size = constituent.end.0.saturating_sub(constituent.start.0);
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    match &constituent.map {
        PcMap::None => vec![whole(chosen, (0, size), Spot::Unknown)],
        PcMap::Boundary { rule, entries, .. } => {
            let after = *rule == BoundaryRule::AfterInstruction;
            let starts = std::iter::once((0, None));
            let starts = starts.chain(entries.iter().map(|&(mc, pc)| (mc, Some(pc))));
            let ends = entries.iter().map(|&(mc, pc)| (mc, Some(pc)));
            let ends = ends.chain([(size, None)]);
            let pieces = starts
                .zip(ends)
                .filter(|((start, _), (end, _))| start < end);
            let pieces = pieces.map(|((start, from), (end, to))| {
                whole(chosen, (start, end), Spot::Range { from, to, after })
            });
            pieces.collect()
        }
        PcMap::Covers { .. } => covered(profile, chosen, constituent, stand_ins),
    }
}

fn whole(chosen: &Subject, (start, end): (u32, u32), spot: Spot) -> Piece {
    let subject = chosen.clone();
    let path = vec![Step { subject, spot }];
    Piece { start, end, path }
}

fn covered(
    profile: &Profile,
    chosen: &Subject,
    constituent: &Constituent,
    stand_ins: &Lazy<'_>,
) -> Vec<Piece> {
    let PcMap::Covers { covers, chains } = &constituent.map else {
        return Vec::new();
    };
    let methods = &profile.trace.methods;
    let wanted = method_of(profile, chosen);
    let is_chosen = |key: MethodKey| {
        *chosen == Subject::Method(key)
            || (wanted.zip(methods.get(&key))).is_some_and(|(a, b)| are_namesakes(a, b))
    };
    let mut pieces = Vec::new();
    for cover in covers {
        let Some(chain) = chains.get(cover.chain as usize) else {
            continue;
        };
        // Like samples: the innermost frame counts.
        let Some(depth) = chain.iter().position(|frame| is_chosen(frame.method)) else {
            continue;
        };
        let inwards = chain.iter().take(depth + 1).rev().take(MAX_DEPTH + 1);
        let path = inwards.enumerate().map(|(level, frame)| Step {
            subject: match level {
                0 => chosen.clone(),
                _ => Subject::Method(stand_ins.of(profile, frame.method)),
            },
            spot: spot_in_code(methods.get(&frame.method), frame.position, cover.exactness),
        });
        pieces.push(Piece {
            start: cover.start,
            end: cover.end,
            path: path.collect(),
        });
    }
    pieces
}

type Identity<'a> = (&'a str, &'a str, &'a str, u32);

/// Built for the first inlined method, because building reads all sites.
type Lazy<'a> = LazyCell<StandIns<'a>, Box<dyn FnOnce() -> StandIns<'a> + 'a>>;

/// For each identity, the method key used by sites; a method may have several records.
struct StandIns<'a>(FxHashMap<Identity<'a>, MethodKey>);

fn identity(method: &Method) -> Identity<'_> {
    (&method.class, &method.name, &method.file, method.line)
}

impl<'a> StandIns<'a> {
    fn new(profile: &'a Profile) -> Self {
        let frames = profile.sites.iter().flat_map(super::frames);
        let mut known: FxHashMap<MethodKey, ()> = FxHashMap::default();
        known.extend(frames.filter_map(|frame| Some((frame.method?, ()))));
        let named = known.into_keys().filter_map(|key| {
            let method = profile.trace.methods.get(&key)?;
            Some((identity(method), key))
        });
        StandIns(named.collect())
    }

    fn of(&self, profile: &Profile, key: MethodKey) -> MethodKey {
        let method = profile.trace.methods.get(&key);
        let stand_in = method.and_then(|method| self.0.get(&identity(method)));
        stand_in.copied().unwrap_or(key)
    }
}
