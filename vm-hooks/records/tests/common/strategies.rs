//! Records of every kind for property tests: whatever a writer may honestly write.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use vmscope_records::*;

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Zé<>:. ]{0,12}"
}

fn time() -> impl Strategy<Value = TimeNs> {
    prop_oneof![any::<u64>(), 0..1_u64 << 40].prop_map(TimeNs)
}

fn duration() -> impl Strategy<Value = DurationNs> {
    any::<u64>().prop_map(DurationNs)
}

fn exactness() -> impl Strategy<Value = Exactness> {
    use Exactness::{Approximate, Exact, MethodOnly};
    prop::sample::select(vec![Exact, Approximate, MethodOnly])
}

fn role() -> impl Strategy<Value = ThreadRole> {
    use ThreadRole::{Collector, Compiler, Heartbeat, Mutator, Other, Vm};
    prop::sample::select(vec![Mutator, Collector, Compiler, Heartbeat, Vm, Other])
}

fn arch() -> impl Strategy<Value = Arch> {
    any::<u16>().prop_map(Arch::from_elf_machine)
}

/// Ascending, each with a length, not overlapping.
fn pieces() -> impl Strategy<Value = Vec<(u32, u32)>> {
    vec((0..1000_u32, 0..1000_u32), 0..6).prop_map(|steps| {
        let mut at = 0;
        steps
            .into_iter()
            .map(|(gap, length)| {
                let start = at + gap;
                at = start + length;
                (start, at)
            })
            .collect()
    })
}

