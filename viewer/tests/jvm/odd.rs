//! JVMs in odd situations: killed during attaching, started by a script, or with a perf map of the
//! same code.

use std::path::PathBuf;

use nix::sys::signal::Signal;

use crate::common::vmscope::{Folder, attached, report};
use crate::known::steady;

/// A perf map; dropped, it is removed.
struct PerfMap(PathBuf);

impl PerfMap {
    /// Writes a map with one name for all generated code of a process.
    fn of(pid: u32, name: &str) -> Self {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("our child");
        let generated = maps.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let (range, rights) = (words.next()?, words.next()?);
            let is_generated = rights.contains('x') && words.nth(3).is_none();
            let (start, end) = range.split_once('-').filter(|_| is_generated)?;
            let number = |hex| u64::from_str_radix(hex, 16).expect("an address");
            Some((number(start), number(end)))
        });
        let line = |(start, end): (u64, u64)| format!("{start:x} {:x} {name}\n", end - start);
        let text: String = generated.map(line).collect();
        assert!(!text.is_empty(), "{maps}");
        let map = PerfMap(PathBuf::from(format!("/tmp/perf-{pid}.map")));
        std::fs::write(&map.0, text).expect("a file in /tmp");
        map
    }
}

impl Drop for PerfMap {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The VM's own view has bytecodes; an agent's map has only names.
#[test]
fn a_perf_map_of_the_same_code_does_not_count() {
    let Some(mut target) = steady() else {
        return;
    };
    let _map = PerfMap::of(target.pid(), "named_by_the_map");
    let folder = Folder::new();
    let file = folder.file("out.vmscope");
    let attached = attached(target.pid(), &file, 2000);
    target.signal(Signal::SIGTERM);
    target.wait();
    attached.end().code(0);
    let text = report(&file, &["--json"]).code(0).stdout;
    assert!(!text.contains("named_by_the_map"), "{text}");
    assert!(text.contains("programs.Shares."), "{text}");
}

#[test]
fn one_that_is_killed_leaves_what_was_read() {
    let Some(mut target) = steady() else {
        return;
    };
    let folder = Folder::new();
    let file = folder.file("out.vmscope");
    let attached = attached(target.pid(), &file, 2000);
    target.signal(Signal::SIGKILL);
    attached.end().code(0);
    target.wait();
    let text = report(&file, &["--json"]).code(0).stdout;
    assert!(text.contains("programs.Shares."), "{text}");
}
