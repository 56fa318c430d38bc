//! What is mapped into a process: `/proc/PID/maps`, line by line
//! (`proc_pid_maps(5)`).

use std::io::{BufRead, BufReader, Read};

use procfs::FromBufRead as _;
use procfs::process::{MMPermissions, MemoryMaps};
use vmscope_records::{Avma, FileOffset, Pid};

/// A range of addresses of a process and what is mapped there, as a line of
/// `/proc/PID/maps` or the kernel's `PERF_RECORD_MMAP2` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapEntry {
    /// First address.
    pub start: Avma,
    /// First address after it.
    pub end: Avma,
    /// Where in the file `start` lies, in bytes; 0 for anonymous memory.
    pub offset: FileOffset,
    /// The file's device, major << 32 | minor, as the kernel's memory management
    /// sees it: overlayfs and btrfs show another one in `stat(2)`. 0 for anonymous
    /// memory.
    pub device: u64,
    /// The file's inode; 0 for anonymous memory, [`MapEntry::UNKNOWN_INODE`] in a core
    /// file.
    pub inode: u64,
    /// The path as the target sees it, or the name of other memory (`[heap]`,
    /// `[vdso]`, `[anon:…]`, `//anon`); may be empty, need not be UTF-8, and ends in
    /// ` (deleted)` when the file has lost its name.
    pub name: Vec<u8>,
    /// May be read.
    pub readable: bool,
    /// May be written.
    pub writable: bool,
    /// May be executed.
    pub executable: bool,
}

/// What the kernel appends to the path of a file without a name (`d_path` in
/// `fs/d_path.c`).
const DELETED: &[u8] = b" (deleted)";

impl MapEntry {
    /// The inode of a mapping of a file where only its name is known (core files).
    pub const UNKNOWN_INODE: u64 = u64::MAX;

    /// Packs a device's numbers as [`MapEntry::device`] and
    /// [`vmscope_records::Module::device`] have them.
    #[must_use]
    pub const fn pack_device(major: u32, minor: u32) -> u64 {
        ((major as u64) << 32) | minor as u64
    }

    /// The file's path as the target sees it, without the kernel's mark of a
    /// deleted file; `None` when this is no mapping of a file.
    #[must_use]
    pub fn path(&self) -> Option<&[u8]> {
        // `//anon`, `//toolong` and `//enomem` are perf's words for "no path"
        // (perf_event_mmap_event in kernel/events/core.c).
        // What is neither a path nor anonymous (`anon_inode:[…]`) has no file. A core
        // file's names need not be absolute.
        let is_file = match self.inode {
            0 => false,
            Self::UNKNOWN_INODE => !self.name.is_empty(),
            _ => self.name.starts_with(b"/"),
        };
        is_file.then(|| self.name.strip_suffix(DELETED).unwrap_or(&self.name))
    }

    /// Whether the kernel said that the file has no name any more. A file may be
    /// called so by its owner, too.
    #[must_use]
    pub fn is_marked_deleted(&self) -> bool {
        self.inode != 0 && self.name.ends_with(DELETED)
    }

    /// Whether this is the code that the kernel maps into every process.
    #[must_use]
    pub fn is_vdso(&self) -> bool {
        self.name == b"[vdso]"
    }

    /// The name for people: bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn display_name(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    /// Whether `at` lies in it.
    #[must_use]
    pub fn contains(&self, at: Avma) -> bool {
        self.start <= at && at < self.end
    }
}

/// A process's mappings, and how many lines could not be made sense of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps {
    /// The mappings in ascending order of addresses.
    pub entries: Vec<MapEntry>,
    /// Lines that were skipped because they are no description of a mapping.
    pub malformed: u64,
    /// Whether there was more than is believed ([`MAX_MAPPINGS`]).
    pub truncated: bool,
}

/// More mappings than this are not read. `vm.max_map_count` is 65,530 by default,
/// and about a million where databases and sanitizers ask for more.
pub const MAX_MAPPINGS: usize = 1 << 20;

/// The longest line: a path of `PATH_MAX` bytes, each of them escaped to four, and
/// the fields before it.
const MAX_LINE_BYTES: u64 = 4 * 4096 + 256;

/// Reads the mappings of process `pid`. An empty list is what a kernel thread, a
/// zombie and a process that is just ending have.
///
/// # Errors
///
/// [`MapsError`]; typically `EACCES` for another user's process and `ESRCH` or
/// `ENOENT` for one that is gone.
pub fn read_maps(pid: Pid) -> Result<Maps, MapsError> {
    let error = |source| MapsError { pid, source };
    let file = std::fs::File::open(format!("/proc/{pid}/maps")).map_err(error)?;
    parse_maps(BufReader::with_capacity(1 << 16, file)).map_err(error)
}

/// Why the mappings of a process could not be read.
#[derive(Debug, thiserror::Error)]
#[error("can't read the mappings of process {pid} (/proc/{pid}/maps)")]
pub struct MapsError {
    /// Whose.
    pub pid: Pid,
    /// What the system says.
    #[source]
    pub source: std::io::Error,
}

/// Reads mappings as `/proc/PID/maps` has them.
///
/// # Errors
///
/// Those of reading from `reader`. Bad lines are counted, not fatal.
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

/// One line of `/proc/PID/maps`, without its newline; `None` when it is no
/// description of a mapping.
#[must_use]
pub fn parse_line(line: &[u8]) -> Option<MapEntry> {
    // procfs parses the five fields before the name. It never sees the name: names
    // come from the target, need not be UTF-8 (procfs then gives up the whole file),
    // and some (`/SYSV` and four more letters) make it panic.
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

/// Undoes the kernel's one escape in this file: a newline in a path is written
/// `\012` (`seq_path` in `fs/seq_file.c`). A backslash is not escaped, so a path
/// that has those four characters of its own is misread; it will not be found, and
/// counts as deleted.
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
