//! The profile, the data of all views and reports.

use crate::bounds::Omitted;
pub use crate::ids::{EntryId, SiteId};
use crate::ids::{IndexVec, PlaceId, SpotId, ThreadId};
use crate::time_buckets::{Sites, TimeBuckets};
use crate::trace::Trace;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
pub use vmscope_records::Region;
use vmscope_records::{
    BytecodePc, ConstituentKind, Exactness, MethodKey, PicCase, SymbolSource, Symbols,
};

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// Code of a code zone.
    Code(ConstituentKind),
    /// A native function, with the source of its name.
    Function(SymbolSource),
    /// All unnamed code of one module, or without a module.
    Unnamed,
    /// Samples with two possible constituents.
    Doubtful,
}

/// A line of the report: a method, a function, an inline cache, a trampoline.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Its name for display.
    pub name: String,
    /// Its region.
    pub region: Region,
    /// Its kind.
    pub kind: EntryKind,
    /// The compiler or compilation level. For native code, the part of its region (`scavenger`).
    /// May be empty.
    pub tier: String,
    /// The name of its file, without folders; `[kernel]` or a kernel `[module]`; or a method's
    /// class. May be empty.
    pub module: String,
    /// The source file of a method, in the VM's words; empty if unknown, and for native code.
    pub file: String,
    /// The first line of a method, 1-based, if known.
    pub line: Option<u32>,
    /// The cases of a PIC.
    pub cases: Vec<Case>,
}

impl Entry {
    /// An entry with only name and kind.
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

/// A named case of a PIC.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// The receiver's class; may be empty.
    pub class: String,
    /// The target's name; may be empty.
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

/// A named place in a method.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The method or function.
    pub name: Arc<str>,
    /// Its source file; may be empty.
    pub file: Arc<str>,
    /// The source line, if known.
    pub line: Option<u32>,
    /// The bytecode, if known.
    pub bytecode: Option<BytecodePc>,
    /// The VM's method, if recorded. Methods of equal class, name, file and line share one key.
    pub method: Option<MethodKey>,
}

/// Begin of a method in its source. It distinguishes methods without a class.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Begin {
    /// The source file; may be empty.
    pub file: Arc<str>,
    /// The first line, 1-based, if known.
    pub line: Option<u32>,
}

impl Begin {
    /// `file:line`, `file` or `line N`; a file without its folders, or its `whole_path`.
    #[must_use]
    pub fn text(&self, whole_path: bool) -> String {
        match whole_path {
            true => place_text(&self.file, self.line),
            false => place_text(last_component(&self.file), self.line),
        }
    }
}

/// `file:line`, `file` or `line N`, with what is known.
#[must_use]
pub fn place_text(file: &str, line: Option<u32>) -> String {
    match line {
        Some(line) if file.is_empty() => format!("line {line}"),
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    }
}

/// A file without its folders.
#[must_use]
pub fn last_component(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A range within an entry, the finest place that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The entry.
    pub entry: EntryId,
    /// The bytecode boundary before the range (boundary maps), or its bytecode (covers maps);
    /// `None` for a method's entry and for unknown bytecodes.
    pub from: Option<BytecodePc>,
    /// The bytecode boundary after the range (boundary maps); `None` for a method's end and for
    /// other maps.
    pub to: Option<BytecodePc>,
    /// Whether `from` and `to` are boundaries.
    pub bounded: bool,
    /// The innermost executing method.
    pub frame: Frame,
    /// The methods it was inlined through, innermost first.
    pub via: Vec<Frame>,
    /// Call site of an entry without a frame that shows its caller. The call site itself has no
    /// caller.
    pub caller: Option<SiteId>,
    /// The exactness of the range.
    pub exactness: Exactness,
    /// See [`vmscope_records::Cover::method_error`]; 0 outside covers maps.
    pub method_error: u8,
}

impl Site {
    /// The site of a whole entry.
    pub(crate) fn whole(entry: EntryId, frame: Frame) -> Self {
        Site {
            entry,
            from: None,
            to: None,
            bounded: false,
            frame,
            via: Vec::new(),
            caller: None,
            exactness: Exactness::MethodOnly,
            method_error: 0,
        }
    }

    /// Whether the middle of its inlined chain was left out.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.via.len() >= crate::build::MAX_VIA
    }
}

