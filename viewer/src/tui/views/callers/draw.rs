//! Drawing the view: what it is of, the graph or the tree, and what is selected.

use super::branches::NOBODY;
use super::{Callers, Form, around, flame, words};
use crate::present::names::region_name;
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::text;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::views::empty::{no_samples, say};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use vmscope_symbolizer::Region;
use vmscope_symbolizer::calls::CallTree;

/// What is around a function is shown where there is so much room.
const AROUND_FROM: (u16, u16) = (120, 24);

/// The most rows of it.
const AROUND: u16 = 14;

/// Lines about what is selected.
const DETAIL: u16 = 2;

/// The graph has what is around the selected frame below it from so many rows on.
const AROUND_GRAPH_FROM: u16 = 40;

/// The graph, under a line of what it is of.
pub fn graph(area: Rect) -> Rect {
    if area.height < AROUND_GRAPH_FROM {
        return middle(area);
    }
    rows(area)
}

/// What is between the first line and those about what is selected.
fn middle(area: Rect) -> Rect {
    Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1 + DETAIL),
        ..area
    }
}

/// The tree with its heading.
pub fn rows(area: Rect) -> Rect {
    let below = around(area).map_or(0, |around| around.height + 1);
    let middle = middle(area);
    Rect {
        height: middle.height.saturating_sub(below),
        ..middle
    }
}

/// Where what is around a function is.
fn around(area: Rect) -> Option<Rect> {
    if area.width < AROUND_FROM.0 || area.height < AROUND_FROM.1 {
        return None;
    }
    let height = (area.height / 3).min(AROUND);
    let middle = middle(area);
    Some(Rect {
        y: middle.bottom().saturating_sub(height),
        height,
        ..middle
    })
}

/// Whether what is around a function is shown.
pub fn has_around(form: Form, area: Rect) -> bool {
    let is_tall = form == Form::Tree || area.height >= AROUND_GRAPH_FROM;
    is_tall && around(area).is_some()
}

