//! Call trees as rows: top down, bottom up, callers or callees of a function. A row's children are
//! created on demand.

use crate::present::functions::parts;
use crate::present::shorten::Name;
use rustc_hash::FxHasher;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use vmscope_symbolizer::calls::{CallTree, Function, FunctionId, NodeId, Through, Way};

/// Index of a branch.
pub type Row = u32;

/// Hash of the functions on a row's path, equal in every tree.
pub type Key = u64;

#[derive(Clone, Copy, Debug)]
pub struct Branch {
    parent: Option<Row>,
    /// `None` above outermost functions.
    pub function: Option<FunctionId>,
    /// Samples with callees; `None` for callers in a bottom-up tree.
    pub total: Option<u64>,
    /// Self samples; of a caller, the root row's samples through it.
    pub own: u64,
    pub key: Key,
    /// No known children.
    pub leaf: bool,
}

#[derive(Clone, Debug)]
enum Place {
    Down(NodeId),
    /// Function with self samples.
    Hot(FunctionId),
    /// Samples through a caller.
    Up(Vec<Through>),
    /// Samples in a callee, of all its stacks together.
    From(Vec<Through>),
}

#[derive(Clone, Debug)]
struct Made {
    branch: Branch,
    place: Place,
    children: Option<Vec<Row>>,
}

#[derive(Clone, Debug)]
pub struct Branches {
    tree: Arc<CallTree>,
    up: bool,
    roots: Vec<Row>,
    /// Created on demand.
    made: RefCell<Vec<Made>>,
}

impl Branches {
    /// Rows for the roots, or with `up` for functions with self samples.
    pub fn of(tree: &Arc<CallTree>, up: bool) -> Self {
        Branches::with_roots(tree, up, |branches| {
            if !up {
                return branches.put_nodes(None, CallTree::ROOT);
            }
            let functions = tree.functions().ids();
            // Function ids follow names.
            let mut hot: Vec<(Reverse<u64>, FunctionId)> = functions
                .map(|function| (Reverse(tree.counts_of(function).own), function))
                .filter(|(own, _)| own.0 > 0)
                .collect();
            hot.sort_unstable();
            let put = |(_, function): (_, FunctionId)| {
                let counts = tree.counts_of(function);
                let samples = (Some(counts.total), counts.own);
                branches.put(None, Some(function), samples, Place::Hot(function))
            };
            hot.into_iter().map(put).collect()
        })
    }

    /// Rows for the callers, or with `up` unset for the callees, of these stacks' innermost functions.
    pub fn around(tree: &Arc<CallTree>, stacks: &[Through], up: bool) -> Self {
        Branches::with_roots(tree, up, |branches| match up {
            true => branches.put_callers(None, stacks),
            false => branches.put_callees(None, stacks),
        })
    }

    fn with_roots(tree: &Arc<CallTree>, up: bool, roots: impl FnOnce(&Self) -> Vec<Row>) -> Self {
        let mut branches = Branches {
            tree: Arc::clone(tree),
            up,
            roots: Vec::new(),
            made: RefCell::default(),
        };
        branches.roots = roots(&branches);
        branches
    }

    /// Whether callers stand below their callees.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// First rows, most samples first.
    pub fn roots(&self) -> &[Row] {
        &self.roots
    }

    /// Samples for the order of rows: with callees, or bottom up through the caller.
    pub fn samples(&self, row: Row) -> u64 {
        let branch = self.branch(row);
        let total = branch.total.filter(|_| !self.up);
        total.unwrap_or(branch.own)
    }

    fn put(
        &self,
        parent: Option<Row>,
        function: Option<FunctionId>,
        (total, own): (Option<u64>, u64),
        place: Place,
    ) -> Row {
        let leaf = match place {
            Place::Down(node) => self.tree.children(node).is_empty(),
            Place::Hot(_) | Place::From(_) => false,
            Place::Up(_) => function.is_none(),
        };
        let mut hasher = FxHasher::default();
        parent
            .map(|parent| self.branch(parent).key)
            .hash(&mut hasher);
        function
            .and_then(|id| self.tree.function(id))
            .hash(&mut hasher);
        let branch = Branch {
            parent,
            function,
            total,
            own,
            key: hasher.finish(),
            leaf,
        };
        let mut made = self.made.borrow_mut();
        made.push(Made {
            branch,
            place,
            children: None,
        });
        u32::try_from(made.len() - 1).unwrap_or(Row::MAX)
    }

