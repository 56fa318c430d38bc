//! Frames of a site: its function and the inlined functions.

use crate::profile::{Entry, Frame, Profile, Site, SiteId};

/// A function in a stack.
#[derive(Clone, Copy, Debug)]
pub struct StackFrame<'a> {
    /// The site's entry, which is the innermost function's.
    pub entry: &'a Entry,
    /// Function and location.
    pub place: &'a Frame,
    /// 0 for the compiled function, 1 for a function inlined there, and so on.
    pub inline_depth: u32,
}

impl StackFrame<'_> {
    /// Whether the previous frame's function contains this function inlined.
    #[must_use]
    pub fn is_inlined(&self) -> bool {
        self.inline_depth > 0
    }
}

/// Frames of a site, behind the frames of its caller, if known; outermost first. Without `inlined`,
/// inlined functions are omitted.
pub fn frames_of(
    profile: &Profile,
    site: SiteId,
    inlined: bool,
) -> impl Iterator<Item = StackFrame<'_>> {
    let sites = profile.sites[site].caller.into_iter().chain([site]);
    sites.flat_map(move |site| own_frames_of(profile, site, inlined))
}

fn own_frames_of(
    profile: &Profile,
    site: SiteId,
    inlined: bool,
) -> impl Iterator<Item = StackFrame<'_>> {
    let site = &profile.sites[site];
    let places = places_of(site)
        .zip(0..)
        .map(|(place, inline_depth)| StackFrame {
            entry: &profile.entries[site.entry],
            place,
            inline_depth,
        });
    places.take(if inlined { usize::MAX } else { 1 })
}

fn places_of(site: &Site) -> impl Iterator<Item = &Frame> {
    site.via.iter().rev().chain([&site.frame])
}
