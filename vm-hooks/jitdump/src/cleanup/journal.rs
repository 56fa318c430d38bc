//! The list of files that a run will remove, on disk: the next run removes the rest after a kill.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::libc::O_NOFOLLOW;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::getuid;
use vmscope_process::{ModuleFile, ReadAt as _, Root, examine, own_root};
use vmscope_records::Pid;

use crate::find::PERF_MAP_FOLDER;

use super::{LeftFile, Mark, SLACK_SECONDS, remove_v8_logs};

/// Longest journal that is read.
const MAX_BYTES: u64 = 16 << 20;

/// The first line of a journal.
const HEAD: &str = "vmscope journal 1";

/// The journal of a run: a file of mode 0600 in the user's state folder.
/// It names processes that may leave files, and files whose removal failed so far.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
}

impl Journal {
    /// Begins the journal of this run in `folder`, and creates that folder if it is missing.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn begin(folder: &Path) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let me = std::process::id();
        let started = start_ticks(me).unwrap_or(0);
        let path = folder.join(format!("{me}-{started}"));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(O_NOFOLLOW)
            .open(&path)?;
        let boot = boot_id()?;
        file.write_all(format!("{HEAD}\nrun {me} {started} {boot}\n").as_bytes())?;
        Ok(Journal { path })
    }

    /// Notes that a process of this run may leave files named after `inner_pid` in
    /// `folder`.
    pub(super) fn process(&self, inner_pid: u32, folder: &[u8]) {
        let started = start_ticks(inner_pid).unwrap_or(0);
        self.line(&format!(
            "process {inner_pid} {started} {}\n",
            to_hex(folder)
        ));
    }

    /// Notes that the files of process `pid` must stay, despite earlier notes.
    pub(super) fn not_ours(&self, pid: u32) {
        self.line(&format!("not {pid}\n"));
    }

    /// Notes a file for removal.
    pub(super) fn file(&self, piece: &LeftFile) {
        let (device, inode) = piece.identity;
        self.line(&format!("file {device} {inode} {}\n", to_hex(&piece.path)));
    }

    /// Everything is cleaned up.
    pub(super) fn end(&self) {
        // A remaining journal does no harm: the next run finds its files removed.
        let _ = std::fs::remove_file(&self.path);
    }

    fn line(&self, line: &str) {
        // A journal that can't be written costs a file left behind after a crash.
        let file = OpenOptions::new()
            .append(true)
            .custom_flags(O_NOFOLLOW)
            .open(&self.path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }

    /// Removes the remaining files of killed runs, and those runs' journals.
    /// Journals of current runs stay.
    pub fn sweep(folder: &Path) {
        let (Ok(entries), Ok(root)) = (std::fs::read_dir(folder), own_root()) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Some(text) = read(&path) else {
                continue;
            };
            let is_done = match OldRun::parse(&text, &path) {
                Some(old) => !old.goes_on() && old.clean(&root),
                None => is_torn(&text, &path),
            };
            if is_done {
                // Another vmscope may have removed the journal.
                let _ = std::fs::remove_file(&path);
            }
        }
    }
}

/// Contents of an earlier run's journal.
#[derive(Debug, Default)]
struct OldRun {
    pid: u32,
    started: u64,
    /// Whether the machine rebooted since the run.
    rebooted: bool,
    /// Creation time of the journal, seconds since 1970.
    since: i64,
    processes: Vec<(u32, u64, Vec<u8>)>,
    files: Vec<LeftFile>,
}

