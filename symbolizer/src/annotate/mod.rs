//! A method's bytecodes or source lines with the samples of each: what `vmscope annotate`
//! shows, and the terminal UI. Pure functions of a profile, a filter and the method chosen.

mod body;
mod by_method;
mod calls;
mod candidates;
mod find;
mod gather;
mod located;
mod machine;
mod sides;
mod subject;
mod taken;
mod versions;

pub use by_method::ByMethod;
pub use calls::{Call, Calls, calls};
pub use candidates::{Candidate, candidates, hottest, hottest_method};
pub use find::{Choice, choose};
pub use located::Located;
pub use machine::{Piece, Step, machine_code};
pub use sides::sides;
pub use subject::{Subject, entries_of_subject, subject_of_entry};
pub use taken::Taken;
pub use versions::{Origin, Version, versions};

use crate::build::code::line_of;
use crate::profile::{Profile, Region, Site};
use crate::summary::Filter;
use crate::time_buckets::Stop;
use body::Worked;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vmscope_records::{BytecodePc, Exactness, Method};

/// Code inlined deeper than this is shown at this depth: chains come from a recording,
/// which may hold anything.
pub const MAX_DEPTH: usize = 32;

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
    /// All samples that the filter takes, of whatever; for one version, those that are kept
    /// one by one ([`versions`]).
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

/// Gathers the samples of a method wherever it ran: in its own code of every tier,
/// interpreted, and inlined. For a method inlined into itself, the innermost frame counts.
/// With an `origin`, only that one of the method's [`versions`] counts. `None` if `stop`
/// was requested first.
#[must_use]
pub fn annotate(
    taken: &Taken,
    located: &Located,
    origin: Option<Origin>,
    stop: &Stop,
) -> Option<Annotation> {
    let mut annotation = match origin {
        Some(origin) => sides(taken, located, &[origin], stop)?.pop()?,
        None => gather::of_all(taken, located, stop)?,
    };
    annotation.describe(taken.profile, located.subject());
    Some(annotation)
}

impl Annotation {
    /// Gathers a method's samples under a filter: [`annotate`] in one call, for a single
    /// method and filter.
    #[must_use]
    pub fn of(profile: &Profile, filter: &Filter, chosen: &Subject) -> Self {
        let located = Located::of(profile, &ByMethod::of(profile), chosen);
        let taken = Taken::of(profile, filter);
        annotate(&taken, &located, None, &Stop::new()).unwrap_or_default()
    }

    /// Adds what is known of the method beside its samples.
    fn describe(&mut self, profile: &Profile, chosen: &Subject) {
        self.name = subject::name_of(profile, chosen);
        let Some(method) = subject::method_of(profile, chosen) else {
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

/// The innermost frame of a site and those it was inlined through.
fn frames(site: &Site) -> impl Iterator<Item = &crate::profile::Frame> {
    std::iter::once(&site.frame).chain(&site.via)
}
