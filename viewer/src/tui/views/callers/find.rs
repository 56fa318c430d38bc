//! Searching: which functions have a pattern in their names, and in how many of the stacks
//! they are.

use super::{Callers, Form, draw, words};
use crate::tui::jobs::{Fetched, Question, QuestionId, Stamp};
use crate::tui::views::{Cx, Find};
use crate::tui::widgets::search;
use std::sync::Arc;
use vmscope_symbolizer::calls::{CallTree, CallsOf, NodeId};

/// A search.
#[derive(Clone, Debug, Default)]
pub struct Search {
    pattern: String,
    /// By function; empty where nothing is searched for.
    fits: Arc<Vec<bool>>,
    /// Where it began.
    nodes: search::Search<NodeId>,
    /// Samples of stacks with a match.
    found: Fetched<(String, CallsOf, Stamp), u64>,
    ended: bool,
}

impl Search {
    /// By function, whether it was found; empty where nothing is searched for.
    pub fn fits(&self) -> &[bool] {
        &self.fits
    }

    /// What is searched for; may be empty.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// How many functions were found, and in how many samples they are, once that is known.
    pub fn found(&self) -> (usize, Option<u64>) {
        let functions = self.fits.iter().filter(|fits| **fits).count();
        let is_newest = !self.found.is_pending();
        (functions, self.found.get().copied().filter(|_| is_newest))
    }

    /// Whether a search has ended since this was asked last.
    pub fn just_ended(&mut self) -> bool {
        std::mem::take(&mut self.ended)
    }

    /// Another tree has other functions.
    pub fn refresh(&mut self, tree: &CallTree) {
        if !self.pattern.is_empty() {
            self.fits = Arc::new(words::fitting(tree, &self.pattern));
        }
    }

    /// How much of all is in what was found.
    pub fn question(
        &mut self,
        tree: Option<&Arc<CallTree>>,
        answered: Option<&((CallsOf, Stamp), Stamp)>,
    ) -> Option<Question> {
        if self.pattern.is_empty() {
            return None;
        }
        let (tree, ((of, _), stamp)) = (Arc::clone(tree?), answered?);
        let key = (self.pattern.clone(), of.clone(), *stamp);
        let fits = Arc::clone(&self.fits);
        self.found
            .ask(key, *stamp, move |_, _| Some(tree.samples_with(&fits)))
    }

    /// The answer.
    pub fn take(&mut self, ended: QuestionId) {
        self.found.take(ended);
    }
}

impl Callers {
    pub(super) fn do_find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        if pattern.is_empty() {
            self.search.ended = !self.search.pattern.is_empty();
            self.search.pattern.clear();
            self.search.fits = Arc::default();
        }
        let now = self.selected_node().unwrap_or(CallTree::ROOT);
        let Some((origin, _)) = self.search.nodes.begin(pattern, now) else {
            self.with_table(cx, |table, page, height| table.find("", find, page, height));
            return true;
        };
        let Some(tree) = self.shown.clone() else {
            return false;
        };
        if self.search.pattern != pattern {
            pattern.clone_into(&mut self.search.pattern);
            self.search.refresh(&tree);
        }
        if !self.search.fits.contains(&true) {
            return false;
        }
        let fits = Arc::clone(&self.search.fits);
        if self.form == Form::Tree && self.up {
            let found = self.with_table(cx, |table, page, height| {
                table.find(pattern, find, page, height)
            });
            return found == Some(true);
        }
        let from = if find == Find::Here { origin } else { now };
        let behind = find != Find::Previous;
        let Some(node) = tree.matching(&fits, from, behind, find == Find::Here) else {
            return false;
        };
        match self.form {
            Form::Flame => {
                let height = draw::graph(cx.area).height.into();
                self.flame.select(&tree, node, height);
            }
            Form::Tree => self.reveal(node, cx),
        }
        true
    }
}
