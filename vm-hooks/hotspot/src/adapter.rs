//! The adapter. It polls a JVM repeatedly and reports changes.

mod budget;
mod counters;
mod describe;
mod figures;
mod gone;
mod index;
mod interpreted;
mod kept;
mod maps;
mod methods;
mod partly;
mod touched;
mod unloaded;
mod zone;

use std::time::{Duration, Instant};

use vmscope_process::{Adapter, AdapterError, Poll, ProcessView, SampleNeeds, Unwinder, cpu_time};
use vmscope_records::{Avma, LimitKind, Stream, TimeNs, VmIdentity};

use crate::bytecode::PoolLayout;
use crate::continuations::Continuations;
use crate::evidence::FactsLayout;
use crate::flags::Flags;
use crate::jvm::{Jvm, TESTED};
use crate::layout::Missing;
use crate::pages::Pages;
use crate::regions::rules;
use crate::sample_needs::sample_needs;
use crate::unwind::{HotSpotUnwinder, VirtualThreads};
use crate::vm_data::{Known, VmData};
use counters::{ClassCounts, Unloading, class_counts, signs};
use interpreted::Interpreted;
use maps::Maps;
use methods::Methods;
use touched::Touched;
use zone::{Signs, Zone};

/// The VM's name in records.
const VM: &str = "hotspot";

/// The name of the rules for code without frames.
const LEAF_CODE: &str = "hotspot: code without frames";

/// Poll interval of an active VM.
const TICK: Duration = Duration::from_millis(25);

/// Likewise in a bounded session.
const BOUNDED_TICK: Duration = Duration::from_millis(40);

/// Number of polls without events that doubles the pause; as many again make it four times as
/// long. An idle VM must cost almost nothing.
const QUIET_POLLS: u32 = 8;

/// Time after the first failure in which an unreadable JVM still counts as readable soon.
/// Otherwise other adapters would also report its code, from its files.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum time per poll for pc maps of sampled code; the rest waits.
const MAPS_TIME: Duration = Duration::from_millis(150);

/// Likewise in the last poll.
const LAST_MAPS_TIME: Duration = Duration::from_secs(3);

/// Minimum time budget for pc maps in a bounded session; smaller budgets accumulate first …
const WORTHWHILE: Duration = Duration::from_millis(2);

/// … and a lasting backlog of maps is reported after this time.
const BEHIND: Duration = Duration::from_secs(5);

/// Adapter of one JVM.
#[derive(Debug, Default)]
pub struct HotSpotAdapter {
    opened: Option<Opened>,
    /// Fallback: VM data without code.
    partly: Option<VmData>,
    has_begun: bool,
    identity: Option<VmIdentity>,
    touched: Touched,
    /// First of the failed polls, if no reading of the code cache ever succeeded.
    failing: Option<Instant>,
}

/// State after the JVM's structures are known.
#[derive(Debug)]
struct Opened {
    jvm: Jvm,
    zone: Zone,
    methods: Methods,
    interpreted: Interpreted,
    data: VmData,
    /// Whether any reading of the code cache has succeeded.
    has_read: bool,
    /// End of the time covered by reports of code.
    told_until: TimeNs,
    /// VM counters at the last poll.
    counted: Option<(Signs, ClassCounts)>,
    /// [`TICK`], or [`BOUNDED_TICK`] in a bounded session.
    tick: Duration,
    /// Number of successive polls without events.
    quiet: u32,
    /// Begin of the current backlog of pc maps.
    behind: Option<TimeNs>,
    maps: Maps,
}

