//! WebAssembly's machine code, which all isolates share.
//!
//! A `WasmCodeManager` maps regions of addresses to modules (`NativeModule`). A module has a map from first
//! instructions to pieces of code (`WasmCode`), and a vector of new pieces that V8 has not put into the map
//! yet. (V8's `wasm/wasm-code-manager.h`, 10.2 to 13.6; 14.6 by its memory.)

pub mod listing;
pub mod module;

use std::hash::Hasher as _;

use rustc_hash::{FxHashMap, FxHasher};
use vmscope_process::{AdapterError, Memory, known};
use vmscope_records::Avma;

use crate::registry::MAX_CODE;
use crate::tree::{self, KEY, ROOT, VALUE};
use crate::versions::WasmFields;

/// V8's variable with the address of the `WasmCodeManager`.
pub(crate) const STATE: &str = "_ZN2v88internal4wasm12_GLOBAL__N_117global_wasm_stateE";

/// The function that returns this address, for binaries without local symbols.
pub(crate) const GETTER: &str = "_ZN2v88internal4wasm18GetWasmCodeManagerEv";

/// Maximum number of regions. V8's limit of address space is smaller.
const MAX_REGIONS: usize = 1 << 14;

/// Bytes of a map; the vector of new pieces follows.
const MAP: u64 = 48;

/// Bytes from the begin of a `WasmCode` that hold all fields.
const HEADER: usize = 128;

/// Offsets in a `WasmCode`: its module, its first instruction.
const MODULE: usize = 0;
const START: usize = 8;

/// Maximum bytes of a piece of code's tables.
const MAX_TABLES: usize = 16 << 20;

/// Largest module whose names are read, in bytes.
const MAX_MODULE: u64 = 64 << 20;

/// A region of addresses with the code of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Region {
    /// First address.
    pub start: Avma,
    /// First address after it.
    pub end: Avma,
    /// The `NativeModule`.
    pub module: Avma,
}

/// Use of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WasmKind {
    /// A function by the baseline compiler.
    Liftoff,
    /// A function by the optimising compiler.
    Turbofan,
    /// Calls an imported function.
    Import,
    /// Jumps to functions.
    JumpTable,
}

/// A piece of machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WasmCode {
    /// First instruction.
    pub start: Avma,
    /// First address after the instructions.
    pub end: Avma,
    /// The `WasmCode`.
    pub object: Avma,
    /// The `NativeModule`.
    pub module: Avma,
    /// Use.
    pub kind: WasmKind,
    /// Number of the function in its module; `None` for jump tables.
    pub index: Option<u32>,
    /// Its tables.
    pub tables: WasmTables,
}

/// Tables of a piece of code: source positions, then inlined calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WasmTables {
    /// First byte of the source positions.
    pub start: Avma,
    /// Bytes of source positions.
    pub positions: u32,
    /// Bytes of inlined calls.
    pub inlined: u32,
}

/// Bytes of an inlined call: number of the called function (32 bits), whether it was a tail call (8 bits), position
/// (64 bits).
const INLINED: usize = 13;

impl WasmTables {
    /// The source positions, and the inlined calls in the form of [`crate::inlining`].
    ///
    /// # Errors
    /// Failed reads.
    pub fn read(&self, memory: &dyn Memory) -> Result<(Vec<u8>, Vec<u8>), AdapterError> {
        let length = u64::from(self.positions) + u64::from(self.inlined);
        let tables = memory.read_vec(self.start, length, MAX_TABLES);
        let mut positions = tables.map_err(failed())?;
        let inlined = positions.split_off(positions.len().min(self.positions as usize));
        let (calls, _) = inlined.as_chunks::<INLINED>();
        let calls = calls.iter().flat_map(|[f0, f1, f2, f3, _, position @ ..]| {
            let function = [*f0, *f1, *f2, *f3, 0, 0, 0, 0];
            [*position, function].concat()
        });
        Ok((positions, calls.collect()))
    }
}

/// The bytes of a module in V8's memory, as in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleBytes {
    /// First byte.
    pub start: Avma,
    /// Number of bytes.
    pub size: u64,
}

