//! The listing: which of its lines are shown, which are hot, and how they are drawn.

use super::found::Pieces;
use super::items::{Item, What};
use crate::annotate::layout::Bracket;
use crate::report::words::{count, ratio};
use crate::tui::shown::{Cell, Table};
use crate::tui::theme::{Role, Theme};
use crate::tui::views::Cx;
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::table::{self, Col, Look, Piece};
use crate::tui::widgets::text;
use ratatui::Frame;
use ratatui::layout::Rect;
use rustc_hash::FxHashSet;

/// A line is hot with this share of the method's samples, or as many as the hottest has.
const HOT_SHARE: u64 = 50;

/// Inlined code is open at first where it has this share of the method's samples.
const OPEN_SHARE: u64 = 100;

/// Machine code has a column of its own accord where there are so many columns.
const WIDE: u16 = 110;

const BAR: usize = 8;
const MACHINE: usize = 18;

/// The lines of a listing, and which of them are on view.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// All of them.
    pub items: Vec<Item>,
    /// Samples of the method: what shares are of.
    pub samples: u64,
    /// Numbers of those that are not folded away.
    pub visible: Vec<usize>,
    /// Numbers of those that are hot, in the order of the listing.
    pub hot: Vec<usize>,
    /// Most samples of one line.
    most: u64,
    /// What the user opened that is closed at first, or the other way round.
    toggled: FxHashSet<u64>,
}

impl Listing {
    /// Takes new lines; what was folded stays so.
    pub fn take(&mut self, items: Vec<Item>, samples: u64) {
        self.items = items;
        self.samples = samples;
        self.most = self.items.iter().map(|item| item.own).max().unwrap_or(0);
        let least = self.samples.div_ceil(HOT_SHARE).min(self.most).max(1);
        let hot = self.items.iter().enumerate();
        let hot = hot.filter(|(_, item)| item.own >= least);
        self.hot = hot.map(|(number, _)| number).collect();
        self.unfold();
    }

    /// Whether what was inlined at a line is shown.
    pub fn is_open(&self, item: &Item) -> bool {
        let inside = match item.what {
            What::Place => item.all.saturating_sub(item.own),
            _ => item.all,
        };
        let at_first = inside.saturating_mul(OPEN_SHARE) >= self.samples;
        item.has_children && (at_first != self.toggled.contains(&item.id))
    }

    /// Opens or closes a line.
    pub fn toggle(&mut self, number: usize) {
        let Some(item) = self.items.get(number).filter(|item| item.has_children) else {
            return;
        };
        if !self.toggled.remove(&item.id) {
            self.toggled.insert(item.id);
        }
        self.unfold();
    }

    /// Opens or closes all lines.
    pub fn set_all(&mut self, open: bool) {
        let changed = self.items.iter().filter(|item| {
            let is_open = self.is_open(item);
            item.has_children && is_open != open
        });
        let changed: Vec<u64> = changed.map(|item| item.id).collect();
        for id in changed {
            if !self.toggled.remove(&id) {
                self.toggled.insert(id);
            }
        }
        self.unfold();
    }

    /// Opens what a line is folded into.
    pub fn reveal(&mut self, number: usize) {
        let mut inner = number;
        while let Some(outer) = self.parent(inner) {
            let is_closed = self
                .items
                .get(outer)
                .is_some_and(|item| !self.is_open(item));
            if is_closed {
                self.toggle(outer);
            }
            inner = outer;
        }
    }

    /// The line that one is inlined at.
    pub fn parent(&self, number: usize) -> Option<usize> {
        let depth = self.items.get(number)?.depth;
        let before = self.items.get(..number)?;
        before.iter().rposition(|item| item.depth < depth)
    }

    fn unfold(&mut self) {
        let mut visible = Vec::with_capacity(self.items.len());
        let mut closed_at = None;
        for (number, item) in self.items.iter().enumerate() {
            if closed_at.is_some_and(|depth| item.depth > depth) {
                continue;
            }
            closed_at = (item.has_children && !self.is_open(item)).then_some(item.depth);
            visible.push(number);
        }
        self.visible = visible;
    }

