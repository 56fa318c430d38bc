//! Giving places their names: from a trace and its symbols to a profile.

pub(crate) mod code;
mod intern;
mod interpreted;
mod native;
mod regions;

use crate::profile::{Entry, EntryId, EntryKind, Frame, Profile, Region, Site, SiteId};
use crate::slices::Slices;
use crate::symbols::SymbolTable;
use crate::trace::{Place, Trace};
use crate::zone::CodeIndex;
use code::{MethodTexts, Whole};
use intern::{Interner, Texts};
use regions::Regions;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vmscope_records::{BytecodePc, Exactness, FileOffset, MethodKey, SymbolOwner, Symbols};

/// Makes the profile of a trace. `symbols` are those that the recording does not
/// hold itself. With `inlined`, a sample in an inlined native function belongs to
/// that; without, to the function that it was inlined into. Samples that came out of
/// time order are put in order here.
#[must_use]
pub fn profile_of(mut trace: Trace, symbols: Vec<Symbols>, inlined: bool) -> Profile {
    let mut builder = Builder {
        trace: &trace,
        separator: code::separator_of(&trace),
        table: SymbolTable::new(trace.symbols.iter().chain(&symbols)),
        regions: Regions::new(trace.region_rules.values()),
        inlined,
        entries: Interner::default(),
        sites: Interner::default(),
        texts: Texts::default(),
        site_of_piece: FxHashMap::default(),
        site_of_native: FxHashMap::default(),
        whole_of_code: FxHashMap::default(),
        texts_of_method: FxHashMap::default(),
        first_of_namesakes: FxHashMap::default(),
    };
    let site_of_place: Vec<SiteId> = trace
        .places
        .iter()
        .map(|place| builder.site(*place))
        .collect();
    let (entries, sites) = (builder.entries.values, builder.sites.values);
    trace.samples.put_in_order();
    let mut slices = Slices::default();
    slices.append(&trace, &sites, &site_of_place);
    Profile {
        trace,
        entries,
        sites,
        site_of_place,
        resolved_now: symbols,
        slices,
    }
}

struct Builder<'a> {
    trace: &'a Trace,
    /// Between class and method: see [`code::separator_of`].
    separator: &'a str,
    table: SymbolTable<'a>,
    regions: Regions<'a>,
    inlined: bool,
    entries: Interner<Entry>,
    sites: Interner<Site>,
    texts: Texts,
    /// The site of each piece of a constituent's map that was hit: a piece has many
    /// addresses.
    site_of_piece: FxHashMap<(CodeIndex, u32), SiteId>,
    /// Likewise of native functions and their pieces, each by its first byte.
    site_of_native: FxHashMap<(SymbolOwner, FileOffset, FileOffset), SiteId>,
    whole_of_code: FxHashMap<CodeIndex, Whole>,
    texts_of_method: FxHashMap<MethodKey, MethodTexts>,
    /// The key that stands for all methods of one class, name, file and line.
    first_of_namesakes: FxHashMap<(&'a str, &'a str, &'a str, u32), MethodKey>,
}

impl Builder<'_> {
    fn site(&mut self, place: Place) -> SiteId {
        match place {
            Place::Code(code, offset) => self.code_site(code, offset),
            Place::Interpreted {
                handler,
                bytecodes,
                bytecode,
            } => self.interpreted_site(handler, bytecodes, Some(BytecodePc(bytecode))),
            Place::Entering { handler, method } => self.interpreted_site(handler, method, None),
            Place::Native(module, offset) => self.native_site(module, offset),
            Place::Kernel(address) => self.kernel_site(FileOffset(address.0)),
            Place::Generated => self.plain_site(
                "(generated code, unnamed)",
                Region::Generated,
                EntryKind::Unnamed,
            ),
            Place::Doubtful => self.plain_site(
                "(doubtful: code changed)",
                Region::Generated,
                EntryKind::Doubtful,
            ),
            Place::Unmapped => self.plain_site("(not mapped)", Region::Unknown, EntryKind::Unnamed),
            Place::Idle => self.plain_site("(not running)", Region::Idle, EntryKind::Unnamed),
        }
    }

    fn plain_site(&mut self, name: &str, region: Region, kind: EntryKind) -> SiteId {
        let entry = self.entries.put(Entry {
            region,
            ..Entry::named(name, kind)
        });
        self.whole_entry(entry, name)
    }

    /// The site of an entry whose inside is not known.
    fn whole_entry(&mut self, entry: EntryId, name: &str) -> SiteId {
        let frame = frame_named(self.texts.put(name));
        self.sites.put(Site {
            entry,
            from: None,
            to: None,
            bounded: false,
            frame,
            via: Vec::new(),
            exactness: Exactness::MethodOnly,
        })
    }
}

fn frame_named(name: Arc<str>) -> Frame {
    Frame {
        name,
        file: Arc::default(),
        line: None,
        bytecode: None,
        method: None,
    }
}
