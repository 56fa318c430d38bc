//! Naming places: trace and symbols become a profile.

pub(crate) mod code;
mod intern;
mod interpreted;
mod native;
mod regions;

use crate::ids::{Id, IndexVec, PlaceId};
use crate::profile::{Entry, EntryId, EntryKind, Frame, Profile, Region, Site, SiteId};
use crate::symbols::SymbolTable;
use crate::time_buckets::TimeBuckets;
use crate::trace::{Place, Trace};
use crate::zone::CodeId;
use code::{MethodTexts, NamesOfCode};
use intern::{Interner, Texts};
use regions::Regions;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::sync::Arc;
use vmscope_records::{BytecodePc, FileOffset, MethodKey, SymbolOwner, Symbols, ThreadRole};

/// The name of unnamed generated code.
const UNNAMED: &str = "(generated code, unnamed)";

/// Maximum length of an inlined chain; longer chains lose their middle. HotSpot inlines 15 deep, C++
/// compilers 40.
pub(crate) const MAX_VIA: usize = 64;

/// A stage of building a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Making {
    /// Naming places.
    Names,
    /// Summing samples up by time.
    TimeBuckets,
}

/// Builds the profile of a trace. `symbols` come on top of the recording's own. Samples in native
/// functions count for the function of the symbol table, as in `perf report`; with `inlined`, for
/// the innermost function inlined there. Samples in generated code count for the innermost method.
/// Sorts samples by time.
#[must_use]
pub fn profile_of(trace: Trace, symbols: Vec<Symbols>, inlined: bool) -> Profile {
    profile_of_telling(trace, symbols, inlined, &mut |_| {})
}

/// Builds the profile of a trace, and reports each stage to `watch`.
#[must_use]
pub fn profile_of_telling(
    mut trace: Trace,
    symbols: Vec<Symbols>,
    inlined: bool,
    watch: &mut dyn FnMut(Making),
) -> Profile {
    watch(Making::Names);
    trace.samples.put_in_order();
    let mut profile = Profile {
        trace,
        entries: IndexVec::default(),
        sites: IndexVec::default(),
        site_of_place: IndexVec::default(),
        resolved_now: symbols,
        time_buckets: TimeBuckets::default(),
        steps: 0,
        omitted: None,
    };
    let separator = code::separator_of(&profile.trace).to_owned();
    let mut names = Names::new(inlined, usize::MAX, usize::MAX);
    let mut site_of_place = profile.trace.places.with_each(None);
    name_places(&mut profile, &mut names, &separator, |builder| {
        for place in by_constituent(&builder.trace.places) {
            site_of_place[place] = Some(builder.site(builder.trace.places[place]));
        }
    });
    let sites = site_of_place.into_iter();
    profile.site_of_place = sites
        .map(|site| site.expect("every place is named"))
        .collect();
    // Naming is over.
    drop(names);
    watch(Making::TimeBuckets);
    let (trace, sites, time_buckets) = profile.to_sum_up();
    time_buckets.append(trace, sites);
    profile
}

/// All places, grouped by constituent: recently used memory is in the cache.
fn by_constituent(places: &IndexVec<PlaceId, Place>) -> impl Iterator<Item = PlaceId> {
    let order = |(id, place): (PlaceId, &Place)| {
        let code = match place {
            Place::Code(code, _) => code.number(),
            _ => u32::MAX,
        };
        u64::from(code) << 32 | u64::from(id.number())
    };
    let mut orders: Vec<u64> = places.enumerated().map(order).collect();
    orders.sort_unstable();
    let number = |order: u64| order & u64::from(u32::MAX);
    orders
        .into_iter()
        .map(move |order| PlaceId::of(number(order) as usize))
}