impl Callers {
    pub(super) fn form_name(&self) -> &'static str {
        match (self.form, self.up) {
            (Form::Flame, _) => "flame graph",
            (Form::Tree, false) => "top down",
            (Form::Tree, true) => "bottom up",
        }
    }

    /// What it is of, and what it lacks.
    pub(super) fn head(&self, cx: &Cx<'_>) -> String {
        let (all, alone) = (self.all(), self.tree().map_or(0, |tree| tree.alone()));
        let mut parts = Vec::new();
        if let (Some(through), Some(tree)) = (&self.through, self.tree()) {
            let share = percent(ratio(tree.samples(), all));
            parts.push(format!("{share} through {}", words::short(through, 40)));
        }
        let samples = &cx.profile.trace.samples;
        if samples.chains.is_empty() {
            parts.push("no callers were recorded: what was inlined alone".to_owned());
        } else if alone > 0 {
            let share = percent(ratio(alone, all));
            parts.push(format!("{} ({share}) without callers", count(alone)));
        }
        if samples.truncated_chains > 0 {
            let chains = some(samples.truncated_chains, "chain", "chains");
            parts.push(format!("{chains} of the recording cut off"));
        }
        let dropped = cx.profile.time_buckets.dropped();
        if dropped > 0 {
            let older = some(dropped, "older sample", "older samples");
            parts.push(format!("{older} not kept with callers"));
        }
        parts.join("; ")
    }

    pub(super) fn look<'a>(&'a self, tree: &'a CallTree, cx: &Cx<'a>) -> flame::Look<'a> {
        flame::Look {
            theme: cx.theme,
            tree,
            place: &self.flame,
            turned: self.turned,
            fits: self.search.fits(),
        }
    }

    pub(super) fn do_draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        if cx.profile.trace.samples.times.is_empty() && cx.profile.time_buckets.dropped() == 0 {
            return say(&no_samples(cx), cx, frame, area);
        }
        if !self.has_chains(cx) {
            let text = "No caller chains were recorded: which functions were called from where \
                        is not known.\n\nRecord them with --call-graph=fp:\n\n    vmscope record \
                        --call-graph=fp -- COMMAND\n\n(attach and top take it, too). Enter shows \
                        what there is: functions, and what was inlined into them.";
            return say(text, cx, frame, area);
        }
        let Some(tree) = self.tree() else {
            return say("Finding stacks ...", cx, frame, area);
        };
        if tree.is_empty() {
            let text = match &self.through {
                Some(through) if self.all() > 0 => format!(
                    "No stack among these samples goes through {}. Esc shows all of them.",
                    words::full(through)
                ),
                _ => no_samples(cx),
            };
            return say(&text, cx, frame, area);
        }
        self.draw_head(tree, cx, frame, area);
        match self.form {
            Form::Flame => self.look(tree, cx).draw(frame, graph(area)),
            Form::Tree => {
                if let Some(page) = self.page() {
                    self.table.draw(&page, cx.theme, frame, rows(area));
                }
            }
        }
        let is_there = has_around(self.form, area);
        if let (Some(area), Some(function)) = (around(area).filter(|_| is_there), self.selected()) {
            let newest = self.around.answered().map(|(key, _)| &key.0);
            let is_newest = newest == tree.function(function);
            let is_of = self.around.get().filter(|_| is_newest);
            around::draw((tree, cx.theme, self.all()), function, is_of, frame, area);
        }
        self.draw_detail(tree, cx, frame, area);
    }

    /// What it is of, or what has the whole width; what a search has found.
    fn draw_head(&self, tree: &CallTree, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let columns = usize::from(area.width);
        let found = match (self.search.pattern(), self.search.found()) {
            ("", _) => String::new(),
            (pattern, (functions, samples)) => {
                let share = samples.map_or_else(
                    || "...".to_owned(),
                    |samples| percent(ratio(samples, self.all())),
                );
                let functions = some(functions as u64, "function", "functions");
                format!("  `{}`: {share} in {functions}", text::line(pattern, 20))
            }
        };
        let left = columns.saturating_sub(text::width(&found) + 1);
        let zoom = self.flame.zoom;
        let head = if self.form == Form::Flame && zoom != CallTree::ROOT {
            self.way_to_zoom(tree, left)
        } else {
            self.head(cx)
        };
        let line = Line::from(vec![
            Span::styled(
                format!(" {}", text::name(&head, left)),
                cx.theme.style(Role::Dim),
            ),
            Span::styled(found, cx.theme.style(Role::Match)),
        ]);
        let head = Rect {
            height: area.height.min(1),
            ..area
        };
        frame.render_widget(line, head);
    }

    /// What has the whole width, and as many of those above it as there is room for.
    fn way_to_zoom(&self, tree: &CallTree, columns: usize) -> String {
        let mut way = String::new();
        let path = tree.path(self.flame.zoom);
        for (&node, left) in path.iter().rev().zip((0..path.len()).rev()) {
            let name = tree.function_of(node);
            let name = name.map_or_else(String::new, |name| words::short(name, 40));
            let longer = if way.is_empty() {
                name
            } else {
                format!("{name} > {way}")
            };
            let above = if left > 0 {
                format!("all > {left} > ")
            } else {
                "all > ".to_owned()
            };
            if text::width(&above) + text::width(&longer) > columns && !way.is_empty() {
                return format!("all > {} > {way}", some(left as u64 + 1, "frame", "frames"));
            }
            way = longer;
        }
        format!("all > {way}")
    }

    /// What is selected, in full.
    fn draw_detail(&self, tree: &CallTree, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let columns = usize::from(area.width).saturating_sub(1);
        let native = cx.profile.is_native();
        let (name, numbers) = match self.form {
            Form::Flame => self.frame_detail(tree, native),
            Form::Tree => self.row_detail(tree, native),
        };
        let lines = [(name, Role::Strong), (numbers, Role::Text)];
        let first = area.bottom().saturating_sub(DETAIL);
        for ((text, role), y) in lines.into_iter().zip(first..area.bottom()) {
            let text = format!(" {}", text::line(&text, columns));
            let line = Line::styled(text, cx.theme.style(role));
            frame.render_widget(
                line,
                Rect {
                    y,
                    height: 1,
                    ..area
                },
            );
        }
    }

    fn named(&self, tree: &CallTree, native: bool) -> Option<String> {
        let function = tree.function(self.selected()?)?;
        let what = match function.region {
            None => "thread".to_owned(),
            Some(region) => {
                let inlined = if function.inlined { ", inlined" } else { "" };
                let name = match region {
                    Region::Vm if native => "program",
                    region => region_name(region),
                };
                format!("{name}{inlined}")
            }
        };
        let letter = words::letter(function);
        Some(format!("{letter} {} - {what}", words::full(function)))
    }

    fn frame_detail(&self, tree: &CallTree, native: bool) -> (String, String) {
        let Some(node) = tree.node(self.flame.selected) else {
            return Default::default();
        };
        let is_root = self.flame.selected == CallTree::ROOT;
        let caller = tree
            .node(node.parent)
            .filter(|_| !is_root && node.depth > 1);
        let name = self
            .named(tree, native)
            .unwrap_or_else(|| "all stacks".to_owned());
        (name, words::numbers(node, caller, self.all()))
    }

    fn row_detail(&self, tree: &CallTree, native: bool) -> (String, String) {
        let row = self.table.selected().zip(self.branches.as_ref());
        let Some(branch) = row.map(|(row, branches)| branches.branch(row)) else {
            return Default::default();
        };
        let name = self
            .named(tree, native)
            .unwrap_or_else(|| NOBODY.to_owned());
        if let Some(node) = self.selected_node().and_then(|node| tree.node(node)) {
            let caller = tree.node(node.parent).filter(|_| node.depth > 1);
            return (name, words::numbers(node, caller, self.all()));
        }
        let share = percent(ratio(branch.own, self.all()));
        let samples = some(branch.own, "sample", "samples");
        let of = match branch.total {
            Some(_) => "of its own".to_owned(),
            None => "came this way".to_owned(),
        };
        (name, format!("{samples} {of}, {share} of all"))
    }
}
