//! Keys and mouse.

use super::flame::{begin_of_path, deepest, hottest_path};
use super::{
    ALL_STACKS, BY_THREAD, Callers, FOLD, Form, METHOD, THROUGH, WITHOUT_CHAINS, draw, flame, words,
};
use crate::tui::filter_state::FilterChange;
use crate::tui::keys::Command;
use crate::tui::views::{Act, Click, Cx, Press};
use crate::tui::widgets::data_table::{Clicked, Rows};
use vmscope_symbolizer::EntryId;
use vmscope_symbolizer::calls::{CallTree, NodeId};
use vmscope_symbolizer::profile::Entry;

/// Rows per wheel step.
const WHEEL: usize = 3;

impl Callers {
    pub(super) fn do_command(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        if !self.has_chains(cx) {
            if matches!(command, Command::Open | Command::Own(WITHOUT_CHAINS)) {
                self.without_chains = true;
                return Vec::new();
            }
            if command == Command::Cancel {
                return Vec::new();
            }
            let text = "no caller chains recorded: Enter shows functions without callers";
            return vec![Act::Say(text.to_owned())];
        }
        match command {
            Command::Mode => self.change_form(cx),
            Command::Own(BY_THREAD) => self.by_thread = !self.by_thread,
            Command::Own(ALL_STACKS) => self.through = None,
            Command::Own(WITHOUT_CHAINS) => self.without_chains = true,
            Command::Own(METHOD) => return self.open_method(cx),
            Command::Own(THROUGH) => return self.go_through(),
            Command::Only => return self.only(cx),
            Command::Cancel => {
                // First press: end of search. Second press: all stacks.
                if !self.search.just_ended() {
                    self.through = None;
                }
            }
            _ => return self.do_move(command, cx),
        }
        Vec::new()
    }

    fn do_move(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        match self.form {
            Form::Flame => {
                self.in_flame(command, cx);
                Vec::new()
            }
            Form::Tree if command == Command::Open => self.open_method(cx),
            Form::Tree => {
                self.in_tree(command, cx);
                Vec::new()
            }
        }
    }

    fn change_form(&mut self, cx: &Cx<'_>) {
        let node = self.selected_node();
        self.form = match self.form {
            Form::Flame => Form::Tree,
            Form::Tree => Form::Flame,
        };
        let (Some(tree), Some(node)) = (self.shown.clone(), node) else {
            return;
        };
        // A selection present in both forms stays.
        match self.form {
            Form::Flame => self
                .flame
                .select(&tree, node, draw::graph(cx.area).height.into()),
            Form::Tree if node != CallTree::ROOT && !self.up => self.reveal(node, cx),
            Form::Tree => {}
        }
    }

    fn only(&self, cx: &Cx<'_>) -> Vec<Act> {
        let named = self.selected().and_then(|id| self.tree()?.function(id));
        if let Some(thread) = named.and_then(|function| function.thread) {
            return crate::tui::views::threads::only(&[thread]);
        }
        let only = |entry| vec![Act::FilterChange(FilterChange::Entries(vec![entry]))];
        let entry = self.selected_entry(cx);
        entry.map_or_else(Self::no_entry, only)
    }

    /// Toggles the restriction to stacks through the selected function.
    fn go_through(&mut self) -> Vec<Act> {
        let named = self.selected().and_then(|id| self.tree()?.function(id));
        let Some(function) = named.cloned() else {
            return vec![Act::Say("no function is selected".to_owned())];
        };
        if let Some(thread) = function.thread {
            return crate::tui::views::threads::only(&[thread]);
        }
        if self.through.as_ref() == Some(&function) {
            self.through = None;
            return vec![Act::Say("all stacks".to_owned())];
        }
        let name = words::short(&function, 50);
        self.through = Some(function);
        vec![Act::Say(format!(
            "only stacks through {name}; Esc shows all stacks"
        ))]
    }

    /// Entry with the function's self samples, else a namesake.
    fn selected_entry(&self, cx: &Cx<'_>) -> Option<EntryId> {
        let tree = self.tree()?;
        let id = self.selected()?;
        let function = tree.function(id)?;
        if function.thread.is_some() {
            return None;
        }
        tree.entry_of(id).or_else(|| {
            let entries = cx.profile.entries.enumerated();
            let begins_there = |entry: &Entry| match &function.begin {
                Some(begin) => *entry.file == *begin.file && entry.line == begin.line,
                None => true,
            };
            let is_same = |entry: &Entry| *entry.name == *function.name && begins_there(entry);
            let mut same = entries.filter(|(_, entry)| is_same(entry));
            let of_tier = same
                .clone()
                .find(|(_, entry)| *entry.tier == *function.tier);
            of_tier.or_else(|| same.next()).map(|(id, _)| id)
        })
    }

    fn no_entry() -> Vec<Act> {
        vec![Act::Say(
            "no sample in the function itself, only in its callees".to_owned(),
        )]
    }

    pub(super) fn open_method(&self, cx: &Cx<'_>) -> Vec<Act> {
        let entry = self.selected_entry(cx);
        entry.map_or_else(Self::no_entry, |entry| vec![Act::Annotate(entry)])
    }

    pub(super) fn zoom_out(&mut self, cx: &Cx<'_>) -> bool {
        let height = draw::graph(cx.area).height.into();
        let tree = self.shown.clone();
        tree.is_some_and(|tree| self.flame.zoom_out(&tree, height))
    }

