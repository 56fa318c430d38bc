//! Mappings of a process from `/proc/PID/maps` (`proc_pid_maps(5)`).

use std::io::{BufRead, BufReader, Read};

use procfs::FromBufRead as _;
use procfs::process::{MMPermissions, MemoryMaps};
use vmscope_records::{Avma, FileOffset, Pid, is_shared_memory};

use crate::attach::living;

/// A mapping: a line of `/proc/PID/maps`, or the kernel's `PERF_RECORD_MMAP2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapEntry {
    /// First address.
    pub start: Avma,
    /// First address after the mapping.
    pub end: Avma,
    /// File offset of `start` in bytes; 0 for anonymous memory.
    pub offset: FileOffset,
    /// The file's device, major << 32 | minor, as the kernel's memory management sees it (overlayfs
    /// and btrfs report another one in `stat(2)`); 0 for anonymous memory.
    pub device: u64,
    /// The file's inode; 0 for anonymous memory, [`MapEntry::UNKNOWN_INODE`] in core files.
    pub inode: u64,
    /// Path as the target sees it, or name of other memory (`[heap]`, `[vdso]`, `[anon:…]`,
    /// `//anon`). May be empty or invalid UTF-8; ends in ` (deleted)` for deleted files.
    pub name: Vec<u8>,
    /// Readable.
    pub readable: bool,
    /// Writable.
    pub writable: bool,
    /// Executable.
    pub executable: bool,
}

/// Path suffix of deleted files (`d_path` in `fs/d_path.c`).
const DELETED: &[u8] = b" (deleted)";

impl MapEntry {
    /// Inode of file mappings in core files, which have names only.
    pub const UNKNOWN_INODE: u64 = u64::MAX;

    /// Packs device numbers for [`MapEntry::device`] and [`vmscope_records::Module::device`].
    #[must_use]
    pub const fn pack_device(major: u32, minor: u32) -> u64 {
        ((major as u64) << 32) | minor as u64
    }

    /// The file's path as the target sees it, without the kernel's mark for deleted files; `None`
    /// for memory without a file.
    #[must_use]
    pub fn path(&self) -> Option<&[u8]> {
        // perf uses `//anon`, `//toolong` and `//enomem` for missing paths (perf_event_mmap_event
        // in kernel/events/core.c). Other special names (`anon_inode:[…]`) have no file either.
        // Names in core files may be relative.
        let is_file = match self.inode {
            0 => false,
            Self::UNKNOWN_INODE => !self.name.is_empty(),
            _ => self.name.starts_with(b"/"),
        };
        is_file.then(|| self.name.strip_suffix(DELETED).unwrap_or(&self.name))
    }

    /// Whether the memory is a file's on disk; shared memory has a path, too.
    #[must_use]
    pub fn is_of_file(&self) -> bool {
        self.path().is_some_and(|path| !is_shared_memory(path))
    }

    /// Whether a VM may generate code here: executable memory neither of a file nor of the kernel.
    #[must_use]
    pub fn is_for_generated_code(&self) -> bool {
        let of_kernel: [&[u8]; 3] = [b"[vdso]", b"[vsyscall]", b"[uprobes]"];
        self.executable && !self.is_of_file() && !of_kernel.contains(&&*self.name)
    }

    /// Whether the kernel marks the file as deleted. Ambiguous: an existing file's name may end in
    /// the mark.
    #[must_use]
    pub fn is_marked_deleted(&self) -> bool {
        self.inode != 0 && self.name.ends_with(DELETED)
    }

    /// Whether this is the vdso, kernel code mapped into every process.
    #[must_use]
    pub fn is_vdso(&self) -> bool {
        self.name == b"[vdso]"
    }

    /// Name for display; invalid UTF-8 is replaced.
    #[must_use]
    pub fn display_name(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    /// The mapping at `at` among `mappings`, which ascend.
    #[must_use]
    pub fn find(mappings: &[MapEntry], at: Avma) -> Option<&MapEntry> {
        let after = mappings.partition_point(|entry| entry.start <= at);
        let entry = mappings.get(after.checked_sub(1)?)?;
        entry.contains(at).then_some(entry)
    }

    /// Whether `at` lies in the mapping.
    #[must_use]
    pub fn contains(&self, at: Avma) -> bool {
        self.start <= at && at < self.end
    }
}

/// Mappings of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps {
    /// Mappings in ascending order of addresses.
    pub entries: Vec<MapEntry>,
    /// Number of skipped malformed lines.
    pub malformed: u64,
    /// Whether entries beyond [`MAX_MAPPINGS`] were dropped.
    pub truncated: bool,
}

