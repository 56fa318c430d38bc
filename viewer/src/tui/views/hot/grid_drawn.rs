//! The matrix on the screen.

use super::grid::{Grid, GridBy, HEAD};
use crate::present::names::region_name;
use crate::present::numbers::{count, ratio};
use crate::present::shorten::label;
use crate::present::text;
use crate::queries::matrix::Matrix;
use crate::tui::theme::{Role, Theme};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Columns of a number.
const NUMBER: usize = 8;

/// Columns of a number under a method's or thread's name.
const WIDE_NUMBER: usize = 15;

impl Grid {
    fn layout(&self, matrix: &Matrix, width: u16) -> Layout {
        let width = usize::from(width);
        let number = if self.turned { WIDE_NUMBER } else { NUMBER };
        let columns = self.columns(matrix);
        let least = (width / 3).clamp(20, 60);
        let room = width.saturating_sub(least + 1 + NUMBER + 1);
        let shown = (room / (number + 1)).clamp(1, columns.max(1));
        let name = width.saturating_sub((number + 1) * shown.min(columns) + NUMBER + 2);
        // As little away from the first as shows the selected one.
        let first = self.column.saturating_sub(shown);
        Layout {
            name: name.min(90),
            number,
            first,
            shown: shown.min(columns.saturating_sub(first)),
        }
    }

    /// The column at a place of the screen.
    pub fn column_at(&self, matrix: &Matrix, width: u16, x: u16) -> Option<usize> {
        let layout = self.layout(matrix, width);
        let x = usize::from(x).checked_sub(layout.name + 1)?;
        let Some(x) = x.checked_sub(NUMBER + 1) else {
            return Some(0);
        };
        let column = x / (layout.number + 1);
        (column < layout.shown).then_some(layout.first + column + 1)
    }

    /// Draws it.
    pub fn draw(&self, matrix: &Matrix, theme: &Theme, frame: &mut Frame<'_>, area: Rect) {
        let layout = self.layout(matrix, area.width);
        let line = |y: u16| Rect {
            y,
            height: 1,
            ..area
        };
        let mut lines = self.heads(matrix, theme, &layout);
        let height = usize::from(area.height.saturating_sub(HEAD + 1));
        let top = self.list.top(self.rows.len(), height);
        let selected = self.list.selected().min(self.rows.len().saturating_sub(1));
        let rows = self.rows.iter().enumerate().skip(top).take(height);
        for (at, &row) in rows {
            lines.push(self.line(matrix, theme, &layout, row, at == selected));
        }
        let bottom = area.bottom().saturating_sub(1);
        for (spans, y) in lines.into_iter().zip(area.y..bottom) {
            frame.render_widget(Line::from(spans), line(y));
        }
        if area.height > 0 {
            let details = text::line(&self.details(matrix), usize::from(area.width));
            frame.render_widget(Line::styled(details, theme.style(Role::Dim)), line(bottom));
        }
    }

