//! What is worked out of a method, off the drawing thread.

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use vmscope_records::TimeNs;
use vmscope_symbolizer::annotate::{
    Annotation, ByMethod, Candidate, Located, Origin, Piece, Spot, Subject, Taken, Tally, Version,
    annotate, hottest_method, machine_code, subject_of_entry, versions,
};
use vmscope_symbolizer::profile::Case;
use vmscope_symbolizer::{EntryId, Filter, Profile, Stop};

/// So many methods are offered by the palette.
const MAX_HOTTEST: usize = 50;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// What the user opened.
    Entry(EntryId),
    /// What was chosen in this view, or was the hottest.
    Subject(Subject),
    /// The method with most samples.
    Hottest,
}

/// Pieces of machine code: first byte and first byte after it, from the code's start.
pub type Pieces = Vec<(u32, u32)>;

/// Machine code by the number of the place that it executes.
pub type Machine = FxHashMap<u64, Pieces>;

/// What is the same under every filter, as far as it was worked out before.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Which methods each site is of.
    pub methods: Option<Arc<ByMethod>>,
    /// Where a method is, which may be the one that is asked for.
    pub located: Option<Arc<Located>>,
}

impl Known {
    fn methods(&mut self, profile: &Profile) -> Arc<ByMethod> {
        let known = self
            .methods
            .get_or_insert_with(|| Arc::new(ByMethod::of(profile)));
        Arc::clone(known)
    }

    /// Where a method is.
    pub fn located(&mut self, profile: &Profile, subject: &Subject) -> Arc<Located> {
        let known = self.located.as_ref();
        if let Some(known) = known.filter(|known| known.subject() == subject) {
            return Arc::clone(known);
        }
        let methods = self.methods(profile);
        let located = Arc::new(Located::of(profile, &methods, subject));
        self.located = Some(Arc::clone(&located));
        located
    }
}

/// A method, found.
#[derive(Debug)]
pub struct Found {
    /// Which; `None` where there is nothing to be annotated.
    pub subject: Option<Subject>,
    /// What was worked out on the way.
    pub known: Known,
    /// Why there is none: a sentence.
    pub why: String,
    /// Its samples: of all versions, or of the one that was asked for.
    pub annotation: Annotation,
    /// All its versions.
    pub versions: Vec<Version>,
    /// Whether the samples of these are those alone that are kept one by one: older ones
    /// are known by sums, which do not tell code apart.
    pub are_newest: bool,
    /// Whether so are those of the annotation, which is of one version.
    pub is_of_newest: bool,
    /// The cases of a PIC.
    pub cases: Vec<Case>,
    /// Whose machine code is in [`Found::machine`]: a number of [`Found::versions`].
    pub machine_of: Option<usize>,
    /// That code.
    pub machine: Machine,
}

/// The number of a place: from that of what it is in (0 for the method itself).
pub fn id_of(parent: u64, what: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    (parent, what).hash(&mut hasher);
    hasher.finish()
}

/// The number of a place in a method.
pub fn id_of_spot(parent: u64, spot: &Spot) -> u64 {
    id_of(parent, (1u8, spot))
}

/// The number of a method inlined at a place.
pub fn id_of_callee(parent: u64, subject: &Subject) -> u64 {
    id_of(parent, (2u8, subject))
}

/// Finds a method and its samples; `origin`: of one version alone. What came after `until`
/// is not shown.
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
    /// The machine code of the version that is shown; of all together, that of the one
    /// with most samples.
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

/// Pieces by the places that they execute, and by what these are inlined in.
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

/// What samples are worth: `~` some are approximate, `?` of some the place is not known.
pub fn mark_of(tally: &Tally) -> &'static str {
    match (tally.approximate, tally.method_only) {
        (0, 0) => "",
        (0, _) => "?",
        _ => "~",
    }
}

/// Adds a piece; pieces come in the order of their addresses.
fn put(machine: &mut Machine, id: u64, (start, end): (u32, u32)) {
    let pieces = machine.entry(id).or_default();
    match pieces.last_mut() {
        Some((_, last)) if *last >= start => *last = end.max(*last),
        _ => pieces.push((start, end)),
    }
}

/// The cases of the PIC that has most of them.
fn cases(versions: &[Version]) -> Vec<Case> {
    let most = versions.iter().max_by_key(|version| version.cases.len());
    most.map_or_else(Vec::new, |version| version.cases.clone())
}

/// Why an entry has no places inside.
fn why_not(profile: &Profile, entry: EntryId) -> String {
    use vmscope_symbolizer::profile::EntryKind;
    let Some(entry) = profile.entries.get(entry as usize) else {
        return "This entry is not in the recording any more.".to_owned();
    };
    let why = match entry.kind {
        EntryKind::Doubtful => {
            "two pieces of code may have been there at the time of these samples, so they \
             are nobody's. Code that changes more slowly, or is looked at more often, \
             leaves fewer of them."
        }
        EntryKind::Unnamed if profile.sites.is_empty() => "there is nothing in it.",
        EntryKind::Unnamed => {
            "it gathers code that no symbol and no VM gives a name to, so there is no \
             method to be shown. Symbols (debug packages, an unstripped binary) or a VM that \
             vmscope can read would give names."
        }
        EntryKind::Code(_) | EntryKind::Function(_) => "no sample is in it.",
    };
    format!("{} can't be annotated: {why}", entry.name)
}

fn none_at_all(profile: &Profile) -> String {
    if profile.trace.samples.times.is_empty() && profile.time_buckets.dropped() == 0 {
        return "No samples, no methods: this recording has none. `vmscope attach PID` or \
                `vmscope record -- CMD` record some."
            .to_owned();
    }
    "No sample that the filters take is in a method or a function that has a name; x \
     removes the newest filter."
        .to_owned()
}

/// The methods that the palette offers.
pub fn hottest(
    profile: &Profile,
    filter: &Filter,
    mut known: Known,
    stop: &Stop,
) -> Option<Vec<Candidate>> {
    let (taken, methods) = (Taken::of(profile, filter), known.methods(profile));
    vmscope_symbolizer::annotate::hottest(&taken, &methods, MAX_HOTTEST, stop)
}