/// Cap on mappings. `vm.max_map_count` is 65,530 by default; databases and sanitizers raise it to
/// about a million.
pub const MAX_MAPPINGS: usize = 1 << 20;

/// The longest line: a path of `PATH_MAX` bytes, each escaped to four, after the other fields.
const MAX_LINE_BYTES: u64 = 4 * 4096 + 256;

/// Reads the mappings of process `pid`, also if its main thread has ended. Kernel threads, zombies
/// and exiting processes have none.
///
/// # Errors
/// [`MapsError`]; typically `EACCES` for another user's process, `ESRCH` or `ENOENT` after its
/// exit.
pub fn read_maps(pid: Pid) -> Result<Maps, MapsError> {
    let error = |source| MapsError { pid, source };
    let read = |id: Pid| {
        let file = std::fs::File::open(format!("/proc/{id}/maps"))?;
        parse_maps(BufReader::with_capacity(1 << 16, file))
    };
    let maps = read(pid).map_err(error)?;
    match living(pid) {
        other if maps.entries.is_empty() && other != pid => read(other).map_err(error),
        _ => Ok(maps),
    }
}

/// A process with unreadable mappings.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the memory map of process {pid} (/proc/{pid}/maps)")]
pub struct MapsError {
    /// The process.
    pub pid: Pid,
    /// The system's error.
    #[source]
    pub source: std::io::Error,
}

/// Parses mappings in the format of `/proc/PID/maps`; counts and skips bad lines.
///
/// # Errors
/// I/O errors of `reader`.
pub fn parse_maps(mut reader: impl BufRead) -> std::io::Result<Maps> {
    let mut maps = Maps::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = reader.by_ref().take(MAX_LINE_BYTES);
        if bounded.read_until(b'\n', &mut line)? == 0 {
            return Ok(maps);
        }
        if maps.entries.len() >= MAX_MAPPINGS || maps.malformed >= MAX_MAPPINGS as u64 {
            maps.truncated = true;
            return Ok(maps);
        }
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        match parse_line(line) {
            Some(entry) => maps.entries.push(entry),
            None => maps.malformed += 1,
        }
    }
}

/// Parses one line of `/proc/PID/maps`, without its newline; `None` for other text.
#[must_use]
pub fn parse_line(line: &[u8]) -> Option<MapEntry> {
    // procfs parses the five fields before the name, but not the name: it rejects files with
    // invalid UTF-8, and some names (`/SYSV` with four more letters) make it panic.
    let mut spaces = line.iter().enumerate().filter(|(_, byte)| **byte == b' ');
    let (fifth_space, _) = spaces.nth(4)?;
    let (fields, name) = line.split_at_checked(fifth_space + 1)?;
    let parsed = MemoryMaps::from_buf_read(fields).ok()?;
    let [map] = parsed.0.as_slice() else {
        return None;
    };
    let device = MapEntry::pack_device(
        u32::try_from(map.dev.0).ok()?,
        u32::try_from(map.dev.1).ok()?,
    );
    let (start, end) = map.address;
    (start < end).then(|| MapEntry {
        start: Avma(start),
        end: Avma(end),
        offset: FileOffset(map.offset),
        device,
        inode: map.inode,
        name: unescape(name.trim_ascii_start()),
        readable: map.perms.contains(MMPermissions::READ),
        writable: map.perms.contains(MMPermissions::WRITE),
        executable: map.perms.contains(MMPermissions::EXECUTE),
    })
}

