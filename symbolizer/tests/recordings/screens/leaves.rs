//! Places and callers of the fictitious JVM's samples.

use super::super::Draw;
use super::java::Work;
use super::libraries::{ANONYMOUS, NOWHERE, nameless, native};
use super::methods::Java;
use super::skewed;
use super::zone::{BP, BX, Nmethod, R13, Zone, adapter, bytecode_at, codelet, object_of, stub};
use vmscope_records::{
    Arch, Avma, CallChain, ChainEnd, CpuMode, Registers, SampleDetail, ThreadKey,
};

/// Limit of recorded callers.
const MAX_DEPTH: usize = 12;

/// A sample without time and thread.
#[derive(Debug)]
pub struct Leaf {
    pub pc: u64,
    pub mode: CpuMode,
    pub detail: Option<SampleDetail>,
}

/// Instructions of methods without a listing.
const INSTRUCTIONS: [&str; 6] = [
    "aload_0",
    "getfield",
    "iload_1",
    "invokevirtual",
    "iadd",
    "goto",
];

const YOUNG: &[&str] = &[
    "G1ParScanThreadState::trim_queue()",
    "G1ParScanThreadState::trim_queue()",
    "G1ParScanThreadState::trim_queue()",
    "G1ParCopyClosure::do_oop()",
    "G1ParCopyClosure::do_oop()",
    "G1RemSet::scan_card()",
    "G1PLABAllocator::allocate()",
    "G1EvacuateRegionsTask::work()",
    "memmove",
];
const FULL: &[(u64, &str)] = &[
    (40, "G1FullGCMarker::mark_and_push()"),
    (52, "G1FullGCPrepareTask::work()"),
    (72, "G1AdjustClosure::do_oop()"),
    (101, "G1FullGCCompactTask::work()"),
];
const MARKING: &[&str] = &[
    "G1CMTask::drain_local_queue()",
    "G1CMTask::drain_local_queue()",
    "G1ConcurrentMark::mark_from_roots()",
    "G1RebuildRSTask::work()",
];
const BY_C1: &[&str] = &[
    "GraphBuilder::iterate_bytecodes()",
    "LinearScan::allocate_registers()",
    "LIRGenerator::do_root()",
    "LIR_Assembler::emit_code()",
    "malloc",
];
const BY_C2: &[&str] = &[
    "PhaseIterGVN::optimize()",
    "PhaseIterGVN::optimize()",
    "PhaseIdealLoop::build_loop()",
    "PhaseChaitin::Register_Allocate()",
    "PhaseChaitin::Register_Allocate()",
    "Parse::do_one_bytecode()",
    "Matcher::match()",
    "PhaseOutput::fill_buffer()",
    "memset",
];
const OPERATIONS: &[&str] = &[
    "VMThread::execute()",
    "SafepointSynchronize::begin()",
    "G1CollectedHeap::do_collection_pause()",
];
const STARTING: &[&str] = &[
    "SystemDictionary::resolve()",
    "ClassFileParser::parse()",
    "LinkResolver::resolve_invoke()",
];
const STEADY: &[&str] = &[
    "OptoRuntime::new_array_C()",
    "ObjectMonitor::enter()",
    "Unsafe_Park",
];

pub struct Leaves<'a> {
    zone: &'a Zone,
    /// Leaf methods repeated by weight: of the workers, of the main thread.
    by_weight: [Vec<usize>; 2],
}

fn one_of(draw: &mut Draw, names: &[&str]) -> u64 {
    let name = names[draw.below(names.len() as u64) as usize];
    native(name, 0x10 + skewed(draw, 0x80) * 4)
}

impl<'a> Leaves<'a> {
    pub fn new(zone: &'a Zone) -> Self {
        let of = |main: bool| {
            let methods = zone.methods.iter().enumerate();
            let of_thread = methods.filter(move |(_, java)| java.on_main == main);
            let often = |(index, java): (usize, &Java)| vec![index; java.weight as usize];
            of_thread.flat_map(often).collect()
        };
        Leaves {
            zone,
            by_weight: [of(false), of(true)],
        }
    }

