//! The flame graph: rows of frames, each as wide as its samples.
//!
//! ```text
//! all                                                                             │
//! G Main.main (C2)                                       │J compile_loop          │
//! G OrderBook.match (C2)               │L memcpy    │… 7 │J PhaseIdealLoop    │…  │
//! ```
//!
//! Callees stand below their caller, most samples first; blank space is self time. Frames narrower
//! than a column share one box at the end: `… 7` frames. A run of frames that only call the next is
//! folded into its last frame: `V +15 start_main`.

use super::words;
use crate::present::numbers::count;
use crate::present::text;
use crate::tui::theme::{Role, Theme};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use vmscope_symbolizer::IndexVec;
use vmscope_symbolizer::calls::{CallTree, FunctionId, NodeId};

/// Shortest run that is folded, in frames.
const RUN: usize = 4;

/// Position in the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Whether runs have a row for each frame.
    pub unfolded: bool,
    /// Frame at full width.
    pub zoom: NodeId,
    /// Earlier zooms, oldest first.
    pub before: Vec<NodeId>,
    /// Selected frame: `zoom` or a frame below.
    pub selected: NodeId,
    /// First visible row.
    pub top: usize,
}

/// Box of the graph: one frame, or several narrow ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// First frame; of a folded run, the last.
    pub node: NodeId,
    /// Number of frames side by side.
    pub frames: usize,
    /// Number of frames above it in a folded run.
    pub above: usize,
    pub samples: u64,
    /// First column.
    pub x: usize,
    /// Columns.
    pub width: usize,
    /// Samples left of the box.
    left: u64,
}

/// The next frame of a run: the only callee of a frame without own samples. Threads do not count as
/// frames.
fn next_of_run(tree: &CallTree, node: NodeId) -> Option<NodeId> {
    let is_thread = |node| {
        let function = tree.function_of(node);
        function.is_some_and(|function| function.thread.is_some())
    };
    let mut children = tree.children(node);
    let own = tree.node(node)?.own;
    let only = children.next()?;
    (own == 0 && children.next().is_none() && !is_thread(node)).then_some(only)
}

/// At most `rows` rows of boxes, from the zoomed frame down.
pub fn rows(tree: &CallTree, place: &Place, columns: usize, rows: usize) -> Vec<Vec<Cell>> {
    let zoom = place.zoom;
    let Some(root) = tree.node(zoom).filter(|root| root.total > 0) else {
        return Vec::new();
    };
    let whole = root.total;
    let column = |samples: u64| -> usize {
        let columns = u128::from(samples) * columns as u128 / u128::from(whole);
        usize::try_from(columns).unwrap_or(0)
    };
    let first = Cell {
        node: zoom,
        frames: 1,
        above: 0,
        samples: whole,
        x: 0,
        width: columns,
        left: 0,
    };
    let mut all = vec![vec![first]];
    while all.len() < rows {
        let above = all.last().map_or(&[][..], Vec::as_slice);
        let mut row = Vec::new();
        for parent in above.iter().filter(|cell| cell.frames == 1) {
            let mut left = parent.left;
            let children = tree.children(parent.node);
            let own = tree.node(parent.node).map_or(0, |node| node.own);
            let end = parent.left + parent.samples.saturating_sub(own);
            let mut cell = |node: NodeId, frames: usize, samples: u64| {
                let x = column(left);
                let width = column(left + samples).saturating_sub(x);
                if width > 0 {
                    let last = place.end_of_run(tree, node).filter(|_| frames == 1);
                    let (node, above) = last.unwrap_or((node, 0));
                    row.push(Cell {
                        node,
                        frames,
                        above,
                        samples,
                        x,
                        width,
                        left,
                    });
                }
                left += samples;
                left
            };
            for (child, drawn) in children.clone().zip(0usize..) {
                let samples = tree.node(child).map_or(0, |node| node.total);
                if column(samples) == 0 {
                    // Further siblings are no wider.
                    let left = cell(child, 0, 0);
                    cell(child, children.len() - drawn, end.saturating_sub(left));
                    break;
                }
                cell(child, 1, samples);
            }
        }
        if row.is_empty() {
            break;
        }
        all.push(row);
    }
    all
}

/// Frames of a box.
fn nodes_of(tree: &CallTree, cell: &Cell) -> impl Iterator<Item = NodeId> {
    let end = u32::try_from(cell.frames).map_or(u32::MAX, |frames| cell.node + frames);
    let above = std::iter::successors(Some(cell.node), |&node| Some(parent_of(tree, node)));
    (cell.node..end).chain(above.skip(1).take(cell.above))
}

