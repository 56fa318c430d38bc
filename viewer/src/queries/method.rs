//! One method: samples, versions, machine code.

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use vmscope_records::TimeNs;
use vmscope_symbolizer::annotate::{
    Annotation, ByMethod, Candidate, Located, Origin, Piece, Spot, Subject, Taken, Tally, Version,
    annotate, hottest_method, machine_code, subject_of_entry, versions,
};
use vmscope_symbolizer::methods::is_method;
use vmscope_symbolizer::profile::Case;
use vmscope_symbolizer::{EntryId, Filter, Profile, Stop, Summary};

/// The method with samples that a text names, as `Foo>>bar` is named in `Foo>>bar@36 (Baz)`. The
/// longest name wins, then the one with most samples.
pub fn entry_named_in(text: &str, profile: &Profile, summary: Option<&Summary>) -> Option<EntryId> {
    let is_named = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + name.len()..]);
            (before.is_empty() || before.ends_with(' '))
                && (after.is_empty() || after.starts_with(['@', ' ']))
        })
    };
    let entries = profile.entries.enumerated();
    let named = entries.filter(|(id, entry)| is_method(profile, *id) && is_named(&entry.name));
    let samples = |id: EntryId| summary.and_then(|summary| summary.entries.get(id).copied());
    let best = named.max_by_key(|(id, entry)| (entry.name.len(), samples(*id)));
    best.map(|(id, _)| id)
}

/// Maximum number of methods in the palette.
const MAX_HOTTEST: usize = 50;

/// Requested method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// Entry that the user opened.
    Entry(EntryId),
    /// Method chosen in this view, or the hottest method before.
    Subject(Subject),
    /// Hottest method.
    Hottest,
}

/// Ranges of machine code: first byte, end, as offsets in the code.
pub type Pieces = Vec<(u32, u32)>;

/// Machine code by place id.
pub type Machine = FxHashMap<u64, Pieces>;

/// Filter-independent parts of earlier answers.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Methods of each site.
    pub methods: Option<Arc<ByMethod>>,
    /// Location of a method, possibly of the requested one.
    pub located: Option<Arc<Located>>,
}

impl Known {
    fn methods(&mut self, profile: &Profile) -> Arc<ByMethod> {
        let known = self.methods.take().filter(|known| known.is_of(profile));
        let methods = known.unwrap_or_else(|| Arc::new(ByMethod::of(profile)));
        self.methods = Some(Arc::clone(&methods));
        methods
    }

    /// Location of a method.
    pub fn located(&mut self, profile: &Profile, subject: &Subject) -> Arc<Located> {
        let known = self.located.as_ref();
        if let Some(known) = known.filter(|it| it.subject() == subject && it.is_of(profile)) {
            return Arc::clone(known);
        }
        let methods = self.methods(profile);
        let located = Arc::new(Located::of(profile, &methods, subject));
        self.located = Some(Arc::clone(&located));
        located
    }
}

/// A method under a filter.
#[derive(Debug)]
pub struct Found {
    /// Method; `None` without an annotation.
    pub subject: Option<Subject>,
    /// Filter-independent parts.
    pub known: Known,
    /// Reason of a missing annotation, as a sentence.
    pub why: String,
    /// Samples of all versions, or of the requested version.
    pub annotation: Annotation,
    /// All versions.
    pub versions: Vec<Version>,
    /// Whether version counts cover kept single samples only: totals of older samples
    /// do not distinguish versions.
    pub are_newest: bool,
    /// Whether the annotation of one version covers kept single samples only.
    pub is_of_newest: bool,
    /// Cases of a PIC.
    pub cases: Vec<Case>,
    /// Version of [`Found::machine`]: an index of [`Found::versions`].
    pub machine_of: Option<usize>,
    /// Machine code.
    pub machine: Machine,
}

/// Id of a place, from the id of its parent (0 for the method itself).
pub fn id_of(parent: u64, what: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    (parent, what).hash(&mut hasher);
    hasher.finish()
}

/// Id of a place in a method.
pub fn id_of_spot(parent: u64, spot: &Spot) -> u64 {
    id_of(parent, (1u8, spot))
}

/// Id of a method inlined at a place.
pub fn id_of_callee(parent: u64, subject: &Subject) -> u64 {
    id_of(parent, (2u8, subject))
}

