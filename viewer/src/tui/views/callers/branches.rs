//! The tree that is walked: only what was opened is made. From the roots down, or from the
//! functions with most samples of their own up to their callers.

use std::cmp::Reverse;
use vmscope_symbolizer::calls::{CallTree, FunctionId, NodeId, Through};

/// A row of it.
#[derive(Clone, Debug)]
pub struct Branch {
    /// What it was opened from.
    pub parent: Option<usize>,
    /// How deep it is.
    pub depth: usize,
    /// `None` where nobody called what is above it.
    pub function: Option<FunctionId>,
    /// Samples in it and what it called; `None` for callers of a tree upwards.
    pub total: Option<u64>,
    /// Samples of its own; of a caller, those of the first row that came through it.
    pub own: u64,
    /// Whether its children are shown.
    pub open: bool,
    /// Whether it has none, as far as is known.
    pub leaf: bool,
    place: Place,
    children: Option<Vec<usize>>,
}

/// Where in the tree of calls it is.
#[derive(Clone, Debug)]
enum Place {
    Down(NodeId),
    /// A function that has samples of its own.
    Hot(FunctionId),
    /// Samples that came through a caller.
    Up(Vec<Through>),
}

/// The tree.
#[derive(Clone, Debug, Default)]
pub struct Branches {
    all: Vec<Branch>,
    roots: Vec<usize>,
    rows: Vec<usize>,
}

impl Branches {
    /// The roots, or with `up` the functions by samples of their own.
    pub fn of(tree: &CallTree, up: bool) -> Self {
        let mut branches = Branches::default();
        if up {
            let functions = (0..).zip(tree.functions()).map(|(function, _)| function);
            // Of equal ones, by their names: that is the order of functions.
            let mut hot: Vec<(Reverse<u64>, FunctionId)> = functions
                .map(|function| (Reverse(tree.counts_of(function).own), function))
                .filter(|(own, _)| own.0 > 0)
                .collect();
            hot.sort_unstable();
            for (_, function) in hot {
                let counts = tree.counts_of(function);
                let place = Place::Hot(function);
                let numbers = (Some(counts.total), counts.own);
                let at = branches.put(None, Some(function), numbers, place, false);
                branches.roots.push(at);
            }
        } else {
            branches.roots = branches.put_nodes(tree, None, CallTree::ROOT);
        }
        branches.refresh();
        branches
    }

    fn put(
        &mut self,
        parent: Option<usize>,
        function: Option<FunctionId>,
        (total, own): (Option<u64>, u64),
        place: Place,
        leaf: bool,
    ) -> usize {
        let above = parent.and_then(|parent| self.all.get(parent));
        self.all.push(Branch {
            parent,
            depth: above.map_or(0, |above| above.depth + 1),
            function,
            total,
            own,
            open: false,
            leaf,
            place,
            children: None,
        });
        self.all.len() - 1
    }

    fn put_nodes(&mut self, tree: &CallTree, parent: Option<usize>, node: NodeId) -> Vec<usize> {
        let mut made = Vec::new();
        for child in tree.children(node) {
            let Some(node) = tree.node(child) else {
                continue;
            };
            let leaf = tree.children(child).is_empty();
            let numbers = (Some(node.total), node.own);
            made.push(self.put(
                parent,
                Some(node.function),
                numbers,
                Place::Down(child),
                leaf,
            ));
        }
        made
    }

    fn make_children(&mut self, tree: &CallTree, at: usize) {
        let Some(branch) = self.all.get(at).filter(|branch| branch.children.is_none()) else {
            return;
        };
        let ways = match &branch.place {
            Place::Down(node) => {
                let node = *node;
                let made = self.put_nodes(tree, Some(at), node);
                return self.set_children(at, made);
            }
            Place::Hot(function) => tree.ways_to(&tree.own_of(*function)),
            Place::Up(through) => tree.ways_to(through),
        };
        let mut made = Vec::new();
        // Where nobody called any of them there is nothing to tell.
        if ways.iter().any(|way| way.caller.is_some()) {
            for way in ways {
                let leaf = way.caller.is_none();
                let numbers = (None, way.samples);
                made.push(self.put(Some(at), way.caller, numbers, Place::Up(way.through), leaf));
            }
        }
        self.set_children(at, made);
    }

    fn set_children(&mut self, at: usize, children: Vec<usize>) {
        if let Some(branch) = self.all.get_mut(at) {
            branch.leaf = children.is_empty();
            branch.children = Some(children);
        }
    }

    fn refresh(&mut self) {
        let mut rows = Vec::new();
        let mut open: Vec<usize> = self.roots.iter().rev().copied().collect();
        while let Some(at) = open.pop() {
            rows.push(at);
            let branch = self.all.get(at).filter(|branch| branch.open);
            let children = branch.and_then(|branch| branch.children.as_ref());
            open.extend(children.into_iter().flatten().rev());
        }
        self.rows = rows;
    }

    /// How many rows are shown.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// A row.
    pub fn row(&self, row: usize) -> Option<&Branch> {
        self.all.get(*self.rows.get(row)?)
    }

    /// The node of a row of a tree downwards.
    pub fn node_of(&self, row: usize) -> Option<NodeId> {
        match self.row(row)?.place {
            Place::Down(node) => Some(node),
            Place::Hot(_) | Place::Up(_) => None,
        }
    }

    /// The row that one was opened from.
    pub fn parent_of(&self, row: usize) -> Option<usize> {
        let parent = self.row(row)?.parent?;
        self.rows.iter().position(|&at| at == parent)
    }