pub fn parent_of(tree: &CallTree, node: NodeId) -> NodeId {
    tree.node(node).map_or(CallTree::ROOT, |node| node.parent)
}

/// End of the hottest path from a frame.
pub fn hottest_path(tree: &CallTree, from: NodeId) -> NodeId {
    let mut at = from;
    while let (Some(node), Some(child)) = (tree.node(at), tree.children(at).next()) {
        let below = tree.node(child).map_or(0, |child| child.total);
        // The command always takes the first step.
        if at != from && node.own >= below {
            break;
        }
        at = child;
    }
    at
}

/// Begin of the hottest path to a frame.
pub fn begin_of_path(tree: &CallTree, zoom: NodeId, from: NodeId) -> NodeId {
    let mut at = from;
    while at != zoom {
        let parent = parent_of(tree, at);
        let is_first = tree.children(parent).start == at;
        if !is_first && at != from {
            break;
        }
        at = parent;
        if !is_first {
            break;
        }
    }
    at
}

/// Last frame of the first children below a frame.
pub fn deepest(tree: &CallTree, from: NodeId) -> NodeId {
    let down = |&node: &NodeId| tree.children(node).next();
    std::iter::successors(Some(from), down)
        .last()
        .unwrap_or(from)
}

impl Place {
    /// Last frame of the folded run that begins with a frame, and the number of frames before it.
    fn end_of_run(&self, tree: &CallTree, begin: NodeId) -> Option<(NodeId, usize)> {
        let run = std::iter::successors(Some(begin), |&node| next_of_run(tree, node));
        let (before, last) = run.enumerate().filter(|_| !self.unfolded).last()?;
        (before + 1 >= RUN).then_some((last, before))
    }

    /// Row of a frame by its first and last frame: two equal ones, except of a folded run.
    pub fn run(&self, tree: &CallTree, node: NodeId) -> (NodeId, NodeId) {
        let mut begin = node;
        while begin != self.zoom && begin != CallTree::ROOT {
            let parent = parent_of(tree, begin);
            if parent == self.zoom || next_of_run(tree, parent).is_none() {
                break;
            }
            begin = parent;
        }
        let is_zoom = node == self.zoom;
        let last = self.end_of_run(tree, begin).filter(|_| !is_zoom);
        last.map_or((node, node), |(last, _)| (begin, last))
    }

    /// Frame above a frame's row; `None` at the zoomed frame.
    pub fn up(&self, tree: &CallTree, node: NodeId) -> Option<NodeId> {
        let is_top = node == self.zoom || node == CallTree::ROOT;
        (!is_top).then(|| parent_of(tree, self.run(tree, node).0))
    }

    /// First frame below a frame's row.
    pub fn down(&self, tree: &CallTree, node: NodeId) -> Option<NodeId> {
        let below = tree.children(self.run(tree, node).1).next()?;
        Some(self.run(tree, below).1)
    }

    /// Row of the selected frame.
    pub fn row(&self, tree: &CallTree) -> usize {
        let rows = std::iter::successors(Some(self.selected), |&node| self.up(tree, node));
        rows.skip(1).count()
    }

    /// Selects a frame; zooms out completely for frames outside the zoom.
    pub fn select(&mut self, tree: &CallTree, node: NodeId, height: usize) {
        self.selected = node;
        let mut above = node;
        while above != self.zoom && above != CallTree::ROOT {
            above = tree.node(above).map_or(CallTree::ROOT, |node| node.parent);
        }
        if above != self.zoom {
            self.zoom = CallTree::ROOT;
            self.before.clear();
        }
        let row = self.row(tree);
        self.top = self
            .top
            .min(row)
            .max((row + 1).saturating_sub(height.max(1)));
    }

    /// Zooms to the selected frame.
    pub fn zoom_in(&mut self) -> bool {
        if self.selected == self.zoom {
            return false;
        }
        self.before.push(self.zoom);
        self.zoom = self.selected;
        self.top = 0;
        true
    }

    /// Returns to the previous zoom.
    pub fn zoom_out(&mut self, tree: &CallTree, height: usize) -> bool {
        if self.zoom == CallTree::ROOT {
            return false;
        }
        self.zoom = self.before.pop().unwrap_or(CallTree::ROOT);
        self.select(tree, self.selected, height);
        true
    }

