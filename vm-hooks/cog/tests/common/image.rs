//! Memory of a Cog VM made by a test: variables, objects, bytecode table and code zone in 32-bit or 64-bit
//! layout.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that fails is to panic")]

use std::sync::Arc;

use vmscope_cog::{Bytecodes, Encoding};
use vmscope_process::testing::FakeMemory;
use vmscope_process::{MapEntry, ProcessView, Symbol, SymbolKind};
use vmscope_records::{Avma, FileOffset, Pid};

const VARIABLES: u64 = 0x10_0000;
const OBJECTS: u64 = 0x20_0000;
pub const ZONE: u64 = 0x40_0000;
pub const METHODS: u64 = ZONE + 0x100;
pub const LIMIT: u64 = ZONE + 0x1_0000;

/// Class indexes.
pub const ARRAY: u32 = 51;
pub const SYMBOL: u32 = 60;
pub const POINT: u32 = 61;
pub const POINT_CLASS: u32 = 62;
pub const STRING: u32 = 63;
pub const LARGE_POSITIVE: u32 = 33;
const CLASS_SLOTS: u64 = 9;
const METACLASS_SLOTS: u64 = 6;

pub struct Image {
    pub memory: FakeMemory,
    pub symbols: Vec<Symbol>,
    pub word: usize,
    objects: u64,
    variables: u64,
    classes: Vec<u64>,
    free: u64,
    pub nil: u64,
}

impl Image {
    /// A VM with the classes `Array`, `Symbol`, `ByteString`, `LargePositiveInteger`, `Point` and
    /// `Point class`.
    pub fn new(word: usize) -> Self {
        Self::with_zone(word, LIMIT)
    }

    /// Likewise, with a code zone up to `limit`.
    pub fn with_zone(word: usize, limit: u64) -> Self {
        let mut image = Image {
            memory: FakeMemory::new().with_pointer_bytes(word),
            symbols: Vec::new(),
            word,
            objects: OBJECTS,
            variables: VARIABLES,
            classes: vec![0; 1024],
            free: METHODS,
            nil: 0,
        };
        image
            .memory
            .put(Avma(ZONE), vec![0; (limit - ZONE) as usize]);
        let array = image.class(b"Array");
        let symbol = image.class(b"Symbol");
        let point = image.class(b"Point");
        let metaclass = image.object(1, 1, &[0, 0, 0, 0, 0, point]);
        let string = image.class(b"ByteString");
        let large = image.class(b"LargePositiveInteger");
        for (index, class) in [
            (ARRAY, array),
            (SYMBOL, symbol),
            (POINT, point),
            (POINT_CLASS, metaclass),
            (STRING, string),
            (LARGE_POSITIVE, large),
        ] {
            image.classes[index as usize] = class;
        }
        let page = image.object(16, 2, &image.classes.clone());
        let roots = image.object(16, 2, &[page]);
        let not_understood = image.symbol(b"doesNotUnderstand:");
        let plus = image.symbol(b"+");
        let one = image.tagged(1);
        let selectors = image.object(ARRAY, 2, &[plus, one]);
        let mut special = vec![0; 60];
        for constant in &mut special[..3] {
            *constant = image.object(POINT, 0, &[]);
        }
        image.nil = special[0];
        (special[7], special[20], special[23]) = (array, not_understood, selectors);
        let special = image.object(ARRAY, 2, &special);
        for (name, value) in [
            ("hiddenRootsObj", roots),
            ("specialObjectsOop", special),
            ("codeBase", ZONE),
            ("methodZoneBase", METHODS),
            ("mzFreeStart", METHODS),
            ("youngReferrers", limit),
            ("limitAddress", limit),
            ("cmEntryOffset", 48),
            ("cmNoCheckEntryOffset", 71),
            ("cbNoSwitchEntryOffset", 48),
            ("classNameIndex", 6),
            ("thisClassIndex", 5),
            ("metaclassNumSlots", METACLASS_SLOTS),
            ("gcMode", 0),
            ("statFullGCs", 3),
        ] {
            image.variable(name, value);
        }
        image
    }

    pub fn word_bytes(&self, value: u64) -> Vec<u8> {
        value.to_le_bytes()[..self.word].to_vec()
    }

