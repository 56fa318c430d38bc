//! Shared parts of simple recordings: threads, modules, samples and matching CPU times.

use super::super::{Draw, PROCESS, Recording, function, session};
use super::{BEGIN, PERIOD, file, ms};
use vmscope_records::{
    Avma, CallChain, CpuMode, DurationNs, EndReason, FileOffset, Mapping, Module, ModuleKey,
    ModuleState, NativeFunction, Record, RecordingEnd, Region, RegionRule, RegionRules, Sample,
    SampleDetail, Session, SymbolOwner, SymbolSource, Symbols, Thread, ThreadCpu, ThreadEnd,
    ThreadKey, ThreadRole, Tid, TimeNs, VmIdentity,
};

/// Bytes per native function.
pub const FUNCTION: u64 = 0x100;
/// Address of the kernel's functions.
pub const KERNEL: u64 = 0xffff_ffff_8100_0000;
/// Bytes per module.
const MODULE: u64 = 0x10_0000;

/// A recording of one process under construction.
pub struct Stage {
    pub recording: Recording,
    pub draw: Draw,
    threads: usize,
    /// Each thread's samples: time, and kernel mode.
    taken: Vec<Vec<(u64, bool)>>,
}

/// A session of a VM; engine, host and kernel are fixed.
pub fn session_of(kind: &str, version: &str, command: &[&str]) -> Session {
    Session {
        time: TimeNs(BEGIN),
        vm: VmIdentity {
            kind: kind.into(),
            version: version.into(),
        },
        command: command.iter().map(|&word| word.to_owned()).collect(),
        host: "desk".into(),
        kernel: "Linux 6.12.48".into(),
        engine_reason: "perf events are allowed".into(),
        period: DurationNs(PERIOD),
        ..session(kind)
    }
}

impl Stage {
    pub fn new(session: Session, threads: &[(&str, ThreadRole)]) -> Self {
        let mut recording = Recording::empty();
        recording.put(Record::Session(Box::new(session)));
        recording.process(PROCESS, BEGIN, 100, None);
        for (number, &(name, role)) in (1..).zip(threads) {
            recording.put(Record::Thread(Thread {
                key: ThreadKey(number),
                process: PROCESS,
                tid: Tid(99 + number),
                time: TimeNs(BEGIN),
                name: name.into(),
                role,
                cpu_before: DurationNs(0),
            }));
        }
        Stage {
            recording,
            draw: Draw(threads.len() as u64),
            threads: threads.len(),
            taken: vec![Vec::new(); threads.len()],
        }
    }

    /// A module at an address with consecutive functions; the first module is the program.
    pub fn module(&mut self, number: u32, path: &str, start: u64, names: &[&str]) {
        self.module_with(number, path, start, functions(0, names));
    }

    pub fn module_with(
        &mut self,
        number: u32,
        path: &str,
        start: u64,
        functions: Vec<NativeFunction>,
    ) {
        let key = ModuleKey(number);
        self.recording.put(Record::Module(Module {
            key,
            time: TimeNs(BEGIN),
            path: path.into(),
            build_id: None,
            device: 0,
            inode: 0,
            size: MODULE,
            main: number == 1,
            state: ModuleState::Opened,
        }));
        self.recording.put(Record::Mapping(Mapping {
            process: PROCESS,
            time: TimeNs(BEGIN),
            start: Avma(start),
            end: Avma(start + MODULE),
            offset: FileOffset(0),
            module: Some(key),
            name: String::new(),
            executable: true,
        }));
        self.recording.put(Record::Symbols(Symbols {
            owner: SymbolOwner::Module(key),
            functions,
            note: String::new(),
        }));
    }

    pub fn kernel(&mut self, names: &[&str]) {
        let mut functions = functions(KERNEL, names);
        (functions.iter_mut()).for_each(|one| one.source = SymbolSource::Kallsyms);
        self.recording.put(Record::Symbols(Symbols {
            owner: SymbolOwner::Kernel,
            functions,
            note: String::new(),
        }));
    }

