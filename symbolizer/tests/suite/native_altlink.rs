//! Names in a dwz file (`.gnu_debugaltlink`). The debug information is handwritten, since dwz is
//! rarely installed.

use crate::native_support::{Disk, code_segments, functions, module, offset_of, run};
use vmscope_symbolizer::native::{ResolveOptions, resolve_module};

/// `_start` with a function inlined at line 7, whose name is at offset 12 of the other file's
/// `.debug_info` (`DW_FORM_GNU_ref_alt`).
const MAIN: &str = "
 .text
 .globl _start
 .type _start, @function
_start:
 .byte 0x90, 0x90, 0x90, 0x90
 .size _start, 4
 .section .debug_abbrev
 .uleb128 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0
 .uleb128 2, 0x2e, 1, 0x03, 8, 0x11, 1, 0x12, 7, 0, 0
 .uleb128 3, 0x1d, 0, 0x31, 0x1f20, 0x11, 1, 0x12, 7, 0x59, 0x0b, 0, 0
 .uleb128 0
 .section .debug_info
 .4byte 2f - 1f
1: .2byte 4
 .4byte 0
 .byte 8
 .uleb128 1
 .8byte _start, 4
 .uleb128 2
 .asciz \"near_name\"
 .8byte _start, 4
 .uleb128 3
 .4byte 12
 .8byte _start, 2
 .byte 7, 0, 0
2:
";

const SUPPLEMENT: &str = "
 .section .debug_abbrev
 .uleb128 1, 0x3c, 1, 0, 0
 .uleb128 2, 0x2e, 0, 0x03, 8, 0, 0, 0
 .section .debug_info
 .4byte 2f - 1f
1: .2byte 4
 .4byte 0
 .byte 8
 .uleb128 1
 .uleb128 2
 .asciz \"far_name\"
 .byte 0
2:
";

#[test]
fn names_in_the_supplementary_file() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("main.s"), MAIN).unwrap();
    std::fs::write(dir.join("sup.s"), SUPPLEMENT).unwrap();
    for line in [
        "cc -nostdlib -shared -Wl,--build-id -o sup sup.s",
        "cc -nostdlib -static -no-pie -Wl,--build-id -o main main.s",
    ] {
        if run(dir, line).is_none() {
            return;
        }
    }
    let Some(notes) = run(dir, "readelf -n sup") else {
        return;
    };
    let hex = notes.split("Build ID: ").nth(1).unwrap();
    let hex = hex.split_whitespace().next().unwrap();
    let mut link = b"sup\0".to_vec();
    link.extend((0..hex.len() / 2).map(|n| u8::from_str_radix(&hex[2 * n..][..2], 16).unwrap()));
    std::fs::write(dir.join("link"), &link).unwrap();
    link[4] ^= 1;
    std::fs::write(dir.join("wrong"), &link).unwrap();
    for file in ["link", "wrong"] {
        let line = format!("objcopy --add-section=.gnu_debugaltlink={file} main with-{file}");
        if run(dir, &line).is_none() {
            return;
        }
    }
    let (Some(segments), Some(all)) = (code_segments(dir, "main"), functions(dir, "main")) else {
        return;
    };
    let start = all.iter().find(|(_, name)| name == "_start").unwrap().0;
    let hits = [start, start + 3].map(|address| offset_of(&segments, address).unwrap());
    let frames = |file: &str| {
        let options = ResolveOptions::default();
        let symbols = resolve_module(&module(&dir.join(file)), &hits, &Disk::default(), &options);
        let lines = &symbols.functions[0].lines;
        let names: Vec<Vec<(String, u32)>> = lines
            .iter()
            .map(|piece| {
                let frames = piece.frames.iter();
                frames.map(|f| (f.function.clone(), f.line)).collect()
            })
            .collect();
        (names, symbols.note)
    };
    let frame = |name: &str, line| (name.to_owned(), line);
    let (names, note) = frames("with-link");
    assert_eq!(
        names,
        [
            vec![frame("far_name", 0), frame("_start", 7)],
            vec![frame("_start", 0)]
        ]
    );
    assert_eq!(note, "");
    let (names, note) = frames("with-wrong");
    assert_eq!(names[0], [frame("", 0), frame("_start", 7)]);
    assert!(note.contains("some names are missing: no file"), "{note}");
}
