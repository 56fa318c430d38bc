//! Object lifetimes: births, and what collections observed later, single or counted.
//!
//! Single events travel in columns: a million births take a few bytes each, in memory as in the
//! file. An object without an observed death was alive when the recording ended (censored, DESIGN.md
//! §6), except where lifetimes are lost.

use crate::{
    BytecodePc, ClassKey, CollectionKey, MethodKey, ObjectKey, ProcessKey, SiteKey, ThreadKey,
    TimeNs,
};

/// A class, written once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Key.
    pub key: ClassKey,
    /// The process of the class.
    pub process: ProcessKey,
    /// Name as users write it.
    pub name: String,
}

/// An allocation site, written once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AllocationSite {
    /// Key.
    pub key: SiteKey,
    /// The process of the methods.
    pub process: ProcessKey,
    /// Allocating method and, on request, its callers, innermost first, each with a bytecode.
    pub frames: Vec<(MethodKey, BytecodePc)>,
}

/// Counts of objects by their number of survived collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SurvivalBucket {
    /// Survived scavenges (minor collections).
    pub scavenges: u32,
    /// Survived full collections.
    pub fulls: u32,
    /// Objects that died afterwards.
    pub objects: u64,
    /// Bytes of `objects`.
    pub bytes: u64,
    /// Objects alive at the time of counting: censored, not dead (DESIGN.md §6).
    pub alive_objects: u64,
    /// Bytes of `alive_objects`.
    pub alive_bytes: u64,
}

/// The allocation of an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Birth {
    /// The object.
    pub object: ObjectKey,
    /// Time of allocation.
    pub time: TimeNs,
    /// Class.
    pub class: ClassKey,
    /// Allocation site, if known.
    pub site: Option<SiteKey>,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of allocated objects that this one represents: the inverse of its sampling
    /// probability; at least 1.
    pub weight: f64,
    /// Bytes allocated in the process before it, if known; at most `u64::MAX - 1`.
    pub allocated_bytes: Option<u64>,
}

/// Allocations of one thread, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Births {
    /// The process of the heap.
    pub process: ProcessKey,
    /// Allocating thread, if known.
    pub thread: Option<ThreadKey>,
    pub(crate) columns: BirthColumns,
}

/// Columns with one value per birth. A column of unknown or ordinary values is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BirthColumns {
    pub objects: Vec<u64>,
    pub times: Vec<u64>,
    pub classes: Vec<u64>,
    pub bytes: Vec<u64>,
    /// One more than the site's key; 0 if unknown.
    pub sites: Vec<u64>,
    pub weights: Vec<f64>,
    /// Number of bytes + 1; 0 if unknown.
    pub allocated: Vec<u64>,
}

impl Births {
    /// An empty list.
    #[must_use]
    pub fn new(process: ProcessKey, thread: Option<ThreadKey>) -> Self {
        Births {
            process,
            thread,
            columns: BirthColumns::default(),
        }
    }

    /// Appends a birth.
    pub fn push(&mut self, birth: Birth) {
        let before = self.len();
        let columns = &mut self.columns;
        columns.objects.push(birth.object.0);
        columns.times.push(birth.time.0);
        columns.classes.push(birth.class.0);
        columns.bytes.push(birth.bytes);
        let one_more = |number: u64| number.saturating_add(1);
        let site = birth.site.map_or(0, |site| one_more(site.0));
        put(&mut columns.sites, before, site, 0);
        put(&mut columns.weights, before, birth.weight, 1.0);
        let allocated = birth.allocated_bytes.map_or(0, one_more);
        put(&mut columns.allocated, before, allocated, 0);
    }

    /// Number of births.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.times.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The births, in order.
    pub fn iter(&self) -> impl Iterator<Item = Birth> + '_ {
        let columns = &self.columns;
        let rows = columns.objects.iter().zip(&columns.times);
        let rows = rows.zip(&columns.classes).zip(&columns.bytes).enumerate();
        rows.map(move |(row, (((object, time), class), bytes))| Birth {
            object: ObjectKey(*object),
            time: TimeNs(*time),
            class: ClassKey(*class),
            site: one_less(&columns.sites, row).map(SiteKey),
            bytes: *bytes,
            weight: columns.weights.get(row).copied().unwrap_or(1.0),
            allocated_bytes: one_less(&columns.allocated, row),
        })
    }

    /// Time of the first birth.
    #[must_use]
    pub fn time(&self) -> TimeNs {
        TimeNs(self.columns.times.first().copied().unwrap_or_default())
    }
}

/// The key in a column of keys + 1.
fn one_less(column: &[u64], row: usize) -> Option<u64> {
    column.get(row)?.checked_sub(1)
}

/// Appends `value` to a column; a column of `ordinary` values stays empty.
fn put<T: Copy + PartialEq>(column: &mut Vec<T>, rows: usize, value: T, ordinary: T) {
    if !column.is_empty() || value != ordinary {
        column.resize(rows, ordinary);
        column.push(value);
    }
}

/// State of an object at an observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// Dead.
    #[default]
    Died,
    /// Alive after the collection, in new space.
    Survived,
    /// Alive after the collection, which moved it to old space.
    Tenured,
}

/// An observation of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectFate {
    /// The object.
    pub object: ObjectKey,
    /// Time of the observation.
    pub time: TimeNs,
    /// Its state.
    pub fate: Fate,
    /// Class of its holder, the object that led the collection to it. `None`: a root, or unknown.
    pub holder: Option<ClassKey>,
}

/// Objects observed by one collection, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// The process of the heap.
    pub process: ProcessKey,
    /// The observing collection, if known.
    pub collection: Option<CollectionKey>,
    pub(crate) objects: Vec<u64>,
    pub(crate) times: Vec<u64>,
    pub(crate) fates: Vec<Fate>,
    /// Keys + 1 of the holders' classes, 0 for no holder; empty if no object has a holder.
    pub(crate) holders: Vec<u64>,
}

impl Fates {
    /// An empty list.
    #[must_use]
    pub fn new(process: ProcessKey, collection: Option<CollectionKey>) -> Self {
        Fates {
            process,
            collection,
            ..Fates::default()
        }
    }

    /// Appends an observation.
    pub fn push(&mut self, one: ObjectFate) {
        let holder = one.holder.map_or(0, |class| class.0.saturating_add(1));
        put(&mut self.holders, self.objects.len(), holder, 0);
        self.objects.push(one.object.0);
        self.times.push(one.time.0);
        self.fates.push(one.fate);
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The observations, in order.
    pub fn iter(&self) -> impl Iterator<Item = ObjectFate> + '_ {
        let rows = self.objects.iter().zip(&self.times).zip(&self.fates);
        rows.enumerate()
            .map(|(row, ((object, time), fate))| ObjectFate {
                object: ObjectKey(*object),
                time: TimeNs(*time),
                fate: *fate,
                holder: one_less(&self.holders, row).map(ClassKey),
            })
    }

    /// Time of the first observation.
    #[must_use]
    pub fn time(&self) -> TimeNs {
        TimeNs(self.times.first().copied().unwrap_or_default())
    }
}

/// Counts of a class and site, from a VM that counts every object. Later counts supersede earlier
/// ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LifetimeCounts {
    /// The process of the heap.
    pub process: ProcessKey,
    /// Time of counting.
    pub time: TimeNs,
    /// Class.
    pub class: ClassKey,
    /// Allocation site, if known.
    pub site: Option<SiteKey>,
    /// Number of allocated objects.
    pub objects: u64,
    /// Bytes of `objects`.
    pub bytes: u64,
    /// Survival of the objects.
    pub buckets: Vec<SurvivalBucket>,
}