impl HotSpotAdapter {
    /// An adapter before its first poll.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn open_jvm(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        if self.opened.is_some() {
            return Ok(());
        }
        let pages = Pages::new(process.memory());
        let jvm = Jvm::open(process, &pages)?;
        self.identity = Some(VmIdentity {
            kind: "HotSpot".to_owned(),
            version: jvm.version.release.clone(),
        });
        poll.fact("JVM", format!("HotSpot {}", jvm.version.release));
        if !jvm.is_tested() {
            poll.limit(
                format!(
                    "vmscope was not tested with this JVM version ({}, tested: {} to {}): JIT code \
                     may be misread",
                    jvm.version.release, TESTED.0, TESTED.1
                ),
                "",
            );
        }
        let zone = Zone::new(process, &jvm, &pages, poll)?;
        for sentence in jvm.missing() {
            poll.limit(sentence, "");
        }
        let interpreted = Interpreted::new(&jvm, poll);
        let known = Known {
            structs: Some(&jvm.structs),
            libjvm: Some(&jvm.library),
            methods: Some(&jvm.methods),
        };
        let data = VmData::new(process, known);
        tell_precision(&jvm, &data, poll);
        tell_callers(&data, poll);
        let pools = PoolLayout::of(&jvm.structs, jvm.methods.clone());
        match &pools {
            Ok(pools) => {
                for sentence in Missing::told(&pools.missing) {
                    poll.limit(sentence, "");
                }
            }
            Err(error) => {
                let text = "no bytecode listings; bytecodes of JIT code are less certain";
                poll.limit(format!("{text}: {error}"), "");
            }
        }
        let pools = pools.ok();
        // Other compilers (Graal) have other rules for calls without a count.
        let trusts_counts = data
            .flags()
            .is_some_and(|flags| flags.is_on("UseInterpreter") && !flags.is_on("UseJVMCICompiler"));
        let facts = pools
            .clone()
            .map(|pools| FactsLayout::of(&jvm.structs, pools, trusts_counts));
        self.opened = Some(Opened {
            methods: Methods::new(&jvm, pools),
            data,
            maps: Maps::new(facts, jvm.version.has_wrong_positions()),
            zone,
            interpreted,
            has_read: false,
            told_until: TimeNs(0),
            counted: None,
            tick: TICK,
            quiet: 0,
            behind: None,
            jvm,
        });
        Ok(())
    }

    fn has_read(&self) -> bool {
        self.opened.as_ref().is_some_and(|opened| opened.has_read)
    }

    /// Whether the adapter reports all code now, or probably will soon.
    fn tells_code_at(&self, now: Instant) -> bool {
        let is_patient = |since| now.saturating_duration_since(since) < PATIENCE;
        self.partly.is_none() && (self.has_read() || self.failing.is_none_or(is_patient))
    }

    fn poll_once(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        if !std::mem::replace(&mut self.has_begun, true) {
            // Rules for native functions need no VM memory.
            poll.rules(VM, rules());
        }
        if let Some(data) = &mut self.partly {
            return data.poll(process, poll);
        }
        self.touched.take(poll);
        match self.open_jvm(process, poll) {
            Err(error @ AdapterError::Gone { .. }) => return Err(error),
            Err(error) if error.is_final() => {
                let data = self.partly.insert(partly::begin(process, &error, poll));
                return data.poll(process, poll);
            }
            other => other?,
        }
        let Some(opened) = &mut self.opened else {
            return Ok(());
        };
        opened.poll(process, &mut self.touched, poll, false)
    }
}

impl Adapter for HotSpotAdapter {
    fn identity(&self) -> VmIdentity {
        self.identity.clone().unwrap_or_else(|| VmIdentity {
            kind: "HotSpot".to_owned(),
            version: String::new(),
        })
    }

    fn sample_needs(&self) -> SampleNeeds {
        sample_needs()
    }

    fn open(&mut self, process: &ProcessView, poll: &mut Poll) {
        // The first poll opens the JVM again, and returns the error.
        let _ = self.open_jvm(process, poll);
    }

    fn poll(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        let result = self.poll_once(process, poll);
        if self.has_read() {
            self.failing = None;
        } else if result.is_err() {
            self.failing.get_or_insert_with(Instant::now);
        }
        result
    }

    fn tells_all_code(&self) -> bool {
        self.tells_code_at(Instant::now())
    }

    fn unwinder(&mut self, process: &ProcessView) -> Option<Box<dyn Unwinder>> {
        let opened = self.opened.as_ref()?;
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        let zone = &opened.zone;
        let code = (opened.jvm.code.clone(), zone.codelets());
        let call_stub_return = zone.stub("call_stub_return_address");
        let threads = opened.virtual_threads(process);
        let unwinder =
            HotSpotUnwinder::new(process.shared_memory(), code, call_stub_return, threads);
        Some(Box::new(unwinder.ok()?))
    }

    fn next_poll(&self) -> Duration {
        self.opened.as_ref().map_or(TICK, Opened::pause)
    }

