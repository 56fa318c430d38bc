//! Flame graph, and tree of callers or callees. Three background questions: stacks (once per
//! recording), call tree (per filter), callers and callees of the selected function.

mod act;
mod branches;
mod draw;
mod find;
mod flame;
mod shown;
#[cfg(test)]
mod tests;
mod words;

use super::{Act, Choice, Click, Cx, Find, View};
use crate::present::document::{Document, Part};
use crate::queries::branches::{Branches, Key, Row};
use crate::tui::jobs::{Fetched, Question, QuestionId, Stamp};
use crate::tui::keys::{Binding, Command, ch, key, own};
use crate::tui::widgets::data_table::DataTable;
use branches::Page;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::Rect;
use std::sync::Arc;
use vmscope_records::TimeNs;
use vmscope_symbolizer::Stop;
use vmscope_symbolizer::calls::{
    Around, CallTree, CallsOf, Function, FunctionId, NodeId, StackIndex,
};

/// Palette choices and keys of this view.
const METHOD: u16 = 0;
const BY_THREAD: u16 = 1;
const ALL_STACKS: u16 = 2;
const THROUGH: u16 = 3;
const WITHOUT_CHAINS: u16 = 4;
const FOLD: u16 = 5;

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Mode, &[ch('m')], "flame/tree", "flame graph, or tree of callers"),
    own(Command::Group, &[ch('b')], "flip", "tree: down from the roots, or up from the hottest functions; graph: upside down"),
    own(Command::NextHot, &[ch('}')], "hot path", "follow the hottest path"),
    own(Command::PreviousHot, &[ch('{')], "", "back to the start of the hottest path"),
    own(Command::Toggle, &[key(KeyCode::Char(' '))], "expand", "expand or collapse; graph: zoom to the frame"),
    own(Command::ZoomIn, &[ch('+'), ch('=')], "", "zoom to the selected frame (also Enter)"),
    own(Command::ZoomOut, &[ch('-')], "", "zoom back out (also Backspace)"),
    own(Command::Own(THROUGH), &[ch('t')], "", "show only stacks through the selected function; again or Esc: all stacks"),
    own(Command::Own(FOLD), &[ch('z')], "", "graph: fold or unfold chains of frames with one callee"),
    own(Command::Own(METHOD), &[ch('o')], "method", "open the function in the method view"),
];

type Window = (Option<TimeNs>, Option<TimeNs>);

type Table = DataTable<Row, Key>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Flame,
    Tree,
}

#[derive(Clone, Debug, Default)]
pub struct Callers {
    form: Form,
    /// Graph with its root at the bottom.
    turned: bool,
    /// Bottom-up tree.
    up: bool,
    by_thread: bool,
    /// Restricts the view to stacks with this function.
    through: Option<Function>,
    /// User asked for a graph without recorded callers.
    without_chains: bool,
    stacks: Fetched<Window, Arc<StackIndex>>,
    tree: Fetched<(CallsOf, Stamp), Arc<CallTree>>,
    /// Tree on the screen.
    shown: Option<Arc<CallTree>>,
    flame: flame::Place,
    branches: Option<Branches>,
    table: Table,
    around: Fetched<(Function, CallsOf, Stamp), Around>,
    search: find::Search,
}

impl Callers {
    fn tree(&self) -> Option<&Arc<CallTree>> {
        self.shown.as_ref()
    }

    /// Samples under the filters: denominator of shares.
    fn all(&self) -> u64 {
        self.tree().map_or(0, |tree| tree.taken())
    }

    fn selected(&self) -> Option<FunctionId> {
        match self.form {
            Form::Flame => {
                let node = self.tree()?.node(self.flame.selected)?;
                node.function
            }
            Form::Tree => {
                let row = self.table.selected()?;
                self.branches.as_ref()?.branch(row).function
            }
        }
    }

    /// Selected node; `None` in a bottom-up tree.
    fn selected_node(&self) -> Option<NodeId> {
        match self.form {
            Form::Flame => Some(self.flame.selected),
            Form::Tree => {
                let row = self.table.selected()?;
                self.branches.as_ref()?.node_of(row)
            }
        }
    }

    /// Whether the view shows stacks.
    fn has_chains(&self, cx: &Cx<'_>) -> bool {
        self.without_chains || !cx.profile.trace.samples.chains.is_empty()
    }

    /// Shows a new tree; selection and expanded rows stay.
    fn take_tree(&mut self, cx: &Cx<'_>) {
        let Some(new) = self.tree.get().map(Arc::clone) else {
            return;
        };
        let old = self.shown.replace(Arc::clone(&new));
        match old.filter(|old| !old.is_empty()) {
            Some(old) => {
                self.flame = self.flame.carried(&old, &new);
                self.branches = Some(Branches::of(&new, self.up));
                self.with_table(cx, |table, page, height| table.arrange(page, height));
            }
            None => {
                self.flame = flame::Place::default();
                self.begin_branches(cx);
            }
        }
        self.search.refresh(&new);
    }

