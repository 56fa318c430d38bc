//! Events about the heap: collections, and lifetimes of objects.

use std::borrow::Cow;

use super::wire::{
    DecodeError, Item, Sink, Text, Wire, Words, pair, unpair, wire_enum, wire_struct,
};

wire_enum! {
    /// Extent of a collection, as in `vmscope_records::CollectionScope`.
    pub enum CollectionScope {
        /// A concurrent cycle: mutators run, except in its phases that stop the world.
        Cycle = 0,
        /// A whole collection that stops all mutators from begin to end.
        Whole = 1,
        /// A pause of a concurrent cycle.
        CyclePause = 2,
    }
}

wire_struct! {
    /// The start of a collection.
    pub struct CollectionBegin<'a> {
        /// Unique id, never reused; the VM's number of the collection is a good choice. Not 0.
        pub id: u64,
        /// Extent.
        pub scope: CollectionScope,
        /// Collector in the VM's words (`scavenger`).
        pub collector: Text<'a>,
        /// Kind in the VM's words (`full`); empty for collectors with a single kind.
        pub kind: Text<'a>,
        /// Cause in the VM's words; empty if unknown.
        pub cause: Text<'a>,
        /// Heap spaces; only figures known before the collection.
        pub spaces: Cow<'a, [SpaceUse<'a>]>,
    }
}

wire_struct! {
    /// The end of a collection.
    pub struct CollectionEnd<'a> {
        /// The collection.
        pub id: u64,
        /// Heap spaces, named as in [`CollectionBegin::spaces`].
        pub spaces: Cow<'a, [SpaceUse<'a>]>,
        /// Surviving bytes, if known.
        pub survived_bytes: Option<u64>,
        /// Tenured bytes, if known.
        pub tenured_bytes: Option<u64>,
        /// Number of surviving objects, if known.
        pub survived_objects: Option<u64>,
        /// CPU time of the collector's threads in nanoseconds, if known.
        pub cpu_ns: Option<u64>,
    }
}

wire_struct! {
    /// Use of a heap space, in bytes.
    pub struct SpaceUse<'a> {
        /// Name (`eden`, `old`).
        pub name: Text<'a>,
        /// Used bytes, if known. [`CollectionBegin`] gives the use before the collection,
        /// [`CollectionEnd`] the use afterwards.
        pub used: Option<u64>,
        /// Capacity in bytes, if known.
        pub capacity: Option<u64>,
    }
}

impl Item for SpaceUse<'_> {}

wire_struct! {
    /// The start of a collection's phase. A phase that begins inside another phase is nested in
    /// that phase.
    pub struct PhaseBegin<'a> {
        /// The collection.
        pub collection: u64,
        /// Number of the phase, counted from 0 in each collection.
        pub phase: u32,
        /// Name in the VM's words.
        pub name: Text<'a>,
        /// Number of the enclosing phase, if any.
        pub within: Option<u32>,
        /// Whether the phase stops all mutators.
        pub stop_the_world: bool,
        /// Id of the phase's thread; 0 unless the phase has a single thread.
        pub tid: u32,
    }
}

wire_struct! {
    /// The end of a phase.
    pub struct PhaseEnd {
        /// The collection.
        pub collection: u64,
        /// Number of the phase, as in [`PhaseBegin::phase`].
        pub phase: u32,
    }
}

wire_struct! {
    /// An allocation site. Published before the first birth that names it.
    pub struct Site<'a> {
        /// Unique id, never reused; not 0.
        pub id: u64,
        /// Allocating method and its callers, innermost first.
        pub frames: Cow<'a, [SiteFrame]>,
    }
}

/// A method and a bytecode of an allocation site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SiteFrame {
    /// Id of the method.
    pub method: u64,
    /// Bytecode pc.
    pub bytecode: u32,
    /// Must be 0.
    pub reserved: u32,
}

impl Wire for SiteFrame {
    const LEAST: usize = 2;

