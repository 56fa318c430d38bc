//! Typed indices.
//!
//! A vector makes the ids of its values, so each id has a value: code indexes directly and needs no
//! plan for a missing one. A missing value is a bug of vmscope. The index then panics like a
//! slice's index, because a wrong figure without a message is worse. Only code that combines two
//! states of a growing profile may hold an unknown id: it uses [`IndexVec::get`] and says why.

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::{Deref, DerefMut, Index, IndexMut};

/// Index of an [`IndexVec`]. `Option<Id>` takes 4 bytes, too.
pub trait Id: Copy + Debug + Ord + Hash {
    /// The id of an index.
    ///
    /// # Panics
    ///
    /// Panics from index 2^32 - 1 on. Memory ends earlier.
    fn of(index: usize) -> Self;

    /// The index.
    fn index(self) -> usize;

    /// The next id.
    #[inline]
    fn next(self) -> Self {
        Self::of(self.index() + 1)
    }

    /// The index in 32 bits.
    #[expect(clippy::cast_possible_truncation, reason = "made of 32 bits")]
    #[inline]
    fn number(self) -> u32 {
        self.index() as u32
    }
}

#[inline]
fn nonzero_of(index: usize) -> NonZeroU32 {
    let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
    number.expect("an index has 32 bits")
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU32);

        const _: () = assert!(size_of::<Option<$name>>() == 4);

        impl Id for $name {
            #[inline]
            fn of(index: usize) -> Self {
                $name(nonzero_of(index))
            }

            #[inline]
            fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl Debug for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(out, concat!(stringify!($name), "({})"), self.index())
            }
        }
    )*};
}

ids! {
    /// Index of [`Profile::entries`](crate::Profile::entries).
    EntryId
    /// Index of [`Profile::sites`](crate::Profile::sites).
    SiteId
    /// Index of [`Methods::names`](crate::methods::Methods::names).
    MethodId
    /// Index of [`Trace::places`](crate::Trace::places).
    PlaceId
    /// Index of [`Trace::threads`](crate::Trace::threads).
    ThreadId
    /// A piece of code: see [`Trace::constituent`](crate::Trace::constituent).
    CodeId
    /// Index of the placements of code zones.
    PlacementId
    /// Index of [`CallTree::functions`](crate::calls::CallTree::functions).
    FunctionId
    /// Index of [`Trace::chains`](crate::Trace::chains).
    ChainId
    /// Index of a [`StackTree`](crate::stacks::StackTree).
    StackId
    /// Index of the stacks of [`StackIndex`](crate::calls::StackIndex).
    ContextId
    /// Index of the threads of [`StackIndex`](crate::calls::StackIndex).
    IndexedThread
    /// Index of the spots of [`TimeBuckets`](crate::time_buckets::TimeBuckets).
    SpotId
    /// Index of [`Lifetimes::classes`](crate::lifetimes::Lifetimes::classes).
    ClassId
    /// Index of [`Lifetimes::sites`](crate::lifetimes::Lifetimes::sites).
    AllocationSiteId
    /// Index of [`Lifetimes::collections`](crate::lifetimes::Lifetimes::collections).
    CollectionId
}

/// Vector indexed by ids of type `I`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexVec<I, T> {
    all: Vec<T>,
    id: PhantomData<fn(I) -> I>,
}

impl<I: Id, T> IndexVec<I, T> {
    /// Adds a value.
    #[inline]
    pub fn push(&mut self, value: T) -> I {
        self.all.push(value);
        I::of(self.all.len() - 1)
    }

    /// The value of an id; `None` if the id is newer than this vector.
    #[must_use]
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.all.get(id.index())
    }

    /// The slot of an id. New slots up to it hold `empty`.
    #[inline]
    pub fn slot(&mut self, id: I, empty: T) -> &mut T
    where
        T: Clone,
    {
        if id.index() >= self.all.len() {
            self.all.resize(id.index() + 1, empty);
        }
        &mut self[id]
    }

    /// All ids, ascending.
    #[inline]
    pub fn ids(
        &self,
    ) -> impl ExactSizeIterator<Item = I> + DoubleEndedIterator + Clone + use<I, T> {
        (0..self.all.len()).map(I::of)
    }

    /// All values with their ids, ascending.
    #[inline]
    pub fn enumerated(
        &self,
    ) -> impl ExactSizeIterator<Item = (I, &T)> + DoubleEndedIterator + Clone {
        self.ids().zip(&self.all)
    }

    /// Copies `value` for each id.
    #[must_use]
    pub fn with_each<U: Clone>(&self, value: U) -> IndexVec<I, U> {
        vec![value; self.all.len()].into()
    }

    /// Computes a value for each id.
    #[must_use]
    pub fn map<'a, U>(&'a self, mut of: impl FnMut(I, &'a T) -> U) -> IndexVec<I, U> {
        self.enumerated().map(|(id, value)| of(id, value)).collect()
    }
}

impl<I, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I, T> From<Vec<T>> for IndexVec<I, T> {
    fn from(all: Vec<T>) -> Self {
        let id = PhantomData;
        IndexVec { all, id }
    }
}

impl<I, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(all: A) -> Self {
        Vec::from_iter(all).into()
    }
}

impl<I, T> Deref for IndexVec<I, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.all
    }
}

impl<I, T> DerefMut for IndexVec<I, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.all
    }
}

impl<I: Id, T> Index<I> for IndexVec<I, T> {
    type Output = T;

    #[track_caller]
    #[inline]
    fn index(&self, id: I) -> &T {
        &self.all[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IndexVec<I, T> {
    #[track_caller]
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.all[id.index()]
    }
}

impl<I, T> IntoIterator for IndexVec<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.into_iter()
    }
}

impl<'a, I, T> IntoIterator for &'a IndexVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

impl<'a, I, T> IntoIterator for &'a mut IndexVec<I, T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter_mut()
    }
}
