//! Processes: semaphores, priorities, switches; and the timer.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::objects::{class_index, slot};
use super::raw::{Fp, Ip, Sp};
use super::stack::{STACK_BYTES, Stack};
use super::vm::{Next, Outcome, Vm, now_ns};
use crate::memory::header::Format;
use crate::memory::{Oop, classes};

/// Number of priorities: 1 to 80.
pub(super) const PRIORITIES: usize = 80;
/// Most processes with a stack.
const MOST_PROCESSES: usize = 10_000;
/// Longest sleep without a look at profilers' requests.
const NAP: Duration = Duration::from_millis(5);

// Fields of a process.
const NEXT_LINK: usize = 0;
const STACK: usize = 1;
const PRIORITY: usize = 2;
const MY_LIST: usize = 3;
// Field indices of lists and semaphores.
const FIRST: usize = 0;
const LAST: usize = 1;
const EXCESS: usize = 2;
// Field of the scheduler.
const ACTIVE: usize = 1;

/// The stacks of all processes.
#[derive(Debug)]
pub(super) struct Stacks {
    running: Stack,
    number: usize,
    others: FxHashMap<usize, Stack>,
    newest: usize,
    /// The process that evaluates do-its. Its stack has the number 0.
    pub main_process: Oop,
}

impl Stacks {
    pub fn new(main: Stack) -> Self {
        Self {
            running: main,
            number: 0,
            others: FxHashMap::default(),
            newest: 0,
            main_process: Oop::NONE,
        }
    }

    /// The running process's stack.
    pub fn active(&self) -> &Stack {
        &self.running
    }

    /// Likewise, to be changed.
    pub fn active_mut(&mut self) -> &mut Stack {
        &mut self.running
    }

    /// Number of the running process's stack. Numbers are never used again.
    pub fn active_number(&self) -> usize {
        self.number
    }

    /// Whether the main process runs.
    pub fn is_main(&self) -> bool {
        self.number == 0
    }

    /// All stacks.
    pub fn iter(&self) -> impl Iterator<Item = &Stack> {
        std::iter::once(&self.running).chain(self.others.values())
    }

    fn add(&mut self, stack: Stack) -> usize {
        self.newest += 1;
        self.others.insert(self.newest, stack);
        self.newest
    }

    /// Makes another stack the running one. `keep`: whether the old one stays.
    fn switch(&mut self, number: usize, keep: bool) -> bool {
        if number == self.number {
            return true;
        }
        let Some(stack) = self.others.remove(&number) else {
            return false;
        };
        let old = std::mem::replace(&mut self.running, stack);
        if keep {
            self.others.insert(self.number, old);
        }
        self.number = number;
        true
    }
}

impl Vm {
    /// Makes the main process the running one, with an empty stack.
    pub(super) fn enter_main(&mut self) {
        let keep = self.stacks.number != 0;
        self.switch_stack(0, keep);
        let stack = self.stacks.active_mut();
        (stack.fp, stack.sp) = (Fp::NONE, Sp(stack.base()));
        stack.overflowed = false;
        self.heap
            .store(self.known.scheduler, ACTIVE, self.stacks.main_process);
        self.set_limit();
    }

    /// Makes another stack the running one. `keep`: whether the old one stays.
    fn switch_stack(&mut self, number: usize, keep: bool) -> bool {
        let from = self.stacks.number;
        let switched = self.stacks.switch(number, keep);
        if self.stacks.number != from {
            self.heap.switch_process(from, keep, number);
        }
        switched
    }

    fn set_limit(&self) {
        let limit = self.stacks.active().interrupt_limit();
        self.limit.store(limit, Ordering::Relaxed);
    }

    fn active_process(&self) -> Oop {
        slot(self.known.scheduler, ACTIVE)
    }

    /// Saves the running process's position.
    pub(super) fn save_state(&mut self, ip: Ip, sp: Sp) {
        self.fp.set_ip(ip);
        let stack = self.stacks.active_mut();
        (stack.fp, stack.sp) = (self.fp, sp);
    }

    fn priority(&self, process: Oop) -> usize {
        let priority = slot(process, PRIORITY).as_integer().unwrap_or(1);
        usize::try_from(priority).unwrap_or(1).clamp(1, PRIORITIES)
    }

    fn list_of(&self, priority: usize) -> Oop {
        slot(slot(self.known.scheduler, 0), priority - 1)
    }

    fn add_last(&mut self, list: Oop, process: Oop) {
        let nil = self.known.nil;
        let last = slot(list, LAST);
        if slot(list, FIRST) == nil || class_index(last) != classes::PROCESS {
            self.heap.store(list, FIRST, process);
        } else {
            self.heap.store(last, NEXT_LINK, process);
        }
        self.heap.store(list, LAST, process);
        self.heap.store(process, NEXT_LINK, nil);
        self.heap.store(process, MY_LIST, list);
    }