    /// A new variable, or another value for a known one.
    pub fn variable(&mut self, name: &str, value: u64) {
        let known = self.symbols.iter().find(|symbol| symbol.name == name);
        let at = known.map_or(Avma(self.variables), |symbol| symbol.address);
        if known.is_none() {
            self.add_symbol(name, at, self.word as u64, SymbolKind::Object);
            self.variables += 8;
        }
        let bytes = self.word_bytes(value);
        self.memory.write(at, &bytes);
    }

    pub fn add_symbol(&mut self, name: &str, address: Avma, size: u64, kind: SymbolKind) {
        self.symbols.push(Symbol {
            name: name.to_owned(),
            address,
            size,
            kind,
        });
    }

    pub fn address(&self, name: &str) -> Avma {
        let symbol = self.symbols.iter().find(|symbol| symbol.name == name);
        symbol.unwrap().address
    }

    fn put_object(&mut self, class: u32, format: u64, slots: u64, body: &[u8]) -> u64 {
        let mut at = self.objects;
        let count = slots.min(255);
        if count == 255 {
            self.memory
                .write(Avma(at), &(slots | 255 << 56).to_le_bytes());
            at += 8;
        }
        let header = u64::from(class) | format << 24 | count << 56;
        self.memory.write(Avma(at), &header.to_le_bytes());
        self.memory.write(Avma(at + 8), body);
        self.objects = (at + 8 + body.len() as u64).next_multiple_of(8);
        at
    }

    /// An object with pointers.
    pub fn object(&mut self, class: u32, format: u64, slots: &[u64]) -> u64 {
        let body: Vec<u8> = slots
            .iter()
            .flat_map(|slot| self.word_bytes(*slot))
            .collect();
        self.put_object(class, format, slots.len() as u64, &body)
    }

    /// An object with bytes; `base` is the format without unused bytes.
    pub fn bytes(&mut self, class: u32, base: u64, bytes: &[u8]) -> u64 {
        let slots = bytes.len().div_ceil(self.word);
        let mut body = bytes.to_vec();
        body.resize(slots * self.word, 0);
        let unused = (body.len() - bytes.len()) as u64;
        self.put_object(class, base + unused, slots as u64, &body)
    }

    pub fn symbol(&mut self, name: &[u8]) -> u64 {
        self.bytes(SYMBOL, 16, name)
    }

    fn class(&mut self, name: &[u8]) -> u64 {
        let name = self.symbol(name);
        let mut slots = [0; CLASS_SLOTS as usize];
        slots[6] = name;
        let metaclass = POINT_CLASS;
        self.object(metaclass, 1, &slots)
    }

    /// A text outside the objects' structure.
    pub fn objects_string(&mut self, text: &[u8]) -> u64 {
        let at = self.objects;
        self.memory.write(Avma(at), text);
        self.objects = (at + text.len() as u64).next_multiple_of(8);
        at
    }

    pub fn class_at(&self, index: u32) -> u64 {
        self.classes[index as usize]
    }

    /// A tagged integer.
    pub fn tagged(&self, value: i64) -> u64 {
        match self.word {
            4 => u64::from((value as u32) << 1 | 1),
            _ => ((value << 3) | 1).cast_unsigned(),
        }
    }

    /// The binding of a class, as methods have it.
    pub fn binding(&mut self, class: u64) -> u64 {
        self.object(ARRAY, 1, &[0, class])
    }

    /// A compiled method: header, literals, bytecodes.
    pub fn method(&mut self, header: i64, literals: &[u64], bytecodes: &[u8]) -> u64 {
        let mut body = self.word_bytes(self.tagged(header));
        for literal in literals {
            body.extend(self.word_bytes(*literal));
        }
        body.extend(bytecodes);
        self.bytes(ARRAY, 24, &body)
    }

    /// The VM's table of bytecodes, in its own form.
    pub fn table(&mut self, sets: &[Encoding]) {
        let at = Avma(0x3_0000);
        let mut table = Vec::new();
        for set in sets {
            let set = Bytecodes::known(*set);
            for code in 0..=u8::MAX {
                let one = set.get(code);
                table.extend(self.word_bytes(0x1234));
                table.extend(self.word_bytes(u64::from(one.has_span) * 0x5678));
                table.extend(self.word_bytes(0));
                let flag = |is_set, bit: u8| u8::from(is_set) << bit;
                let flags = flag(one.is_return, 2)
                    | flag(one.creates_block, 3)
                    | flag(one.is_mapped, 4)
                    | flag(one.is_mapped_in_block, 5);
                table.extend([0, 0, one.bytes, flags, 0, 0, 0, 0]);
            }
        }
        let size = table.len() as u64;
        self.memory.put(at, table);
        self.add_symbol("generatorTable", at, size, SymbolKind::Object);
    }

