//! Frames of a site: its function and the inlined functions.

use crate::profile::{Entry, Frame, Profile, Site, SiteId};

/// A function in a stack.
#[derive(Clone, Copy, Debug)]
pub struct StackFrame<'a> {
    /// The site's entry, which is the innermost function's.
    pub entry: &'a Entry,
    /// Function and location.
    pub place: &'a Frame,
    /// 0 for the compiled function, 1 for functions inlined into it, and so on.
    pub inline_depth: u32,
}

impl StackFrame<'_> {
    /// Whether the function is inlined into the frame before.
    #[must_use]
    pub fn is_inlined(&self) -> bool {
        self.inline_depth > 0
    }
}

/// The frames of a site, after those of its caller, if known; outermost first. Without `inlined`,
/// inlined functions are left out.
pub fn frames_of(
    profile: &Profile,
    site: SiteId,
    inlined: bool,
) -> impl Iterator<Item = StackFrame<'_>> {
    let found = profile.sites.get(site as usize);
    let caller = found.and_then(|site| site.caller);
    let sites = caller.into_iter().chain([site]);
    sites.flat_map(move |site| own_frames_of(profile, site, inlined))
}

fn own_frames_of(
    profile: &Profile,
    site: SiteId,
    inlined: bool,
) -> impl Iterator<Item = StackFrame<'_>> {
    let found = profile.sites.get(site as usize).and_then(|site| {
        let entry = profile.entries.get(site.entry as usize)?;
        Some((site, entry))
    });
    let places = found.into_iter().flat_map(|(site, entry)| {
        let places = places_of(site).zip(0..);
        places.map(move |(place, inline_depth)| StackFrame {
            entry,
            place,
            inline_depth,
        })
    });
    places.take(if inlined { usize::MAX } else { 1 })
}

fn places_of(site: &Site) -> impl Iterator<Item = &Frame> {
    site.via.iter().rev().chain([&site.frame])
}