impl OldRun {
    fn parse(text: &str, path: &Path) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != HEAD {
            return None;
        }
        let mut run = OldRun {
            since: began(path)?,
            ..OldRun::default()
        };
        let mut named = false;
        // The last line may be torn.
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["run", pid, started, boot] => {
                    run.pid = pid.parse().ok()?;
                    run.started = started.parse().ok()?;
                    run.rebooted = boot_id().ok()? != *boot;
                    named = true;
                }
                ["process", pid, started, folder] => {
                    if let (Ok(pid), Ok(started), Some(folder)) =
                        (pid.parse(), started.parse(), from_hex(folder))
                    {
                        run.processes.push((pid, started, folder));
                    }
                }
                ["not", pid] => run
                    .processes
                    .retain(|(other, ..)| other.to_string() != *pid),
                ["file", device, inode, path] => {
                    if let (Ok(device), Ok(inode), Some(path)) =
                        (device.parse(), inode.parse(), from_hex(path))
                    {
                        let identity = (device, inode);
                        run.files.push(LeftFile { path, identity });
                    }
                }
                _ => {}
            }
        }
        named.then_some(run)
    }

    fn goes_on(&self) -> bool {
        !self.rebooted && start_ticks(self.pid) == Some(self.started)
    }

    /// Removes the run's files; returns whether all processes of the run have exited.
    fn clean(&self, root: &Root) -> bool {
        for piece in &self.files {
            let untouched = || {
                // A reboot may reuse inode numbers. A file written after it belongs to another
                // run.
                let file = root.open_no_link(&piece.path).ok()?;
                let metadata = file.metadata().ok()??;
                Some(metadata.mtime() < booted_at()?)
            };
            let is_free = if self.rebooted {
                untouched() == Some(true)
            } else {
                pid_of_name(&piece.path).is_some_and(|pid| !self.is_anothers(pid))
            };
            if is_free && pid_of_name(&piece.path).is_some() {
                // The file may be gone.
                let _ = root.remove(&piece.path, piece.identity);
            }
        }
        if self.rebooted {
            return true;
        }
        let mut all = true;
        for (pid, started, folder) in &self.processes {
            match start_ticks(*pid) {
                Some(now) if now == *started => all = false,
                // A new process with this number may own files of these names.
                Some(_) => {}
                None => self.clean_after(root, *pid, folder),
            }
        }
        all
    }

    /// Whether number `pid` belongs to a process outside that run.
    fn is_anothers(&self, pid: u32) -> bool {
        start_ticks(pid).is_some_and(|now| {
            let is_it =
                |(other, started, _): &(u32, u64, Vec<u8>)| (*other, *started) == (pid, now);
            !self.processes.iter().any(is_it)
        })
    }

    /// Removes files of the dead process `pid` in `folder` and in `/tmp`.
    fn clean_after(&self, root: &Root, pid: u32, folder: &[u8]) {
        let mark = Mark {
            owner: getuid().as_raw(),
            since: self.since - SLACK_SECONDS,
        };
        let dump = format!("/jit-{pid}.dump");
        let own_dump = [folder.strip_suffix(b"/").unwrap_or(folder), dump.as_bytes()].concat();
        let map = format!("/perf-{pid}.map");
        let in_tmp = |name: &str| [PERF_MAP_FOLDER, name.as_bytes()].concat();
        for path in [own_dump, in_tmp(&dump), in_tmp(&map)] {
            if let Ok(file) = root.open_no_link(&path)
                && mark.is_on(&file)
                && (path.ends_with(b".map") || is_dump_of(&file, pid))
                && let Ok(identity) = file.identity()
            {
                let _ = root.remove(&path, identity);
            }
        }
        remove_v8_logs(root, folder, pid, mark);
    }
}

