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
        /// Identifies it. Never used again for another one; the VM's number of the collection is
        /// a good choice. Not 0.
        pub id: u64,
        /// Extent.
        pub scope: CollectionScope,
        /// Collector in the VM's words (`scavenger`).
        pub collector: Text<'a>,
        /// Kind in the VM's words (`full`); empty if the collector has one kind only.
        pub kind: Text<'a>,
        /// Cause in the VM's words; empty if unknown.
        pub cause: Text<'a>,
        /// Heap spaces; only what is known before it.
        pub spaces: Cow<'a, [SpaceUse<'a>]>,
    }
}

wire_struct! {
    /// The end of a collection.
    pub struct CollectionEnd<'a> {
        /// The collection.
        pub id: u64,
        /// Heap spaces, by the same names as at the start.
        pub spaces: Cow<'a, [SpaceUse<'a>]>,
        /// Surviving bytes, if known.
        pub survived_bytes: Option<u64>,
        /// Tenured bytes, if known.
        pub tenured_bytes: Option<u64>,
    }
}

wire_struct! {
    /// Use of a heap space, in bytes.
    pub struct SpaceUse<'a> {
        /// Name (`eden`, `old`).
        pub name: Text<'a>,
        /// Used bytes, if known: before the collection at its start, after it at its end.
        pub used: Option<u64>,
        /// Capacity in bytes, if known.
        pub capacity: Option<u64>,
    }
}

impl Item for SpaceUse<'_> {}

wire_struct! {
    /// The start of a phase of a collection. Phases that began inside another one lie within it.
    pub struct PhaseBegin<'a> {
        /// The collection.
        pub collection: u64,
        /// Number of the phase in its collection, from 0.
        pub phase: u32,
        /// Name in the VM's words.
        pub name: Text<'a>,
        /// Number of the enclosing phase, if any.
        pub within: Option<u32>,
        /// Whether it stops all mutators.
        pub stop_the_world: bool,
        /// Thread id of its thread, if it has a single one; else 0.
        pub tid: u32,
    }
}

wire_struct! {
    /// The end of a phase.
    pub struct PhaseEnd {
        /// The collection.
        pub collection: u64,
        /// Number of the phase in its collection.
        pub phase: u32,
    }
}

wire_struct! {
    /// An allocation site. Published before the first birth that names it.
    pub struct Site<'a> {
        /// Identifies it; not 0. Never used again for another one.
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

/// Declares a struct of plain words for C, whose form is its fields' in their order.
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
        /// Identifies the object. Never used again for another one.
        pub object: u64,
        /// Id of its class.
        pub class: u64,
        /// Id of its allocation site; 0 if unknown.
        pub site: u64,
        /// Size in bytes.
        pub bytes: u64,
        /// Bytes that the process had allocated before it; `u64::MAX` if unknown.
        pub allocated_bytes: u64,
        /// Number of allocated objects that this one stands for: the inverse of the probability
        /// with which it was sampled. At least 1.
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
    }
}

row! {
    /// The death of an object.
    pub struct Death {
        /// Time in nanoseconds of `CLOCK_MONOTONIC` at which it was observed.
        pub time: u64,
        /// The object.
        pub object: u64,
    }
}

row! {
    /// Counts of objects by the collections that they survived, as in
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
    /// Allocations by one thread, in the order of their times.
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
        /// Id of the collection that observed them; 0 if none did.
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