    fn finish(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        if self.opened.is_none() && process.is_alive() {
            self.poll(process, poll)?;
        }
        if let Some(data) = &mut self.partly {
            data.finish(process, poll);
            return Ok(());
        }
        self.touched.take(poll);
        match &mut self.opened {
            Some(opened) => {
                let result = if process.is_alive() {
                    opened.poll(process, &mut self.touched, poll, true)
                } else {
                    if !opened.has_read {
                        partly::missed(poll);
                    }
                    // Answers the last hits from known code.
                    opened.tell_last_hits(&self.touched.all(), None, poll);
                    Ok(())
                };
                opened.data.finish(process, poll);
                result
            }
            None => {
                if !self.has_begun {
                    poll.rules(VM, rules());
                }
                partly::missed(poll);
                Ok(())
            }
        }
    }
}

/// Suggests flags for better positions, if the JVM has incomplete or wrong debug records.
fn tell_precision(jvm: &Jvm, data: &VmData, poll: &mut Poll) {
    const FLAG: &str = "DebugNonSafepoints";
    let Some(flags) = data.flags() else {
        return;
    };
    // With -Xint, nothing is compiled.
    if flags.get("UseCompiler").is_some() && !flags.is_on("UseCompiler") {
        return;
    }
    match (flags.is_on(FLAG), jvm.version.has_wrong_positions()) {
        (false, false) => poll.limit(
            "this JVM records few positions of optimised code: its bytecodes and lines are often \
             inferred from the machine code, and approximate"
                .to_owned(),
            "start it with -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints, or through \
             vmscope record --precise",
        ),
        (is_on, true) => poll.limit(
            format!(
                "JVM {} records {} for C2 code (JDK-8201516): its bytecodes and lines are often \
                 inferred from the machine code, and approximate",
                jvm.version.release,
                if is_on {
                    "wrong positions (ignored)"
                } else {
                    "few positions"
                }
            ),
            "update the JVM: 11.0.21, 17.0.8, 21 and later record correct positions with \
             -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints",
        ),
        (true, false) => {}
    }
}

/// Says that frame pointers do not lead through Java code.
fn tell_callers(data: &VmData, poll: &mut Poll) {
    const FLAG: &str = "PreserveFramePointer";
    let is_off = |flags: &Flags| flags.get(FLAG).is_some() && !flags.is_on(FLAG);
    if data.flags().is_some_and(is_off) {
        poll.limit_of(
            LimitKind::Callers,
            "this JVM's JIT code has no frame pointers: its callers are missing or wrong"
                .to_owned(),
            "record with --call-graph instead of --call-graph=fp",
        );
    }
}

impl Opened {
    /// Data for unwinding virtual threads; `None` if the JVM has no such threads, or exports too little.
    fn virtual_threads(&self, process: &ProcessView) -> Option<VirtualThreads> {
        /// `ContinuationEntry::_return_pc`, mangled.
        const RETURN_PC: &str = "_ZN17ContinuationEntry10_return_pcE";
        let return_barrier = self.zone.stub("cont_returnBarrier")?;
        let symbols = process.symbols(&self.jvm.library, &[RETURN_PC]).ok()?;
        let return_pc = symbols.into_iter().flatten().next()?;
        Some(VirtualThreads {
            return_barrier,
            return_pc_at: return_pc.address,
            continuations: Continuations::find(&self.jvm.structs, &self.jvm.methods)?,
        })
    }

