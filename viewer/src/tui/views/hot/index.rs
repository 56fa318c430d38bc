//! Where in a matrix a sample counts, and how sure the shares are that come of it.

use super::facts::Facts;
use super::matrix::{Axis, Errors, Matrix};
use rustc_hash::FxHashMap;
use vmscope_symbolizer::attribution::{Owner, owner_errors};
use vmscope_symbolizer::{EntryId, Filter, Profile, Stop};

/// Where in a matrix a sample counts: by the indices of [`Matrix::who`] and
/// [`Matrix::categories`].
#[derive(Debug)]
pub struct Index<'a> {
    /// Which entries are one method.
    pub facts: &'a Facts,
    /// What stands against the categories.
    pub axis: Axis,
    /// By entry.
    pub category_of_entry: Vec<u32>,
    /// By method.
    pub who_of_method: Vec<u32>,
    /// Of owners that are not methods.
    pub who_of_owner: FxHashMap<Owner, u32>,
    /// By thread, where these stand against the categories.
    pub who_of_thread: FxHashMap<u32, u32>,
}

impl Index<'_> {
    /// Whose a sample is.
    fn who(&self, thread: u32, owner: Owner) -> Option<u32> {
        match (self.axis, owner) {
            (Axis::Threads, _) => self.who_of_thread.get(&thread).copied(),
            (Axis::Methods, Owner::Method(entry)) => {
                match self.facts.methods.of_entry.get(entry as usize) {
                    Some(&method) => self.who_of_method.get(method as usize).copied(),
                    None => self.who_of_owner.get(&owner).copied(),
                }
            }
            (Axis::Methods, _) => self.who_of_owner.get(&owner).copied(),
        }
    }

    /// The errors of all shares, where there are samples enough; the outer `None` when `stop`
    /// was wished before it was done.
    pub fn errors(
        &self,
        profile: &Profile,
        matrix: &Matrix,
        filter: &Filter,
        stop: &Stop,
    ) -> Option<Option<Errors>> {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (who, categories) = (matrix.who.len(), matrix.categories.len());
        let (of_categories, of_cells) = (number(who), number(who + categories));
        let groups_of = |thread: u32, entry: EntryId, owner: Owner| {
            let who = self.who(thread, owner)?;
            let category = *self.category_of_entry.get(entry as usize)?;
            let cell = number(matrix.cells.at(who, category)?);
            let category = of_categories.saturating_add(category);
            Some([who, category, of_cells.saturating_add(cell)])
        };
        // Most samples are their own entry's.
        let mut own: Vec<Option<[u32; 3]>> = vec![None; profile.entries.len()];
        let put = |thread: u32, entry: EntryId, owner: Owner, hand_on: &mut dyn FnMut(u32)| {
            let is_own = self.axis == Axis::Methods && owner == Owner::Method(entry);
            let groups = match own.get_mut(entry as usize).filter(|_| is_own) {
                Some(known) => {
                    if known.is_none() {
                        *known = groups_of(thread, entry, owner);
                    }
                    *known
                }
                None => groups_of(thread, entry, owner),
            };
            groups.into_iter().flatten().for_each(hand_on);
        };
        let groups = who + categories + matrix.cells.all().len();
        let mut all = owner_errors(profile, filter, (matrix.total, groups), stop, put)?;
        if all.is_empty() {
            return Some(None);
        }
        let cells = all.split_off((who + categories).min(all.len()));
        let categories = all.split_off(who.min(all.len()));
        Some(Some(Errors {
            who: all,
            categories,
            cells,
        }))
    }
}