    /// A sample of a thread's activity.
    pub fn at(&mut self, work: Work, (thread, time): (ThreadKey, u64), draw: &mut Draw) -> Leaf {
        let pc = match work {
            Work::Java => return self.java(thread == ThreadKey(1), time, draw),
            Work::Pause("full", over) => {
                let phase = FULL.iter().find(|(until, _)| over < *until).unwrap();
                native(phase.1, 0x10 + skewed(draw, 0x40) * 4)
            }
            Work::Pause("remark" | "cleanup", _) => one_of(draw, &MARKING[2..]),
            Work::Pause(..) => one_of(draw, YOUNG),
            Work::Marking => one_of(draw, MARKING),
            Work::Compiling if thread == super::figures::C1 => one_of(draw, BY_C1),
            Work::Compiling => one_of(draw, BY_C2),
            Work::Operations => one_of(draw, OPERATIONS),
        };
        // The kernel provides fresh memory.
        let faults = draw.below(100) < 2;
        let page = || native("clear_page_erms", 0x20);
        Leaf {
            pc: if faults { page() } else { pc },
            mode: if faults {
                CpuMode::Kernel
            } else {
                CpuMode::User
            },
            detail: None,
        }
    }

    /// A sample of a thread in Java code.
    fn java(&self, main: bool, time: u64, draw: &mut Draw) -> Leaf {
        let methods = &self.by_weight[usize::from(main)];
        let method = methods[draw.below(methods.len() as u64) as usize];
        let mut user = Vec::new();
        let kind = draw.below(1_000);
        let starts = time < super::ms(3_000) && main;
        if kind < if starts { 780 } else { 850 } {
            return self.in_method(method, time, draw);
        }
        // Outside Java code, called by the method.
        let pc = match kind {
            0..890 if !starts => {
                let name = [
                    "jbyte_disjoint_arraycopy",
                    "crc32_updateBytes",
                    "new_array_Java",
                ];
                stub(name[draw.below(3) as usize]) + 0x20 + draw.below(8) * 8
            }
            0..896 if !starts => adapter(method as u64) + 0x10,
            0..930 => one_of(draw, if starts { STARTING } else { STEADY }),
            930..955 => one_of(draw, &["memmove", "malloc", "memset"]),
            955..962 => nameless(draw.below(0x100)),
            962..965 => ANONYMOUS + draw.below(0x40) * 8,
            965 => NOWHERE,
            _ => return self.in_kernel(method, time, draw),
        };
        user.push(self.inside(method, None, time));
        self.callers(method, time, draw, &mut user);
        leaf(pc, CpuMode::User, Vec::new(), user, None)
    }

    /// A sample in a method's own code, compiled or interpreted.
    fn in_method(&self, method: usize, time: u64, draw: &mut Draw) -> Leaf {
        let mut user = Vec::new();
        self.callers(method, time, draw, &mut user);
        if let Some(code) = self.zone.code_of(method, time) {
            let own = code.own as u64;
            let inlined = code.pieces.len() as u64 - own;
            let piece = if inlined > 0 && draw.below(100) < 35 {
                own + draw.below(inlined)
            } else {
                (skewed(draw, own) + method as u64 * 5) % own
            };
            let at = draw.below(6) * 4;
            // Some samples in the prologue, which has no bytecode.
            let pc = match draw.below(50) {
                0 => code.start + at,
                _ => code.piece(piece as usize) + at,
            };
            return leaf(pc, CpuMode::User, Vec::new(), user, None);
        }
        let java = &self.zone.methods[method];
        let pcs = java.pcs();
        let at = (skewed(draw, pcs.len() as u64) as usize + method) % pcs.len();
        let text = match java.listing.get(at) {
            Some((_, text)) => text.as_str(),
            None => INSTRUCTIONS[at % INSTRUCTIONS.len()],
        };
        let handler = codelet(text);
        let (pc, r13, rbx) = match draw.below(100) {
            // During method entry, before the first bytecode.
            0..5 => (codelet("method-entry"), 0, object_of(method)),
            5..8 => (handler, 0, 0),
            _ => (handler, bytecode_at(method, pcs[at]), 0),
        };
        let registers = Registers {
            arch: Arch::X86_64,
            mask: 1 << BX | 1 << BP | 1 << R13,
            values: vec![rbx, 0x7ffe_0000_1000, r13],
        };
        let pc = pc + 0x10 + draw.below(8) * 4;
        leaf(pc, CpuMode::User, Vec::new(), user, Some(registers))
    }

