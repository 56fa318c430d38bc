//! What the modules of a process bring along to name their code: build-id, symbol
//! tables, line information, and whether the file on disk is still the one that runs.
//!
//! Reads headers and section tables, never whole files: each read has a bound, so that a
//! file that lies about its sizes costs nothing. The `target` and `symbolizer` crates do
//! this in earnest; doctor only tells what they will find.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use goblin::container::Ctx;
use goblin::elf::Elf;
use goblin::elf::note::{NT_GNU_BUILD_ID, NoteDataIterator};
use goblin::elf::section_header::{SHT_NOBITS, SectionHeader};
use nix::fcntl::OFlag;
use procfs::process::{MMPermissions, MMapPath, MemoryMaps};

/// Modules looked at; some programs map thousands of files.
const MODULES_MAX: usize = 256;
/// An ELF file has few sections; a kernel image with `-ffunction-sections` some 40,000.
const SECTION_TABLE_MAX_BYTES: u64 = 4 << 20;
const SECTION_NAMES_MAX_BYTES: u64 = 1 << 20;
const NOTE_MAX_BYTES: u64 = 4 << 10;
const DEBUG_LINK_MAX_BYTES: u64 = 4 << 10;

/// Which symbol tables a module has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// `.symtab`: every function.
    pub symtab: bool,
    /// `.dynsym`: exported functions alone.
    pub dynsym: bool,
    /// `.gnu_debugdata`: a small compressed `.symtab`.
    pub mini_debuginfo: bool,
}

/// Where a module's DWARF is: lines and inlined functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dwarf {
    /// In the module itself.
    Embedded,
    /// In a debug file of its own, as seen from the process's root.
    Separate(PathBuf),
    /// Nowhere that was looked at.
    None,
}

/// Whether the file can be read, and is the one that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    /// It can, and it is.
    Same,
    /// Another file has its name now.
    Replaced,
    /// No file has its name any more.
    Deleted,
    /// It can't be opened; why.
    Unreadable(String),
    /// It is mapped for execution, and not an ELF file.
    NotElf,
}

/// A file that a process executes code from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleRow {
    /// Its path in the process's own file system.
    pub path: PathBuf,
    /// Its build-id in hexadecimal; `None` where it has none.
    pub build_id: Option<String>,
    /// Its symbol tables, those of its debug file included.
    pub symbols: Symbols,
    /// Its line information.
    pub dwarf: Dwarf,
    /// Whether the file is the one that runs.
    pub state: FileState,
    /// Whether the one that runs could be read, under whatever name.
    pub opened: bool,
}

/// The modules among `maps` of `pid`: files that are mapped executable, each once; and
/// how many more there are than are looked at (256).
pub fn of_maps(pid: i32, maps: &MemoryMaps) -> (Vec<ModuleRow>, usize) {
    let mut files = BTreeMap::new();
    for map in maps {
        if let MMapPath::Path(path) = &map.pathname
            && map.perms.contains(MMPermissions::EXECUTE)
        {
            files
                .entry(path.clone())
                .or_insert((map.inode, map.address));
        }
    }
    let left_out = files.len().saturating_sub(MODULES_MAX);
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let rows = files.iter().take(MODULES_MAX);
    let rows = rows
        .map(|(path, (inode, range))| module(&proc, path, *inode, *range))
        .collect();
    (rows, left_out)
}

/// Looks at one module. `proc` is the process's folder in `/proc`.
fn module(proc: &Path, path: &Path, inode: u64, range: (u64, u64)) -> ModuleRow {
    let root = proc.join("root");
    let bytes = path.as_os_str().as_bytes();
    let unlinked = bytes.strip_suffix(b" (deleted)");
    let path = Path::new(std::ffi::OsStr::from_bytes(unlinked.unwrap_or(bytes)));
    let mut row = ModuleRow {
        path: path.to_owned(),
        build_id: None,
        symbols: Symbols::default(),
        dwarf: Dwarf::None,
        state: FileState::Same,
        opened: false,
    };
    let on_disk = open(&under(&root, path));
    row.state = match &on_disk {
        // The inode alone: overlay and btrfs show a device in the maps that stat doesn't.
        Ok(file) if unlinked.is_none() && is_inode(file, inode) => FileState::Same,
        Ok(_) => FileState::Replaced,
        Err(error) if error.kind() == ErrorKind::NotFound => FileState::Deleted,
        Err(error) => FileState::Unreadable(error.to_string()),
    };
    let file = match row.state {
        FileState::Same => on_disk.ok(),
        _ => open_running(proc, inode, range),
    };
    let Some(file) = file else { return row };
    let Some(elf) = sections(&file) else {
        row.state = FileState::NotElf;
        return row;
    };
    row.opened = true;
    row.symbols = elf.symbols;
    row.build_id = elf.build_id.clone();
    if elf.dwarf {
        row.dwarf = Dwarf::Embedded;
    } else if let Some((path, debug)) = debug_file(&root, path, &elf) {
        row.symbols.symtab |= debug.symbols.symtab;
        if debug.dwarf {
            row.dwarf = Dwarf::Separate(path);
        }
    }
    row
}

