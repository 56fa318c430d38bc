//! What keys do.

use super::walk::{begin_of_path, deepest, hottest_path, parent_of};
use super::{ALL_STACKS, BY_THREAD, Callers, Form, METHOD, THROUGH, WITHOUT_CHAINS, draw, words};
use crate::tui::filter_state::FilterChange;
use crate::tui::keys::Command;
use crate::tui::views::{Act, Cx};
use crate::tui::widgets::data_table::Rows;
use vmscope_symbolizer::EntryId;
use vmscope_symbolizer::calls::{CallTree, NodeId};

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
            let text = "no stacks were recorded: Enter shows samples without callers";
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
                // One press ends one thing: the search comes first.
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
        // What was selected stays so, where it is in both.
        match self.form {
            Form::Flame => self
                .flame
                .select(&tree, node, draw::graph(cx.area).height.into()),
            Form::Tree if node != CallTree::ROOT && !self.up => self.reveal(node, cx),
            Form::Tree => {}
        }
    }

    /// Only samples in what is selected itself, in all views.
    fn only(&self, cx: &Cx<'_>) -> Vec<Act> {
        let named = self.selected().and_then(|id| self.tree()?.function(id));
        if let Some(thread) = named.and_then(|function| function.thread) {
            return crate::tui::views::threads::only(&[thread]);
        }
        let only = |entry| vec![Act::FilterChange(FilterChange::Entries(vec![entry]))];
        let entry = self.selected_entry(cx);
        entry.map_or_else(Self::no_entry, only)
    }

    /// Only stacks with what is selected in them, in this view, or all again where that is
    /// so already.
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
            "only stacks through {name}, in this view; Esc shows all again"
        ))]
    }

    /// The entry of what is selected: its own samples', else one of its name.
    fn selected_entry(&self, cx: &Cx<'_>) -> Option<EntryId> {
        let tree = self.tree()?;
        let id = self.selected()?;
        let function = tree.function(id)?;
        if function.thread.is_some() {
            return None;
        }
        tree.entry_of(id).or_else(|| {
            let entries = || cx.profile.entries.iter().zip(0..);
            let mut same = entries().filter(|(entry, _)| *entry.name == *function.name);
            let of_tier = same
                .clone()
                .find(|(entry, _)| *entry.tier == *function.tier);
            of_tier.or_else(|| same.next()).map(|(_, id)| id)
        })
    }

    fn no_entry() -> Vec<Act> {
        vec![Act::Say(
            "no sample is in it itself: it only called".to_owned(),
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
        let selected = match command {
            Command::Up if is_zoom => {
                self.zoom_out(cx);
                if self.flame.zoom == now {
                    now
                } else {
                    parent_of(&tree, now)
                }
            }
            Command::Left if is_zoom => {
                self.zoom_out(cx);
                now
            }
            Command::Up | Command::PageUp | Command::HalfUp => {
                let up = |node| (node != self.flame.zoom).then(|| parent_of(&tree, node));
                std::iter::successors(Some(now), |&node| up(node))
                    .take(steps + 1)
                    .last()
                    .unwrap_or(now)
            }
            Command::Down | Command::PageDown | Command::HalfDown => {
                let down = |node: NodeId| tree.children(node).next();
                std::iter::successors(Some(now), |&node| down(node))
                    .take(steps + 1)
                    .last()
                    .unwrap_or(now)
            }
            Command::Left | Command::Right if !is_zoom => tree
                .beside(self.flame.zoom, now, command == Command::Right)
                .unwrap_or(now),
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
            _ => return,
        };
        self.flame.select(&tree, selected, height);
    }

    /// Expands what is above a node, and selects it.
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

    /// The other direction, with the same function selected where it is there.
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
}