    fn page(&self, cx: &Cx<'_>) -> Option<Page<'_>> {
        Some(Page {
            is_native: cx.profile.is_native(),
            branches: self.branches.as_ref()?,
            fits: &self.search.fits,
            all: self.all(),
        })
    }

    /// Calls the table with data and height; `None` without a tree.
    fn with_table<T>(
        &mut self,
        cx: &Cx<'_>,
        call: impl FnOnce(&mut Table, &Page<'_>, usize) -> T,
    ) -> Option<T> {
        let height = Table::height(draw::rows(cx.area));
        let mut table = std::mem::take(&mut self.table);
        let result = self.page(cx).map(|page| call(&mut table, &page, height));
        self.table = table;
        result
    }

    /// New table; top down the hottest path is expanded.
    fn begin_branches(&mut self, cx: &Cx<'_>) {
        self.branches = self.shown.as_ref().map(|tree| Branches::of(tree, self.up));
        self.table = Table::default();
        let up = self.up;
        self.with_table(cx, |table, page, height| {
            let first = page.branches.first().filter(|_| !up);
            match first.map(|first| page.branches.hottest_path(first)) {
                Some(path) => {
                    table.reveal(page, &path, height);
                    table.act(Command::First, page, height);
                }
                None => table.arrange(page, height),
            }
        });
    }

    fn calls_of(&self) -> CallsOf {
        CallsOf {
            by_thread: self.by_thread,
            through: self.through.clone(),
        }
    }
}

impl View for Callers {
    fn copied(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn bindings(&self) -> &'static [Binding] {
        BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        self.do_command(command, cx)
    }

    fn back(&mut self, cx: &Cx<'_>) -> bool {
        self.form == Form::Flame && self.zoom_out(cx)
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        self.do_click(click, cx)
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let mut questions = Vec::new();
        if !self.has_chains(cx) {
            return questions;
        }
        let filter = cx.filters.filter().clone();
        // A finished recording needs one stack index; a growing profile needs new ones, usually of
        // the newest samples.
        let grows = cx.profile.omitted.is_some();
        let window = if grows {
            (filter.from, filter.to)
        } else {
            (None, None)
        };
        let of_profile = Stamp {
            profile: cx.stamp.profile,
            ..Stamp::default()
        };
        let cache = cx.stacks.clone();
        let stacks = self.stacks.ask(window, of_profile, move |profile, stop| {
            let (from, to) = window;
            match grows {
                true => Some(Arc::new(StackIndex::of(profile, from, to, stop)?)),
                false => cache.get(profile, stop),
            }
        });
        questions.extend(stacks);
        if let Some(stacks) = self.stacks.get()
            && self.stacks.answered() == Some(&(window, of_profile))
        {
            let (stacks, of) = (Arc::clone(stacks), self.calls_of());
            let key = (of.clone(), cx.stamp);
            questions.extend(self.tree.ask(key, cx.stamp, move |profile, stop| {
                Some(Arc::new(CallTree::of(
                    profile, &stacks, &filter, &of, stop,
                )?))
            }));
        }
        if draw::has_around(self.form, cx.area)
            && let (Some(tree), Some(function)) = (self.tree(), self.selected())
            && let (Some(named), Some((key, stamp))) =
                (tree.function(function), self.tree.answered())
        {
            let tree = Arc::clone(tree);
            let key = (named.clone(), key.0.clone(), key.1);
            questions.extend(
                self.around
                    .ask(key, *stamp, move |_, stop| tree.around(function, stop)),
            );
        }
        questions.extend(
            self.search
                .question(self.shown.as_ref(), self.tree.answered()),
        );
        questions
    }

    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>) {
        self.stacks.take(ended);
        self.around.take(ended);
        self.search.found.take(ended);
        if self.tree.take(ended) {
            self.take_tree(cx);
        }
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        self.do_find(pattern, find, cx)
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        self.do_draw(cx, frame, area);
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        let mut text = vec![self.head(cx)];
        let mut parts = Vec::new();
        let title = format!("Callers: {}", self.form_name());
        match self.tree().filter(|_| self.has_chains(cx)) {
            Some(_) if self.form == Form::Tree => {
                let table = self.page(cx).map(|page| {
                    let table = Table::export(&page, self.table.visible(), stop)?;
                    let title = match self.up {
                        true => "functions by own samples, with their callers",
                        false => "functions with their callees",
                    };
                    let title = title.to_owned();
                    Some(crate::present::document::Table { title, ..table })
                });
                if let Some(table) = table {
                    parts.push(Part::Table(table?));
                }
            }
            Some(tree) => {
                let of = tree.function_of(self.flame.zoom);
                let of = of.map_or_else(|| "all stacks".to_owned(), words::full);
                let (chart, least) = shown::flame(tree, self.flame.zoom, of, stop)?;
                if least > 1 {
                    text.push(format!(
                        "frames with fewer than {least} samples are omitted: their samples count \
                         for their callers"
                    ));
                }
                parts.push(Part::Chart(chart));
            }
            None => {}
        }
        parts.insert(0, Part::Text(text));
        Some(Document { title, parts })
    }

    fn choices(&self, cx: &Cx<'_>) -> Vec<Choice> {
        let choice = |number: u16, text: String| Choice { text, number };
        let threads = if self.by_thread {
            "all threads together"
        } else {
            "by thread: one root per thread"
        };
        let mut choices = vec![choice(BY_THREAD, threads.to_owned())];
        if self.through.is_some() {
            choices.push(choice(ALL_STACKS, "show all stacks".to_owned()));
        }
        if cx.profile.trace.samples.chains.is_empty() {
            choices.push(choice(
                WITHOUT_CHAINS,
                "functions with their inlined functions".to_owned(),
            ));
        }
        choices
    }

    fn crumb(&self, _cx: &Cx<'_>) -> String {
        let mut crumb = self.form_name().to_owned();
        if self.by_thread {
            crumb.push_str(" by thread");
        }
        if let Some(through) = &self.through {
            crumb.push_str(&format!(
                ", only stacks through {}",
                words::short(through, 24)
            ));
        }
        crumb
    }

    fn is_pending(&self) -> bool {
        self.stacks.is_pending() || self.tree.is_pending() || self.around.is_pending()
    }
}
