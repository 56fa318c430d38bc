//! Function names in linked, stripped and split programs, against nm and objdump.

use std::path::Path;

use crate::native_support::{Disk, code_segments, functions, module, offset_of, run};
use vmscope_records::{
    BuildId, FileOffset, Module, ModuleState, NativeFunction, SymbolSource, Symbols,
};
use vmscope_symbolizer::native::{ResolveOptions, resolve_all, resolve_module};

const PROGRAM: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static int hidden(int x) { return x * 3 + rand(); }
__attribute__((noinline)) int shown(int x) { return hidden(x) + (int)strtol("12", 0, 10); }
int also_shown(int x) __attribute__((alias("shown")));
int weak_shown(int x) __attribute__((weak, alias("shown")));
__asm__(".text\n.globl by_hand\nby_hand:\n nop\n nop\n ret\n"
        ".globl by_hand_too\nby_hand_too:\n nop\n ret\n");
int by_hand(void);
int main(int argc, char **argv) {
  double (*through_got)(double) = sin;
  printf("%d %zu %f\n", shown(argc), strlen(argv[0]), through_got(argc) + cos(argc));
  return by_hand() == 12345 && through_got == (void *)argv;
}
"#;

fn resolve(path: &Path, hits: &[FileOffset], disk: &Disk) -> Symbols {
    resolve_module(&module(path), hits, disk, &ResolveOptions::default())
}

/// The function at an offset.
fn at(symbols: &Symbols, hit: FileOffset) -> &NativeFunction {
    symbols
        .functions
        .iter()
        .find(|f| hit.0 >= f.start.0 && hit.0 < f.start.0 + f.size)
        .unwrap_or_else(|| panic!("nothing at {hit}: {symbols:?}"))
}

/// A directory with the program's source.
fn source() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.c"), PROGRAM).unwrap();
    dir
}

/// File offsets of functions in the unstripped program.
fn hits_of(dir: &Path, file: &str, names: &[&str]) -> Option<Vec<FileOffset>> {
    let segments = code_segments(dir, file)?;
    let all = functions(dir, file)?;
    Some(
        names
            .iter()
            .map(|name| {
                let found = all.iter().find(|(_, n)| n == name).unwrap();
                offset_of(&segments, found.0).unwrap()
            })
            .collect(),
    )
}

fn sorted(hits: &[FileOffset]) -> Vec<FileOffset> {
    let mut hits = hits.to_vec();
    hits.sort_unstable();
    hits.dedup();
    hits
}

fn build_id_of(dir: &Path, file: &str) -> Option<BuildId> {
    let text = run(dir, &format!("readelf -n {file}"))?;
    let hex = text.split("Build ID: ").nth(1)?.split_whitespace().next()?;
    let bytes: Vec<u8> = (0..hex.len() / 2)
        .map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap())
        .collect();
    BuildId::new(&bytes)
}

#[test]
fn functions_with_a_symbol_table() {
    let dir = source();
    let dir = dir.path();
    for flags in ["-O1", "-O1 -static", "-O1 -no-pie", "-O1 -g -gz=zlib"] {
        let names = ["main", "hidden", "shown", "by_hand", "by_hand_too"];
        let Some(()) = run(dir, &format!("cc {flags} -o p p.c -lm")).map(drop) else {
            return;
        };
        let Some(hits) = hits_of(dir, "p", &names) else {
            return;
        };
        let symbols = resolve(&dir.join("p"), &sorted(&hits), &Disk::default());
        for (hit, name) in hits.iter().zip(names) {
            let function = at(&symbols, *hit);
            // Among global aliases the first in order wins; a weak alias never does.
            let expected = if name == "shown" { "also_shown" } else { name };
            assert_eq!(function.name, expected, "{flags}");
            assert_eq!(function.start, *hit);
            assert_eq!(function.source, SymbolSource::SymbolTable);
            assert_eq!(function.sized, !name.starts_with("by_hand"), "{name}");
        }
        assert_eq!(at(&symbols, hits[3]).size, 3, "up to the next symbol");
    }
}

