//! Handwritten ELF files: classes, byte orders and machines beyond the local compiler.

use std::sync::Arc;

use crate::native_support::module;
use vmscope_records::{BuildId, FileOffset, Module, Symbols};
use vmscope_symbolizer::native::{
    Binaries, DebugFile, DebugFileRequest, FileBytes, MemoryFile, ResolveOptions, resolve_module,
};

const FUNC: u8 = 0x12;
const LOCAL_FUNC: u8 = 0x02;
const WEAK_FUNC: u8 = 0x22;
const LOCAL_NOTYPE: u8 = 0x00;
const OBJECT: u8 = 0x11;

/// Class, byte order and machine of a file.
#[derive(Clone, Copy, Debug)]
struct Kind {
    wide: bool,
    big: bool,
    machine: u16,
}

impl Kind {
    fn put(self, out: &mut Vec<u8>, value: u64, len: usize) {
        let bytes = value.to_le_bytes();
        if self.big {
            out.extend(bytes[..len].iter().rev());
        } else {
            out.extend(&bytes[..len]);
        }
    }

    /// An address, offset or size.
    fn word(self, out: &mut Vec<u8>, value: u64) {
        self.put(out, value, if self.wide { 8 } else { 4 });
    }

    /// A file with 0x100 bytes of code at offset 0x1000, address 0x40_1000, these
    /// symbols (name, address, size, info), and a build-id.
    fn file(self, symbols: &[(&str, u64, u64, u8)]) -> Vec<u8> {
        let (head_len, segment_len, section_len) = if self.wide {
            (64, 56, 64)
        } else {
            (52, 32, 40)
        };
        let mut table = Vec::new();
        let mut strings = vec![0];
        for (name, address, size, info) in [("", 0, 0, 0)].iter().chain(symbols) {
            let at = if name.is_empty() {
                0
            } else {
                strings.len() as u64
            };
            self.put(&mut table, at, 4);
            if !self.wide {
                self.word(&mut table, *address);
                self.word(&mut table, *size);
            }
            table.extend([*info, 0]);
            self.put(&mut table, u64::from(!name.is_empty()), 2);
            if self.wide {
                self.word(&mut table, *address);
                self.word(&mut table, *size);
            }
            strings.extend(name.as_bytes());
            strings.push(0);
        }
        let mut note = Vec::new();
        for value in [4, 3, 3] {
            self.put(&mut note, value, 4);
        }
        note.extend(b"GNU\0\xab\xcd\xef\0");
        let names = b"\0.text\0.symtab\0.strtab\0.note.gnu.build-id\0";
        let mut sections = vec![
            // Name, type, flags, address, size, link, entry size, bytes.
            (0, 0, 0, 0, 0, 0, 0, Vec::new()),
            (1, 1, 6, 0x40_1000, 0x100, 0, 0, vec![0x90; 0x100]),
            (
                7,
                2,
                0,
                0,
                table.len(),
                3,
                if self.wide { 24 } else { 16 },
                table,
            ),
            (15, 3, 0, 0, strings.len(), 0, 0, strings),
            (23, 7, 2, 0, note.len(), 0, 0, note),
            (0, 3, 0, 0, names.len(), 0, 0, names.to_vec()),
        ];
        let mut body = vec![0; 0x1000];
        let mut headers = Vec::new();
        for (name, kind, flags, address, size, link, entry, bytes) in &mut sections {
            let at = body.len() as u64;
            body.append(bytes);
            self.put(&mut headers, *name, 4);
            self.put(&mut headers, *kind, 4);
            self.word(&mut headers, *flags);
            self.word(&mut headers, *address);
            self.word(&mut headers, at);
            self.word(&mut headers, *size as u64);
            self.put(&mut headers, *link, 4);
            self.put(&mut headers, 0, 4);
            self.word(&mut headers, 1);
            self.word(&mut headers, *entry);
        }
        let mut head = b"\x7fELF".to_vec();
        head.extend([1 + u8::from(self.wide), 1 + u8::from(self.big), 1]);
        head.extend([0; 9]);
        self.put(&mut head, 3, 2);
        self.put(&mut head, self.machine.into(), 2);
        self.put(&mut head, 1, 4);
        self.word(&mut head, 0);
        self.word(&mut head, head_len);
        self.word(&mut head, body.len() as u64);
        self.put(&mut head, 0, 4);
        for value in [
            head_len,
            segment_len,
            1,
            section_len,
            sections.len() as u64,
            5,
        ] {
            self.put(&mut head, value, 2);
        }
        self.put(&mut head, 1, 4);
        if self.wide {
            self.put(&mut head, 5, 4);
        }
        for value in [0x1000, 0x40_1000, 0x40_1000, 0x100, 0x100] {
            self.word(&mut head, value);
        }
        if !self.wide {
            self.put(&mut head, 5, 4);
        }
        self.word(&mut head, 0x1000);
        body[..head.len()].copy_from_slice(&head);
        body.extend(headers);
        body
    }
}

struct Given(Vec<u8>);

impl Binaries for Given {
    fn module(&self, _: &Module) -> Result<Arc<dyn FileBytes>, String> {
        Ok(Arc::new(MemoryFile(self.0.clone())))
    }

    fn debug_file(&self, _: &DebugFileRequest<'_>) -> Vec<DebugFile> {
        Vec::new()
    }

