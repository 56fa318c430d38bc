//! Process memory in a core file (`core(5)`, `fs/binfmt_elf.c`).

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use goblin::elf::header::ET_CORE;
use goblin::elf::note::{NT_PRPSINFO, NT_PRSTATUS};
use goblin::elf::program_header::PT_NOTE;
use vmscope_records::{Arch, Avma, DurationNs, FileOffset, Pid, Registers, Tid};

use crate::elf::notes;
use crate::{ElfError, ElfFile, ElfHeader, MapEntry, Memory, MemoryError, ModuleFile, ReadAt};

/// Cap on notes. Process notes come first; registers of thousands of threads follow.
const MAX_NOTES_BYTES: u64 = 64 << 20;

/// `NT_FILE`, which goblin does not name (`include/uapi/linux/elf.h`).
const NT_FILE: u32 = 0x4649_4c45;

/// `NT_AUXV` (`include/uapi/linux/elf.h`).
const NT_AUXV: u32 = 6;

/// Key of the vdso's address in the auxiliary vector (`include/uapi/linux/auxvec.h`).
const AT_SYSINFO_EHDR: u64 = 33;

/// Offset of `pr_reg` in the 64-bit `struct elf_prstatus`.
const REGISTERS_AT: usize = 112;

/// Places in the kernel's `user_regs_struct`, in the order of `perf_regs.h`, and the latter's mask.
const X86_64_REGISTERS: (&[usize], u64) = (
    &[10, 5, 11, 12, 13, 14, 4, 19, 16, 18, 9, 8, 7, 6, 3, 2, 1, 0],
    0x00ff_03ff,
);

/// Likewise of x0 to x30, sp and pc.
const AARCH64_REGISTERS: (&[usize], u64) = (
    &[
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
        25, 26, 27, 28, 29, 30, 31, 32,
    ],
    0x1_ffff_ffff,
);

/// A core file. Reads use `pread`: a truncated file causes an error, not a signal.
///
/// Memory omitted by the kernel (`coredump_filter`; file-backed code by default) reads as unmapped,
/// never as zeros.
pub struct CoreFile {
    file: Arc<dyn ReadAt>,
    pieces: Vec<Piece>,
    info: CoreInfo,
}

/// Process data in a core file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreInfo {
    /// Processor architecture.
    pub arch: Arch,
    /// Pointer size in bytes.
    pub pointer_bytes: usize,
    /// Process id in its own pid namespace, if present.
    pub pid: Option<Pid>,
    /// Program name (at most 15 bytes); empty if absent.
    pub name: String,
    /// Start of the command line (at most 79 bytes, arguments separated by spaces); empty if
    /// absent.
    pub command: String,
    /// Signal at which the file was written; 0 for none.
    pub signal: i32,
    /// Threads; the crashed one first.
    pub threads: Vec<CoreThread>,
    /// Dumped memory and the files of `NT_FILE`, the latter with names only
    /// ([`MapEntry::UNKNOWN_INODE`]).
    pub mappings: Vec<MapEntry>,
}

/// A thread in a core file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreThread {
    /// The thread.
    pub tid: Tid,
    /// Registers; `None` if cut off, or of an unknown architecture.
    pub registers: Option<Registers>,
    /// CPU time, user and kernel; 0 if the file does not tell it (gdb's), or tells the process's
    /// instead (the kernel's, for the thread with the process's id).
    pub cpu: DurationNs,
}

/// A memory range present in the file.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    end: u64,
    offset: u64,
}