#[test]
fn plt_stubs_are_named_as_objdump_does() {
    let dir = source();
    let dir = dir.path();
    let mut seen = 0;
    for flags in [
        "-Wl,-z,lazy",
        "-Wl,-z,now",
        "-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy",
        "-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,now",
        "-fcf-protection=none -Wl,-z,lazy",
        "-no-pie -Wl,-z,lazy",
        "-fno-plt",
        "-static",
    ] {
        let Some(_) = run(dir, &format!("cc -O1 {flags} -o p p.c -lm")) else {
            return;
        };
        let (Some(text), Some(segments)) = (
            run(dir, "objdump -d --no-show-raw-insn p"),
            code_segments(dir, "p"),
        ) else {
            return;
        };
        let mut expected = Vec::new();
        let mut current = None;
        for line in text.lines() {
            if let Some((address, label)) = line.split_once(" <")
                && line.ends_with(">:")
                && !address.starts_with(' ')
            {
                let name = label.trim_end_matches(">:");
                current = name.ends_with("@plt").then(|| name.to_owned());
                continue;
            }
            if let (Some(name), Some((address, _))) = (&current, line.split_once(":\t")) {
                let address = u64::from_str_radix(address.trim(), 16).unwrap();
                expected.push((offset_of(&segments, address).unwrap(), name.clone()));
            }
        }
        let hits: Vec<FileOffset> = expected.iter().map(|(hit, _)| *hit).collect();
        let symbols = resolve(&dir.join("p"), &sorted(&hits), &Disk::default());
        for (hit, name) in &expected {
            let function = at(&symbols, *hit);
            assert_eq!(
                (&function.linkage_name, function.source),
                (name, SymbolSource::Plt),
                "{flags} {hit}"
            );
            seen += 1;
        }
    }
    eprintln!("{seen} instructions in PLT stubs");
    if cfg!(target_arch = "x86_64") {
        assert!(seen > 50);
    }
}

#[test]
fn code_without_symbols_gathers_by_gap() {
    let dir = source();
    let dir = dir.path();
    let Some(_) = run(dir, "cc -O1 -o p p.c -lm") else {
        return;
    };
    let Some(hits) = hits_of(dir, "p", &["main", "hidden", "shown"]) else {
        return;
    };
    let Some(_) = run(dir, "strip -o stripped p") else {
        return;
    };
    let symbols = resolve(&dir.join("stripped"), &sorted(&hits), &Disk::default());
    assert_eq!(symbols.functions.len(), 1, "{symbols:?}");
    let function = at(&symbols, hits[0]);
    assert_eq!((&*function.name, &*function.linkage_name), ("", ".text"));
    assert_eq!(function.source, SymbolSource::None);
    assert!(symbols.note.contains(".dynsym only"), "{}", symbols.note);

    let Some(_) = run(dir, "cc -O1 -s -rdynamic -o dynamic p.c -lm") else {
        return;
    };
    let Some(hits) = run(dir, "cc -O1 -rdynamic -o p p.c -lm")
        .and_then(|_| hits_of(dir, "p", &["main", "also_shown"]))
    else {
        return;
    };
    let symbols = resolve(&dir.join("dynamic"), &sorted(&hits), &Disk::default());
    let function = at(&symbols, hits[1]);
    assert_eq!(function.name, "also_shown");
    assert_eq!(function.source, SymbolSource::DynamicSymbols);
}

