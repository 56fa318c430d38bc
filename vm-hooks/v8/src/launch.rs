//! Before a program starts, its file tells whether vmscope can read its V8.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use vmscope_process::{ElfFile, LoadBias, ModuleFile, ReadAt};

use crate::versions::{is_known, reads_node};
use crate::vm::VERSION;

/// V8's version, and the size of its tagged values in bytes.
const CONSTANTS: [&str; 3] = [VERSION[0], VERSION[1], "v8dbg_TaggedSize"];

/// Main versions of Node.js by the number of their library (`libnode.so.115`), Node.js's
/// `NODE_MODULE_VERSION`.
const LIBRARIES: [(u32, u32); 5] = [(108, 18), (115, 20), (127, 22), (137, 24), (147, 26)];

/// Reason, as a clause, why vmscope can't read the V8 that `program` contains or loads. `None` for a
/// readable V8, and for programs without V8.
#[must_use]
pub fn obstacle(program: &Path) -> Option<String> {
    let file: Arc<dyn ReadAt> = Arc::new(ModuleFile::from_file(File::open(program).ok()?).ok()?);
    let elf = ElfFile::open(Arc::clone(&file)).ok()?;
    let names = elf.dynamic_names().ok()??;
    if names.iter().any(|name| name == VERSION[0].as_bytes()) {
        return of_constants(constants(&elf, &*file)?);
    }
    of_library(names.iter().find_map(|name| library(name))?)
}

/// The constants in a program's file.
fn constants(elf: &ElfFile, file: &dyn ReadAt) -> Option<[u32; 3]> {
    let symbols = elf.find(&CONSTANTS, LoadBias(0)).ok()?;
    let mut values = [0; 3];
    for (value, symbol) in values.iter_mut().zip(symbols) {
        let offset = elf.file_offset(symbol?.address.get());
        // Variables without bytes in the file are 0.
        if let Some(offset) = offset {
            let bytes = file.read_at(offset, 4).ok()?;
            *value = u32::from_le_bytes(bytes.try_into().ok()?);
        }
    }
    Some(values)
}

fn of_constants([major, minor, tagged]: [u32; 3]) -> Option<String> {
    if tagged != 8 {
        return Some(format!("V8 {major}.{minor} compresses its pointers"));
    }
    (!is_known((major, minor)))
        .then(|| format!("vmscope does not know where V8 {major}.{minor} keeps its data"))
}

/// The number in the name of Node.js's library.
fn library(name: &[u8]) -> Option<u32> {
    let name = std::str::from_utf8(name).ok()?;
    name.strip_prefix("libnode.so.")?.parse().ok()
}

fn of_library(number: u32) -> Option<String> {
    let mut known = LIBRARIES.iter();
    let known = known.any(|(library, node)| *library == number && reads_node(*node));
    (!known).then(|| format!("vmscope does not know where libnode.so.{number} keeps its data"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obstacles_have_their_reason() {
        assert_eq!(of_constants([12, 4, 8]), None);
        let text = |constants| of_constants(constants).unwrap();
        assert!(text([12, 5, 8]).contains("V8 12.5"));
        assert!(text([12, 4, 4]).contains("compresses its pointers"));
        assert_eq!(library(b"libnode.so.115"), Some(115));
        assert_eq!(library(b"libnode.so"), None);
        assert_eq!(of_library(115), None);
        assert!(of_library(93).unwrap().contains("libnode.so.93"));
    }

    #[test]
    fn programs_without_v8_have_none() {
        for program in ["/bin/sh", "/nonexistent", "/proc/self/exe", "/"] {
            assert_eq!(obstacle(Path::new(program)), None, "{program}");
        }
    }
}
