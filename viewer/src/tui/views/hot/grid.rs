//! The matrix drawn as a grid of heat-coloured shares.

use super::matrix::Table;
use super::matrix_page::{NAME, Page, Row, SELECTED, SHARE};
use crate::present::document::{Column, Table as Exported, Value, each};
use crate::present::names::region_name;
use crate::present::numbers::{count, ratio};
use crate::present::shorten::label;
use crate::present::text;
use crate::tui::theme::{Role, Theme};
use crate::tui::views::Click;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use vmscope_symbolizer::Stop;

/// Lines above the rows: two of headings, and the sums.
const HEAD: u16 = 3;

/// Columns of a number.
const NUMBER: usize = 8;

/// Columns of a number under a method's or thread's name.
const WIDE_NUMBER: usize = 15;

/// The table area: grid rows plus one heading line.
pub fn rows_area(area: Rect) -> Rect {
    Rect {
        y: area.y + (HEAD - 1).min(area.height),
        height: area.height.saturating_sub(HEAD),
        ..area
    }
}

/// Whether a click hit headings or sums.
pub fn is_heading(area: Rect, click: Click) -> bool {
    click.at.y < area.y.saturating_add(HEAD)
}

/// The sort column behind a clicked heading; column 0 holds sums.
pub fn sort_of(column: usize) -> usize {
    if column == 0 { SHARE } else { SELECTED }
}

/// Maps a screen position to a grid column; column 0 holds sums.
pub fn column_at(page: &Page<'_>, area: Rect, x: u16) -> Option<usize> {
    let layout = Layout::of(page, area.width);
    let x = usize::from(x.saturating_sub(area.x)).checked_sub(layout.name + 1)?;
    let Some(x) = x.checked_sub(NUMBER + 1) else {
        return Some(0);
    };
    let column = x / (layout.number + 1);
    (column < layout.shown).then_some(layout.first + column + 1)
}

/// Finds the next or previous hot cell: at least a tenth of the largest cell's samples. The
/// search runs row by row and wraps around.
pub fn next_hot(page: &Page<'_>, table: &Table, is_back: bool) -> Option<(Row, usize)> {
    let (matrix, turned) = (page.way.matrix, page.way.turned);
    let rows: Vec<Row> = table.visible().collect();
    let columns = page.way.turned().len();
    let all = rows.len() * columns;
    let mut place_of_item = vec![0; rows.len()];
    for (place, row) in rows.iter().enumerate() {
        place_of_item[row.item as usize] = place;
    }
    let selected = place_of_item[table.selected()?.item as usize];
    let now = selected * columns + page.column.unwrap_or(0) as usize;
    let hot = matrix.cells.all().iter();
    let hot = hot.filter(|cell| cell.samples * 10 >= matrix.most);
    let places = hot.map(|cell| match turned {
        true => place_of_item[cell.column as usize] * columns + cell.row as usize,
        false => place_of_item[cell.row as usize] * columns + cell.column as usize,
    });
    let distance = |place: usize| {
        let distance = match is_back {
            true => now + all - place,
            false => place + all - now,
        } % all;
        if distance == 0 { all } else { distance }
    };
    let place = places.min_by_key(|place| distance(*place))?;
    Some((rows[place / columns], place % columns))
}

/// The whole grid, for export; `None` where it was stopped.
pub fn export(page: &Page<'_>, table: &Table, stop: &Stop) -> Option<Exported> {
    let (way, columns) = (page.way, page.way.turned());
    let mut exported = Exported::new("", &[way.title(), ">samples", ">share"]);
    let all = (0u32..).take(columns.len());
    exported.columns.extend(all.clone().map(|column| Column {
        name: columns.name(column).to_owned(),
        right: true,
    }));
    each(table.visible(), stop, |Row { item, .. }| {
        let samples = way.samples(item);
        let mut cells = vec![
            Value::Text(way.name(item).to_owned()),
            Value::Count(samples),
            Value::Share(ratio(samples, way.matrix.total)),
        ];
        cells.extend(all.clone().map(|column| match way.cell(item, column) {
            0 => Value::Empty,
            samples => Value::Count(samples),
        }));
        exported.rows.push(cells);
    })?;
    Some(exported)
}