/// Finds a method and its samples, of version `origin` if given, before `until`.
pub fn find(
    profile: &Profile,
    filter: &Filter,
    (which, origin): (&Which, Option<Origin>),
    until: TimeNs,
    mut known: Known,
    stop: &Stop,
) -> Option<Found> {
    let taken = Taken::of(profile, filter);
    let subject = match which {
        Which::Subject(subject) => Ok(subject.clone()),
        Which::Entry(entry) => {
            subject_of_entry(profile, *entry).ok_or_else(|| why_not(profile, *entry))
        }
        Which::Hottest => {
            let hottest = hottest_method(&taken, &known.methods(profile), stop)?;
            hottest.ok_or_else(|| none_at_all(profile))
        }
    };
    let mut found = Found {
        subject: None,
        known: Known::default(),
        why: String::new(),
        annotation: Annotation::default(),
        versions: Vec::new(),
        are_newest: profile.time_buckets.dropped() > 0,
        is_of_newest: origin.is_some() && profile.time_buckets.dropped() > 0,
        cases: Vec::new(),
        machine_of: None,
        machine: Machine::default(),
    };
    match subject {
        Ok(subject) => {
            let located = known.located(profile, &subject);
            found.annotation = annotate(&taken, &located, origin, stop)?;
            found.versions = versions(&taken, &located, stop)?;
            let is_there = |one: &Version| one.since.is_none_or(|since| since <= until);
            found.versions.retain(is_there);
            for version in &mut found.versions {
                version.gone = version.gone.filter(|gone| *gone <= until);
            }
            found.cases = cases(&found.versions);
            found.take_machine(profile, &subject, origin);
            found.subject = Some(subject);
        }
        Err(why) => found.why = why,
    }
    found.known = known;
    Some(found)
}

impl Found {
    /// Machine code of the shown version; for all versions together, of the hottest.
    fn take_machine(&mut self, profile: &Profile, subject: &Subject, origin: Option<Origin>) {
        let has_code = |version: &Version| matches!(version.origin, Origin::Code(_));
        let numbered = || self.versions.iter().enumerate();
        let shown = match origin {
            Some(origin) => numbered().find(|(_, one)| has_code(one) && one.origin == origin),
            None => numbered()
                .filter(|(_, one)| has_code(one))
                .max_by_key(|(_, one)| (one.samples, one.since)),
        };
        let Some((number, version)) = shown else {
            return;
        };
        let Origin::Code(code) = version.origin else {
            return;
        };
        self.machine_of = Some(number);
        let pieces = machine_code(profile, subject, &[code]);
        self.machine = machine_of(&pieces.concat());
    }
}

/// Code ranges by place, and by the places around it.
pub fn machine_of(pieces: &[Piece]) -> Machine {
    let mut machine = Machine::default();
    for piece in pieces {
        let mut id = 0;
        for (level, step) in piece.path.iter().enumerate() {
            if level > 0 {
                id = id_of_callee(id, &step.subject);
                put(&mut machine, id, (piece.start, piece.end));
            }
            id = id_of_spot(id, &step.spot);
            put(&mut machine, id, (piece.start, piece.end));
        }
    }
    machine
}

/// Mark for inexact samples: `~` some approximate, `?` some of unknown place.
pub fn mark_of(tally: &Tally) -> &'static str {
    match (tally.approximate, tally.method_only) {
        (0, 0) => "",
        (0, _) => "?",
        _ => "~",
    }
}

/// Adds a code range; ranges arrive by address.
fn put(machine: &mut Machine, id: u64, (start, end): (u32, u32)) {
    let pieces = machine.entry(id).or_default();
    match pieces.last_mut() {
        Some((_, last)) if *last >= start => *last = end.max(*last),
        _ => pieces.push((start, end)),
    }
}

/// Cases of the PIC with most cases.
fn cases(versions: &[Version]) -> Vec<Case> {
    let most = versions.iter().max_by_key(|version| version.cases.len());
    most.map_or_else(Vec::new, |version| version.cases.clone())
}

/// Reason of missing places, as a sentence.
fn why_not(profile: &Profile, entry: EntryId) -> String {
    use vmscope_symbolizer::profile::EntryKind;
    let entry = &profile.entries[entry];
    let why = match entry.kind {
        EntryKind::Doubtful => {
            "the VM replaced the code around the time of these samples, so their method is \
             uncertain."
        }
        EntryKind::Unnamed if profile.sites.is_empty() => "the entry has no samples.",
        EntryKind::Unnamed => {
            "it collects code without names. Names come from symbols (debug packages, \
             unstripped binaries) or from a VM that vmscope can read."
        }
        EntryKind::Code(_) | EntryKind::Function(_) => "the entry has no samples.",
    };
    format!("Cannot annotate {}: {why}", entry.name)
}

fn none_at_all(profile: &Profile) -> String {
    if profile.trace.samples.times.is_empty() && profile.time_buckets.dropped() == 0 {
        return "This recording has no samples. Record again: `vmscope attach PID` or `vmscope \
                record -- COMMAND`."
            .to_owned();
    }
    "No sample in the filters is in a named method or function; x removes the newest filter."
        .to_owned()
}

/// Methods for the palette.
pub fn hottest(
    profile: &Profile,
    filter: &Filter,
    mut known: Known,
    stop: &Stop,
) -> Option<Vec<Candidate>> {
    let (taken, methods) = (Taken::of(profile, filter), known.methods(profile));
    vmscope_symbolizer::annotate::hottest(&taken, &methods, MAX_HOTTEST, stop)
}
