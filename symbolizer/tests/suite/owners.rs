//! Attribution of samples to methods, and grouping of entries by method.

use std::collections::BTreeMap;

use crate::recordings::{java_filters, read, screens};
use screens::ms;
use vmscope_records::TimeNs;
use vmscope_symbolizer::annotate::{Subject, candidates, subject_of_entry};
use vmscope_symbolizer::attribution::{Owned, Owner, owner_errors, owners};
use vmscope_symbolizer::compilers::Compilers;
use vmscope_symbolizer::methods::{Methods, code_sizes, is_method};
use vmscope_symbolizer::time_buckets::{Counts, by_thread};
use vmscope_symbolizer::{EntryId, Filter, Id, Only, Profile, Region, Stop, Summary, profile_of};

fn java() -> Profile {
    profile_of(read(&screens::java()).unwrap(), Vec::new(), true)
}

fn filters() -> Vec<Filter> {
    let by_regions = Filter {
        only: Only {
            regions: vec![Region::Kernel, Region::Compiler],
            ..Only::default()
        },
        ..Filter::default()
    };
    java_filters().into_iter().chain([by_regions]).collect()
}

fn sum(all: &[Owned], fits: impl Fn(&Owner) -> bool) -> u64 {
    let fitting = all.iter().filter(|one| fits(&one.owner));
    fitting.map(|one| one.samples).sum()
}

#[test]
fn every_sample_has_an_owner_or_none() {
    let profile = java();
    for filter in filters() {
        let summary = Summary::with_errors(&profile, &filter);
        let all = owners(&profile, &filter, &Stop::new()).unwrap();
        let mut entries = profile.entries.with_each(0);
        for one in &all {
            entries[one.entry] += one.samples;
            if is_method(&profile, one.entry) {
                assert_eq!(one.owner, Owner::Method(one.entry));
            }
            assert_ne!(one.owner, Owner::Forgotten);
        }
        assert_eq!(entries, summary.entries, "{filter:?}");
        // Compiler samples agree with [`Compilers`].
        let compilers = Compilers::of(&profile, &filter, &Stop::new()).unwrap();
        assert_eq!(
            sum(&all, |o| matches!(o, Owner::Compiled(_))),
            compilers.told
        );
        let untold = compilers.between + compilers.doubtful + compilers.unseen;
        assert_eq!(sum(&all, |o| *o == Owner::Compiler), untold);
    }
}

#[test]
fn errors_are_of_the_same_samples() {
    let profile = java();
    let stop = Stop::new();
    for filter in filters() {
        let summary = Summary::with_errors(&profile, &filter);
        let size = (summary.total, profile.entries.len());
        let mut counted: BTreeMap<(EntryId, Owner), u64> = BTreeMap::new();
        let errors = owner_errors(&profile, &filter, size, &stop, |_, entry, owner, put| {
            *counted.entry((entry, owner)).or_default() += 1;
            put(entry.number());
        });
        // Errors by entry agree with the summary.
        let errors = errors.unwrap();
        let expected = Summary::errors_by_entry(&profile, &filter, &stop).unwrap();
        assert!(summary.total < 320 || errors.iter().any(|error| *error > 0.0));
        assert_eq!(errors.len(), expected.len());
        for (error, expected) in errors.iter().zip(&expected) {
            assert!((error - expected).abs() < 1e-9, "{error} {expected}");
        }
        // Only samples after the last full batch are left out.
        let all = owners(&profile, &filter, &stop).unwrap();
        let mut left_out = 0;
        for one in all {
            let seen = counted.remove(&(one.entry, one.owner)).unwrap_or(0);
            assert!(seen <= one.samples, "{one:?}");
            left_out += one.samples - seen;
        }
        assert!(counted.is_empty() && left_out < 32, "{left_out}");
    }
    let one = Some(TimeNs(ms(1_000)));
    let few = Filter {
        from: one,
        to: one,
        ..Filter::default()
    };
    let none = owner_errors(&profile, &few, (0, 1), &stop, |_, _, _, put| put(0));
    assert_eq!(none.unwrap(), []);
}