/// Draws it.
pub fn draw(page: &Page<'_>, table: &Table, theme: &Theme, frame: &mut Frame<'_>, area: Rect) {
    let layout = Layout::of(page, area.width);
    let line = |y: u16| Rect {
        y,
        height: 1,
        ..area
    };
    let mut lines = heads(page, table, theme, &layout);
    let selected = table.selected();
    let rows = table.on_screen(Table::height(rows_area(area)));
    lines.extend(rows.map(|row| row_line(page, theme, &layout, row.item, selected == Some(row))));
    let bottom = area.bottom().saturating_sub(1);
    for (spans, y) in lines.into_iter().zip(area.y..bottom) {
        frame.render_widget(Line::from(spans), line(y));
    }
    if area.height > 0 {
        let details = selected.map(|row| details(page, row.item));
        let details = text::line(&details.unwrap_or_default(), usize::from(area.width));
        frame.render_widget(Line::styled(details, theme.style(Role::Dim)), line(bottom));
    }
}

/// Two heading lines, then column sums.
fn heads(
    page: &Page<'_>,
    table: &Table,
    theme: &Theme,
    layout: &Layout,
) -> Vec<Vec<Span<'static>>> {
    let (way, columns, total) = (page.way, page.way.turned(), page.way.matrix.total);
    let (sorted, reversed) = table.sorted(page);
    let arrow = match reversed {
        false => theme.sign("▾", "v"),
        true => theme.sign("▴", "^"),
    };
    let mark = |column: usize| if sorted == column { arrow } else { "" };
    let (title, strong) = (theme.style(Role::Title), theme.style(Role::Strong));
    let blank = |columns: usize| Span::raw(" ".repeat(columns));
    let name = format!("{}{}", way.title(), mark(NAME));
    let all = format!("all{}", mark(SHARE));
    let role = match page.column {
        None => Role::Selected,
        Some(_) => Role::Title,
    };
    let mut upper = vec![
        blank(layout.name + 1),
        Span::styled(text::right("% of", NUMBER), title),
    ];
    let mut lower = vec![
        Span::styled(text::name(&name, layout.name), title),
        blank(1),
        Span::styled(text::right(&all, NUMBER), theme.style(role)),
    ];
    let mut sums = vec![
        Span::styled(text::name("all", layout.name), strong),
        blank(1),
        Span::styled(text::right("100.00", NUMBER), strong),
    ];
    for column in layout.columns() {
        let (first, second) = head_of(page, column, layout.number);
        let is_selected = page.column == Some(column);
        let style = match is_selected {
            true => theme.style(Role::Selected),
            false if way.turned => title,
            false => {
                let region = way.matrix.columns[column as usize].what.region;
                title.patch(theme.style(Role::Region(region)))
            }
        };
        let second = match is_selected {
            true => format!("{second}{}", mark(SELECTED)),
            false => second,
        };
        let sum = percent(columns.samples(column), total, theme);
        let texts = [
            (&mut upper, first, style),
            (&mut lower, second, style),
            (&mut sums, sum, strong),
        ];
        for (line, text, style) in texts {
            line.push(blank(1));
            line.push(Span::styled(text::right(&text, layout.number), style));
        }
    }
    vec![upper, lower, sums]
}

/// A column's heading in two lines.
fn head_of(page: &Page<'_>, column: u32, width: usize) -> (String, String) {
    if !page.way.turned {
        let category = &page.way.matrix.columns[column as usize].what;
        let region = short_region(region_name(category.region), width);
        return match category.part.as_deref() {
            None => (String::new(), region),
            Some(part) => (region, cut(part, width)),
        };
    }
    let name = page.way.turned().name(column);
    let bare = name.split(['(', '<']).next().unwrap_or(name);
    let bare = if bare.is_empty() { name } else { bare };
    match bare.rsplit_once(['.', '>', ':']) {
        Some((class, method)) => {
            let class = class.rsplit(['.', ':', '/']).next().unwrap_or(class);
            (cut(class.trim_end_matches('>'), width), cut(method, width))
        }
        None => (String::new(), cut(bare, width)),
    }
}

