//! Tree of inlined methods: methods named by debug records, and guesses of further ones.

use std::cell::LazyCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vmscope_records::Avma;

use super::facts::MethodFacts;
use super::{Bcis, MethodSource, NamedBy};
use crate::code::{Frame, Nmethod};

/// Maximum number of nodes in a tree.
const MAX_NODES: usize = 4096;

/// Maximum number of bytecodes in a tree; further methods are known by name only.
const MAX_STEPS: usize = 20_000;

/// Maximum number of guessed methods.
const MAX_LOOKED_AT: usize = 10_000;

/// Maximum depth of a chain (`MaxInlineLevel` is 15).
const MAX_DEPTH: usize = 64;

/// A method, inlined at a call of its parent.
#[derive(Clone, Debug)]
pub struct Node {
    /// The parent node and its call bytecode.
    pub parent: Option<(u32, i32)>,
    /// The method.
    pub method: Avma,
    /// Facts for recognition of its bytecodes.
    pub facts: Arc<MethodFacts>,
    /// Depth; the outermost method has 0.
    pub depth: usize,
    /// Whether a debug record names the method; false for a guess.
    pub is_recorded: bool,
}

/// The inlining tree; node 0 is the compiled method itself.
#[derive(Debug, Default)]
pub struct Tree {
    /// Nodes, parents before their children.
    pub nodes: Vec<Node>,
    /// Total steps of all methods.
    steps: usize,
    by_place: FxHashMap<(u32, i32, Avma), u32>,
    by_scope: FxHashMap<u32, Option<(u32, i32)>>,
    /// Whether the compiled method has no inlined methods for certain.
    is_alone: bool,
}

impl Tree {
    /// Tree of the debug records of `nmethod`.
    pub fn of(nmethod: &Nmethod, methods: &dyn MethodSource) -> Self {
        let mut tree = Tree::default();
        tree.add(None, nmethod.method, methods, true);
        for pc in &nmethod.pcs {
            tree.place(nmethod, pc.scope, methods);
        }
        tree
    }

    fn add(
        &mut self,
        parent: Option<(u32, i32)>,
        method: Avma,
        methods: &dyn MethodSource,
        is_recorded: bool,
    ) -> Option<u32> {
        let index = u32::try_from(self.nodes.len()).ok()?;
        let depth = match parent {
            Some((node, _)) => self.nodes.get(node as usize)?.depth + 1,
            None => 0,
        };
        if self.nodes.len() >= MAX_NODES || depth > MAX_DEPTH {
            return None;
        }
        let fits = |facts: &Arc<MethodFacts>| self.steps + facts.steps.len() <= MAX_STEPS;
        let facts = methods.facts(method).filter(fits);
        let facts = facts.unwrap_or_else(|| Arc::new(MethodFacts::unknown()));
        self.steps += facts.steps.len();
        self.nodes.push(Node {
            parent,
            method,
            facts,
            depth,
            is_recorded,
        });
        if let Some((node, bci)) = parent {
            self.by_place.insert((node, bci, method), index);
        }
        Some(index)
    }

    /// Node and bytecode index of the scope at `at`.
    fn place(
        &mut self,
        nmethod: &Nmethod,
        at: u32,
        methods: &dyn MethodSource,
    ) -> Option<(u32, i32)> {
        // Unknown scopes, innermost first.
        let mut unknown = Vec::new();
        let mut next = at;
        let mut known = None;
        while next != 0 && unknown.len() <= MAX_DEPTH {
            if let Some(place) = self.by_scope.get(&next) {
                known = *place;
                break;
            }
            let scope = nmethod.scope(next).ok()?;
            unknown.push((next, scope.frame));
            next = scope.sender;
        }
        while let Some((scope, frame)) = unknown.pop() {
            let node = match known {
                // The outermost scope is the method itself.
                None => Some(0),
                Some((node, bci)) => match self.by_place.get(&(node, bci, frame.method)) {
                    Some(&child) => Some(child),
                    None => self.add(Some((node, bci)), frame.method, methods, true),
                },
            };
            known = node.map(|node| (node, frame.bci));
            self.by_scope.insert(scope, known);
            known?;
        }
        known
    }

    /// Node and bytecode index of a recorded scope.
    #[must_use]
    pub fn place_of(&self, scope: u32) -> Option<(u32, i32)> {
        self.by_scope.get(&scope).copied().flatten()
    }

    /// How a node's method is known beyond its records.
    #[must_use]
    pub fn inferred(&self, node: u32) -> NamedBy {
        match self.nodes.get(node as usize) {
            Some(node) if !node.is_recorded => NamedBy::Guess,
            Some(node) if node.depth > 0 => NamedBy::Inlined,
            _ if self.is_alone => NamedBy::Certain,
            _ if self.nodes.len() == 1 => NamedBy::Alone,
            _ => NamedBy::Own,
        }
    }

