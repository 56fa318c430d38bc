//! Collections, compilations, lifetimes, counters, marks to messages and back.

use super::codes::Code;
use super::process::plain;
use super::{WireError, messages as m};
use crate::{
    AllocationSite, BytecodePc, Class, ClassKey, Collection, CollectionKey, Compilation, Counter,
    CounterMeaning, Fact, Lifetime, Mark, MethodKey, ObjectKey, Phase, ProcessKey, SpaceUse,
    SurvivalBucket, ThreadKey, TimeNs,
};

plain!(Class { key = key: [ClassKey], process = process: [ProcessKey], name = name: same });
plain!(Counter {
    process = process: [ProcessKey], time = time: [TimeNs], section = section: same,
    name = name: same, unit = unit: same, meaning = meaning: (code CounterMeaning),
    value = value: same,
});
plain!(Fact { process = process: [ProcessKey], time = time: [TimeNs], name = name: same, value = value: same });
plain!(Mark { time = time: [TimeNs], text = text: same });
plain!(Phase {
    name = name: same, within = within: same, begin = begin: (option TimeNs),
    end = end: (option TimeNs), stop_the_world = stop_the_world: same,
    thread = thread: (option ThreadKey),
});
plain!(SpaceUse { name = name: same, before = before: same, after = after: same, capacity = capacity: same });
plain!(SurvivalBucket {
    scavenges = scavenges: same, fulls = fulls: same, objects = objects: same, bytes = bytes: same,
    alive_objects = alive_objects: same, alive_bytes = alive_bytes: same,
});

impl From<&Box<Compilation>> for m::Compilation {
    fn from(r: &Box<Compilation>) -> Self {
        m::Compilation {
            process: r.process.0,
            thread: r.thread.0,
            id: r.id,
            name: r.name.clone(),
            tier: r.tier.clone(),
            osr_bci: r.osr_bci,
            absent_at: r.absent_at.map(|time| time.0),
            first_seen: r.first_seen.0,
            last_seen: r.last_seen.0,
            gone_at: r.gone_at.map(|time| time.0),
        }
    }
}

impl TryFrom<m::Compilation> for Box<Compilation> {
    type Error = WireError;

    fn try_from(r: m::Compilation) -> Result<Self, WireError> {
        if r.last_seen < r.first_seen {
            return Err(WireError::Range("last_seen"));
        }
        if r.gone_at.is_some_and(|gone| gone < r.last_seen) {
            return Err(WireError::Range("gone_at"));
        }
        if r.absent_at.is_some_and(|absent| absent > r.first_seen) {
            return Err(WireError::Range("absent_at"));
        }
        Ok(Box::new(Compilation {
            process: ProcessKey(r.process),
            thread: ThreadKey(r.thread),
            id: r.id,
            name: r.name,
            tier: r.tier,
            osr_bci: r.osr_bci,
            absent_at: r.absent_at.map(TimeNs),
            first_seen: TimeNs(r.first_seen),
            last_seen: TimeNs(r.last_seen),
            gone_at: r.gone_at.map(TimeNs),
        }))
    }
}

impl From<&Box<Collection>> for m::Collection {
    fn from(r: &Box<Collection>) -> Self {
        m::Collection {
            key: r.key.0,
            process: r.process.0,
            time: r.time.0,
            collector: r.collector.clone(),
            kind: r.kind.clone(),
            cause: r.cause.clone(),
            number: r.number,
            begin: r.begin.map(|time| time.0),
            end: r.end.map(|time| time.0),
            stop_the_world: r.stop_the_world,
            phases: r.phases.iter().map(Into::into).collect(),
            spaces: r.spaces.iter().map(Into::into).collect(),
            survived_bytes: r.survived_bytes,
            tenured_bytes: r.tenured_bytes,
        }
    }
}

impl TryFrom<m::Collection> for Box<Collection> {
    type Error = WireError;

    fn try_from(r: m::Collection) -> Result<Self, WireError> {
        Ok(Box::new(Collection {
            key: CollectionKey(r.key),
            process: ProcessKey(r.process),
            time: TimeNs(r.time),
            collector: r.collector,
            kind: r.kind,
            cause: r.cause,
            number: r.number,
            begin: r.begin.map(TimeNs),
            end: r.end.map(TimeNs),
            stop_the_world: r.stop_the_world,
            phases: r
                .phases
                .into_iter()
                .map(TryInto::try_into)
                .collect::<Result<_, _>>()?,
            spaces: r
                .spaces
                .into_iter()
                .map(TryInto::try_into)
                .collect::<Result<_, _>>()?,
            survived_bytes: r.survived_bytes,
            tenured_bytes: r.tenured_bytes,
        }))
    }
}

const BIRTH: u32 = 1;
const SURVIVED: u32 = 2;
const DEATH: u32 = 3;
const STILL_ALIVE: u32 = 4;
const AGGREGATE: u32 = 5;

impl From<&Box<Lifetime>> for m::Lifetime {
    fn from(r: &Box<Lifetime>) -> Self {
        match &**r {
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
                buckets: buckets.iter().map(Into::into).collect(),
                ..with_site(site)
            },
        }
    }
}

fn with_site(site: &AllocationSite) -> m::Lifetime {
    m::Lifetime {
        site_methods: site.frames.iter().map(|(method, _)| method.0).collect(),
        site_bytecodes: site.frames.iter().map(|(_, at)| at.0).collect(),
        ..m::Lifetime::default()
    }
}

impl TryFrom<m::Lifetime> for Box<Lifetime> {
    type Error = WireError;

    fn try_from(r: m::Lifetime) -> Result<Self, WireError> {
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
        Ok(Box::new(match r.what {
            BIRTH => Lifetime::Birth {
                object,
                process: ProcessKey(r.process),
                time,
                thread: ThreadKey(r.thread),
                class: ClassKey(r.class),
                bytes: r.bytes,
                site,
                // The inverse of a probability; the negation also refuses NaN.
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
                buckets: r
                    .buckets
                    .into_iter()
                    .map(TryInto::try_into)
                    .collect::<Result<_, _>>()?,
            },
            _ => return Err(WireError::Range("what")),
        }))
    }
}
