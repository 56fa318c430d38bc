//! Records of every kind for property tests: whatever a writer may honestly write.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::{option, sample};
use std::fmt::Debug;
use vmscope_records::*;

/// A type with a strategy for all honest values.
trait Generate: Debug + Sized + 'static {
    fn generate() -> BoxedStrategy<Self>;
}

/// Strategy for a type with these fields: any value of the field's type, or values of `field: strategy`.
macro_rules! any_of {
    ($type:ident $(:: $variant:ident)? { $($field:ident $(: $strategy:expr)?),+ $(,)? }) => {
        any_of!(@strategies $([$($strategy)?])+)
            .prop_map(|any_of!(@names $($field)+)| $type $(:: $variant)? { $($field),+ })
            .boxed()
    };
    (@strategies) => { Just(()) };
    (@strategies [] $($rest:tt)*) => { (Generate::generate(), any_of!(@strategies $($rest)*)) };
    (@strategies [$strategy:expr] $($rest:tt)*) => { ($strategy, any_of!(@strategies $($rest)*)) };
    (@names) => { () };
    (@names $field:ident $($rest:ident)*) => { ($field, any_of!(@names $($rest)*)) };
}

macro_rules! generate {
    ($($type:ident { $($fields:tt)+ })+) => {$(
        impl Generate for $type {
            fn generate() -> BoxedStrategy<Self> {
                any_of!($type { $($fields)+ })
            }
        }
    )+};
}

generate! {
    Session {
        time, wall_clock_unix_ns, producer, vm, command, pid, launched, host, kernel, arch, cpus,
        engine, engine_reason, clock, period: (1..u64::MAX).prop_map(DurationNs), kernel_included,
        scheduling,
    }
    VmIdentity { kind, version }
    Limit { time, kind, text, remedy }
    Process { key, time, pid, parent, name }
    ProcessEnd { key, time, alive, cpu, cpu_user }
    Thread { key, process, tid, time, name, role, cpu_before }
    ThreadUpdate { key, time, name, role, process }
    ThreadCpu { key, time, cpu, cpu_user }
    ThreadEnd { key, time, alive, cpu, cpu_measured, cpu_user }
    Module { key, time, path, build_id, device, inode, size, main, state }
    Mapping { process, time, start, end, offset, module, name, executable }
    Unmapping { process, time, start, end }
    // Its order in time is the caller's business.
    Sample { time, thread, pc, mode, detail: option::weighted(0.3, Generate::generate()) }
    SampleDetail { chain, registers, stack, words }
    CallChain { kernel, user, end, guessed, late }
    StackBytes { sp, bytes: vec(any::<u8>(), 0..100) }
    Word { at, value }
    ConstituentGone { key, last_seen, time, reason }
    ConstituentMoved { key, last_seen, time, to }
    PicCase { class, method, target }
    ChainFrame { method, position }
    Method { key, time, class, name, file, line, lines, bytecodes, listing }
    LineEntry { from, line }
    Collection {
        key, process, time, collector, kind, cause, number, begin, end, scope, missed,
        missed_ns, phases, spaces, survived_bytes, tenured_bytes,
        survived_objects, cpu_ns,
    }
    Phase { name, within, begin, end, stop_the_world, thread }
    SpaceUse { name, before, after, capacity }
    Class { key, process, name }
    AllocationSite { key, process, frames }
    SurvivalBucket { scavenges, fulls, objects, bytes, alive_objects, alive_bytes }
    ObjectFate { object, time, fate, holder: option::of((0..u64::MAX).prop_map(ClassKey)) }
    Birth {
        object, time, class, site: option::of((0..u64::MAX).prop_map(SiteKey)), bytes,
        weight: prop_oneof![Just(1.0), 1.0..1e9_f64], allocated_bytes: option::of(0..u64::MAX),
    }
    LifetimeCounts { process, time, class, site, objects, bytes, buckets }
    Counter { process, time, section, name, unit, meaning, value: -1e12..1e12_f64 }
    Fact { process, time, name, value }
    Mark { time, text }
    RegionRules { process, time, vm, rules }
    RegionRule { module, role, identifiers, prefix, contains, suffix, part, region, strip }
    InterpreterRules { process, time, vm, ranges: vec(range().prop_map(|(a, b)| (Avma(a), Avma(b))), 0..4), sources }
    InterpreterSource { place, holds }
    Symbols { owner, functions, note }
    NativeFrame { function, file, line }
    Lost { stream, reason, count, from, to, thread }
}

