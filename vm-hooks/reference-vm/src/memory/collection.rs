//! Complete collections: triggers, order, and reports to observers.

use super::{Begin, End, Heap, Kind, Observer, Roots};
use std::time::Instant;

/// Nanoseconds since `start`.
fn ns_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl Heap {
    /// Whether the next safe point should call [`collect_if_wanted`](Self::collect_if_wanted).
    #[must_use]
    #[inline]
    pub fn collection_wanted(&self) -> bool {
        self.triggers.wanted.is_some()
    }

    /// Scavenges if a collection is wanted. A full collection follows if old space has grown
    /// enough since the last, or is full.
    pub fn collect_if_wanted(&mut self, roots: &mut dyn Roots, observer: &mut dyn Observer) {
        let Some(cause) = self.triggers.wanted else {
            return;
        };
        self.scavenge(cause, roots, observer);
        let stress = self.parameters.stress.full_every;
        let used = self.old.used();
        if self.triggers.full_wanted || used > self.parameters.max_old_bytes {
            self.collect_old("old space is full", roots, observer);
        } else if used >= self.triggers.full_threshold {
            self.collect_old("old space has grown", roots, observer);
        } else if stress > 0 && self.triggers.collections.is_multiple_of(stress) {
            self.collect_old("stress", roots, observer);
        }
    }

    /// Number of the next collection.
    fn next_collection(&self) -> u64 {
        self.counters.scavenges + self.counters.full_gcs + 1
    }

    /// Collects new space.
    pub fn scavenge(
        &mut self,
        cause: &'static str,
        roots: &mut dyn Roots,
        observer: &mut dyn Observer,
    ) {
        let number = self.next_collection();
        observer.collection_begin(&Begin {
            number,
            kind: Kind::Scavenge,
            cause,
            sizes: self.sizes(),
        });
        let start = Instant::now();
        let outcome = self.run_scavenger(roots, observer);
        self.observe_scavenge(number);
        self.reopen_eden();
        self.triggers.wanted = None;
        self.triggers.collections += 1;
        self.counters.scavenges += 1;
        self.counters.scavenge_ns += ns_since(start);
        let time = observer.collection_end(&End {
            kind: Kind::Scavenge,
            sizes: self.sizes(),
            survived_bytes: outcome.survived_bytes,
            tenured_bytes: outcome.tenured_bytes,
            survived_objects: outcome.survived_objects,
        });
        self.note_end_of_collection(time);
        self.verify_under_stress(cause, roots);
    }

    /// Collects all spaces: scavenges, then collects old space.
    pub fn collect_full(
        &mut self,
        cause: &'static str,
        roots: &mut dyn Roots,
        observer: &mut dyn Observer,
    ) {
        self.scavenge(cause, roots, observer);
        self.collect_old(cause, roots, observer);
    }

    /// Collects old space, just after a scavenge.
    pub(super) fn collect_old(
        &mut self,
        cause: &'static str,
        roots: &mut dyn Roots,
        observer: &mut dyn Observer,
    ) {
        let number = self.next_collection();
        observer.collection_begin(&Begin {
            number,
            kind: Kind::Full,
            cause,
            sizes: self.sizes(),
        });
        let start = Instant::now();

        observer.phase_begin("mark");
        let survived_objects = self.mark_live_objects(roots);
        observer.phase_end();
        let marked_ns = ns_since(start);

        observer.phase_begin("plan");
        let plan = self.plan();
        self.observe_full_collection(plan, number);
        observer.phase_end();
        let planned_ns = ns_since(start);

        observer.phase_begin("update");
        self.update_references(plan, roots);
        observer.phase_end();

        observer.phase_begin("compact");
        self.compact(plan);
        self.finish_full_collection();
        observer.phase_end();

        let all_ns = ns_since(start);
        self.counters.full_gcs += 1;
        self.counters.full_gc_ns += all_ns;
        self.counters.mark_ns += marked_ns;
        self.counters.plan_ns += planned_ns - marked_ns;
        self.counters.compaction_ns += all_ns - planned_ns;
        let time = observer.collection_end(&End {
            kind: Kind::Full,
            sizes: self.sizes(),
            survived_bytes: self.old.used() + self.new_space.past.used(),
            tenured_bytes: 0,
            survived_objects,
        });
        self.note_end_of_collection(time);
        self.verify_under_stress(cause, roots);
    }

    /// Frees segments, and decides when the next full collection is due.
    fn finish_full_collection(&mut self) {
        let needed = self.new_space.eden_bytes() + self.new_space.past.used();
        let keep = self.parameters.shrink_threshold.max(needed);
        self.counters.shrinks += self.old.shrink(keep);
        self.triggers.after_full = self.old.used();
        self.set_full_threshold();
        self.triggers.full_wanted = false;
        self.triggers.wanted = None;
        self.triggers.refuse = self.old.used() > self.parameters.max_old_bytes;
        self.reopen_eden();
    }

    #[allow(clippy::panic, reason = "a broken heap is a bug of the VM")]
    fn verify_under_stress(&mut self, cause: &str, roots: &mut dyn Roots) {
        if !self.parameters.stress.verify {
            return;
        }
        if let Err(complaint) = self.verify(roots) {
            panic!("the heap is broken after a collection ({cause}): {complaint}");
        }
    }
}
