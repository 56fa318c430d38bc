//! The profile: what all of vmscope's views and reports show.

use crate::trace::Trace;
pub use vmscope_records::Region;
use vmscope_records::{BytecodePc, ConstituentKind, Exactness, PicCase, SymbolSource, Symbols};

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
    /// Which compiler or level made it; empty for native code.
    pub tier: String,
    /// The file it is in (its last component), `[kernel]` or `[module]` of the kernel,
    /// or a method's class; may be empty.
    pub module: String,
    /// The cases of a PIC.
    pub cases: Vec<Case>,
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
    pub name: String,
    /// Its source file; may be empty.
    pub file: String,
    /// The source line, where known.
    pub line: Option<u32>,
    /// The bytecode, where known.
    pub bytecode: Option<BytecodePc>,
}

/// A range inside an entry: what the samples of a method are split into.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
}