impl ModuleBytes {
    /// A hash of the contents: of all bytes, or of pieces of a large module.
    ///
    /// # Errors
    /// Failed reads of all memory.
    pub fn hash(&self, memory: &dyn Memory) -> Result<u64, AdapterError> {
        const PIECE: u64 = 4096;
        const PIECES: u64 = 16;
        let last = self.size.saturating_sub(PIECE);
        let mut pieces: Vec<Avma> = (0..=PIECES)
            .map(|number| Avma(self.start.0.saturating_add(last * number / PIECES)))
            .collect();
        pieces.dedup();
        let mut bytes = Vec::new();
        let length = usize::try_from(PIECE.min(self.size)).unwrap_or(0);
        let read = memory.read_each(&pieces, length, &mut bytes);
        let read = read.map_err(AdapterError::reading("WebAssembly module"))?;
        let mut hasher = FxHasher::default();
        for (piece, is_read) in bytes.chunks_exact(length.max(1)).zip(read) {
            if is_read {
                hasher.write(piece);
            }
        }
        Ok(hasher.finish())
    }
}

/// WebAssembly in a V8.
#[derive(Clone, Copy, Debug)]
pub struct Wasm {
    /// V8's variable that holds the address of the `WasmCodeManager`.
    variable: Avma,
    fields: WasmFields,
}

impl Wasm {
    /// WebAssembly by the addresses of [`STATE`] or [`GETTER`]; `None` without both.
    pub(crate) fn find(
        memory: &dyn Memory,
        (state, getter): (Option<Avma>, Option<Avma>),
        fields: WasmFields,
    ) -> Option<Self> {
        let by_getter = || {
            let getter = getter?;
            let mut code = [0; 8];
            memory.read_into(getter, &mut code).ok()?;
            // x86-64: mov rax, [rip + distance]; ret
            let [0x48, 0x8b, 0x05, d0, d1, d2, d3, 0xc3] = code else {
                return None;
            };
            let distance = i32::from_le_bytes([d0, d1, d2, d3]);
            Some(Avma(
                getter
                    .0
                    .wrapping_add(7)
                    .wrapping_add_signed(distance.into()),
            ))
        };
        let variable = state.or_else(by_getter)?;
        Some(Wasm { variable, fields })
    }

    /// Regions of all modules, ascending; none before V8 starts.
    ///
    /// # Errors
    /// Failed reads.
    pub fn regions(&self, memory: &dyn Memory) -> Result<Vec<Region>, AdapterError> {
        let failed = AdapterError::reading("list of WebAssembly modules");
        let manager = memory.read_u64(self.variable).map_err(&failed)?;
        if manager == 0 {
            return Ok(Vec::new());
        }
        let root = Avma(manager.wrapping_add(self.fields.modules + ROOT));
        let root = memory.read_u64(root).map(Avma).map_err(&failed)?;
        // A list that changes is read again by the next poll.
        let mut damage = None;
        let nodes = tree::nodes(memory, vec![root], (MAX_REGIONS, &mut damage))?;
        let mut regions: Vec<Region> = nodes
            .into_iter()
            .map(|node| Region {
                start: Avma(node[KEY]),
                end: Avma(node[VALUE]),
                module: Avma(node[VALUE + 1]),
            })
            .filter(|region| region.start < region.end && region.module.0 != 0)
            .collect();
        regions.sort_unstable();
        Ok(regions)
    }

    /// All code of `regions`, by ascending address, and whether some is missing.
    ///
    /// # Errors
    /// Failed reads.
    pub fn all(
        &self,
        memory: &dyn Memory,
        regions: &[Region],
    ) -> Result<(Vec<WasmCode>, Option<&'static str>), AdapterError> {
        let mut damage = None;
        let mut objects = Vec::new();
        for module in modules(regions) {
            let root = self.root(memory, module)?;
            let nodes = tree::nodes(memory, vec![root], (MAX_CODE, &mut damage))?;
            objects.extend(nodes.iter().map(|node| (Avma(node[VALUE]), module)));
            match self.new_objects(memory, module)? {
                Some(new) => objects.extend(new.into_iter().map(|object| (object, module))),
                None => damage = Some("new code of a WebAssembly module is unreadable"),
            }
        }
        if objects.len() > MAX_CODE {
            damage = Some(tree::TOO_MUCH);
            objects.truncate(MAX_CODE);
        }
        Ok((sorted(self.describe(memory, &objects)?), damage))
    }