/// A strategy for each kind of record but the end, which the writer completes.
pub fn all() -> Vec<BoxedStrategy<Record>> {
    macro_rules! kinds {
        ($($kind:ident)+) => { vec![$(Generate::generate().prop_map(Record::$kind).boxed()),+] };
    }
    kinds! {
        Session Limit Process ProcessEnd Thread ThreadUpdate ThreadCpu ThreadEnd Module Mapping
        Unmapping Constituent ConstituentGone ConstituentMoved Method Collection Class
        AllocationSite Births Fates LifetimeCounts
        Counter Fact RegionRules InterpreterRules Compilation Mark Symbols Lost Sample
    }
}

/// Any record.
pub fn any_record() -> impl Strategy<Value = Record> {
    proptest::strategy::Union::new(all())
}

macro_rules! plain {
    ($($type:ty = $strategy:expr;)+) => {$(
        impl Generate for $type {
            fn generate() -> BoxedStrategy<Self> {
                $strategy.boxed()
            }
        }
    )+};
}

plain! {
    bool = any::<bool>();
    u8 = any::<u8>();
    u32 = any::<u32>();
    u64 = any::<u64>();
    String = "[a-zA-Zé<>:. ]{0,12}";
    TimeNs = prop_oneof![any::<u64>(), 0..1_u64 << 40].prop_map(TimeNs);
    Arch = any::<u16>().prop_map(Arch::from_elf_machine);
    BuildId = vec(any::<u8>(), 1..=64).prop_map(|bytes| BuildId::new(&bytes).unwrap());
}

macro_rules! numbers {
    ($($type:ident)+) => { plain! { $($type = Generate::generate().prop_map($type);)+ } };
}
numbers! {
    Avma BytecodePc ClassKey CollectionKey ConstituentKey DurationNs FileOffset MethodKey ModuleKey
    ObjectKey Pid ProcessKey SiteKey ThreadKey Tid
}

macro_rules! choices {
    ($($type:ident { $($variant:ident)+ })+) => {
        plain! { $($type = sample::select(vec![$($type::$variant),+]);)+ }
    };
}
choices! {
    SampleClock { Cpu Wall }
    LimitKind {
        AdapterIncomplete EngineFallback KernelExcluded MemoryUnreadable NoRealTime NoSymbols
        NotSampled NoNames OnlyNewestKept Callers Missing Other
    }
    ThreadRole { Collector Compiler Heartbeat Mutator Other Vm }
    CpuMode { Idle Kernel Other User }
    ChainEnd { Unknown Whole Depth Stack Broken Behind }
    Exactness { Approximate Exact MethodOnly }
    BoundaryRule { AfterInstruction AtStart }
    GoneReason { Flushed Freed Recycled Unknown Unloaded }
    CounterMeaning { Gauge Total }
    CollectionScope { Cycle Whole CyclePause }
    InterpreterValue { Bytecode Method Caller }
    SymbolSource { DebugInfo DynamicSymbols Kallsyms MiniDebugInfo None Plt SymbolTable }
    Fate { Died Survived Tenured }
    Stream { Adapter Any Lifetimes Process Samples }
    LossReason {
        ChannelOverrun KeepLastFull Other RingOverrun Throttled TooLarge Undecodable
    }
}

impl<T: Generate> Generate for Box<T> {
    fn generate() -> BoxedStrategy<Self> {
        T::generate().prop_map(Box::new).boxed()
    }
}

impl<T: Generate> Generate for Option<T> {
    fn generate() -> BoxedStrategy<Self> {
        option::of(T::generate()).boxed()
    }
}

impl<T: Generate> Generate for Vec<T> {
    fn generate() -> BoxedStrategy<Self> {
        vec(T::generate(), 0..5).boxed()
    }
}

impl<A: Generate, B: Generate> Generate for (A, B) {
    fn generate() -> BoxedStrategy<Self> {
        (A::generate(), B::generate()).boxed()
    }
}

/// Start and end.
fn range() -> impl Strategy<Value = (u64, u64)> {
    (0..u64::MAX / 2, any::<u32>()).prop_map(|(start, size)| (start, start + u64::from(size)))
}

/// Ascending, each with a length, not overlapping.
fn pieces() -> impl Strategy<Value = Vec<(u32, u32)>> {
    vec((0..1000_u32, 0..1000_u32), 0..6).prop_map(|steps| {
        let mut at = 0;
        let piece = |(gap, length)| {
            let start = at + gap;
            at = start + length;
            (start, at)
        };
        steps.into_iter().map(piece).collect()
    })
}