    /// The samples that a line shows, and which of its lines with samples they stand for.
    fn samples_of(&self, item: &Item) -> u64 {
        match item.what {
            What::Place if self.is_open(item) => item.own,
            _ => item.all,
        }
    }

    /// The hot line after (or before) the line `from` of all, round the ends: which of
    /// them, and its number.
    pub fn next_hot(&self, from: usize, forward: bool) -> Option<(usize, usize)> {
        let at = if forward {
            let after = self.hot.iter().position(|&hot| hot > from);
            after.unwrap_or(0)
        } else {
            let before = self.hot.iter().rposition(|&hot| hot < from);
            before.unwrap_or(self.hot.len().checked_sub(1)?)
        };
        Some((at, *self.hot.get(at)?))
    }

    /// Whether machine code has a column in an area.
    pub fn shows_machine(&self, toggled: bool, area: Rect) -> bool {
        let any = self.items.iter().any(|item| !item.machine.is_empty());
        any && ((area.width >= WIDE) != toggled)
    }

    fn columns(&self, machine: bool, number: &'static str) -> Vec<Col> {
        let any = |is: fn(&Item) -> bool| self.items.iter().any(is);
        let col = |name, width, right, rank| Col {
            name,
            width,
            right,
            rank,
        };
        // What is left out has no width and goes first.
        let bracket = usize::from(any(|item| item.bracket != Bracket::None));
        let numbers = self.items.iter().map(|item| item.number.len());
        let numbers = numbers.max().unwrap_or(0).clamp(number.len(), 8);
        let line = if any(|item| item.line.is_some()) {
            5
        } else {
            0
        };
        let gone = |is_there: bool, rank| if is_there { rank } else { u8::MAX };
        vec![
            col("share", 7, true, 0),
            col("±", 5, true, 5),
            col("", BAR, false, 2),
            col("samples", 7, true, 3),
            col("", 1, false, 0),
            col(
                "machine code",
                if machine { MACHINE } else { 0 },
                false,
                gone(machine, 0),
            ),
            col("", bracket, false, gone(bracket > 0, 0)),
            col(number, numbers, true, 0),
            col("line", line, true, gone(line > 0, 4)),
            col("", 24, false, 0),
        ]
    }

    /// Draws it: `number` is what its lines are counted in.
    pub fn draw(
        &self,
        cx: &Cx<'_>,
        (list, machine): (ListState, bool),
        number: &'static str,
        frame: &mut Frame<'_>,
        area: Rect,
    ) {
        let columns = self.columns(machine, number);
        let kept: Vec<Col> = columns
            .iter()
            .filter(|c| c.rank != u8::MAX)
            .copied()
            .collect();
        let stretch = kept.len().saturating_sub(1);
        let fitting = table::fitting(&kept, stretch, usize::from(area.width));
        let room = fitting.last().map_or(0, |&(_, width)| width);
        let look = Look {
            theme: cx.theme,
            columns: &kept,
            stretch,
            sorted: None,
            rows: self.visible.len(),
            list,
        };
        table::draw(look, frame, area, |index| {
            let item = self.visible.get(index).and_then(|&at| self.items.get(at));
            let Some(item) = item else {
                return Vec::new();
            };
            let pieces = self.pieces(cx.theme, item, room);
            let shown = pieces.into_iter().zip(&columns);
            let shown = shown.filter(|(_, column)| column.rank != u8::MAX);
            shown.map(|(piece, _)| piece).collect()
        });
    }

