//! The recorder's exchange with adapters beside records.

use super::{ProcessState, Recorder};
use crate::session::process_table::ProcessTable;
use vmscope_process::Unwinder;
use vmscope_records::{InterpreterSource, ProcessKey, Record};

impl Recorder {
    pub fn process_table(&self) -> Option<&ProcessTable> {
        self.process_table.as_ref()
    }

    /// Adapters read a process; `sources` give interpreter positions in its samples.
    pub fn take_reads(&mut self, key: ProcessKey, sources: Vec<InterpreterSource>) {
        if let Some(process) = self.process_called(key) {
            process.generated.reads(sources);
        }
    }

    /// Unwind rules for a process.
    pub fn take_unwinder(&mut self, key: ProcessKey, unwinder: (usize, Box<dyn Unwinder>)) {
        if let Some(process) = self.process_called(key) {
            process.unwound.add(unwinder);
        }
    }

    /// An adapter has read the code of process `key`: its rules, if any, know the code.
    pub(super) fn has_polled(&mut self, key: ProcessKey) {
        if let Some(process) = self.process_called(key) {
            process.has_rules |= process.unwound.has_vm();
        }
    }

    /// Keeps the ranges of interpreters from a poll of process `key`.
    pub(super) fn take_rules(&mut self, key: ProcessKey, found: &[Record]) {
        for record in found {
            if let Record::InterpreterRules(rules) = record
                && let Some(process) = self.process_called(rules.process)
            {
                process.generated.rules(rules);
            }
        }
        let is_code = |record: &Record| matches!(record, Record::Constituent(_));
        if found.iter().any(is_code)
            && let Some(process) = self.process_called(key)
        {
            process.generated.has_code();
        }
    }

    /// Publishes sampled addresses in the process table.
    pub fn publish_touched(&mut self) {
        for process in self.processes.values_mut() {
            if !process.generated.is_touched() {
                continue;
            }
            // Without a table they are dropped.
            let touched = process.generated.take_touched();
            if let Some(table) = &self.process_table {
                table.touched().add(process.key, touched);
            }
        }
    }

    fn process_called(&mut self, key: ProcessKey) -> Option<&mut ProcessState> {
        let mut processes = self.processes.values_mut();
        processes.find(|process| process.key == key)
    }
}