#[test]
fn callers_own_what_they_called() {
    let profile = java();
    let all = owners(&profile, &Filter::default(), &Stop::new()).unwrap();
    let of_method_in = |region: Region| {
        let there = all.iter().filter(|one| {
            profile.entries[one.entry].region == region && matches!(one.owner, Owner::Method(_))
        });
        there.map(|one| one.samples).sum::<u64>()
    };
    // Mutators have callers, so most kernel and library samples have owners.
    assert!(of_method_in(Region::Kernel) > 100);
    assert!(of_method_in(Region::Library) > 100);
    for one in &all {
        if let Owner::Method(entry) = one.owner {
            assert!(is_method(&profile, entry));
        }
    }
    // All samples of collector threads, in any code.
    let by_thread = by_thread(&profile, &Filter::default(), &Stop::new()).unwrap();
    let collectors = by_thread.iter().filter(|one| {
        let thread = &profile.trace.threads[one.thread].thread;
        thread.role == vmscope_records::ThreadRole::Collector
    });
    let collectors: u64 = collectors.map(|one| one.samples).sum();
    assert_eq!(sum(&all, |o| *o == Owner::Collector), collectors);
}

#[test]
fn threads_and_entries_are_counted_at_once() {
    let profile = java();
    for filter in filters() {
        let counts = Counts::of(&profile, &filter, &Stop::new()).unwrap();
        let mut expected = profile.entries.with_each(0);
        for (site, samples) in profile.sites.iter().zip(&counts.sites) {
            expected[site.entry] += samples;
        }
        let (mut entries, mut threads) = (expected.with_each(0), counts.threads.with_each(0));
        for one in by_thread(&profile, &filter, &Stop::new()).unwrap() {
            assert!(one.samples > 0);
            entries[one.entry] += one.samples;
            threads[one.thread] += one.samples;
        }
        assert_eq!((entries, threads), (expected, counts.threads), "{filter:?}");
    }
}

#[test]
fn what_is_stopped_has_no_answer() {
    let profile = java();
    let stop = Stop::new();
    stop.stop();
    assert_eq!(by_thread(&profile, &Filter::default(), &stop), None);
    assert_eq!(owners(&profile, &Filter::default(), &stop), None);
}

#[test]
fn a_method_is_all_that_ran_of_it() {
    let profile = java();
    let methods = Methods::of(&profile);
    assert_eq!(methods.of_entry.len(), profile.entries.len());
    let is_token = |name: &str| name == "com.acme.config.Parser.token";
    let mut names = methods.names.enumerated();
    let (token, _) = names.find(|(_, name)| is_token(name)).unwrap();
    let of_token = methods.of_entry.iter().zip(&profile.entries);
    let of_token = of_token.filter(|(method, _)| **method == token);
    let mut tiers: Vec<&str> = of_token.map(|(_, entry)| entry.tier.as_str()).collect();
    tiers.sort_unstable();
    assert_eq!(tiers, ["C1 profiling", "C2", "interpreter"]);
}

#[test]
fn machine_code_has_a_size_and_what_is_interpreted_none() {
    let profile = java();
    let sizes = code_sizes(&profile);
    for (entry, size) in profile.entries.iter().zip(&sizes) {
        if entry.tier == "interpreter" {
            assert_eq!(*size, None, "{}", entry.name);
        }
        if entry.name == "com.acme.orders.OrderBook.match" && entry.tier == "C2" {
            assert_eq!(*size, Some(960));
        }
    }
}

/// Native functions have the samples of their symbols, as in perf: debug information moves none.
/// Without that, an inlined function hides its caller.
#[test]
fn native_functions_have_the_samples_of_their_symbols() {
    let trace = |lines: bool| {
        let mut trace = read(&screens::native()).unwrap();
        let functions = trace.symbols.iter_mut().flat_map(|one| &mut one.functions);
        functions
            .filter(|_| !lines)
            .for_each(|one| one.lines.clear());
        trace
    };
    let shares = |lines: bool, inlined: bool| {
        let profile = profile_of(trace(lines), Vec::new(), inlined);
        let summary = Summary::of(&profile, &Filter::default(), &Stop::new()).unwrap();
        let counted = profile.entries.iter().zip(&summary.entries);
        let counted = counted.filter(|(_, samples)| **samples > 0);
        counted
            .map(|(entry, samples)| (entry.name.clone(), *samples))
            .collect::<BTreeMap<String, u64>>()
    };
    assert_eq!(shares(true, false), shares(false, false));
    assert_ne!(shares(true, true), shares(false, true));
    // The method to annotate is the hottest entry, whatever is inlined into it.
    let profile = profile_of(trace(true), Vec::new(), false);
    let all = candidates(&profile, &Filter::default());
    let hottest = shares(true, false).into_iter().max_by_key(|(_, n)| *n);
    assert_eq!(Some((all[0].name.clone(), all[0].charged)), hottest);
    for (id, entry) in profile.entries.enumerated() {
        if let Some(Subject::Named { name, .. }) = subject_of_entry(&profile, id) {
            assert_eq!(*name, *entry.name);
        }
    }
}