    /// Code at `addresses`, by ascending address.
    ///
    /// # Errors
    /// Failed reads.
    pub fn at(
        &self,
        memory: &dyn Memory,
        regions: &[Region],
        addresses: &[Avma],
    ) -> Result<Vec<WasmCode>, AdapterError> {
        let mut places = Vec::new();
        for at in addresses {
            if let Some(region) = region_at(regions, *at) {
                places.push((region.module, *at));
            }
        }
        let mut roots = FxHashMap::default();
        for (module, _) in &places {
            if !roots.contains_key(module) {
                roots.insert(*module, self.root(memory, *module)?);
            }
        }
        let in_tree = |(module, at): &(Avma, Avma)| Some((*roots.get(module)?, *at));
        let in_tree: Vec<(Avma, Avma)> = places.iter().filter_map(in_tree).collect();
        let nodes = tree::last_before(memory, &in_tree)?;
        let objects = places.iter().zip(nodes);
        let mut objects: Vec<(Avma, Avma)> = objects
            .filter_map(|((module, _), node)| Some((Avma(node?[VALUE]), *module)))
            .collect();
        objects.sort_unstable();
        objects.dedup();
        let holds = |code: &WasmCode, at: Avma| code.start <= at && at <= code.end;
        let mut found = self.describe(memory, &objects)?;
        found.retain(|code| addresses.iter().any(|at| holds(code, *at)));
        places.retain(|(_, at)| !found.iter().any(|code| holds(code, *at)));
        let mut missing: Vec<Avma> = places.into_iter().map(|(module, _)| module).collect();
        missing.sort_unstable();
        missing.dedup();
        for module in missing {
            let new = self.new_objects(memory, module)?;
            let new = new.unwrap_or_default().into_iter();
            let new: Vec<_> = new.map(|object| (object, module)).collect();
            let new = self.describe(memory, &new)?.into_iter();
            found.extend(new.filter(|code| addresses.iter().any(|at| holds(code, *at))));
        }
        Ok(sorted(found))
    }

    /// Checks `codes`; omits the pieces that V8 has removed.
    ///
    /// # Errors
    /// Failed reads.
    pub fn still(
        &self,
        memory: &dyn Memory,
        codes: &[WasmCode],
    ) -> Result<Vec<WasmCode>, AdapterError> {
        let objects = codes.iter().map(|code| (code.object, code.module));
        let found = self.describe(memory, &objects.collect::<Vec<_>>())?;
        Ok(found
            .into_iter()
            .filter(|code| codes.contains(code))
            .collect())
    }

    /// The bytes of a module; `None` if they are unreadable.
    ///
    /// # Errors
    /// Failed reads of all memory.
    pub fn bytes_of(
        &self,
        memory: &dyn Memory,
        module: Avma,
    ) -> Result<Option<ModuleBytes>, AdapterError> {
        let vector = memory.read_u64(Avma(module.0.wrapping_add(self.fields.bytes)));
        let failed = AdapterError::reading("WebAssembly module");
        let Some(vector) = known(vector.map_err(&failed))? else {
            return Ok(None);
        };
        let words = memory.read_u64s(Avma(vector), 2, 2);
        let words = known(words.map_err(&failed))?;
        Ok(match words.as_deref() {
            Some([start, size]) if (1..=MAX_MODULE).contains(size) => Some(ModuleBytes {
                start: Avma(*start),
                size: *size,
            }),
            _ => None,
        })
    }

    /// The root of a module's map of code.
    fn root(&self, memory: &dyn Memory, module: Avma) -> Result<Avma, AdapterError> {
        let at = Avma(module.0.wrapping_add(self.fields.code + ROOT));
        let root = known(memory.read_u64(at).map_err(failed()))?;
        Ok(Avma(root.unwrap_or(0)))
    }

    /// New code of a module, outside of the map; `None` if it is unreadable.
    fn new_objects(
        &self,
        memory: &dyn Memory,
        module: Avma,
    ) -> Result<Option<Vec<Avma>>, AdapterError> {
        let at = Avma(module.0.wrapping_add(self.fields.code + MAP));
        let ends = known(memory.read_u64s(at, 2, 2).map_err(failed()))?;
        let Some([begin, end]) = ends.as_deref() else {
            return Ok(None);
        };
        let count = end.saturating_sub(*begin) / 8;
        let objects = memory.read_u64s(Avma(*begin), count, MAX_CODE);
        let objects = known(objects.map_err(failed()))?;
        Ok(objects.map(|objects| objects.into_iter().map(Avma).collect()))
    }

