//! The heap of a replay.

use super::super::fresh::Touched;
use super::{Amount, Draw, Due, MOST_VISITS, Outcome, Policy, Program, Untraced};

/// The heap of a replay. Objects are indices of the program's objects.
pub(super) struct Heap<'a> {
    program: &'a Program,
    policy: &'a Policy,
    draw: &'a Draw,
    eden: Vec<usize>,
    /// Objects of the past survivor space.
    past: Vec<usize>,
    past_bytes: f64,
    old: Vec<usize>,
    /// Bytes of `old`.
    old_bytes: f64,
    /// Old space's bytes at the next full collection.
    threshold: f64,
    /// Number of entries of [`Program::untraced`] before the present position.
    untraced: usize,
    /// Untraced bytes that full collections have freed.
    freed: f64,
    /// Bytes of large objects that were put in eden.
    young_large: f64,
    touched: Touched,
    /// Visits of objects, and collections.
    visits: usize,
    pub outcome: Outcome,
}

impl<'a> Heap<'a> {
    pub fn new(program: &'a Program, policy: &'a Policy, draw: &'a Draw) -> Self {
        Heap {
            program,
            policy,
            draw,
            eden: Vec::new(),
            past: Vec::new(),
            past_bytes: 0.0,
            old: Vec::new(),
            old_bytes: 0.0,
            threshold: draw.due.first,
            untraced: 0,
            freed: 0.0,
            young_large: 0.0,
            touched: program.touched,
            visits: 0,
            outcome: Outcome::default(),
        }
    }

    fn bytes(&self, at: usize) -> f64 {
        self.draw.counts[at] * self.program.objects[at].bytes
    }

    pub fn put_eden(&mut self, at: usize) {
        self.eden.push(at);
    }

    /// A large object that was recorded in old space, among the untraced bytes.
    pub fn put_large_in_eden(&mut self, at: usize) {
        self.young_large += self.bytes(at);
        self.put_eden(at);
    }

    pub fn pretenure(&mut self, at: usize) {
        self.outcome.pretenured.add(Amount {
            bytes: self.bytes(at),
            objects: self.draw.counts[at],
            ..Amount::default()
        });
        self.put_old(at);
    }

    fn put_old(&mut self, at: usize) {
        self.old_bytes += self.bytes(at);
        self.old.push(at);
    }

    /// Untraced bytes after the last full collection, of so many `added` bytes.
    fn untraced_bytes(&self, added: f64) -> f64 {
        (added - self.young_large - self.freed).max(0.0)
    }

    /// The last recorded collection before the present position.
    fn untraced(&self) -> Untraced {
        let last = self.untraced.checked_sub(1);
        last.map_or_else(Untraced::default, |last| self.program.untraced[last])
    }

    /// Advances to a position. Whether the program's allocations in old space demand a collection.
    pub fn is_old_full(&mut self, position: f64) -> bool {
        while let Some(next) = self.program.untraced.get(self.untraced)
            && next.position <= position
        {
            self.untraced += 1;
            if next.has_grown
                && self.old_bytes + self.untraced_bytes(next.added.0) >= self.threshold
            {
                return true;
            }
        }
        false
    }

    /// A scavenge at a position, and a full collection if it is due now or after the scavenge. `None`
    /// after too many visits.
    pub fn collect(&mut self, position: f64, is_due: bool) -> Option<()> {
        let deaths = &self.draw.deaths;
        let tenures = self.past_bytes > self.policy.tenuring * self.policy.survivors;
        let past = std::mem::take(&mut self.past);
        let eden = std::mem::take(&mut self.eden);
        self.visit(1 + past.len() + eden.len())?;
        self.past_bytes = 0.0;
        let old_bytes = self.old_bytes;
        let mut work = Amount {
            collections: 1.0,
            ..Amount::default()
        };
        let all = past.into_iter().map(|at| (at, tenures));
        let all = all.chain(eden.into_iter().map(|at| (at, false)));
        for (at, is_tenured) in all.filter(|(at, _)| deaths[*at] > position) {
            let bytes = self.bytes(at);
            work.bytes += bytes;
            work.objects += self.draw.counts[at];
            if is_tenured || self.past_bytes + bytes > self.policy.survivors {
                self.put_old(at);
            } else {
                self.past_bytes += bytes;
                self.past.push(at);
            }
        }
        // A recorded full collection at the same position tells of its garbage.
        while let Some(next) = self.program.untraced.get(self.untraced)
            && next.position <= position
            && !next.has_grown
        {
            self.untraced += 1;
        }
        let untraced = self.untraced();
        let untraced_bytes = self.untraced_bytes(untraced.added.1);
        let old = (old_bytes + untraced_bytes, self.old_bytes + untraced_bytes);
        work.fresh = self.touched.scavenge(self.past_bytes, old).sum();
        self.outcome.scavenges.add(work);
        if is_due || old.1 >= self.threshold {
            self.collect_old(position, untraced)?;
        }
        Some(())
    }

    fn collect_old(&mut self, position: f64, untraced: Untraced) -> Option<()> {
        self.visit(self.old.len())?;
        let deaths = &self.draw.deaths;
        self.old.retain(|at| deaths[*at] > position);
        let bytes = self.old.iter().map(|at| self.bytes(*at));
        self.old_bytes = bytes.sum();
        let objects = self.old.iter().map(|at| self.draw.counts[*at]);
        let added = untraced.added.1.max(1.0);
        self.freed = untraced.garbage * (1.0 - self.young_large / added).max(0.0);
        let used = self.old_bytes + self.untraced_bytes(added);
        self.outcome.fulls.add(Amount {
            collections: 1.0,
            bytes: used,
            objects: objects.sum::<f64>() + untraced.objects,
            fresh: 0.0,
        });
        self.touched.shrink(used + self.program.kept);
        let Due {
            growth,
            least_growth,
            ..
        } = self.draw.due;
        self.threshold = used + self.policy.growth * (used * (growth - 1.0)).max(least_growth);
        Some(())
    }

    fn visit(&mut self, objects: usize) -> Option<()> {
        self.visits += objects;
        (self.visits <= MOST_VISITS).then_some(())
    }
}
