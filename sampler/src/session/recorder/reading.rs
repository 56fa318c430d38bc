//! What the recorder and those who read VMs tell each other, beside what is recorded.

use super::{ProcessState, Recorder};
use crate::session::news::News;
use vmscope_records::{InterpreterSource, ProcessKey, Record};

impl Recorder {
    /// Where it tells of address spaces.
    pub fn news(&self) -> Option<&News> {
        self.news.as_ref()
    }

    /// Adapters read an address space, whose samples show in `sources` what its
    /// interpreters execute.
    pub fn take_reads(&mut self, key: ProcessKey, sources: Vec<InterpreterSource>) {
        if let Some(process) = self.process_called(key) {
            process.generated.reads(sources);
        }
    }

    /// Takes notice of where interpreters are.
    pub(super) fn take_rules(&mut self, found: &[Record]) {
        for record in found {
            if let Record::InterpreterRules(rules) = record
                && let Some(process) = self.process_called(rules.process)
            {
                process.generated.rules(rules);
            }
        }
    }

    /// Tells what samples touched.
    pub fn tell_touched(&mut self) {
        for process in self.processes.values_mut() {
            if !process.generated.is_touched() {
                continue;
            }
            // Also where nobody wants to know: it is not kept.
            let touched = process.generated.take_touched();
            if let Some(news) = &self.news {
                news.touched().add(process.key, touched);
            }
        }
    }

    fn process_called(&mut self, key: ProcessKey) -> Option<&mut ProcessState> {
        let mut processes = self.processes.values_mut();
        processes.find(|process| process.key == key)
    }
}