    fn encode<S: Sink>(&self, sink: &mut S) {
        sink.word(self.method);
        sink.word(pair(self.bytecode, self.reserved));
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        let method = words.take()?;
        let (bytecode, reserved) = unpair(words.take()?);
        Ok(Self {
            method,
            bytecode,
            reserved,
        })
    }
}

impl Item for SiteFrame {}

/// Declares a struct of plain words for C. The encoding is the fields' encodings in order.
macro_rules! row {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$of_field:meta])* pub $field:ident: $type:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[repr(C)]
        pub struct $name {
            $($(#[$of_field])* pub $field: $type,)*
        }

        impl Wire for $name {
            const LEAST: usize = 0 $(+ <$type as Wire>::LEAST)*;

            #[inline]
            fn encode<S: Sink>(&self, sink: &mut S) {
                $(self.$field.encode(sink);)*
            }

            fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
                Ok(Self { $($field: Wire::decode(words)?,)* })
            }
        }

        impl Item for $name {}
    };
}

row! {
    /// The allocation of an object.
    pub struct Birth {
        /// Time in nanoseconds of `CLOCK_MONOTONIC`.
        pub time: u64,
        /// Unique id of the object, never reused.
        pub object: u64,
        /// Id of its class.
        pub class: u64,
        /// Id of its allocation site; 0 if unknown.
        pub site: u64,
        /// Size in bytes.
        pub bytes: u64,
        /// Bytes allocated by the process before this object; `u64::MAX` if unknown.
        pub allocated_bytes: u64,
        /// Number of allocated objects that this sampled object represents: the inverse of the
        /// object's sampling probability. At least 1.
        pub weight: f64,
    }
}

row! {
    /// The survival of an object.
    pub struct Survival {
        /// Time in nanoseconds of `CLOCK_MONOTONIC`.
        pub time: u64,
        /// The object.
        pub object: u64,
        /// 1 if the collection tenured it, else 0.
        pub tenured: u64,
        /// Id of the class of its holder, the object that led the collection to it; 0 if unknown, and
        /// for a root.
        pub holder: u64,
    }
}

row! {
    /// The death of an object.
    pub struct Death {
        /// Time of observation in nanoseconds of `CLOCK_MONOTONIC`.
        pub time: u64,
        /// The object.
        pub object: u64,
    }
}

row! {
    /// Counts of objects, grouped by number of survived collections, as in
    /// `vmscope_records::SurvivalBucket`.
    pub struct SurvivalBucket {
        /// Survived scavenges.
        pub scavenges: u64,
        /// Survived full collections.
        pub fulls: u64,
        /// Objects that died afterwards.
        pub objects: u64,
        /// Bytes of `objects`.
        pub bytes: u64,
        /// Objects that are still alive.
        pub alive_objects: u64,
        /// Bytes of `alive_objects`.
        pub alive_bytes: u64,
    }
}

wire_struct! {
    /// Allocations by one thread, ordered by time.
    pub struct Births<'a> {
        /// Thread id of the thread.
        pub tid: u32,
        /// The objects.
        pub births: Cow<'a, [Birth]>,
    }
}

wire_struct! {
    /// Objects that survived a collection.
    pub struct Survivals<'a> {
        /// Id of the collection.
        pub collection: u64,
        /// The objects.
        pub survivals: Cow<'a, [Survival]>,
    }
}

wire_struct! {
    /// Dead objects.
    pub struct Deaths<'a> {
        /// Id of the collection that observed the deaths; 0 if no collection did.
        pub collection: u64,
        /// The objects.
        pub deaths: Cow<'a, [Death]>,
    }
}

wire_struct! {
    /// Counts from a VM that counts every object. Later counts replace earlier ones of the same
    /// class and site.
    pub struct Lifetimes<'a> {
        /// Id of the class.
        pub class: u64,
        /// Id of the allocation site; 0 if unknown.
        pub site: u64,
        /// Number of allocated objects.
        pub objects: u64,
        /// Bytes of `objects`.
        pub bytes: u64,
        /// Their survival.
        pub buckets: Cow<'a, [SurvivalBucket]>,
    }
}