    /// Shows or hides what is below a row.
    pub fn set_open(&mut self, tree: &CallTree, row: usize, open: bool) {
        if let Some(&at) = self.rows.get(row) {
            self.open_at(tree, at, open);
            self.refresh();
        }
    }

    fn open_at(&mut self, tree: &CallTree, at: usize, open: bool) {
        if open {
            self.make_children(tree, at);
        }
        if let Some(branch) = self.all.get_mut(at) {
            branch.open = open && !branch.leaf;
        }
    }

    /// Opens a row, what has most samples below it, and so on, until more of them are a
    /// function's own than any that it called has; returns the row of that.
    pub fn open_hottest(&mut self, tree: &CallTree, row: usize) -> usize {
        let Some(&first) = self.rows.get(row) else {
            return row;
        };
        let mut at = first;
        loop {
            self.make_children(tree, at);
            let Some(branch) = self.all.get(at) else {
                break;
            };
            let hottest = branch.children.iter().flatten().next().copied();
            let Some(next) = hottest else {
                break;
            };
            let samples = |branch: &Branch| branch.total.unwrap_or(branch.own);
            let below = self.all.get(next).map_or(0, samples);
            let is_down = matches!(branch.place, Place::Down(_));
            // The first step is always taken: one asked for it.
            if is_down && at != first && branch.own >= below {
                break;
            }
            self.open_at(tree, at, true);
            at = next;
        }
        self.refresh();
        self.rows
            .iter()
            .position(|&other| other == at)
            .unwrap_or(row)
    }

    /// The row at which the hottest path to a row begins: the first one up that has a
    /// hotter neighbour, or is a root.
    pub fn begin_of_path(&self, row: usize) -> usize {
        let Some(&from) = self.rows.get(row) else {
            return row;
        };
        let mut at = from;
        while let Some(parent) = self.all.get(at).and_then(|branch| branch.parent) {
            let children = self
                .all
                .get(parent)
                .and_then(|above| above.children.as_ref());
            let is_first = children.and_then(|children| children.first()) == Some(&at);
            if !is_first && at != from {
                break;
            }
            at = parent;
            if !is_first {
                break;
            }
        }
        self.rows
            .iter()
            .position(|&other| other == at)
            .unwrap_or(row)
    }

    /// Opens all above a node of a tree downwards, and returns its row.
    pub fn reveal(&mut self, tree: &CallTree, node: NodeId) -> Option<usize> {
        let mut found = None;
        for step in tree.path(node) {
            let children = match found {
                None => &self.roots,
                Some(at) => {
                    self.open_at(tree, at, true);
                    self.all.get(at)?.children.as_ref()?
                }
            };
            // Children are in the order of their nodes.
            let first = children
                .first()
                .and_then(|&first| match self.all.get(first)?.place {
                    Place::Down(node) => Some(node),
                    _ => None,
                });
            let index = step.checked_sub(first?)?;
            found = children.get(index as usize).copied();
        }
        self.refresh();
        self.rows.iter().position(|&at| Some(at) == found)
    }

    /// The same tree over new counts: what was open is open, as far as it is still there.
    /// Returns the row of what was in the row `selected`, or the nearest above it.
    pub fn carried(
        &self,
        old_tree: &CallTree,
        tree: &CallTree,
        up: bool,
        selected: usize,
    ) -> (Self, usize) {
        let mut new = Branches::of(tree, up);
        let wanted = self.rows.get(selected).copied();
        let mut chosen: Option<usize> = None;
        // What was selected, and all that it was opened from: the innermost that is there
        // counts.
        let mut above = Vec::new();
        let mut next = wanted;
        while let Some(at) = next {
            above.push(at);
            next = self.all.get(at).and_then(|branch| branch.parent);
        }
        let mut pairs: Vec<(Option<usize>, Option<usize>)> = vec![(None, None)];
        while let Some((old, fresh)) = pairs.pop() {
            let children = |branches: &Branches, at: Option<usize>| match at {
                None => branches.roots.clone(),
                Some(at) => {
                    let branch = branches.all.get(at);
                    branch.and_then(|b| b.children.clone()).unwrap_or_default()
                }
            };
            let fresh_children = children(&new, fresh);
            let fresh_of: rustc_hash::FxHashMap<Option<FunctionId>, usize> = fresh_children
                .iter()
                .filter_map(|&at| Some((new.all.get(at)?.function, at)))
                .collect();
            for at in children(self, old) {
                let Some(branch) = self.all.get(at) else {
                    continue;
                };
                let is_above = above.contains(&at);
                if !branch.open && !is_above {
                    continue;
                }
                let function = match branch.function {
                    None => None,
                    Some(id) => {
                        let found = old_tree.function(id).and_then(|f| tree.find(f));
                        if found.is_none() {
                            continue;
                        }
                        found
                    }
                };
                let Some(&fresh) = fresh_of.get(&function) else {
                    continue;
                };
                let depth = |at: usize| new.all.get(at).map_or(0, |branch| branch.depth);
                if is_above && chosen.is_none_or(|chosen| depth(fresh) > depth(chosen)) {
                    chosen = Some(fresh);
                }
                if branch.open {
                    new.open_at(tree, fresh, true);
                    pairs.push((Some(at), Some(fresh)));
                }
            }
        }
        new.refresh();
        let row = new.rows.iter().position(|&at| Some(at) == chosen);
        (new, row.unwrap_or(0))
    }
}