impl std::fmt::Debug for CoreFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoreFile")
            .field("pieces", &self.pieces.len())
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl CoreFile {
    /// Opens the core file `path`.
    ///
    /// # Errors
    /// [`ElfError`] if opening fails or the file is no ELF core file.
    pub fn open(path: &Path) -> Result<Self, ElfError> {
        let file = File::open(path).and_then(ModuleFile::from_file);
        let file = file.map_err(|source| ElfError::Io {
            what: "core file",
            offset: 0,
            length: 0,
            source,
        })?;
        Self::from_file(Arc::new(file))
    }

    /// Reads the headers and notes of a core file.
    ///
    /// # Errors
    /// [`ElfError`] if it is no ELF core file.
    pub fn from_file(file: Arc<dyn ReadAt>) -> Result<Self, ElfError> {
        let elf = ElfFile::open(Arc::clone(&file))?;
        let header = *elf.header();
        if header.kind != ET_CORE {
            return Err(ElfError::NotACore { kind: header.kind });
        }
        let mut info = CoreInfo {
            arch: header.arch,
            pointer_bytes: header.pointer_bytes(),
            pid: None,
            name: String::new(),
            command: String::new(),
            signal: 0,
            threads: Vec::new(),
            mappings: Vec::new(),
        };
        let mut files = Vec::new();
        let mut vdso = None;
        let segments = elf.segments();
        for segment in segments.iter().filter(|segment| segment.kind == PT_NOTE) {
            let there = file.len().saturating_sub(segment.offset);
            let length = segment.file_bytes.min(there).min(MAX_NOTES_BYTES);
            let length = usize::try_from(length).unwrap_or_default();
            let bytes = file
                .read_at(segment.offset, length)
                .map_err(|source| ElfError::Io {
                    what: "notes",
                    offset: segment.offset,
                    length: length as u64,
                    source,
                })?;
            for note in notes(&bytes, segment.align, &header) {
                match (note.owner, note.kind) {
                    ("CORE", NT_FILE) => files = parse_files(note.content, &header),
                    ("CORE", NT_PRPSINFO) => info.take_process(note.content, &header),
                    ("CORE", NT_PRSTATUS) => info.take_thread(note.content, &header),
                    ("CORE", NT_AUXV) => vdso = vdso_address(note.content, &header),
                    _ => {}
                }
            }
        }
        let leader = info.pid.map(|pid| Tid(pid.0));
        let mut threads = info.threads.iter_mut();
        if let Some(leader) = threads.find(|thread| Some(thread.tid) == leader) {
            leader.cpu = DurationNs(0);
        }
        let mut pieces = Vec::new();
        for segment in segments.iter().filter(|segment| segment.is_loaded()) {
            let start = segment.address;
            let in_memory = start.saturating_add(segment.memory_bytes);
            if start < in_memory {
                info.mappings.push(MapEntry {
                    start: Avma(start),
                    end: Avma(in_memory),
                    offset: FileOffset(0),
                    device: 0,
                    inode: 0,
                    name: match vdso == Some(start) {
                        true => b"[vdso]".to_vec(),
                        false => Vec::new(),
                    },
                    readable: true,
                    writable: false,
                    executable: segment.executable,
                });
            }
            let end = start.saturating_add(segment.file_bytes.min(segment.memory_bytes));
            let offset = segment.offset;
            if start < end {
                pieces.push(Piece { start, end, offset });
            }
        }
        pieces.sort_by_key(|piece| piece.start);
        info.mappings = join(info.mappings, files);
        Ok(Self { file, pieces, info })
    }

    /// Whether the file should contain the memory at `at`, even if truncated before it.
    pub(crate) fn claims(&self, at: Avma) -> bool {
        let after = self.pieces.partition_point(|piece| piece.start <= at.get());
        let piece = after.checked_sub(1).and_then(|at| self.pieces.get(at));
        piece.is_some_and(|piece| at.get() < piece.end)
    }

    /// Start of the next memory piece after `at`.
    pub(crate) fn next_piece(&self, at: Avma) -> Option<Avma> {
        let after = self.pieces.partition_point(|piece| piece.start <= at.get());
        self.pieces.get(after).map(|piece| Avma(piece.start))
    }

    /// Process data of the file.
    #[must_use]
    pub fn info(&self) -> &CoreInfo {
        &self.info
    }
}

impl Memory for CoreFile {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        let wanted = buffer.len();
        let mut got = 0;
        while let Some(rest) = buffer.get_mut(got..).filter(|rest| !rest.is_empty()) {
            let Some(from) = at.checked_add(got as u64) else {
                break;
            };
            let after = self
                .pieces
                .partition_point(|piece| piece.start <= from.get());
            let piece = after.checked_sub(1).and_then(|at| self.pieces.get(at));
            let Some(piece) = piece.filter(|piece| from.get() < piece.end) else {
                break;
            };
            let left = usize::try_from(piece.end - from.get()).unwrap_or(usize::MAX);
            let length = rest.len().min(left);
            let rest = rest.get_mut(..length).unwrap_or_default();
            let Some(offset) = piece.offset.checked_add(from.get() - piece.start) else {
                break;
            };
            let read = self.file.read_some(offset, rest);
            let read = read.map_err(|source| MemoryError::Io { at, wanted, source })?;
            got += read;
            if read < length {
                // Truncated file (size limit, full disk).
                break;
            }
        }
        Ok(got)
    }

    fn pointer_bytes(&self) -> usize {
        self.info.pointer_bytes
    }
}

impl CoreInfo {
    /// `struct elf_prpsinfo` (`include/linux/elfcore.h`), in its 64-bit layout.
    fn take_process(&mut self, bytes: &[u8], header: &ElfHeader) {
        if header.pointer_bytes() != 8 {
            return;
        }
        let text = |range: std::ops::Range<usize>| {
            let bytes = bytes.get(range).unwrap_or_default();
            let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(bytes).trim_end().to_owned()
        };
        self.pid = number(bytes, 24, 4, header)
            .and_then(|pid| u32::try_from(pid).ok())
            .map(Pid);
        self.name = text(40..56);
        self.command = text(56..136);
    }

