//! A method's bytecodes or source lines with the samples of each: what `vmscope annotate`
//! shows, and the terminal UI. Pure functions of a profile, a filter and the method chosen.

mod body;
mod calls;
mod find;
mod machine;
mod versions;

pub use calls::{Call, Calls, calls};
pub use find::{
    Candidate, Choice, Subject, candidates, candidates_stoppable, choose, entries_of_subject,
    subject_of_entry,
};
pub use machine::{Piece, Step, machine_code};
pub use versions::{Origin, Version, versions};

use crate::build::code::line_of;
use crate::profile::{Profile, Region, Site};
use crate::slices::{self, Counts, Selection, Stop};
use crate::summary::Filter;
use crate::summary::errors::batch_errors;
use crate::summary::places;
use body::{Tree, Worked};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vmscope_records::{BytecodePc, Exactness, Method};

/// Code inlined deeper than this is shown at this depth: chains come from a recording,
/// which may hold anything.
pub const MAX_DEPTH: usize = 32;

/// So many samples are looked at between two looks at whether to stop.
const STOP_EVERY: usize = 4096;

/// A place in a method's body, in the terms that its VM gives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Spot {
    /// The method's entry: before its first bytecode.
    Entry,
    /// One bytecode.
    Bytecode(BytecodePc),
    /// Between two boundaries of a boundary map (DESIGN.md §5).
    Range {
        /// The boundary before; `None` is the method's entry.
        from: Option<BytecodePc>,
        /// The boundary after; `None` is the method's end.
        to: Option<BytecodePc>,
        /// Whether the bytecodes executed are those after `from` up to and including
        /// `to`; else they are `from` and those before `to`.
        after: bool,
    },
    /// A line of a source file, which may be empty where it is not known.
    Line {
        /// The file.
        file: Arc<str>,
        /// The line, 1-based.
        line: u32,
    },
    /// Not known: the samples are the method's as a whole.
    Unknown,
}

impl Spot {
    /// Which entries of a listing, ascending by pc, executing this place executes. Where
    /// there are none, the empty range stands before the one that it would come before.
    #[must_use]
    pub fn in_listing(&self, listing: &[Listed]) -> std::ops::Range<usize> {
        let before = |pc: BytecodePc| listing.partition_point(|listed| listed.pc < pc);
        let through = |pc: BytecodePc| listing.partition_point(|listed| listed.pc <= pc);
        let (first, end) = match *self {
            Spot::Entry => (0, 0),
            Spot::Bytecode(pc) => (before(pc), through(pc)),
            // Two boundaries of one bytecode: that one is being executed.
            Spot::Range {
                from: Some(from),
                to: Some(to),
                ..
            } if from == to => (before(from), through(from)),
            Spot::Range { from, to, after } => {
                let cut = |pc| if after { through(pc) } else { before(pc) };
                (from.map_or(0, cut), to.map_or(listing.len(), cut))
            }
            Spot::Line { .. } | Spot::Unknown => (listing.len(), listing.len()),
        };
        first..end.max(first)
    }
}

/// Samples by what their resolution is worth, and by tier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// In places that are exact.
    pub exact: u64,
    /// In places that are approximate.
    pub approximate: u64,
    /// Of the method as a whole.
    pub method_only: u64,
    /// By tier, as [`Annotation::tiers`] orders them; empty where there are no samples.
    pub tiers: Vec<u64>,
}

impl Tally {
    /// All samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.exact + self.approximate + self.method_only
    }

    fn add(&mut self, worked: &Worked) {
        match worked.exactness {
            Exactness::Exact => self.exact += worked.samples,
            Exactness::Approximate => self.approximate += worked.samples,
            Exactness::MethodOnly => self.method_only += worked.samples,
        }
        self.tiers.resize(worked.tiers, 0);
        if let Some(slot) = self.tiers.get_mut(worked.tier) {
            *slot += worked.samples;
        }
    }
}

/// A place with its samples.
#[derive(Clone, Debug)]
pub struct Row {
    /// Where.
    pub spot: Spot,
    /// The source line of a bytecode, where known.
    pub line: Option<u32>,
    /// Samples in the method's own code there.
    pub own: Tally,
    /// 95 % half-width of the share of `own` in the annotated method's samples, by batch
    /// means; `None` in inlined methods and where there are too few samples.
    pub error: Option<f64>,
    /// Methods that were inlined there, most samples first.
    pub inlined: Vec<Inlined>,
}

impl Row {
    /// Samples of the row and of what was inlined there.
    #[must_use]
    pub fn samples(&self) -> u64 {
        let inlined: u64 = self
            .inlined
            .iter()
            .map(|inlined| inlined.all.samples())
            .sum();
        self.own.samples() + inlined
    }
}

