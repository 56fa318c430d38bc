//! Names, cases and maps of the zone's entries.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, Memory, known};
use vmscope_records::Avma;

use crate::cog_method::{CogMethod, EntryKind};
use crate::heap::{Heap, Object};
use crate::listing::{Listing, ListingRoom};
use crate::map::{Flaw, Map, MapSource};
use crate::names::{ClassLayout, MethodName, Names};
use crate::pic::{self, Case, Target};
use crate::vm::{Vm, Zone};

/// Maximum bytes of a compiled method.
const MAX_METHOD: usize = 1 << 20;

/// Maximum number of bytecodes to walk over for the maps of one zone. A method counts once more for each inner
/// block. A zone of 16 MiB has about 20 million.
const MAX_STEPS: usize = 64 << 20;

/// Shown for a class or method that can't be read.
const UNKNOWN: &str = "?";

/// The selector that primitive 253 gives for a class without the method.
const NOT_UNDERSTOOD: &str = "#doesNotUnderstand:";

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name.
    pub name: Name,
    /// Cases of a closed PIC; empty if its code can't be decoded.
    pub cases: Vec<NamedCase>,
    /// Its map.
    pub map: Map,
    /// Maps of the blocks inside it, with offsets from the entry's start.
    pub block_maps: Vec<Map>,
}

/// The name of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// Unreadable.
    Unknown,
    /// A method or block.
    Method(MethodName),
    /// The selector of a PIC or of a freed entry.
    Selector(String),
}

/// A case of a closed PIC with names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCase {
    /// The receiver's class; empty if unknown.
    pub class: String,
    /// Name of the target method.
    pub target: String,
}

/// Describes entries of one zone.
#[derive(Debug)]
pub struct Describer<'z> {
    vm: &'z Vm,
    zone: &'z Zone,
    names: Option<Names<'z>>,
    /// Classes of sends that are linked to PICs; found when first needed.
    linked: Option<FxHashMap<Avma, u32>>,
    /// Left of [`MAX_STEPS`].
    room: usize,
}