    /// `struct elf_prstatus` (`include/linux/elfcore.h`), in its 64-bit layout.
    fn take_thread(&mut self, bytes: &[u8], header: &ElfHeader) {
        if header.pointer_bytes() != 8 {
            return;
        }
        let field = |at, size| number(bytes, at, size, header);
        let Some(tid) = field(32, 4).and_then(|tid| u32::try_from(tid).ok()) else {
            return;
        };
        if self.threads.is_empty() {
            // The kernel writes the same signal for all threads.
            let signal = field(12, 2).and_then(|signal| i32::try_from(signal).ok());
            self.signal = signal.unwrap_or(0);
        }
        let microseconds = |at| {
            let seconds = field(at, 8)?.checked_mul(1_000_000)?;
            seconds.checked_add(field(at + 8, 8)?)
        };
        let cpu = [48, 64].map(|at| microseconds(at).unwrap_or(0));
        let cpu = cpu[0].saturating_add(cpu[1]).saturating_mul(1000);
        let places = match self.arch {
            Arch::X86_64 => Some(X86_64_REGISTERS),
            Arch::Aarch64 => Some(AARCH64_REGISTERS),
            _ => None,
        };
        let registers = places.and_then(|(places, mask)| {
            let places = places.iter();
            let values = places.map(|place| field(REGISTERS_AT + 8 * place, 8));
            Some(Registers {
                arch: self.arch,
                mask,
                values: values.collect::<Option<_>>()?,
            })
        });
        self.threads.push(CoreThread {
            tid: Tid(tid),
            registers,
            cpu: DurationNs(cpu),
        });
    }
}

/// Address of the vdso in the auxiliary vector (`NT_AUXV`): pairs of key and value.
fn vdso_address(bytes: &[u8], header: &ElfHeader) -> Option<u64> {
    let word = header.pointer_bytes();
    let mut pairs = bytes.chunks_exact(2 * word);
    let pair = pairs.find(|pair| number(pair, 0, word, header) == Some(AT_SYSINFO_EHDR))?;
    number(pair, word, word, header)
}

fn number(bytes: &[u8], at: usize, size: usize, header: &ElfHeader) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    let add = |value: u64, byte: &u8| (value << 8) | u64::from(*byte);
    Some(if header.is_little_endian() {
        bytes.iter().rev().fold(0, add)
    } else {
        bytes.iter().fold(0, add)
    })
}

/// File mappings in `NT_FILE`: count, page size, triples of start, end and offset in pages, then
/// zero-terminated names (`fill_files_note` in `fs/binfmt_elf.c`).
fn parse_files(bytes: &[u8], header: &ElfHeader) -> Vec<MapEntry> {
    let word = header.pointer_bytes();
    let at = |index: usize| number(bytes, index.checked_mul(word)?, word, header);
    let (Some(count), Some(page)) = (at(0), at(1)) else {
        return Vec::new();
    };
    let room = (bytes.len() / word).saturating_sub(2) / 3;
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(room);
    let names_at = (2 + 3 * count) * word;
    let names = bytes.get(names_at..).unwrap_or_default();
    let mut names = names.split(|byte| *byte == 0);
    let mut entries = Vec::with_capacity(count);
    for index in 0..count {
        let field = |field: usize| at(2 + 3 * index + field);
        let (Some(start), Some(end), Some(pages)) = (field(0), field(1), field(2)) else {
            break;
        };
        let name = names.next().unwrap_or_default();
        if start < end {
            entries.push(MapEntry {
                start: Avma(start),
                end: Avma(end),
                offset: FileOffset(pages.saturating_mul(page)),
                device: 0,
                inode: MapEntry::UNKNOWN_INODE,
                name: name.to_vec(),
                readable: true,
                writable: false,
                executable: false,
            });
        }
    }
    entries
}

/// Gives file mappings the permissions of their segments and adds all other segments. File mappings
/// without a dumped segment keep no permissions.
fn join(segments: Vec<MapEntry>, mut files: Vec<MapEntry>) -> Vec<MapEntry> {
    files.sort_by_key(|entry| entry.start);
    let mut anonymous = Vec::new();
    for segment in segments {
        let first = files.partition_point(|file| file.end <= segment.start);
        let mut named = false;
        let inside = files.get_mut(first..).unwrap_or_default().iter_mut();
        for file in inside.take_while(|file| file.start < segment.end) {
            file.executable |= segment.executable;
            named = true;
        }
        if !named {
            anonymous.push(segment);
        }
    }
    files.append(&mut anonymous);
    files.sort_by_key(|entry| entry.start);
    files
}

#[cfg(test)]
mod tests;
