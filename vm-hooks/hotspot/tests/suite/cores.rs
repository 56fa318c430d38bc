//! Core files of running JVMs: same findings as in the process; truncated files give fewer findings
//! or an error.

use std::sync::Arc;

use crate::common::jdks::every;
use crate::common::jvm::{Jvm, WAITS_FOR_COMPILERS};
use vmscope_hotspot::pages::Pages;
use vmscope_hotspot::testing::{Walk, walk};
use vmscope_process::testing::{ElfImage, ImageSegment};
use vmscope_process::{CoreFile, ModuleFile, ProcessView, own_root};
use vmscope_records::Pid;

const ET_CORE: u16 = 4;
const NT_FILE: u32 = 0x4649_4c45;

/// Maximum size of a dumped mapping.
const MAX_MAPPING: u64 = 256 << 20;

/// What the kernel writes: `NT_FILE` and the memory; of what is mapped of files and was
/// not written to, the first page, or with `files` (`coredump_filter` 0x37) all but
/// libraries' code.
fn core_of(process: &ProcessView, with_files: bool) -> Vec<u8> {
    // Memory was mapped since it was opened.
    process.refresh().unwrap();
    let mappings = process.mappings();
    let files: Vec<_> = mappings
        .iter()
        .filter(|entry| entry.path().is_some())
        .collect();
    let mut note = Vec::new();
    let mut words = vec![files.len() as u64, 4096];
    for entry in &files {
        words.extend([entry.start.0, entry.end.0, entry.offset.0 / 4096]);
    }
    words
        .iter()
        .for_each(|word| note.extend_from_slice(&word.to_le_bytes()));
    for entry in &files {
        note.extend_from_slice(entry.path().unwrap());
        note.push(0);
    }
    let mut image = ElfImage::new(ET_CORE).note(b"CORE\0", NT_FILE, &note);
    for entry in mappings.iter().filter(|entry| entry.readable) {
        let size = entry.end.0 - entry.start.0;
        let is_left_out =
            entry.path().is_some() && !entry.writable && (entry.executable || !with_files);
        let wanted = if is_left_out { 4096 } else { size };
        if wanted > MAX_MAPPING || entry.name == b"[vvar]" {
            continue;
        }
        let mut bytes = vec![0; usize::try_from(wanted).unwrap()];
        let got = process.memory().read_partial(entry.start, &mut bytes);
        bytes.truncate(got.unwrap_or(0));
        image = image.segment(ImageSegment {
            address: entry.start.0,
            bytes,
            memory_bytes: size,
            executable: entry.executable,
        });
    }
    image.build()
}

fn read(image: &[u8]) -> Result<Walk, String> {
    let file = ModuleFile::from_image(Arc::from(image));
    let core = CoreFile::from_file(Arc::new(file)).map_err(|error| error.to_string())?;
    let process = ProcessView::from_core(core, own_root().ok());
    let pages = Pages::new(process.memory());
    walk(&process, &pages).map_err(|error| error.to_string())
}

#[test]
fn core_files_hold_what_the_process_did() {
    for jdk in every() {
        let flags = ["-Xmx16m", "-XX:+UseSerialGC", WAITS_FOR_COMPILERS];
        let Some(jvm) = Jvm::listed(&jdk, &flags) else {
            return;
        };
        let process = ProcessView::open(Pid(jvm.pid())).unwrap();
        // Compares only code present before and after the dump.
        let before = walk(&process, &Pages::new(process.memory())).unwrap();
        let image = core_of(&process, true);
        let default = core_of(&process, false);
        let after = walk(&process, &Pages::new(process.memory())).unwrap();
        drop(jvm);
        let ids = |walk: &Walk| {
            let nmethods = walk.nmethods.iter();
            let ids = nmethods.map(|it| (it.nmethod.id, it.nmethod.pcs.len(), it.chains.clone()));
            ids.collect::<Vec<_>>()
        };
        let (before, after) = (ids(&before), ids(&after));
        let whole = read(&image).unwrap();
        let names = whole.methods.values().flatten().count();
        let found = ids(&whole);
        let stayed = before.iter().filter(|id| after.contains(id));
        assert!(stayed.clone().count() > 50);
        for id in stayed.clone() {
            let other = found.iter().find(|other| other.0 == id.0);
            assert!(found.contains(id), "{id:?}\n{other:?}");
        }
        assert!(names * 100 > whole.methods.len() * 95, "{names} names");
        // Pages omitted by default come from the library.
        let of_default = read(&default).unwrap();
        assert_eq!(ids(&of_default), ids(&read(&default).unwrap()));
        for id in stayed.clone() {
            assert!(ids(&of_default).contains(id), "{id:?} without files");
        }
        let own = of_default.methods.values().flatten().count();
        assert!(own * 100 > of_default.methods.len() * 95, "{own} names");
        let (mut errors, mut fewer) = (0, 0);
        for part in 0..24 {
            match read(&image[..image.len() * part / 24]) {
                Ok(walk) => {
                    assert!(walk.nmethods.len() <= found.len());
                    fewer += 1;
                }
                Err(error) => {
                    assert!(!error.is_empty());
                    errors += 1;
                }
            }
        }
        println!(
            "{}: {} MB, {} nmethods ({} stayed), {names} of {} methods named, {own} without what is in files; cut off: {errors} errors, {fewer} with what remained",
            jdk.home.display(),
            image.len() >> 20,
            found.len(),
            stayed.count(),
            whole.methods.len()
        );
        assert!(errors > 0);
    }
}
