//! Sessions, processes, threads and mappings to messages and back.

use super::codes::Code;
use super::{WireError, messages as m};
use crate::{
    Arch, Avma, BuildId, DurationNs, EndReason, FileOffset, Limit, LimitKind, LossReason, Lost,
    Mapping, Module, ModuleKey, ModuleState, Pid, Process, ProcessEnd, ProcessKey, RecordingEnd,
    SampleClock, Session, Stream, Thread, ThreadCpu, ThreadEnd, ThreadKey, ThreadRole,
    ThreadUpdate, Tid, TimeNs, Unmapping, VmIdentity,
};

/// A 16-bit ELF machine number out of a 32-bit field.
pub(super) fn arch_of(machine: u32) -> Result<Arch, WireError> {
    u16::try_from(machine)
        .map(Arch::from_elf_machine)
        .map_err(|_| WireError::Range("elf_machine"))
}

impl From<&Box<Session>> for m::Session {
    fn from(s: &Box<Session>) -> Self {
        m::Session {
            time: s.time.0,
            wall_clock_unix_ns: s.wall_clock_unix_ns,
            producer: s.producer.clone(),
            vm_kind: s.vm.kind.clone(),
            vm_version: s.vm.version.clone(),
            command: s.command.clone(),
            pid: s.pid.0,
            launched: s.launched,
            host: s.host.clone(),
            kernel: s.kernel.clone(),
            elf_machine: u32::from(s.arch.elf_machine()),
            cpus: s.cpus,
            engine: s.engine.clone(),
            engine_reason: s.engine_reason.clone(),
            clock: s.clock.code(),
            period_ns: s.period.0,
            kernel_included: s.kernel_included,
            scheduling: s.scheduling.clone(),
        }
    }
}

impl TryFrom<m::Session> for Box<Session> {
    type Error = WireError;

    fn try_from(s: m::Session) -> Result<Self, WireError> {
        if s.period_ns == 0 {
            // Promised samples are CPU time divided by it.
            return Err(WireError::Range("period_ns"));
        }
        Ok(Box::new(Session {
            time: TimeNs(s.time),
            wall_clock_unix_ns: s.wall_clock_unix_ns,
            producer: s.producer,
            vm: VmIdentity {
                kind: s.vm_kind,
                version: s.vm_version,
            },
            command: s.command,
            pid: Pid(s.pid),
            launched: s.launched,
            host: s.host,
            kernel: s.kernel,
            arch: arch_of(s.elf_machine)?,
            cpus: s.cpus,
            engine: s.engine,
            engine_reason: s.engine_reason,
            clock: SampleClock::from_code(s.clock),
            period: DurationNs(s.period_ns),
            kernel_included: s.kernel_included,
            scheduling: s.scheduling,
        }))
    }
}

/// Declares both directions for records whose fields are plain: `message field =
/// record field: how it is wrapped`.
macro_rules! plain {
    ($type:ident { $($field:ident = $own:ident: $wrap:tt),+ $(,)? }) => {
        impl From<&$type> for m::$type {
            fn from(r: &$type) -> Self {
                m::$type { $($field: plain!(@out r.$own, $wrap)),+ }
            }
        }

        impl TryFrom<m::$type> for $type {
            type Error = WireError;

            fn try_from(r: m::$type) -> Result<Self, WireError> {
                Ok($type { $($own: plain!(@in r.$field, $wrap)),+ })
            }
        }
    };
    (@out $r:ident.$f:ident, same) => { $r.$f.clone() };
    (@in $r:ident.$f:ident, same) => { $r.$f };
    (@out $r:ident.$f:ident, [$t:ident]) => { $r.$f.0 };
    (@in $r:ident.$f:ident, [$t:ident]) => { $t($r.$f) };
    (@out $r:ident.$f:ident, (option $t:ident)) => { $r.$f.map(|value| value.0) };
    (@in $r:ident.$f:ident, (option $t:ident)) => { $r.$f.map($t) };
    (@out $r:ident.$f:ident, (code $t:ident)) => { $r.$f.code() };
    (@in $r:ident.$f:ident, (code $t:ident)) => { $t::from_code($r.$f) };
    (@out $r:ident.$f:ident, (option code $t:ident)) => { $r.$f.map(Code::code) };
    (@in $r:ident.$f:ident, (option code $t:ident)) => { $r.$f.map($t::from_code) };
}
pub(super) use plain;

