//! Call tree as a table: top down from the roots, or bottom up from functions with self samples.
//! Expanding a row creates its children.

use super::words;
use crate::present::document::Value;
use crate::present::names::region_name;
use crate::present::numbers::{count, percent, ratio};
use crate::present::shorten::Name;
use crate::tui::theme::Role;
use crate::tui::widgets::data_table::{Column, Piece, Room, Rows, Sort, SortKey};
use crate::tui::widgets::search::Finder;
use rustc_hash::FxHasher;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use vmscope_symbolizer::calls::{CallTree, Function, FunctionId, NodeId, Through};
use vmscope_symbolizer::{Id, IndexVec};

/// Caller of a stack's outermost function.
pub const NOBODY: &str = "(start of the stack)";

/// Width of a bar.
const BAR: usize = 8;

const DEPTH: usize = 0;
const TOTAL: usize = 1;
const BARS: usize = 2;
const SELF: usize = 3;
const SAMPLES: usize = 4;
const SELF_SAMPLES: usize = 5;
const REGION: usize = 6;
const FUNCTION: usize = 7;

/// Index of a branch.
pub type Row = u32;

/// Hash of the functions on a row's path, equal in every tree.
pub type Key = u64;

#[derive(Clone, Copy, Debug)]
pub struct Branch {
    parent: Option<Row>,
    /// `None` for [`NOBODY`].
    pub function: Option<FunctionId>,
    /// Samples with callees; `None` for callers in a bottom-up tree.
    pub total: Option<u64>,
    /// Self samples; of a caller, the root row's samples through it.
    pub own: u64,
    key: Key,
    /// No known children.
    leaf: bool,
}

#[derive(Clone, Debug)]
enum Place {
    Down(NodeId),
    /// Function with self samples.
    Hot(FunctionId),
    /// Samples through a caller.
    Up(Vec<Through>),
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
    is_native: bool,
    roots: Vec<Row>,
    /// Created on demand.
    made: RefCell<Vec<Made>>,
}

