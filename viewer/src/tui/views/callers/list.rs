//! The tree as a list of rows, and beside it what is around the selected function.

use super::branches::{Branch, Branches};
use super::words;
use crate::present::numbers::{count, percent, ratio};
use crate::present::text;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::table::{self, Col, Look, Piece, fitting};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use vmscope_symbolizer::calls::{Around, CallTree, FunctionId};

const NAME: usize = 5;

/// Bars are drawn where the name keeps enough room.
const BAR: usize = 8;

const DOWN: [Col; 6] = [
    Col::new("total", 7, true, 0),
    Col::new("", BAR, false, 3),
    Col::new("self", 7, true, 0),
    Col::new("samples", 9, true, 2),
    Col::new("", 1, false, 0),
    Col::new("function, and what it called", 34, false, 0),
];

const UP: [Col; 6] = [
    Col::new("total", 7, true, 0),
    Col::new("", BAR, false, 3),
    Col::new("self", 7, true, 0),
    Col::new("samples", 9, true, 2),
    Col::new("", 1, false, 0),
    Col::new("function, and who called it", 34, false, 0),
];

/// What stands for nobody.
pub const NOBODY: &str = "(no caller: the stacks begin here)";

/// How the list is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    /// What the terminal can show.
    pub theme: &'a Theme,
    /// All calls.
    pub tree: &'a CallTree,
    /// What is opened of them.
    pub branches: &'a Branches,
    /// Whether it goes up to the callers.
    pub up: bool,
    /// Where in it one is.
    pub list: ListState,
    /// By function, what a search has found.
    pub fits: &'a [bool],
    /// What shares are of.
    pub all: u64,
}

impl Tree<'_> {
    fn columns(&self) -> &'static [Col] {
        if self.up { &UP } else { &DOWN }
    }

    /// Where names begin and how many columns they have.
    fn name_room(&self, columns: usize) -> (usize, usize) {
        let mut begin = 0;
        for (at, width) in fitting(self.columns(), NAME, columns) {
            if at == NAME {
                return (begin, width);
            }
            begin += width + 1;
        }
        (begin, 0)
    }

    /// What is before a name: how deep it is, and whether it can be opened.
    fn indent(&self, branch: &Branch, room: usize) -> String {
        let sign = match branch {
            _ if branch.leaf => " ",
            _ if branch.open => self.theme.sign("▾", "-"),
            _ => self.theme.sign("▸", "+"),
        };
        // What is deeper than there is room for tells how deep it is.
        if branch.depth <= room / 3 {
            format!("{}{sign} ", " ".repeat(branch.depth))
        } else {
            let depth = branch.depth.to_string();
            let blanks = (room / 3).saturating_sub(depth.len() + 1);
            format!("{}{depth}:{sign} ", " ".repeat(blanks))
        }
    }

    /// Whether a column of the screen is before a row's name.
    pub fn is_sign(&self, row: usize, column: usize, columns: usize) -> bool {
        let (begin, room) = self.name_room(columns);
        let indent = self
            .branches
            .row(row)
            .map(|branch| self.indent(branch, room));
        let width = indent.map_or(0, |indent| text::width(&indent));
        (begin..begin + width).contains(&column)
    }

    /// Draws it.
    pub fn draw(&self, frame: &mut Frame<'_>, area: Rect) {
        let (_, room) = self.name_room(usize::from(area.width));
        let look = Look {
            theme: self.theme,
            columns: self.columns(),
            stretch: NAME,
            sorted: Some((if self.up { 2 } else { 0 }, false)),
            rows: self.branches.len(),
            list: self.list,
        };
        let top = self
            .branches
            .row(0)
            .map_or(0, |branch| samples_of(branch, self.up));
        table::draw(look, frame, area, |row| {
            let Some(branch) = self.branches.row(row) else {
                return Vec::new();
            };
            let function = branch.function.and_then(|id| self.tree.function(id));
            let indent = self.indent(branch, room);
            let left = room.saturating_sub(text::width(&indent));
            let name = function.map_or_else(
                || NOBODY.to_owned(),
                |function| words::short(function, left),
            );
            let fits = branch
                .function
                .is_some_and(|id| self.fits.get(id as usize) == Some(&true));
            let samples = samples_of(branch, self.up);
            let share = |samples: u64| percent(ratio(samples, self.all));
            let heat = |samples: u64| Role::Heat(ratio(samples, top));
            let letter = function.map_or(' ', words::letter);
            vec![
                Piece::of(
                    branch.total.map_or(Role::Dim, heat),
                    branch.total.map_or_else(String::new, share),
                ),
                Piece::of(heat(samples), self.theme.bar(ratio(samples, self.all), BAR)),
                Piece::of(heat(branch.own), own_of(branch.own, &share)),
                Piece::text(count(samples)),
                Piece::of(function.map_or(Role::Dim, words::role), letter.to_string()),
                Piece::of(
                    if fits { Role::Match } else { Role::Text },
                    format!("{indent}{name}"),
                ),
            ]
        });
    }
}

