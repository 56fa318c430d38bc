//! The file on disk: permissions, replaced files, full disks.

use crate::common;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use vmscope_records::recording::{
    KeepLast, RecordingFile, Store, WriteError, Writer, create_private,
};
use vmscope_records::*;

/// Random samples, of which 1,000 take about 15 KB: a disk is soon full of them.
fn noise(count: u64) -> impl Iterator<Item = Record> {
    let mut state = 1_u64;
    (0..count).map(move |n| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        common::sample(n * 713_927, 1, state)
    })
}

/// Runs this test binary's test `name` once more in a process of its own, with `key`
/// set to `value`; the umask and mounts belong to a process.
fn again(mut command: Command, name: &str, key: &str, value: &Path) -> std::process::Output {
    command
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(key, value)
        .output()
        .unwrap()
}

#[test]
fn only_the_owner_may_read_it_whatever_the_umask() {
    const KEY: &str = "VMSCOPE_TEST_UMASK";
    if let Some(path) = std::env::var_os(KEY) {
        create_private(Path::new(&path)).unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for umask in ["000", "022", "077", "777"] {
        let path = folder.path().join(umask);
        let mut shell = Command::new("sh");
        let exe = std::env::current_exe().unwrap();
        shell
            .arg("-c")
            .arg(format!("umask {umask}; exec \"$0\" \"$@\""))
            .arg(exe);
        let name = "files::only_the_owner_may_read_it_whatever_the_umask";
        let output = again(shell, name, KEY, &path);
        assert!(output.status.success(), "{output:?}");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "umask {umask}");
    }
}

#[test]
fn a_planted_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (victim, link) = (folder.path().join("victim"), folder.path().join("link"));
    // Even when it leads to a recording of ours, or to nothing.
    fs::write(&victim, common::file_header(1, 0)).unwrap();
    symlink(&victim, &link).unwrap();
    let error = create_private(&link).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&victim).unwrap(), common::file_header(1, 0));
    fs::remove_file(&victim).unwrap();
    assert!(create_private(&link).is_err());
    assert!(!victim.exists());
}

