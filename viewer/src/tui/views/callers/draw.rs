//! Drawing: head, flame graph or tree, details.

use super::{Callers, Form, flame, words};
use crate::present::functions::NOBODY;
use crate::present::names::region_name;
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::text;
use crate::tui::theme::{Role, Theme};
use crate::tui::views::Cx;
use crate::tui::views::empty::{no_samples, say};
use crate::tui::widgets::pane::{Bit, Pane, below};
use ratatui::Frame;
use ratatui::layout::Rect;
use vmscope_symbolizer::calls::{Around, CallTree, FunctionId};

/// Minimum width and height for callers and callees.
const AROUND_FROM: (u16, u16) = (120, 24);

/// Maximum height of callers and callees.
const AROUND: u16 = 14;

const DETAIL: u16 = 2;

/// Minimum height for callers and callees below the graph.
const AROUND_GRAPH_FROM: u16 = 40;

pub fn graph(area: Rect) -> Rect {
    if area.height < AROUND_GRAPH_FROM {
        return middle(area);
    }
    rows(area)
}

fn middle(area: Rect) -> Rect {
    Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1 + DETAIL),
        ..area
    }
}

/// Area of the tree with its heading.
pub fn rows(area: Rect) -> Rect {
    let below = around(area).map_or(0, |around| around.height + 1);
    let middle = middle(area);
    Rect {
        height: middle.height.saturating_sub(below),
        ..middle
    }
}

/// Area of callers and callees; `None` on small screens.
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

/// Whether the screen shows callers and callees.
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

    /// Selected stacks; missing data.
    pub(super) fn head(&self, cx: &Cx<'_>) -> String {
        let (all, alone) = (self.all(), self.tree().map_or(0, |tree| tree.alone()));
        let mut parts = Vec::new();
        if let (Some(through), Some(tree)) = (&self.through, self.tree()) {
            let share = percent(ratio(tree.samples(), all));
            parts.push(format!("{share} through {}", words::short(through, 40)));
        }
        let samples = &cx.profile.trace.samples;
        if samples.chains.is_empty() {
            parts.push("no caller chains recorded: inlined functions only".to_owned());
        } else if alone > 0 {
            let share = percent(ratio(alone, all));
            parts.push(format!("{} ({share}) without callers", count(alone)));
        }
        if samples.chain_ends.depth > 0 {
            let chains = some(samples.chain_ends.depth, "chain", "chains");
            parts.push(format!("{chains} of the recording cut off (maximum depth)"));
        }
        let dropped = cx.profile.time_buckets.dropped();
        if dropped > 0 {
            let older = some(dropped, "older sample", "older samples");
            parts.push(format!("{older} without stored callers"));
        }
        parts.join("; ")
    }

    pub(super) fn look<'a>(&'a self, tree: &'a CallTree, cx: &Cx<'a>) -> flame::Look<'a> {
        flame::Look {
            theme: cx.theme,
            tree,
            is_native: cx.profile.is_native(),
            place: &self.flame,
            turned: self.turned,
            fits: &self.search.fits,
        }
    }

    pub(super) fn do_draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        if cx.profile.trace.samples.times.is_empty() && cx.profile.time_buckets.dropped() == 0 {
            return say(&no_samples(cx), cx, frame, area);
        }
        if !self.has_chains(cx) {
            let text = "No caller chains were recorded (--call-graph=off).\n\n\
                        Enter shows functions with their inlined functions.";
            return say(text, cx, frame, area);
        }
        let Some(tree) = self.tree() else {
            return say("Finding stacks ...", cx, frame, area);
        };
        if tree.is_empty() {
            let text = match &self.through {
                Some(through) if self.all() > 0 => format!(
                    "No stack of these samples goes through {}. Esc shows all stacks.",
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
                if let Some(page) = self.page(cx) {
                    self.table.draw(&page, cx.theme, frame, rows(area));
                }
            }
        }
        let is_there = has_around(self.form, area);
        if let (Some(area), Some(function)) = (around(area).filter(|_| is_there), self.selected()) {
            let newest = self.around.answered().map(|(key, _)| &key.0);
            let is_newest = newest == tree.function(function);
            let is_of = self.around.get().filter(|_| is_newest);
            let of = (&**tree, self.all(), cx.profile.is_native());
            draw_around(of, cx.theme, function, is_of, frame, area);
        }
        self.draw_detail(tree, cx, frame, area);
    }

    /// Draws the head or the path to the zoomed frame; search results.
    fn draw_head(&self, tree: &CallTree, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let columns = usize::from(area.width);
        let found = match (self.search.pattern.as_str(), self.search.counts()) {
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
        let theme = cx.theme;
        let head = format!(" {}", text::name(&head, left));
        let bits = [(Role::Dim, head), (Role::Match, found)];
        Pane { theme, area }.line(frame, 0, &bits);
    }

    /// The zoomed frame and its innermost callers that fit.
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

    fn draw_detail(&self, tree: &CallTree, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let native = cx.profile.is_native();
        let (name, numbers) = self.detail(tree, native);
        let (_, area) = below(area, area.height.saturating_sub(DETAIL));
        let theme = cx.theme;
        let pane = Pane { theme, area };
        pane.line(frame, 0, &[(Role::Strong, format!(" {name}"))]);
        pane.line(frame, 1, &[(Role::Text, format!(" {numbers}"))]);
    }

    fn named(&self, tree: &CallTree, native: bool) -> Option<String> {
        let function = tree.function(self.selected()?)?;
        let what = match function.region {
            None => "thread".to_owned(),
            Some(region) => {
                let inlined = if function.inlined { ", inlined" } else { "" };
                let name = region_name(region, native);
                format!("{name}{inlined}")
            }
        };
        let letter = words::letter(function, native);
        Some(format!("{letter} {} - {what}", words::full(function)))
    }

    /// Name and figures of the selection.
    fn detail(&self, tree: &CallTree, native: bool) -> (String, String) {
        let nameless = match self.form {
            Form::Flame => "all stacks",
            Form::Tree => NOBODY,
        };
        let name = self.named(tree, native);
        let name = name.unwrap_or_else(|| nameless.to_owned());
        if let Some(node) = self.selected_node().and_then(|node| tree.node(node)) {
            let caller = tree.node(node.parent).filter(|_| node.depth > 1);
            return (name, words::numbers(node, caller, self.all()));
        }
        let row = self.table.selected().zip(self.branches.as_ref());
        let Some(branch) = row.map(|(row, branches)| branches.branch(row)) else {
            return Default::default();
        };
        let share = percent(ratio(branch.own, self.all()));
        let samples = some(branch.own, "sample", "samples");
        let of = match branch.total {
            Some(_) => "in the function itself",
            None => "on this path",
        };
        (name, format!("{samples} {of}, {share} of all"))
    }
}

