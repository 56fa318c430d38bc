//! Native code of the fictitious JVM: modules, symbols and the adapter's rules.

use super::super::{PROCESS, Recording, function};
use super::BEGIN;
use std::collections::HashMap;
use std::sync::LazyLock;
use vmscope_records::{
    Avma, BuildId, FileOffset, Mapping, Module, ModuleKey, ModuleState, Record, Region, RegionRule,
    RegionRules, SymbolOwner, SymbolSource, Symbols, TimeNs,
};

/// Bytes per function.
const FUNCTION: u64 = 0x400;
const KERNEL: u64 = 0xffff_ffff_8100_0000;
/// Executable memory without a file.
pub const ANONYMOUS: u64 = 0x7f30_0000_0000;
/// Unmapped address.
pub const NOWHERE: u64 = 0x10;

const JAVA: &str = "main JLI_Launch JavaMain";
const JVM: &str = "JavaThread::run() JavaCalls::call_helper() \
    G1ParScanThreadState::trim_queue() G1ParCopyClosure::do_oop() G1RemSet::scan_card() \
    G1PLABAllocator::allocate() G1EvacuateRegionsTask::work() \
    G1FullGCMarker::mark_and_push() G1FullGCPrepareTask::work() G1AdjustClosure::do_oop() \
    G1FullGCCompactTask::work() G1ConcurrentMark::mark_from_roots() G1CMTask::drain_local_queue() \
    G1RebuildRSTask::work() G1CollectedHeap::do_collection_pause() \
    Parse::do_one_bytecode() PhaseIterGVN::optimize() PhaseIdealLoop::build_loop() \
    PhaseChaitin::Register_Allocate() Matcher::match() PhaseOutput::fill_buffer() \
    GraphBuilder::iterate_bytecodes() LinearScan::allocate_registers() LIRGenerator::do_root() \
    LIR_Assembler::emit_code() SystemDictionary::resolve() ClassFileParser::parse() \
    LinkResolver::resolve_invoke() OptoRuntime::new_array_C() ObjectMonitor::enter() Unsafe_Park \
    VMThread::execute() SafepointSynchronize::begin()";
const LIBC: &str = "start_thread __libc_start_main memmove memset malloc pthread_cond_wait write";
const KERNEL_FUNCTIONS: &str = "entry_SYSCALL_64 do_syscall_64 futex_wait do_futex \
    schedule clear_page_erms do_user_addr_fault vfs_write tcp_sendmsg asm_exc_page_fault";

/// `(path, address, functions)`.
const MODULES: [(&str, u64, &str); 3] = [
    ("/opt/acme-jdk/bin/java", 0x5555_5555_0000, JAVA),
    ("/opt/acme-jdk/lib/server/libjvm.so", 0x7f80_0000_0000, JVM),
    ("/opt/acme-os/lib/libc.so.6", 0x7f90_0000_0000, LIBC),
];

/// Parts of regions by text in function names; the first match counts. Unmatched functions are the
/// VM's.
const RULES: [(&str, Region, &str); 16] = [
    ("G1FullGC", Region::Gc, "G1 full collection"),
    ("G1Adjust", Region::Gc, "G1 full collection"),
    ("G1RemSet", Region::Gc, "G1 remembered sets"),
    ("G1RebuildR", Region::Gc, "G1 remembered sets"),
    ("G1CM", Region::Gc, "G1 marking"),
    ("G1ConcurrentMark", Region::Gc, "G1 marking"),
    ("G1ParScan", Region::Gc, "G1 young evacuation"),
    ("G1ParCopy", Region::Gc, "G1 young evacuation"),
    ("G1PLAB", Region::Gc, "G1 young evacuation"),
    ("G1Evacuat", Region::Gc, "G1 young evacuation"),
    ("G1", Region::Gc, "G1"),
    ("GraphBuilder", Region::Compiler, "C1: parse"),
    ("LinearScan", Region::Compiler, "C1: register allocation"),
    ("LIR", Region::Compiler, "C1: code"),
    ("Parse::", Region::Compiler, "C2: parse"),
    ("Phase", Region::Compiler, "C2: optimisation"),
];