    /// A sample in the kernel: waiting, sending or providing fresh memory.
    fn in_kernel(&self, method: usize, time: u64, draw: &mut Draw) -> Leaf {
        let inside = |name| native(name, 0x30);
        let call = ["do_syscall_64", "entry_SYSCALL_64"].map(inside);
        let (pc, kernel, mut user) = match draw.below(3) {
            0 => (
                inside(["schedule", "futex_wait"][draw.below(2) as usize]),
                [&[inside("do_futex")], &call[..]].concat(),
                vec![inside("pthread_cond_wait"), inside("Unsafe_Park")],
            ),
            1 => (
                inside("tcp_sendmsg"),
                [&[inside("vfs_write")], &call[..]].concat(),
                vec![inside("write")],
            ),
            _ => (
                inside("clear_page_erms"),
                ["do_user_addr_fault", "asm_exc_page_fault"]
                    .map(inside)
                    .to_vec(),
                Vec::new(),
            ),
        };
        user.push(self.inside(method, None, time));
        self.callers(method, time, draw, &mut user);
        leaf(pc, CpuMode::Kernel, kernel, user, None)
    }

    /// A sample with two possible methods.
    pub fn reused(&self, time: u64, draw: &mut Draw) -> Leaf {
        let reuser = |java: &Java| java.short == "HashMap.resize";
        let method = self.zone.methods.iter().position(reuser).unwrap();
        let mut user = Vec::new();
        self.callers(method, time, draw, &mut user);
        let pc = self.zone.reused_at() + 0x40 + draw.below(4) * 4;
        leaf(pc, CpuMode::User, Vec::new(), user, None)
    }

    /// The return address of a call in a method.
    fn inside(&self, method: usize, callee: Option<usize>, time: u64) -> u64 {
        let Some(code) = self.zone.code_of(method, time) else {
            return codelet("invoke-return") + 0x20;
        };
        code.piece(self.call(code, callee)) + 0x10
    }

    /// The calling piece, by the listing if any.
    fn call(&self, code: &Nmethod, callee: Option<usize>) -> usize {
        let methods = &self.zone.methods;
        let called = callee.map(|callee| format!("/{}:", methods[callee].short));
        let listing = &methods[code.method].listing;
        let calls = |called: String| listing.iter().position(|(_, text)| text.contains(&called));
        let listed = called.and_then(calls);
        listed.unwrap_or_else(|| (2 + callee.unwrap_or(0) * 3) % code.own)
    }

    /// A method's callers down to the thread's start.
    fn callers(&self, method: usize, time: u64, draw: &mut Draw, user: &mut Vec<u64>) {
        let mut callee = method;
        while let callers = &self.zone.methods[callee].callers
            && !callers.is_empty()
            && user.len() < 40
        {
            let caller = callers[draw.below(callers.len() as u64) as usize];
            user.push(self.inside(caller, Some(callee), time));
            callee = caller;
        }
        let outermost: &[&str] = if self.zone.methods[method].on_main {
            &["JavaCalls::call_helper()", "JavaMain", "start_thread"]
        } else {
            &["JavaThread::run()", "start_thread"]
        };
        user.push(stub("call_stub") + 0x40);
        user.extend(outermost.iter().map(|name| native(name, 0x80)));
    }
}

fn leaf(
    pc: u64,
    mode: CpuMode,
    kernel: Vec<u64>,
    mut user: Vec<u64>,
    registers: Option<Registers>,
) -> Leaf {
    let room = MAX_DEPTH - kernel.len();
    let end = match user.len() > room {
        true => ChainEnd::Depth,
        false => ChainEnd::Unknown,
    };
    user.truncate(room);
    let addresses = |all: Vec<u64>| all.into_iter().map(Avma).collect();
    Leaf {
        pc,
        mode,
        detail: Some(SampleDetail {
            chain: Some(CallChain {
                kernel: addresses(kernel),
                user: addresses(user),
                end,
                guessed: false,
                late: false,
            }),
            registers,
            ..SampleDetail::default()
        }),
    }
}
