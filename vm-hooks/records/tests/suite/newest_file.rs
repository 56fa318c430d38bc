//! The file of `--keep-last`: readable whenever its writer is killed, bounded, and careful with what
//! else lies in its folder.

use crate::common::{self, Everything, end, read, sample, thread};
use proptest::prelude::*;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use vmscope_records::recording::{KeepLast, create_private};
use vmscope_records::*;

const SECOND: u64 = 1_000_000_000;

/// A temporary folder, and a path for a recording inside.
fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    (folder, path)
}

fn keep(path: &Path, seconds: u64) -> KeepLast {
    KeepLast::in_file(path, DurationNs(seconds * SECOND), 1 << 30).unwrap()
}

/// A number without a pattern (the last steps of splitmix64).
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Half a second of samples of thread 1, with pcs that do not compress, and of a thread that lives as
/// long; flushed.
fn half_second(number: u64, keep: &mut KeepLast) -> Result<(), Box<dyn std::error::Error>> {
    let start = number * SECOND / 2;
    let short = u32::try_from(10 + number)?;
    keep.put(thread(start, short));
    for tick in 0..500 {
        let time = start + tick * 1_000_000;
        keep.put(sample(
            time,
            if tick % 5 == 0 { short } else { 1 },
            mixed(time),
        ));
    }
    keep.put(Record::ThreadEnd(ThreadEnd {
        key: ThreadKey(short),
        time: TimeNs(start + SECOND / 2 - 1),
        alive: false,
        cpu: DurationNs(1),
        cpu_measured: true,
        cpu_user: None,
    }));
    Ok(keep.flush()?)
}

/// What a reader finds at this moment: no damage, all threads, and samples without gaps. Returns the
/// times of the first and the last sample.
fn found(path: &Path) -> (Everything, u64, u64) {
    let everything = read(&fs::read(path).unwrap()).unwrap();
    assert_eq!(everything.ending.damage_count, 0);
    let threads: Vec<ThreadKey> = (everything.records.iter())
        .filter_map(|record| match record {
            Record::Thread(thread) => Some(thread.key),
            _ => None,
        })
        .collect();
    let times: Vec<u64> = everything.samples().map(|s| s.time.0).collect();
    assert!(everything.samples().all(|s| threads.contains(&s.thread)));
    assert!(times.windows(2).all(|pair| pair[1] == pair[0] + 1_000_000));
    let (first, last) = (times[0], times[times.len() - 1]);
    (everything, first, last)
}

