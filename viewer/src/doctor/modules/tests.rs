use std::io::Write;

use super::*;

fn temporary(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(bytes).expect("written");
    file
}

#[test]
fn this_test_has_symbols_and_lines() {
    let pid = i32::try_from(std::process::id()).expect("a pid");
    let maps = procfs::process::Process::myself()
        .and_then(|me| me.maps())
        .expect("our maps");
    let (rows, left_out) = of_maps(pid, &maps);
    let exe = std::env::current_exe().expect("a path");
    let me = rows
        .iter()
        .find(|row| row.path == exe)
        .expect("the test itself");
    assert_eq!(left_out, 0);
    assert_eq!(me.state, FileState::Same);
    assert_eq!(me.dwarf, Dwarf::Embedded);
    assert!(me.symbols.symtab);
}

#[test]
fn another_inode_is_another_file() {
    let proc = Path::new("/proc/self");
    let exe = std::env::current_exe().expect("a path");
    let inode = std::fs::metadata(&exe).expect("the test itself").ino();
    let look = |path: &Path, inode| {
        let row = module(proc, path, inode, (0, 0));
        (row.state, row.opened)
    };
    assert_eq!(look(&exe, inode), (FileState::Same, true));
    assert_eq!(look(&exe, inode ^ 1), (FileState::Replaced, false));
    assert_eq!(
        look(Path::new("/no/such/file"), inode ^ 1),
        (FileState::Deleted, false)
    );
    // Gone from where it was, and still there as /proc/self/exe.
    assert_eq!(
        look(Path::new("/no/such/file (deleted)"), inode),
        (FileState::Deleted, true)
    );
    assert_eq!(
        look(Path::new("/dev/null"), inode ^ 1).0,
        FileState::Unreadable("not a regular file".to_owned())
    );
}

#[test]
fn debug_links_name_files_not_paths() {
    assert_eq!(
        debug_link(b"a.debug\0\x01\x02\x03\x04"),
        Some(PathBuf::from("a.debug"))
    );
    assert_eq!(debug_link(b"../a\0"), None);
    assert_eq!(debug_link(b"\0"), None);
    assert_eq!(debug_link(b""), None);
}

/// Every byte of the header is set to 0 and to 255 in turn: nothing panics, nothing
/// takes more memory than the bounds allow.
#[test]
fn files_that_lie_are_not_believed() {
    let exe = File::open("/proc/self/exe").expect("the test itself");
    let header = read_at(&exe, 0, 64, 64).expect("an ELF header");
    for at in 0..64 {
        for value in [0, 0xff] {
            let mut bytes = header.clone();
            bytes.extend_from_slice(&[0; 256]);
            bytes[at] = value;
            drop(sections(&temporary(&bytes)));
        }
    }
    assert!(sections(&temporary(b"")).is_none());
    assert!(sections(&temporary(b"#!/bin/sh\n")).is_none());
    assert!(sections(&temporary(&header)).is_none());
}