fn session() -> impl Strategy<Value = Record> {
    let words = (
        text(),
        text(),
        text(),
        text(),
        text(),
        text(),
        text(),
        text(),
    );
    let numbers = (
        time(),
        any::<u64>(),
        any::<u32>(),
        any::<u32>(),
        1..u64::MAX,
    );
    let rest = (
        vec(text(), 0..4),
        arch(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    (words, numbers, rest).prop_map(|(words, numbers, rest)| {
        let clock = if rest.4 {
            SampleClock::Cpu
        } else {
            SampleClock::Wall
        };
        Record::Session(Box::new(Session {
            time: numbers.0,
            wall_clock_unix_ns: numbers.1,
            producer: words.0,
            vm: VmIdentity {
                kind: words.1,
                version: words.2,
            },
            command: rest.0,
            pid: Pid(numbers.2),
            launched: rest.2,
            host: words.3,
            kernel: words.4,
            arch: rest.1,
            cpus: numbers.3,
            engine: words.5,
            engine_reason: words.6,
            clock,
            period: DurationNs(numbers.4),
            kernel_included: rest.3,
            scheduling: words.7,
        }))
    })
}

fn limit() -> impl Strategy<Value = Record> {
    use LimitKind::{
        AdapterIncomplete, EngineFallback, KernelExcluded, MemoryUnreadable, NoRealTime, NoSymbols,
        NotSampled, OnlyNewestKept, Other,
    };
    let kinds = vec![
        AdapterIncomplete,
        EngineFallback,
        KernelExcluded,
        MemoryUnreadable,
        NoRealTime,
        NoSymbols,
        NotSampled,
        OnlyNewestKept,
        Other,
    ];
    (time(), prop::sample::select(kinds), text(), text()).prop_map(|(time, kind, text, remedy)| {
        Record::Limit(Limit {
            time,
            kind,
            text,
            remedy,
        })
    })
}

fn process() -> impl Strategy<Value = Record> {
    (
        any::<u32>(),
        time(),
        any::<u32>(),
        option::of(any::<u32>()),
        text(),
    )
        .prop_map(|(key, time, pid, parent, name)| {
            let parent = parent.map(ProcessKey);
            Record::Process(Process {
                key: ProcessKey(key),
                time,
                pid: Pid(pid),
                parent,
                name,
            })
        })
}

fn process_end() -> impl Strategy<Value = Record> {
    let cpu = (option::of(duration()), option::of(duration()));
    (any::<u32>(), time(), any::<bool>(), cpu).prop_map(|(key, time, alive, (cpu, cpu_user))| {
        Record::ProcessEnd(ProcessEnd {
            key: ProcessKey(key),
            time,
            alive,
            cpu,
            cpu_user,
        })
    })
}

fn thread() -> impl Strategy<Value = Record> {
    (
        any::<u32>(),
        any::<u32>(),
        any::<u32>(),
        time(),
        text(),
        role(),
        duration(),
    )
        .prop_map(|(key, process, tid, time, name, role, cpu_before)| {
            let (key, process, tid) = (ThreadKey(key), ProcessKey(process), Tid(tid));
            Record::Thread(Thread {
                key,
                process,
                tid,
                time,
                name,
                role,
                cpu_before,
            })
        })
}

fn thread_update() -> impl Strategy<Value = Record> {
    let process = option::of(any::<u32>());
    (
        any::<u32>(),
        time(),
        option::of(text()),
        option::of(role()),
        process,
    )
        .prop_map(|(key, time, name, role, process)| {
            Record::ThreadUpdate(ThreadUpdate {
                key: ThreadKey(key),
                time,
                name,
                role,
                process: process.map(ProcessKey),
            })
        })
}

fn thread_cpu() -> impl Strategy<Value = Record> {
    (any::<u32>(), time(), duration(), option::of(duration())).prop_map(
        |(key, time, cpu, cpu_user)| {
            Record::ThreadCpu(ThreadCpu {
                key: ThreadKey(key),
                time,
                cpu,
                cpu_user,
            })
        },
    )
}

fn thread_end() -> impl Strategy<Value = Record> {
    (
        any::<u32>(),
        time(),
        any::<bool>(),
        duration(),
        any::<bool>(),
        option::of(duration()),
    )
        .prop_map(|(key, time, alive, cpu, cpu_measured, cpu_user)| {
            Record::ThreadEnd(ThreadEnd {
                key: ThreadKey(key),
                time,
                alive,
                cpu,
                cpu_measured,
                cpu_user,
            })
        })
}

fn module() -> impl Strategy<Value = Record> {
    let state = prop_oneof![
        Just(ModuleState::Opened),
        Just(ModuleState::Deleted),
        Just(ModuleState::Replaced),
        Just(ModuleState::Vdso),
        text().prop_map(ModuleState::Unreadable),
    ];
    let id = option::of(vec(any::<u8>(), 1..=64));
    let main = any::<bool>();
    (
        any::<u32>(),
        time(),
        text(),
        id,
        any::<[u64; 3]>(),
        main,
        state,
    )
        .prop_map(
            |(key, time, path, id, [device, inode, size], main, state)| {
                let build_id = id.and_then(|bytes| BuildId::new(&bytes));
                let key = ModuleKey(key);
                Record::Module(Module {
                    key,
                    time,
                    path,
                    build_id,
                    device,
                    inode,
                    size,
                    main,
                    state,
                })
            },
        )
}

fn mapping() -> impl Strategy<Value = Record> {
    let numbers = any::<[u64; 3]>();
    (
        any::<u32>(),
        time(),
        numbers,
        option::of(any::<u32>()),
        text(),
        any::<bool>(),
    )
        .prop_map(
            |(process, time, [start, end, offset], module, name, executable)| {
                Record::Mapping(Mapping {
                    process: ProcessKey(process),
                    time,
                    start: Avma(start),
                    end: Avma(end),
                    offset: FileOffset(offset),
                    module: module.map(ModuleKey),
                    name,
                    executable,
                })
            },
        )
}

fn unmapping() -> impl Strategy<Value = Record> {
    (any::<u32>(), time(), any::<[u64; 2]>()).prop_map(|(process, time, [start, end])| {
        let (process, start, end) = (ProcessKey(process), Avma(start), Avma(end));
        Record::Unmapping(Unmapping {
            process,
            time,
            start,
            end,
        })
    })
}

fn detail() -> impl Strategy<Value = SampleDetail> {
    let addresses = || vec(any::<u64>().prop_map(Avma), 0..5);
    let chain =
        (addresses(), addresses(), any::<bool>()).prop_map(|(kernel, user, truncated)| CallChain {
            kernel,
            user,
            truncated,
        });
    let registers = (arch(), any::<u64>(), any::<[u64; 32]>(), any::<[u64; 32]>()).prop_map(
        |(arch, mask, low, high)| {
            let count = usize::try_from(mask.count_ones()).unwrap_or(0);
            let values = low.into_iter().chain(high).take(count).collect();
            Registers { arch, mask, values }
        },
    );
    let stack = (any::<u64>(), vec(any::<u8>(), 0..100)).prop_map(|(sp, bytes)| StackBytes {
        sp: Avma(sp),
        bytes,
    });
    let words = vec(any::<[u64; 2]>(), 0..4).prop_map(|words| {
        words
            .into_iter()
            .map(|[at, value]| Word {
                at: Avma(at),
                value,
            })
            .collect()
    });
    (
        option::of(chain),
        option::of(registers),
        option::of(stack),
        words,
    )
        .prop_map(|(chain, registers, stack, words)| SampleDetail {
            chain,
            registers,
            stack,
            words,
        })
}

/// A sample; its order in time is the caller's business.
pub fn sample() -> impl Strategy<Value = Record> {
    use CpuMode::{Idle, Kernel, Other, User};
    let mode = prop::sample::select(vec![User, Kernel, Idle, Other]);
    let detail = option::weighted(0.3, detail().prop_map(Box::new));
    (time(), any::<u32>(), any::<u64>(), mode, detail).prop_map(
        |(time, thread, pc, mode, detail)| {
            let (thread, pc) = (ThreadKey(thread), Avma(pc));
            Record::Sample(Sample {
                time,
                thread,
                pc,
                mode,
                detail,
            })
        },
    )
}

fn pc_map() -> impl Strategy<Value = PcMap> {
    use BoundaryRule::{AfterInstruction, AtStart};
    let rule = prop::sample::select(vec![AfterInstruction, AtStart]);
    let bytecodes = any::<[u32; 6]>();
    let boundary = (rule, exactness(), pieces(), bytecodes).prop_map(
        |(rule, exactness, pieces, bytecodes)| {
            let entries = (pieces.into_iter().zip(bytecodes))
                .map(|((at, _), bytecode)| (at, BytecodePc(bytecode)))
                .collect();
            PcMap::Boundary {
                rule,
                exactness,
                entries,
            }
        },
    );
    let position = prop_oneof![
        Just(Position::Unknown),
        any::<u32>().prop_map(|pc| Position::Bytecode(BytecodePc(pc))),
        any::<u32>().prop_map(Position::Line),
    ];
    let frame = (any::<u64>(), position).prop_map(|(method, position)| ChainFrame {
        method: MethodKey(method),
        position,
    });
    let covers = (
        vec(vec(frame, 1..4), 1..4),
        pieces(),
        any::<[u32; 6]>(),
        exactness(),
    )
        .prop_map(|(chains, pieces, which, exactness)| {
            let count = u32::try_from(chains.len()).unwrap_or(1);
            let covers = (pieces.into_iter().zip(which))
                .map(|((start, end), chain)| Cover {
                    start,
                    end,
                    chain: chain % count,
                    exactness,
                })
                .collect();
            PcMap::Covers { covers, chains }
        });
    prop_oneof![Just(PcMap::None), boundary, covers]
}

fn constituent() -> impl Strategy<Value = Record> {
    use ConstituentKind::{
        Adapter, Block, Bytecodes, ClosedPic, Enilopmart, Free, Interpreter, Method, MethodObject,
        OpenPic, RegExp, Stub, Trampoline,
    };
    let kinds = vec![
        Adapter,
        Block,
        Bytecodes,
        ClosedPic,
        Enilopmart,
        Free,
        Interpreter,
        Method,
        MethodObject,
        OpenPic,
        RegExp,
        Stub,
        Trampoline,
    ];
    let kind = prop_oneof![
        prop::sample::select(kinds),
        text().prop_map(ConstituentKind::Other)
    ];
    let case =
        (text(), option::of(any::<u64>()), text()).prop_map(|(class, method, target)| PicCase {
            class,
            method: method.map(MethodKey),
            target,
        });
    let keys = (any::<u64>(), any::<u32>(), option::of(any::<u64>()));
    let place = (0..u64::MAX / 2, any::<u32>());
    let words = (text(), text());
    (
        keys,
        time(),
        option::of(time()),
        place,
        kind,
        words,
        vec(case, 0..4),
        pc_map(),
    )
        .prop_map(
            |(keys, since, absent_at, (start, size), kind, (tier, name), cases, map)| {
                Record::Constituent(Box::new(Constituent {
                    key: ConstituentKey(keys.0),
                    process: ProcessKey(keys.1),
                    since,
                    absent_at,
                    start: Avma(start),
                    end: Avma(start + u64::from(size)),
                    kind,
                    tier,
                    name,
                    method: keys.2.map(MethodKey),
                    cases,
                    map,
                }))
            },
        )
}

fn constituent_gone() -> impl Strategy<Value = Record> {
    use GoneReason::{Flushed, Freed, Recycled, Unknown, Unloaded};
    let reason = prop::sample::select(vec![Flushed, Freed, Recycled, Unknown, Unloaded]);
    (any::<u64>(), time(), time(), reason).prop_map(|(key, last_seen, time, reason)| {
        let key = ConstituentKey(key);
        Record::ConstituentGone(ConstituentGone {
            key,
            last_seen,
            time,
            reason,
        })
    })
}

fn constituent_moved() -> impl Strategy<Value = Record> {
    (any::<u64>(), time(), time(), any::<u64>()).prop_map(|(key, last_seen, time, to)| {
        let key = ConstituentKey(key);
        Record::ConstituentMoved(ConstituentMoved {
            key,
            last_seen,
            time,
            to: Avma(to),
        })
    })
}

fn method() -> impl Strategy<Value = Record> {
    let line = (any::<u32>(), any::<u32>()).prop_map(|(from, line)| LineEntry {
        from: BytecodePc(from),
        line,
    });
    let listing = (any::<u32>().prop_map(BytecodePc), text());
    let tables = (vec(line, 0..5), vec(any::<u8>(), 0..20), vec(listing, 0..5));
    (
        any::<u64>(),
        time(),
        text(),
        text(),
        text(),
        any::<u32>(),
        tables,
    )
        .prop_map(
            |(key, time, class, name, file, line, (lines, bytecodes, listing))| {
                let key = MethodKey(key);
                Record::Method(Box::new(Method {
                    key,
                    time,
                    class,
                    name,
                    file,
                    line,
                    lines,
                    bytecodes,
                    listing,
                }))
            },
        )
}

fn collection() -> impl Strategy<Value = Record> {
    let bytes = || option::of(any::<u64>());
    let phase = (
        text(),
        option::of(0..9_u32),
        option::of(time()),
        option::of(time()),
    );
    let phase = (phase, any::<bool>(), option::of(any::<u32>())).prop_map(
        |((name, within, begin, end), stop_the_world, thread)| Phase {
            name,
            within,
            begin,
            end,
            stop_the_world,
            thread: thread.map(ThreadKey),
        },
    );
    let space =
        (text(), bytes(), bytes(), bytes()).prop_map(|(name, before, after, capacity)| SpaceUse {
            name,
            before,
            after,
            capacity,
        });
    let keys = (any::<u64>(), any::<u32>(), time(), any::<u64>());
    let times = (option::of(time()), option::of(time()), any::<bool>());
    let words = (text(), text(), text());
    let amounts = (bytes(), bytes());
    (
        keys,
        times,
        words,
        vec(phase, 0..4),
        vec(space, 0..4),
        amounts,
    )
        .prop_map(|(keys, times, words, phases, spaces, amounts)| {
            Record::Collection(Box::new(Collection {
                key: CollectionKey(keys.0),
                process: ProcessKey(keys.1),
                time: keys.2,
                collector: words.0,
                kind: words.1,
                cause: words.2,
                number: keys.3,
                begin: times.0,
                end: times.1,
                stop_the_world: times.2,
                phases,
                spaces,
                survived_bytes: amounts.0,
                tenured_bytes: amounts.1,
            }))
        })
}

fn class() -> impl Strategy<Value = Record> {
    (any::<u64>(), any::<u32>(), text()).prop_map(|(key, process, name)| {
        Record::Class(Class {
            key: ClassKey(key),
            process: ProcessKey(process),
            name,
        })
    })
}

fn lifetime() -> impl Strategy<Value = Record> {
    let site = || {
        vec(
            (
                any::<u64>().prop_map(MethodKey),
                any::<u32>().prop_map(BytecodePc),
            ),
            0..4,
        )
        .prop_map(|frames| AllocationSite { frames })
    };
    let object = || any::<u64>().prop_map(ObjectKey);
    let process = || any::<u32>().prop_map(ProcessKey);
    let class = || any::<u64>().prop_map(ClassKey);
    let bucket =
        (any::<[u32; 2]>(), any::<[u64; 4]>()).prop_map(|(survived, counts)| SurvivalBucket {
            scavenges: survived[0],
            fulls: survived[1],
            objects: counts[0],
            bytes: counts[1],
            alive_objects: counts[2],
            alive_bytes: counts[3],
        });
    let sizes = (
        any::<u32>(),
        any::<u64>(),
        1.0..1e9_f64,
        option::of(any::<u64>()),
    );
    let birth = (object(), process(), time(), class(), site(), sizes).prop_map(
        |(object, process, time, class, site, sizes)| Lifetime::Birth {
            object,
            process,
            time,
            thread: ThreadKey(sizes.0),
            class,
            bytes: sizes.1,
            site,
            weight: sizes.2,
            allocated_bytes: sizes.3,
        },
    );
    let collection = || any::<u64>().prop_map(CollectionKey);
    let survived = (object(), time(), collection(), any::<bool>()).prop_map(
        |(object, time, collection, tenured)| Lifetime::Survived {
            object,
            time,
            collection,
            tenured,
        },
    );
    let death =
        (object(), time(), option::of(collection())).prop_map(|(object, time, collection)| {
            Lifetime::Death {
                object,
                time,
                collection,
            }
        });
    let alive = (object(), time()).prop_map(|(object, time)| Lifetime::StillAlive { object, time });
    let counts = (any::<u64>(), any::<u64>(), vec(bucket, 0..4));
    let aggregate = (process(), time(), class(), site(), counts).prop_map(
        |(process, time, class, site, (objects, bytes, buckets))| Lifetime::Aggregate {
            process,
            time,
            class,
            site,
            objects,
            bytes,
            buckets,
        },
    );
    prop_oneof![birth, survived, death, alive, aggregate]
        .prop_map(|lifetime| Record::Lifetime(Box::new(lifetime)))
}

fn counter() -> impl Strategy<Value = Record> {
    use CounterMeaning::{Gauge, Total};
    let meaning = prop::sample::select(vec![Gauge, Total]);
    (
        any::<u32>(),
        time(),
        text(),
        text(),
        text(),
        meaning,
        -1e12..1e12_f64,
    )
        .prop_map(|(process, time, section, name, unit, meaning, value)| {
            let process = ProcessKey(process);
            Record::Counter(Counter {
                process,
                time,
                section,
                name,
                unit,
                meaning,
                value,
            })
        })
}

fn fact() -> impl Strategy<Value = Record> {
    (any::<u32>(), time(), text(), text()).prop_map(|(process, time, name, value)| {
        Record::Fact(Fact {
            process: ProcessKey(process),
            time,
            name,
            value,
        })
    })
}

fn mark() -> impl Strategy<Value = Record> {
    (time(), text()).prop_map(|(time, text)| Record::Mark(Mark { time, text }))
}

fn region_rules() -> impl Strategy<Value = Record> {
    let texts = (text(), text(), text(), text(), text());
    let region = prop::sample::select(Region::ALL.to_vec());
    let rule = (texts, region, any::<bool>()).prop_map(
        |((module, prefix, contains, suffix, part), region, strip)| RegionRule {
            module,
            prefix,
            contains,
            suffix,
            region,
            part,
            strip,
        },
    );
    (any::<u32>(), time(), text(), vec(rule, 0..4)).prop_map(|(process, time, vm, rules)| {
        Record::RegionRules(RegionRules {
            process: ProcessKey(process),
            time,
            vm,
            rules,
        })
    })
}

fn interpreter_rules() -> impl Strategy<Value = Record> {
    let ranges = vec((any::<u32>(), any::<u32>()), 0..4);
    let place = (any::<u32>(), option::of(any::<i32>())).prop_map(|(register, offset)| {
        offset.map_or(SamplePlace::Register(register), |offset| {
            let base = register;
            SamplePlace::Stack { base, offset }
        })
    });
    let holds = prop::sample::select(vec![InterpreterValue::Bytecode, InterpreterValue::Method]);
    let source = (place, holds).prop_map(|(place, holds)| InterpreterSource { place, holds });
    (any::<u32>(), time(), text(), ranges, vec(source, 0..4)).prop_map(
        |(process, time, vm, ranges, sources)| {
            let range = |(start, size): (u32, u32)| {
                let start = u64::from(start);
                (Avma(start), Avma(start + u64::from(size)))
            };
            Record::InterpreterRules(InterpreterRules {
                process: ProcessKey(process),
                time,
                vm,
                ranges: ranges.into_iter().map(range).collect(),
                sources,
            })
        },
    )
}

fn compilation() -> impl Strategy<Value = Record> {
    let times = vec(time(), 4).prop_map(|mut times| {
        times.sort_unstable();
        times
    });
    let keys = (any::<u32>(), any::<u32>(), any::<u64>());
    let known = (option::of(any::<u32>()), any::<bool>(), any::<bool>());
    (keys, text(), text(), known, times).prop_map(|(keys, name, tier, known, times)| {
        Record::Compilation(Box::new(Compilation {
            process: ProcessKey(keys.0),
            thread: ThreadKey(keys.1),
            id: keys.2,
            name,
            tier,
            osr_bci: known.0,
            absent_at: known.1.then_some(times[0]),
            first_seen: times[1],
            last_seen: times[2],
            gone_at: known.2.then_some(times[3]),
        }))
    })
}

fn symbols() -> impl Strategy<Value = Record> {
    use SymbolSource::{
        DebugInfo, DynamicSymbols, Kallsyms, MiniDebugInfo, None, Plt, SymbolTable,
    };
    let sources = vec![
        DebugInfo,
        DynamicSymbols,
        Kallsyms,
        MiniDebugInfo,
        None,
        Plt,
        SymbolTable,
    ];
    let frame = (text(), text(), any::<u32>()).prop_map(|(function, file, line)| NativeFrame {
        function,
        file,
        line,
    });
    let piece = (0..u64::MAX / 2, any::<u32>(), vec(frame, 0..3), exactness()).prop_map(
        |(start, size, frames, exactness)| NativeLines {
            start: FileOffset(start),
            end: FileOffset(start + u64::from(size)),
            frames,
            exactness,
        },
    );
    let names = (text(), text(), any::<bool>());
    let function = (
        any::<[u64; 2]>(),
        names,
        prop::sample::select(sources),
        any::<bool>(),
        vec(piece, 0..3),
    )
        .prop_map(
            |([start, size], (linked, name, same), source, sized, lines)| NativeFunction {
                start: FileOffset(start),
                size,
                linkage_name: if same { name.clone() } else { linked },
                name,
                source,
                sized,
                lines,
            },
        );
    (option::of(any::<u32>()), vec(function, 0..4), text()).prop_map(|(module, functions, note)| {
        let owner = module.map_or(SymbolOwner::Kernel, |key| {
            SymbolOwner::Module(ModuleKey(key))
        });
        Record::Symbols(Symbols {
            owner,
            functions,
            note,
        })
    })
}

fn lost() -> impl Strategy<Value = Record> {
    use LossReason::{
        ChannelOverrun, KeepLastFull, Other, RingOverrun, Throttled, TooLarge, Undecodable,
    };
    let reasons = vec![
        ChannelOverrun,
        KeepLastFull,
        Other,
        RingOverrun,
        Throttled,
        TooLarge,
        Undecodable,
    ];
    use Stream::{Adapter, Any, Lifetimes, Process, Samples};
    let streams = vec![Adapter, Any, Lifetimes, Process, Samples];
    let what = (prop::sample::select(streams), prop::sample::select(reasons));
    (what, any::<u64>(), time(), time(), option::of(any::<u32>())).prop_map(
        |((stream, reason), count, from, to, thread)| {
            let thread = thread.map(ThreadKey);
            Record::Lost(Lost {
                stream,
                reason,
                count,
                from,
                to,
                thread,
            })
        },
    )
}

/// A strategy for each kind of record but the end, which the writer completes.
pub fn all() -> Vec<BoxedStrategy<Record>> {
    vec![
        session().boxed(),
        limit().boxed(),
        process().boxed(),
        process_end().boxed(),
        thread().boxed(),
        thread_update().boxed(),
        thread_cpu().boxed(),
        thread_end().boxed(),
        module().boxed(),
        mapping().boxed(),
        unmapping().boxed(),
        constituent().boxed(),
        constituent_gone().boxed(),
        constituent_moved().boxed(),
        method().boxed(),
        collection().boxed(),
        class().boxed(),
        lifetime().boxed(),
        counter().boxed(),
        fact().boxed(),
        region_rules().boxed(),
        interpreter_rules().boxed(),
        compilation().boxed(),
        mark().boxed(),
        symbols().boxed(),
        lost().boxed(),
        sample().boxed(),
    ]
}

/// Any record.
pub fn any_record() -> impl Strategy<Value = Record> {
    proptest::strategy::Union::new(all())
}