/// Kept parts of an inlined chain: innermost methods, number of omitted methods, outermost methods.
fn kept_of<T>(chain: &[T]) -> (&[T], usize, &[T]) {
    match chain.len().checked_sub(MAX_VIA) {
        None => (chain, 0, &[]),
        Some(more) => {
            let (inner, rest) = chain.split_at(MAX_VIA - 2);
            // Of `more + 2` methods the last is kept.
            (inner, more + 1, rest.get(more + 1..).unwrap_or_default())
        }
    }
}

/// Lets `work` name places of a profile, which adds entries and sites. `separator` separates
/// class and method: see [`code::separator_of`].
pub(crate) fn name_places<T>(
    profile: &mut Profile,
    names: &mut Names,
    separator: &str,
    work: impl FnOnce(&mut Builder<'_>) -> T,
) -> T {
    let (entries, sites) = (&mut profile.entries, &mut profile.sites);
    let trace = &profile.trace;
    work(&mut Builder {
        trace,
        separator,
        table: LazyTable {
            symbols: (&trace.symbols, &profile.resolved_now),
            table: OnceCell::new(),
        },
        regions: Regions::new(trace.region_rules.values()),
        entries,
        sites,
        names,
    })
}

/// The state of naming, kept from step to step of a live profile.
#[derive(Debug)]
pub(crate) struct Names {
    inlined: bool,
    /// The most entries and sites; further ones become `(others)` of their region.
    max_entries: usize,
    max_sites: usize,
    entries: Interner<EntryId>,
    sites: Interner<SiteId>,
    texts: Texts,
    /// By constituent.
    codes: IndexVec<CodeId, NamesOfCode>,
    /// The sites of native functions and of their pieces, by start offset and role of the thread.
    site_of_native: FxHashMap<(SymbolOwner, FileOffset, FileOffset, ThreadRole), SiteId>,
    texts_of_method: FxHashMap<MethodKey, MethodTexts>,
    /// One key for all methods of equal class, name, file and line.
    first_of_namesakes: FxHashMap<Namesakes, MethodKey>,
    /// The entries `(others)`.
    others: FxHashMap<Region, (EntryId, SiteId)>,
    /// The number of names without room.
    pub left_out: u64,
}

/// Class, name, file and line.
type Namesakes = (Arc<str>, Arc<str>, Arc<str>, u32);

impl Names {
    pub fn new(inlined: bool, max_entries: usize, max_sites: usize) -> Self {
        Names {
            inlined,
            max_entries,
            max_sites,
            entries: Interner::default(),
            sites: Interner::default(),
            texts: Texts::default(),
            codes: IndexVec::default(),
            site_of_native: FxHashMap::default(),
            texts_of_method: FxHashMap::default(),
            first_of_namesakes: FxHashMap::default(),
            others: FxHashMap::default(),
            left_out: 0,
        }
    }

    /// Forgets the names of a constituent.
    pub fn forget_code(&mut self, code: CodeId) {
        *self.codes.slot(code, NamesOfCode::default()) = NamesOfCode::default();
    }

    /// Forgets the sites of native code.
    pub fn forget_native(&mut self) {
        self.site_of_native.clear();
    }

    /// Forgets all derived names. Entries and sites keep their indices.
    pub fn forget(&mut self) {
        self.codes = IndexVec::default();
        self.site_of_native.clear();
        self.texts_of_method.clear();
    }

    /// Forgets representatives of namesakes that are gone.
    pub fn forget_methods(&mut self, is_gone: impl Fn(MethodKey) -> bool) {
        self.first_of_namesakes.retain(|_, key| !is_gone(*key));
        self.texts.forget_unused();
    }
}

pub(crate) struct Builder<'a> {
    pub trace: &'a Trace,
    separator: &'a str,
    table: LazyTable<'a>,
    regions: Regions<'a>,
    entries: &'a mut IndexVec<EntryId, Entry>,
    sites: &'a mut IndexVec<SiteId, Site>,
    names: &'a mut Names,
}