/// A method inlined at a place.
#[derive(Clone, Debug)]
pub struct Inlined {
    /// Which.
    pub subject: Subject,
    /// Its name.
    pub name: Arc<str>,
    /// All its samples there, with those of what was inlined into it.
    pub all: Tally,
    /// 95 % half-width of the share of `all`, as [`Row::error`]; for what is inlined into
    /// the annotated method itself.
    pub error: Option<f64>,
    /// Where in it, in the order of its code.
    pub rows: Vec<Row>,
}

/// A tier that a method ran in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Which region of the VM.
    pub region: Region,
    /// The tier, in the VM's word; empty where it has one only.
    pub name: String,
    /// Samples of the method and of what was inlined into it.
    pub samples: u64,
}

/// A bytecode as its VM's adapter disassembled it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Which.
    pub pc: BytecodePc,
    /// Its text.
    pub text: String,
    /// Its source line, where known.
    pub line: Option<u32>,
}

/// A method with its samples.
#[derive(Clone, Debug, Default)]
pub struct Annotation {
    /// Its full name.
    pub name: String,
    /// The class that it is of, or the script or module; may be empty.
    pub class: String,
    /// Its source file, as the recording names it: of native code, the one with most
    /// samples; may be empty.
    pub file: String,
    /// The line at which it begins, where known.
    pub line: Option<u32>,
    /// All samples that the filter takes, of whatever; for one version, the single ones
    /// ([`versions`]).
    pub total: u64,
    /// Samples of the method and of what was inlined into it.
    pub all: Tally,
    /// Those in the method itself.
    pub own: Tally,
    /// 95 % half-width of the share of `all` in `total`; `None` where there are too few.
    pub error: Option<f64>,
    /// The tiers it ran in, most samples first.
    pub tiers: Vec<Tier>,
    /// What it was inlined into, most samples first. The rest ran in code of its own.
    pub into: Vec<(Arc<str>, u64)>,
    /// Its places with samples, in the order of its code: the entry first, what is not
    /// known last.
    pub rows: Vec<Row>,
    /// Its bytecodes, ascending; empty where the recording holds no listing.
    pub listing: Vec<Listed>,
    /// How many different listings it has in the recording; `listing` is the longest.
    pub listings: usize,
    /// Samples inlined deeper than [`MAX_DEPTH`].
    pub too_deep: u64,
}

/// Gathers the samples of a method that `filter` takes, wherever it ran: in code of its
/// own of every tier, interpreted, and inlined. Where it was inlined into itself, the
/// innermost counts.
#[must_use]
pub fn annotate(profile: &Profile, filter: &Filter, chosen: &Subject) -> Annotation {
    annotate_stoppable(profile, filter, chosen, None, &Stop::new()).unwrap_or_default()
}

/// The same; `origin`: of one of its [`versions`] alone. `None` when `stop` was wished
/// before it was done.
#[must_use]
pub fn annotate_stoppable(
    profile: &Profile,
    filter: &Filter,
    chosen: &Subject,
    origin: Option<Origin>,
    stop: &Stop,
) -> Option<Annotation> {
    let selection = Selection::new(profile, filter);
    let mut counts = Counts::of_selection(profile, &selection, stop)?;
    if let Some(origin) = origin {
        let takes = versions::places_of(profile, chosen, origin);
        // Of single samples alone, as its part of them is.
        (counts.sites, counts.total) = count_sites(profile, filter, &takes, stop)?;
    }
    let sites = find::sites(profile, &counts.sites, chosen);
    let mut tiers = find::tiers(profile, &sites);
    let mut root = Tree::default();
    let mut into: FxHashMap<Arc<str>, u64> = FxHashMap::default();
    let (mut own, mut all) = (Tally::default(), Tally::default());
    let mut too_deep = 0;
    let mut group_of_site: Vec<Option<u32>> = vec![None; profile.sites.len()];
    for found in &sites {
        let (site, samples, depth) = (found.site, found.samples, found.depth);
        let worked = Worked {
            samples,
            exactness: site.exactness,
            tier: find::tier_of(profile, site, &tiers),
            tiers: tiers.len(),
        };
        all.add(&worked);
        if depth == 0 {
            own.add(&worked);
        }
        if let Some(outer) = site.via.get(depth) {
            *into.entry(Arc::clone(&outer.name)).or_default() += samples;
        }
        too_deep += if depth > MAX_DEPTH { samples } else { 0 };
        let group = root.put(profile, site, depth, &worked, found.after);
        if let Some(slot) = group_of_site.get_mut(found.id as usize) {
            *slot = group;
        }
    }
    for (index, tier) in tiers.iter_mut().enumerate() {
        tier.samples = all.tiers.get(index).copied().unwrap_or(0);
    }
    // Errors go by slices, which do not know versions apart.
    let (errors, in_total) = if origin.is_some() {
        (Vec::new(), None)
    } else {
        let size = (all.samples(), root.groups());
        (
            row_errors(profile, &selection, &group_of_site, size, stop)?,
            share_error(profile, &selection, &group_of_site, counts.total, stop)?,
        )
    };
    let mut into: Vec<_> = into.into_iter().collect();
    into.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let rows = root.into_rows(&errors);
    let mut annotation = Annotation {
        name: find::name_of(profile, chosen),
        class: String::new(),
        file: String::new(),
        line: None,
        total: counts.total,
        all,
        own,
        error: in_total,
        tiers,
        into,
        rows,
        listing: Vec::new(),
        listings: 0,
        too_deep,
    };
    annotation.describe(profile, chosen);
    Some(annotation)
}

