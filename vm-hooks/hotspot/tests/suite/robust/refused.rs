//! Refused processes: unreadable memory, exited, other Java implementations.

use std::sync::Arc;

use vmscope_hotspot::Family;
use vmscope_process::testing::FakeMemory;
use vmscope_process::{AdapterFamily as _, MapEntry, Memory, MemoryError, ProcessView};
use vmscope_records::{Avma, FileOffset, Pid, Record};

use super::readings::read;
use crate::snapshot_files::snapshot;

/// What yama answers, where `ptrace_scope` is 1.
struct Forbidden;

impl Memory for Forbidden {
    fn read_partial(&self, _: Avma, _: &mut [u8]) -> Result<usize, MemoryError> {
        Err(MemoryError::Denied { pid: Pid(1) })
    }
}

#[test]
fn what_may_not_be_read_is_told_once_with_what_helps() {
    let process = snapshot("jdk17").process_with(Arc::new(Forbidden));
    assert!(Family.recognise(&process).unwrap().is_some());
    let told = read(&process);
    assert!(told.errors.is_empty(), "{:?}", told.errors);
    let limits: Vec<_> = told
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Limit(limit) if limit.text.contains("no permission") => Some(limit),
            _ => None,
        })
        .collect();
    assert_eq!(limits.len(), 1, "{:?}", told.limits());
    assert!(limits[0].remedy.contains("ptrace_scope"));
    // The library's functions are told apart all the same.
    let rules = told.records.iter();
    let rules = rules.filter(|record| matches!(record, Record::RegionRules(_)));
    assert_eq!(rules.count(), 1);
    assert_eq!(told.constituents().count(), 0);
}

fn mapping(path: &str) -> MapEntry {
    MapEntry {
        start: Avma(0x7000_0000),
        end: Avma(0x7010_0000),
        offset: FileOffset(0),
        readable: true,
        writable: false,
        executable: true,
        name: path.as_bytes().to_vec(),
        device: 0,
        inode: MapEntry::UNKNOWN_INODE,
    }
}

#[test]
fn one_that_is_over_is_told_to_be() {
    let library = "/jvm/libjvm.so";
    let mark = vmscope_process::Symbol {
        name: "gHotSpotVMStructs".to_owned(),
        address: Avma(0x7000_1000),
        size: 8,
        kind: vmscope_process::SymbolKind::Object,
    };
    let process =
        ProcessView::exited(Pid(1), vec![mapping(library)]).with_symbols(library, vec![mark]);
    let mut adapter = Family.recognise(&process).unwrap().expect("a HotSpot JVM");
    let clock = Arc::new(|| vmscope_records::TimeNs(7));
    let keys = vmscope_process::KeySource::new();
    let key = vmscope_records::ProcessKey(1);
    let mut poll = vmscope_process::Poll::new(keys.clone(), key, clock.clone());
    assert!(adapter.poll(&process, &mut poll).unwrap_err().is_final());
    let mut last = vmscope_process::Poll::new(keys, key, clock);
    adapter.finish(&process, &mut last).unwrap();
    let records = poll.finish().into_iter().chain(last.finish());
    let (mut rules, mut limits) = (0, Vec::new());
    for record in records {
        match record {
            Record::RegionRules(_) => rules += 1,
            Record::Limit(limit) => limits.push(limit.text),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(rules, 1);
    assert!(
        limits.len() == 1 && limits[0].contains("ended before"),
        "{limits:?}"
    );
}

#[test]
fn other_implementations_are_called_by_their_names() {
    let of = |path: &str| {
        let memory = Arc::new(FakeMemory::new());
        let process = ProcessView::fake(Pid(1), memory, vec![mapping(path)]);
        Family.recognise(&process)
    };
    // Not what it is: no JVM is known by a file's name alone.
    assert!(of("/usr/lib/libjvm.so").unwrap().is_none());
    assert!(of("/usr/bin/cat").unwrap().is_none());
    for path in [
        "/opt/j9/lib/default/libj9vm29.so",
        "/opt/j9/lib/libj9vm_b156.so",
    ] {
        let Err(error) = of(path) else {
            panic!("{path} is none that can be read")
        };
        assert!(error.to_string().contains("Eclipse OpenJ9") && error.is_final());
        assert!(error.remedy().contains("HotSpot"));
    }
}