/// Draws callers, the function, callees.
fn draw_around(
    (tree, all, is_native): (&CallTree, u64, bool),
    theme: &Theme,
    function: FunctionId,
    around: Option<&Around>,
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let counts = tree.counts_of(function);
    let third = area.width / 3;
    let pane = |at: u16| {
        let x = area.x + at * third;
        let width = match at {
            2 => area.width - 2 * third,
            _ => third - 1,
        };
        let area = Rect { x, width, ..area };
        Pane { theme, area }
    };
    let name = |id: Option<FunctionId>, columns: usize| -> [Bit; 2] {
        match id.and_then(|id| tree.function(id)) {
            Some(one) => [
                (
                    words::role(one),
                    format!("{} ", words::letter(one, is_native)),
                ),
                (Role::Text, text::name(&words::short(one, columns), columns)),
            ],
            None => [
                (Role::Dim, "  ".to_owned()),
                (Role::Text, text::name(NOBODY, columns)),
            ],
        }
    };
    let share_of = |samples: u64| ratio(samples, counts.total);
    let list = |frame: &mut Frame<'_>, title: &str, rows: Option<Vec<_>>, pane: Pane<'_>| {
        pane.line(frame, 0, &[(Role::Title, title.to_owned())]);
        let Some(rows) = rows else {
            return pane.line(frame, 1, &[(Role::Dim, "...".to_owned())]);
        };
        let height = pane.rows().saturating_sub(1);
        let is_cut = rows.len() > height;
        let shown = height.saturating_sub(usize::from(is_cut));
        for (row, &(id, samples)) in rows.iter().take(shown).enumerate() {
            let share = share_of(samples);
            let [letter, name] = name(id, pane.columns().saturating_sub(11));
            let percent = format!("{:>7} ", percent(share));
            pane.line(
                frame,
                row + 1,
                &[(Role::Heat(share), percent), letter, name],
            );
        }
        if is_cut {
            let rest = rows.iter().skip(shown).map(|(_, samples)| samples).sum();
            let rest = percent(share_of(rest));
            let text = format!("{rest:>7} {} more", rows.len() - shown);
            pane.line(frame, shown + 1, &[(Role::Dim, text)]);
        }
    };
    let callers = around.map(|around| around.callers.clone());
    list(frame, "callers (share of its samples)", callers, pane(0));
    let callees = around.map(|around| {
        let callees = around.callees.iter();
        callees.map(|&(id, samples)| (Some(id), samples)).collect()
    });
    list(frame, "callees (share of its samples)", callees, pane(2));
    let middle = pane(1);
    let [letter, (_, short)] = name(Some(function), middle.columns().saturating_sub(2));
    let numbers = |what: &str, samples: u64| {
        let share = percent(ratio(samples, all));
        vec![(Role::Text, format!("{share} {what} {}", count(samples)))]
    };
    let recursive = match counts.recursive {
        true => "recursive: each stack counts once",
        false => "",
    };
    let lines = [
        vec![(Role::Title, "function".to_owned())],
        vec![letter, (Role::Strong, short)],
        numbers("total ", counts.total),
        numbers("self  ", counts.own),
        vec![(Role::Dim, recursive.to_owned())],
    ];
    for (row, line) in lines.iter().enumerate() {
        middle.line(frame, row, line);
    }
}