#[test]
fn debug_files_by_build_id() {
    let dir = source();
    let dir = dir.path();
    let Some(_) = run(dir, "cc -O1 -g -Wl,--build-id -o p p.c -lm") else {
        return;
    };
    let Some(hits) = hits_of(dir, "p", &["main", "hidden"]) else {
        return;
    };
    let (Some(_), Some(build_id)) = (run(dir, "strip -o stripped p"), build_id_of(dir, "p")) else {
        return;
    };
    let hex = build_id.to_string();
    let home = dir.join("debug/.build-id").join(&hex[..2]);
    std::fs::create_dir_all(&home).unwrap();
    let file = home.join(format!("{}.debug", &hex[2..]));
    let root = dir.join("debug");
    let disk = || Disk {
        root: root.clone(),
        ..Disk::default()
    };
    for packed in ["none", "zlib", "zstd"] {
        let line = format!(
            "objcopy --only-keep-debug --compress-debug-sections={packed} p {}",
            file.display()
        );
        if run(dir, &line).is_none() {
            return;
        }
        let symbols = resolve(&dir.join("stripped"), &sorted(&hits), &disk());
        assert_eq!(at(&symbols, hits[1]).name, "hidden");
        assert_eq!(at(&symbols, hits[1]).source, SymbolSource::SymbolTable);
        let frame = &at(&symbols, hits[1]).lines[0].frames[0];
        assert_eq!(frame.line, 6, "{packed} {symbols:?}");
        assert!(frame.file.ends_with("p.c"));
        assert!(
            symbols.note.starts_with("debug file by build-id"),
            "{}",
            symbols.note
        );
    }

    // A different build replaces the file.
    std::fs::write(dir.join("q.c"), PROGRAM.replace("* 3", "* 5")).unwrap();
    let Some(_) = run(dir, "cc -O1 -g -Wl,--build-id -o q q.c -lm") else {
        return;
    };
    std::fs::copy(dir.join("q"), &file).unwrap();
    let symbols = resolve(&dir.join("stripped"), &sorted(&hits), &disk());
    assert_eq!(at(&symbols, hits[1]).name, "");
    assert!(symbols.note.contains("another build"), "{}", symbols.note);

    // The program was rebuilt.
    let before = Module {
        build_id: Some(build_id),
        ..module(&dir.join("q"))
    };
    let options = ResolveOptions::default();
    let symbols = resolve_module(&before, &sorted(&hits), &disk(), &options);
    assert!(symbols.functions.is_empty());
    assert!(
        symbols.note.contains("differs from the one that ran"),
        "{}",
        symbols.note
    );
    let deleted = Module {
        main: false,
        state: ModuleState::Deleted,
        ..module(&dir.join("q"))
    };
    let symbols = resolve_module(&deleted, &sorted(&hits), &disk(), &options);
    assert!(symbols.functions.is_empty());
    let other_size = Module {
        size: 5,
        ..module(&dir.join("q"))
    };
    let symbols = resolve_module(&other_size, &sorted(&hits), &disk(), &options);
    assert!(symbols.functions.is_empty());
}

#[test]
fn debug_files_by_link() {
    let dir = source();
    let dir = dir.path();
    let built = run(dir, "cc -O1 -g -Wl,--build-id=none -o p p.c -lm").is_some();
    let Some(hits) = built
        .then(|| hits_of(dir, "p", &["main", "hidden"]))
        .flatten()
    else {
        return;
    };
    std::fs::create_dir(dir.join(".debug")).unwrap();
    for line in [
        "objcopy --only-keep-debug p .debug/p.debug",
        "objcopy --strip-all --add-gnu-debuglink=.debug/p.debug p stripped",
    ] {
        if run(dir, line).is_none() {
            return;
        }
    }
    let disk = Disk::default();
    let symbols = resolve(&dir.join("stripped"), &sorted(&hits), &disk);
    assert_eq!(at(&symbols, hits[1]).name, "hidden");
    assert_eq!(at(&symbols, hits[1]).lines[0].frames[0].line, 6);
    assert!(
        symbols.note.starts_with("debug file by debug link"),
        "{}",
        symbols.note
    );
    assert_eq!(disk.asked.lock().unwrap().len(), 1);

    // One changed byte means another file.
    let path = dir.join(".debug/p.debug");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let symbols = resolve(&dir.join("stripped"), &sorted(&hits), &Disk::default());
    assert_eq!(at(&symbols, hits[1]).name, "");
    assert!(symbols.note.contains("another build"), "{}", symbols.note);
}

#[test]
fn mini_debug_info() {
    let dir = source();
    let dir = dir.path();
    let built = run(dir, "cc -O1 -rdynamic -o p p.c -lm").is_some();
    let Some(hits) = built
        .then(|| hits_of(dir, "p", &["main", "hidden"]))
        .flatten()
    else {
        return;
    };
    for line in [
        "objcopy -S --remove-section=.comment --keep-symbol=hidden p mini",
        "xz --keep mini",
        "strip -o stripped p",
        "objcopy --add-section=.gnu_debugdata=mini.xz stripped with",
    ] {
        if run(dir, line).is_none() {
            return;
        }
    }
    let symbols = resolve(&dir.join("with"), &sorted(&hits), &Disk::default());
    let sources = hits.iter().map(|hit| at(&symbols, *hit).source);
    let expected = [SymbolSource::DynamicSymbols, SymbolSource::MiniDebugInfo];
    assert_eq!(sources.collect::<Vec<_>>(), expected, "{symbols:?}");
    assert_eq!(at(&symbols, hits[1]).name, "hidden");
}