    /// Describes pairs of a `WasmCode` and its module. What is no whole piece of code is omitted.
    fn describe(
        &self,
        memory: &dyn Memory,
        objects: &[(Avma, Avma)],
    ) -> Result<Vec<WasmCode>, AdapterError> {
        let addresses: Vec<Avma> = objects.iter().map(|(object, _)| *object).collect();
        let mut bytes = Vec::new();
        let read = memory.read_each(&addresses, HEADER, &mut bytes);
        let read = read.map_err(failed())?;
        let (headers, _) = bytes.as_chunks::<HEADER>();
        let each = objects.iter().zip(headers).zip(read);
        let each = each.filter(|(_, is_read)| *is_read);
        Ok(each
            .filter_map(|((of, header), _)| self.code(*of, header))
            .collect())
    }

    fn code(&self, (object, module): (Avma, Avma), header: &[u8; HEADER]) -> Option<WasmCode> {
        let start = word(header, START)?;
        let size = half(header, self.fields.size)?.cast_signed();
        if word(header, MODULE)? != module.0 || size <= 0 {
            return None;
        }
        let flags = *header.get(self.fields.flags)?;
        let uses = self.fields.use_bits;
        Some(WasmCode {
            start: Avma(start),
            end: Avma(start.checked_add(u64::from(size.unsigned_abs()))?),
            object,
            module,
            kind: match (flags & ((1 << uses) - 1), flags >> uses & 3) {
                (0, 1) => WasmKind::Liftoff,
                (0, _) => WasmKind::Turbofan,
                (other, _) if other == self.fields.jump_table => WasmKind::JumpTable,
                _ => WasmKind::Import,
            },
            index: u32::try_from(half(header, self.fields.index)?.cast_signed()).ok(),
            tables: self.tables(header)?,
        })
    }

    /// Tables in a `WasmCode`: data of protected instructions, relocation data, source positions, inlined calls. Their
    /// sizes follow the instructions' size, but for that of the first table, which precedes the function's number.
    fn tables(&self, header: &[u8; HEADER]) -> Option<WasmTables> {
        let WasmFields {
            tables,
            size,
            index,
            ..
        } = self.fields;
        let half = |at| half(header, at);
        let before = u64::from(half(index - 4)?) + u64::from(half(size + 4)?);
        Some(WasmTables {
            start: Avma(word(header, tables)?.wrapping_add(before)),
            positions: half(size + 8)?,
            // Node.js 18 inlines no functions.
            inlined: match index - size {
                0x10 => 0,
                _ => half(size + 12)?,
            },
        })
    }
}

/// A word of 64 bits.
fn word(header: &[u8; HEADER], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*header.get(at..)?.first_chunk()?))
}

/// A word of 32 bits.
fn half(header: &[u8; HEADER], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*header.get(at..)?.first_chunk()?))
}

/// The region with an address.
#[must_use]
pub fn region_at(regions: &[Region], at: Avma) -> Option<&Region> {
    let after = regions.partition_point(|region| region.start <= at);
    let region = regions.get(after.checked_sub(1)?)?;
    (at < region.end).then_some(region)
}

fn failed() -> impl FnOnce(vmscope_process::MemoryError) -> AdapterError {
    AdapterError::reading("WebAssembly's code")
}

/// Modules of `regions`, each once.
fn modules(regions: &[Region]) -> Vec<Avma> {
    let mut modules: Vec<Avma> = regions.iter().map(|region| region.module).collect();
    modules.sort_unstable();
    modules.dedup();
    modules
}

/// Ascending, without code that overlaps code before.
fn sorted(mut codes: Vec<WasmCode>) -> Vec<WasmCode> {
    codes.sort_by_key(|code| code.start);
    let mut end = Avma(0);
    codes.retain(|code| {
        let is_behind = code.start >= end;
        end = if is_behind { code.end } else { end };
        is_behind
    });
    codes
}

#[cfg(test)]
mod tests;