    fn put_nodes(&self, parent: Option<Row>, node: NodeId) -> Vec<Row> {
        let nodes = self.tree.children(node);
        let nodes = nodes.filter_map(|child| Some((child, self.tree.node(child)?)));
        let rows = nodes.map(|(child, node)| {
            let samples = (Some(node.total), node.own);
            self.put(parent, node.function, samples, Place::Down(child))
        });
        rows.collect()
    }

    pub fn branch(&self, row: Row) -> Branch {
        self.made.borrow()[row as usize].branch
    }

    pub fn function(&self, row: Row) -> Option<&Function> {
        self.tree.function(self.branch(row).function?)
    }

    /// Name for a table; `None` above outermost functions.
    pub fn name(&self, row: Row) -> Option<Name<'_>> {
        let id = self.branch(row).function?;
        let function = self.tree.function(id)?;
        Some(parts(function, self.tree.has_namesake(id)))
    }

    /// Node of a row; `None` in a bottom-up tree.
    pub fn node_of(&self, row: Row) -> Option<NodeId> {
        match self.made.borrow()[row as usize].place {
            Place::Down(node) => Some(node),
            _ => None,
        }
    }

    /// Children, most samples first.
    pub fn children_of(&self, row: Row) -> Vec<Row> {
        let place = {
            let made = &self.made.borrow()[row as usize];
            if let Some(children) = &made.children {
                return children.clone();
            }
            made.place.clone()
        };
        let children = match place {
            Place::Down(node) => self.put_nodes(Some(row), node),
            Place::Hot(function) => self.put_callers(Some(row), &self.tree.own_of(function)),
            Place::Up(through) => self.put_callers(Some(row), &through),
            Place::From(through) => self.put_callees(Some(row), &through),
        };
        let made = &mut self.made.borrow_mut()[row as usize];
        made.branch.leaf = children.is_empty();
        made.children = Some(children.clone());
        children
    }

    fn put_callers(&self, row: Option<Row>, through: &[Through]) -> Vec<Row> {
        let ways = self.tree.ways_to(through);
        if ways.iter().all(|way| way.function.is_none()) {
            return Vec::new();
        }
        let put = |way: Way| {
            let samples = (None, way.samples);
            self.put(row, way.function, samples, Place::Up(way.through))
        };
        ways.into_iter().map(put).collect()
    }

    fn put_callees(&self, row: Option<Row>, through: &[Through]) -> Vec<Row> {
        let put = |way: Way| {
            let samples = (Some(way.samples), self.tree.own_in(&way.through));
            self.put(row, way.function, samples, Place::From(way.through))
        };
        let ways = self.tree.ways_from(through).into_iter();
        ways.map(put).collect()
    }

    pub fn first(&self) -> Option<Row> {
        self.roots.first().copied()
    }

    pub fn root_of(&self, function: FunctionId) -> Option<Row> {
        let mut roots = self.roots.iter().copied();
        roots.find(|&row| self.branch(row).function == Some(function))
    }

    /// Hottest path from a row to a function whose self samples exceed every callee's samples.
    pub fn hottest_path(&self, row: Row) -> Vec<Row> {
        let mut path = vec![row];
        let mut at = row;
        while let Some(next) = self.children_of(at).first().copied() {
            let (branch, below) = (self.branch(at), self.branch(next));
            let below = below.total.unwrap_or(below.own);
            // The first step is unconditional.
            if !self.up && at != row && branch.own >= below {
                break;
            }
            path.push(next);
            at = next;
        }
        path
    }

    /// Begin of the hottest path to a row.
    pub fn begin_of_path(&self, row: Row) -> Row {
        let mut at = row;
        while let Some(parent) = self.branch(at).parent {
            let is_first = self.children_of(parent).first() == Some(&at);
            if !is_first && at != row {
                break;
            }
            at = parent;
            if !is_first {
                break;
            }
        }
        at
    }

    /// Rows between a root and a node.
    pub fn path_to(&self, node: NodeId) -> Vec<Row> {
        let mut path: Vec<Row> = Vec::new();
        for step in self.tree.path(node) {
            let children = match path.last() {
                None => self.roots.clone(),
                Some(&row) => self.children_of(row),
            };
            let found = children
                .into_iter()
                .find(|&row| self.node_of(row) == Some(step));
            let Some(found) = found else {
                break;
            };
            path.push(found);
        }
        path
    }

    /// Number of rows above.
    pub fn depth(&self, row: Row) -> u64 {
        let parent = |row: &Row| self.branch(*row).parent;
        std::iter::successors(Some(row), parent).skip(1).count() as u64
    }
}