/// Address in a native function, `at` bytes from its start.
pub fn native(name: &str, at: u64) -> u64 {
    // Recordings ask tens of thousands of times.
    static STARTS: LazyLock<HashMap<&str, u64>> = LazyLock::new(|| {
        let modules = MODULES.iter().map(|(_, start, names)| (*start, *names));
        let in_module = |(start, names): (u64, &'static str)| {
            let functions = names.split_whitespace().zip(0u64..);
            functions.map(move |(name, number)| (name, start + number * FUNCTION))
        };
        // Of equal names, the first counts.
        let all = modules.chain([(KERNEL, KERNEL_FUNCTIONS)]);
        let all: Vec<_> = all.flat_map(in_module).collect();
        all.into_iter().rev().collect()
    });
    let start = STARTS.get(name);
    start.unwrap_or_else(|| panic!("no function {name}")) + at % FUNCTION
}

/// Address in libc without a symbol.
pub fn nameless(at: u64) -> u64 {
    MODULES[2].1 + 0x8000 + at % 0x100
}

fn symbols(owner: SymbolOwner, names: &str, start: u64) -> Record {
    let functions = names.split_whitespace().zip(0u64..);
    let mut functions: Vec<_> = functions
        .map(|(name, number)| function(start + number * FUNCTION, FUNCTION, name))
        .collect();
    if owner == SymbolOwner::Kernel {
        (functions.iter_mut()).for_each(|one| one.source = SymbolSource::Kallsyms);
    }
    Record::Symbols(Symbols {
        owner,
        functions,
        note: String::new(),
    })
}

pub fn record(recording: &mut Recording) {
    let time = TimeNs(BEGIN);
    for (number, (path, start, names)) in (1..).zip(MODULES) {
        let key = ModuleKey(number);
        recording.put(Record::Module(Module {
            key,
            time,
            path: path.into(),
            build_id: BuildId::new(&[u8::try_from(number).unwrap(); 20]),
            device: 8 << 32 | 1,
            inode: 1_000 + u64::from(number),
            size: 0x10_0000,
            main: number == 1,
            state: ModuleState::Opened,
        }));
        recording.put(mapping(start, Some(key), ""));
        recording.put(symbols(SymbolOwner::Module(key), names, 0));
    }
    recording.put(mapping(super::zone::ZONE, None, "code cache"));
    recording.put(mapping(ANONYMOUS, None, ""));
    recording.put(symbols(SymbolOwner::Kernel, KERNEL_FUNCTIONS, KERNEL));
    let rule = |(prefix, region, part): (&str, Region, &str)| RegionRule {
        module: "libjvm.so".into(),
        prefix: prefix.into(),
        region,
        part: part.into(),
        ..RegionRule::default()
    };
    let rest = [
        ("Matcher", Region::Compiler, "C2: instruction selection"),
        ("OptoRuntime", Region::Vm, "runtime for compiled code"),
        ("ClassFile", Region::Vm, "class loading"),
        ("SystemDictionary", Region::Vm, "class loading"),
        ("", Region::Vm, ""),
    ];
    recording.put(Record::RegionRules(RegionRules {
        process: PROCESS,
        time,
        vm: "hotspot".into(),
        rules: RULES.into_iter().chain(rest).map(rule).collect(),
    }));
}

fn mapping(start: u64, module: Option<ModuleKey>, name: &str) -> Record {
    Record::Mapping(Mapping {
        process: PROCESS,
        time: TimeNs(BEGIN),
        start: Avma(start),
        end: Avma(start + 0x10_0000),
        offset: FileOffset(0),
        module,
        name: name.into(),
        executable: true,
    })
}
