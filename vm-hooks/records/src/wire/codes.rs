//! Numbers of enumerations. An unknown number reads as the enumeration's most general value: newer
//! recordings stay readable.

use super::{Wire, WireError};
use crate::{
    BoundaryRule, ChainEnd, CollectionScope, CounterMeaning, CpuMode, EndReason, Exactness,
    GoneReason, LimitKind, LossReason, Region, SampleClock, Stream, SymbolSource, ThreadRole,
};

pub(super) trait Code: Copy {
    fn code(self) -> u32;
    /// Value with number `code`; the most general one for unknown numbers.
    fn from_code(code: u32) -> Self;
}

macro_rules! codes {
    ($($type:ident { $($variant:ident = $number:literal),+ $(,)? } else $other:ident;)+) => {$(
        impl Code for $type {
            fn code(self) -> u32 {
                match self { $($type::$variant => $number,)+ }
            }

            fn from_code(code: u32) -> Self {
                match code { $($number => $type::$variant,)+ _ => $type::$other }
            }
        }

        impl Wire<u32> for $type {
            fn to_wire(&self) -> u32 {
                self.code()
            }

            fn from_wire(code: u32) -> Result<Self, WireError> {
                Ok(Self::from_code(code))
            }
        }
    )+};
}

codes! {
    SampleClock { Cpu = 1, Wall = 2 } else Wall;
    ThreadRole { Other = 0, Mutator = 1, Collector = 2, Compiler = 3, Heartbeat = 4, Vm = 5 } else Other;
    CpuMode { User = 0, Kernel = 1, Idle = 2, Other = 3 } else Other;
    ChainEnd { Unknown = 0, Whole = 1, Depth = 2, Stack = 3, Broken = 4, Behind = 5 } else Unknown;
    Exactness { MethodOnly = 0, Exact = 1, Approximate = 2 } else MethodOnly;
    BoundaryRule { AfterInstruction = 0, AtStart = 1 } else AtStart;
    GoneReason { Unknown = 0, Freed = 1, Recycled = 2, Flushed = 3, Unloaded = 4 } else Unknown;
    LimitKind {
        Other = 0, KernelExcluded = 1, NoRealTime = 2, EngineFallback = 3, NotSampled = 4,
        NoSymbols = 5, MemoryUnreadable = 6, AdapterIncomplete = 7, OnlyNewestKept = 8,
        Callers = 9, Missing = 10, NoNames = 11,
    } else Other;
    Region {
        Unknown = 0, Generated = 1, Interpreter = 2, Gc = 3, Compiler = 4, Vm = 5, Library = 6,
        Kernel = 7, Idle = 8,
    } else Unknown;
    // Before scopes, recordings had a flag for collections that stop the world.
    CollectionScope { Cycle = 0, Whole = 1, CyclePause = 2 } else Cycle;
    CounterMeaning { Gauge = 0, Total = 1 } else Gauge;
    Stream { Any = 0, Samples = 1, Process = 2, Adapter = 3, Lifetimes = 4 } else Any;
    LossReason {
        Other = 0, RingOverrun = 1, Throttled = 2, ChannelOverrun = 3, TooLarge = 4,
        KeepLastFull = 5, Undecodable = 6,
    } else Other;
    EndReason {
        Other = 0, TargetExited = 1, Interrupted = 2, DurationOver = 3, WriteFailed = 4,
        Saved = 5, EngineFailed = 6, MemoryFull = 7,
    } else Other;
    SymbolSource {
        None = 0, SymbolTable = 1, DynamicSymbols = 2, MiniDebugInfo = 3, Plt = 4,
        DebugInfo = 5, Kallsyms = 6,
    } else None;
}