/// The file that runs, whatever has its name: by its mapping, which takes
/// `CAP_CHECKPOINT_RESTORE` or `CAP_SYS_ADMIN`, and the program itself by `exe`.
fn open_running(proc: &Path, inode: u64, (start, end): (u64, u64)) -> Option<File> {
    [format!("map_files/{start:x}-{end:x}"), "exe".to_owned()]
        .into_iter()
        .filter_map(|link| open(&proc.join(link)).ok())
        .find(|file| is_inode(file, inode))
}

fn is_inode(file: &File, inode: u64) -> bool {
    file.metadata().is_ok_and(|meta| meta.ino() == inode)
}

/// What the section table of an ELF file tells.
#[derive(Debug, Default)]
struct Sections {
    symbols: Symbols,
    dwarf: bool,
    build_id: Option<String>,
    debug_link: Option<PathBuf>,
}

/// `None` where it isn't an ELF file, or its tables lie outside of it.
fn sections(file: &File) -> Option<Sections> {
    let header_bytes = read_at(file, 0, 64, 64)?;
    let header = Elf::parse_header(&header_bytes).ok()?;
    let ctx = Ctx::new(header.container().ok()?, header.endianness().ok()?);
    let entry = u64::try_from(SectionHeader::size(ctx)).ok()?;
    let size = entry.checked_mul(u64::from(header.e_shnum))?;
    if size == 0 {
        // Stripped of its section table: the program headers would tell some of it.
        return Some(Sections::default());
    }
    let table = read_at(file, header.e_shoff, size, SECTION_TABLE_MAX_BYTES)?;
    let headers = SectionHeader::parse_from(&table, 0, usize::from(header.e_shnum), ctx).ok()?;
    let names = headers.get(usize::from(header.e_shstrndx))?;
    let names = read_at(
        file,
        names.sh_offset,
        names.sh_size,
        SECTION_NAMES_MAX_BYTES,
    )?;
    let mut found = Sections::default();
    for section in headers
        .iter()
        .filter(|section| section.sh_type != SHT_NOBITS)
    {
        let name = names.get(section.sh_name..).unwrap_or_default();
        let read = |max| read_at(file, section.sh_offset, section.sh_size, max);
        match name.split(|byte| *byte == 0).next().unwrap_or_default() {
            b".symtab" => found.symbols.symtab = true,
            b".dynsym" => found.symbols.dynsym = true,
            b".gnu_debugdata" => found.symbols.mini_debuginfo = true,
            b".debug_info" | b".zdebug_info" => found.dwarf = true,
            b".note.gnu.build-id" => {
                found.build_id = read(NOTE_MAX_BYTES).and_then(|note| build_id(&note, ctx));
            }
            b".gnu_debuglink" => {
                found.debug_link = read(DEBUG_LINK_MAX_BYTES).and_then(|link| debug_link(&link));
            }
            _ => {}
        }
    }
    Some(found)
}

fn build_id(data: &[u8], ctx: Ctx) -> Option<String> {
    let notes = NoteDataIterator {
        data,
        size: data.len(),
        offset: 0,
        ctx: (4, ctx),
    };
    let id = notes
        .map_while(Result::ok)
        .find(|note| note.n_type == NT_GNU_BUILD_ID && note.name == "GNU")?;
    // Two bytes at least, or there is no path to a debug file in it.
    (2..=64)
        .contains(&id.desc.len())
        .then(|| id.desc.iter().map(|b| format!("{b:02x}")).collect())
}

/// A file name without folders, or it would point anywhere.
fn debug_link(section: &[u8]) -> Option<PathBuf> {
    let name = section.split(|byte| *byte == 0).next()?;
    (!name.is_empty() && !name.contains(&b'/'))
        .then(|| PathBuf::from(std::ffi::OsStr::from_bytes(name)))
}

/// The first debug file that belongs to the module, in gdb's order: by build-id, then by
/// debug link beside it, in `.debug`, and under `/usr/lib/debug`. One with another
/// build-id is not taken.
fn debug_file(root: &Path, module: &Path, elf: &Sections) -> Option<(PathBuf, Sections)> {
    let mut candidates = Vec::new();
    if let Some((folder, rest)) = elf
        .build_id
        .as_deref()
        .and_then(|id| id.split_at_checked(2))
    {
        let path = format!("/usr/lib/debug/.build-id/{folder}/{rest}.debug");
        candidates.push(PathBuf::from(path));
    }
    if let (Some(link), Some(folder)) = (&elf.debug_link, module.parent()) {
        candidates.push(folder.join(link));
        candidates.push(folder.join(".debug").join(link));
        candidates.push(under(Path::new("/usr/lib/debug"), folder).join(link));
    }
    candidates
        .into_iter()
        .filter(|path| path != module)
        .find_map(|path| {
            // In the process's file system, else in ours: containers seldom have debug files.
            let file = open(&under(root, &path)).or_else(|_| open(&path)).ok()?;
            let debug = sections(&file)?;
            let same = debug.build_id.is_none() || debug.build_id == elf.build_id;
            same.then_some((path, debug))
        })
}

fn under(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Opens a regular file. Not blocking: the name may belong to a pipe by now.
fn open(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(std::io::Error::new(
        ErrorKind::InvalidInput,
        "not a regular file",
    ))
}

fn read_at(file: &File, offset: u64, size: u64, max: u64) -> Option<Vec<u8>> {
    if size > max || offset.checked_add(size)? > file.metadata().ok()?.len() {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests;
