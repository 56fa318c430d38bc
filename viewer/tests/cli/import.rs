//! `vmscope import` of wrong files and options.

use crate::common::programs::{KNOWN_SHARES, build_with};
use crate::common::vmscope::{Folder, Run, vmscope};
use std::path::Path;
use std::sync::Arc;
use vmscope_process::{ElfFile, LoadBias, ModuleFile};

const ZONE: &str = "~CogCode~ | 4096\nA>>b | (4200 4210 30 )\n~CCFree~ | 5000\n~CCEnd~ | 8192\n";
const SAMPLES: &str = "0x1070\n0x1074\n";

/// Imports a zone and samples with more options.
fn import(folder: &Folder, zone: &[u8], samples: &[u8], options: &[&str]) -> Run {
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.file(name);
        std::fs::write(&path, bytes).expect("a file");
        path.to_string_lossy().into_owned()
    };
    let (zone, samples) = (put("zone.txt", zone), put("pcs", samples));
    let output = folder.file("out.vmscope").to_string_lossy().into_owned();
    let files = [
        "--samples",
        &samples,
        "--constituents",
        &zone,
        "--output",
        &output,
    ];
    vmscope([&["import", "vmprofiler"], &files[..], options].concat())
}

#[test]
fn wrong_files_are_told_with_their_lines() {
    let folder = Folder::new();
    for (zone, samples, what) in [
        (ZONE, "", "pcs: no samples"),
        (
            ZONE,
            "0x1070\nnow\n",
            "pcs: line 2: not a sample: `now`; expected `PC`",
        ),
        (
            ZONE,
            "\0\0\0",
            "pcs: 3 bytes are no whole number of words of 8 bytes",
        ),
        ("", SAMPLES, "zone.txt: line 1: the end of the file"),
        (
            "~CogCode~ | x\n",
            SAMPLES,
            "zone.txt: line 1: not an address or list: `x`",
        ),
        (
            "~CogCode~ | 9\n~a~ | 8\n",
            SAMPLES,
            "zone.txt: line 2: a smaller address",
        ),
        (
            "~CogCode~ | 9\n\x1b[2J | 10\n",
            SAMPLES,
            "zone.txt: line 2: unknown item",
        ),
    ] {
        import(&folder, zone.as_bytes(), samples.as_bytes(), &[])
            .code(2)
            .says(what);
    }
    import(
        &folder,
        b"~CogCode~ | 9\n~\xff~ | 10\n",
        SAMPLES.as_bytes(),
        &[],
    )
    .code(2)
    .says("zone.txt: line 2: bytes that are not UTF-8");
    // Nothing was written.
    assert_eq!(folder.names(), ["pcs", "zone.txt"]);
}

#[test]
fn wrong_options_are_told() {
    let folder = Folder::new();
    let list = folder.file("list");
    let list = list.to_str().expect("UTF-8");
    std::fs::write(list, "1000 T a\nb\n").expect("a file");
    for (options, what) in [
        (&["--symbols", list][..], "line 2 is not a symbol; expected"),
        (&["--symbols", "/no such file"], "cannot open /no such file"),
        (&["--symbols", "/"], "cannot read /"),
        (&["--load-address", "1000"], "--symbols"),
        (
            &["--symbols", list, "--load-address", "x"],
            "expected a hexadecimal address",
        ),
        (&["--hz", "0"], "0 is not in"),
        (&["--word-size", "16"], "expected 32 or 64"),
        (&["--output", "/"], "cannot be used multiple times"),
    ] {
        import(&folder, ZONE.as_bytes(), SAMPLES.as_bytes(), options)
            .code(2)
            .says(what);
    }
    assert_eq!(folder.names(), ["list", "pcs", "zone.txt"]);
    vmscope(["import"]).code(2).says("vmprofiler");
}

/// A program with fixed addresses names its functions, and has no other place.
#[test]
fn a_program_with_fixed_addresses_needs_no_place() {
    let Some(program) = build_with(KNOWN_SHARES, &["-no-pie", "-fno-pie"]) else {
        return;
    };
    let file = std::fs::File::open(&program).expect("the program");
    let file = ModuleFile::from_file(file).expect("a file");
    let elf = ElfFile::open(Arc::new(file)).expect("an ELF file");
    let main = elf.find(&["main"], LoadBias(0)).expect("symbols");
    let main = main[0].as_ref().expect("main").address.0;
    let folder = Folder::new();
    let samples = format!("{:#x}\n{:#x}\n16\n", main, main + 1);
    let options = ["--symbols", program.to_str().expect("UTF-8")];
    import(&folder, ZONE.as_bytes(), samples.as_bytes(), &options).code(0);
    let recording = folder.file("out.vmscope");
    vmscope(["report", "--full", recording.to_str().expect("UTF-8")])
        .code(0)
        .prints("main (2)");
    let elsewhere = [&options[..], &["--load-address", "1000"]].concat();
    import(&folder, ZONE.as_bytes(), samples.as_bytes(), &elsewhere)
        .code(2)
        .says("has fixed addresses: --load-address does not apply");
}

/// The Smalltalk snippet for images writes zones that `import` reads. The embedded VM runs it.
#[test]
fn the_snippet_for_images_writes_such_zones() {
    let folder = Folder::new();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(here.join(path)).expect("a source");
    let snippet = read("../vm-hooks/cog/smalltalk/SaveForVmscope.st");
    let program = folder.file("save.st");
    let source = snippet + &read("tests/programs/save_for_vmscope.st");
    std::fs::write(&program, source).expect("a file");
    let zone = vmscope(["reference-vm", program.to_str().expect("UTF-8")]).code(0);
    let samples = "4410\n4420\n4310\n";
    import(&folder, zone.stdout.as_bytes(), samples.as_bytes(), &[]).code(0);
    let recording = folder.file("out.vmscope");
    vmscope(["report", "--full", recording.to_str().expect("UTF-8")])
        .code(0)
        .prints("Object class>>new (2)")
        .prints("at: - 2");
}

#[test]
fn a_small_zone_becomes_a_report_and_keeps_the_earlier_one() {
    let folder = Folder::new();
    let list = folder.file("list");
    std::fs::write(&list, "3000 80 T primitiveAt\n").expect("a file");
    let options = ["--symbols", list.to_str().expect("UTF-8")];
    let samples = "0x1070\n0x1074\n0x3004\n0x3080\n";
    for said in [
        "4 samples and 2 constituents in",
        "the earlier recording was renamed to",
    ] {
        import(&folder, ZONE.as_bytes(), samples.as_bytes(), &options)
            .code(0)
            .says(said);
    }
    let recording = folder.file("out.vmscope");
    let path = recording.to_str().expect("UTF-8");
    vmscope(["report", "--full", path])
        .code(0)
        .prints("50.00% entry->30 (1)")
        .prints("primitiveAt (primitives) (1)");
    vmscope(["annotate", path, "A>>b"]).code(0).prints("A>>b");
}
