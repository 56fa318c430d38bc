//! VM data other than code: collectors and collections, heap, thread roles, compilations,
//! figures.

mod facts;
mod figures;

use vmscope_process::{AdapterError, LoadedModule, Poll, ProcessView};
use vmscope_records::TimeNs;

use crate::collector::{Collections, Figures, InMemory, collector_of};
use crate::compiling::Compiling;
use crate::flags::Flags;
use crate::java_threads::JavaThreads;
use crate::layout::VmStructs;
use crate::method::MethodLayout;
use crate::pages::Pages;
use crate::perf_data::{PerfData, PerfDataError, PerfMemory};
use crate::thread_names::ThreadNames;
use crate::threads::Threads;
use crate::vm_clock::VmClock;

/// Interval of report figures in nanoseconds.
const FIGURES_EVERY: u64 = 1_000_000_000;

/// Maximum uncertainty, in nanoseconds, of collection times without a note in the report.
const GOOD_TIMES: u64 = 1_000_000;

/// Maximum number of reads until two readings of the figures agree.
const ATTEMPTS: u32 = 4;

/// Missing or inaccurate data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The consequence, as a sentence.
    pub text: String,
    /// The one remedy; empty if none exists.
    pub remedy: &'static str,
}

/// Sources known at the first read of VM data. Missing sources are left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// The VM's structures; `None` if its memory is unreadable.
    pub structs: Option<&'a VmStructs>,
    /// The VM's library.
    pub libjvm: Option<&'a LoadedModule>,
    /// Layout of methods.
    pub methods: Option<&'a MethodLayout>,
}

/// Reader of VM data across polls.
#[derive(Debug)]
pub struct VmData {
    libjvm: Option<LoadedModule>,
    perf_memory: Option<PerfMemory>,
    data: Option<PerfData>,
    /// Whether perf data are known to be unavailable.
    without_data: bool,
    flags: Option<Flags>,
    clock: VmClock,
    collections: Collections,
    threads: Threads,
    java_threads: Option<JavaThreads>,
    thread_names: Option<ThreadNames>,
    compiling: Option<Compiling>,
    told_facts: bool,
    figures_at: Option<TimeNs>,
    problems: Vec<Problem>,
    told_problems: usize,
}

impl VmData {
    /// Finds the data sources of the JVM in `process`.
    #[must_use]
    pub fn new(process: &ProcessView, known: Known<'_>) -> Self {
        let mut vm = Self {
            libjvm: known.libjvm.cloned(),
            perf_memory: known.structs.and_then(PerfMemory::find),
            data: None,
            without_data: false,
            flags: None,
            clock: VmClock::default(),
            collections: Collections::default(),
            threads: Threads::default(),
            java_threads: None,
            thread_names: None,
            compiling: None,
            told_facts: false,
            figures_at: None,
            problems: Vec::new(),
            told_problems: 0,
        };
        if let Some(structs) = known.structs {
            vm.read_with(process, structs, known.methods);
        }
        vm.find_data(process);
        let collector = collector_of(vm.flags.as_ref(), vm.data.as_ref());
        vm.collections.look_in(InMemory::find(
            process,
            collector,
            known.libjvm,
            known.structs,
        ));
        vm
    }

    fn read_with(
        &mut self,
        process: &ProcessView,
        structs: &VmStructs,
        methods: Option<&MethodLayout>,
    ) {
        let pages = Pages::new(process.memory());
        match Flags::read(&pages, structs) {
            Ok(flags) => self.flags = Some(flags),
            Err(error) => self.problem(format!("the JVM's flags are unknown: {error}"), ""),
        }
        match JavaThreads::find(structs) {
            Ok(list) => self.java_threads = Some(list),
            Err(error) => self.problem(
                format!("roles of threads are guessed from their names: {error}"),
                "",
            ),
        }
        self.thread_names = methods.and_then(|methods| ThreadNames::find(structs, methods));
        if let (Some(list), Some(methods)) = (self.java_threads, methods) {
            match Compiling::find(structs, list, methods.clone()) {
                Ok(compiling) => self.compiling = Some(compiling),
                Err(error) => {
                    self.problem(format!("compilations cannot be observed: {error}"), "");
                }
            }
        }
    }

    fn find_data(&mut self, process: &ProcessView) {
        if self.data.is_some() || self.without_data {
            return;
        }
        let off = self
            .flags
            .as_ref()
            .is_some_and(|flags| flags.get("UsePerfData").is_some() && !flags.is_on("UsePerfData"));
        match PerfData::open(process, self.perf_memory) {
            Ok(data) => {
                self.clock = VmClock::new(process, self.libjvm.as_ref(), &data);
                self.collections.find(&data);
                self.data = Some(data);
            }
            // The VM sets up perf data during its start.
            Err(error) if error.is_early() => {}
            Err(PerfDataError::Off) if !off => {}
            Err(error) => {
                self.without_data = true;
                let remedy = if off {
                    "start the JVM with -XX:+UsePerfData"
                } else {
                    ""
                };
                let text = format!("no data on collections and the heap: {error}");
                self.problem(text, remedy);
            }
        }
    }