/// Hashes only what distinguishes the sites of an entry: sites are many, and names are long.
impl Hash for Site {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.entry, self.from, self.to, self.frame.line, self.caller).hash(state);
        for outer in &self.via {
            (outer.line, outer.bytecode).hash(state);
        }
    }
}

/// A profile: each sample has a site, each site an entry.
#[derive(Debug)]
pub struct Profile {
    /// The recording in time order.
    pub trace: Trace,
    /// The entries.
    pub entries: IndexVec<EntryId, Entry>,
    /// The ranges of all entries.
    pub sites: IndexVec<SiteId, Site>,
    /// Sites by place of the trace.
    pub site_of_place: IndexVec<PlaceId, SiteId>,
    /// Symbols resolved now, which the recording lacks.
    pub resolved_now: Vec<Symbols>,
    /// The samples summed up by time.
    pub time_buckets: TimeBuckets,
    /// The number of steps of a live profile. A step may rename and renumber places.
    pub steps: u64,
    /// The omissions of a live profile; `None` for the profile of a finished recording.
    pub omitted: Option<Omitted>,
}

impl Profile {
    /// Splits the profile: time buckets, and the data that fill them.
    pub fn to_sum_up(&mut self) -> (&mut Trace, Sites<'_>, &mut TimeBuckets) {
        let sites = Sites {
            entries: &self.entries,
            sites: &self.sites,
            of_place: &self.site_of_place,
        };
        (&mut self.trace, sites, &mut self.time_buckets)
    }

    /// The site of a place.
    #[must_use]
    pub fn site_at(&self, place: PlaceId) -> &Site {
        &self.sites[self.site_of_place[place]]
    }

    /// The entry of a place.
    #[must_use]
    pub fn entry_at(&self, place: PlaceId) -> &Entry {
        &self.entries[self.site_at(place).entry]
    }

    /// Whether the recorded program is native, without generated code.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.trace
            .session
            .as_ref()
            .is_none_or(|session| session.vm.kind == "native")
    }

    /// The innermost inlined function at a site of a native function. Generated code counts for the
    /// innermost method: its entry.
    #[must_use]
    pub fn inlined_at<'a>(&self, site: &'a Site) -> Option<&'a Frame> {
        let entry = &self.entries[site.entry];
        let outermost = site.via.last()?;
        let is_inlined = *outermost.name == *entry.name && *site.frame.name != *entry.name;
        (is_inlined && site.frame.method.is_none()).then_some(&site.frame)
    }

    /// The frame of a site's entry: the innermost, or a native function around it.
    #[must_use]
    pub fn frame_of_entry<'a>(&self, site: &'a Site) -> &'a Frame {
        match (self.inlined_at(site), site.via.last()) {
            (Some(_), Some(outermost)) => outermost,
            _ => &site.frame,
        }
    }

    /// Begin of a frame's method; `None` if unknown, for native functions and for methods with a
    /// class.
    #[must_use]
    pub fn begin_of(&self, frame: &Frame) -> Option<Begin> {
        let method = self.trace.methods.get(&frame.method?)?;
        let line = Some(method.line).filter(|&line| line != 0);
        let is_known = line.is_some() || !frame.file.is_empty();
        (method.class.is_empty() && is_known).then(|| Begin {
            file: Arc::clone(&frame.file),
            line,
        })
    }

    /// The known caller's frames, innermost first, of a site whose entry has no frame of its own.
    pub fn callers_of<'a>(&'a self, site: &Site) -> impl Iterator<Item = &'a Frame> {
        let caller = site.caller.map(|site| &self.sites[site]);
        let frames = |site: &'a Site| std::iter::once(&site.frame).chain(&site.via);
        caller.into_iter().flat_map(frames)
    }

    /// Whether an entry has a real name.
    #[must_use]
    pub fn is_named(&self, entry: EntryId) -> bool {
        !matches!(
            self.entries[entry].kind,
            EntryKind::Unnamed | EntryKind::Doubtful
        )
    }

    /// Hands thread and spot of some kept samples to `visit`.
    pub(crate) fn each_spot(&self, range: Range<usize>, mut visit: impl FnMut(ThreadId, SpotId)) {
        let samples = &self.trace.samples;
        let threads = samples.threads.get(range.clone()).unwrap_or_default();
        let places = samples.places.get(range).unwrap_or_default();
        for (&thread, &place) in threads.iter().zip(places) {
            visit(thread, self.time_buckets.spot_of_place[place]);
        }
    }
}