/// Reverts the kernel's only escape in this file: `\012` for a newline in a path (`seq_path` in
/// `fs/seq_file.c`). Backslashes are not escaped, so a path with a literal `\012` is misread;
/// vmscope then treats the file as deleted.
fn unescape(name: &[u8]) -> Vec<u8> {
    const NEWLINE: &[u8] = b"\\012";
    let mut plain = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((first, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(NEWLINE) {
            plain.push(b'\n');
            rest = after;
        } else {
            plain.push(*first);
            rest = after;
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(line: &str) -> MapEntry {
        parse_line(line.as_bytes()).unwrap()
    }

    #[test]
    fn a_line_of_a_file() {
        let entry = entry(
            "7f1c2a400000-7f1c2a5c8000 r-xp 00028000 fe:01 1835020                    /usr/lib/libc.so.6",
        );
        assert_eq!(entry.start, Avma(0x7f1c_2a40_0000));
        assert_eq!(entry.end, Avma(0x7f1c_2a5c_8000));
        assert_eq!(entry.offset, FileOffset(0x28000));
        assert_eq!(entry.device, 0xfe_0000_0001);
        assert_eq!(entry.inode, 1_835_020);
        assert_eq!(entry.path(), Some(&b"/usr/lib/libc.so.6"[..]));
        assert!(entry.executable && entry.readable && !entry.writable);
    }

    #[test]
    fn names_are_taken_as_they_are() {
        let path = |name: &[u8]| {
            let mut line = b"1000-2000 r-xp 00000000 00:2a 7   ".to_vec();
            line.extend_from_slice(name);
            let entry = parse_line(&line).unwrap();
            (entry.path().map(<[u8]>::to_vec), entry.is_marked_deleted())
        };
        let some = |path: &[u8]| Some(path.to_vec());
        assert_eq!(path(b"/a b  c"), (some(b"/a b  c"), false));
        assert_eq!(path(b"/a (deleted)"), (some(b"/a"), true));
        assert_eq!(path(b"/two\\012lines"), (some(b"/two\nlines"), false));
        assert_eq!(path(b"/\xff\xfe"), (some(b"/\xff\xfe"), false));
        assert_eq!(path(b"/SYSVx"), (some(b"/SYSVx"), false));
        assert_eq!(path(b"/ends in space "), (some(b"/ends in space "), false));
        assert_eq!(path(b"[stack:"), (None, false));
        assert_eq!(path(b"anon_inode:[io_uring]"), (None, false));
        assert_eq!(path(b""), (None, false));
    }

    #[test]
    fn anonymous_memory_has_a_name_or_none() {
        assert_eq!(entry("1000-2000 rw-p 00000000 00:00 0 ").name, b"");
        assert_eq!(
            entry("1000-2000 rw-p 00000000 00:00 0    [anon:a b]").display_name(),
            "[anon:a b]"
        );
        assert!(entry("1000-2000 r-xp 00000000 00:00 0     [vdso]").is_vdso());
    }

    #[test]
    fn bad_lines_are_counted_and_skipped() {
        let text = b"1000-2000 r-xp 0 00:00 0 \nnonsense\n2000-1000 r-xp 0 00:00 0 \n\
            zz-3000 r-xp 0 00:00 0 \n3000-4000 r--p 0 00:00 0 \n";
        let maps = parse_maps(&text[..]).unwrap();
        assert_eq!(maps.entries.len(), 2);
        assert_eq!(maps.malformed, 3);
        assert!(!maps.truncated);
    }

    #[test]
    fn an_endless_line_takes_bounded_memory() {
        let endless = std::io::repeat(b'x').take(1 << 20);
        let maps = parse_maps(BufReader::new(endless)).unwrap();
        assert!(maps.entries.is_empty() && maps.malformed > 1);
    }

    #[test]
    fn this_process_has_code() {
        let maps = read_maps(Pid(std::process::id())).unwrap();
        assert_eq!(maps.malformed, 0);
        let code = Avma(this_process_has_code as *const () as u64);
        let entry = maps.entries.iter().find(|entry| entry.contains(code));
        assert!(entry.unwrap().executable);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse_maps(&bytes[..]);
        }

        #[test]
        fn any_name_after_good_fields_is_kept(
            name in proptest::collection::vec(any::<u8>().prop_filter("newline", |b| *b != b'\n'), 0..60),
        ) {
            let mut line = b"1000-2000 r-xp 00000000 00:2a 7 /".to_vec();
            line.extend_from_slice(&name);
            let entry = parse_line(&line).unwrap();
            prop_assert!(entry.name.starts_with(b"/"));
        }

        #[test]
        fn any_fields_are_read_without_panic(line in "[-0-9a-f:rwxps ]{0,80}") {
            let _ = parse_line(line.as_bytes());
        }
    }
}
