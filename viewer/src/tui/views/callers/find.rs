//! Search by function name.

use super::{Callers, Form, draw, words};
use crate::tui::jobs::{Fetched, Question, Stamp};
use crate::tui::views::{Cx, Find};
use crate::tui::widgets::search;
use std::sync::Arc;
use vmscope_symbolizer::IndexVec;
use vmscope_symbolizer::calls::{CallTree, CallsOf, FunctionId, NodeId};

#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Empty without a search.
    pub pattern: String,
    /// Match by function; empty without a search.
    pub fits: Arc<IndexVec<FunctionId, bool>>,
    nodes: search::Search<NodeId>,
    /// Samples of stacks with a match.
    pub found: Fetched<(String, CallsOf, Stamp), u64>,
    ended: bool,
}

impl Search {
    /// Matching functions, and samples of stacks with them; `None` before the answer.
    pub fn counts(&self) -> (usize, Option<u64>) {
        let functions = self.fits.iter().filter(|fits| **fits).count();
        let is_newest = !self.found.is_pending();
        (functions, self.found.get().copied().filter(|_| is_newest))
    }

    /// Whether a search ended since the last call.
    pub fn just_ended(&mut self) -> bool {
        std::mem::take(&mut self.ended)
    }

    pub fn refresh(&mut self, tree: &CallTree) {
        if !self.pattern.is_empty() {
            self.fits = Arc::new(words::fitting(tree, &self.pattern));
        }
    }

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
}

impl Callers {
    pub(super) fn do_find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        if pattern.is_empty() {
            self.search.ended = !self.search.pattern.is_empty();
            self.search.pattern.clear();
            self.search.fits = Arc::default();
        }
        let is_table = self.form == Form::Tree && self.up;
        if find == Find::Restore
            && !is_table
            && let (Some(origin), Some(tree)) = (self.search.nodes.cancel(), self.shown.clone())
        {
            self.select_node(&tree, origin, cx);
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
        if is_table {
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
        self.select_node(&tree, node, cx);
        true
    }

    fn select_node(&mut self, tree: &CallTree, node: NodeId, cx: &Cx<'_>) {
        match self.form {
            Form::Flame => {
                let height = draw::graph(cx.area).height.into();
                self.flame.select(tree, node, height);
            }
            Form::Tree => self.reveal(node, cx),
        }
    }
}