#[test]
fn split_dwarf_says_so_and_still_has_lines() {
    let dir = source();
    let dir = dir.path();
    for version in ["4", "5"] {
        let line = format!("cc -O1 -gdwarf-{version} -gsplit-dwarf -o p p.c -lm");
        let Some(hits) = run(dir, &line).and_then(|_| hits_of(dir, "p", &["hidden"])) else {
            return;
        };
        let symbols = resolve(&dir.join("p"), &hits, &Disk::default());
        assert!(symbols.note.contains(".dwo"), "{}", symbols.note);
        let frames = &at(&symbols, hits[0]).lines[0].frames;
        assert_eq!((&*frames[0].function, frames[0].line), ("hidden", 6));
    }
}

#[test]
fn functions_by_debug_information_alone() {
    let dir = source();
    let dir = dir.path();
    let names = ["main", "hidden", "shown"];
    let Some(hits) = run(dir, "cc -O1 -g -o p p.c -lm").and_then(|_| hits_of(dir, "p", &names))
    else {
        return;
    };
    let Some(_) = run(dir, "objcopy --strip-all --keep-section=.debug_* p bare") else {
        return;
    };
    let symbols = resolve(&dir.join("bare"), &sorted(&hits), &Disk::default());
    for (hit, name) in hits.iter().zip(names) {
        let function = at(&symbols, *hit);
        assert_eq!((&*function.name, function.start), (name, *hit));
        assert_eq!(function.source, SymbolSource::DebugInfo);
        assert!(function.sized && !function.lines.is_empty());
    }
}

#[test]
fn many_modules_at_once() {
    let dir = source();
    let dir = dir.path();
    let Some(hits) = run(dir, "cc -O1 -g -o p p.c -lm").and_then(|_| hits_of(dir, "p", &["main"]))
    else {
        return;
    };
    let good = module(&dir.join("p"));
    let bad = module(&dir.join("missing"));
    let text = module(&dir.join("p.c"));
    let list: Vec<(&Module, &[FileOffset])> =
        vec![(&good, &hits), (&bad, &hits), (&good, &[]), (&text, &hits)];
    let options = ResolveOptions::default();
    let all = resolve_all(&list, &Disk::default(), &options);
    assert_eq!(all.len(), 4);
    for (symbols, (module, hits)) in all.iter().zip(&list) {
        assert_eq!(
            *symbols,
            resolve_module(module, hits, &Disk::default(), &options)
        );
    }
    assert_eq!(all[0].functions[0].name, "main");
    assert!(!all[1].note.is_empty());
    assert!(all[2].functions.is_empty());
    assert_eq!(all[3].note, "not an ELF file");
}

/// The vdso, as bytes from memory.
#[test]
fn vdso_functions() {
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;
    use vmscope_symbolizer::native::{
        Binaries, DebugFile, DebugFileRequest, FileBytes, MemoryFile,
    };

    struct Vdso(Vec<u8>);
    impl Binaries for Vdso {
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

    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let Some(line) = maps.lines().find(|line| line.ends_with("[vdso]")) else {
        eprintln!("SKIPPED: this process has no vdso");
        return;
    };
    let mut ends = line.split([' ', '-']);
    let mut next = || u64::from_str_radix(ends.next().unwrap(), 16).unwrap();
    let (start, end) = (next(), next());
    let mut image = vec![0; usize::try_from(end - start).unwrap()];
    let memory = std::fs::File::open("/proc/self/mem").unwrap();
    memory.read_exact_at(&mut image, start).unwrap();
    let hits: Vec<FileOffset> = (0..end - start).step_by(16).map(FileOffset).collect();
    let vdso = Module {
        state: ModuleState::Vdso,
        ..module(Path::new("[vdso]"))
    };
    let symbols = resolve_module(&vdso, &hits, &Vdso(image), &ResolveOptions::default());
    let names: Vec<&str> = symbols.functions.iter().map(|f| &*f.name).collect();
    let wanted = if cfg!(target_arch = "aarch64") {
        "__kernel_clock_gettime"
    } else {
        "__vdso_clock_gettime"
    };
    assert!(names.contains(&wanted), "{symbols:?}");
}

#[test]
fn own_program_is_symbolised() {
    let path = std::env::current_exe().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert!(vmscope_symbolizer::native::fuzz_elf(&bytes) > 0);
}