#[test]
fn only_an_own_recording_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, "a letter").unwrap();
    assert_eq!(
        create_private(&path).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    assert_eq!(fs::read(&path).unwrap(), b"a letter");
    let recording = common::write(&[], &[]);
    let old = folder.path().join("out.old");
    fs::write(&path, &recording).unwrap();
    fs::write(&old, "a letter").unwrap();
    // Neither the letter nor the recording is lost.
    assert!(create_private(&path).is_err());
    assert_eq!(fs::read(&old).unwrap(), b"a letter");
    assert_eq!(fs::read(&path).unwrap(), recording);
    fs::remove_file(&old).unwrap();
    create_private(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    assert_eq!(
        fs::read(&old).unwrap(),
        recording,
        "the earlier one is kept"
    );
    fs::write(&path, [&recording[..], &recording].concat()).unwrap();
    create_private(&path).unwrap();
    let kept = fs::metadata(&old).unwrap().len();
    assert_eq!(kept, 2 * recording.len() as u64, "the newest one is kept");
    // An empty file, as the line above left it, is replaced too; a folder is not.
    create_private(&path).unwrap();
    assert!(create_private(folder.path()).is_err());
}

#[test]
fn a_folder_that_takes_nothing_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no such folder/out");
    assert_eq!(
        create_private(&missing).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let root_may = fs::write(folder.path().join("probe"), "").is_ok();
    // Permissions don't stop root; `/sys` does.
    let closed = if root_may {
        Path::new("/sys")
    } else {
        folder.path()
    };
    let error = create_private(&closed.join("out"));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(error.unwrap_err().kind(), ErrorKind::PermissionDenied);
}

/// A disk in memory with room for so many bytes, some more set aside for the end.
#[derive(Debug, Default)]
struct SmallDisk {
    bytes: Vec<u8>,
    room: usize,
}

impl Store for &mut SmallDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.bytes.len() + bytes.len() > self.room {
            return Err(io::Error::from(ErrorKind::StorageFull));
        }
        self.append_last(bytes)
    }

    fn append_last(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

/// Everything in `bytes` is a whole recording whose end says that writing failed, as does `error`.
fn assert_ends_by_failure(bytes: &[u8], error: &WriteError, at_least: u64) {
    assert_eq!(error.source.kind(), ErrorKind::StorageFull);
    let read = common::read(bytes).unwrap();
    assert_eq!(read.ending.damage_count, 0);
    let end = read.end().unwrap();
    assert_eq!(end.reason, EndReason::WriteFailed);
    let text = end.detail.to_lowercase();
    assert!(
        text.contains("no storage space") || text.contains("no space"),
        "{text}"
    );
    let count = read.samples().count() as u64;
    assert_eq!(count, end.samples);
    assert_eq!(count, error.written.samples);
    assert!(count >= at_least, "{count}");
    // The recording has the first `count` samples, without gaps.
    for (index, (got, put)) in read.samples().zip(noise(count)).enumerate() {
        assert_eq!(Record::Sample(got.clone()), put, "sample {index}");
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_says_so() {
    // The caller stops at the first error, or goes on and sees the error at the end.
    for stubborn in [false, true] {
        let mut disk = SmallDisk {
            room: 100_000,
            ..SmallDisk::default()
        };
        let mut writer = Writer::begin(&mut disk).unwrap();
        let mut failed = false;
        for (index, record) in noise(50_000).enumerate() {
            failed |= writer.put(record).is_err();
            if index % 700 == 699 {
                failed |= writer.flush().is_err();
            }
            if failed && !stubborn {
                break;
            }
        }
        assert!(failed);
        let error = writer.end(common::end(EndReason::Interrupted)).unwrap_err();
        assert_ends_by_failure(&disk.bytes, &error, 5_000);
    }
}

#[test]
fn a_disk_that_is_full_at_once_leaves_nothing_that_looks_whole() {
    let mut disk = SmallDisk {
        room: 10,
        ..SmallDisk::default()
    };
    assert!(Writer::begin(&mut disk).is_err());
    assert!(disk.bytes.is_empty());
}

#[test]
fn keep_last_on_a_full_disk_says_so_too() {
    let mut keep = KeepLast::new(DurationNs(u64::MAX), usize::MAX);
    for (index, record) in noise(20_000).enumerate() {
        keep.put(record);
        if index % 700 == 699 {
            keep.flush().unwrap();
        }
    }
    let mut disk = SmallDisk {
        room: 100_000,
        ..SmallDisk::default()
    };
    let saved = keep.save(&mut disk, common::end(EndReason::Saved));
    let error = saved.unwrap_err();
    assert_ends_by_failure(&disk.bytes, &error, 5_000);
    // What is kept is still there.
    let (bytes, _) = keep
        .save(Vec::new(), common::end(EndReason::Saved))
        .unwrap();
    assert_eq!(common::read(&bytes).unwrap().samples().count(), 20_000);
}

/// The same on a real file system of 256 KiB, where space is set aside with fallocate.
#[test]
fn a_full_file_system_ends_the_recording_and_says_so() {
    const KEY: &str = "VMSCOPE_TEST_FULL_DISK";
    const NAME: &str = "files::a_full_file_system_ends_the_recording_and_says_so";
    if let Some(folder) = std::env::var_os(KEY) {
        keep_last_fills_the_file_system(Path::new(&folder));
        let path = PathBuf::from(folder).join("out");
        let file = RecordingFile::new(create_private(&path).unwrap());
        let mut writer = Writer::begin(file).unwrap();
        for (index, record) in noise(50_000).enumerate() {
            let put = writer.put(record);
            if put.is_err() || (index % 700 == 699 && writer.flush().is_err()) {
                break;
            }
        }
        let error = writer.end(common::end(EndReason::Interrupted)).unwrap_err();
        assert_ends_by_failure(&fs::read(&path).unwrap(), &error, 5_000);
        println!("the full file system was tested");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("unshare");
    let exe = std::env::current_exe().unwrap();
    let script =
        format!("mount -t tmpfs -o size=256k tmpfs \"${KEY}\" || exit 77; exec \"$0\" \"$@\"");
    shell
        .args(["--mount", "--map-root-user", "sh", "-c", &script])
        .arg(exe);
    let available = Command::new("unshare")
        .args(["--mount", "--map-root-user", "true"])
        .output();
    if !available.is_ok_and(|output| output.status.success()) {
        common::skip(
            NAME,
            "no mount namespaces here (unshare --mount --map-root-user)",
        );
        return;
    }
    let output = again(shell, NAME, KEY, folder.path());
    if output.status.code() == Some(77) {
        common::skip(NAME, "a tmpfs can't be mounted here");
        return;
    }
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said = String::from_utf8_lossy(&output.stdout).contains("was tested");
    assert!(said, "the test did not run in the file system");
}

/// A full file system has room for the window, but not for its copy: the recording ends with the window.
fn keep_last_fills_the_file_system(folder: &Path) {
    let path = folder.join("kept");
    let mut keep = KeepLast::in_file(&path, DurationNs(7_000 * 713_927), 1 << 30).unwrap();
    let mut put = 0;
    let failed = noise(50_000).enumerate().find_map(|(index, record)| {
        keep.put(record);
        put += 1;
        (index % 700 == 699).then(|| keep.flush().err())?
    });
    let failed = failed.unwrap();
    assert_eq!(failed.source.kind(), ErrorKind::StorageFull);
    // 64 KiB are set aside for the end.
    let ended = keep.end(common::end(EndReason::WriteFailed));
    assert!(ended.is_ok() || ended.is_err_and(|e| e.source.kind() == ErrorKind::StorageFull));
    let read = common::read(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(read.ending.damage_count, 0);
    assert_eq!(read.end().unwrap().reason, EndReason::WriteFailed);
    let kept = read.samples().count();
    assert!(kept >= 7_000, "{kept} of {put}");
    let files: Vec<_> = fs::read_dir(folder).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    fs::remove_file(&path).unwrap();
}

#[test]
fn a_finished_file_is_as_long_as_what_was_written_and_can_be_added_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let mut writer = Writer::begin(RecordingFile::new(create_private(&path).unwrap())).unwrap();
    for record in noise(100) {
        writer.put(record).unwrap();
    }
    let (file, written) = writer.end(common::end(EndReason::Interrupted)).unwrap();
    let file = file.finish().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), written.bytes);
    // Space set aside is given back.
    let blocks = std::os::unix::fs::MetadataExt::blocks(&fs::metadata(&path).unwrap());
    assert!(blocks * 512 < 64 << 10, "{blocks} blocks");

    add_a_thread(file);
    let read = common::read(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(read.records.last(), Some(&common::thread(5, 9)));
    assert_eq!(read.samples().count(), 100);
}

fn add_a_thread(file: fs::File) {
    let mut writer = Writer::resume(RecordingFile::append_to(file).unwrap());
    writer.put(common::thread(5, 9)).unwrap();
    writer.flush().unwrap();
}

#[test]
fn what_is_added_to_a_torn_recording_is_not_taken_for_its_torn_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let records: Vec<Record> = noise(100).collect();
    let whole = common::write(&records, &[50]);
    for missing in [1, 20, 100, 500] {
        fs::write(&path, &whole[..whole.len() - missing]).unwrap();
        let before = common::read(&fs::read(&path).unwrap()).unwrap().records;
        let file = fs::File::options()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        add_a_thread(file);
        let read = common::read(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(read.ending.damage_count, 0, "{missing} bytes missing");
        assert_eq!(read.records[..before.len()], before);
        assert_eq!(read.records.last(), Some(&common::thread(5, 9)));
    }
}

#[test]
fn nothing_is_added_to_what_is_no_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, "a letter of more than sixteen bytes").unwrap();
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let error = RecordingFile::append_to(file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}

#[test]
fn chunks_of_samples_with_chains_are_never_too_large_to_be_read() {
    const COUNT: u64 = 6_000;
    let mut writer = Writer::begin(Vec::new()).unwrap();
    let mut state = 1_u64;
    for n in 0..COUNT {
        let chain = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            Avma(state)
        });
        let detail = SampleDetail {
            chain: Some(CallChain {
                user: chain.take(127).collect(),
                ..CallChain::default()
            }),
            ..SampleDetail::default()
        };
        let Record::Sample(sample) = common::sample(n, 1, n) else {
            panic!("no sample");
        };
        let sample = Sample {
            detail: Some(Box::new(detail)),
            ..sample
        };
        // Nobody flushes for a long time.
        writer.put(Record::Sample(sample)).unwrap();
    }
    let everything = common::read(&writer.close().unwrap()).unwrap();
    assert_eq!(everything.samples().count() as u64, COUNT);
}
