//! Events of running collections.

/// Kinds of collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of new space.
    Scavenge,
    /// Of all spaces.
    Full,
}

/// Used bytes and capacities of the spaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of eden in use.
    pub eden_used: usize,
    /// Bytes of eden.
    pub eden_capacity: usize,
    /// Bytes of the past survivor space in use.
    pub survivor_used: usize,
    /// Bytes of one survivor space.
    pub survivor_capacity: usize,
    /// Bytes of old space in use.
    pub old_used: usize,
    /// Bytes of old space's segments.
    pub old_capacity: usize,
}

/// A collection begins.
#[derive(Clone, Copy, Debug)]
pub struct Begin<'a> {
    /// Number of the collection, counted from 1.
    pub number: u64,
    /// Which collector.
    pub kind: Kind,
    /// Why.
    pub cause: &'a str,
    /// Before it.
    pub sizes: Sizes,
}

/// A collection is over.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Which collector.
    pub kind: Kind,
    /// After it.
    pub sizes: Sizes,
    /// Bytes of live objects found: a scavenge counts new space, a full collection counts new and
    /// old space.
    pub survived_bytes: usize,
    /// Bytes that it moved from new space to old space.
    pub tenured_bytes: usize,
    /// Number of live objects found.
    pub survived_objects: u64,
}

/// Receives collection events as they happen. A full collection begins with a scavenge, reported as
/// a separate collection.
///
/// Phases of a scavenge: "roots", "remembered set", "copying", "ephemerons" (with weak objects);
/// phases of a full collection: "mark" (with ephemerons and weak objects), "plan", "update",
/// "compact".
pub trait Observer {
    /// A collection begins.
    fn collection_begin(&mut self, begin: &Begin<'_>);
    /// A phase of it begins.
    fn phase_begin(&mut self, name: &'static str);
    /// Ends the current phase.
    fn phase_end(&mut self);
    /// The collection is over. Returns the time in nanoseconds of `CLOCK_MONOTONIC`; 0 if nobody needs
    /// it.
    fn collection_end(&mut self, end: &End) -> u64;
}

/// Nobody listens.
impl Observer for () {
    fn collection_begin(&mut self, _: &Begin<'_>) {}
    fn phase_begin(&mut self, _: &'static str) {}
    fn phase_end(&mut self) {}
    fn collection_end(&mut self, _: &End) -> u64 {
        0
    }
}
