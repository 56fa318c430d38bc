//! Which methods have samples.

use super::find::{Subject, method_of, named_entry, subject_of};
use super::frames;
use crate::build::code::{full_name, separator_of};
use crate::profile::{Entry, EntryKind, Frame, Profile, Site};
use crate::slices::{Counts, Stop};
use crate::summary::Filter;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::sync::Arc;
use vmscope_records::{ConstituentKind, MethodKey};

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
    hottest(profile, filter, usize::MAX, &Stop::new()).unwrap_or_default()
}

/// The first so many of [`candidates`]; `None` when `stop` was wished before it was done.
#[must_use]
pub fn hottest(
    profile: &Profile,
    filter: &Filter,
    most: usize,
    stop: &Stop,
) -> Option<Vec<Candidate>> {
    let sums = sums(profile, filter, stop)?;
    (!stop.is_stopped()).then(|| first(profile, sums, most))
}

/// What [`super::choose`] takes of all [`candidates`] where no name is given. The outer `None`
/// when `stop` was wished before it was done.
#[must_use]
pub fn hottest_method(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Option<Subject>> {
    let mut sums = sums(profile, filter, stop)?;
    if !profile.is_native() && sums.iter().any(|sum| sum.method) {
        sums.retain(|sum| sum.method);
    }
    Some(first(profile, sums, 1).pop().map(|one| one.subject))
}

/// The samples of a method, which may be among very many: names are made of few.
struct Sum<'a> {
    site: &'a Site,
    frame: &'a Frame,
    own: u64,
    all: u64,
    method: bool,
}

/// The first so many, in their order.
fn first(profile: &Profile, mut sums: Vec<Sum<'_>>, most: usize) -> Vec<Candidate> {
    let key = |sum: &Sum<'_>| Reverse((sum.own, sum.all));
    if let Some(last) = most.checked_sub(1)
        && last < sums.len()
    {
        // Of equals, the names decide.
        let (_, last, _) = sums.select_nth_unstable_by_key(last, key);
        let last = key(last);
        sums.retain(|sum| key(sum) <= last);
    }
    let separator = separator_of(&profile.trace);
    let candidate = |sum: Sum<'_>| {
        let subject = subject_of(profile, sum.site, sum.frame);
        let method = method_of(profile, &subject);
        let name = method.map_or_else(
            || sum.frame.name.to_string(),
            |method| full_name(method, separator),
        );
        Candidate {
            label: label(profile, &subject, &name),
            subject,
            name,
            own: sum.own,
            all: sum.all,
            method: sum.method,
        }
    };
    let mut found: Vec<Candidate> = sums.into_iter().map(candidate).collect();
    found.sort_by(|a, b| {
        let samples = (b.own, b.all).cmp(&(a.own, a.all));
        samples.then_with(|| (&a.label, module(a)).cmp(&(&b.label, module(b))))
    });
    found.truncate(most);
    found
}

/// Sums up by method; `None` when `stop` was wished before it was done.
fn sums<'a>(profile: &'a Profile, filter: &Filter, stop: &Stop) -> Option<Vec<Sum<'a>>> {
    let counts = Counts::of(profile, filter, stop)?;
    let mut sums: Vec<Sum<'a>> = Vec::new();
    let mut index: FxHashMap<Known<'a>, usize> = FxHashMap::default();
    // The sites of an entry are of one method mostly.
    let mut of_entry: Vec<Option<usize>> = vec![None; profile.entries.len()];
    let mut seen = FxHashSet::default();
    let sites = profile.sites.iter().zip(&counts.sites);
    for (site, &samples) in sites.filter(|(_, samples)| **samples > 0) {
        let known = of_entry.get(site.entry as usize).copied().flatten();
        if site.via.is_empty()
            && let Some(sum) = known.and_then(|at| sums.get_mut(at))
            && is_same(sum.frame, &site.frame)
        {
            sum.own += samples;
            sum.all += samples;
            continue;
        }
        let Some(entry) = named_entry(profile, site) else {
            continue;
        };
        seen.clear();
        for (depth, frame) in frames(site).enumerate() {
            let known = Known::of(entry, frame);
            if !site.via.is_empty() && !seen.insert(known) {
                continue;
            }
            let at = *index.entry(known).or_insert_with(|| {
                sums.push(Sum {
                    site,
                    frame,
                    own: 0,
                    all: 0,
                    method: false,
                });
                sums.len() - 1
            });
            let Some(sum) = sums.get_mut(at) else {
                continue;
            };
            sum.all += samples;
            sum.own += if depth == 0 { samples } else { 0 };
            sum.method |= frame.method.is_some()
                || matches!(
                    entry.kind,
                    EntryKind::Code(ConstituentKind::Method | ConstituentKind::Block)
                );
            if depth == 0
                && site.via.is_empty()
                && let Some(slot) = of_entry.get_mut(site.entry as usize)
            {
                *slot = Some(at);
            }
        }
    }
    Some(sums)
}

/// Whether two frames in code of one entry are of one method, as far as that is seen at once.
fn is_same(a: &Frame, b: &Frame) -> bool {
    a.method == b.method && (a.method.is_some() || Arc::ptr_eq(&a.name, &b.name))
}

/// What a [`Subject`] is known by: there are many sites of each.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Known<'a> {
    Method(MethodKey),
    /// Name and module.
    Named(&'a str, &'a str),
}

impl<'a> Known<'a> {
    fn of(entry: &'a Entry, frame: &'a Frame) -> Self {
        match frame.method {
            Some(key) => Known::Method(key),
            None => Known::Named(&frame.name, &entry.module),
        }
    }
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
