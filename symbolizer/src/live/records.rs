//! Records other than samples go into the trace.

use super::Live;
use crate::profile::Profile;
use crate::trace::{Interpreters, Trace};
use crate::zone::CodeId;
use vmscope_records::{
    Compilation, Constituent, Method, MethodKey, Record, SymbolOwner, ThreadCpu, ThreadEnd,
    ThreadUpdate, TimeNs,
};

impl Live {
    /// Applies the records since the last step.
    pub(super) fn take_records(&mut self, profile: &mut Profile) {
        let trace = &mut profile.trace;
        let mut changes = Vec::new();
        let mut updates = Vec::new();
        let mut codes: Vec<CodeId> = Vec::new();
        let mut interpreters_changed = false;
        for record in std::mem::take(&mut self.records) {
            match record {
                // Summed-up threads never come back.
                Record::ThreadUpdate(ThreadUpdate { key, .. })
                | Record::ThreadCpu(ThreadCpu { key, .. })
                | Record::ThreadEnd(ThreadEnd { key, .. })
                    if self.omitted.threads > 0 && trace.number_of(key).is_none() =>
                {
                    self.omitted.late += 1;
                }
                Record::ThreadUpdate(update) => updates.push(update),
                // Only readers of whole recordings need them.
                Record::Class(_) | Record::AllocationSite(_) => {}
                Record::Constituent(constituent) => {
                    codes.extend(self.take_code(trace, *constituent));
                }
                Record::ConstituentGone(gone) => {
                    codes.extend(trace.code.index_of(gone.key));
                    trace.code_events.gone(&gone);
                    trace.code.gone(gone);
                }
                Record::ConstituentMoved(moved) => {
                    codes.extend(trace.code.index_of(moved.key));
                    trace.code_events.moved(&moved);
                    trace.code.moved(moved);
                }
                Record::Method(method) => self.take_method(trace, *method),
                Record::Collection(collection) => {
                    let next = self.index.collections_dropped + trace.collections.len() as u64;
                    let number = *self.index.collections.entry(collection.key).or_insert(next);
                    let at = number.checked_sub(self.index.collections_dropped);
                    match at.and_then(|at| trace.collections.get_mut(at as usize)) {
                        Some(known) => *known = *collection,
                        None if number == next => trace.collections.push(*collection),
                        None => self.omitted.records += 1,
                    }
                }
                Record::Compilation(compilation) => self.take_compilation(trace, *compilation),
                Record::Fact(fact) => {
                    let is_same = |known: &&mut vmscope_records::Fact| {
                        known.process == fact.process && known.name == fact.name
                    };
                    match trace.facts.iter_mut().find(is_same) {
                        Some(known) => *known = fact,
                        None => trace.facts.push(fact),
                    }
                }
                Record::RegionRules(_) => {
                    trace.take(record, &mut changes);
                    self.names.forget_native();
                    let known = self.index.places_of_native.keys();
                    self.stale_natives.extend(known.copied());
                    self.stale_natives.insert(SymbolOwner::Kernel);
                }
                Record::Symbols(symbols) => {
                    self.stale_natives.insert(symbols.owner);
                    self.natives.note_recorded(&symbols);
                    trace.symbols.push(symbols);
                    self.names.forget_native();
                }
                Record::InterpreterRules(_) => {
                    interpreters_changed = true;
                    self.omitted.late += u64::from(self.settled > TimeNs(0));
                    trace.take(record, &mut changes);
                }
                Record::Process(_) => {
                    interpreters_changed |= !trace.interpreters.is_empty();
                    trace.take(record, &mut changes);
                }
                Record::ProcessEnd(ref end) => {
                    if !end.alive {
                        self.index.ended_processes.push((end.time, end.key));
                    }
                    trace.take(record, &mut changes);
                }
                other => _ = trace.take(other, &mut changes),
            }
        }
        trace.update_threads(updates, &mut changes);
        for (time, change) in changes {
            self.omitted.late += u64::from(time < self.settled);
            self.changes_taken += 1;
            self.changes.insert((time, self.changes_taken), change);
        }
        self.placing.world.know_threads(&trace.threads);
        if interpreters_changed {
            self.placing
                .world
                .know_interpreters(Interpreters::new(trace));
            self.is_shown_anew = true;
        }
        codes.dedup();
        self.growing.update(
            self.placing.world.zones(),
            &trace.code,
            &codes,
            self.settled,
        );
    }

    /// Takes a record of a constituent. Places in a known constituent get new names.
    fn take_code(&mut self, trace: &mut Trace, constituent: Constituent) -> Option<CodeId> {
        let key = constituent.key;
        if let Some(code) = trace.code.index_of(key) {
            self.names.forget_code(code);
            self.stale_code.insert(code);
        }
        trace.code_events.came(&constituent);
        trace.code.seen(constituent);
        let code = trace.code.index_of(key)?;
        if self.separator.is_none()
            && let Some(between) = crate::build::code::separator_in(trace, trace.constituent(code))
        {
            self.separator = Some(between.to_owned());
            // Until now names had a full stop instead.
            self.is_all_stale |= between != ".";
        }
        Some(code)
    }

    fn take_method(&mut self, trace: &mut Trace, method: Method) {
        self.index.fresh_methods.insert(method.key);
        let old = trace.methods.get(&method.key);
        let named = |m: &Method| (m.class.clone(), m.name.clone(), m.file.clone(), m.line);
        // A second record mostly adds a listing.
        self.is_all_stale |=
            old.is_some_and(|old| named(old) != named(&method) || old.lines != method.lines);
        trace.methods.insert(method.key, method);
    }

    fn take_compilation(&mut self, trace: &mut Trace, compilation: Compilation) {
        let key = (compilation.thread, compilation.first_seen, compilation.id);
        let next = self.index.compilations_dropped + trace.compilations.len() as u64;
        let number = *self.index.compilations.entry(key).or_insert(next);
        let at = number.checked_sub(self.index.compilations_dropped);
        match at.and_then(|at| trace.compilations.get_mut(at as usize)) {
            Some(known) if known.emitted_at() <= compilation.emitted_at() => *known = compilation,
            Some(_) => {}
            None if number == next => trace.compilations.push(compilation),
            None => self.omitted.records += 1,
        }
    }

    /// All methods of a constituent.
    pub(super) fn methods_of(constituent: &Constituent) -> impl Iterator<Item = MethodKey> + '_ {
        let chains = match &constituent.map {
            vmscope_records::PcMap::Covers { chains, .. } => chains.as_slice(),
            _ => &[],
        };
        let inlined = chains.iter().flatten().map(|frame| frame.method);
        let cases = constituent.cases.iter().filter_map(|case| case.method);
        constituent.method.into_iter().chain(cases).chain(inlined)
    }
}