fn names(folder: &TempDir) -> Vec<String> {
    let names = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = (names)
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_kill_at_any_moment_leaves_the_window_and_the_disk_use_is_bounded() {
    let (folder, path) = folder();
    let mut keep = keep(&path, 10);
    keep.put(thread(0, 1));
    let (mut largest, mut replaced, mut inode) = (0, 0, 0);
    for number in 0..600 {
        half_second(number, &mut keep).unwrap();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o7777, 0o600);
        assert_eq!(names(&folder), ["out"]);
        replaced += u64::from(metadata.ino() != inode);
        inode = metadata.ino();
        largest = largest.max(metadata.len());
        let (_, first, last) = found(&path);
        let now = (number + 1) * SECOND / 2;
        assert_eq!(last, now - 1_000_000, "all that was flushed is there");
        assert!(
            first <= now.saturating_sub(10 * SECOND),
            "the window is there"
        );
        assert!(now - first <= 17 * SECOND, "{} s too much", now - first);
    }
    // Ten seconds take some 100 KB.
    assert!(largest < 200_000, "{largest} bytes");
    assert!((30..90).contains(&replaced), "{replaced} replacements");

    let (file, written) = keep.end(end(EndReason::Interrupted)).unwrap().unwrap();
    file.finish().unwrap();
    let (everything, first, last) = found(&path);
    assert_eq!(everything.end().unwrap().samples, written.samples);
    assert_eq!(everything.samples().count() as u64, written.samples);
    let span = last - first;
    assert!(
        (10 * SECOND..=11 * SECOND).contains(&(span + 1_000_000)),
        "{span}"
    );
    let of_kind =
        |r: &&Record| matches!(r, Record::Limit(l) if l.kind == LimitKind::OnlyNewestKept);
    assert_eq!(everything.records.iter().filter(of_kind).count(), 1);
    assert_eq!(names(&folder), ["out"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The samples of a file, killed or ended, are the newest of the plain recording.
    #[test]
    fn what_is_kept_is_the_newest_part_of_the_whole(
        window in 1..20_u64,
        halves in 1..100_u64,
        copied in 0..100_u64,
    ) {
        let (folder, path) = folder();
        let mut keep = keep(&path, window);
        let mut plain = KeepLast::new(DurationNs(u64::MAX), usize::MAX);
        for number in 0..halves {
            if number == 0 {
                keep.put(thread(0, 1));
                plain.put(thread(0, 1));
            }
            half_second(number, &mut keep).unwrap();
            half_second(number, &mut plain).unwrap();
            if number == copied {
                let (copy, _) = keep.save(Vec::new(), end(EndReason::Saved)).unwrap();
                let copy = read(&copy).unwrap();
                let has = copy.samples().count() as u64;
                prop_assert!(has >= (500 * (number + 1)).min(window * 1000), "{has}");
            }
        }
        let (whole, _) = plain.save(Vec::new(), end(EndReason::Saved)).unwrap();
        let whole = read(&whole).unwrap();
        let whole: Vec<&Sample> = whole.samples().collect();
        let is_newest = |kept: &Everything| {
            let kept: Vec<&Sample> = kept.samples().collect();
            whole.ends_with(&kept) && kept.len() as u64 >= (500 * halves).min(window * 1000)
        };
        prop_assert!(is_newest(&found(&path).0));
        keep.end(end(EndReason::Interrupted)).unwrap();
        prop_assert!(is_newest(&found(&path).0));
        prop_assert_eq!(names(&folder), ["out"]);
    }
}

/// What a recorder that was killed in the middle of a replacement left, whole or torn, goes with the
/// next recording of that name; nobody else's does.
#[test]
fn an_unfinished_file_of_a_killed_run_is_removed() {
    let (folder, path) = folder();
    let unfinished = folder.path().join(".out.unfinished");
    let recording = common::write(&[thread(0, 1)], &[]);
    for left in [&recording[..], &recording[..9], &[]] {
        for kept in [false, true] {
            fs::write(&unfinished, left).unwrap();
            if kept {
                keep(&path, 10);
            } else {
                create_private(&path).unwrap();
            }
            assert_eq!(names(&folder), ["out"]);
            fs::remove_file(&path).unwrap();
        }
    }
    fs::write(&path, &recording).unwrap();
    for plant in 0..3 {
        match plant {
            0 => fs::write(&unfinished, "a letter").unwrap(),
            1 => symlink(&path, &unfinished).unwrap(),
            _ => fs::create_dir(&unfinished).unwrap(),
        }
        let error = KeepLast::in_file(&path, DurationNs(1), 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert!(error.to_string().contains(".out.unfinished"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), recording);
        assert_eq!(names(&folder), [".out.unfinished", "out"]);
        if plant == 2 {
            fs::remove_dir(&unfinished).unwrap();
        } else {
            fs::remove_file(&unfinished).unwrap();
        }
    }
}

/// Something planted later ends the recording, which stays readable; it is not touched.
#[test]
fn what_is_in_the_way_of_a_replacement_ends_the_recording() {
    for plant in 0..2 {
        let (folder, path) = folder();
        let (victim, unfinished) = (
            folder.path().join("victim"),
            folder.path().join(".out.unfinished"),
        );
        fs::write(&victim, "a letter").unwrap();
        let mut keep = keep(&path, 5);
        keep.put(thread(0, 1));
        half_second(0, &mut keep).unwrap();
        let own = match plant {
            0 => {
                symlink(&victim, &unfinished).unwrap();
                path.clone()
            }
            _ => {
                let moved = folder.path().join("moved");
                fs::rename(&path, &moved).unwrap();
                symlink(&victim, &path).unwrap();
                moved
            }
        };
        let failed = (1..100).find_map(|number| half_second(number, &mut keep).err());
        let failed = failed.unwrap().to_string();
        assert!(failed.contains("newest part"), "{failed}");
        assert!(keep.end(end(EndReason::WriteFailed)).is_ok());
        let (everything, first, last) = found(&own);
        assert!(last - first >= 5 * SECOND);
        assert_eq!(everything.end().unwrap().reason, EndReason::WriteFailed);
        assert_eq!(fs::read(&victim).unwrap(), b"a letter");
        let left = match plant {
            0 => vec![".out.unfinished", "out", "victim"],
            _ => vec!["moved", "out", "victim"],
        };
        assert_eq!(names(&folder), left);
    }
}

/// A file that the user moves away stays as it was then; the recording goes on under its name.
#[test]
fn a_file_that_was_moved_away_is_left_alone() {
    let (folder, path) = folder();
    let mut keep = keep(&path, 5);
    keep.put(thread(0, 1));
    (0..9).for_each(|number| half_second(number, &mut keep).unwrap());
    let moved = folder.path().join("moved");
    fs::rename(&path, &moved).unwrap();
    (9..60).for_each(|number| half_second(number, &mut keep).unwrap());
    assert_eq!(found(&moved).1, 0);
    assert_eq!(found(&path).2, 30 * SECOND - 1_000_000);
}

#[test]
fn a_recording_in_progress_is_not_renamed() {
    let (_folder, path) = folder();
    let plain = create_private(&path).unwrap();
    for _ in 0..2 {
        let error = create_private(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        assert!(path.exists());
    }
    drop(plain);
    let mut keep = keep(&path, 5);
    keep.put(thread(0, 1));
    // Replaced files are locked too.
    for number in 0..60 {
        half_second(number, &mut keep).unwrap();
        assert_eq!(
            create_private(&path).unwrap_err().kind(),
            ErrorKind::ResourceBusy
        );
    }
    drop(keep);
    create_private(&path).unwrap();
}

#[test]
fn an_earlier_recording_is_renamed_and_a_protected_one_never_replaced() {
    let (folder, path) = folder();
    let recording = common::write(&[thread(0, 1)], &[]);
    fs::write(&path, &recording).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    drop(keep(&path, 5));
    let old = folder.path().join("out.old");
    assert_eq!(fs::read(&old).unwrap(), recording);
    assert_eq!(
        fs::metadata(&old).unwrap().permissions().mode() & 0o777,
        0o400
    );
    // The second earlier recording finds a protected one in its place.
    let error = KeepLast::in_file(&path, DurationNs(1), 1).unwrap_err();
    assert!(error.to_string().contains("out.old"), "{error}");
    assert_eq!(fs::read(&old).unwrap(), recording);
    assert!(read(&fs::read(&path).unwrap()).is_ok());
}