    fn in_flame(&mut self, command: Command, cx: &Cx<'_>) {
        let Some(tree) = self.shown.clone() else {
            return;
        };
        let now = self.flame.selected;
        let height: usize = draw::graph(cx.area).height.into();
        let command = match (command, self.turned) {
            (Command::Up, true) => Command::Down,
            (Command::Down, true) => Command::Up,
            (Command::PageUp, true) => Command::PageDown,
            (Command::PageDown, true) => Command::PageUp,
            (Command::HalfUp, true) => Command::HalfDown,
            (Command::HalfDown, true) => Command::HalfUp,
            (command, _) => command,
        };
        let is_zoom = now == self.flame.zoom;
        let steps = match command {
            Command::PageUp | Command::PageDown => height.saturating_sub(1).max(1),
            Command::HalfUp | Command::HalfDown => (height / 2).max(1),
            _ => 1,
        };
        let walk = |next: &dyn Fn(NodeId) -> Option<NodeId>| {
            let path = std::iter::successors(Some(now), |&node| next(node));
            path.take(steps + 1).last().unwrap_or(now)
        };
        let selected = match command {
            Command::Up if is_zoom => {
                self.zoom_out(cx);
                if self.flame.zoom == now {
                    now
                } else {
                    self.flame.up(&tree, now).unwrap_or(now)
                }
            }
            Command::Left if is_zoom => {
                self.zoom_out(cx);
                now
            }
            Command::Up | Command::PageUp | Command::HalfUp => {
                walk(&|node| self.flame.up(&tree, node))
            }
            Command::Down | Command::PageDown | Command::HalfDown => {
                walk(&|node| self.flame.down(&tree, node))
            }
            Command::Left | Command::Right if !is_zoom => {
                let (begin, _) = self.flame.run(&tree, now);
                let beside = tree.beside(self.flame.zoom, begin, command == Command::Right);
                beside.map_or(now, |node| self.flame.run(&tree, node).1)
            }
            Command::First => self.flame.zoom,
            Command::Last => deepest(&tree, self.flame.zoom),
            Command::NextHot => hottest_path(&tree, now),
            Command::PreviousHot => begin_of_path(&tree, self.flame.zoom, now),
            Command::Open | Command::Toggle | Command::ZoomIn => {
                self.flame.zoom_in();
                self.flame.selected
            }
            Command::ZoomOut => {
                self.zoom_out(cx);
                self.flame.selected
            }
            Command::Group | Command::GroupBack => {
                self.turned = !self.turned;
                now
            }
            Command::Own(FOLD) => {
                self.flame.unfolded = !self.flame.unfolded;
                now
            }
            _ => return,
        };
        self.flame.select(&tree, selected, height);
    }

    pub(super) fn reveal(&mut self, node: NodeId, cx: &Cx<'_>) {
        self.with_table(cx, |table, page, height| {
            table.reveal(page, &page.branches.path_to(node), height);
        });
    }

    fn in_tree(&mut self, command: Command, cx: &Cx<'_>) {
        let Some(row) = self.table.selected() else {
            return;
        };
        if matches!(command, Command::Group | Command::GroupBack) {
            return self.turn_tree(cx);
        }
        self.with_table(cx, |table, page, height| match command {
            Command::Toggle => {
                table.toggle(page, height);
            }
            Command::ZoomIn if !table.is_expanded(page, row) => {
                table.toggle(page, height);
            }
            Command::ZoomOut if table.is_expanded(page, row) => {
                table.toggle(page, height);
            }
            Command::NextHot => {
                let path = page.branches.hottest_path(row);
                table.reveal(page, &path, height);
            }
            Command::PreviousHot => {
                let key = page.key(page.branches.begin_of_path(row));
                table.select_key(page, &key, height);
            }
            _ => {
                table.act(command, page, height);
            }
        });
    }

    /// Changes direction; keeps the selected function.
    fn turn_tree(&mut self, cx: &Cx<'_>) {
        let function = self.selected();
        self.up = !self.up;
        self.begin_branches(cx);
        let (Some(function), Some(tree)) = (function, self.shown.clone()) else {
            return;
        };
        if !self.up {
            if let Some(node) = tree.hottest_of(function) {
                self.reveal(node, cx);
            }
            return;
        }
        self.with_table(cx, |table, page, height| {
            if let Some(row) = page.branches.root_of(function) {
                table.select_key(page, &page.key(row), height);
            }
        });
    }

    pub(super) fn do_click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let Some(tree) = self.shown.clone().filter(|_| self.has_chains(cx)) else {
            if click.what == Press::Double {
                self.without_chains = true;
            }
            return Vec::new();
        };
        match self.form {
            Form::Flame => {
                let area = draw::graph(cx.area);
                let rows = usize::from(area.height);
                let (away, towards) = if self.turned {
                    (Press::WheelDown, Press::WheelUp)
                } else {
                    (Press::WheelUp, Press::WheelDown)
                };
                if click.what == away {
                    self.flame.top = self.flame.top.saturating_sub(WHEEL);
                } else if click.what == towards {
                    let wanted = self.flame.top + WHEEL;
                    let columns = usize::from(area.width);
                    let deep = flame::rows(&tree, &self.flame, columns, wanted + rows).len();
                    self.flame.top = wanted.min(deep.saturating_sub(rows)).max(self.flame.top);
                } else if let (Press::Down | Press::Double, Some(node)) =
                    (click.what, self.look(&tree, cx).at(area, click.at))
                {
                    self.flame.selected = node;
                    if click.what == Press::Double {
                        self.flame.zoom_in();
                    }
                }
                Vec::new()
            }
            Form::Tree => self.click_tree(click, cx),
        }
    }

    fn click_tree(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let area = draw::rows(cx.area);
        match self.with_table(cx, |table, page, _| table.click(click, page, area)) {
            Some(Clicked::Row { twice: true, .. }) => self.open_method(cx),
            _ => Vec::new(),
        }
    }
}
