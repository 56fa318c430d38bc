//! The VM's own C functions: an ELF file, or a list of its symbols.

use crate::symbols_file::SymbolsFile;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::sync::Arc;
use vmscope_process::{ElfFile, ModuleFile, ReadAt as _};
use vmscope_records::{
    Avma, FileOffset, Mapping, Module, ModuleKey, ModuleState, ProcessKey, Record, SymbolOwner,
    Symbols, TimeNs,
};
use vmscope_symbolizer::native::functions_in_listing;

const PAGE: u64 = 4096;

/// ELF constants of the gABI: `e_type` of executables and of position-independent ones, `p_type` of loaded
/// segments.
const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;
const PT_LOAD: u32 = 1;

/// The process, the begin of the recording, the module's key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub process: ProcessKey,
    pub time: TimeNs,
    pub module: ModuleKey,
}

/// Records of the program at `path`: its module and mappings. A list of symbols also gives the functions of
/// `pcs`, ascending.
///
/// # Errors
/// An unreadable file, a wrong list, an ELF file without executable code, a missing or useless load address.
pub(super) fn records(
    path: &Path,
    load_address: Option<u64>,
    at: Place,
    pcs: &[Avma],
) -> Result<Vec<Record>> {
    match SymbolsFile::open(path)? {
        SymbolsFile::Elf(file) => of_elf(path, file, load_address, at),
        SymbolsFile::List(text) => of_listing(path, &text, load_address.unwrap_or(0), at, pcs),
    }
}

fn of_elf(
    path: &Path,
    file: ModuleFile,
    load_address: Option<u64>,
    at: Place,
) -> Result<Vec<Record>> {
    let shown = path.display();
    let cannot = || format!("cannot read {shown}");
    let path = path.canonicalize().with_context(cannot)?;
    let file = Arc::new(file);
    let elf = ElfFile::open(Arc::<ModuleFile>::clone(&file) as _).with_context(cannot)?;
    let loads = || {
        let segments = elf.segments().iter();
        segments.filter(|one| one.kind == PT_LOAD && one.file_bytes > 0)
    };
    let first = loads().map(|one| one.address - one.address % PAGE).min();
    let bias = match (elf.header().kind, load_address) {
        (ET_EXEC, None) => 0,
        (ET_EXEC, Some(_)) => bail!("{shown} has fixed addresses: --load-address does not apply"),
        (ET_DYN, Some(load)) => load.wrapping_sub(first.unwrap_or(0)),
        (ET_DYN, None) => bail!(
            "{shown} is position-independent, and neither samples nor constituents tell its place: add \
             --load-address with the address of its first line in the VM's /proc/PID/maps"
        ),
        _ => bail!("{shown} is an ELF file, but not a program"),
    };
    let (device, inode) = file.identity().with_context(cannot)?;
    let mut records = vec![Record::Module(Module {
        path: path.to_string_lossy().into_owned(),
        build_id: elf.build_id().with_context(cannot)?,
        device,
        inode,
        size: file.len(),
        ..module(at)
    })];
    for segment in loads().filter(|one| one.executable) {
        let cut = segment.address % PAGE;
        let start = (segment.address - cut).wrapping_add(bias);
        let mapped = segment.file_bytes.saturating_add(cut);
        let offset = segment.offset.wrapping_sub(cut);
        records.push(mapping(at, start, start.saturating_add(mapped), offset));
    }
    if records.len() == 1 {
        bail!("{shown} has no executable code");
    }
    Ok(records)
}

/// A list has no file offsets: run-time addresses take their place.
fn of_listing(path: &Path, text: &[u8], bias: u64, at: Place, pcs: &[Avma]) -> Result<Vec<Record>> {
    let mut functions =
        functions_in_listing(text, bias).with_context(|| path.display().to_string())?;
    let (first, last) = match functions.as_slice() {
        [first, .., last] => (first, last),
        [only] => (only, only),
        [] => return Ok(Vec::new()),
    };
    let start = first.start.0 - first.start.0 % PAGE;
    let end = last.start.0.saturating_add(last.size.max(1));
    let end = end.checked_next_multiple_of(PAGE).unwrap_or(end);
    functions.retain(|function| {
        let next = pcs.partition_point(|pc| pc.0 < function.start.0);
        let end = function.start.0.saturating_add(function.size.max(1));
        pcs.get(next).is_some_and(|pc| pc.0 < end)
    });
    Ok(vec![
        Record::Module(Module {
            path: path.to_string_lossy().into_owned(),
            ..module(at)
        }),
        mapping(at, start, end, start),
        Record::Symbols(Symbols {
            owner: SymbolOwner::Module(at.module),
            functions,
            note: format!("names from {}", path.display()),
        }),
    ])
}

fn module(at: Place) -> Module {
    Module {
        key: at.module,
        time: at.time,
        path: String::new(),
        build_id: None,
        device: 0,
        inode: 0,
        size: 0,
        main: true,
        state: ModuleState::Opened,
    }
}

fn mapping(at: Place, start: u64, end: u64, offset: u64) -> Record {
    Record::Mapping(Mapping {
        process: at.process,
        time: at.time,
        start: Avma(start),
        end: Avma(end),
        offset: FileOffset(offset),
        module: Some(at.module),
        name: String::new(),
        executable: true,
    })
}
