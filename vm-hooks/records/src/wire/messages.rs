//! All messages with their fields. Times are nanoseconds of `CLOCK_MONOTONIC`; addresses are
//! run-time addresses, except offsets.

use super::budget::{self, Budget, Parts};
use super::{Wire, WireError};
use prost::Message;

/// Declares messages: `number name: kind` for each field, as in FORMAT.md. `= record` behind a
/// message's name: a record with the same field names; `if check`: a test of decoded records.
macro_rules! messages {
    ($(
        $name:ident $(= $record:ident $(if $check:path)?)?
        { $($tag:literal $field:ident: $($kind:ident)+ $(<$inner:ty>)?),* $(,)? }
    )+) => {$(
        messages!(@one $name { $($tag $field: [$($kind)+ $(<$inner>)?]),* });
        messages!(@record $name [$($record $(if $check)?)?] $($field)*);
    )+};
    (@record $name:ident [] $($field:ident)*) => {};
    (@record $name:ident [$record:ident $(if $check:path)?] $($field:ident)*) => {
        impl Wire<$name> for crate::$record {
            fn to_wire(&self) -> $name {
                $name { $($field: self.$field.to_wire()),* }
            }

            fn from_wire(message: $name) -> Result<Self, WireError> {
                let record = Self { $($field: Wire::from_wire(message.$field)?),* };
                $($check(&record)?;)?
                Ok(record)
            }
        }
    };
    (@one $name:ident { $($tag:literal $field:ident: $spec:tt),* }) => {
        messages!(@build $name [] $($tag $field: $spec,)*);

        impl Parts for $name {
            fn spend(bytes: &[u8], budget: &mut Budget) -> Result<(), WireError> {
                budget::each_part(bytes, |number, part| match number {
                    $($tag => messages!(@spend $spec part budget),)*
                    _ => Ok(()),
                })
            }
        }
    };
    (@spend [repeated text] $part:ident $budget:ident) => { $budget.text($part) };
    (@spend [$(optional)? text] $part:ident $budget:ident) => {{
        $budget.bytes($part);
        Ok(())
    }};
    (@spend [bytes] $part:ident $budget:ident) => {{
        $budget.bytes($part);
        Ok(())
    }};
    (@spend [$how:ident <$inner:ty>] $part:ident $budget:ident) => {
        $budget.message().and_then(|()| <$inner>::spend($part, $budget))
    };
    (@spend $plain:tt $part:ident $budget:ident) => {{
        let _ = ($part, &$budget);
        Ok(())
    }};
    (@build $name:ident [$($done:tt)*]) => {
        #[derive(Clone, PartialEq, Message)]
        pub(crate) struct $name { $($done)* }
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [u64], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(uint64, tag = $tag)] pub $f: u64,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [optional u64], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(uint64, optional, tag = $tag)] pub $f: Option<u64>,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [repeated u64], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(uint64, repeated, tag = $tag)] pub $f: Vec<u64>,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [u32], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(uint32, tag = $tag)] pub $f: u32,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [optional u32], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(uint32, optional, tag = $tag)] pub $f: Option<u32>,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [repeated u32], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(uint32, repeated, tag = $tag)] pub $f: Vec<u32>,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [i64], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(sint64, tag = $tag)] pub $f: i64,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [repeated i64], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(sint64, repeated, tag = $tag)] pub $f: Vec<i64>,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [f64], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(double, tag = $tag)] pub $f: f64,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [repeated f64], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(double, repeated, tag = $tag)] pub $f: Vec<f64>,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [flag], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(bool, tag = $tag)] pub $f: bool,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [text], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(string, tag = $tag)] pub $f: String,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [optional text], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(string, optional, tag = $tag)] pub $f: Option<String>,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [repeated text], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(string, repeated, tag = $tag)] pub $f: Vec<String>,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [bytes], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(bytes = "vec", tag = $tag)] pub $f: Vec<u8>,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [optional <$inner:ty>], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(message, optional, tag = $tag)] pub $f: Option<$inner>,] $($rest)*);
    };
    (@build $name:ident [$($done:tt)*] $tag:literal $f:ident: [repeated <$inner:ty>], $($rest:tt)*) => {
        messages!(@build $name [$($done)* #[prost(message, repeated, tag = $tag)] pub $f: Vec<$inner>,] $($rest)*);
    };
}

messages! {
    Session {
        1 time: u64, 2 wall_clock_unix_ns: u64, 3 producer: text, 4 vm_kind: text,
        5 vm_version: text, 6 command: repeated text, 7 pid: u32, 8 launched: flag,
        9 host: text, 10 kernel: text, 11 elf_machine: u32, 12 cpus: u32, 13 engine: text,
        14 engine_reason: text, 15 clock: u32, 16 period_ns: u64, 17 kernel_included: flag,
        18 scheduling: text,
    }
    Limit = Limit { 1 time: u64, 2 kind: u32, 3 text: text, 4 remedy: text }
    Process = Process { 1 key: u32, 2 time: u64, 3 pid: u32, 4 parent: optional u32, 5 name: text }
    ProcessEnd = ProcessEnd {
        1 key: u32, 2 time: u64, 3 alive: flag, 4 cpu: optional u64, 5 cpu_user: optional u64,
    }
    Thread = Thread {
        1 key: u32, 2 process: u32, 3 tid: u32, 4 time: u64, 5 name: text, 6 role: u32,
        7 cpu_before: u64,
    }
    ThreadUpdate = ThreadUpdate {
        1 key: u32, 2 time: u64, 3 name: optional text, 4 role: optional u32,
        5 process: optional u32,
    }
    ThreadEnd = ThreadEnd {
        1 key: u32, 2 time: u64, 3 alive: flag, 4 cpu: u64, 5 cpu_user: optional u64,
        6 cpu_measured: flag,
    }
    ThreadCpu = ThreadCpu { 1 key: u32, 2 time: u64, 3 cpu: u64, 4 cpu_user: optional u64 }
    Module {
        1 key: u32, 2 time: u64, 3 path: text, 4 build_id: bytes, 5 device: u64, 6 inode: u64,
        7 size: u64, 8 state: u32, 9 why_unreadable: text, 10 main: flag,
    }
    Mapping = Mapping {
        1 process: u32, 2 time: u64, 3 start: u64, 4 end: u64, 5 offset: u64,
        6 module: optional u32, 7 name: text, 8 executable: flag,
    }
    Unmapping = Unmapping { 1 process: u32, 2 time: u64, 3 start: u64, 4 end: u64 }

    SampleBatch {
        1 first_time: u64, 2 time_deltas: repeated i64, 3 threads: repeated u32,
        4 pc_deltas: repeated i64, 5 modes: bytes, 6 details: repeated <SampleDetail>,
    }
    SampleDetail {
        1 index: u32, 2 chain: optional <CallChain>, 3 registers: optional <Registers>,
        4 stack: optional <StackBytes>, 5 words: repeated <Word>,
    }
    CallChain { 1 kernel_deltas: repeated i64, 2 user_deltas: repeated i64, 3 truncated: flag, 4 end: u32, 5 guessed: flag, 6 late: flag }
    Registers { 1 elf_machine: u32, 2 mask: u64, 3 values: repeated u64 }
    StackBytes = StackBytes { 1 sp: u64, 2 bytes: bytes }
    Word = Word { 1 at: u64, 2 value: u64 }

    Constituent {
        1 key: u64, 2 process: u32, 3 since: u64, 4 absent_at: optional u64, 5 start: u64,
        6 size: u64, 7 kind: u32, 8 kind_name: text, 9 tier: text, 10 name: text,
        11 method: optional u64, 12 cases: repeated <PicCase>,
        13 boundary: optional <BoundaryMap>, 14 covers: optional <CoversMap>,
    }
    PicCase = PicCase { 1 class: text, 2 method: optional u64, 3 target: text }
    BoundaryMap {
        1 rule: u32, 2 exactness: u32, 3 code_deltas: repeated u32, 4 bytecodes: repeated u32,
    }
    CoversMap {
        1 starts: repeated u32, 2 ends: repeated u32, 3 chain_of: repeated u32,
        4 exactness: bytes, 5 chains: repeated <Chain>,
        6 method_errors: bytes,
    }
    Chain { 1 methods: repeated u64, 2 positions: repeated u64 }
    ConstituentGone = ConstituentGone { 1 key: u64, 2 last_seen: u64, 3 time: u64, 4 reason: u32 }
    ConstituentMoved = ConstituentMoved { 1 key: u64, 2 last_seen: u64, 3 time: u64, 4 to: u64 }
    Method {
        1 key: u64, 2 time: u64, 3 class: text, 4 name: text, 5 file: text, 6 line: u32,
        7 line_from: repeated u32, 8 line_number: repeated u32, 9 bytecodes: bytes,
        10 listing_at: repeated u32, 11 listing_text: repeated text,
    }

    Collection = Collection {
        1 key: u64, 2 process: u32, 3 time: u64, 4 collector: text, 5 kind: text, 6 cause: text,
        7 number: u64, 8 begin: optional u64, 9 end: optional u64, 10 scope: u32,
        11 phases: repeated <Phase>, 12 spaces: repeated <SpaceUse>,
        13 survived_bytes: optional u64, 14 tenured_bytes: optional u64, 15 missed: u64,
        16 missed_ns: optional u64, 17 survived_objects: optional u64, 18 cpu_ns: optional u64,
    }
    Phase = Phase {
        1 name: text, 2 within: optional u32, 3 begin: optional u64, 4 end: optional u64,
        5 stop_the_world: flag, 6 thread: optional u32,
    }
    SpaceUse = SpaceUse { 1 name: text, 2 before: optional u64, 3 after: optional u64, 4 capacity: optional u64 }
    Class = Class { 1 key: u64, 2 process: u32, 3 name: text }
    AllocationSite { 1 key: u64, 2 process: u32, 3 methods: repeated u64, 4 bytecodes: repeated u32 }
    Births {
        1 process: u32, 2 thread: optional u32, 3 object_deltas: repeated i64,
        4 time_deltas: repeated i64, 5 classes: repeated u64, 6 bytes: repeated u64,
        7 sites: repeated u64, 8 weights: repeated f64, 9 allocated_deltas: repeated i64,
    }
    Fates {
        1 process: u32, 2 collection: optional u64, 3 object_deltas: repeated i64,
        4 time_deltas: repeated i64, 5 fates: bytes, 6 holders: repeated u64,
    }
    LifetimeCounts = LifetimeCounts {
        1 process: u32, 2 time: u64, 3 class: u64, 4 site: optional u64, 5 objects: u64,
        6 bytes: u64, 7 buckets: repeated <SurvivalBucket>,
    }
    SurvivalBucket = SurvivalBucket {
        1 scavenges: u32, 2 fulls: u32, 3 objects: u64, 4 bytes: u64, 5 alive_objects: u64,
        6 alive_bytes: u64,
    }
    Counter = Counter {
        1 process: u32, 2 time: u64, 3 section: text, 4 name: text, 5 unit: text,
        6 meaning: u32, 7 value: f64,
    }
    Fact = Fact { 1 process: u32, 2 time: u64, 3 name: text, 4 value: text }
    Mark = Mark { 1 time: u64, 2 text: text }
    RegionRules = RegionRules { 1 process: u32, 2 time: u64, 3 vm: text, 4 rules: repeated <RegionRule> }
    RegionRule = RegionRule {
        1 module: text, 2 prefix: text, 3 contains: text, 4 suffix: text, 5 region: u32,
        6 part: text, 7 strip: flag, 8 identifiers: text, 9 role: optional u32,
    }
    InterpreterRules {
        1 process: u32, 2 time: u64, 3 vm: text, 4 starts: repeated u64, 5 sizes: repeated u64,
        6 sources: repeated <InterpreterSource>,
    }
    InterpreterSource {
        1 register: u32, 2 on_stack: flag, 3 offset: i64, 4 holds: u32, 5 added: optional u32,
    }
    Compilation = Compilation if super::code::check_times {
        1 process: u32, 2 thread: u32, 3 id: u64, 4 name: text, 5 tier: text,
        6 osr_bci: optional u32, 7 absent_at: optional u64, 8 first_seen: u64, 9 last_seen: u64,
        10 gone_at: optional u64,
    }

    Symbols { 1 module: optional u32, 2 functions: repeated <NativeFunction>, 3 note: text }
    NativeFunction {
        1 start: u64, 2 size: u64, 3 linkage_name: optional text, 4 name: text, 5 source: u32,
        6 sized: flag, 7 lines: repeated <NativeLines>,
    }
    NativeLines { 1 start: u64, 2 size: u64, 3 frames: repeated <NativeFrame>, 4 exactness: u32 }
    NativeFrame = NativeFrame { 1 function: text, 2 file: text, 3 line: u32 }
    Lost = Lost {
        1 stream: u32, 2 reason: u32, 3 count: u64, 4 from: u64, 5 to: u64, 6 thread: optional u32,
    }
    End = RecordingEnd { 1 time: u64, 2 reason: u32, 3 detail: text, 4 samples: u64, 5 recorder_cpu_ns: u64 }
}
