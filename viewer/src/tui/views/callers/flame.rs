//! The flame graph: rows of frames, each as wide as its samples.
//!
//! ```text
//! all                                                                             │
//! G Main.main (C2)                                       │J compile_loop          │
//! G OrderBook.match (C2)               │L memcpy    │… 7 │J PhaseIdealLoop    │…  │
//! ```
//!
//! Under each frame is what it called, most samples first; what is left blank is its own.
//! What would be narrower than a column is drawn together at the end: `… 7` frames.

use super::words;
use crate::present::numbers::count;
use crate::present::text;
use crate::tui::theme::{Role, Theme};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use vmscope_symbolizer::calls::{CallTree, NodeId};

/// Where in the graph one is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// What has the whole width.
    pub zoom: NodeId,
    /// What had it before, the oldest first.
    pub before: Vec<NodeId>,
    /// The frame that is selected: `zoom`, or under it.
    pub selected: NodeId,
    /// The first row that is drawn.
    pub top: usize,
}

/// A box of the graph: a frame, or several that are too narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The first of its frames.
    pub node: NodeId,
    /// How many frames it stands for.
    pub frames: usize,
    /// Their samples.
    pub samples: u64,
    /// Its first column.
    pub x: usize,
    /// How many columns.
    pub width: usize,
    /// Samples to the left of it.
    left: u64,
}

/// The rows of the graph, from what has the whole width down to at most `rows`.
pub fn rows(tree: &CallTree, zoom: NodeId, columns: usize, rows: usize) -> Vec<Vec<Cell>> {
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
                    row.push(Cell {
                        node,
                        frames,
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
                    // Those behind it are no wider.
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

/// Whether a cell stands for a node.
fn is_in(cell: &Cell, node: NodeId) -> bool {
    (cell.node as usize..cell.node as usize + cell.frames).contains(&(node as usize))
}

impl Place {
    /// In which row the selected frame is.
    pub fn row(&self, tree: &CallTree) -> usize {
        let depth = |node| tree.node(node).map_or(0, |node| node.depth);
        depth(self.selected).saturating_sub(depth(self.zoom)) as usize
    }

    /// Selects a frame; all is shown again where it is not under what has the whole width.
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

    /// Gives the selected frame the whole width.
    pub fn zoom_in(&mut self) -> bool {
        if self.selected == self.zoom {
            return false;
        }
        self.before.push(self.zoom);
        self.zoom = self.selected;
        self.top = 0;
        true
    }

    /// Goes back to what had it before.
    pub fn zoom_out(&mut self, tree: &CallTree, height: usize) -> bool {
        if self.zoom == CallTree::ROOT {
            return false;
        }
        self.zoom = self.before.pop().unwrap_or(CallTree::ROOT);
        self.select(tree, self.selected, height);
        true
    }

    /// The same in a tree of new counts, as far as it is still there.
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
            zoom,
            before: self.before.iter().map(|&node| carry(node)).collect(),
            selected: carry(self.selected),
            top: self.top,
        }
    }
}

/// How the graph is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// What the terminal can show.
    pub theme: &'a Theme,
    /// The tree.
    pub tree: &'a CallTree,
    /// Where in it one is.
    pub place: &'a Place,
    /// Whether the root is at the bottom.
    pub turned: bool,
    /// By function, what a search has found.
    pub fits: &'a [bool],
}

impl Look<'_> {
    /// The rows that are in an area, with the lines that they are drawn in.
    fn lines(&self, area: Rect) -> Vec<(u16, Vec<Cell>)> {
        let (columns, height) = (usize::from(area.width), usize::from(area.height));
        let rows = rows(self.tree, self.place.zoom, columns, self.place.top + height);
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

    /// The frame at a place on the screen.
    pub fn at(&self, area: Rect, at: Position) -> Option<NodeId> {
        let lines = self.lines(area);
        let (_, cells) = lines.into_iter().find(|(y, _)| *y == at.y)?;
        let x = usize::from(at.x.checked_sub(area.x)?);
        let mut cells = cells.into_iter();
        let cell = cells.find(|cell| (cell.x..cell.x + cell.width).contains(&x))?;
        Some(cell.node)
    }

    /// Draws it.
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
        let is_selected = is_in(cell, self.place.selected);
        let function = self.tree.function_of(cell.node);
        let fits = |node: NodeId| {
            let function = self.tree.node(node).map(|node| node.function);
            function.is_some_and(|at| self.fits.get(at as usize) == Some(&true))
        };
        let end = u32::try_from(cell.frames).map_or(u32::MAX, |frames| cell.node + frames);
        let is_match = !self.fits.is_empty() && (cell.node..end).any(fits);
        // A line between it and its neighbour, where there is room for one.
        let room = cell.width - usize::from(cell.width > 1);
        let sign = self.theme.sign("▸", ">");
        let dots = self.theme.sign("…", "..");
        let text = match function {
            _ if cell.frames > 1 => {
                let dots = if is_selected { sign } else { dots };
                let text = format!("{dots} {}", count(cell.frames as u64));
                // A number is whole or not there.
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
                let letter = words::letter(function);
                let left = room.saturating_sub(text::width(head) + 2);
                let name = words::tiny(function, left);
                format!("{head}{letter} {name}")
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
        let text = fitted(&text, room);
        spans.push(Span::styled(text, style));
        if room < cell.width {
            let line = self.theme.sign("│", "|");
            spans.push(Span::styled(line, self.theme.style(Role::Dim)));
        }
    }
}

/// A text in exactly so many columns, cut off without dots: they would take the room.
fn fitted(text: &str, columns: usize) -> String {
    let text = crate::present::text::harmless(text);
    let mut cut = String::new();
    let mut left = columns;
    for c in text.chars() {
        let width = text::width(c.encode_utf8(&mut [0; 4]));
        if width > left {
            break;
        }
        left -= width;
        cut.push(c);
    }
    cut.extend(std::iter::repeat_n(' ', left));
    cut
}
