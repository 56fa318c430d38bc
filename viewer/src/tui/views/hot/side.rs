//! One side of a matrix: its items as they are counted, then in order.

use super::matrix::Item;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// One side of a matrix that is being counted.
#[derive(Debug)]
pub struct Side<T> {
    index: FxHashMap<T, u32>,
    items: Vec<(T, u64)>,
}

impl<T> Default for Side<T> {
    fn default() -> Self {
        Side {
            index: FxHashMap::default(),
            items: Vec::new(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Side<T> {
    /// The number of an item, which may be new.
    pub fn put(&mut self, what: &T) -> u32 {
        if let Some(&at) = self.index.get(what) {
            return at;
        }
        let at = self.push(what.clone());
        self.index.insert(what.clone(), at);
        at
    }

    /// Puts what was not put before, nor will be again.
    pub fn push(&mut self, what: T) -> u32 {
        let at = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        self.items.push((what, 0));
        at
    }

    /// Adds samples to an item.
    pub fn add(&mut self, at: u32, samples: u64) {
        if let Some((_, sum)) = self.items.get_mut(at as usize) {
            *sum += samples;
        }
    }

    /// The items in order, and of each old index the new one. `name`: what each is called, or
    /// its place by name among those that have no other.
    pub fn in_order<'a, K: Ord>(
        self,
        name: impl Fn(&T) -> Name<'a>,
        key: impl Fn(&T, u64) -> K,
    ) -> (Vec<Item<T>>, Vec<u32>) {
        let mut order: Vec<(K, u32, u32)> = (self.by_name(&name).into_iter().zip(0..))
            .filter_map(|(old, by_name)| {
                let (what, samples) = self.items.get(old as usize)?;
                Some((key(what, *samples), by_name, old))
            })
            .collect();
        order.sort_unstable();
        let mut new_of_old = vec![0; self.items.len()];
        for (&(.., old), new) in order.iter().zip(0..) {
            if let Some(slot) = new_of_old.get_mut(old as usize) {
                *slot = new;
            }
        }
        let mut items: Vec<Option<(T, u64)>> = self.items.into_iter().map(Some).collect();
        let items = order.into_iter().filter_map(|(_, by_name, old)| {
            let (what, samples) = items.get_mut(old as usize)?.take()?;
            Some(Item {
                name: match name(&what) {
                    Name::Text(name) => Some(name),
                    Name::Of(..) => None,
                },
                what,
                samples,
                by_name,
            })
        });
        (items.collect(), new_of_old)
    }

    /// The items by name, those of equal names as they are.
    fn by_name<'a>(&self, name: impl Fn(&T) -> Name<'a>) -> Vec<u32> {
        let mut placed: Vec<(u32, u32)> = Vec::with_capacity(self.items.len());
        let mut others: Vec<(Arc<str>, u32)> = Vec::new();
        let mut order: Vec<u32> = Vec::with_capacity(self.items.len());
        for ((what, _), at) in self.items.iter().zip(0..) {
            match name(what) {
                Name::Of(_, place) => placed.push((place, at)),
                Name::Text(name) => others.push((name, at)),
            }
        }
        placed.sort_unstable();
        others.sort_unstable();
        let name_at = |at: u32| match name(&self.items.get(at as usize)?.0) {
            Name::Of(name, _) => Some(Arc::clone(name)),
            Name::Text(name) => Some(name),
        };
        let mut placed: Vec<u32> = placed.into_iter().map(|(_, at)| at).collect();
        for (text, at) in others {
            let text = (Some(text), at);
            let before = placed.partition_point(|&other| (name_at(other), other) < text);
            order.extend(placed.drain(..before));
            order.push(at);
        }
        order.extend(placed);
        order
    }
}

/// What an item is called.
pub enum Name<'a> {
    /// That.
    Text(Arc<str>),
    /// The name of a method, and its place among these.
    Of(&'a Arc<str>, u32),
}
