//! Samples per bytecode or source line of a method, for `vmscope annotate` and the terminal UI:
//! pure functions of profile, filter and chosen method.

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
pub use calls::{Call, CallSite, Calls, calls};
pub use candidates::{Candidate, candidates, hottest, hottest_method};
pub use find::{Choice, choose, fitting};
pub use located::Located;
pub use machine::{Piece, Step, machine_code};
pub use sides::sides;
pub use subject::{Subject, entries_of_subject, subject_of_entry};
pub use taken::Taken;
pub use versions::{Origin, Version, versions};

use crate::build::code::line_of;
use crate::profile::{Profile, Region, Site};
use crate::summary::{Filter, Inferred};
use crate::time_buckets::Stop;
use body::Worked;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vmscope_records::{BytecodePc, Exactness, Method};

/// Deepest inlining level shown; samples inlined deeper count at this level. Recordings may hold
/// chains of any depth.
pub const MAX_DEPTH: usize = 32;

/// A place in a method's body, in its VM's terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Spot {
    /// The method's entry, before the first bytecode.
    Entry,
    /// One bytecode.
    Bytecode(BytecodePc),
    /// Between two boundaries of a boundary map (DESIGN.md §5).
    Range {
        /// The boundary before; `None` is the method's entry.
        from: Option<BytecodePc>,
        /// The boundary after; `None` is the method's end.
        to: Option<BytecodePc>,
        /// `true`: bytecodes after `from` up to and including `to` executed; `false`: `from` and
        /// bytecodes before `to`.
        after: bool,
    },
    /// A line of a source file; empty file name if unknown.
    Line {
        /// The file.
        file: Arc<str>,
        /// The line, 1-based.
        line: u32,
    },
    /// Unknown; samples count for the whole method.
    Unknown,
}

impl Spot {
    /// Range of listing entries (ascending by pc) executed at this place; without any, an empty
    /// range at the insertion position.
    #[must_use]
    pub fn in_listing(&self, listing: &[Listed]) -> std::ops::Range<usize> {
        let before = |pc: BytecodePc| listing.partition_point(|listed| listed.pc < pc);
        let through = |pc: BytecodePc| listing.partition_point(|listed| listed.pc <= pc);
        let (first, end) = match *self {
            Spot::Entry => (0, 0),
            Spot::Bytecode(pc) => (before(pc), through(pc)),
            // Equal boundaries: the bytecode itself is executing.
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

/// Samples by exactness and tier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Samples in exact places.
    pub exact: u64,
    /// Samples in approximate places.
    pub approximate: u64,
    /// Samples resolved to the method only.
    pub method_only: u64,
    /// By tier, in the order of [`Annotation::tiers`]; empty without samples.
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
    /// The place.
    pub spot: Spot,
    /// Source line of a bytecode, if known.
    pub line: Option<u32>,
    /// Samples in the method's own code.
    pub own: Tally,
    /// 95 % half-width of the share of `own` in the annotated method's samples, by batch means;
    /// `None` in inlined methods or with too few samples.
    pub error: Option<f64>,
    /// Inlined methods, most samples first.
    pub inlined: Vec<Inlined>,
    /// Samples in code called from here and not inlined; 0 before [`Annotation::put_calls`].
    pub called: u64,
}

impl Row {
    /// Samples of the row, including inlined methods, without called code.
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
    /// The method.
    pub subject: Subject,
    /// Its name.
    pub name: Arc<str>,
    /// Samples at this place, including nested inlined methods.
    pub all: Tally,
    /// 95 % half-width of the share of `all`, like [`Row::error`]; only for methods inlined
    /// directly into the annotated method.
    pub error: Option<f64>,
    /// Places within the inlined method, in code order.
    pub rows: Vec<Row>,
}

/// An execution tier of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// VM region.
    pub region: Region,
    /// The VM's tier name; empty for VMs with a single tier.
    pub name: String,
    /// Samples of the method, including inlined methods.
    pub samples: u64,
}

/// A bytecode, disassembled by its VM's adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Bytecode position.
    pub pc: BytecodePc,
    /// Its text.
    pub text: String,
    /// Source line, if known.
    pub line: Option<u32>,
}

