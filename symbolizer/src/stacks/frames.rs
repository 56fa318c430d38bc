//! What a site is in a stack: its function, and those that it was inlined through.

use crate::profile::{Entry, Frame, Profile, Site, SiteId};

/// A function of a stack.
#[derive(Clone, Copy, Debug)]
pub struct StackFrame<'a> {
    /// The entry that its site belongs to: of the innermost function.
    pub entry: &'a Entry,
    /// The place.
    pub place: &'a Frame,
    /// 0 for the function that the machine code was made for, 1 for what was inlined
    /// into that, and so on.
    pub inline_depth: u32,
}

impl StackFrame<'_> {
    /// Whether it was inlined into the frame before it.
    #[must_use]
    pub fn is_inlined(&self) -> bool {
        self.inline_depth > 0
    }
}

/// The frames of a site, the outermost first; without those that were inlined unless
/// `inlined`.
pub fn frames_of(
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
