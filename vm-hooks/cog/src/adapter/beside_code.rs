//! What a VM tells beside its code zone: statistics, names of C functions, callers.

use vmscope_process::{AdapterError, Memory, Poll, ProcessView, Unwinder};

use crate::cog_method::Layout;
use crate::regions::{self, file_name};
use crate::unwind::CogUnwinder;
use crate::vm::{Vm, Zone};
use crate::vm_data::{VmClock, VmData};

/// The adapter's name in rules.
const VM: &str = "cog";

/// State across polls.
#[derive(Debug, Default)]
pub struct BesideCode {
    data: VmData,
    /// Plugins whose rules were reported.
    plugins: Option<Vec<String>>,
    has_zone: bool,
    unwinder: Option<Box<dyn Unwinder>>,
}

impl BesideCode {
    /// Reports statistics, and rules for C functions. `is_last`: at the adapter's last poll.
    ///
    /// # Errors
    /// Errors after which no read can succeed. After others, the next poll tries again.
    pub fn poll(
        &mut self,
        vm: &Vm,
        process: &ProcessView,
        memory: &dyn Memory,
        (is_last, poll): (bool, &mut Poll),
    ) -> Result<(), AdapterError> {
        let program = &vm.module.path;
        let plugins = regions::plugins(process, program);
        if self.plugins.as_ref() != Some(&plugins) {
            poll.rules(VM, regions::rules(&file_name(program), &plugins));
            self.plugins = Some(plugins);
        }
        let clock = match process.is_live() {
            true => VmClock::now(),
            false => VmClock::unknown(),
        };
        let polled = self
            .data
            .poll(&vm.variables, memory, (clock, is_last), poll);
        match polled {
            Err(error) if error.is_final() => Err(error),
            _ => Ok(()),
        }
    }

    /// Uses a zone that was read: at the first one, makes the unwinder.
    pub fn use_zone(&mut self, vm: &Vm, zone: &Zone, process: &ProcessView, poll: &mut Poll) {
        if std::mem::replace(&mut self.has_zone, true) {
            return;
        }
        let memory = process.shared_memory();
        if !cfg!(target_arch = "x86_64") || memory.pointer_bytes() != 8 {
            let text = "callers end at this VM's code: vmscope knows its frames on x86-64 only";
            poll.limit(text.to_owned(), "");
            return;
        }
        let layout = zone.methods.layout.unwrap_or(Layout::Classic);
        match CogUnwinder::new(&vm.variables, &zone.bounds, layout, memory) {
            Ok(unwinder) => self.unwinder = Some(Box::new(unwinder)),
            Err(error) => poll.limit(format!("callers end at this VM's code: {error}"), ""),
        }
    }

    /// The unwinder, once.
    pub fn unwinder(&mut self) -> Option<Box<dyn Unwinder>> {
        self.unwinder.take()
    }
}