    fn pieces(&self, theme: &Theme, item: &Item, room: usize) -> Vec<Piece> {
        let samples = self.samples_of(item);
        let share = ratio(samples, self.samples);
        // A line's heat is its place's; a method's that was inlined, the sum of its own.
        let heat = Role::Heat(ratio(samples, self.most).min(1.0));
        let role = match item.what {
            What::Heading => Role::Strong,
            What::Callee(_) if samples > 0 => Role::Text,
            What::Place if samples > 0 => Role::Text,
            _ => Role::Dim,
        };
        let numbers = samples > 0;
        let only = |text: String| if numbers { text } else { String::new() };
        let error = item.error.filter(|_| numbers);
        let error = error.map_or_else(String::new, |error| format!("{:.2}", error * 100.0));
        let bracket = match item.bracket {
            Bracket::None => "",
            Bracket::First => theme.sign("╭", "/"),
            Bracket::Inside => theme.sign("│", "|"),
            Bracket::Last => theme.sign("╰", "\\"),
        };
        let line = item.line.map_or_else(String::new, |line| line.to_string());
        vec![
            Piece::of(heat, only(format!("{:.2}%", share * 100.0))),
            Piece::of(Role::Dim, error),
            Piece::of(heat, only(theme.bar(ratio(samples, self.most), BAR))),
            Piece::of(role, only(count(samples))),
            Piece::of(Role::Warning, only(item.mark.to_owned())),
            Piece::of(Role::Dim, machine_text(&item.machine, MACHINE)),
            Piece::of(Role::Dim, bracket),
            Piece::of(role, item.number.clone()),
            Piece::of(Role::Dim, line),
            Piece::of(role, text::line(&self.text_of(theme, item), room)),
        ]
    }

    fn text_of(&self, theme: &Theme, item: &Item) -> String {
        let indent = "  ".repeat(item.depth.min(16));
        let fold = match (item.has_children, self.is_open(item)) {
            (true, true) => theme.sign("▾ ", "- "),
            (true, false) => theme.sign("▸ ", "+ "),
            (false, _) if item.depth > 0 => "  ",
            (false, _) => "",
        };
        let inlined = match item.what {
            What::Callee(_) => theme.sign("↳ ", "> "),
            _ => "",
        };
        format!("{indent}{fold}{inlined}{}", item.text)
    }

    /// All lines, folded or not, but for source text: what is read from this machine's
    /// files is shown, and written nowhere.
    pub fn table(&self, number: &str) -> Table {
        let number = format!(">{number}");
        let mut table = Table::new(
            "listing",
            &[
                ">share",
                ">error",
                ">samples",
                ">own samples",
                "mark",
                "machine code",
                &number,
                ">line",
                "place",
            ],
        );
        for item in &self.items {
            let Some(plain) = &item.plain else {
                continue;
            };
            let counted = |n: u64| if n > 0 { Cell::Count(n) } else { Cell::Empty };
            let own_text = |text: &String| match &item.what {
                What::Callee(_) => format!("{}> {text}", "  ".repeat(item.depth.min(32))),
                _ => format!("{}{text}", "  ".repeat(item.depth.min(32))),
            };
            let number = item.number.parse().map_or(Cell::Empty, Cell::Count);
            table.rows.push(vec![
                if item.all > 0 {
                    Cell::Share(ratio(item.all, self.samples))
                } else {
                    Cell::Empty
                },
                item.error
                    .filter(|_| item.all > 0)
                    .map_or(Cell::Empty, Cell::Share),
                counted(item.all),
                counted(item.own),
                Cell::Text(item.mark.to_owned()),
                Cell::Text(machine_text(&item.machine, usize::MAX)),
                number,
                item.line
                    .map_or(Cell::Empty, |line| Cell::Count(u64::from(line))),
                Cell::Text(own_text(plain)),
            ]);
        }
        table
    }
}

/// Pieces of machine code in at most so many columns: the first, and how many more.
fn machine_text(pieces: &Pieces, columns: usize) -> String {
    let one = |(start, end): &(u32, u32)| format!("+{start:x}-{end:x}");
    let all: Vec<String> = pieces.iter().map(one).collect();
    let whole = all.join(" ");
    if whole.len() <= columns {
        return whole;
    }
    let more = pieces.len().saturating_sub(1);
    let first = all.first().cloned().unwrap_or_default();
    format!("{first} & {more}")
}
