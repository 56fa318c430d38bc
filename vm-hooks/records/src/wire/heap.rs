//! Messages of lifetimes.

use super::{Wire, WireError, messages as m};
use crate::{
    AllocationSite, BytecodePc, ClassKey, CollectionKey, Lifetime, MethodKey, ObjectKey,
    ProcessKey, ThreadKey, TimeNs,
};

const BIRTH: u32 = 1;
const SURVIVED: u32 = 2;
const DEATH: u32 = 3;
const STILL_ALIVE: u32 = 4;
const AGGREGATE: u32 = 5;

impl Wire<m::Lifetime> for Lifetime {
    fn to_wire(&self) -> m::Lifetime {
        match self {
            Lifetime::Birth {
                object,
                process,
                time,
                thread,
                class,
                bytes,
                site,
                weight,
                allocated_bytes,
            } => m::Lifetime {
                what: BIRTH,
                object: object.0,
                process: process.0,
                time: time.0,
                thread: thread.0,
                class: class.0,
                bytes: *bytes,
                weight: *weight,
                allocated_bytes: *allocated_bytes,
                ..with_site(site)
            },
            Lifetime::Survived {
                object,
                time,
                collection,
                tenured,
            } => m::Lifetime {
                what: SURVIVED,
                object: object.0,
                time: time.0,
                collection: Some(collection.0),
                tenured: *tenured,
                ..m::Lifetime::default()
            },
            Lifetime::Death {
                object,
                time,
                collection,
            } => m::Lifetime {
                what: DEATH,
                object: object.0,
                time: time.0,
                collection: collection.map(|key| key.0),
                ..m::Lifetime::default()
            },
            Lifetime::StillAlive { object, time } => m::Lifetime {
                what: STILL_ALIVE,
                object: object.0,
                time: time.0,
                ..m::Lifetime::default()
            },
            Lifetime::Aggregate {
                process,
                time,
                class,
                site,
                objects,
                bytes,
                buckets,
            } => m::Lifetime {
                what: AGGREGATE,
                process: process.0,
                time: time.0,
                class: class.0,
                objects: *objects,
                bytes: *bytes,
                buckets: buckets.to_wire(),
                ..with_site(site)
            },
        }
    }

    fn from_wire(r: m::Lifetime) -> Result<Self, WireError> {
        if r.site_methods.len() != r.site_bytecodes.len() {
            return Err(WireError::Columns("site"));
        }
        let site = AllocationSite {
            frames: (r.site_methods.into_iter().map(MethodKey))
                .zip(r.site_bytecodes.into_iter().map(BytecodePc))
                .collect(),
        };
        let object = ObjectKey(r.object);
        let time = TimeNs(r.time);
        Ok(match r.what {
            BIRTH => Lifetime::Birth {
                object,
                process: ProcessKey(r.process),
                time,
                thread: ThreadKey(r.thread),
                class: ClassKey(r.class),
                bytes: r.bytes,
                site,
                // The inverse of a probability; the comparison rejects NaN, too.
                weight: if r.weight >= 1.0 {
                    r.weight
                } else {
                    return Err(WireError::Range("weight"));
                },
                allocated_bytes: r.allocated_bytes,
            },
            SURVIVED => Lifetime::Survived {
                object,
                time,
                collection: CollectionKey(r.collection.ok_or(WireError::Missing("collection"))?),
                tenured: r.tenured,
            },
            DEATH => Lifetime::Death {
                object,
                time,
                collection: r.collection.map(CollectionKey),
            },
            STILL_ALIVE => Lifetime::StillAlive { object, time },
            AGGREGATE => Lifetime::Aggregate {
                process: ProcessKey(r.process),
                time,
                class: ClassKey(r.class),
                site,
                objects: r.objects,
                bytes: r.bytes,
                buckets: Wire::from_wire(r.buckets)?,
            },
            _ => return Err(WireError::Range("what")),
        })
    }
}

fn with_site(site: &AllocationSite) -> m::Lifetime {
    m::Lifetime {
        site_methods: site.frames.iter().map(|(method, _)| method.0).collect(),
        site_bytecodes: site.frames.iter().map(|(_, at)| at.0).collect(),
        ..m::Lifetime::default()
    }
}
