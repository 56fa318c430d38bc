//! Messages of lifetimes.

use super::samples::{deltas, sums};
use super::{Wire, WireError, messages as m};
use crate::lifetime::BirthColumns;
use crate::{
    AllocationSite, Births, BytecodePc, CollectionKey, Fate, Fates, MethodKey, ProcessKey, SiteKey,
    ThreadKey,
};

impl Wire<m::AllocationSite> for AllocationSite {
    fn to_wire(&self) -> m::AllocationSite {
        m::AllocationSite {
            key: self.key.0,
            process: self.process.0,
            methods: self.frames.iter().map(|(method, _)| method.0).collect(),
            bytecodes: self.frames.iter().map(|(_, at)| at.0).collect(),
        }
    }

    fn from_wire(r: m::AllocationSite) -> Result<Self, WireError> {
        if r.methods.len() != r.bytecodes.len() {
            return Err(WireError::Columns("site"));
        }
        let methods = r.methods.into_iter().map(MethodKey);
        Ok(AllocationSite {
            key: SiteKey(r.key),
            process: ProcessKey(r.process),
            frames: methods
                .zip(r.bytecodes.into_iter().map(BytecodePc))
                .collect(),
        })
    }
}

impl Wire<m::Births> for Births {
    fn to_wire(&self) -> m::Births {
        let columns = &self.columns;
        m::Births {
            process: self.process.0,
            thread: self.thread.map(|key| key.0),
            object_deltas: deltas(columns.objects.iter().copied()),
            time_deltas: deltas(columns.times.iter().copied()),
            classes: columns.classes.clone(),
            bytes: columns.bytes.clone(),
            sites: columns.sites.clone(),
            weights: columns.weights.clone(),
            allocated_deltas: deltas(columns.allocated.iter().copied()),
        }
    }

    fn from_wire(r: m::Births) -> Result<Self, WireError> {
        let count = r.time_deltas.len();
        let optional = [r.sites.len(), r.weights.len(), r.allocated_deltas.len()];
        let are_whole = [r.object_deltas.len(), r.classes.len(), r.bytes.len()]
            .iter()
            .all(|length| *length == count);
        if !are_whole || optional.iter().any(|length| ![0, count].contains(length)) {
            return Err(WireError::Columns("births"));
        }
        // The inverse of a probability; the comparison rejects NaN, too.
        if !r.weights.iter().all(|weight| *weight >= 1.0) {
            return Err(WireError::Range("weight"));
        }
        Ok(Births {
            process: ProcessKey(r.process),
            thread: r.thread.map(ThreadKey),
            columns: BirthColumns {
                objects: sums(r.object_deltas).collect(),
                times: sums(r.time_deltas).collect(),
                classes: r.classes,
                bytes: r.bytes,
                sites: r.sites,
                weights: r.weights,
                allocated: sums(r.allocated_deltas).collect(),
            },
        })
    }
}

impl Wire<m::Fates> for Fates {
    fn to_wire(&self) -> m::Fates {
        m::Fates {
            process: self.process.0,
            collection: self.collection.map(|key| key.0),
            object_deltas: deltas(self.objects.iter().copied()),
            time_deltas: deltas(self.times.iter().copied()),
            fates: self.fates.iter().map(|fate| *fate as u8).collect(),
            holders: self.holders.clone(),
        }
    }

    fn from_wire(r: m::Fates) -> Result<Self, WireError> {
        let count = r.time_deltas.len();
        let are_whole = r.object_deltas.len() == count && r.fates.len() == count;
        if !are_whole || ![0, count].contains(&r.holders.len()) {
            return Err(WireError::Columns("fates"));
        }
        let fate = |code: &u8| match *code {
            0 => Ok(Fate::Died),
            1 => Ok(Fate::Survived),
            2 => Ok(Fate::Tenured),
            _ => Err(WireError::Range("fates")),
        };
        Ok(Fates {
            process: ProcessKey(r.process),
            collection: r.collection.map(CollectionKey),
            objects: sums(r.object_deltas).collect(),
            times: sums(r.time_deltas).collect(),
            fates: r.fates.iter().map(fate).collect::<Result<_, _>>()?,
            holders: r.holders,
        })
    }
}