/// The number that a row is ordered by.
pub fn samples_of(branch: &Branch, up: bool) -> u64 {
    match branch.total {
        Some(total) if !up => total,
        _ => branch.own,
    }
}

fn own_of(own: u64, share: &dyn Fn(u64) -> String) -> String {
    if own == 0 { String::new() } else { share(own) }
}

/// Draws who called a function, itself, and what it called, side by side.
pub fn around(
    (tree, theme, all): (&CallTree, &Theme, u64),
    function: FunctionId,
    around: Option<&Around>,
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let counts = tree.counts_of(function);
    let third = area.width / 3;
    let pane = |at: u16| Rect {
        x: area.x + at * third,
        width: if at == 2 {
            area.width - 2 * third
        } else {
            third - 1
        },
        ..area
    };
    let name = |id: Option<FunctionId>, columns: usize| {
        let function = id.and_then(|id| tree.function(id));
        function.map_or_else(
            || (' ', Role::Dim, NOBODY.to_owned()),
            |one| {
                (
                    words::letter(one),
                    words::role(one),
                    words::short(one, columns),
                )
            },
        )
    };
    let list = |title: &str, rows: Vec<(Option<FunctionId>, u64)>, area: Rect| {
        let columns = usize::from(area.width);
        let height = usize::from(area.height.saturating_sub(1));
        let title = text::line(title, columns);
        let mut lines = vec![Line::styled(title, theme.style(Role::Title))];
        let left_out = rows.len().saturating_sub(height);
        let shown = if left_out > 0 {
            height.saturating_sub(1)
        } else {
            height
        };
        for &(id, samples) in rows.iter().take(shown) {
            let share = ratio(samples, counts.total);
            let room = columns.saturating_sub(11);
            let (letter, role, name) = name(id, room);
            lines.push(Line::from(vec![
                Span::styled(
                    text::right(&percent(share), 7),
                    theme.style(Role::Heat(share)),
                ),
                Span::styled(format!(" {letter} "), theme.style(role)),
                Span::raw(text::name(&name, room)),
            ]));
        }
        if left_out > 0 {
            let rest = rows.iter().skip(shown).map(|(_, samples)| samples).sum();
            let rest = percent(ratio(rest, counts.total));
            let text = format!("{} {} more", text::right(&rest, 7), rows.len() - shown);
            lines.push(Line::styled(text, theme.style(Role::Dim)));
        }
        (lines, area)
    };
    let mut panes = Vec::new();
    let wait = || vec![Line::styled("...", theme.style(Role::Dim))];
    let (callers, callees) = around.map_or_else(Default::default, |around| {
        let callees = around
            .callees
            .iter()
            .map(|&(id, samples)| (Some(id), samples));
        (around.callers.clone(), callees.collect::<Vec<_>>())
    });
    panes.push(list("callers, of its samples", callers, pane(0)));
    let middle = pane(1);
    let columns = usize::from(middle.width);
    let (letter, role, short) = name(Some(function), columns.saturating_sub(2));
    let share = |samples: u64| percent(ratio(samples, all));
    let mut lines = vec![
        Line::styled(text::line("function", columns), theme.style(Role::Title)),
        Line::from(vec![
            Span::styled(format!("{letter} "), theme.style(role)),
            Span::styled(
                text::line(&short, columns.saturating_sub(2)),
                theme.style(Role::Strong),
            ),
        ]),
        Line::raw(format!(
            "{} total  {}",
            share(counts.total),
            count(counts.total)
        )),
        Line::raw(format!(
            "{} self   {}",
            share(counts.own),
            count(counts.own)
        )),
    ];
    if counts.recursive {
        let text = "calls itself: each stack counts once";
        lines.push(Line::styled(
            text::line(text, columns),
            theme.style(Role::Dim),
        ));
    }
    panes.push((lines, middle));
    panes.push(list("called from it, of its samples", callees, pane(2)));
    for (at, (mut lines, area)) in panes.into_iter().enumerate() {
        if around.is_none() && at != 1 {
            lines.extend(wait());
        }
        for (line, y) in lines.into_iter().zip(area.y..area.bottom()) {
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
}