    fn remove_first(&mut self, list: Oop) -> Option<Oop> {
        let nil = self.known.nil;
        let first = slot(list, FIRST);
        // Programs can write these fields.
        if class_index(first) != classes::PROCESS {
            return None;
        }
        let next = slot(first, NEXT_LINK);
        self.heap.store(list, FIRST, next);
        if next == nil {
            self.heap.store(list, LAST, nil);
        }
        self.heap.store(first, NEXT_LINK, nil);
        self.heap.store(first, MY_LIST, nil);
        Some(first)
    }

    fn remove(&mut self, process: Oop) {
        let list = slot(process, MY_LIST);
        if !matches!(class_index(list), classes::SEMAPHORE | classes::LINKED_LIST) {
            return;
        }
        let mut kept = Vec::new();
        while let Some(first) = self.remove_first(list) {
            if first != process {
                kept.push(first);
            }
        }
        for other in kept {
            self.add_last(list, other);
        }
    }

    /// Whether the process has a stack (required for running).
    fn is_alive(&self, process: Oop) -> bool {
        slot(process, STACK).is_integer()
    }

    /// Signals a semaphore. The running process's state is saved.
    pub(super) fn signal_semaphore(&mut self, semaphore: Oop) {
        match self.remove_first(semaphore) {
            Some(process) => self.resume(process),
            None => {
                let excess = slot(semaphore, EXCESS).as_integer().unwrap_or(0);
                self.heap.store(semaphore, EXCESS, Oop::small(excess + 1));
            }
        }
    }

    /// Makes a process runnable; a higher priority makes the process run immediately.
    fn resume(&mut self, process: Oop) {
        let active = self.active_process();
        let is_idle = active == self.known.nil;
        if is_idle || self.priority(process) <= self.priority(active) {
            let list = self.list_of(self.priority(process));
            self.add_last(list, process);
            return;
        }
        let list = self.list_of(self.priority(active));
        self.add_last(list, active);
        self.transfer_to(process, true);
    }

    fn transfer_to(&mut self, process: Oop, keep: bool) {
        let number = slot(process, STACK).as_integer().unwrap_or(0);
        let number = usize::try_from(number).unwrap_or(0);
        if self.switch_stack(number, keep) {
            self.heap.store(self.known.scheduler, ACTIVE, process);
            self.events.process_switches += 1;
            self.set_limit();
        }
    }

    /// Runs the process with the highest priority. Sleeps until some process is runnable; ends the
    /// VM if no process can become runnable.
    fn run_next(&mut self, keep: bool) -> Next {
        self.heap
            .store(self.known.scheduler, ACTIVE, self.known.nil);
        loop {
            for priority in (1..=PRIORITIES).rev() {
                if let Some(process) = self.remove_first(self.list_of(priority)) {
                    self.transfer_to(process, keep);
                    return self.resume_active();
                }
            }
            let Some(deadline) = self.timers.iter().map(|timer| timer.0).min() else {
                let _ = self
                    .errors
                    .write_all(b"all processes wait for each other: the program can't go on\n");
                return self.stop(Outcome::Quit(1));
            };
            let _ = self.output.flush();
            let wait = Duration::from_nanos(deadline.saturating_sub(now_ns()));
            std::thread::sleep(wait.min(NAP));
            if self.publication.has_requests() {
                self.answer_profilers();
            }
            let now = now_ns();
            let (due, later): (Vec<_>, Vec<_>) =
                self.timers.drain(..).partition(|timer| timer.0 <= now);
            self.timers = later;
            for (_, semaphore) in due {
                self.signal_semaphore(semaphore);
            }
        }
    }

    /// Ends the running process.
    pub(super) fn end_process(&mut self) -> Next {
        if self.stacks.is_main() {
            return self.stop(Outcome::Value(self.known.nil));
        }
        let process = self.active_process();
        self.heap.store(process, STACK, self.known.nil);
        // The frames are gone: the stack holds no more roots.
        let stack = self.stacks.active_mut();
        (stack.fp, stack.sp) = (Fp::NONE, Sp(stack.base()));
        self.run_next(false)
    }

    /// Ends the running process after a fatal error; the main process also ends the VM.
    pub(super) fn abandon_process(&mut self) -> Next {
        if self.stacks.is_main() {
            return self.stop(Outcome::Quit(1));
        }
        self.end_process()
    }
}

// The primitives. Each finds receiver and arguments on the stack, and saves the running process
// first.
impl Vm {
    /// `Semaphore signal`.
    pub(super) fn primitive_signal(&mut self, ip: Ip, sp: Sp, _: usize) -> Option<Next> {
        let semaphore = sp.at(0);
        if class_index(semaphore) != classes::SEMAPHORE {
            return None;
        }
        self.save_state(ip, sp);
        self.signal_semaphore(semaphore);
        Some(self.resume_active())
    }

