//! What a VM tells beside its code zone: statistics, names of C functions, callers.

use std::sync::Arc;

use vmscope_process::{AdapterError, MapEntry, Poll, ProcessView, Unwinder, known};

use crate::cog_method::Layout;
use crate::interpreted::Interpreted;
use crate::interpreter::Interpreter;
use crate::regions::{self, file_name};
use crate::unwind::CogUnwinder;
use crate::vm::{Vm, Zone};
use crate::vm_data::{VmClock, VmData};

/// The adapter's name in rules.
pub(crate) const VM: &str = "cog";

/// State across polls.
#[derive(Debug, Default)]
pub struct BesideCode {
    data: VmData,
    /// Mappings at the last search for plugins.
    mappings: Option<Arc<[MapEntry]>>,
    /// Plugins whose rules were reported.
    plugins: Option<Vec<String>>,
    has_zone: bool,
    unwinder: Option<Box<dyn Unwinder>>,
    interpreted: Interpreted,
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
        (is_last, poll): (bool, &mut Poll),
    ) -> Result<(), AdapterError> {
        self.interpreted.take_values(poll);
        self.tell_rules(vm, process, poll);
        let clock = match process.is_live() {
            true => VmClock::now(),
            false => VmClock::unknown(),
        };
        let polled = self
            .data
            .poll(&vm.variables, process.memory(), (clock, is_last), poll);
        known(polled).map(|_| ())
    }

    fn tell_rules(&mut self, vm: &Vm, process: &ProcessView, poll: &mut Poll) {
        let mappings = process.mappings();
        let searched = self.mappings.replace(Arc::clone(&mappings));
        if searched.is_some_and(|searched| Arc::ptr_eq(&searched, &mappings)) {
            return;
        }
        let program = &vm.module.path;
        let plugins = regions::plugins(process, program);
        if self.plugins.as_ref() != Some(&plugins) {
            poll.rules(VM, regions::rules(&file_name(program), &plugins));
            self.plugins = Some(plugins);
        }
    }

    /// Uses a zone that was read: reports interpreted methods. At the first zone, reports the
    /// interpreter's parts and makes the unwinder.
    ///
    /// # Errors
    /// Errors after which no read can succeed.
    pub fn use_zone(
        &mut self,
        vm: &Vm,
        zone: &Zone,
        process: &ProcessView,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let memory = process.memory();
        if !std::mem::replace(&mut self.has_zone, true) {
            match known(Interpreter::find(vm, process, memory))?.flatten() {
                Some(interpreter) => interpreter.tell(VM, process.started(), poll),
                None => poll.limit("this VM does not tell its interpreter".to_owned(), ""),
            }
            self.make_unwinder(vm, zone, process, poll);
        }
        known(self.interpreted.poll(vm, zone, memory, poll)).map(|_| ())
    }

    fn make_unwinder(&mut self, vm: &Vm, zone: &Zone, process: &ProcessView, poll: &mut Poll) {
        let memory = process.shared_memory();
        if !cfg!(target_arch = "x86_64") || memory.pointer_bytes() != 8 {
            let text = "callers end at this VM's code: vmscope knows its frames on x86-64 only";
            poll.limit(text.to_owned(), "");
            return;
        }
        let layout = zone.methods.layout.unwrap_or(Layout::Classic);
        match CogUnwinder::new(&vm.variables, &zone.bounds, layout, memory) {
            Ok(unwinder) => self.unwinder = Some(Box::new(unwinder)),
            // A core file may lack the stack.
            Err(error) if process.is_live() => {
                poll.limit(format!("callers end at this VM's code: {error}"), "");
            }
            Err(_) => {}
        }
    }

    /// The unwinder, once.
    pub fn unwinder(&mut self) -> Option<Box<dyn Unwinder>> {
        self.unwinder.take()
    }
}
