//! Palette: every action by name, from the key table, the view's own lines and the filters.

use super::filter_state::FilterChange;
use super::keys::{Binding, Command};
use super::mode::Ask;
use super::view_id::ViewId;
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};
use tui_input::Input;

/// Effect of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Then {
    Command(Command),
    FilterChange(FilterChange),
    /// Prompt with an initial text.
    Ask(Ask, String),
}

/// Palette line.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub text: String,
    /// Key; may be empty.
    pub key: String,
    pub then: Then,
}

/// Further words for a line, as users of other tools may type them.
fn synonyms(then: &Then) -> &'static str {
    let command = match then {
        Then::Command(command) => command,
        Then::FilterChange(FilterChange::Drop(_)) => &Command::DropFilter,
        Then::FilterChange(_) | Then::Ask(Ask::Names | Ask::Window, _) => &Command::Only,
        Then::Ask(Ask::Export, _) => &Command::Export,
        Then::Ask(Ask::Mark | Ask::Save, _) => return "",
    };
    match command {
        Command::Only => "filter narrow limit zoom",
        Command::DropFilter | Command::DropFilters => "clear reset unfilter",
        Command::Quit => "exit close leave",
        Command::Export => "save write file",
        Command::Save => "write file recording",
        Command::Copy => "clipboard yank",
        Command::Search => "find grep filter",
        Command::Sort => "order",
        Command::Back => "undo previous",
        Command::Forward => "redo next",
        Command::Help => "shortcuts manual",
        Command::Pause => "freeze stop continue",
        Command::Span => "window duration",
        Command::Redraw => "refresh reload",
        Command::Show(ViewId::Callers) => "stacks callgraph callees",
        Command::Show(ViewId::Collector) => "garbage gc heap pauses",
        Command::Show(ViewId::Costs) => "garbage gc advice pretenure eden survive",
        Command::Show(ViewId::Lifetimes) => "allocations classes survival deaths",
        Command::Show(ViewId::Truth) => "truth losses limits",
        _ => "",
    }
}

/// Score bonus: literal matches rank above scattered letters, matches at the start highest.
fn literal(text: &str, typed: &str) -> u32 {
    let (text, typed) = (text.to_lowercase(), typed.trim().to_lowercase());
    match text.find(&typed) {
        Some(0) => 1 << 16,
        Some(_) => 1 << 15,
        None => 0,
    }
}

impl AsRef<str> for Item {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

/// Open palette.
#[derive(Debug)]
pub struct Palette {
    /// Typed text.
    pub input: Input,
    /// Selected line among the matches.
    pub selected: usize,
    items: Vec<Item>,
    /// Matching lines, best first.
    fitting: Vec<usize>,
}

impl Palette {
    /// Palette in the display order of an empty pattern.
    pub fn new(items: Vec<Item>) -> Self {
        let fitting = (0..items.len()).collect();
        Palette {
            input: Input::default(),
            selected: 0,
            items,
            fitting,
        }
    }

    /// Matches lines against the typed text.
    pub fn refresh(&mut self) {
        self.selected = 0;
        let pattern = Pattern::parse(
            self.input.value(),
            CaseMatching::Ignore,
            Normalization::Smart,
        );
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut scored: Vec<(u32, usize)> = Vec::new();
        let mut room = Vec::new();
        for (index, item) in self.items.iter().enumerate() {
            let text = nucleo_matcher::Utf32Str::new(&item.text, &mut room);
            if let Some(score) = pattern.score(text, &mut matcher) {
                scored.push((score + literal(&item.text, self.input.value()), index));
            } else if literal(synonyms(&item.then), self.input.value()) > 0 {
                // Below every line with the word itself.
                scored.push((0, index));
            }
        }
        // Stable sort: equal scores keep their order.
        scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        self.fitting = scored.into_iter().map(|(_, index)| index).collect();
    }

    /// Matching lines, best first.
    pub fn fitting(&self) -> impl ExactSizeIterator<Item = &Item> {
        self.fitting
            .iter()
            .filter_map(|&i| self.items.get(i))
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// Selected line.
    pub fn chosen(&self) -> Option<&Item> {
        self.items.get(*self.fitting.get(self.selected)?)
    }

    /// Moves the selection.
    pub fn step(&mut self, by: isize) {
        let last = self.fitting.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }
}

/// Lines from key tables, one per command.
pub fn of_bindings(tables: &[&[Binding]]) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for row in tables.iter().copied().flatten() {
        let then = Then::Command(row.command);
        if items.iter().any(|item| item.then == then) {
            continue;
        }
        items.push(Item {
            text: row.help.to_owned(),
            key: row
                .keys
                .first()
                .map_or_else(String::new, super::keys::Key::name),
            then,
        });
    }
    items
}