impl Branches {
    /// Rows for the roots, or with `up` for functions with self samples.
    pub fn of(tree: &Arc<CallTree>, up: bool, is_native: bool) -> Self {
        let mut branches = Branches {
            tree: Arc::clone(tree),
            up,
            is_native,
            roots: Vec::new(),
            made: RefCell::default(),
        };
        branches.roots = if up {
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
        } else {
            branches.put_nodes(None, CallTree::ROOT)
        };
        branches
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
            Place::Hot(_) => false,
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

    fn function(&self, row: Row) -> Option<&Function> {
        self.tree.function(self.branch(row).function?)
    }

    /// Node of a row; `None` in a bottom-up tree.
    pub fn node_of(&self, row: Row) -> Option<NodeId> {
        match self.made.borrow()[row as usize].place {
            Place::Down(node) => Some(node),
            Place::Hot(_) | Place::Up(_) => None,
        }
    }

    /// Children, most samples first.
    fn children_of(&self, row: Row) -> Vec<Row> {
        let place = {
            let made = &self.made.borrow()[row as usize];
            if let Some(children) = &made.children {
                return children.clone();
            }
            made.place.clone()
        };
        let children = match place {
            Place::Down(node) => self.put_nodes(Some(row), node),
            Place::Hot(function) => self.put_callers(row, &self.tree.own_of(function)),
            Place::Up(through) => self.put_callers(row, &through),
        };
        let made = &mut self.made.borrow_mut()[row as usize];
        made.branch.leaf = children.is_empty();
        made.children = Some(children.clone());
        children
    }

    fn put_callers(&self, row: Row, through: &[Through]) -> Vec<Row> {
        let ways = self.tree.ways_to(through);
        if ways.iter().all(|way| way.caller.is_none()) {
            return Vec::new();
        }
        let rows = ways.into_iter().map(|way| {
            let samples = (None, way.samples);
            self.put(Some(row), way.caller, samples, Place::Up(way.through))
        });
        rows.collect()
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

    fn depth(&self, row: Row) -> u64 {
        let parent = |row: &Row| self.branch(*row).parent;
        std::iter::successors(Some(row), parent).skip(1).count() as u64
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub branches: &'a Branches,
    /// Search match by function; may be empty.
    pub fits: &'a IndexVec<FunctionId, bool>,
    /// Denominator of shares.
    pub all: u64,
}

impl Page<'_> {
    /// Samples of the sort column.
    fn samples(&self, branch: Branch) -> u64 {
        match branch.total {
            Some(total) if !self.branches.up => total,
            _ => branch.own,
        }
    }

    fn is_found(&self, branch: Branch) -> bool {
        let function = branch.function;
        function.is_some_and(|function| self.fits.get(function) == Some(&true))
    }
}

impl Rows for Page<'_> {
    type Row = Row;
    type Key = Key;

    fn columns(&self, _width: u16) -> Vec<Column> {
        let function = match self.branches.up {
            true => "function, with its callers",
            false => "function, with its callees",
        };
        let shown = if self.branches.up { SELF } else { TOTAL };
        vec![
            Column::right("", "depth", 0),
            Column::right("total", "total", 7).sort(Sort::Down),
            Column::left("", "", BAR).rank(3).sort(Sort::Like(shown)),
            Column::right("self", "self", 7).sort(Sort::Down),
            Column::right("samples", "samples", 9)
                .rank(2)
                .sort(Sort::Like(shown)),
            Column::right("", "self samples", 0),
            Column::left("", "region", 1),
            Column::left(function, "function", 34).sort(Sort::Up),
        ]
    }

    fn stretch(&self) -> usize {
        FUNCTION
    }

    fn sorts(&self) -> Vec<usize> {
        match self.branches.up {
            true => vec![SELF, TOTAL, FUNCTION],
            false => vec![TOTAL, SELF, FUNCTION],
        }
    }

    fn is_tree(&self) -> bool {
        true
    }

    fn indent(&self) -> usize {
        1
    }

    fn children(&self, parent: Option<Row>) -> Vec<Row> {
        match parent {
            None => self.branches.roots.clone(),
            Some(row) => self.branches.children_of(row),
        }
    }

    fn can_open(&self, row: Row) -> bool {
        !self.branches.branch(row).leaf
    }

    fn key(&self, row: Row) -> Key {
        self.branches.branch(row).key
    }

    fn value(&self, row: Row, column: usize) -> Value {
        let branch = self.branches.branch(row);
        let function = self.branches.function(row);
        let share = |samples: u64| Value::Share(ratio(samples, self.all));
        match column {
            DEPTH => Value::Count(self.branches.depth(row)),
            TOTAL => branch.total.map_or(Value::Empty, share),
            SELF => share(branch.own),
            SAMPLES => branch.total.map_or(Value::Empty, Value::Count),
            SELF_SAMPLES => Value::Count(branch.own),
            REGION => {
                let region = function.map(|one| {
                    one.region.map_or("thread", |region| {
                        region_name(region, self.branches.is_native)
                    })
                });
                Value::Text(region.unwrap_or_default().to_owned())
            }
            FUNCTION => {
                let name = |function: &Function| {
                    let inlined = if function.inlined { " (inlined)" } else { "" };
                    format!("{}{inlined}", words::full(function))
                };
                Value::Text(function.map_or_else(|| NOBODY.to_owned(), name))
            }
            _ => Value::Empty,
        }
    }

    fn sort_key(&self, row: Row, column: usize) -> SortKey {
        let branch = self.branches.branch(row);
        SortKey::Number(match column {
            TOTAL => branch.total.unwrap_or(branch.own),
            SELF => branch.own,
            // Function ids follow names; NOBODY is last.
            _ => branch
                .function
                .map_or(u64::MAX, |function| function.number().into()),
        })
    }

    fn name(&self, row: Row, _columns: &[usize]) -> Option<Name<'_>> {
        self.branches.function(row).map(words::parts)
    }

    fn cell(&self, row: Row, column: usize, room: &Room<'_>) -> Vec<Piece> {
        let branch = self.branches.branch(row);
        let function = self.branches.function(row);
        let samples = self.samples(branch);
        let top = self
            .branches
            .first()
            .map(|first| self.branches.branch(first));
        let top = top.map_or(0, |first| self.samples(first));
        let heat = |samples: u64| Role::Heat(ratio(samples, top));
        let share = |samples: u64| percent(ratio(samples, self.all));
        let (role, text) = match column {
            TOTAL => match branch.total {
                Some(total) => (heat(total), share(total)),
                None => (Role::Dim, String::new()),
            },
            BARS => (heat(samples), room.theme.bar(ratio(samples, self.all), BAR)),
            SELF if branch.own == 0 => (heat(0), String::new()),
            SELF => (heat(branch.own), share(branch.own)),
            SAMPLES => (Role::Text, count(samples)),
            REGION => (
                function.map_or(Role::Dim, words::role),
                function
                    .map_or(' ', |one| words::letter(one, self.branches.is_native))
                    .to_string(),
            ),
            _ => {
                let role = match self.is_found(branch) {
                    true => Role::Match,
                    false => Role::Text,
                };
                let name = match function {
                    Some(_) => room.label,
                    None => NOBODY,
                };
                (role, name.to_owned())
            }
        };
        Piece::cell(role, text)
    }

    fn fits(&self, row: Row, _text: &mut Finder) -> bool {
        self.is_found(self.branches.branch(row))
    }

    fn searched(&self, _row: Row) -> Vec<Row> {
        // The view searches the call tree for collapsed rows.
        Vec::new()
    }
}
