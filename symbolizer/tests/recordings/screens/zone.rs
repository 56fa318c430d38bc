//! Code zone of the fictitious JVM: interpreter, stubs, adapters, and C1 and C2 methods over time.

use super::super::{PROCESS, Recording, code};
use super::methods::{Java, key_of, program};
use super::{BEGIN, MS, ms};
use std::collections::HashMap;
use std::sync::LazyLock;
use vmscope_records::{
    Avma, BytecodePc, Chain, ChainFrame, Constituent, ConstituentGone, ConstituentKey,
    ConstituentKind, Cover, Exactness, GoneReason, InterpreterRules, InterpreterSource,
    InterpreterValue, PcMap, Position, Record, SamplePlace, TimeNs,
};

/// The zone's start, and the starts of its three heaps.
pub const ZONE: u64 = 0x7fa0_0000_0000;
const STUBS: u64 = ZONE + 0x8000;
const ADAPTERS: u64 = ZONE + 0xc000;
const C1_HEAP: u64 = ZONE + 0x4_0000;
const C2_HEAP: u64 = ZONE + 0x8_0000;
pub const ZONE_END: u64 = ZONE + 0xc_0000;
/// Address of the methods' bytecodes and objects, `METASPACE_STEP` bytes each.
const METASPACE: u64 = 0x7f40_0000_0000;
const METASPACE_STEP: u64 = 0x200;
const OBJECT: u64 = 0x100;

// Register numbers of x86-64.
pub const BX: u32 = 1;
pub const BP: u32 = 6;
pub const R13: u32 = 21;

/// Bytes of a codelet, a stub, an adapter.
const CODELET_BYTES: u64 = 0x80;
const STUB_BYTES: u64 = 0x100;
const ADAPTER_BYTES: u64 = 0x40;
/// Bytes before an nmethod's first piece, of each piece, and after the last.
const PROLOGUE: u64 = 0x20;
const PIECE: u64 = 0x18;
const EPILOGUE: u64 = 0x20;

const CODELETS: &str = "aload_0 aload_1 aload_2 iload_1 iload_2 iload_3 getfield getstatic \
    invokevirtual invokestatic ifeq ifnull if_icmpge goto iadd ladd lcmp baload aaload iinc \
    ixor ireturn areturn return method-entry invoke-return";

const STUB_NAMES: &str = "call_stub forward_exception catch_exception atomic_cmpxchg \
    jbyte_disjoint_arraycopy jlong_arraycopy oop_disjoint_arraycopy checkcast_arraycopy \
    aescrypt_encryptBlock crc32_updateBytes sha256_implCompress bigInteger_multiply \
    vectorizedMismatch montgomeryMultiply verify_mxcsr method_entry_barrier \
    new_instance_Java new_array_Java resolve_virtual_call resolve_static_call \
    ic_miss wrong_method handle_exception deoptimization uncommon_trap monitorenter \
    monitorexit safepoint_poll";

/// C1 code that stays until [`REUSED_MS`] and is then replaced by [`REUSER`]; between the two polls
/// its address is ambiguous.
const REUSED: &str = "Parser.token";
const REUSER: &str = "HashMap.resize";
pub const REUSED_MS: (u64, u64) = (6_900, 7_100);

/// Deoptimised method; polls before and after its recompilation.
const DEOPTIMISED: &str = "Limits.check";
const DEOPTIMISED_MS: (u64, u64) = (8_990, 9_010);
const AGAIN_MS: (u64, u64) = (9_200, 10_400);

/// A compiled method.
#[derive(Clone, Debug)]
pub struct Nmethod {
    pub method: usize,
    pub tier: &'static str,
    pub since: u64,
    /// Last poll with the code, first poll without it (ns), and the reason.
    pub gone: Option<(u64, u64, GoneReason)>,
    pub start: u64,
    pub pieces: Vec<(Chain, Exactness)>,
    /// Number of leading pieces that are the method's own, not inlined.
    pub own: usize,
}

/// The zone over time.
#[derive(Clone, Debug)]
pub struct Zone {
    pub methods: Vec<Java>,
    /// By compilation time.
    pub nmethods: Vec<Nmethod>,
}

impl Nmethod {
    fn new(methods: &[Java], method: usize, tier: &'static str, since_ms: u64) -> Self {
        let java = &methods[method];
        let own = java.pcs().into_iter().map(|pc| {
            let position = Position::Bytecode(pc);
            let method = key_of(method);
            (vec![ChainFrame { method, position }], Exactness::Exact)
        });
        let mut pieces: Vec<(Chain, Exactness)> = own.collect();
        let own = pieces.len();
        if tier == "C2" {
            // Code moved by C2 is only approximately described by debug records.
            for (_, exactness) in pieces.iter_mut().skip(2).step_by(3) {
                *exactness = Exactness::Approximate;
            }
            let inlined = java.inlined.iter().cloned();
            pieces.extend(inlined.map(|chain| (chain, Exactness::Exact)));
        }
        Nmethod {
            method,
            tier,
            since: ms(since_ms),
            gone: None,
            start: 0,
            pieces,
            own,
        }
    }