/// Whether a dead run's journal ends within its first two lines: a kill came before vmscope asked a
/// VM for files, or the disk was full.
fn is_torn(text: &str, path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    let run = name.and_then(|name| {
        let (pid, started) = name.split_once('-')?;
        Some((pid.parse().ok()?, started.parse::<u64>().ok()?))
    });
    let Some((pid, started)) = run else {
        return false;
    };
    let start = format!("{HEAD}\nrun {pid} {started} ");
    // A boot id has hexadecimal digits and dashes.
    let is_boot_id = |rest: &str| {
        rest.bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    let is_start = start.starts_with(text) || text.strip_prefix(&start).is_some_and(is_boot_id);
    is_start && start_ticks(pid) != Some(started)
}

/// Whether a file is empty, or begins with a jitdump header of process `pid`.
fn is_dump_of(file: &ModuleFile, pid: u32) -> bool {
    const PID_AT: usize = 20;
    if file.is_empty() {
        return true;
    }
    let Ok(head) = file.read_at(0, PID_AT + 4) else {
        return false;
    };
    let word = |at: usize| {
        let bytes = head.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    word(0) == Some(0x4a69_5444) && word(PID_AT) == Some(pid)
}

/// Process number in the name of a jitdump or perf map.
fn pid_of_name(path: &[u8]) -> Option<u32> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let between = |prefix: &[u8], suffix: &[u8]| {
        let pid = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
        let digits = pid.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(pid)
            .ok()
            .filter(|_| digits)?
            .parse()
            .ok()
    };
    between(b"jit-", b".dump").or_else(|| between(b"perf-", b".map"))
}

fn read(path: &Path) -> Option<String> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.uid() != getuid().as_raw() || metadata.len() > MAX_BYTES {
        return None;
    }
    let mut text = String::new();
    File::take(file, MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Creation time of a journal: its process may be older, its last line younger.
fn began(path: &Path) -> Option<i64> {
    let metadata = std::fs::metadata(path).ok()?;
    let born = metadata.created().or_else(|_| metadata.modified()).ok()?;
    let since = born.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

fn start_ticks(pid: u32) -> Option<u64> {
    examine(Pid(pid)).ok().map(|facts| facts.start_ticks)
}

fn boot_id() -> io::Result<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim().to_owned())
}

/// Boot time of the machine, seconds since 1970.
fn booted_at() -> Option<i64> {
    let wall = clock_gettime(ClockId::CLOCK_REALTIME).ok()?.tv_sec();
    let up = clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?.tv_sec();
    Some(wall - up - SLACK_SECONDS)
}

fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(byte).collect()
}

