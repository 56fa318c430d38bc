use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use nix::unistd::{Uid, chown, geteuid};
use vmscope_process::testing::FakeMemory;
use vmscope_records::FileOffset;

use super::*;
use crate::follow::Progress;

fn mapping(start: u64, name: &str, executable: bool) -> MapEntry {
    MapEntry {
        start: vmscope_records::Avma(start),
        end: vmscope_records::Avma(start + 4096),
        offset: FileOffset(0),
        device: 1,
        inode: 7,
        name: name.as_bytes().to_vec(),
        readable: true,
        writable: false,
        executable,
    }
}

#[test]
fn names_of_dumps() {
    assert_eq!(dump_pid(b"/a/jit-12.dump"), Some(12));
    assert_eq!(dump_pid(b"jit-4294967295.dump"), Some(u32::MAX));
    let others = [
        "/jit-.dump",
        "/jit-1.dumps",
        "/xjit-1.dump",
        "/jit-+1.dump",
        "/jit-4294967296.dump",
        "/jit-1.dump/x",
        "",
    ];
    for other in others {
        assert_eq!(dump_pid(other.as_bytes()), None, "{other}");
    }
}

#[test]
fn dumps_are_found_by_the_mappings_that_mark_them() {
    let process = ProcessView::fake(
        Pid(12),
        Arc::new(FakeMemory::new()),
        vec![
            mapping(0x1000, "/a/jit-12.dump", true),
            mapping(0x3000, "/a/jit-12.dump", true),
            mapping(0x5000, "/b/jit-3.dump (deleted)", true),
            mapping(0x7000, "/c/jit-4.dump", false),
            mapping(0x9000, "[anon:jit-5.dump]", true),
        ],
    );
    let found = dump_markers(&process);
    let told: Vec<_> = found
        .iter()
        .map(|m| (m.pid, m.path(), m.is_of(&process)))
        .collect();
    assert_eq!(
        told,
        [
            (12, &b"/a/jit-12.dump"[..], true),
            (3, b"/b/jit-3.dump", false)
        ]
    );
    assert!(found[0].open(&process).is_err(), "there is no such file");
}

/// The test's own process, and a folder for its perf map.
fn own() -> (ProcessView, tempfile::TempDir, PathBuf) {
    let process = ProcessView::open(Pid(std::process::id())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = perf_map_path(folder.path().as_os_str().as_bytes(), &process);
    let path = PathBuf::from(std::ffi::OsString::from_vec(path));
    (process, folder, path)
}

fn open(
    process: &ProcessView,
    folder: &tempfile::TempDir,
) -> Result<Option<PerfMapFile>, FileError> {
    let folder: &OsStr = folder.path().as_os_str();
    let found = open_perf_map(process, folder.as_bytes(), VmKind::Other)?;
    Ok(found.map(|found| found.map))
}

#[test]
fn a_perf_map_is_found_by_its_name() {
    let (process, folder, path) = own();
    assert!(open(&process, &folder).unwrap().is_none());
    fs::write(&path, "10 1 a\n").unwrap();
    let mut map = open(&process, &folder).unwrap().unwrap();
    let mut entries = Vec::new();
    assert_eq!(map.poll(9, &mut entries).unwrap(), Progress::CaughtUp);
    assert_eq!(entries.len(), 1);
    assert!(path.ends_with(format!("perf-{}.map", process.inner_pid())));
}

#[test]
fn planted_perf_maps_are_refused() {
    let (process, folder, path) = own();
    let secret = folder.path().join("secret");
    fs::write(&secret, "10 1 a\n").unwrap();
    std::os::unix::fs::symlink(&secret, &path).unwrap();
    let error = open(&process, &folder).unwrap_err();
    assert!(matches!(error, FileError::NotAFile { .. }), "{error}");
    assert!(error.to_string().contains("planted link"));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(
        open(&process, &folder),
        Err(FileError::NotAFile { .. })
    ));
    fs::remove_dir(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(
        open(&process, &folder),
        Err(FileError::NotAFile { .. })
    ));
}