fn row_line(
    page: &Page<'_>,
    theme: &Theme,
    layout: &Layout,
    item: u32,
    is_selected: bool,
) -> Vec<Span<'static>> {
    let (way, matrix) = (page.way, page.way.matrix);
    let name = label(way.name(item), None, "", layout.name.saturating_sub(2));
    let (sign, role) = match is_selected {
        true => ("> ", Role::Strong),
        false => ("  ", Role::Text),
    };
    let mut spans = vec![
        Span::styled(
            text::name(&format!("{sign}{name}"), layout.name),
            theme.style(role),
        ),
        Span::raw(" "),
    ];
    let mut put = |samples: u64, most: u64, width: usize, column: Option<u32>| {
        let heat = ratio(samples, most);
        let mut style = theme.style(Role::Heat(heat));
        if is_selected && page.column == column {
            style = style.patch(theme.style(Role::Selected));
        }
        let text = percent(samples, matrix.total, theme);
        let text = match samples {
            0 => text,
            // How hot without colours.
            _ => format!("{}{text:>6}", theme.column(heat)),
        };
        spans.push(Span::styled(text::right(&text, width), style));
        spans.push(Span::raw(" "));
    };
    put(way.samples(item), page.most, NUMBER, None);
    for column in layout.columns() {
        put(
            way.cell(item, column),
            matrix.most,
            layout.number,
            Some(column),
        );
    }
    spans
}

/// The selected row or cell, in full.
fn details(page: &Page<'_>, item: u32) -> String {
    let (way, columns) = (page.way, page.way.turned());
    let (name, samples) = (way.name(item), way.samples(item));
    let share = |part, whole| format!("{:.2}%", ratio(part, whole) * 100.0);
    let Some(column) = page.column else {
        let (number, of_all) = (count(samples), share(samples, way.matrix.total));
        return format!("{number} samples, {of_all} of all: {name}");
    };
    let cell = way.cell(item, column);
    format!(
        "{} samples, {} of the row, {} of the column: {} × {name}",
        count(cell),
        share(cell, samples),
        share(cell, columns.samples(column)),
        columns.name(column),
    )
}

/// Where the columns are.
struct Layout {
    /// Columns of the terminal for a row's name.
    name: usize,
    /// Terminal columns per number.
    number: usize,
    /// The first column on the screen.
    first: usize,
    /// Number of visible grid columns.
    shown: usize,
}

impl Layout {
    fn of(page: &Page<'_>, width: u16) -> Self {
        let width = usize::from(width);
        let number = if page.way.turned { WIDE_NUMBER } else { NUMBER };
        let columns = page.way.turned().len();
        let least = (width / 3).clamp(20, 60);
        let room = width.saturating_sub(least + 1 + NUMBER + 1);
        let shown = (room / (number + 1)).clamp(1, columns.max(1));
        let name = width.saturating_sub((number + 1) * shown.min(columns) + NUMBER + 2);
        // As little away from the first column as shows the selected one.
        let selected = page.column.map_or(0, |column| column as usize + 1);
        let first = selected.saturating_sub(shown);
        Layout {
            name: name.min(90),
            number,
            first,
            shown: shown.min(columns.saturating_sub(first)),
        }
    }

    /// The columns on the screen.
    fn columns(&self) -> impl Iterator<Item = u32> {
        (0u32..).skip(self.first).take(self.shown)
    }
}

/// A share in percent; a share below the last digit says so.
fn percent(samples: u64, total: u64, theme: &Theme) -> String {
    let share = ratio(samples, total) * 100.0;
    match samples {
        0 => theme.sign("·", ".").to_owned(),
        _ if share < 0.005 => "<0.01".to_owned(),
        _ => format!("{share:.2}"),
    }
}

/// Cuts a word without an ellipsis, which would waste narrow columns.
fn cut(word: &str, columns: usize) -> String {
    let mut short = text::line(word, 64);
    while text::width(&short) > columns {
        short.pop();
    }
    short
}

/// Abbreviates region names in narrow columns.
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