    /// Same position in a new tree; missing frames fall back to their callers.
    pub fn carried(&self, old: &CallTree, new: &CallTree) -> Self {
        let carry = |node: NodeId| -> NodeId {
            let mut at = CallTree::ROOT;
            for step in old.path(node) {
                let function = old.function_of(step).and_then(|one| new.find(one));
                match function.and_then(|function| new.child(at, function)) {
                    Some(child) => at = child,
                    None => break,
                }
            }
            at
        };
        let zoom = carry(self.zoom);
        Place {
            unfolded: self.unfolded,
            zoom,
            before: self.before.iter().map(|&node| carry(node)).collect(),
            selected: carry(self.selected),
            top: self.top,
        }
    }
}

/// Drawing of the graph.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    pub theme: &'a Theme,
    pub tree: &'a CallTree,
    pub is_native: bool,
    pub place: &'a Place,
    /// Root at the bottom.
    pub turned: bool,
    /// Search match by function; may be empty.
    pub fits: &'a IndexVec<FunctionId, bool>,
}

impl Look<'_> {
    /// Rows inside an area, with screen lines.
    fn lines(&self, area: Rect) -> Vec<(u16, Vec<Cell>)> {
        let (columns, height) = (usize::from(area.width), usize::from(area.height));
        let rows = rows(self.tree, self.place, columns, self.place.top + height);
        let rows = rows.into_iter().skip(self.place.top).zip(0u16..);
        let lines = rows.map(|(cells, at)| {
            let y = if self.turned {
                area.bottom().saturating_sub(at + 1)
            } else {
                area.y + at
            };
            (y, cells)
        });
        lines.collect()
    }

    /// Frame at a screen position.
    pub fn at(&self, area: Rect, at: Position) -> Option<NodeId> {
        let lines = self.lines(area);
        let (_, cells) = lines.into_iter().find(|(y, _)| *y == at.y)?;
        let x = usize::from(at.x.checked_sub(area.x)?);
        let mut cells = cells.into_iter();
        let cell = cells.find(|cell| (cell.x..cell.x + cell.width).contains(&x))?;
        Some(cell.node)
    }

    pub fn draw(&self, frame: &mut Frame<'_>, area: Rect) {
        for (y, cells) in self.lines(area) {
            let mut spans = Vec::new();
            let mut x = 0;
            for cell in &cells {
                spans.push(Span::raw(" ".repeat(cell.x.saturating_sub(x))));
                self.cell(cell, &mut spans);
                x = cell.x + cell.width;
            }
            let line = Rect {
                y,
                height: 1,
                ..area
            };
            frame.render_widget(Line::from(spans), line);
        }
    }

    fn cell(&self, cell: &Cell, spans: &mut Vec<Span<'static>>) {
        let is_selected = nodes_of(self.tree, cell).any(|node| node == self.place.selected);
        let function = self.tree.function_of(cell.node);
        let fits = |node: NodeId| {
            let function = self.tree.node(node).and_then(|node| node.function);
            function.is_some_and(|function| self.fits.get(function) == Some(&true))
        };
        let is_match = !self.fits.is_empty() && nodes_of(self.tree, cell).any(fits);
        // Boxes wider than a column end with a line.
        let room = cell.width - usize::from(cell.width > 1);
        let sign = self.theme.sign("▸", ">");
        let dots = self.theme.sign("…", "..");
        let text = match function {
            _ if cell.frames > 1 => {
                let dots = if is_selected { sign } else { dots };
                let text = format!("{dots} {}", count(cell.frames as u64));
                // Never a number cut in half.
                if text::width(&text) <= room {
                    text
                } else {
                    dots.to_owned()
                }
            }
            None => format!("{}all", if is_selected { sign } else { " " }),
            Some(function) => {
                let head = match (is_selected, is_match) {
                    (true, _) => sign,
                    (false, true) => "*",
                    _ => "",
                };
                let letter = words::letter(function, self.is_native);
                let folded = match cell.above {
                    0 => String::new(),
                    above => format!("+{above} "),
                };
                let left = room.saturating_sub(text::width(head) + 2);
                // A narrow box has the name alone.
                let folded = if left < 3 * folded.len() { "" } else { &folded };
                let name = words::tiny(function, left - folded.len());
                format!("{head}{letter} {folded}{name}")
            }
        };
        let role = match function {
            _ if is_selected => Role::Selected,
            _ if is_match => Role::Match,
            _ if cell.frames > 1 => Role::Dim,
            Some(function) => Role::Block(function.region),
            None => Role::Block(None),
        };
        let style = self.theme.style(role);
        let text = text::start(&text, room);
        let blanks = room.saturating_sub(text::width(&text));
        spans.push(Span::styled(text + &" ".repeat(blanks), style));
        if room < cell.width {
            let line = self.theme.sign("│", "|");
            spans.push(Span::styled(line, self.theme.style(Role::Dim)));
        }
    }
}