/// The folder of the journals: `vmscope/jit-files` in the user's state folder.
#[must_use]
pub fn state_folder(state_home: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
    let absolute = |path: &&OsStr| path.as_bytes().starts_with(b"/");
    let base = match state_home.filter(absolute) {
        Some(state) => PathBuf::from(state),
        None => Path::new(home.filter(absolute)?).join(".local/state"),
    };
    Some(base.join("vmscope/jit-files"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump_head(pid: u32) -> Vec<u8> {
        let words = [0x4a69_5444, 1, 40, 62, 0, pid, 0, 0, 0, 0];
        words
            .iter()
            .flat_map(|word: &u32| word.to_ne_bytes())
            .collect()
    }

    /// A pid that no process has.
    fn dead_pid() -> u32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        pid
    }

    #[test]
    fn the_next_run_removes_what_a_killed_one_left() {
        let dir = tempfile::tempdir().unwrap();
        let (state, cwd) = (dir.path().join("state"), dir.path().join("cwd"));
        std::fs::create_dir(&cwd).unwrap();
        let pid = dead_pid();
        let put = |name: String, bytes: &[u8]| {
            let path = cwd.join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let journal = Journal::begin(&state).unwrap();
        journal.process(pid, cwd.as_os_str().as_bytes());
        let dump = put(format!("jit-{pid}.dump"), &dump_head(pid));
        let other = put(format!("jit-{}.dump", pid + 1), &dump_head(pid + 1));
        let log = put(format!("isolate-0x12-{pid}-v8.log"), b"v8-version,11");
        let map = put("perf-7.map".to_owned(), b"");
        let diary = put("diary".to_owned(), b"");
        for path in [&map, &diary] {
            let root = own_root().unwrap();
            let path = path.as_os_str().as_bytes().to_vec();
            let identity = root.open(&path).unwrap().identity().unwrap();
            journal.file(&LeftFile { path, identity });
        }

        Journal::sweep(&state);
        assert!(dump.exists(), "this run goes on");

        // Rewrites the journal as one of a dead process.
        let text = std::fs::read_to_string(&journal.path).unwrap();
        let me = format!("run {} ", std::process::id());
        let text = text.replace(&me, &format!("run {pid} "));
        std::fs::write(&journal.path, text).unwrap();
        Journal::sweep(&state);
        assert!(!dump.exists() && !log.exists() && !map.exists());
        assert!(other.exists() && diary.exists());
        assert!(!journal.path.exists());
    }

    /// A dead run's journal with these lines.
    fn of_a_dead_run(lines: impl Fn(&Journal)) -> (tempfile::TempDir, Journal) {
        let state = tempfile::tempdir().unwrap();
        let journal = Journal::begin(state.path()).unwrap();
        lines(&journal);
        let text = std::fs::read_to_string(&journal.path).unwrap();
        let me = format!("run {} ", std::process::id());
        let text = text.replace(&me, &format!("run {} ", dead_pid()));
        std::fs::write(&journal.path, text).unwrap();
        (state, journal)
    }

    #[test]
    fn perf_maps_are_removed_too() {
        let pid = dead_pid();
        let (state, _journal) = of_a_dead_run(|journal| journal.process(pid, b"/"));
        let map = PathBuf::from(format!("/tmp/perf-{pid}.map"));
        std::fs::write(&map, "10 1 a\n").unwrap();
        Journal::sweep(state.path());
        assert!(!map.exists());
    }

    #[test]
    fn what_is_taken_back_or_may_be_anothers_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().as_os_str().as_bytes();
        let (dead, me) = (dead_pid(), std::process::id());
        let dump_of = |pid: u32| {
            let dump = folder.path().join(format!("jit-{pid}.dump"));
            std::fs::write(&dump, dump_head(pid)).unwrap();
            dump
        };
        let (state, journal) = of_a_dead_run(|journal| {
            journal.process(dead, path);
            journal.not_ours(dead);
            // An earlier process with our number.
            journal.line(&format!("process {me} 1 {}\n", to_hex(path)));
            let dump = dump_of(me);
            let root = own_root().unwrap();
            let path = dump.as_os_str().as_bytes().to_vec();
            let identity = root.open(&path).unwrap().identity().unwrap();
            journal.file(&LeftFile { path, identity });
        });
        let dumps = [dump_of(dead), folder.path().join(format!("jit-{me}.dump"))];
        Journal::sweep(state.path());
        assert!(dumps.iter().all(|dump| dump.exists()));
        assert!(!journal.path.exists(), "it is done with");
    }

    #[test]
    fn a_journal_is_for_its_user_alone_and_what_is_none_removes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::begin(dir.path()).unwrap();
        let mode = std::fs::metadata(&journal.path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        journal.end();
        assert!(!journal.path.exists());
        for (name, text) in [
            ("1-1", "vmscope journal 1\nrun x y z\n"),
            ("1-1", "\u{0}"),
            ("notes", ""),
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            Journal::sweep(dir.path());
            assert!(path.exists(), "{text:?}");
        }
    }

    #[test]
    fn a_torn_journal_goes_once_its_run_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let (me, dead) = (std::process::id(), dead_pid());
        let mine = start_ticks(me).unwrap();
        for text in [
            "".to_owned(),
            "vmscope jour".to_owned(),
            format!("{HEAD}\n"),
            format!("{HEAD}\nrun {dead} 7"),
            format!("{HEAD}\nrun {dead} 7 0b1c-"),
        ] {
            let path = dir.path().join(format!("{dead}-7"));
            std::fs::write(&path, &text).unwrap();
            Journal::sweep(dir.path());
            assert!(!path.exists(), "{text:?}");
        }
        let path = dir.path().join(format!("{me}-{mine}"));
        std::fs::write(&path, "").unwrap();
        Journal::sweep(dir.path());
        assert!(path.exists(), "this run goes on");
    }

    #[test]
    fn paths_survive_the_journal() {
        let path = b"/tmp/a b\n\xff";
        assert_eq!(from_hex(&to_hex(path)).unwrap(), path);
        assert_eq!(from_hex("abc"), None);
        assert_eq!(from_hex("zz"), None);
    }

    #[test]
    fn the_state_folder_is_the_users() {
        let os = OsStr::new;
        let of = |state: Option<&str>, home: Option<&str>| {
            state_folder(state.map(os), home.map(os)).map(|path| path.display().to_string())
        };
        assert_eq!(
            of(None, Some("/home/me")).unwrap(),
            "/home/me/.local/state/vmscope/jit-files"
        );
        assert_eq!(
            of(Some("/state"), Some("/home/me")).unwrap(),
            "/state/vmscope/jit-files"
        );
        assert_eq!(of(Some("relative"), None), None);
    }
}
