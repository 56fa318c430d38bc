//! Which methods have samples.

use super::by_method::Known;
use super::subject::{Subject, method_of, subject_of};
use super::{ByMethod, Taken};
use crate::build::code::{full_name, separator_of};
use crate::profile::Profile;
use crate::summary::Filter;
use crate::time_buckets::Stop;
use std::cmp::Reverse;

/// A method that has samples.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Which.
    pub subject: Subject,
    /// Its name, and where it begins if that is known: `name file:line`.
    pub label: String,
    /// Its name alone.
    pub name: String,
    /// Samples in the method itself.
    pub own: u64,
    /// Those and the ones in code inlined into it.
    pub all: u64,
    /// Whether it is a method of a VM's, compiled or interpreted, and no routine.
    pub method: bool,
}

/// Every method that has samples that `filter` takes, in itself or in what was inlined
/// into it; most samples of its own first.
#[must_use]
pub fn candidates(profile: &Profile, filter: &Filter) -> Vec<Candidate> {
    let taken = Taken::of(profile, filter);
    let methods = ByMethod::of(profile);
    hottest(&taken, &methods, usize::MAX, &Stop::new()).unwrap_or_default()
}

/// The first so many of [`candidates`]; `None` when `stop` was wished before it was done.
#[must_use]
pub fn hottest(
    taken: &Taken,
    methods: &ByMethod,
    most: usize,
    stop: &Stop,
) -> Option<Vec<Candidate>> {
    let sums = sums(taken, methods, stop)?;
    (!stop.is_stopped()).then(|| first(taken.profile, sums, most))
}

/// What [`super::choose`] takes of all [`candidates`] where no name is given. The outer `None`
/// when `stop` was wished before it was done.
#[must_use]
pub fn hottest_method(taken: &Taken, methods: &ByMethod, stop: &Stop) -> Option<Option<Subject>> {
    let mut sums = sums(taken, methods, stop)?;
    if !taken.profile.is_native() && sums.iter().any(|sum| sum.known.is_method) {
        sums.retain(|sum| sum.known.is_method);
    }
    Some(first(taken.profile, sums, 1).pop().map(|one| one.subject))
}

/// The samples of a method, which may be among very many: names are made of few.
struct Sum {
    known: Known,
    own: u64,
    all: u64,
}

/// The first so many, in their order.
fn first(profile: &Profile, mut sums: Vec<Sum>, most: usize) -> Vec<Candidate> {
    let key = |sum: &Sum| Reverse((sum.own, sum.all));
    if let Some(last) = most.checked_sub(1)
        && last < sums.len()
    {
        // Of equals, the names decide.
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
            own: sum.own,
            all: sum.all,
            method: sum.known.is_method,
        })
    };
    let mut found: Vec<Candidate> = sums.into_iter().filter_map(candidate).collect();
    found.sort_by(|a, b| {
        let samples = (b.own, b.all).cmp(&(a.own, a.all));
        samples.then_with(|| (&a.label, module(a)).cmp(&(&b.label, module(b))))
    });
    found.truncate(most);
    found
}

/// Sums up by method, those that have samples; `None` when `stop` was wished before it was
/// done.
fn sums(taken: &Taken, methods: &ByMethod, stop: &Stop) -> Option<Vec<Sum>> {
    let counts = taken.counts(stop)?;
    let sum = |&known: &Known| Sum {
        known,
        own: 0,
        all: 0,
    };
    let mut sums: Vec<Sum> = methods.methods.iter().map(sum).collect();
    let sites = (0..).zip(&counts.sites);
    for (site, &samples) in sites.filter(|(_, samples)| **samples > 0) {
        for (depth, &method) in methods.of_site(site).iter().enumerate() {
            if let Some(sum) = sums.get_mut(method as usize) {
                sum.all += samples;
                sum.own += if depth == 0 { samples } else { 0 };
            }
        }
    }
    sums.retain(|sum| sum.all > 0);
    Some(sums)
}

fn module(candidate: &Candidate) -> &str {
    match &candidate.subject {
        Subject::Method(_) => "",
        Subject::Named { module, .. } => module,
    }
}

/// A name, and where its method begins.
fn label(profile: &Profile, subject: &Subject, name: &str) -> String {
    if let Subject::Named { module, .. } = subject
        && !module.is_empty()
    {
        return format!("{name} [{}]", module.trim_matches(['[', ']']));
    }
    match method_of(profile, subject) {
        Some(method) if method.line != 0 => {
            let file = method.file.rsplit('/').next().unwrap_or(&method.file);
            format!("{name} {file}:{}", method.line)
        }
        _ => name.to_owned(),
    }
}