    /// The headings and the sums of the columns.
    fn heads(&self, matrix: &Matrix, theme: &Theme, layout: &Layout) -> Vec<Vec<Span<'static>>> {
        let arrow = match self.reversed {
            false => theme.sign("▾", "v"),
            true => theme.sign("▴", "^"),
        };
        let mark = |by: GridBy| if self.by == by { arrow } else { "" };
        let what = self.way(matrix).title();
        let title = theme.style(Role::Title);
        let blank = |columns: usize| Span::raw(" ".repeat(columns));
        let mut upper = vec![blank(layout.name + 1)];
        let mut lower = vec![Span::styled(
            text::name(&format!("{what}{}", mark(GridBy::Name)), layout.name),
            title,
        )];
        lower.push(blank(1));
        upper.push(Span::styled(text::right("% of", NUMBER), title));
        let all = format!("all{}", mark(GridBy::Sum));
        let role = if self.column == 0 {
            Role::Selected
        } else {
            Role::Title
        };
        lower.push(Span::styled(text::right(&all, NUMBER), theme.style(role)));
        let mut sums = vec![
            Span::styled(text::name("all", layout.name), theme.style(Role::Strong)),
            blank(1),
            Span::styled(text::right("100.00", NUMBER), theme.style(Role::Strong)),
        ];
        for at in layout.first..layout.first + layout.shown {
            let Ok(item) = u32::try_from(at) else {
                break;
            };
            let (first, second) = self.head_of(matrix, item, layout.number);
            let is_selected = self.column == at + 1;
            let sorted = if is_selected {
                mark(GridBy::Column)
            } else {
                ""
            };
            let style = match is_selected {
                true => theme.style(Role::Selected),
                false if self.turned => title,
                false => {
                    let region = matrix.columns.get(at).map(|item| item.what.region);
                    title.patch(region.map_or(title, |region| theme.style(Role::Region(region))))
                }
            };
            upper.push(blank(1));
            upper.push(Span::styled(text::right(&first, layout.number), style));
            lower.push(blank(1));
            let second = format!("{second}{sorted}");
            lower.push(Span::styled(text::right(&second, layout.number), style));
            let (_, samples) = self.column_item(matrix, item);
            sums.push(blank(1));
            let text = percent(samples, matrix.total, theme);
            sums.push(Span::styled(
                text::right(&text, layout.number),
                theme.style(Role::Strong),
            ));
        }
        vec![upper, lower, sums]
    }

    /// A column's heading in two lines.
    fn head_of(&self, matrix: &Matrix, item: u32, columns: usize) -> (String, String) {
        if !self.turned {
            let category = matrix.columns.get(item as usize).map(|item| &item.what);
            return category.map_or_else(Default::default, |category| {
                let region = short_region(region_name(category.region), columns);
                if category.part.is_none() {
                    return (String::new(), region);
                }
                (region, cut(category.part.as_deref().unwrap_or(""), columns))
            });
        }
        let (name, _) = self.column_item(matrix, item);
        let bare = name.split(['(', '<']).next().unwrap_or(name);
        let bare = if bare.is_empty() { name } else { bare };
        match bare.rsplit_once(['.', '>', ':']) {
            Some((class, method)) => {
                let class = class.rsplit(['.', ':', '/']).next().unwrap_or(class);
                (
                    cut(class.trim_end_matches('>'), columns),
                    cut(method, columns),
                )
            }
            None => (String::new(), cut(bare, columns)),
        }
    }

    fn line(
        &self,
        matrix: &Matrix,
        theme: &Theme,
        layout: &Layout,
        row: u32,
        is_selected: bool,
    ) -> Vec<Span<'static>> {
        let (name, samples) = self.row(matrix, row);
        let name = label(name, None, "", layout.name.saturating_sub(2));
        let sign = if is_selected { "> " } else { "  " };
        let role = if is_selected {
            Role::Strong
        } else {
            Role::Text
        };
        let mut spans = vec![
            Span::styled(
                text::name(&format!("{sign}{name}"), layout.name),
                theme.style(role),
            ),
            Span::raw(" "),
        ];
        let most_of_sums = self.way(matrix).most();
        let mut put = |samples: u64, columns: usize, at: usize| {
            let most = if at == 0 { most_of_sums } else { matrix.most };
            let heat = ratio(samples, most);
            let style = theme.style(Role::Heat(heat));
            let style = if is_selected && self.column == at {
                style.patch(theme.style(Role::Selected))
            } else {
                style
            };
            let text = if samples == 0 {
                theme.sign("·", ".").to_owned()
            } else {
                let text = percent(samples, matrix.total, theme);
                // How hot without colours.
                format!("{}{text:>6}", theme.column(heat))
            };
            spans.push(Span::styled(text::right(&text, columns), style));
            spans.push(Span::raw(" "));
        };
        put(samples, NUMBER, 0);
        for at in layout.first..layout.first + layout.shown {
            if let Ok(column) = u32::try_from(at) {
                put(self.cell(matrix, row, column), layout.number, at + 1);
            }
        }
        spans
    }

    /// What is selected, in full.
    fn details(&self, matrix: &Matrix) -> String {
        let Some((row, column)) = self.selected() else {
            return String::new();
        };
        let (row_name, row_samples) = self.row(matrix, row);
        let share = |part, whole| format!("{:.2}%", ratio(part, whole) * 100.0);
        let Some(column) = column else {
            let (n, of_all) = (count(row_samples), share(row_samples, matrix.total));
            return format!("{n} samples, {of_all} of all: {row_name}");
        };
        let (column_name, column_samples) = self.column_item(matrix, column);
        let samples = self.cell(matrix, row, column);
        format!(
            "{} samples, {} of the row, {} of the column: {column_name} × {row_name}",
            count(samples),
            share(samples, row_samples),
            share(samples, column_samples),
        )
    }
}

/// Where the columns are.
struct Layout {
    /// Columns of the terminal for a row's name.
    name: usize,
    /// The same for a number.
    number: usize,
    /// The first column that is shown.
    first: usize,
    /// How many are.
    shown: usize,
}

/// A share in percent; what is less than the last digit says so.
fn percent(samples: u64, total: u64, theme: &Theme) -> String {
    let share = ratio(samples, total) * 100.0;
    match samples {
        0 => theme.sign("·", ".").to_owned(),
        _ if share < 0.005 => "<0.01".to_owned(),
        _ => format!("{share:.2}"),
    }
}

/// A word in the room there is: without a sign that it is cut, which would take half of it.
fn cut(word: &str, columns: usize) -> String {
    let mut short = text::line(word, 64);
    while text::width(&short) > columns {
        short.pop();
    }
    short
}

/// A region's name, or the beginning of it.
fn short_region(name: &str, columns: usize) -> String {
    let short = match name {
        "generated" => "gener.",
        "interpreter" => "interp.",
        "collector" => "collect.",
        "compiler" => "compil.",
        "libraries" => "librar.",
        other => other,
    };
    if text::width(name) <= columns {
        name.to_owned()
    } else {
        short.to_owned()
    }
}