impl Annotation {
    /// Adds what is known of the method beside its samples.
    fn describe(&mut self, profile: &Profile, chosen: &Subject) {
        let Some(method) = find::method_of(profile, chosen) else {
            self.file = main_file(&self.rows);
            return;
        };
        self.class.clone_from(&method.class);
        self.file.clone_from(&method.file);
        self.line = (method.line != 0).then_some(method.line);
        // Records of one name: the same method told again, or of another class loader.
        let mut namesakes: Vec<&Method> = (profile.trace.methods.values())
            .filter(|other| find::are_namesakes(method, other) && !other.listing.is_empty())
            .collect();
        namesakes.sort_by_key(|method| (std::cmp::Reverse(method.listing.len()), method.key));
        namesakes.dedup_by(|a, b| a.listing == b.listing);
        self.listings = namesakes.len();
        if let Some(method) = namesakes.first() {
            let mut listing: Vec<Listed> = (method.listing.iter())
                .map(|(pc, text)| Listed {
                    pc: *pc,
                    text: text.clone(),
                    line: line_of(method, *pc),
                })
                .collect();
            listing.sort_by_key(|listed| listed.pc);
            self.listing = listing;
        }
    }
}

/// The file with most samples of rows that are lines.
fn main_file(rows: &[Row]) -> String {
    let mut files: FxHashMap<&str, u64> = FxHashMap::default();
    for row in rows {
        if let Spot::Line { file, .. } = &row.spot {
            *files.entry(file).or_default() += row.samples();
        }
    }
    let most = (files.into_iter()).max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(a.0)));
    most.map_or_else(String::new, |(file, _)| file.to_owned())
}

/// How many single samples each site has in the places that `takes` says, and how many there
/// are in all.
fn count_sites(
    profile: &Profile,
    filter: &Filter,
    takes: &[bool],
    stop: &Stop,
) -> Option<(Vec<u64>, u64)> {
    let mut counts = vec![0; profile.sites.len()];
    let mut all = 0;
    for (index, place) in places(profile, filter).enumerate() {
        if index.is_multiple_of(STOP_EVERY) && stop.is_stopped() {
            return None;
        }
        all += 1;
        let site = profile.site_of_place.get(place as usize);
        let site = site.filter(|_| takes.get(place as usize) == Some(&true));
        if let Some(slot) = site.and_then(|&site| counts.get_mut(site as usize)) {
            *slot += 1;
        }
    }
    Some((counts, all))
}

/// Of each group of rows, the error of its share in the method's samples; `size` is how
/// many of both there are.
fn row_errors(
    profile: &Profile,
    selection: &Selection,
    group_of_site: &[Option<u32>],
    size: (u64, usize),
    stop: &Stop,
) -> Option<Vec<f64>> {
    let group_of = |spot: &slices::Spot| group_of_site.get(spot.site as usize).copied().flatten();
    let of_method = selection.only(&profile.slices, |spot| group_of(spot).is_some());
    batch_errors(profile, &of_method, group_of, size, stop)
}

/// The error of the method's share in all samples; `None` in it where there are too few.
fn share_error(
    profile: &Profile,
    selection: &Selection,
    group_of_site: &[Option<u32>],
    total: u64,
    stop: &Stop,
) -> Option<Option<f64>> {
    let group_of = |spot: &slices::Spot| group_of_site.get(spot.site as usize)?.map(|_| 0);
    let errors = batch_errors(profile, selection, group_of, (total, 1), stop)?;
    Some(errors.first().copied())
}

/// The innermost frame of a site and those it was inlined through.
fn frames(site: &Site) -> impl Iterator<Item = &crate::profile::Frame> {
    std::iter::once(&site.frame).chain(&site.via)
}