    /// `Semaphore wait`.
    pub(super) fn primitive_wait(&mut self, ip: Ip, sp: Sp, _: usize) -> Option<Next> {
        let semaphore = sp.at(0);
        if class_index(semaphore) != classes::SEMAPHORE {
            return None;
        }
        let excess = slot(semaphore, EXCESS).as_integer().unwrap_or(0);
        if excess > 0 {
            self.heap.store(semaphore, EXCESS, Oop::small(excess - 1));
            return Some(Next { ip, sp });
        }
        self.save_state(ip, sp);
        let process = self.active_process();
        self.add_last(semaphore, process);
        Some(self.run_next(true))
    }

    /// `Process resume`.
    pub(super) fn primitive_resume(&mut self, ip: Ip, sp: Sp, _: usize) -> Option<Next> {
        let process = sp.at(0);
        if class_index(process) != classes::PROCESS
            || !self.is_alive(process)
            || slot(process, MY_LIST) != self.known.nil
            || process == self.active_process()
        {
            return None;
        }
        self.save_state(ip, sp);
        self.resume(process);
        Some(self.resume_active())
    }

    /// `Process suspend`.
    pub(super) fn primitive_suspend(&mut self, ip: Ip, sp: Sp, _: usize) -> Option<Next> {
        let process = sp.at(0);
        if class_index(process) != classes::PROCESS {
            return None;
        }
        if process == self.active_process() {
            self.save_state(ip, sp);
            return Some(self.run_next(true));
        }
        self.remove(process);
        Some(Next { ip, sp })
    }

    /// `Processor yield`.
    pub(super) fn primitive_yield(&mut self, ip: Ip, sp: Sp, _: usize) -> Option<Next> {
        let process = self.active_process();
        let list = self.list_of(self.priority(process));
        if slot(list, FIRST) == self.known.nil {
            return Some(Next { ip, sp });
        }
        self.save_state(ip, sp);
        self.add_last(list, process);
        Some(self.run_next(true))
    }

    /// `Process class for: aBlock`: makes a suspended process with `aBlock` as its code.
    pub(super) fn primitive_new_process(&mut self, ip: Ip, sp: Sp, _: usize) -> Option<Next> {
        let block = sp.at(0);
        if class_index(block) != classes::BLOCK_CLOSURE
            || slot(block, 2) != Oop::small(0)
            || self.stacks.others.len() >= MOST_PROCESSES
        {
            return None;
        }
        let process = self.allocate(classes::PROCESS, Format::FIXED, 5)?;
        let mut stack = Stack::new(STACK_BYTES)?;
        let running = std::mem::replace(&mut self.fp, Fp::NONE);
        let first = self.activate_block(0, Sp(stack.base()).push(block));
        self.fp.set_ip(first.ip);
        (stack.fp, stack.sp) = (self.fp, first.sp);
        self.fp = running;
        let number = self.stacks.add(stack);
        let priority = Oop::small(self.priority(self.active_process()) as i64);
        self.heap.store(process, STACK, Oop::small(number as i64));
        self.heap.store(process, PRIORITY, priority);
        Some(Next {
            ip,
            sp: sp.replace(2, process),
        })
    }

    /// `Process terminate`. Unwind blocks do not run.
    pub(super) fn primitive_terminate(&mut self, ip: Ip, sp: Sp, _: usize) -> Option<Next> {
        let process = sp.at(0);
        if class_index(process) != classes::PROCESS || process == self.stacks.main_process {
            return None;
        }
        if process == self.active_process() {
            return Some(self.end_process());
        }
        self.remove(process);
        let number = slot(process, STACK).as_integer();
        if let Some(number) = number.and_then(|number| usize::try_from(number).ok()) {
            self.stacks.others.remove(&number);
        }
        self.heap.store(process, STACK, self.known.nil);
        Some(Next { ip, sp })
    }
}

/// The timer's thread: every 2 ms it makes the next safe point look for something to do.
#[derive(Debug)]
pub(super) struct Heartbeat {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    end: AtomicBool,
    beats: AtomicU64,
    tid: AtomicU32,
}

/// Heartbeat interval, equal to Cog's.
const BEAT: Duration = Duration::from_millis(2);

impl Heartbeat {
    /// Starts the thread.
    pub fn start(limit: Arc<AtomicU64>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let ours = Arc::clone(&shared);
        let beat = move || {
            ours.tid
                .store(crate::publish::thread_id(), Ordering::Relaxed);
            while !ours.end.load(Ordering::Relaxed) {
                std::thread::sleep(BEAT);
                ours.beats.fetch_add(1, Ordering::Relaxed);
                limit.store(u64::MAX, Ordering::Relaxed);
            }
        };
        let builder = std::thread::Builder::new().name("heartbeat".to_owned());
        let thread = Some(builder.spawn(beat)?);
        Ok(Self { shared, thread })
    }

    /// Number of beats so far.
    pub fn beats(&self) -> u64 {
        self.shared.beats.load(Ordering::Relaxed)
    }

    /// The thread's id; 0 until it runs.
    pub fn tid(&self) -> u32 {
        self.shared.tid.load(Ordering::Relaxed)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
