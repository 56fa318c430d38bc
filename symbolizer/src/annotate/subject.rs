//! Methods and functions available for annotation: keys, names, sites, entries.

use super::frames;
use crate::build::code::{full_name, separator_of};
use crate::profile::{Entry, EntryId, Frame, Profile, Site};
use std::sync::Arc;
use vmscope_records::{Method, MethodKey};

/// A method or function available for annotation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A VM's method, with the key from [`Frame::method`].
    Method(MethodKey),
    /// Code with only a name: a native function or stub.
    Named {
        /// Its name.
        name: Arc<str>,
        /// Module, or empty.
        module: String,
    },
}

/// Subject of an entry; `None` for unnamed entries.
#[must_use]
pub fn subject_of_entry(profile: &Profile, entry: EntryId) -> Option<Subject> {
    if !profile.is_named(entry) {
        return None;
    }
    let site = profile.sites.iter().find(|site| site.entry == entry)?;
    Some(subject_of(profile, site, profile.frame_of_entry(site)))
}

/// Entries of a subject, one per tier; empty if the subject has samples only in inlined copies.
#[must_use]
pub fn entries_of_subject(profile: &Profile, subject: &Subject) -> Vec<EntryId> {
    let is_of = |site: &&Site| {
        profile.is_named(site.entry)
            && is_subject(profile, site, profile.frame_of_entry(site), subject)
    };
    let sites = profile.sites.iter().filter(is_of);
    let mut entries: Vec<EntryId> = sites.map(|site| site.entry).collect();
    entries.sort_unstable();
    entries.dedup();
    entries
}

/// The site's entry, if named.
pub(super) fn named_entry<'a>(profile: &'a Profile, site: &Site) -> Option<&'a Entry> {
    profile
        .is_named(site.entry)
        .then(|| &profile.entries[site.entry])
}

pub(super) fn subject_of(profile: &Profile, site: &Site, frame: &Frame) -> Subject {
    if let Some(key) = frame.method {
        return Subject::Method(key);
    }
    Subject::Named {
        name: Arc::clone(&frame.name),
        module: profile.entries[site.entry].module.clone(),
    }
}

/// Whether [`subject_of`] is `chosen`, without allocation.
pub(super) fn is_subject(profile: &Profile, site: &Site, frame: &Frame, chosen: &Subject) -> bool {
    match (chosen, frame.method) {
        (Subject::Method(key), method) => method == Some(*key),
        (Subject::Named { .. }, Some(_)) => false,
        (Subject::Named { name, module }, None) => {
            frame.name == *name && profile.entries[site.entry].module == *module
        }
    }
}

/// Depth of a method in a site's chain; the innermost frame counts.
pub(super) fn depth_of(profile: &Profile, site: &Site, chosen: &Subject) -> Option<usize> {
    named_entry(profile, site)?;
    frames(site).position(|frame| is_subject(profile, site, frame, chosen))
}

/// The subject's method record, if the recording holds one.
pub(super) fn method_of<'a>(profile: &'a Profile, subject: &Subject) -> Option<&'a Method> {
    match subject {
        Subject::Method(key) => profile.trace.methods.get(key),
        Subject::Named { .. } => None,
    }
}

pub(super) fn name_of(profile: &Profile, subject: &Subject) -> String {
    match (subject, method_of(profile, subject)) {
        (Subject::Named { name, .. }, _) => name.to_string(),
        (_, Some(method)) => full_name(method, separator_of(&profile.trace)),
        (_, None) => String::new(),
    }
}