    fn poll(
        &mut self,
        process: &ProcessView,
        touched: &mut Touched,
        poll: &mut Poll,
        is_last: bool,
    ) -> Result<(), AdapterError> {
        let quiet = std::mem::take(&mut self.quiet);
        self.tick = if poll.is_bounded() {
            BOUNDED_TICK
        } else {
            TICK
        };
        self.data.poll(process, poll)?;
        let counts = self.data.perf_data().and_then(class_counts);
        let unloading = Unloading::read(&self.data);
        self.methods.begin(poll.began(), unloading);
        let pages = Pages::new(process.memory());
        let signs = signs(&self.data, self.jvm.version.major);
        self.zone.count(signs, poll.began());
        self.zone.name_unloaded(&mut self.methods, poll);
        self.zone.read_not_entrant(&pages, poll)?;
        (self.zone).read_hit(touched.fresh(), &pages, &mut self.methods, poll)?;
        let is_due = is_last || self.zone.is_due(touched.fresh(), signs, Instant::now());
        if is_due {
            let recount = || {
                self.data.read_again(process);
                Unloading::read(&self.data)
            };
            let what = (is_last, signs, recount);
            let before = cpu_time();
            let read = self.zone.poll(&pages, &mut self.methods, what, poll);
            if read.is_err() {
                self.zone.failed(cpu_time().saturating_sub(before));
            }
            read?;
            self.has_read = true;
        }
        // Unknown or outdated code at an address may be found after a reading.
        let all = is_due.then(|| touched.all());
        let hits = all.as_deref().unwrap_or(touched.fresh());
        let told = poll.len();
        let has_time = is_last || poll.spare() >= WORTHWHILE;
        let left = match (is_last, has_time) {
            (true, _) => {
                self.tell_last_hits(hits, Some(&pages), poll);
                Vec::new()
            }
            (_, true) => {
                let time = poll.spare().min(MAPS_TIME);
                poll.spending(|poll| self.tell_hits(hits, Some(&pages), (time, true), poll))
            }
            (_, false) => {
                let hits = hits.iter().copied();
                hits.filter(|at| self.zone.holds(*at)).collect()
            }
        };
        let is_behind = !left.is_empty();
        self.tell_pace(is_behind, poll);
        let values = touched.fresh().iter().copied();
        let values: Vec<Avma> = values.filter(|at| !self.zone.holds(*at)).collect();
        // Before the first reading, code addresses are unknown.
        if self.has_read {
            touched.looked_up(is_due, left, |at| self.zone.holds(at));
        }
        let from = (&self.jvm, &pages);
        let values = (values.into_iter(), is_last);
        let recount = || {
            self.data.read_again(process);
            self.data.perf_data().and_then(class_counts)
        };
        let counted = (counts, recount);
        (self.interpreted).poll(values, counted, from, &mut self.methods, poll)?;
        let counted = signs.zip(counts);
        let is_quiet = counted.is_some_and(|(signs, _)| signs.collections.is_some())
            && counted == std::mem::replace(&mut self.counted, counted)
            && poll.len() == told
            && (!is_behind || !has_time)
            && !self.data.is_compiling()
            && !self.interpreted.is_waiting()
            && !self.zone.is_awaited();
        if is_quiet {
            self.quiet = quiet.saturating_add(1);
        }
        // Code created after a reading is reported by the next one, as of the earlier reading's
        // time, even if VM counters stay equal. While the interpreter's values wait for a walk,
        // their methods are unknown as well.
        if is_due && !self.interpreted.is_waiting() {
            self.told_until = poll.began();
        }
        poll.code_is_told_until(self.told_until);
        Ok(())
    }

    /// Pause until the next poll.
    fn pause(&self) -> Duration {
        self.tick * (1 << (self.quiet / QUIET_POLLS).min(2))
    }

    /// Reports pc maps of sampled code for at most this time; uncertain ones may wait for the next
    /// poll. Returns the remaining addresses of `touched`.
    fn tell_hits(
        &mut self,
        touched: &[Avma],
        pages: Option<&Pages<'_>>,
        (time, may_wait): (Duration, bool),
        poll: &mut Poll,
    ) -> Vec<Avma> {
        let until = (Instant::now() + time, may_wait);
        let (maps, methods) = (&self.maps, &mut self.methods);
        (self.zone).tell_hits(touched, maps, pages, methods, until, poll)
    }

    /// Likewise for the last poll.
    fn tell_last_hits(&mut self, touched: &[Avma], pages: Option<&Pages<'_>>, poll: &mut Poll) {
        let left = self.tell_hits(touched, pages, (LAST_MAPS_TIME, false), poll);
        if !left.is_empty() {
            poll.lost(Stream::Adapter, left.len() as u64, poll.began());
            let text = "some samples of JIT code lack bytecode and line: the recording ended \
                        before vmscope read them";
            poll.limit(text.to_owned(), "");
        }
    }

    /// Reports once that the VM creates code faster than pc maps can follow.
    fn tell_pace(&mut self, is_behind: bool, poll: &mut Poll) {
        if !is_behind || !poll.is_bounded() {
            self.behind = None;
            return;
        }
        let since = *self.behind.get_or_insert(poll.began());
        if Duration::from_nanos(poll.began().since(since).0) >= BEHIND {
            let text = "this JVM compiles faster than vmscope reads bytecodes (limited CPU time): \
                        code with few samples has no bytecode or line";
            poll.limit(
                text.to_owned(),
                "`vmscope attach` reads the bytecodes of all sampled code",
            );
        }
    }
}

#[cfg(test)]
mod tests;
