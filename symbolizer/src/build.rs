//! Giving places their names: from a trace and its symbols to a profile.

use crate::profile::{Case, Entry, EntryId, EntryKind, Frame, Profile, Region, Site, SiteId};
use crate::symbols::SymbolTable;
use crate::trace::{Place, Trace};
use crate::zone::CodeIndex;
use rustc_hash::FxHashMap;
use vmscope_records::{
    ChainFrame, Constituent, ConstituentKind, Exactness, FileOffset, Method, ModuleKey,
    NativeFrame, PcMap, Position, SymbolOwner, SymbolSource, Symbols,
};

/// Makes the profile of a trace. `symbols` are those that the recording does not
/// hold itself. With `inlined`, a sample in an inlined native function belongs to
/// that; without, to the function that it was inlined into.
#[must_use]
pub fn profile_of(trace: Trace, symbols: Vec<Symbols>, inlined: bool) -> Profile {
    let mut builder = Builder {
        trace: &trace,
        table: SymbolTable::new(trace.symbols.iter().chain(&symbols)),
        inlined,
        entries: Interner::default(),
        sites: Interner::default(),
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

/// Values, each once, by index.
#[derive(Debug)]
struct Interner<T> {
    values: Vec<T>,
    index: FxHashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner {
            values: Vec::new(),
            index: FxHashMap::default(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Interner<T> {
    fn put(&mut self, value: T) -> u32 {
        if let Some(&index) = self.index.get(&value) {
            return index;
        }
        // There are at most as many as places, which are counted in 32 bits.
        let index = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(value.clone());
        self.index.insert(value, index);
        index
    }
}

struct Builder<'a> {
    trace: &'a Trace,
    table: SymbolTable<'a>,
    inlined: bool,
    entries: Interner<Entry>,
    sites: Interner<Site>,
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
        let Some(constituent) = self.trace.code.constituents.get(code as usize) else {
            return self.plain_site("(not mapped)", Region::Unknown, EntryKind::Unnamed);
        };
        if let Some((cover, chain)) = constituent.map.cover(offset)
            && let Some((innermost, outer)) = chain.split_first()
        {
            return self.covered_site(constituent, innermost, outer, cover.exactness);
        }
        let entry = self.constituent_entry(constituent, &constituent.name);
        let own = self.own_frame(constituent);
        let (range, exactness) = match &constituent.map {
            PcMap::Boundary { exactness, .. } => {
                (constituent.map.boundary_range(offset), *exactness)
            }
            _ => (None, Exactness::MethodOnly),
        };
        self.sites.put(Site {
            entry,
            from: range.and_then(|range| range.from),
            to: range.and_then(|range| range.to),
            bounded: range.is_some(),
            frame: own,
            via: Vec::new(),
            exactness: if constituent.kind == ConstituentKind::Method
                || constituent.kind == ConstituentKind::Block
            {
                exactness
            } else {
                // A trampoline or a PIC has no inside: its name is the whole answer.
                Exactness::Exact
            },
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
        let frame = self.frame(innermost);
        let name = if outer.is_empty() {
            constituent.name.clone()
        } else {
            frame.name.clone()
        };
        let entry = self.constituent_entry(constituent, &name);
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

    fn constituent_entry(&mut self, constituent: &Constituent, name: &str) -> EntryId {
        let region = match constituent.kind {
            ConstituentKind::Interpreter => Region::Interpreter,
            _ => Region::Generated,
        };
        let method = constituent
            .method
            .and_then(|key| self.trace.methods.get(&key));
        self.entries.put(Entry {
            name: name.to_owned(),
            region,
            kind: EntryKind::Code(constituent.kind.clone()),
            tier: constituent.tier.clone(),
            module: method.map_or_else(String::new, |method| method.class.clone()),
            cases: constituent.cases.iter().map(Case::from).collect(),
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
            name: method.map_or_else(|| "(unknown method)".to_owned(), full_name),
            file: method.map_or_else(String::new, |method| method.file.clone()),
            line,
            bytecode,
        }
    }
}

/// A method's name with its class, as VMProfiler writes it for Smalltalk and Java
/// tools for Java; the adapters' names carry their own separator otherwise.
fn full_name(method: &Method) -> String {
    if method.class.is_empty() {
        method.name.clone()
    } else {
        format!("{}.{}", method.class, method.name)
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