    /// Whether a position's bytecode calls a method.
    #[must_use]
    pub fn is_call(&self, (node, bci): (u32, i32)) -> bool {
        let Some(node) = self.nodes.get(node as usize) else {
            return false;
        };
        let step = node.facts.step_at(bci);
        let calls = &node.facts.calls;
        calls.binary_search_by_key(&step, |call| call.step).is_ok()
    }

    /// Judges whether the compiled method has no inlined methods: a record shows a real call of the only possible
    /// method for each of its calls, or nothing has executed the call. `entry`: bytecode at which the code begins, if
    /// unreached calls are known. `is_call` tests a bytecode index for a real call.
    pub fn judge(
        &mut self,
        methods: &dyn MethodSource,
        entry: Option<u32>,
        is_call: impl Fn(i32) -> bool,
    ) {
        let [node] = self.nodes.as_slice() else {
            return;
        };
        let unreached = unreached(methods, node.method, entry);
        self.is_alone = node.facts.has_only(|call, bci| {
            call.is_direct && is_call(bci.into()) || unreached.binary_search(&bci).is_ok()
        });
    }

    /// Adds guesses: methods possibly inlined without a record, at call bytecodes that no
    /// record shows as real calls. `is_call` tests a node and bytecode index for a real call.
    pub fn guess(
        &mut self,
        methods: &dyn MethodSource,
        limits: &GuessLimits,
        entry: Option<u32>,
        is_call: impl Fn(u32, i32) -> bool,
    ) {
        let (mut next, mut looked_at) = (0, 0);
        while let Some(node) = self.nodes.get(next) {
            let at = u32::try_from(next).unwrap_or(u32::MAX);
            let guessed_depth = self.guessed_depth(at);
            let (method, facts) = (node.method, Arc::clone(&node.facts));
            // Inlined methods begin at their begin.
            let entry = entry.map(|entry| if at == 0 { entry } else { 0 });
            let unreached = unreached(methods, method, entry);
            next += 1;
            if guessed_depth >= limits.depth {
                continue;
            }
            for call in &facts.calls {
                let bci = facts.bci_of(call);
                if is_call(at, bci.into()) || unreached.binary_search(&bci).is_ok() {
                    continue;
                }
                let bci = i32::from(bci);
                for target in methods
                    .targets(&call.targets)
                    .into_iter()
                    .take(limits.targets)
                {
                    if self.by_place.contains_key(&(at, bci, target)) || target.0 == 0 {
                        continue;
                    }
                    looked_at += 1;
                    if looked_at > MAX_LOOKED_AT {
                        return;
                    }
                    let Some(callee) = methods.facts(target) else {
                        continue;
                    };
                    let is_small = callee.size > 0 && callee.size <= limits.size;
                    if !is_small || self.steps + callee.steps.len() > limits.steps {
                        continue;
                    }
                    self.add(Some((at, bci)), target, methods, false);
                }
            }
        }
    }

    fn guessed_depth(&self, mut at: u32) -> usize {
        let mut depth = 0;
        while let Some(node) = self.nodes.get(at as usize) {
            match node.parent {
                Some((parent, _)) if !node.is_recorded => at = parent,
                _ => break,
            }
            depth += 1;
        }
        depth
    }

    /// Chain of frames of a bytecode in a node, innermost first.
    #[must_use]
    pub fn chain(&self, node: u32, bci: i32) -> Vec<Frame> {
        let mut chain = Vec::new();
        let mut next = Some((node, bci));
        while let Some((at, bci)) = next {
            let Some(node) = self.nodes.get(at as usize) else {
                break;
            };
            chain.push(Frame {
                method: node.method,
                bci,
            });
            next = node.parent;
        }
        chain
    }
}

/// Limits of guessed inlining.
#[derive(Clone, Copy, Debug)]
pub struct GuessLimits {
    /// Maximum depth of nested methods without records.
    pub depth: usize,
    /// Maximum bytecodes of such a method.
    pub size: u32,
    /// Maximum receivers per call.
    pub targets: usize,
    /// Maximum steps of the tree in total.
    pub steps: usize,
}

/// [`MethodSource::unreached`], read when it is needed; empty without `entry`.
fn unreached(
    methods: &dyn MethodSource,
    method: Avma,
    entry: Option<u32>,
) -> LazyCell<Bcis, impl FnOnce() -> Bcis> {
    LazyCell::new(move || {
        entry.map_or_else(Bcis::default, |entry| methods.unreached(method, entry))
    })
}
