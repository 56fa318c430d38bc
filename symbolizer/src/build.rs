//! Giving places their names: from a trace and its symbols to a profile.

use crate::profile::{Case, Entry, EntryId, EntryKind, Frame, Profile, Region, Site, SiteId};
use crate::symbols::SymbolTable;
use crate::trace::{Place, Trace};
use crate::zone::CodeIndex;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use vmscope_records::{
    ChainFrame, Constituent, ConstituentKind, Exactness, FileOffset, Method, MethodKey, ModuleKey,
    NativeFrame, PcMap, Position, SymbolOwner, SymbolSource, Symbols,
};

/// Makes the profile of a trace. `symbols` are those that the recording does not
/// hold itself. With `inlined`, a sample in an inlined native function belongs to
/// that; without, to the function that it was inlined into.
#[must_use]
pub fn profile_of(trace: Trace, symbols: Vec<Symbols>, inlined: bool) -> Profile {
    let mut builder = Builder {
        trace: &trace,
        separator: separator_of(&trace),
        table: SymbolTable::new(trace.symbols.iter().chain(&symbols)),
        inlined,
        entries: Interner::default(),
        sites: Interner::default(),
        site_of_piece: FxHashMap::default(),
    };
    let site_of_place = trace
        .places
        .iter()
        .map(|place| builder.site(*place))
        .collect();
    let (entries, sites) = (builder.entries.values, builder.sites.values);
    Profile {
        trace,
        entries,
        sites,
        site_of_place,
        resolved_now: symbols,
    }
}

/// Values, each once, by index; found by their hash, so that none is kept twice.
#[derive(Debug)]
struct Interner<T> {
    values: Vec<T>,
    /// The newest value of each hash.
    newest: FxHashMap<u64, u32>,
    /// Of each value, the one before of the same hash.
    before: Vec<Option<u32>>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner {
            values: Vec::new(),
            newest: FxHashMap::default(),
            before: Vec::new(),
        }
    }
}

impl<T: Eq + std::hash::Hash> Interner<T> {
    fn put(&mut self, value: T) -> u32 {
        let hash = FxBuildHasher.hash_one(&value);
        let newest = self.newest.get(&hash).copied();
        let mut next = newest;
        while let Some(index) = next {
            if self.values.get(index as usize) == Some(&value) {
                return index;
            }
            next = self.before.get(index as usize).copied().flatten();
        }
        // There are at most as many as places, which are counted in 32 bits.
        let index = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(value);
        self.before.push(newest);
        self.newest.insert(hash, index);
        index
    }
}

/// No VM puts more between class and method.
const MAX_SEPARATOR: usize = 2;

struct Builder<'a> {
    trace: &'a Trace,
    /// Between class and method: see [`separator_of`].
    separator: &'a str,
    table: SymbolTable<'a>,
    inlined: bool,
    entries: Interner<Entry>,
    sites: Interner<Site>,
    /// The site of each piece of a constituent's map that was hit: a piece has many
    /// addresses.
    site_of_piece: FxHashMap<(CodeIndex, usize), SiteId>,
}

