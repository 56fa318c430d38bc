//! The tree that is walked: only what was expanded is made. From the roots down, or from the
//! functions with most samples of their own up to their callers.

use super::words;
use crate::present::document::Value;
use crate::present::names::region_name;
use crate::present::numbers::{count, percent, ratio};
use crate::tui::theme::Role;
use crate::tui::widgets::data_table::{Column, Piece, Room, Rows, Sort, SortKey};
use crate::tui::widgets::search::Finder;
use rustc_hash::FxHasher;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use vmscope_symbolizer::calls::{CallTree, Function, FunctionId, NodeId, Through};

/// Stands for the caller of a stack's outermost function.
pub const NOBODY: &str = "(no caller: the stacks begin here)";

/// Columns of the terminal that a bar has.
const BAR: usize = 8;

const DEPTH: usize = 0;
const TOTAL: usize = 1;
const BARS: usize = 2;
const SELF: usize = 3;
const SAMPLES: usize = 4;
const SELF_SAMPLES: usize = 5;
const REGION: usize = 6;
const FUNCTION: usize = 7;

/// A row: the place of a branch among all that were made.
pub type Row = u32;

/// What a row is called in every tree of the same filter: the hash of the functions on its path.
pub type Key = u64;

/// A row's branch.
#[derive(Clone, Copy, Debug)]
pub struct Branch {
    parent: Option<Row>,
    /// `None` where nobody called what is above it.
    pub function: Option<FunctionId>,
    /// Samples in it and in what it called; `None` for callers in a tree upwards.
    pub total: Option<u64>,
    /// Samples in itself; of a caller, those of the first row that came through it.
    pub own: u64,
    key: Key,
    /// Whether it has no children, as far as is known.
    leaf: bool,
}

/// Where in the tree of calls a branch is.
#[derive(Clone, Debug)]
enum Place {
    Down(NodeId),
    /// A function that has samples of its own.
    Hot(FunctionId),
    /// Samples that came through a caller.
    Up(Vec<Through>),
}

#[derive(Clone, Debug)]
struct Made {
    branch: Branch,
    place: Place,
    children: Option<Vec<Row>>,
}

/// The branches of a tree of calls.
#[derive(Clone, Debug)]
pub struct Branches {
    tree: Arc<CallTree>,
    /// Whether it goes up to the callers.
    up: bool,
    roots: Vec<Row>,
    /// Made as they are looked at.
    made: RefCell<Vec<Made>>,
}

impl Branches {
    /// The roots, or with `up` the functions by samples of their own.
    pub fn of(tree: &Arc<CallTree>, up: bool) -> Self {
        let mut branches = Branches {
            tree: Arc::clone(tree),
            up,
            roots: Vec::new(),
            made: RefCell::default(),
        };
        branches.roots = if up {
            let functions = (0..).zip(tree.functions()).map(|(function, _)| function);
            // Of equal ones, by their names: that is the order of functions.
            let mut hot: Vec<(Reverse<u64>, FunctionId)> = functions
                .map(|function| (Reverse(tree.counts_of(function).own), function))
                .filter(|(own, _)| own.0 > 0)
                .collect();
            hot.sort_unstable();
            let put = |(_, function): (_, FunctionId)| {
                let counts = tree.counts_of(function);
                let numbers = (Some(counts.total), counts.own);
                branches.put(None, Some(function), numbers, Place::Hot(function), false)
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
        leaf: bool,
    ) -> Row {
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
        let put = |(child, node): (NodeId, vmscope_symbolizer::calls::CallNode)| {
            let leaf = self.tree.children(child).is_empty();
            let numbers = (Some(node.total), node.own);
            self.put(
                parent,
                Some(node.function),
                numbers,
                Place::Down(child),
                leaf,
            )
        };
        nodes.map(put).collect()
    }

    /// A row's branch.
    pub fn branch(&self, row: Row) -> Branch {
        self.made.borrow()[row as usize].branch
    }

    fn function(&self, row: Row) -> Option<&Function> {
        self.tree.function(self.branch(row).function?)
    }

    /// The node of a row of a tree downwards.
    pub fn node_of(&self, row: Row) -> Option<NodeId> {
        match self.made.borrow()[row as usize].place {
            Place::Down(node) => Some(node),
            Place::Hot(_) | Place::Up(_) => None,
        }
    }

    /// A row's children, those with most samples first.
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
        // Where nobody called any of them there is nothing to show.
        if ways.iter().all(|way| way.caller.is_none()) {
            return Vec::new();
        }
        let put = |way: vmscope_symbolizer::calls::Way| {
            let leaf = way.caller.is_none();
            let place = Place::Up(way.through);
            self.put(Some(row), way.caller, (None, way.samples), place, leaf)
        };
        ways.into_iter().map(put).collect()
    }

    /// The first row.
    pub fn first(&self) -> Option<Row> {
        self.roots.first().copied()
    }

    /// A row of a tree upwards without callers above it.
    pub fn root_of(&self, function: FunctionId) -> Option<Row> {
        let mut roots = self.roots.iter().copied();
        roots.find(|&row| self.branch(row).function == Some(function))
    }

    /// A row, the one with most samples below it, and so on, until more samples are a function's
    /// own than any that it called has.
    pub fn hottest_path(&self, row: Row) -> Vec<Row> {
        let mut path = vec![row];
        let mut at = row;
        while let Some(next) = self.children_of(at).first().copied() {
            let (branch, below) = (self.branch(at), self.branch(next));
            let below = below.total.unwrap_or(below.own);
            // The first step is always taken: one asked for it.
            if !self.up && at != row && branch.own >= below {
                break;
            }
            path.push(next);
            at = next;
        }
        path
    }

    /// The row at which the hottest path to a row begins: the first one up that has a hotter
    /// neighbour, or is a root.
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

    /// The rows from a root down to a node.
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

/// What is shown of branches.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub branches: &'a Branches,
    /// By function, whether a search has found it; may be empty.
    pub fits: &'a [bool],
    /// All samples: what shares are of.
    pub all: u64,
}

impl Page<'_> {
    /// The number that a row is ordered by.
    fn samples(&self, branch: Branch) -> u64 {
        match branch.total {
            Some(total) if !self.branches.up => total,
            _ => branch.own,
        }
    }

    fn is_found(&self, branch: Branch) -> bool {
        let function = branch.function.map(|id| id as usize);
        function.is_some_and(|id| self.fits.get(id) == Some(&true))
    }
}

impl Rows for Page<'_> {
    type Row = Row;
    type Key = Key;

    fn columns(&self, _width: u16) -> Vec<Column> {
        let function = match self.branches.up {
            true => "function, and who called it",
            false => "function, and what it called",
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
                let region = function.map(|one| one.region.map_or("thread", region_name));
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
            // Functions are in the order of their names; nobody is the last.
            _ => branch.function.map_or(u64::MAX, u64::from),
        })
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
                function.map_or(' ', words::letter).to_string(),
            ),
            _ => {
                let role = match self.is_found(branch) {
                    true => Role::Match,
                    false => Role::Text,
                };
                let name = function.map_or_else(
                    || NOBODY.to_owned(),
                    |function| words::short(function, room.width),
                );
                (role, name)
            }
        };
        Piece::cell(role, text)
    }

    fn fits(&self, row: Row, _text: &mut Finder) -> bool {
        self.is_found(self.branches.branch(row))
    }

    fn searched(&self, _row: Row) -> Vec<Row> {
        // What is not expanded is found in the tree of calls itself.
        Vec::new()
    }
}