impl<'z> Describer<'z> {
    /// Describes entries of `zone` with objects in `memory`, which must be as old as the zone.
    ///
    /// # Errors
    /// Errors after which no read can succeed.
    pub fn new(vm: &'z Vm, zone: &'z Zone, memory: &'z dyn Memory) -> Result<Self, AdapterError> {
        let names = match Heap::of(&vm.variables, memory) {
            Ok(heap) => {
                let classes = ClassLayout::of(&vm.variables, &heap, memory)?;
                Some(Names::new(heap, classes))
            }
            Err(AdapterError::MissingSymbol { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(Describer {
            vm,
            zone,
            names,
            linked: None,
            room: MAX_STEPS,
        })
    }

    /// Describes an entry. Parts that can't be read are unknown.
    ///
    /// # Errors
    /// Errors after which no read can succeed.
    pub fn describe(&mut self, entry: &CogMethod) -> Result<Described, AdapterError> {
        let mut described = Described {
            name: Name::Unknown,
            cases: Vec::new(),
            map: Map::Frameless,
            block_maps: Vec::new(),
        };
        match entry.kind {
            EntryKind::Method => self.describe_method(entry, &mut described)?,
            EntryKind::ClosedPic => {
                described.name = self.selector(entry)?;
                described.cases = self.cases(entry)?;
            }
            EntryKind::OpenPic | EntryKind::Free => described.name = self.selector(entry)?,
        }
        Ok(described)
    }

    /// Bytecodes of a method or full block as text; `None` for unreadable bytecodes, or without `room`.
    ///
    /// # Errors
    /// Errors after which no read can succeed.
    pub fn listing(
        &mut self,
        entry: &CogMethod,
        room: &mut ListingRoom,
    ) -> Result<Option<Listing>, AdapterError> {
        let Some(names) = self
            .names
            .as_mut()
            .filter(|_| entry.kind == EntryKind::Method)
        else {
            return Ok(None);
        };
        let heap = *names.heap();
        let Some(code) = known(heap.object(entry.method))? else {
            return Ok(None);
        };
        // The object of a method with generated code has the code's address in place of its header.
        if known(heap.slot(&code, 0))? != Some(entry.at) {
            return Ok(None);
        }
        room.listing(names, &self.vm.bytecodes, code, entry.header)
    }

    fn selector(&self, entry: &CogMethod) -> Result<Name, AdapterError> {
        let Some(names) = &self.names else {
            return Ok(Name::Unknown);
        };
        let selector = known(names.selector(entry.selector))?;
        Ok(selector.map_or(Name::Unknown, Name::Selector))
    }

    fn describe_method(
        &mut self,
        entry: &CogMethod,
        described: &mut Described,
    ) -> Result<(), AdapterError> {
        let flawed = |stack_check| match stack_check {
            0 => Map::Frameless,
            _ => Map::Flawed(Flaw::Bytecodes),
        };
        described.map = flawed(entry.stack_check);
        let blocks = entry.blocks.iter();
        described.block_maps = blocks.map(|block| flawed(block.stack_check)).collect();
        let Some(names) = &mut self.names else {
            return Ok(());
        };
        let Some(code) = known(names.heap().object(entry.method))? else {
            return Ok(());
        };
        let zone = self.zone;
        let heap = *names.heap();
        let header_of = |code: &Object| header_of(&heap, zone, code);
        if let Some(name) = known(names.method(&code, entry.header, &header_of))? {
            described.name = Name::Method(name);
        }
        let bytes = known(heap.bytes(&code, MAX_METHOD))?;
        let bytecodes = self.vm.bytecodes.of_method(entry.header);
        let (Some(bytes), Some(bytecodes)) = (bytes, bytecodes) else {
            return Ok(());
        };
        let steps = bytes.len().saturating_mul(1 + entry.blocks.len());
        let Some(room) = self.room.checked_sub(steps) else {
            return Ok(());
        };
        self.room = room;
        let source = MapSource {
            method: entry,
            code: zone.methods.code(entry),
            bytes: &bytes,
            bytecodes,
            word: heap.word(),
            origin: self.vm.origin(entry),
        };
        (described.map, described.block_maps) = source.maps();
        Ok(())
    }

    fn cases(&mut self, entry: &CogMethod) -> Result<Vec<NamedCase>, AdapterError> {
        let (vm, zone) = (self.vm, self.zone);
        let Some(names) = &mut self.names else {
            return Ok(Vec::new());
        };
        let (checked, unchecked) = vm.entry_offsets();
        let linked = self.linked.get_or_insert_with(|| {
            pic::linked_classes(&zone.methods, checked, &|method| vm.origin(method))
        });
        let heap = *names.heap();
        let word = usize::try_from(heap.word()).unwrap_or(8);
        let cases = pic::cases(entry, zone.methods.code(entry), word, unchecked, linked);
        let mut named = Vec::new();
        for Case {
            class_index,
            target,
        } in cases
        {
            let class = match class_index {
                Some(index) => known(names.class_at(index))?.unwrap_or_else(|| UNKNOWN.to_owned()),
                None => String::new(),
            };
            let (code, header) = match target {
                Target::NotUnderstood => {
                    let target = NOT_UNDERSTOOD.to_owned();
                    named.push(NamedCase { class, target });
                    continue;
                }
                Target::Method(at) => match zone.methods.at(at) {
                    Some(method) => (known(heap.object(method.method))?, Some(method.header)),
                    None => (None, None),
                },
                Target::Interpreted(oop) => match known(heap.object(oop))? {
                    Some(code) => (Some(code), known(header_of(&heap, zone, &code))?),
                    None => (None, None),
                },
            };
            let name = match (code, header) {
                (Some(code), Some(header)) => {
                    let header_of = |code: &Object| header_of(&heap, zone, code);
                    known(names.method(&code, header, &header_of))?
                }
                _ => None,
            };
            named.push(NamedCase {
                class,
                target: name.map_or_else(|| UNKNOWN.to_owned(), |name| name.to_string()),
            });
        }
        Ok(named)
    }
}

/// The header of a compiled method, untagged. The object of a method with generated code has the code's
/// address in its place.
pub(crate) fn header_of(heap: &Heap<'_>, zone: &Zone, code: &Object) -> Result<i64, AdapterError> {
    let first = heap.slot(code, 0)?;
    if let Some(header) = heap.integer(first) {
        return Ok(header);
    }
    match zone.methods.at(first) {
        Some(method) => Ok(method.header),
        None => Err(AdapterError::Implausible {
            what: "header of a compiled method",
            value: first.0,
            at: code.at,
        }),
    }
}