impl Builder<'_> {
    fn site(&mut self, place: Place) -> SiteId {
        match place {
            Place::Code(code, offset) => self.code_site(code, offset),
            Place::Native(module, offset) => self.native_site(module, offset),
            Place::Kernel(address) => {
                let owner = SymbolOwner::Kernel;
                self.symbol_site(owner, FileOffset(address.0), Region::Kernel, "[kernel]")
            }
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
        let entry = self.entry(name, region, kind, "");
        self.whole_entry(entry, name)
    }

    fn entry(&mut self, name: &str, region: Region, kind: EntryKind, module: &str) -> EntryId {
        self.entries.put(Entry {
            name: name.to_owned(),
            region,
            kind,
            tier: String::new(),
            module: module.to_owned(),
            cases: Vec::new(),
        })
    }

    /// The site of an entry whose inside is not known.
    fn whole_entry(&mut self, entry: EntryId, name: &str) -> SiteId {
        self.sites.put(Site {
            entry,
            from: None,
            to: None,
            bounded: false,
            frame: frame_named(name),
            via: Vec::new(),
            exactness: Exactness::MethodOnly,
        })
    }

    fn native_site(&mut self, key: ModuleKey, offset: FileOffset) -> SiteId {
        let module = self.trace.modules.get(&key);
        let path = module.map_or("", |module| module.path.as_str());
        let name = path.rsplit('/').next().unwrap_or(path);
        let region = match module {
            Some(module) if module.main => Region::Vm,
            Some(_) => Region::Library,
            None => Region::Unknown,
        };
        self.symbol_site(SymbolOwner::Module(key), offset, region, name)
    }

    /// The site of a place that has its name from a symbol.
    fn symbol_site(
        &mut self,
        owner: SymbolOwner,
        at: FileOffset,
        region: Region,
        module: &str,
    ) -> SiteId {
        let found = self.table.lookup(owner, at);
        let Some((function, piece)) = found.filter(|(function, _)| !function.name.is_empty())
        else {
            let name = if module.is_empty() {
                "(no symbol)".to_owned()
            } else {
                format!("(no symbol) {module}")
            };
            let entry = self.entry(&name, region, EntryKind::Unnamed, module);
            return self.whole_entry(entry, &name);
        };
        let frames = piece.map_or(&[][..], |piece| piece.frames.as_slice());
        let exactness = match piece {
            Some(piece) => piece.exactness,
            None => Exactness::MethodOnly,
        };
        // The symbol names the outermost function better than DWARF, which may leave
        // out namespaces and parameters.
        let named = |frame: &NativeFrame, outermost: bool| Frame {
            name: if outermost || frame.function.is_empty() {
                function.name.clone()
            } else {
                frame.function.clone()
            },
            file: frame.file.clone(),
            line: (frame.line != 0).then_some(frame.line),
            bytecode: None,
        };
        let last = frames.len().saturating_sub(1);
        let mut chain = frames
            .iter()
            .enumerate()
            .map(|(depth, frame)| named(frame, depth == last));
        let frame = chain.next().unwrap_or_else(|| frame_named(&function.name));
        let via: Vec<Frame> = chain.collect();
        let (name, source) = if self.inlined && !via.is_empty() {
            (frame.name.clone(), SymbolSource::DebugInfo)
        } else {
            (function.name.clone(), function.source)
        };
        let kind = EntryKind::Function(kind_of_source(source));
        let entry = self.entry(&name, region, kind, module);
        let exactness = if function.sized {
            exactness
        } else {
            worse(exactness)
        };
        self.sites.put(Site {
            entry,
            from: None,
            to: None,
            bounded: false,
            frame,
            via,
            exactness,
        })
    }

    fn code_site(&mut self, code: CodeIndex, offset: u32) -> SiteId {
        let trace = self.trace;
        let Some(constituent) = trace.code.constituents.get(code as usize) else {
            return self.plain_site("(not mapped)", Region::Unknown, EntryKind::Unnamed);
        };
        let piece = (code, piece_of(&constituent.map, offset));
        if let Some(&site) = self.site_of_piece.get(&piece) {
            return site;
        }
        let site = self.new_code_site(constituent, offset);
        self.site_of_piece.insert(piece, site);
        site
    }

    fn new_code_site(&mut self, constituent: &Constituent, offset: u32) -> SiteId {
        if let Some((cover, chain)) = constituent.map.cover(offset)
            && let Some((innermost, outer)) = chain.split_first()
        {
            return self.covered_site(constituent, innermost, outer, cover.exactness);
        }
        let entry = self.constituent_entry(constituent);
        let own = self.own_frame(constituent);
        let (range, exactness) = match &constituent.map {
            PcMap::Boundary { exactness, .. } => {
                (constituent.map.boundary_range(offset), *exactness)
            }
            PcMap::None if !has_an_inside(constituent) => (None, Exactness::Exact),
            _ => (None, Exactness::MethodOnly),
        };
        self.sites.put(Site {
            entry,
            from: range.and_then(|range| range.from),
            to: range.and_then(|range| range.to),
            bounded: range.is_some(),
            frame: own,
            via: Vec::new(),
            exactness,
        })
    }

    /// The site of a piece of a covers map: it belongs to the innermost method.
    fn covered_site(
        &mut self,
        constituent: &Constituent,
        innermost: &ChainFrame,
        outer: &[ChainFrame],
        exactness: Exactness,
    ) -> SiteId {
        let mut frame = self.frame(innermost);
        let entry = if outer.is_empty() {
            // The constituent's own name tells its kind of entry (on-stack
            // replacement, for instance), which the method's does not.
            frame.name.clone_from(&constituent.name);
            self.constituent_entry(constituent)
        } else {
            self.inlined_entry(constituent, &frame.name, innermost.method)
        };
        let via = outer.iter().map(|frame| self.frame(frame)).collect();
        let from = frame.bytecode;
        self.sites.put(Site {
            entry,
            from,
            to: None,
            bounded: false,
            frame,
            via,
            exactness,
        })
    }

    fn constituent_entry(&mut self, constituent: &Constituent) -> EntryId {
        let method = constituent
            .method
            .and_then(|key| self.trace.methods.get(&key));
        self.entries.put(Entry {
            name: constituent.name.clone(),
            region: region_of(constituent),
            kind: EntryKind::Code(constituent.kind.clone()),
            tier: constituent.tier.clone(),
            module: method.map_or_else(String::new, |method| method.class.clone()),
            cases: constituent.cases.iter().map(Case::from).collect(),
        })
    }

    /// The entry of a method that runs inlined in a constituent: the same as that of
    /// its own code of that tier, and the same wherever else it is inlined.
    fn inlined_entry(
        &mut self,
        constituent: &Constituent,
        name: &str,
        method: MethodKey,
    ) -> EntryId {
        let method = self.trace.methods.get(&method);
        self.entries.put(Entry {
            name: name.to_owned(),
            region: region_of(constituent),
            kind: EntryKind::Code(ConstituentKind::Method),
            tier: constituent.tier.clone(),
            module: method.map_or_else(String::new, |method| method.class.clone()),
            cases: Vec::new(),
        })
    }

    fn own_frame(&self, constituent: &Constituent) -> Frame {
        let method = constituent
            .method
            .and_then(|key| self.trace.methods.get(&key));
        Frame {
            name: constituent.name.clone(),
            file: method.map_or_else(String::new, |method| method.file.clone()),
            line: None,
            bytecode: None,
        }
    }

    fn frame(&self, frame: &ChainFrame) -> Frame {
        let method = self.trace.methods.get(&frame.method);
        let (line, bytecode) = match frame.position {
            Position::Unknown => (None, None),
            Position::Line(line) => (Some(line), None),
            Position::Bytecode(pc) => (method.and_then(|m| line_of(m, pc)), Some(pc)),
        };
        Frame {
            name: method.map_or_else(
                || "(unknown method)".to_owned(),
                |method| full_name(method, self.separator),
            ),
            file: method.map_or_else(String::new, |method| method.file.clone()),
            line,
            bytecode,
        }
    }
}