    /// Adds an entry to the zone; returns its address.
    pub fn entry(&mut self, entry: &Entry) -> u64 {
        let at = self.free;
        let size = entry.code.len() as u64 + 16 + 3 * self.word as u64;
        let mut bytes = 0x0080_0000_0a00_0035_u64.to_le_bytes().to_vec();
        let bits = u32::from(entry.kind) << 8
            | u32::from(entry.is_full_block) << 12
            | 3 << 13
            | u32::from(entry.stack_check) << 20;
        bytes.extend(bits.to_le_bytes());
        bytes.extend((size as u16).to_le_bytes());
        bytes.extend(entry.block_entry.to_le_bytes());
        bytes.extend(self.word_bytes(entry.method));
        bytes.extend(self.word_bytes(self.tagged(entry.header)));
        bytes.extend(self.word_bytes(entry.selector));
        bytes.extend(&entry.code);
        self.memory.write(Avma(at), &bytes);
        self.free = (at + size).next_multiple_of(8);
        self.variable("mzFreeStart", self.free);
        at
    }

    /// Bytes of a method's header.
    pub fn header_bytes(&self) -> usize {
        16 + 3 * self.word
    }

    pub fn process(&self) -> ProcessView {
        let mapping = |start, end, name: &[u8], inode| MapEntry {
            start: Avma(start),
            end: Avma(end),
            offset: FileOffset(0),
            device: 0,
            inode,
            name: name.to_vec(),
            readable: true,
            writable: true,
            executable: true,
        };
        let mappings = vec![
            mapping(0x1_0000, OBJECTS, b"/opt/vm", 7),
            mapping(ZONE, LIMIT, b"", 0),
        ];
        ProcessView::fake(Pid(1), Arc::new(self.memory.clone()), mappings)
            .with_symbols("/opt/vm", self.symbols.clone())
    }
}

/// An entry of the zone.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    pub kind: u8,
    pub is_full_block: bool,
    pub stack_check: u16,
    pub block_entry: u16,
    pub method: u64,
    pub header: i64,
    pub selector: u64,
    /// Code and map: the bytes after the header.
    pub code: Vec<u8>,
}

/// Annotations of a map.
pub const BYTECODE: u8 = 5;
pub const SEND: u8 = 7;

/// A map of annotated places behind `origin`, ascending: its bytes in memory order, at the end of code.
pub fn map(origin: u32, places: &[(u32, u8)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut at = origin;
    for (place, annotation) in places {
        let distance = place - at;
        if distance >= 32 {
            bytes.push((distance / 32) as u8);
        }
        bytes.push(annotation << 5 | (distance % 32) as u8);
        at = *place;
    }
    bytes.push(0);
    bytes.reverse();
    bytes
}

/// A method of `Point class` with a jump back, a block that returns from the method, and a send. V3:
/// 112 self, 204 send, 163 jump back, 143 makes a block, 124 and 125 return from a block, 120 returns.
pub fn with_block(image: &mut Image) -> Entry {
    let class = image.class_at(POINT_CLASS);
    let binding = image.binding(class);
    let selector = image.symbol(b"origin:corner:");
    let bytecodes = [112, 204, 163, 252, 143, 1, 0, 4, 112, 204, 124, 125, 120];
    let method = image.method(2, &[selector, binding], &bytecodes);
    let header = image.header_bytes();
    let block_at = 0xa0;
    let block_entry = 0xe0;
    let mut code = vec![0x90; 0xf0 - header];
    let mut block = (block_at as u16).to_le_bytes().to_vec();
    // Starts behind the bytecode that makes it.
    let start = 3 * image.word + 8;
    block.extend((start as u16).to_le_bytes());
    block.extend([0; 4]);
    block.extend((3_u32 << 8 | 0x20 << 20).to_le_bytes());
    let inside = block_at - header;
    code[inside..inside + block.len()].copy_from_slice(&block);
    let places = [
        (0x60, BYTECODE),
        (0x70, SEND),
        (0x98, BYTECODE),
        (0xc0, BYTECODE),
        (0xd0, SEND),
        (0xd8, BYTECODE),
    ];
    code.extend(map(71, &places));
    Entry {
        kind: 2,
        stack_check: 0x60,
        block_entry,
        method,
        header: 2,
        code,
        ..Entry::default()
    }
}
