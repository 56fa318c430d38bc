//! Safe points: work between bytecodes.

use std::sync::atomic::Ordering;

use super::objects::slot;
use super::raw::{Sp, visit_stack};
use super::vm::{Next, Outcome, Vm, now_ns};
use crate::image::permanent;
use crate::memory::{Oop, Roots, classes};

impl Vm {
    /// A safe point: activations and backward jumps pass here.
    #[inline(always)]
    pub(super) fn check(&mut self, next: Next) -> Next {
        if (next.sp.0 as u64) < self.limit.load(Ordering::Relaxed) {
            return self.interrupt(next);
        }
        next
    }

    #[cold]
    pub(crate) fn interrupt(&mut self, next: Next) -> Next {
        if next.sp == Sp::NONE {
            return next;
        }
        self.events.interrupt_checks += 1;
        self.allocation_sites.clock.forget();
        self.fp.set_ip(next.ip);
        let stack = self.stacks.active_mut();
        (stack.fp, stack.sp) = (self.fp, next.sp);
        if stack.overflowed && stack.recovered(next.sp) {
            stack.overflowed = false;
        }
        let limit = stack.limit();
        let has_overflowed = next.sp.0 < limit;
        let interrupt_limit = stack.interrupt_limit();
        self.limit.store(interrupt_limit, Ordering::Relaxed);
        if self.heap.collection_wanted() {
            self.collect();
        }
        if self.publication.has_requests() {
            self.answer_profilers();
        }
        if has_overflowed {
            return self.overflow(next);
        }
        let now = now_ns();
        self.signal_timers(now);
        self.signal_finalization(now);
        self.publish_figures(now);
        if self.is_over(now) {
            return self.stop(Outcome::Quit(0));
        }
        if self.outcome.is_some() {
            return Next {
                sp: Sp::NONE,
                ..next
            };
        }
        self.compact_code_if_wanted();
        self.resume_active()
    }

    /// The running process's next bytecode and stack, as it saved them.
    pub(super) fn resume_active(&mut self) -> Next {
        let stack = self.stacks.active();
        let sp = stack.sp;
        self.fp = stack.fp;
        self.resume_at(self.fp.ip(), sp)
    }

    /// Raises StackOverflow in the running process.
    fn overflow(&mut self, next: Next) -> Next {
        self.events.stack_overflows += 1;
        let stack = self.stacks.active_mut();
        if stack.overflowed {
            let _ = std::io::Write::write_all(
                &mut self.errors,
                b"stack overflow while the program handled a stack overflow\n",
            );
            return self.abandon_process();
        }
        stack.overflowed = true;
        self.ask_for_attention();
        let class = self.image.class(classes::STACK_OVERFLOW);
        let class = class.map_or(self.known.nil, |class| class.oop);
        // If the program continues, the result stays harmlessly below the frame's operands.
        self.send(self.known.signal, 0, next.ip, next.sp.push(class))
    }

    /// Collects garbage, as far as the heap finds it necessary.
    fn collect(&mut self) {
        let (mut roots, heap, publication) = self.roots();
        heap.collect_if_wanted(&mut roots, publication);
        self.publish_fates();
    }

    /// Collects garbage on request of the program or a profiler. The caller has saved the running
    /// process's frame.
    pub(crate) fn collect_now(&mut self, full: bool, cause: &'static str) {
        let (mut roots, heap, publication) = self.roots();
        if full {
            heap.collect_full(cause, &mut roots, publication);
        } else {
            heap.scavenge(cause, &mut roots, publication);
        }
        self.publish_fates();
    }

    fn roots(
        &mut self,
    ) -> (
        VmRoots<'_>,
        &mut crate::memory::Heap,
        &mut crate::publish::Publication,
    ) {
        let roots = VmRoots {
            stacks: &mut self.stacks,
            timers: &mut self.timers,
        };
        (roots, &mut self.heap, &mut self.publication)
    }

    /// Signals the semaphores whose time has come.
    fn signal_timers(&mut self, now: u64) {
        let mut at = 0;
        while let Some((deadline, semaphore)) = self.timers.get(at).copied() {
            if deadline <= now {
                self.timers.swap_remove(at);
                self.signal_semaphore(semaphore);
            } else {
                at += 1;
            }
        }
    }

    /// Wakes the finalization process if ephemerons mourn.
    fn signal_finalization(&mut self, now: u64) {
        if !self.heap.has_mourners() {
            self.mourning_since = 0;
            return;
        }
        if self.mourning_since == 0 {
            self.mourning_since = now;
        }
        let association = self.image.globals.get("FinalizationSemaphore");
        let semaphore = association.map_or(self.known.nil, |association| slot(*association, 1));
        // One pending signal suffices for all mourners.
        if super::objects::class_index(semaphore) == classes::SEMAPHORE
            && slot(semaphore, 2) == Oop::small(0)
        {
            self.signal_semaphore(semaphore);
        }
    }

    /// Makes `Processor` and the main process.
    pub(crate) fn make_scheduler(&mut self) -> Result<(), crate::image::NoMemory> {
        use crate::memory::header::Format;
        let heap = &mut self.heap;
        let lists = permanent(
            heap,
            classes::ARRAY,
            Format::INDEXED,
            super::processes::PRIORITIES,
        )?;
        for at in 0..super::processes::PRIORITIES {
            let list = permanent(heap, classes::LINKED_LIST, Format::FIXED, 2)?;
            heap.store(lists, at, list);
        }
        let scheduler = permanent(heap, classes::PROCESSOR_SCHEDULER, Format::FIXED, 2)?;
        heap.store(scheduler, 0, lists);
        let process = permanent(heap, classes::PROCESS, Format::FIXED, 5)?;
        let name = crate::image::permanent_bytes(heap, classes::STRING, b"main")?;
        heap.store(process, 1, Oop::small(0));
        heap.store(process, 2, Oop::small(40));
        heap.store(process, 4, name);
        heap.store(scheduler, 1, process);
        self.known.scheduler = scheduler;
        self.stacks.main_process = process;
        let association = self.image.global(&mut self.heap, "Processor")?;
        self.heap.store(association, 1, scheduler);
        Ok(())
    }
}

/// The VM's own references: stacks of all processes, and timers.
struct VmRoots<'a> {
    stacks: &'a mut super::processes::Stacks,
    timers: &'a mut Vec<(u64, Oop)>,
}

impl Roots for VmRoots<'_> {
    fn visit(&mut self, visit: &mut dyn FnMut(&mut Oop)) {
        for stack in self.stacks.iter() {
            visit_stack(stack.sp, stack.fp, stack.base(), visit);
        }
        for (_, semaphore) in self.timers.iter_mut() {
            visit(semaphore);
        }
    }
}
