//! Messages of sessions and modules.

use super::{Wire, WireError, messages as m};
use crate::{BuildId, Module, ModuleState, Session, VmIdentity};

impl Wire<m::Session> for Session {
    fn to_wire(&self) -> m::Session {
        m::Session {
            time: self.time.0,
            wall_clock_unix_ns: self.wall_clock_unix_ns,
            producer: self.producer.clone(),
            vm_kind: self.vm.kind.clone(),
            vm_version: self.vm.version.clone(),
            command: self.command.clone(),
            pid: self.pid.0,
            launched: self.launched,
            host: self.host.clone(),
            kernel: self.kernel.clone(),
            elf_machine: self.arch.to_wire(),
            cpus: self.cpus,
            engine: self.engine.clone(),
            engine_reason: self.engine_reason.clone(),
            clock: self.clock.to_wire(),
            period_ns: self.period.0,
            kernel_included: self.kernel_included,
            scheduling: self.scheduling.clone(),
        }
    }

    fn from_wire(r: m::Session) -> Result<Self, WireError> {
        if r.period_ns == 0 {
            // Divisor in the number of expected samples.
            return Err(WireError::Range("period_ns"));
        }
        Ok(Session {
            time: Wire::from_wire(r.time)?,
            wall_clock_unix_ns: r.wall_clock_unix_ns,
            producer: r.producer,
            vm: VmIdentity {
                kind: r.vm_kind,
                version: r.vm_version,
            },
            command: r.command,
            pid: Wire::from_wire(r.pid)?,
            launched: r.launched,
            host: r.host,
            kernel: r.kernel,
            arch: Wire::from_wire(r.elf_machine)?,
            cpus: r.cpus,
            engine: r.engine,
            engine_reason: r.engine_reason,
            clock: Wire::from_wire(r.clock)?,
            period: Wire::from_wire(r.period_ns)?,
            kernel_included: r.kernel_included,
            scheduling: r.scheduling,
        })
    }
}

impl Wire<m::Module> for Module {
    fn to_wire(&self) -> m::Module {
        let (state, why_unreadable) = match &self.state {
            ModuleState::Opened => (0, String::new()),
            ModuleState::Deleted => (1, String::new()),
            ModuleState::Replaced => (2, String::new()),
            ModuleState::Unreadable(why) => (3, why.clone()),
            ModuleState::Vdso => (4, String::new()),
        };
        let build_id = self.build_id.as_ref();
        m::Module {
            key: self.key.0,
            time: self.time.0,
            path: self.path.clone(),
            build_id: build_id.map_or_else(Vec::new, |id| id.as_bytes().to_vec()),
            device: self.device,
            inode: self.inode,
            size: self.size,
            state,
            why_unreadable,
            main: self.main,
        }
    }

    fn from_wire(r: m::Module) -> Result<Self, WireError> {
        Ok(Module {
            key: Wire::from_wire(r.key)?,
            time: Wire::from_wire(r.time)?,
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