plain!(Limit { time = time: [TimeNs], kind = kind: (code LimitKind), text = text: same, remedy = remedy: same });
plain!(Process {
    key = key: [ProcessKey], time = time: [TimeNs], pid = pid: [Pid],
    parent = parent: (option ProcessKey), name = name: same,
});
plain!(ProcessEnd {
    key = key: [ProcessKey], time = time: [TimeNs], alive = alive: same,
    cpu_ns = cpu: (option DurationNs), cpu_user_ns = cpu_user: (option DurationNs),
});
plain!(Thread {
    key = key: [ThreadKey], process = process: [ProcessKey], tid = tid: [Tid],
    time = time: [TimeNs], name = name: same, role = role: (code ThreadRole),
    cpu_before_ns = cpu_before: [DurationNs],
});
plain!(ThreadUpdate {
    key = key: [ThreadKey], time = time: [TimeNs], name = name: same,
    role = role: (option code ThreadRole),
    process = process: (option ProcessKey),
});
plain!(ThreadEnd {
    key = key: [ThreadKey], time = time: [TimeNs], alive = alive: same, cpu_ns = cpu: [DurationNs],
    cpu_user_ns = cpu_user: (option DurationNs),
    cpu_measured = cpu_measured: same,
});
plain!(ThreadCpu {
    key = key: [ThreadKey], time = time: [TimeNs], cpu_ns = cpu: [DurationNs],
    cpu_user_ns = cpu_user: (option DurationNs),
});
plain!(Mapping {
    process = process: [ProcessKey], time = time: [TimeNs], start = start: [Avma],
    end = end: [Avma], offset = offset: [FileOffset], module = module: (option ModuleKey),
    name = name: same, executable = executable: same,
});
plain!(Unmapping { process = process: [ProcessKey], time = time: [TimeNs], start = start: [Avma], end = end: [Avma] });
plain!(Lost {
    stream = stream: (code Stream), reason = reason: (code LossReason), count = count: same,
    from = from: [TimeNs], to = to: [TimeNs], thread = thread: (option ThreadKey),
});

impl From<&RecordingEnd> for m::End {
    fn from(r: &RecordingEnd) -> Self {
        m::End {
            time: r.time.0,
            reason: r.reason.code(),
            detail: r.detail.clone(),
            samples: r.samples,
            recorder_cpu_ns: r.recorder_cpu_ns,
        }
    }
}

impl TryFrom<m::End> for RecordingEnd {
    type Error = WireError;

    fn try_from(r: m::End) -> Result<Self, WireError> {
        Ok(RecordingEnd {
            time: TimeNs(r.time),
            reason: EndReason::from_code(r.reason),
            detail: r.detail,
            samples: r.samples,
            recorder_cpu_ns: r.recorder_cpu_ns,
        })
    }
}

impl From<&Module> for m::Module {
    fn from(r: &Module) -> Self {
        let (state, why_unreadable) = match &r.state {
            ModuleState::Opened => (0, String::new()),
            ModuleState::Deleted => (1, String::new()),
            ModuleState::Replaced => (2, String::new()),
            ModuleState::Unreadable(why) => (3, why.clone()),
            ModuleState::Vdso => (4, String::new()),
        };
        m::Module {
            key: r.key.0,
            time: r.time.0,
            path: r.path.clone(),
            build_id: r
                .build_id
                .as_ref()
                .map_or_else(Vec::new, |id| id.as_bytes().to_vec()),
            device: r.device,
            inode: r.inode,
            size: r.size,
            state,
            why_unreadable,
            main: r.main,
        }
    }
}

impl TryFrom<m::Module> for Module {
    type Error = WireError;

    fn try_from(r: m::Module) -> Result<Self, WireError> {
        Ok(Module {
            key: ModuleKey(r.key),
            time: TimeNs(r.time),
            path: r.path,
            build_id: BuildId::new(&r.build_id),
            device: r.device,
            inode: r.inode,
            size: r.size,
            main: r.main,
            state: match r.state {
                0 => ModuleState::Opened,
                1 => ModuleState::Deleted,
                2 => ModuleState::Replaced,
                4 => ModuleState::Vdso,
                _ => ModuleState::Unreadable(r.why_unreadable),
            },
        })
    }
}
