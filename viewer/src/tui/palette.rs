//! The palette: everything that can be done, by name. Made from the key table, the
//! view's own choices and the filters, so that nothing needs a key.

use super::filter_state::FilterChange;
use super::keys::{Binding, Command};
use super::mode::Ask;
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};
use tui_input::Input;

/// What choosing a line does.
#[derive(Clone, Debug, PartialEq)]
pub enum Then {
    /// A command, as by its key.
    Command(Command),
    /// A filter.
    FilterChange(FilterChange),
    /// A line of its own, which begins with that text.
    Ask(Ask, String),
}

/// A line of the palette.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// What it says.
    pub text: String,
    /// Its key; may be empty.
    pub key: String,
    /// What it does.
    pub then: Then,
}

/// What is typed as it stands there counts more than letters that are found one by one; most
/// where the line begins with it.
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

/// The open palette.
#[derive(Debug)]
pub struct Palette {
    /// What is typed.
    pub input: Input,
    /// Which of the lines that fit is selected.
    pub selected: usize,
    items: Vec<Item>,
    /// Indices of those that fit, best first.
    fitting: Vec<usize>,
}

impl Palette {
    /// With all lines, in the order in which they are shown while nothing is typed.
    pub fn new(items: Vec<Item>) -> Self {
        let fitting = (0..items.len()).collect();
        Palette {
            input: Input::default(),
            selected: 0,
            items,
            fitting,
        }
    }

    /// Finds what fits what is typed.
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
            }
        }
        // Stable: lines of one score stay in their order.
        scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        self.fitting = scored.into_iter().map(|(_, index)| index).collect();
    }

    /// The lines that fit, best first.
    pub fn fitting(&self) -> impl ExactSizeIterator<Item = &Item> {
        self.fitting
            .iter()
            .filter_map(|&i| self.items.get(i))
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// The line that is selected.
    pub fn chosen(&self) -> Option<&Item> {
        self.items.get(*self.fitting.get(self.selected)?)
    }

    /// Selects another line.
    pub fn step(&mut self, by: isize) {
        let last = self.fitting.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }
}

/// The lines of key tables: one for each command.
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