/// A method with its samples.
#[derive(Clone, Debug, Default)]
pub struct Annotation {
    /// Its full name.
    pub name: String,
    /// Class, script or module; may be empty.
    pub class: String,
    /// Source file, named as in the recording; for native code, the file with most samples; may be
    /// empty.
    pub file: String,
    /// First line, if known.
    pub line: Option<u32>,
    /// All samples that pass the filter, including other code; for one version, only samples kept
    /// one by one ([`versions()`]).
    pub total: u64,
    /// Samples of the method, including inlined methods.
    pub all: Tally,
    /// Samples in the method itself.
    pub own: Tally,
    /// Error of the share of `all` in `total`, as of [`crate::Summary::error`]; `None` with too few
    /// samples.
    pub error: Option<f64>,
    /// Samples of `all` with an inferred method.
    pub inferred: Inferred,
    /// Samples of `own` with an inferred method.
    pub own_inferred: Inferred,
    /// Execution tiers, most samples first.
    pub tiers: Vec<Tier>,
    /// Methods that inlined this method, with samples, most samples first. Remaining samples ran in
    /// the method's own code.
    pub into: Vec<(Arc<str>, u64)>,
    /// Places with samples, own or in called code, in code order: entry first, unknown places last.
    pub rows: Vec<Row>,
    /// Bytecodes, ascending; empty if the recording holds no listing.
    pub listing: Vec<Listed>,
    /// Number of different listings in the recording; `listing` holds the longest.
    pub listings: usize,
    /// Samples inlined deeper than [`MAX_DEPTH`].
    pub too_deep: u64,
}

/// Gathers a method's samples from its own code of every tier, interpreters and inlined copies; for
/// a method inlined into itself, the innermost frame counts. `origin` limits the result to one of
/// [`versions()`]. Returns `None` if `stop` was requested first.
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
    /// Calls [`annotate`] for a single method and filter.
    #[must_use]
    pub fn of(profile: &Profile, filter: &Filter, chosen: &Subject) -> Self {
        let located = Located::of(profile, &ByMethod::of(profile), chosen);
        let taken = Taken::of(profile, filter);
        annotate(&taken, &located, None, &Stop::new()).unwrap_or_default()
    }

    /// Adds the method's call sites to the rows.
    pub fn put_calls(&mut self, calls: &Calls) {
        let mut rows: FxHashMap<Spot, usize> = FxHashMap::default();
        rows.extend(
            (self.rows.iter())
                .zip(0..)
                .map(|(row, at)| (row.spot.clone(), at)),
        );
        for site in &calls.sites {
            let row = rows.get(&site.spot).and_then(|&at| self.rows.get_mut(at));
            match row {
                Some(row) => row.called = site.samples,
                None => self.rows.push(Row {
                    spot: site.spot.clone(),
                    line: site.line,
                    own: Tally::default(),
                    error: None,
                    inlined: Vec::new(),
                    called: site.samples,
                }),
            }
        }
        (self.rows).sort_by(|a, b| body::order(&a.spot).cmp(&body::order(&b.spot)));
        if self.file.is_empty() {
            self.file = main_file(&self.rows);
        }
    }

    /// Fills in the method's description and listing.
    fn describe(&mut self, profile: &Profile, chosen: &Subject) {
        self.name = subject::name_of(profile, chosen);
        let Some(method) = subject::method_of(profile, chosen) else {
            self.file = main_file(&self.rows);
            return;
        };
        self.class.clone_from(&method.class);
        self.file.clone_from(&method.file);
        self.line = (method.line != 0).then_some(method.line);
        // Records with equal names: repeated reports of one method, or methods of several class
        // loaders.
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

/// The file with most samples, also in called code, in line rows.
fn main_file(rows: &[Row]) -> String {
    let mut files: FxHashMap<&str, u64> = FxHashMap::default();
    for row in rows {
        if let Spot::Line { file, .. } = &row.spot {
            *files.entry(file).or_default() += row.samples() + row.called;
        }
    }
    let most = (files.into_iter()).max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(a.0)));
    most.map_or_else(String::new, |(file, _)| file.to_owned())
}

/// The innermost frame, then its inlining callers.
fn frames(site: &Site) -> impl Iterator<Item = &crate::profile::Frame> {
    std::iter::once(&site.frame).chain(&site.via)
}