#[test]
fn another_users_perf_map_is_refused() {
    let (process, folder, path) = own();
    fs::write(&path, "10 1 a\n").unwrap();
    let user = process.user().unwrap();
    let file = vmscope_process::own_root()
        .unwrap()
        .open(path.as_os_str().as_bytes())
        .unwrap();
    // Simulates another user's target, which a test can create as root only.
    let other = Owner {
        user: user + 1,
        started: None,
        must_be_new: false,
    };
    let checked = check(&file, "map", &other);
    if !geteuid().is_root() {
        assert!(matches!(checked, Err(FileError::NotTheTargets { .. })));
        return;
    }
    assert!(checked.is_ok(), "root's is believed");
    chown(&path, Some(Uid::from_raw(12345)), None).unwrap();
    let error = open(&process, &folder).unwrap_err();
    assert!(matches!(
        error,
        FileError::NotTheTargets {
            owner: 12345,
            user: 0,
            ..
        }
    ));
}

#[test]
fn the_perf_map_of_an_earlier_process_is_refused() {
    let (process, folder, path) = own();
    fs::write(&path, "10 1 a\n").unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    let hours = SystemTime::now() - Duration::from_secs(7200);
    file.set_times(FileTimes::new().set_modified(hours))
        .unwrap();
    let error = open(&process, &folder).unwrap_err();
    assert!(
        matches!(error, FileError::Stale { seconds, .. } if seconds > 3600),
        "{error}"
    );
}

#[test]
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn what_an_appending_vm_found_is_not_its_own() {
    let (process, folder, path) = own();
    fs::write(&path, "10 1 a\n").unwrap();
    let file = vmscope_process::own_root()
        .unwrap()
        .open(path.as_os_str().as_bytes())
        .unwrap();
    let made = file.metadata().unwrap().unwrap();
    if made.created().is_err() {
        println!("SKIPPED: this file system does not tell when a file was made");
        return;
    }
    // Simulates a later start of the process, and a later write.
    let mut owner = Owner {
        user: made.uid(),
        started: Some(made.created().unwrap() + Duration::from_secs(10)),
        must_be_new: true,
    };
    let written = SystemTime::now() + Duration::from_secs(20);
    let times = FileTimes::new().set_modified(written);
    let handle = File::options().write(true).open(&path).unwrap();
    handle.set_times(times).unwrap();
    let error = check(&file, "map", &owner).unwrap_err();
    assert!(matches!(error, FileError::Older { .. }), "{error}");
    owner.must_be_new = false;
    assert!(check(&file, "map", &owner).is_ok());
    let folder = folder.path().as_os_str().as_bytes();
    for kind in [VmKind::CPython, VmKind::V8] {
        let found = open_perf_map(&process, folder, kind).unwrap();
        assert!(found.is_some(), "made since");
    }
}

#[test]
fn the_perf_map_of_a_process_that_is_over_is_found() {
    let (process, folder, path) = own();
    let folder = folder.path().as_os_str().as_bytes();
    fs::write(&path, "10 1 a\n").unwrap();
    let (pid, started) = (process.pid(), process.started().unwrap());
    let over = || ProcessView::exited(pid, Vec::new());
    let found = |view: &ProcessView| open_perf_map(view, folder, VmKind::CPython);
    assert!(found(&over()).unwrap().is_none(), "it may be anybody's");
    assert!(found(&over().begun(started)).unwrap().is_some());
    let later = vmscope_records::TimeNs(started.0 + 3_600_000_000_000);
    assert!(found(&over().begun(later)).is_err(), "an earlier process's");
    assert!(
        found(&process.into_departed([].into_iter()))
            .unwrap()
            .is_some()
    );
}

#[test]
fn where_dotnet_writes() {
    let told = |variables: &[(&str, &str)]| {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let variables = variables.iter();
        let environment = variables.map(|(name, value)| (bytes(name), bytes(value)));
        folder_told(&environment.collect(), &FOLDERS_OF_DOTNET)
    };
    let path = ("DOTNET_PerfMapJitDumpPath", "/var/maps/");
    assert_eq!(told(&[("TMPDIR", "/x"), path]).unwrap(), b"/var/maps");
    assert_eq!(told(&[("TMPDIR", "/x")]).unwrap(), b"/x");
    assert_eq!(told(&[("TMPDIR", "relative"), ("A", "/b")]), None);
    let process = ProcessView::exited(Pid(1), Vec::new());
    let given = vec![(b"TMPDIR".to_vec(), b"/x".to_vec())];
    let folder = |kind| perf_map_folder(kind, &process, Some(given.clone()));
    assert_eq!(folder(VmKind::DotNet), b"/x");
    assert_eq!(folder(VmKind::CPython), PERF_MAP_FOLDER);
}
