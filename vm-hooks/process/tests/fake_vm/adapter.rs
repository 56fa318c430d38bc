//! The fake VM's adapter: what a small adapter looks like, and how it bounds what it
//! reads.

use std::collections::HashMap;
use std::time::Duration;

use vmscope_process::{
    Adapter, AdapterError, AdapterFamily, Cadence, CodeZone, Memory, Poll, ProcessView,
    SampleNeeds, SeenCode, read_consistently,
};
use vmscope_records::{
    Avma, BoundaryRule, BytecodePc, CodeChange, Constituent, CounterMeaning, Exactness, GoneReason,
    Method, MethodKey, PcMap, VmIdentity,
};

use crate::vm::{ENTRY_BYTES, MAGIC};

const MAX_ENTRIES: u64 = 1000;
const MAX_NAME_BYTES: usize = 100;
const MAX_MAP_ENTRIES: usize = 5000;
const ATTEMPTS: u32 = 4;

pub struct FakeFamily;

impl AdapterFamily for FakeFamily {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn recognise(&self, process: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        let Some(module) = process.module(|name| name == "fakevm") else {
            return Ok(None);
        };
        let name = "fake_vm_header";
        let found = process.symbols(&module, &[name])?.into_iter().flatten();
        let header = found.map(|symbol| symbol.address).next();
        let header = header.ok_or_else(|| AdapterError::MissingSymbol {
            name: name.to_owned(),
        })?;
        let magic = process.memory().read_u64(header);
        match magic.map_err(AdapterError::reading("header"))? {
            MAGIC => Ok(Some(Box::new(FakeAdapter::new(header)))),
            0 => Err(AdapterError::NotReady { what: "header" }),
            value => Err(AdapterError::Implausible {
                what: "magic number",
                value,
                at: header,
            }),
        }
    }
}

struct FakeAdapter {
    header: Avma,
    zone: CodeZone<(u64, u64)>,
    methods: HashMap<u64, MethodKey>,
    /// What was told without its map.
    without_map: HashMap<(u64, u64), Constituent>,
    cadence: Cadence,
}

#[derive(Clone)]
struct Entry {
    method: u64,
    compile_id: u64,
    start: Avma,
    end: Avma,
    map: (Avma, u32),
    name: String,
}

impl FakeAdapter {
    fn new(header: Avma) -> Self {
        Self {
            header,
            zone: CodeZone::new(),
            methods: HashMap::new(),
            without_map: HashMap::new(),
            cadence: Cadence::new(Duration::from_millis(50), Duration::from_secs(1), 100),
        }
    }

    fn field(&self, index: u64) -> Avma {
        Avma(self.header.get() + 8 * index)
    }

    fn version(&self, memory: &dyn Memory) -> Result<u64, AdapterError> {
        let version = memory.read_u64(self.field(1));
        let version = version.map_err(AdapterError::reading("version"))?;
        if version % 2 == 1 {
            return Err(AdapterError::Busy { what: "code zone" });
        }
        Ok(version)
    }

    fn read_zone(&self, memory: &dyn Memory) -> Result<Vec<Entry>, AdapterError> {
        let reading = AdapterError::reading("code zone");
        let mut at = memory.read_pointer(self.field(2)).map_err(&reading)?;
        let mut entries = Vec::new();
        while at != Avma(0) {
            if entries.len() as u64 >= MAX_ENTRIES {
                let (what, cap) = ("code entries", MAX_ENTRIES);
                return Err(AdapterError::TooMany { what, cap });
            }
            let words = memory.read_u64s(at, ENTRY_BYTES / 8, 7).map_err(&reading)?;
            let [next, method, compile_id, start, sizes, map, name] = words[..] else {
                unreachable!("seven words were read");
            };
            let size = sizes & 0xffff_ffff;
            let end = Avma(start).checked_add(size).filter(|_| size > 0);
            let end = end.ok_or(AdapterError::Implausible {
                what: "code size",
                value: size,
                at,
            })?;
            let name = memory.read_c_string(Avma(name), MAX_NAME_BYTES);
            entries.push(Entry {
                method,
                compile_id,
                start: Avma(start),
                end,
                map: (Avma(map), (sizes >> 32) as u32),
                name: String::from_utf8_lossy(&name.map_err(&reading)?).into_owned(),
            });
            at = Avma(next);
        }
        Ok(entries)
    }
}

impl Adapter for FakeAdapter {
    fn identity(&self) -> VmIdentity {
        VmIdentity {
            kind: "fake".to_owned(),
            version: "1".to_owned(),
        }
    }

    fn sample_needs(&self) -> SampleNeeds {
        SampleNeeds {
            registers: 1 << 7,
            stack_bytes: 256,
            sources: Vec::new(),
        }
    }

    fn poll(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        let memory = process.memory();
        let (version, entries) = read_consistently(
            "code zone",
            ATTEMPTS,
            || self.version(memory),
            |version| Ok((*version, self.read_zone(memory)?)),
        )?;
        let key = |entry: &Entry| (entry.method, entry.compile_id);
        let seen = entries.iter().map(|entry| SeenCode {
            identity: key(entry),
            start: entry.start,
            end: entry.end,
        });
        let by_identity: HashMap<_, _> = entries.iter().map(|e| (key(e), e)).collect();
        let methods = &mut self.methods;
        let without_map = &mut self.without_map;
        let changes = self.zone.update(
            poll,
            seen,
            |identity, constituent, poll| {
                let Some(entry) = by_identity.get(identity) else {
                    return;
                };
                constituent.name.clone_from(&entry.name);
                let method = *methods.entry(entry.method).or_insert_with(|| {
                    let key = poll.keys().method();
                    poll.method(Method {
                        key,
                        name: entry.name.clone(),
                        ..Method::default()
                    });
                    key
                });
                constituent.method = Some(method);
                without_map.insert(*identity, constituent.clone());
            },
            |_| GoneReason::Freed,
        );
        self.cadence.found(changes);
        self.without_map
            .retain(|key, _| by_identity.contains_key(key));
        for entry in &entries {
            let touched = poll.touched();
            let after = touched.partition_point(|at| *at < entry.start);
            if touched.get(after).is_none_or(|at| *at >= entry.end) {
                continue;
            }
            if let Some(mut constituent) = self.without_map.remove(&key(entry)) {
                constituent.map = read_map(memory, entry.map)?;
                poll.code(CodeChange::Seen(constituent));
            }
        }
        let version = version as f64;
        poll.counter("Code", "zone version", "", CounterMeaning::Total, version);
        Ok(())
    }

    fn next_poll(&self) -> Duration {
        self.cadence.pause()
    }
}

fn read_map(memory: &dyn Memory, (at, count): (Avma, u32)) -> Result<PcMap, AdapterError> {
    let words = memory.read_u64s(at, u64::from(count), MAX_MAP_ENTRIES);
    let words = words.map_err(AdapterError::reading("pc map"))?;
    let entry = |word: u64| (word as u32, BytecodePc((word >> 32) as u32));
    Ok(PcMap::Boundary {
        rule: BoundaryRule::AfterInstruction,
        exactness: Exactness::Exact,
        entries: words.into_iter().map(entry).collect(),
    })
}
