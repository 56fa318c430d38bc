//! Damaged ELF files cause no panic and bounded work, and results keep their guarantees (checked by
//! `fuzz_elf`).

use std::sync::OnceLock;

use crate::native_support::{Disk, module, run};
use proptest::prelude::*;
use vmscope_records::FileOffset;
use vmscope_symbolizer::native::{ResolveOptions, fuzz_elf, resolve_module};

/// Small programs with all kinds of sections.
fn seeds() -> &'static Vec<Vec<u8>> {
    static SEEDS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let text = "static inline __attribute__((always_inline)) int f(int x) { return x * x; }\n\
            int puts(const char *); int g(int x) { return f(x) + f(x + 1); }\n\
            int main(int n, char **v) { puts(v[0]); return g(n); }\n";
        std::fs::write(dir.join("s.c"), text).unwrap();
        let mut seeds = Vec::new();
        for line in [
            "cc -O2 -gdwarf-5 -o s s.c",
            "cc -O2 -gdwarf-4 -gsplit-dwarf -o s s.c",
            "cc -O2 -g -gz=zlib -fdebug-types-section -o s s.c",
            "cc -O2 -s -o s s.c",
        ] {
            if run(dir, line).is_some() {
                seeds.push(std::fs::read(dir.join("s")).unwrap());
            }
        }
        if run(dir, "xz -k s.c").is_some()
            && run(dir, "objcopy --add-section=.gnu_debugdata=s.c.xz s mini").is_some()
        {
            seeds.push(std::fs::read(dir.join("mini")).unwrap());
        }
        seeds
    })
}

#[test]
fn seeds_resolve() {
    for seed in seeds() {
        assert!(fuzz_elf(seed) > 0);
    }
    assert_eq!(fuzz_elf(b""), 0);
    assert_eq!(fuzz_elf(b"\x7fELF"), 0);
    assert_eq!(fuzz_elf(&[0xff; 4096]), 0);
}

#[test]
fn other_classes_and_byte_orders_are_read_or_refused() {
    for seed in seeds() {
        for (class, order) in [(1, 1), (1, 2), (2, 2), (3, 1), (2, 9)] {
            let mut bytes = seed.clone();
            bytes[4] = class;
            bytes[5] = order;
            let _ = fuzz_elf(&bytes);
        }
    }
}

#[test]
fn truncated_files_end_anywhere() {
    for seed in seeds() {
        for len in (0..seed.len()).step_by(97) {
            let _ = fuzz_elf(&seed[..len]);
        }
    }
}

/// 100,000 inlined functions sharing a list of 50,000 ranges: five billion ranges in a megabyte.
#[test]
fn amplified_ranges_run_out_of_steps() {
    const PROGRAM: &str = "
 .text
 .globl _start
_start:
 .fill 4096, 1, 0x90
 .section .debug_abbrev
 .uleb128 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0
 .uleb128 2, 0x2e, 1, 0x03, 8, 0x11, 1, 0x12, 7, 0, 0
 .uleb128 3, 0x1d, 0, 0x55, 0x17, 0, 0
 .uleb128 0
 .section .debug_info
 .4byte 2f - 1f
1: .2byte 4
 .4byte 0
 .byte 8
 .uleb128 1
 .8byte _start, 4096
 .uleb128 2
 .asciz \"outer\"
 .8byte _start, 4096
 .rept 100000
 .uleb128 3
 .4byte 0
 .endr
 .byte 0, 0
2:
 .section .debug_ranges
 .rept 50000
 .8byte 16, 64
 .endr
 .8byte 0, 0
";
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("a.s"), PROGRAM).unwrap();
    if run(dir, "cc -nostdlib -static -no-pie -o a a.s").is_none() {
        return;
    }
    let options = ResolveOptions::default();
    let hits: Vec<FileOffset> = (0x1000..0x1100).map(FileOffset).collect();
    let symbols = resolve_module(&module(&dir.join("a")), &hits, &Disk::default(), &options);
    assert!(symbols.note.contains("too large"), "{}", symbols.note);
    assert!(!symbols.functions.is_empty());
}

/// Damage matters most in headers and in debug and symbol sections, the last half of these small
/// files.
fn position() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..0.01, 0.5..1.0, 0.0..1.0]
}

proptest! {
    // PROPTEST_CASES may ask for more.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(1500),
        ..ProptestConfig::default()
    })]

    #[test]
    fn damage_never_panics(
        seed in 0_usize..8,
        damage in proptest::collection::vec((position(), any::<u8>(), 1_usize..9), 1..12),
    ) {
        let seeds = seeds();
        prop_assume!(!seeds.is_empty());
        let mut bytes = seeds[seed % seeds.len()].clone();
        for (at, value, len) in damage {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the file")]
            let at = (bytes.len() as f64 * at) as usize;
            let value = match value { 0..64 => 0xff, 64..128 => 0, value => value };
            let end = (at + len).min(bytes.len());
            bytes[at..end].fill(value);
        }
        let _ = fuzz_elf(&bytes);
    }

    #[test]
    fn noise_behind_a_header(tail in proptest::collection::vec(any::<u8>(), 0..512)) {
        let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
        bytes.extend(tail);
        let _ = fuzz_elf(&bytes);
    }
}