    pub fn bytes(&self) -> u64 {
        let bytes = PROLOGUE + self.pieces.len() as u64 * PIECE + EPILOGUE;
        bytes.next_multiple_of(0x40)
    }

    /// Address of a piece's first instruction.
    pub fn piece(&self, piece: usize) -> u64 {
        self.start + PROLOGUE + piece as u64 * PIECE
    }

    fn map(&self) -> PcMap {
        let offset = |bytes: u64| u32::try_from(bytes).unwrap();
        let covers = (0u32..).zip(&self.pieces).map(|(chain, (_, exactness))| {
            let start = offset(PROLOGUE + u64::from(chain) * PIECE);
            Cover {
                start,
                end: start + offset(PIECE),
                chain,
                exactness: *exactness,
                method_error: 0,
            }
        });
        PcMap::Covers {
            covers: covers.collect(),
            chains: self.pieces.iter().map(|(chain, _)| chain.clone()).collect(),
        }
    }
}

/// Compiled methods, without addresses.
fn nmethods(methods: &[Java]) -> Vec<Nmethod> {
    let mut all = Vec::new();
    for (index, java) in methods.iter().enumerate() {
        let mut make = |tier, since, gone: Option<((u64, u64), GoneReason)>| {
            let mut one = Nmethod::new(methods, index, tier, since);
            one.gone = gone.map(|((seen, gone), reason)| (ms(seen), ms(gone), reason));
            all.push(one);
        };
        let profiling = if java.bytes < 20 {
            "C1"
        } else {
            "C1 profiling"
        };
        let replaced = |by: u64| ((by + 130, by + 150), GoneReason::Freed);
        match (java.c1_ms, java.c2_ms) {
            (Some(c1), Some(_)) if java.short == REUSED => {
                make(profiling, c1, Some((REUSED_MS, GoneReason::Recycled)));
            }
            (Some(c1), Some(c2)) => make(profiling, c1, Some(replaced(c2))),
            (Some(c1), None) => make(profiling, c1, None),
            _ => {}
        }
        let Some(c2) = java.c2_ms else { continue };
        if java.short == DEOPTIMISED {
            make("C2", c2, Some((DEOPTIMISED_MS, GoneReason::Unloaded)));
            make(profiling, AGAIN_MS.0, Some(replaced(AGAIN_MS.1)));
            make("C2", AGAIN_MS.1, None);
        } else {
            make("C2", c2, None);
        }
    }
    all.sort_by_key(|one| one.since);
    all
}

impl Zone {
    pub fn new() -> Self {
        let methods = program();
        let mut nmethods = nmethods(&methods);
        let (mut c1, mut c2, mut reused) = (C1_HEAP, C2_HEAP, 0);
        for one in &mut nmethods {
            let short = methods[one.method].short.as_str();
            let next = if one.tier == "C2" { &mut c2 } else { &mut c1 };
            if short == REUSER {
                one.start = reused;
                continue;
            }
            one.start = *next;
            *next += one.bytes();
            if short == REUSED && one.tier != "C2" {
                reused = one.start;
            }
        }
        Zone { methods, nmethods }
    }

    /// The code executing a method at a time; `None` while interpreted.
    pub fn code_of(&self, method: usize, time: u64) -> Option<&Nmethod> {
        let runs = |one: &&Nmethod| {
            let there = one.gone.is_none_or(|(seen, _, _)| time < seen);
            one.method == method && one.since <= time && there
        };
        self.nmethods.iter().rfind(runs)
    }

    /// Address of the reused code.
    pub fn reused_at(&self) -> u64 {
        let reuser = |one: &&Nmethod| self.methods[one.method].short == REUSER;
        self.nmethods.iter().find(reuser).unwrap().start
    }

