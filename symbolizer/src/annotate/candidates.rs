//! Methods with samples.

use super::by_method::Known;
use super::subject::{Subject, method_of, subject_of};
use super::{ByMethod, Taken};
use crate::build::code::{full_name, separator_of};
use crate::profile::{Profile, last_component, place_text};
use crate::stacks::count_stacks;
use crate::summary::Filter;
use crate::time_buckets::Stop;
use std::cmp::Reverse;

/// A method with samples.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The method.
    pub subject: Subject,
    /// Name and, if known, start: `name file:line`.
    pub label: String,
    /// Name alone.
    pub name: String,
    /// Samples of its entries: in the method itself and, for native functions, in functions inlined
    /// there.
    pub charged: u64,
    /// Samples in the method itself.
    pub own: u64,
    /// Samples in the method, including inlined methods.
    pub all: u64,
    /// Without samples in the method: samples with it in their recorded stacks. Otherwise 0.
    pub called: u64,
    /// Whether a VM compiled or interpreted the method; `false` for routines.
    pub method: bool,
}

/// All methods with samples that pass `filter`, including samples in inlined methods; most samples
/// of their entries first. Last come methods with samples only in the code they called.
#[must_use]
pub fn candidates(profile: &Profile, filter: &Filter) -> Vec<Candidate> {
    let taken = Taken::of(profile, filter);
    let methods = ByMethod::of(profile);
    let stop = Stop::new();
    let Some(mut sums) = sums(&taken, &methods, &stop) else {
        return Vec::new();
    };
    if !profile.trace.chains.is_empty() {
        let inclusive = inclusive(profile, filter, &methods, &stop).unwrap_or_default();
        for (sum, inclusive) in sums.iter_mut().zip(inclusive) {
            sum.called = if sum.all == 0 { inclusive } else { 0 };
        }
    }
    sums.retain(|sum| sum.all + sum.called > 0);
    first(profile, sums, usize::MAX)
}

/// Samples with a method in their stacks, by index in [`ByMethod::methods`]; `None` if `stop` was
/// requested first.
fn inclusive(
    profile: &Profile,
    filter: &Filter,
    methods: &ByMethod,
    stop: &Stop,
) -> Option<Vec<u64>> {
    let (tree, counts) = count_stacks(profile, filter, stop)?;
    // By method: samples, and the last counted stack.
    let mut sums = vec![(0, usize::MAX); methods.methods.len()];
    for (number, count) in counts.iter().enumerate() {
        for site in tree.path(count.node) {
            for &method in methods.of_site(site) {
                let (sum, last) = &mut sums[method as usize];
                if std::mem::replace(last, number) != number {
                    *sum += count.samples;
                }
            }
        }
    }
    Some(sums.into_iter().map(|(sum, _)| sum).collect())
}

/// The first `most` of [`candidates`] with samples of their own or in functions inlined there;
/// `None` after a stop.
#[must_use]
pub fn hottest(
    taken: &Taken,
    methods: &ByMethod,
    most: usize,
    stop: &Stop,
) -> Option<Vec<Candidate>> {
    let mut sums = sums(taken, methods, stop)?;
    sums.retain(|sum| sum.all > 0);
    (!stop.is_stopped()).then(|| first(taken.profile, sums, most))
}

/// The method that [`super::choose`] returns for all [`candidates`] without a name. Outer `None` if
/// `stop` was requested first.
#[must_use]
pub fn hottest_method(taken: &Taken, methods: &ByMethod, stop: &Stop) -> Option<Option<Subject>> {
    let mut sums = sums(taken, methods, stop)?;
    sums.retain(|sum| sum.all > 0);
    if !taken.profile.is_native() && sums.iter().any(|sum| sum.known.is_method) {
        sums.retain(|sum| sum.known.is_method);
    }
    Some(first(taken.profile, sums, 1).pop().map(|one| one.subject))
}

/// A method's samples without names: methods may be numerous, and few need names.
struct Sum {
    known: Known,
    charged: u64,
    own: u64,
    all: u64,
    called: u64,
}

/// The first `most` methods, sorted.
fn first(profile: &Profile, mut sums: Vec<Sum>, most: usize) -> Vec<Candidate> {
    let key = |sum: &Sum| Reverse((sum.charged, sum.own, sum.all, sum.called));
    if let Some(last) = most.checked_sub(1)
        && last < sums.len()
    {
        // Names order methods with equal samples, so keep all equals of the last.
        let (_, last, _) = sums.select_nth_unstable_by_key(last, key);
        let last = key(last);
        sums.retain(|sum| key(sum) <= last);
    }
    let separator = separator_of(&profile.trace);
    let candidate = |sum: Sum| {
        let (site, frame) = sum.known.place(profile)?;
        let subject = subject_of(profile, site, frame);
        let method = method_of(profile, &subject);
        let name = method.map_or_else(
            || frame.name.to_string(),
            |method| full_name(method, separator),
        );
        Some(Candidate {
            label: label(profile, &subject, &name),
            subject,
            name,
            charged: sum.charged,
            own: sum.own,
            all: sum.all,
            called: sum.called,
            method: sum.known.is_method,
        })
    };
    let mut found: Vec<Candidate> = sums.into_iter().filter_map(candidate).collect();
    found.sort_by(|a, b| {
        let samples = |one: &Candidate| (one.charged, one.own, one.all, one.called);
        let samples = samples(b).cmp(&samples(a));
        samples.then_with(|| (&a.label, module(a)).cmp(&(&b.label, module(b))))
    });
    found.truncate(most);
    found
}

/// Samples by method, as [`ByMethod::methods`]; `None` if `stop` was requested first.
fn sums(taken: &Taken, methods: &ByMethod, stop: &Stop) -> Option<Vec<Sum>> {
    let counts = taken.counts(stop)?;
    let sum = |&known: &Known| Sum {
        known,
        charged: 0,
        own: 0,
        all: 0,
        called: 0,
    };
    let mut sums: Vec<Sum> = methods.methods.iter().map(sum).collect();
    let sites = counts.sites.enumerated();
    for (id, &samples) in sites.filter(|(_, samples)| **samples > 0) {
        // The function of the site's entry, if another one is inlined there.
        let site = &taken.profile.sites[id];
        let is_inlined = taken.profile.inlined_at(site).is_some();
        let around = is_inlined.then(|| &taken.profile.frame_of_entry(site).name);
        for (depth, &method) in methods.of_site(id).iter().enumerate() {
            let sum = &mut sums[method as usize];
            let is_of_entry = match around {
                None => depth == 0,
                Some(name) => {
                    let place = sum.known.place(taken.profile);
                    place.is_some_and(|(_, frame)| frame.name == *name)
                }
            };
            sum.all += samples;
            sum.own += if depth == 0 { samples } else { 0 };
            sum.charged += if is_of_entry { samples } else { 0 };
        }
    }
    Some(sums)
}

fn module(candidate: &Candidate) -> &str {
    match &candidate.subject {
        Subject::Method(_) => "",
        Subject::Named { module, .. } => module,
    }
}

/// Name with module or start line.
fn label(profile: &Profile, subject: &Subject, name: &str) -> String {
    if let Subject::Named { module, .. } = subject
        && !module.is_empty()
    {
        return format!("{name} [{}]", module.trim_matches(['[', ']']));
    }
    match method_of(profile, subject) {
        Some(method) if method.line != 0 => {
            let place = place_text(last_component(&method.file), Some(method.line));
            format!("{name} {place}")
        }
        _ => name.to_owned(),
    }
}