/// A symbol table, built on first use: most steps of a live profile need no native names.
struct LazyTable<'a> {
    symbols: (&'a [Symbols], &'a [Symbols]),
    table: OnceCell<SymbolTable<'a>>,
}

impl<'a> LazyTable<'a> {
    fn get(&self) -> &SymbolTable<'a> {
        let (told, found) = self.symbols;
        self.table
            .get_or_init(|| SymbolTable::new(told.iter().chain(found)))
    }
}

impl Builder<'_> {
    /// Whether a native address has a symbol and, with `lines`, a line.
    pub fn is_resolved(&self, owner: SymbolOwner, at: FileOffset, lines: bool) -> bool {
        let found = self.table.get().lookup(owner, at);
        found.is_some_and(|(_, piece)| !lines || piece.is_some())
    }

    /// Finds or adds the site of a place.
    pub fn site(&mut self, place: Place) -> SiteId {
        match place {
            Place::Code(code, offset) => self.code_site(code, offset),
            Place::Interpreted {
                handler,
                bytecodes,
                bytecode,
            } => self.interpreted_site(handler, bytecodes, Some(BytecodePc(bytecode))),
            Place::Entering { handler, method } => self.interpreted_site(handler, method, None),
            Place::Called {
                code,
                caller,
                offset,
            } => self.called_site(code, (caller, offset)),
            Place::Native(module, offset, role) => self.native_site(module, offset, role),
            Place::Kernel(address) => self.kernel_site(FileOffset(address.0)),
            Place::Generated => self.plain_site(UNNAMED, Region::Generated, EntryKind::Unnamed),
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
        let entry = self.put_entry(Entry {
            region,
            ..Entry::named(name, kind)
        });
        self.whole_entry(entry, name)
    }

    fn put_entry(&mut self, entry: Entry) -> EntryId {
        let (is_room, region) = (self.entries.len() < self.names.max_entries, entry.region);
        if let Some(id) = self.names.entries.put(self.entries, entry, is_room) {
            return id;
        }
        self.names.left_out += 1;
        self.others(region).0
    }

    fn put_site(&mut self, site: Site) -> SiteId {
        let region = self.entries[site.entry].region;
        if let Some(&(others, all)) = self.names.others.get(&region)
            && others == site.entry
        {
            return all;
        }
        let is_room = self.sites.len() < self.names.max_sites;
        if let Some(id) = self.names.sites.put(self.sites, site, is_room) {
            return id;
        }
        self.names.left_out += 1;
        self.others(region).1
    }

    /// A region's entry `(others)`, and its only site.
    fn others(&mut self, region: Region) -> (EntryId, SiteId) {
        if let Some(&known) = self.names.others.get(&region) {
            return known;
        }
        let entry = Entry {
            region,
            ..Entry::named("(others)", EntryKind::Unnamed)
        };
        let entry = self.entries.push(entry);
        let frame = frame_named(self.text("(others)"));
        let site = self.sites.push(Site::whole(entry, frame));
        self.names.others.insert(region, (entry, site));
        (entry, site)
    }

    /// Frames of an inlined chain; a very long chain loses its middle.
    fn frames<T>(
        &mut self,
        chain: &[T],
        mut frame: impl FnMut(&mut Self, &T) -> Frame,
    ) -> Vec<Frame> {
        let (inner, left_out, outermost) = kept_of(chain);
        let mut frames: Vec<Frame> = inner.iter().map(|one| frame(self, one)).collect();
        if left_out > 0 {
            let text = format!("({left_out} inlined calls left out)");
            frames.push(frame_named(self.text(&text)));
        }
        frames.extend(outermost.iter().map(|one| frame(self, one)));
        frames
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        self.names.texts.put(text)
    }

    /// The only site of a coarse entry.
    fn whole_entry(&mut self, entry: EntryId, name: &str) -> SiteId {
        let frame = frame_named(self.text(name));
        self.put_site(Site::whole(entry, frame))
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