    /// Data missing or inaccurate so far. [`VmData::poll`] makes limits of this list.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    fn problem(&mut self, text: String, remedy: &'static str) {
        self.problems.push(Problem { text, remedy });
    }

    /// The VM's flags, if readable.
    #[must_use]
    pub fn flags(&self) -> Option<&Flags> {
        self.flags.as_ref()
    }

    /// The VM's perf data, if available.
    #[must_use]
    pub fn perf_data(&self) -> Option<&PerfData> {
        self.data.as_ref()
    }

    /// Reads the perf data again; unreadable data keep their values.
    pub fn read_again(&mut self, process: &ProcessView) {
        if let Some(data) = &mut self.data
            && let Ok(true) = data.refresh(process)
        {
            self.collections.find(data);
        }
    }

    /// Conversion of VM ticks to time.
    #[must_use]
    pub fn clock(&self) -> &VmClock {
        &self.clock
    }

    /// Whether the last poll found any compiler active.
    #[must_use]
    pub fn is_compiling(&self) -> bool {
        let compiling = self.compiling.as_ref();
        compiling.is_some_and(Compiling::is_at_work)
    }

    /// Reports changes. Call it about every 25 ms to observe begins and ends of collections,
    /// and every 100 ms while the VM is idle.
    ///
    /// # Errors
    /// [`AdapterError`] if all memory is unreadable.
    pub fn poll(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        self.find_data(process);
        self.look_at_data(process, poll)?;
        let memory = process.memory();
        let list = self.java_threads.as_ref();
        let names = self.thread_names.as_mut();
        self.threads.poll(process, memory, list, names, poll);
        if let Some(compiling) = &mut self.compiling {
            compiling.poll(memory, self.threads.compilers(), poll)?;
        }
        self.tell_rest(poll);
        Ok(())
    }

    /// Reports the remaining data at the end of the process or of the recording. The file of
    /// perf data is still readable then.
    pub fn finish(&mut self, process: &ProcessView, poll: &mut Poll) {
        // Unreadable data keep their last reported values.
        let _ = self.look_at_data(process, poll);
        self.figures_at = None;
        if let Some(compiling) = &mut self.compiling {
            compiling.finish(poll);
        }
        self.tell_rest(poll);
    }

    /// Whether perf data have all entries of the VM's start. The VM's start time is one of the
    /// last.
    fn has_started(&self) -> bool {
        let data = self.data.as_ref();
        let began = data.and_then(|data| data.long("sun.rt.createVmBeginTime"));
        self.without_data || began.is_some_and(|began| began > 0)
    }

    fn tell_rest(&mut self, poll: &mut Poll) {
        let is_due = |then: TimeNs| poll.began().since(then).0 >= FIGURES_EVERY;
        if self.figures_at.is_none_or(is_due) {
            self.figures_at = Some(poll.began());
            if let Some(data) = &self.data {
                figures::tell(data, &self.collections, poll);
            }
            if let Some(compiling) = self.compiling.as_ref().filter(|one| one.unreadable() > 0) {
                figures::tell_unreadable(compiling.unreadable(), poll);
            }
        }
        if !self.told_facts && self.has_started() {
            self.told_facts = true;
            if self.data.is_some() && !self.collections.are_told() {
                let text = "this JVM does not report individual collections (its perf data counts \
                            none)";
                self.problem(text.to_owned(), "");
            }
            facts::tell(self.flags.as_ref(), self.data.as_ref(), poll);
        }
        for problem in self.problems.iter().skip(self.told_problems) {
            poll.limit(problem.text.clone(), problem.remedy);
        }
        self.told_problems = self.problems.len();
    }

    /// Reports collections.
    fn look_at_data(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        let Some(data) = &mut self.data else {
            return Ok(());
        };
        let from = poll.now();
        let figures = match read(data, &mut self.collections, process) {
            // The data change too fast; the next poll tries again.
            Ok(None) => return Ok(()),
            Ok(Some(figures)) => figures,
            Err(PerfDataError::Memory(source)) => {
                let error = AdapterError::reading("perf data")(source);
                return if error.is_final() { Err(error) } else { Ok(()) };
            }
            Err(error) => {
                self.data = None;
                self.without_data = true;
                self.problem(format!("collections are no longer reported: {error}"), "");
                return Ok(());
            }
        };
        self.clock.reckon(data);
        let to = poll.now();
        let told = poll.len();
        self.collections
            .poll((&figures, data), &mut self.clock, (from, to), poll);
        if poll.len() > told {
            self.judge_times();
        }
        Ok(())
    }

    /// Reports inaccurate collection times, once.
    fn judge_times(&mut self) {
        const BEGIN: &str = "begin and end of collections are ";
        let uncertainty = self.clock.uncertainty();
        if uncertainty.is_some_and(|by| by.0 <= GOOD_TIMES)
            || self.problems.iter().any(|one| one.text.starts_with(BEGIN))
        {
            return;
        }
        let how = match uncertainty {
            Some(by) => format!("accurate to {:.1} ms at first", by.as_secs_f64() * 1e3),
            None => "unknown at first".to_owned(),
        };
        let text = format!("{BEGIN}{how}: libjvm has no symbol initial_time_count");
        self.problem(text, "use a JVM with an unstripped libjvm");
    }
}

/// Reads figures until two readings agree; `None` if they do not.
fn read(
    data: &mut PerfData,
    collections: &mut Collections,
    process: &ProcessView,
) -> Result<Option<Figures>, PerfDataError> {
    let mut last: Option<Figures> = None;
    for _ in 0..ATTEMPTS {
        if data.refresh(process)? {
            collections.find(data);
        }
        let figures = collections.figures(data, process.memory());
        if last.as_ref() == Some(&figures) || !collections.is_news(&figures) {
            return Ok(Some(figures));
        }
        last = Some(figures);
    }
    Ok(None)
}