    fn kernel_symbols(&self) -> Option<Vec<u8>> {
        None
    }
}

fn resolve(file: Vec<u8>, hits: &[u64]) -> Symbols {
    let hits: Vec<FileOffset> = hits.iter().map(|hit| FileOffset(*hit)).collect();
    let module = Module {
        build_id: BuildId::new(b"\xab\xcd\xef"),
        ..module("given".as_ref())
    };
    resolve_module(&module, &hits, &Given(file), &ResolveOptions::default())
}

/// (start, size, name) of each function.
fn found(symbols: &Symbols) -> Vec<(u64, u64, &str)> {
    let functions = symbols.functions.iter();
    functions.map(|f| (f.start.0, f.size, &*f.name)).collect()
}

#[test]
fn both_classes_and_byte_orders() {
    for (wide, big, machine) in [
        (true, false, 62),
        (true, true, 21),
        (false, false, 3),
        (false, true, 8),
        (true, false, 243),
    ] {
        let kind = Kind { wide, big, machine };
        let file = kind.file(&[
            ("beta", 0x40_1040, 0, LOCAL_FUNC),
            ("_Z5alphav", 0x40_1000, 0x10, FUNC),
            ("aaa", 0x40_1000, 0x10, WEAK_FUNC),
            ("data", 0x40_1030, 0, OBJECT),
        ]);
        let symbols = resolve(file, &[0x1000, 0x100f, 0x1020, 0x1040, 0x10ff, 0x1100]);
        assert_eq!(
            found(&symbols),
            [
                (0x1000, 0x10, "alpha()"),
                (0x1010, 0x30, ""),
                (0x1040, 0xc0, "beta"),
            ],
            "{kind:?} {symbols:?}"
        );
        let sized: Vec<bool> = symbols.functions.iter().map(|f| f.sized).collect();
        assert_eq!(sized, [true, false, false]);
        assert_eq!(symbols.functions[1].linkage_name, ".text");
    }
}

#[test]
fn mapping_symbols_name_nothing() {
    for (machine, name, expected) in [(183, "$x", "f"), (40, "$a", "f"), (62, "$x", "$x")] {
        let kind = Kind {
            wide: machine != 40,
            big: false,
            machine,
        };
        // Bit 0 marks Thumb code on 32-bit Arm only.
        let start = 0x40_1010 + u64::from(machine == 40);
        let file = kind.file(&[("f", start, 0, FUNC), (name, 0x40_1020, 0, LOCAL_NOTYPE)]);
        let symbols = resolve(file, &[0x1028]);
        assert_eq!(symbols.functions[0].name, expected, "{machine}");
        if machine != 62 {
            assert_eq!(symbols.functions[0].start, FileOffset(0x1010));
        }
    }
}

#[test]
fn nested_functions_come_in_pieces() {
    let kind = Kind {
        wide: true,
        big: false,
        machine: 62,
    };
    let file = kind.file(&[
        ("outer", 0x40_1000, 0x80, FUNC),
        ("inner", 0x40_1020, 0x10, FUNC),
    ]);
    let symbols = resolve(file, &[0x1004, 0x1024, 0x1044, 0x1050]);
    assert_eq!(
        found(&symbols),
        [
            (0x1000, 0x20, "outer"),
            (0x1020, 0x10, "inner"),
            (0x1030, 0x50, "outer"),
        ]
    );
}

/// Fuzzing find: the largest file offset overflows its address.
#[test]
fn segments_outside_of_the_file_hold_no_hit() {
    let kind = Kind {
        wide: true,
        big: false,
        machine: 62,
    };
    let mut file = kind.file(&[("f", 0x40_1000, 0, FUNC)]);
    file[64 + 8..64 + 16].fill(0xff);
    let symbols = resolve(file, &[0x1000, u64::MAX]);
    assert!(symbols.functions.is_empty(), "{symbols:?}");
    assert_eq!(symbols.note, "no sample lies in a code segment");
}

#[test]
fn lies_about_sizes_are_told() {
    let kind = Kind {
        wide: true,
        big: false,
        machine: 62,
    };
    let good = kind.file(&[("f", 0x40_1000, 0x10, FUNC)]);
    assert_eq!(resolve(good.clone(), &[0x1000]).note, "no line information");
    for (at, value, expected) in [
        // e_shentsize, e_shoff, e_shnum, e_phentsize.
        (58, 7_u64, "entries of"),
        (40, 1 << 40, "cannot read"),
        (60, 0xfeff, "cannot read"),
        (54, 9, "entries of"),
    ] {
        let mut bad = good.clone();
        let len = if at == 40 { 8 } else { 2 };
        bad[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
        let symbols = resolve(bad, &[0x1000]);
        assert!(symbols.note.contains(expected), "{at}: {}", symbols.note);
        assert!(symbols.functions.iter().all(|f| f.name.is_empty()));
    }
    // The symbol table's size, in its section header.
    let headers = usize::try_from(u64::from_le_bytes(good[40..48].try_into().unwrap())).unwrap();
    for size in [u64::MAX, 1 << 33, 1 << 24] {
        let mut bad = good.clone();
        let at = headers + 2 * 64 + 32;
        bad[at..at + 8].copy_from_slice(&size.to_le_bytes());
        let symbols = resolve(bad, &[0x1000]);
        assert!(symbols.note.contains(".symtab: "), "{}", symbols.note);
    }
}