plain! {
    ModuleState = prop_oneof![
        Just(ModuleState::Opened),
        Just(ModuleState::Deleted),
        Just(ModuleState::Replaced),
        Just(ModuleState::Vdso),
        String::generate().prop_map(ModuleState::Unreadable),
    ];
    Region = sample::select(Region::ALL.to_vec());
    SymbolOwner = Option::generate()
        .prop_map(|module| module.map_or(SymbolOwner::Kernel, SymbolOwner::Module));
    Registers = (Arch::generate(), any::<u64>(), any::<[u64; 32]>(), any::<[u64; 32]>()).prop_map(
        |(arch, mask, low, high)| {
            let count = usize::try_from(mask.count_ones()).unwrap_or(0);
            let values = low.into_iter().chain(high).take(count).collect();
            Registers { arch, mask, values }
        },
    );
    SamplePlace = prop_oneof![
        any::<u32>().prop_map(SamplePlace::Register),
        any::<(u32, i32)>().prop_map(|(base, offset)| SamplePlace::Stack { base, offset }),
        any::<(u32, u32)>().prop_map(|(base, index)| SamplePlace::Sum { base, index }),
    ];
    Position = prop_oneof![
        Just(Position::Unknown),
        BytecodePc::generate().prop_map(Position::Bytecode),
        any::<u32>().prop_map(Position::Line),
    ];
    ConstituentKind = {
        use ConstituentKind::{
            Adapter, Block, Bytecodes, ClosedPic, Enilopmart, Free, Interpreter, Method,
            MethodObject, OpenPic, Other, RegExp, Stub, Trampoline,
        };
        let named = vec![
            Adapter, Block, Bytecodes, ClosedPic, Enilopmart, Free, Interpreter, Method,
            MethodObject, OpenPic, RegExp, Stub, Trampoline,
        ];
        prop_oneof![sample::select(named), String::generate().prop_map(Other)]
    };
    PcMap = prop_oneof![Just(PcMap::None), boundary(), covers()];
    Constituent = (range(), any_of!(Constituent {
        key, process, since, absent_at, start, end, kind, tier, name, method, cases, map,
    }))
    .prop_map(|((start, end), constituent)| Constituent {
        start: Avma(start),
        end: Avma(end),
        ..constituent
    });
    NativeLines = (range(), Generate::generate(), Generate::generate()).prop_map(
        |((start, end), frames, exactness)| NativeLines {
            start: FileOffset(start),
            end: FileOffset(end),
            frames,
            exactness,
        },
    );
    NativeFunction = (any::<bool>(), any_of!(NativeFunction {
        start, size, linkage_name, name, source, sized, lines,
    }))
    .prop_map(|(is_plain, mut function)| {
        if is_plain {
            function.linkage_name.clone_from(&function.name);
        }
        function
    });
    Compilation = (vec(TimeNs::generate(), 4), any_of!(Compilation {
        process, thread, id, name, tier, osr_bci, absent_at, first_seen, last_seen, gone_at,
    }))
    .prop_map(|(mut times, compilation)| {
        times.sort_unstable();
        Compilation {
            absent_at: compilation.absent_at.map(|_| times[0]),
            first_seen: times[1],
            last_seen: times[2],
            gone_at: compilation.gone_at.map(|_| times[3]),
            ..compilation
        }
    });
    Births = (Generate::generate(), Generate::generate(), vec(Birth::generate(), 0..20))
        .prop_map(|(process, thread, all)| {
            let mut births = Births::new(process, thread);
            all.into_iter().for_each(|birth| births.push(birth));
            births
        });
    Fates = (Generate::generate(), Generate::generate(), vec(Generate::generate(), 0..20))
        .prop_map(|(process, collection, all): (_, _, Vec<ObjectFate>)| {
            let mut fates = Fates::new(process, collection);
            all.into_iter().for_each(|one| fates.push(one));
            fates
        });
}

fn boundary() -> impl Strategy<Value = PcMap> {
    let parts = (
        Generate::generate(),
        Generate::generate(),
        pieces(),
        any::<[u32; 6]>(),
    );
    parts.prop_map(|(rule, exactness, pieces, bytecodes)| {
        let starts = pieces.into_iter().map(|(start, _)| start);
        PcMap::Boundary {
            rule,
            exactness,
            entries: starts.zip(bytecodes.map(BytecodePc)).collect(),
        }
    })
}

fn covers() -> impl Strategy<Value = PcMap> {
    let chains = vec(vec(ChainFrame::generate(), 1..4), 1..4);
    let parts = (
        chains,
        pieces(),
        any::<[(u32, u8); 6]>(),
        Exactness::generate(),
    );
    parts.prop_map(|(chains, pieces, which, exactness)| {
        let count = u32::try_from(chains.len()).unwrap_or(1);
        let covers = (pieces.into_iter().zip(which))
            .map(|((start, end), (chain, method_error))| Cover {
                start,
                end,
                chain: chain % count,
                exactness,
                method_error,
            })
            .collect();
        PcMap::Covers { covers, chains }
    })
}