    /// Region rules for a module's functions, by text in their names.
    pub fn regions(&mut self, vm: &str, module: &str, rules: &[(&str, Region, &str)]) {
        let rules = rules.iter().map(|&(contains, region, part)| RegionRule {
            module: module.into(),
            contains: contains.into(),
            region,
            part: part.into(),
            ..RegionRule::default()
        });
        self.recording.put(Record::RegionRules(RegionRules {
            process: PROCESS,
            time: TimeNs(BEGIN),
            vm: vm.into(),
            rules: rules.collect(),
        }));
    }

    /// Calls `leaf` with time and thread (from 0) at each sample; a thread is active for `busy` of
    /// its time. `leaf` returns pc and callers, innermost first.
    pub fn play(
        &mut self,
        length_ms: u64,
        busy: &[f64],
        mut leaf: impl FnMut(u64, usize, &mut Draw) -> (u64, Vec<u64>),
    ) {
        assert_eq!(busy.len(), self.threads, "one for each thread");
        for tick in 0..length_ms * 1_000_000 / PERIOD {
            for (thread, &part) in busy.iter().enumerate() {
                let late = thread as u64 * PERIOD / self.threads as u64;
                let time = BEGIN + tick * PERIOD + late;
                if self.draw.unit() >= part || time >= ms(length_ms) {
                    continue;
                }
                let (pc, callers) = leaf(time, thread, &mut self.draw);
                self.sample(time, thread, pc, callers);
            }
        }
    }

    fn sample(&mut self, time: u64, thread: usize, pc: u64, callers: Vec<u64>) {
        let in_kernel = pc >= KERNEL;
        self.taken[thread].push((time, in_kernel));
        let chain = CallChain {
            kernel: Vec::new(),
            user: callers.into_iter().map(Avma).collect(),
            ..CallChain::default()
        };
        let detail = SampleDetail {
            chain: Some(chain),
            ..SampleDetail::default()
        };
        let has_callers = detail
            .chain
            .as_ref()
            .is_some_and(|chain| !chain.user.is_empty());
        self.recording.put(Record::Sample(Sample {
            time: TimeNs(time),
            thread: ThreadKey(thread as u32 + 1),
            pc: Avma(pc),
            mode: if in_kernel {
                CpuMode::Kernel
            } else {
                CpuMode::User
            },
            detail: has_callers.then(|| Box::new(detail)),
        }));
    }

    /// The file; threads and recording end after `length_ms`.
    pub fn end(mut self, length_ms: u64) -> Vec<u8> {
        let end = TimeNs(ms(length_ms));
        for (thread, taken) in (1..).zip(&self.taken) {
            let key = ThreadKey(thread);
            let until = |time: u64| taken.iter().filter(move |(at, _)| *at < time);
            let cpu = |time| DurationNs(until(time).count() as u64 * PERIOD);
            let user = |time| until(time).filter(|(_, kernel)| !kernel).count() as u64 * PERIOD;
            for time in (1_000..length_ms).step_by(1_000).map(ms) {
                self.recording.put(Record::ThreadCpu(ThreadCpu {
                    key,
                    time: TimeNs(time),
                    cpu: cpu(time),
                    cpu_user: Some(DurationNs(user(time))),
                }));
            }
            self.recording.put(Record::ThreadEnd(ThreadEnd {
                key,
                time: end,
                alive: false,
                cpu: cpu(end.0),
                cpu_measured: true,
                cpu_user: Some(DurationNs(user(end.0))),
            }));
        }
        self.recording.put(Record::End(RecordingEnd {
            time: end,
            reason: EndReason::TargetExited,
            detail: String::new(),
            samples: 0,
            recorder_cpu_ns: 20_000_000,
        }));
        file(self.recording)
    }
}

fn functions(base: u64, names: &[&str]) -> Vec<NativeFunction> {
    let all = (0..).zip(names);
    all.map(|(number, name)| function(base + number * FUNCTION, FUNCTION, name))
        .collect()
}
