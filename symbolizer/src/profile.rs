//! The profile: what all of vmscope's views and reports show.

use crate::bounds::Omitted;
use crate::time_buckets::TimeBuckets;
use crate::trace::Trace;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
pub use vmscope_records::Region;
use vmscope_records::{
    BytecodePc, ConstituentKind, Exactness, MethodKey, PicCase, SymbolSource, Symbols,
};

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// An entry of a code zone.
    Code(ConstituentKind),
    /// A native function; where its name comes from.
    Function(SymbolSource),
    /// Code whose name is not known, gathered: of a module, of nobody.
    Unnamed,
    /// Samples that two constituents claim.
    Doubtful,
}

/// Index in [`Profile::entries`].
pub type EntryId = u32;

/// Index in [`Profile::sites`].
pub type SiteId = u32;

/// A line of the report: a method, a function, an inline cache, a trampoline.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Its name for people.
    pub name: String,
    /// Where it belongs.
    pub region: Region,
    /// What it is.
    pub kind: EntryKind,
    /// Which compiler or level made it; of native code, the part of its region that a
    /// VM's adapter tells apart (`scavenger`); may be empty.
    pub tier: String,
    /// The file it is in (its last component), `[kernel]` or `[module]` of the kernel,
    /// or a method's class; may be empty.
    pub module: String,
    /// The source file of a method, as its VM names it; empty where it does not, and for
    /// native code.
    pub file: String,
    /// The line at which a method begins, 1-based, where it is known.
    pub line: Option<u32>,
    /// The cases of a PIC.
    pub cases: Vec<Case>,
}

impl Entry {
    /// An entry of which nothing but its name and kind is known.
    pub(crate) fn named(name: &str, kind: EntryKind) -> Self {
        Entry {
            name: name.to_owned(),
            region: Region::Unknown,
            kind,
            tier: String::new(),
            module: String::new(),
            file: String::new(),
            line: None,
            cases: Vec::new(),
        }
    }
}

/// A case of a PIC, by names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// The receiver's class; may be empty.
    pub class: String,
    /// What it leads to; may be empty.
    pub target: String,
}

impl From<&PicCase> for Case {
    fn from(case: &PicCase) -> Self {
        Case {
            class: case.class.clone(),
            target: case.target.clone(),
        }
    }
}

/// A place in a method, by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The method or function.
    pub name: Arc<str>,
    /// Its source file; may be empty.
    pub file: Arc<str>,
    /// The source line, where known.
    pub line: Option<u32>,
    /// The bytecode, where known.
    pub bytecode: Option<BytecodePc>,
    /// The method, where it is one of a VM's that the recording holds: of several records of
    /// one class, name, file and line, always the same one's key.
    pub method: Option<MethodKey>,
}

/// A range inside an entry: what the samples of a method are split into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Whose.
    pub entry: EntryId,
    /// The bytecode boundary before it (boundary maps), or the bytecode it executes
    /// (covers maps); `None` for a method's entry and where bytecodes are not known.
    pub from: Option<BytecodePc>,
    /// The bytecode boundary after it (boundary maps); `None` for a method's end and
    /// elsewhere.
    pub to: Option<BytecodePc>,
    /// Whether `from` and `to` are boundaries.
    pub bounded: bool,
    /// The method that was executing (the innermost), where the entry's own name is
    /// not the whole answer.
    pub frame: Frame,
    /// The methods it was inlined through, innermost first.
    pub via: Vec<Frame>,
    /// What this is worth.
    pub exactness: Exactness,
}

/// By what differs between the sites of an entry: there are many sites, and names are
/// long.
impl Hash for Site {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.entry, self.from, self.to, self.frame.line).hash(state);
        for outer in &self.via {
            (outer.line, outer.bytecode).hash(state);
        }
    }
}

/// A profile: every sample has a site, every site an entry.
#[derive(Debug)]
pub struct Profile {
    /// The recording, in order.
    pub trace: Trace,
    /// The entries.
    pub entries: Vec<Entry>,
    /// The ranges of all entries.
    pub sites: Vec<Site>,
    /// The site of each place of the trace.
    pub site_of_place: Vec<SiteId>,
    /// Symbols that the recording did not hold, as they were resolved now.
    pub resolved_now: Vec<Symbols>,
    /// The samples summed up by time.
    pub time_buckets: TimeBuckets,
    /// What a profile that grows with its recording omitted; `None` where it was made of a
    /// whole recording.
    pub omitted: Option<Omitted>,
}

impl Profile {
    /// Whether what was recorded is a native program: then there is no generated code
    /// to split from the VM's own.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.trace
            .session
            .as_ref()
            .is_none_or(|session| session.vm.kind == "native")
    }

    /// Whether an entry has a real name.
    #[must_use]
    pub fn is_named(&self, entry: EntryId) -> bool {
        let kind = self.entries.get(entry as usize).map(|entry| &entry.kind);
        !matches!(kind, None | Some(EntryKind::Unnamed | EntryKind::Doubtful))
    }

    /// Hands the thread and the spot of some of the trace's samples to `visit`.
    pub(crate) fn each_spot(&self, range: Range<usize>, mut visit: impl FnMut(u32, u32)) {
        let samples = &self.trace.samples;
        let threads = samples.threads.get(range.clone()).unwrap_or_default();
        let places = samples.places.get(range).unwrap_or_default();
        for (&thread, &place) in threads.iter().zip(places) {
            if let Some(spot) = self.time_buckets.spot_of_place(place) {
                visit(thread, spot);
            }
        }
    }
}