/// Which piece of a map an offset lies in: all offsets of one have the same answer.
/// Gaps between covers are pieces too, and all alike.
fn piece_of(map: &PcMap, offset: u32) -> usize {
    match map {
        PcMap::None => 0,
        PcMap::Boundary { entries, .. } => entries.partition_point(|&(mc, _)| mc <= offset),
        PcMap::Covers { covers, .. } => {
            let after = covers.partition_point(|cover| cover.start <= offset);
            let cover = after.checked_sub(1).and_then(|index| covers.get(index));
            match cover {
                Some(cover) if offset < cover.end => after,
                _ => 0,
            }
        }
    }
}

/// A method's name with its class, as this VM's constituents are named.
fn full_name(method: &Method, separator: &str) -> String {
    if method.class.is_empty() {
        method.name.clone()
    } else {
        format!("{}{separator}{}", method.class, method.name)
    }
}

/// What stands between class and method in the names of a VM's constituents (`>>` in
/// Smalltalk, `.` in Java): methods that are inlined have to be called the same. A
/// full stop where no constituent shows it.
fn separator_of(trace: &Trace) -> &str {
    let of_one = |constituent: &'_ Constituent| {
        let method = trace.methods.get(&constituent.method?)?;
        let from = constituent
            .name
            .strip_prefix(&method.class)
            .filter(|_| !method.class.is_empty())?;
        let between = from.strip_suffix(&method.name)?;
        (1..=MAX_SEPARATOR).contains(&between.len()).then(|| {
            constituent.name.len() - from.len()..constituent.name.len() - method.name.len()
        })
    };
    trace
        .code
        .constituents
        .iter()
        .find_map(|constituent| constituent.name.get(of_one(constituent)?))
        .unwrap_or(".")
}

/// Whether a sample somewhere in a constituent leaves open where in a method it is. A
/// trampoline or a PIC has no inside: its name is the whole answer.
fn has_an_inside(constituent: &Constituent) -> bool {
    constituent.method.is_some()
        || matches!(
            constituent.kind,
            ConstituentKind::Method | ConstituentKind::Block
        )
}

fn region_of(constituent: &Constituent) -> Region {
    match constituent.kind {
        ConstituentKind::Interpreter => Region::Interpreter,
        _ => Region::Generated,
    }
}

fn line_of(method: &Method, pc: vmscope_records::BytecodePc) -> Option<u32> {
    let after = method.lines.partition_point(|entry| entry.from <= pc);
    method
        .lines
        .get(after.checked_sub(1)?)
        .map(|entry| entry.line)
}

fn frame_named(name: &str) -> Frame {
    Frame {
        name: name.to_owned(),
        file: String::new(),
        line: None,
        bytecode: None,
    }
}

/// Where a name comes from matters to a reader for stubs and made-up names only; a
/// function that has both a symbol and DWARF is one entry.
fn kind_of_source(source: SymbolSource) -> SymbolSource {
    match source {
        SymbolSource::Plt | SymbolSource::Kallsyms => source,
        _ => SymbolSource::SymbolTable,
    }
}

fn worse(exactness: Exactness) -> Exactness {
    match exactness {
        Exactness::Exact => Exactness::Approximate,
        other => other,
    }
}
