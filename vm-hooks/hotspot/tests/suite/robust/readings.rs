//! Adapter records of a snapshot; modification of snapshots.

use std::sync::Arc;

use vmscope_hotspot::HotSpotAdapter;
use vmscope_process::testing::{PAGE_BYTES, Snapshot};
use vmscope_process::{Adapter as _, AdapterError, KeySource, Poll, ProcessView};
use vmscope_records::{Avma, Constituent, ConstituentKind, ProcessKey, Record, TimeNs};

/// Every so many-th piece of code gets a sample.
const SAMPLED: usize = 7;

/// What an adapter told.
#[derive(Debug, Default)]
pub struct Told {
    pub records: Vec<Record>,
    pub errors: Vec<AdapterError>,
}

/// Polls twice, the second time with samples in the middle of some of the code that was told, and
/// ends.
pub fn read(process: &ProcessView) -> Told {
    let (keys, mut told) = (KeySource::new(), Told::default());
    let mut adapter = HotSpotAdapter::new();
    let clock = Arc::new(|| TimeNs(7));
    let mut touched = Vec::new();
    for round in 0..3 {
        let poll = Poll::new(keys.clone(), ProcessKey(1), clock.clone());
        let mut poll = poll.with_touched(touched.clone());
        let result = if round < 2 {
            adapter.poll(process, &mut poll)
        } else {
            adapter.finish(process, &mut poll)
        };
        told.records.extend(poll.finish());
        touched = told.constituents().map(middle).step_by(SAMPLED).collect();
        touched.sort_unstable();
        touched.dedup();
        if let Err(error) = result {
            let is_final = error.is_final();
            told.errors.push(error);
            if is_final {
                break;
            }
        }
    }
    told
}

fn middle(one: &Constituent) -> Avma {
    Avma(one.start.0 + one.end.0.saturating_sub(one.start.0) / 2)
}

impl Told {
    pub fn constituents(&self) -> impl Iterator<Item = &Constituent> {
        self.records.iter().filter_map(|record| match record {
            Record::Constituent(one) => Some(&**one),
            _ => None,
        })
    }

    /// Compiled methods, each as often as it was told.
    pub fn compiled(&self) -> impl Iterator<Item = &Constituent> {
        self.constituents()
            .filter(|one| one.kind == ConstituentKind::Method)
    }

    /// Those of them that have names.
    pub fn named(&self) -> impl Iterator<Item = &Constituent> {
        self.compiled().filter(|one| !one.name.is_empty())
    }

    pub fn limits(&self) -> Vec<&str> {
        let limits = self.records.iter().filter_map(|record| match record {
            Record::Limit(limit) => Some(limit.text.as_str()),
            _ => None,
        });
        limits.collect()
    }

    /// All but the limits, as text.
    pub fn but_limits(&self) -> String {
        let is_other = |record: &&Record| !matches!(record, Record::Limit(_));
        let others: Vec<_> = self.records.iter().filter(is_other).collect();
        format!("{others:?}")
    }
}

/// Reads `bytes` bytes of a snapshot as a number.
pub fn number(snapshot: &Snapshot, at: u64, bytes: usize) -> Option<u64> {
    let page = page_of(snapshot, at)?;
    let within = usize::try_from(at % PAGE_BYTES as u64).unwrap();
    let mut wide = [0; 8];
    wide[..bytes].copy_from_slice(snapshot.pages[page].1.get(within..within + bytes)?);
    Some(u64::from_le_bytes(wide))
}

/// Overwrites bytes at `at`; adds a missing page.
pub fn write(snapshot: &mut Snapshot, at: u64, bytes: &[u8]) {
    snapshot.write(Avma(at), bytes);
}

fn page_of(snapshot: &Snapshot, at: u64) -> Option<usize> {
    let begin = Avma(at - at % PAGE_BYTES as u64);
    snapshot
        .pages
        .binary_search_by_key(&begin, |page| page.0)
        .ok()
}

/// The text at `at`.
pub fn text(snapshot: &Snapshot, at: u64) -> Option<String> {
    let mut bytes = Vec::new();
    while let Some(byte) = number(snapshot, at + bytes.len() as u64, 1) {
        if byte == 0 {
            return String::from_utf8(bytes).ok();
        }
        bytes.push(u8::try_from(byte).unwrap());
    }
    None
}

/// What a symbol of the tables holds.
pub fn symbol(snapshot: &Snapshot, name: &str) -> u64 {
    let found = snapshot.symbols.iter().find(|own| own.name == name);
    number(snapshot, found.expect(name).address.0, 8).expect(name)
}

/// An entry of the table of fields.
#[derive(Clone, Debug)]
pub struct Entry {
    pub structure: String,
    pub field: String,
    /// Address of the pointer to its name; the pointer.
    pub name: (u64, u64),
    /// Address of a static field.
    pub address: u64,
    /// Offset of another field.
    pub offset: u64,
}

/// The table of fields.
pub fn fields(snapshot: &Snapshot) -> Vec<Entry> {
    let of = |part: &str| symbol(snapshot, &format!("gHotSpotVMStructEntry{part}"));
    let first = symbol(snapshot, "gHotSpotVMStructs");
    let mut all = Vec::new();
    for number_of in 0.. {
        let at = first + number_of * of("ArrayStride");
        let word = |part: &str| number(snapshot, at + of(part), 8).unwrap();
        if word("TypeNameOffset") == 0 {
            break;
        }
        all.push(Entry {
            structure: text(snapshot, word("TypeNameOffset")).unwrap(),
            field: text(snapshot, word("FieldNameOffset")).unwrap(),
            name: (at + of("FieldNameOffset"), word("FieldNameOffset")),
            address: word("AddressOffset"),
            offset: word("OffsetOffset"),
        });
    }
    all
}
