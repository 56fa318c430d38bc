//! pc maps of sampled code: selection of due maps, and their reports.

use std::cmp::Reverse;
use std::time::Instant;

use vmscope_process::Poll;
use vmscope_records::{Avma, TimeNs};

use super::super::describe::present;
use super::super::kept::Kept;
use super::super::maps::Maps;
use super::super::methods::Methods;
use super::Zone;
use crate::code::NmethodId;
use crate::evidence::MemoryMethods;
use crate::pages::Pages;

/// An nmethod with a due map, and its new sampled addresses.
struct Hit<'t> {
    id: NmethodId,
    touched: &'t [Avma],
}

impl Zone {
    /// Reports pc maps of compiled methods with any of `touched` (ascending), methods with most
    /// addresses first. `pages` is `None` after the VM's end. Begins at most one more map after
    /// `until`, since maps can take long. If it `may_wait`, the map of a large method waits for
    /// more samples, and after an unloading, a method with uncertain inlined methods waits for
    /// the next reading. Returns the addresses of the methods that had no time, ascending.
    pub fn tell_hits(
        &mut self,
        touched: &[Avma],
        maps: &Maps,
        pages: Option<&Pages<'_>>,
        methods: &mut Methods,
        (until, may_wait): (Instant, bool),
        poll: &mut Poll,
    ) -> Vec<Avma> {
        let now = poll.began();
        let touched = touched.iter().copied();
        let in_code: Vec<Avma> = touched.filter(|at| self.holds(*at)).collect();
        let hits = self.due_hits(&in_code, (now, may_wait), methods);
        if hits.is_empty() {
            return Vec::new();
        }
        let source = pages.and_then(|pages| maps.source(pages, methods, now));
        let mut left: Vec<Avma> = Vec::new();
        let mut told = 0;
        for Hit { id, touched } in hits {
            let Some(kept) = self.nmethods.get_mut(&id) else {
                continue;
            };
            let is_late = told > 0 && Instant::now() >= until;
            let are_there = |pages: &&Pages<'_>| {
                let mut of = kept.methods.iter();
                match kept.are_all {
                    true => of.all(|method| methods.is_current(*pages, method)),
                    false => methods.are_same_since(kept.seen_at),
                }
            };
            let present_in = pages.filter(|pages| !is_late && !kept.is_dead && are_there(pages));
            let is_alive = kept.is_there() && !kept.is_dead;
            let is_uncertain = is_alive && present_in.is_none() && !kept.are_all;
            let waits = is_uncertain && may_wait && pages.is_some();
            if !is_late && !waits {
                told += 1;
                kept.hit(touched);
                tell_map(kept, maps, (present_in, source.as_ref()), methods, poll);
                self.nmethods.strip(&id);
            } else if !touched.is_empty() {
                left.extend(touched);
            } else if may_wait {
                self.waiting.insert(id);
            } else {
                left.push(kept.nmethod.blob.code_begin);
            }
        }
        if let Some(source) = source {
            maps.keep(source);
        }
        left.sort_unstable();
        left.dedup();
        left
    }

    /// Nmethods whose maps are due, those with most new addresses first.
    fn due_hits<'t>(
        &mut self,
        touched: &'t [Avma],
        (now, may_wait): (TimeNs, bool),
        methods: &Methods,
    ) -> Vec<Hit<'t>> {
        let mut hits: Vec<Hit<'t>> = Vec::new();
        // A class's methods are read before the class is gone.
        let is_urgent = !may_wait || methods.have_gone_lately();
        for id in self.nmethods.at(touched) {
            let Some(kept) = self.nmethods.get_mut(&id).filter(|kept| !kept.is_mapped) else {
                continue;
            };
            let blob = &kept.nmethod.blob;
            let before = |end: Avma| touched.partition_point(|at| *at < end);
            let range = before(blob.code_begin)..before(blob.code_end);
            let touched = touched.get(range).unwrap_or_default();
            if !kept.is_new(touched) {
                continue;
            }
            if !is_urgent {
                kept.await_more(now);
            }
            if may_wait && !kept.is_due(now) {
                kept.hit(touched);
                self.waiting.insert(id);
            } else {
                hits.push(Hit { id, touched });
            }
        }
        let nmethods = &self.nmethods;
        self.waiting.retain(|id| {
            let Some(kept) = nmethods.get(id) else {
                return false;
            };
            // The comparison of its samples with its map comes last.
            if may_wait && !kept.is_due(now) {
                return true;
            }
            if kept.lacks_map() {
                hits.push(Hit {
                    id: *id,
                    touched: &[],
                });
            }
            false
        });
        hits.sort_unstable_by_key(|hit| (Reverse(hit.touched.len()), hit.id));
        hits
    }
}

/// Reports a map. `present_in`: the VM's memory, if the method and its inlined methods are there.
fn tell_map(
    kept: &mut Kept,
    maps: &Maps,
    (mut present_in, source): (Option<&Pages<'_>>, Option<&MemoryMethods<'_>>),
    methods: &mut Methods,
    poll: &mut Poll,
) {
    if let Some(pages) = present_in.filter(|_| !kept.are_all) {
        let (found, are_all) = present(&kept.nmethod, pages, methods, poll);
        if are_all {
            (kept.methods, kept.are_all) = (found, true);
        } else {
            // The class is just unloaded.
            present_in = None;
        }
    }
    if let Some(pages) = present_in {
        maps.tell(kept, Some((pages, source)), methods, poll);
    } else {
        // Other methods may have these methods' addresses by now.
        let before = methods.only(&kept.methods);
        maps.tell(kept, None, methods, poll);
        methods.put_back(before);
    }
}