    pub fn record(&self, recording: &mut Recording) {
        let begin = TimeNs(BEGIN);
        recording.put(Record::InterpreterRules(interpreter()));
        let routines = (CODELETS.split_whitespace().enumerate())
            .map(|(n, name)| {
                (
                    ConstituentKind::Interpreter,
                    codelet_at(n),
                    CODELET_BYTES,
                    name,
                )
            })
            .chain(
                (STUB_NAMES.split_whitespace().enumerate()).map(|(n, name)| {
                    let at = STUBS + n as u64 * STUB_BYTES;
                    (ConstituentKind::Stub, at, STUB_BYTES, name)
                }),
            );
        let mut next_key = 1;
        let mut key = || {
            next_key += 1;
            next_key
        };
        for (kind, start, bytes, name) in routines {
            recording.constituent(Constituent {
                kind,
                name: name.replace('-', " "),
                ..code(key(), BEGIN, start, start + bytes)
            });
        }
        for n in 0..ADAPTER_COUNT {
            let start = ADAPTERS + n * ADAPTER_BYTES;
            recording.constituent(Constituent {
                kind: ConstituentKind::Adapter,
                name: format!(
                    "i2c/c2i adapter {}",
                    "LIJDF".repeat(2).split_at(n as usize % 9).1
                ),
                ..code(key(), BEGIN, start, start + ADAPTER_BYTES)
            });
        }
        let free = |key, since, start, end| Constituent {
            kind: ConstituentKind::Free,
            name: String::new(),
            ..code(key, since, start, end)
        };
        for (index, java) in self.methods.iter().enumerate() {
            recording.put(Record::Method(Box::new(java.record(index, begin))));
            let at = bytecodes_at(index);
            for (kind, start, bytes) in [
                (ConstituentKind::Bytecodes, at, u64::from(java.bytes)),
                (ConstituentKind::MethodObject, at + OBJECT, 0x60),
            ] {
                recording.constituent(Constituent {
                    kind,
                    name: java.full_name(),
                    method: Some(key_of(index)),
                    ..code(key(), BEGIN, start, start + bytes)
                });
            }
        }
        let mut tails = [C1_HEAP, C2_HEAP];
        for one in &self.nmethods {
            let end = one.start + one.bytes();
            let tail = &mut tails[usize::from(one.tier == "C2")];
            *tail = end.max(*tail);
            let java = &self.methods[one.method];
            let is_reuser = java.short == REUSER;
            let looked = if is_reuser {
                ms(REUSED_MS.0)
            } else {
                one.since - 10 * MS
            };
            let own = key();
            recording.constituent(Constituent {
                absent_at: Some(TimeNs(looked)),
                tier: one.tier.into(),
                name: java.full_name(),
                method: Some(key_of(one.method)),
                map: one.map(),
                ..code(own, one.since, one.start, end)
            });
            let Some((last_seen, time, reason)) = one.gone else {
                continue;
            };
            recording.put(Record::ConstituentGone(ConstituentGone {
                key: ConstituentKey(own),
                last_seen: TimeNs(last_seen),
                time: TimeNs(time),
                reason,
            }));
            if reason != GoneReason::Recycled {
                recording.constituent(free(key(), time, one.start, end));
            }
        }
        let ends = [C2_HEAP, ZONE_END];
        let adapters = ADAPTERS + ADAPTER_COUNT * ADAPTER_BYTES;
        let tails = tails.into_iter().zip(ends).chain([(adapters, C1_HEAP)]);
        for (start, end) in tails {
            recording.constituent(free(key(), BEGIN, start, end));
        }
    }
}

const ADAPTER_COUNT: u64 = 22;

fn codelet_at(number: usize) -> u64 {
    ZONE + number as u64 * CODELET_BYTES
}

/// Handler address of an instruction, by the first word of its text; unknown words get some other
/// handler.
pub fn codelet(text: &str) -> u64 {
    static NUMBERS: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| numbers(CODELETS));
    let word = text.split_whitespace().next().unwrap_or("");
    let found = NUMBERS.get(word).copied();
    codelet_at(found.unwrap_or(word.len() % 10))
}

/// Address of a stub.
pub fn stub(name: &str) -> u64 {
    static NUMBERS: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| numbers(STUB_NAMES));
    STUBS + NUMBERS[name] as u64 * STUB_BYTES
}

/// Numbers of `names`, from 0 on. Recordings ask tens of thousands of times.
fn numbers(names: &'static str) -> HashMap<&'static str, usize> {
    names.split_whitespace().zip(0..).collect()
}

/// Address of an adapter.
pub fn adapter(number: u64) -> u64 {
    ADAPTERS + number % ADAPTER_COUNT * ADAPTER_BYTES
}

/// Address of a method's first bytecode; its object is [`OBJECT`] bytes later.
pub fn bytecodes_at(method: usize) -> u64 {
    METASPACE + method as u64 * METASPACE_STEP
}

/// Register R13 during a bytecode.
pub fn bytecode_at(method: usize, pc: BytecodePc) -> u64 {
    bytecodes_at(method) + u64::from(pc.0)
}

/// Register RBX during method entry.
pub fn object_of(method: usize) -> u64 {
    bytecodes_at(method) + OBJECT
}

fn interpreter() -> InterpreterRules {
    let source = |register, holds| InterpreterSource {
        place: SamplePlace::Register(register),
        holds,
    };
    InterpreterRules {
        process: PROCESS,
        time: TimeNs(BEGIN),
        vm: "hotspot".into(),
        ranges: vec![(Avma(ZONE), Avma(STUBS))],
        sources: vec![
            source(R13, InterpreterValue::Bytecode),
            source(BX, InterpreterValue::Method),
        ],
    }
}
