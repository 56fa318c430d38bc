//! Matrix drawn as a grid of heat-coloured shares.

use super::matrix::Table;
use super::matrix_page::{NAME, Page, Row, SELECTED, SHARE};
use crate::present::document::{Column, Table as Exported, Value, each};
use crate::present::names::region_name;
use crate::present::numbers::{count, ratio};
use crate::present::shorten::{Name, class_and_own, labels};
use crate::present::text;
use crate::tui::theme::{Role, Theme};
use crate::tui::views::Click;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use vmscope_symbolizer::Stop;

/// Lines above the rows: two headings, one line of sums.
const HEAD: u16 = 3;

/// Width of a number.
const NUMBER: usize = 8;

/// Width of a number under a method's or thread's name.
const WIDE_NUMBER: usize = 15;

/// Table area: grid rows plus one heading line.
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

/// Sort column of a clicked heading; column 0 holds sums.
pub fn sort_of(column: usize) -> usize {
    if column == 0 { SHARE } else { SELECTED }
}

/// Grid column at a screen position; column 0 holds sums.
pub fn column_at(page: &Page<'_>, area: Rect, x: u16) -> Option<usize> {
    let layout = Layout::of(page, area.width);
    let x = usize::from(x.saturating_sub(area.x)).checked_sub(layout.name + 1)?;
    let Some(x) = x.checked_sub(NUMBER + 1) else {
        return Some(0);
    };
    let column = x / (layout.number + 1);
    (column < layout.shown).then_some(layout.first + column + 1)
}

/// Next or previous hot cell, row by row, wrapping around: cells with at least a tenth of the
/// largest cell's samples.
pub fn next_hot(page: &Page<'_>, table: &Table, is_back: bool) -> Option<(Row, usize)> {
    let (matrix, turned) = (page.side.matrix, page.side.turned);
    let rows: Vec<Row> = table.visible().collect();
    let columns = page.side.other().len();
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

pub fn export(page: &Page<'_>, table: &Table, stop: &Stop) -> Option<Exported> {
    let (side, columns) = (page.side, page.side.other());
    let mut exported = Exported::new("", &[side.title(), ">samples", ">share"]);
    let all = (0u32..).take(columns.len());
    exported.columns.extend(all.clone().map(|column| Column {
        name: columns.name(column).to_owned(),
        right: true,
    }));
    each(table.visible(), stop, |Row { item, .. }| {
        let samples = side.samples(item);
        let mut cells = vec![
            Value::Text(side.name(item).to_owned()),
            Value::Count(samples),
            Value::Share(ratio(samples, side.matrix.total)),
        ];
        cells.extend(all.clone().map(|column| match side.cell(item, column) {
            0 => Value::Empty,
            samples => Value::Count(samples),
        }));
        exported.rows.push(cells);
    })?;
    Some(exported)
}

pub fn draw(page: &Page<'_>, table: &Table, theme: &Theme, frame: &mut Frame<'_>, area: Rect) {
    let layout = Layout::of(page, area.width);
    let line = |y: u16| Rect {
        y,
        height: 1,
        ..area
    };
    let mut lines = heads(page, table, theme, &layout);
    let selected = table.selected();
    let rows = || table.on_screen(Table::height(rows_area(area)));
    let names = rows().map(|row| {
        let name = page.side.name(row.item);
        let columns = layout.name.saturating_sub(2);
        (
            Name {
                name,
                ..Name::default()
            },
            columns,
        )
    });
    let names = labels(&names.collect::<Vec<_>>());
    let named = rows().zip(&names);
    lines.extend(named.map(|(row, name)| {
        row_line(
            page,
            theme,
            &layout,
            (row.item, name),
            selected == Some(row),
        )
    }));
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
    let (side, columns, total) = (page.side, page.side.other(), page.side.matrix.total);
    let (sorted, reversed) = table.sorted(page);
    let arrow = match reversed {
        false => theme.sign("▾", "v"),
        true => theme.sign("▴", "^"),
    };
    let mark = |column: usize| if sorted == column { arrow } else { "" };
    let (title, strong) = (theme.style(Role::Title), theme.style(Role::Strong));
    let blank = |columns: usize| Span::raw(" ".repeat(columns));
    let name = format!("{}{}", side.title(), mark(NAME));
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
            false if side.turned => title,
            false => {
                let region = side.matrix.columns[column as usize].what.region;
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

/// Heading of a column, in two lines.
fn head_of(page: &Page<'_>, column: u32, width: usize) -> (String, String) {
    if !page.side.turned {
        let category = &page.side.matrix.columns[column as usize].what;
        let region = short_region(
            region_name(category.region, page.side.matrix.is_native),
            width,
        );
        return match category.part.as_deref() {
            None => (String::new(), region),
            Some(part) => (region, text::start(part, width)),
        };
    }
    let name = page.side.other().name(column);
    let (class, own) = class_and_own(name);
    (text::start(&class, width), text::start(&own, width))
}

fn row_line(
    page: &Page<'_>,
    theme: &Theme,
    layout: &Layout,
    (item, name): (u32, &str),
    is_selected: bool,
) -> Vec<Span<'static>> {
    let (side, matrix) = (page.side, page.side.matrix);
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
            // Heat without colours.
            _ => format!("{}{text:>6}", theme.column(heat)),
        };
        spans.push(Span::styled(text::right(&text, width), style));
        spans.push(Span::raw(" "));
    };
    put(side.samples(item), page.most, NUMBER, None);
    for column in layout.columns() {
        put(
            side.cell(item, column),
            matrix.most,
            layout.number,
            Some(column),
        );
    }
    spans
}

fn details(page: &Page<'_>, item: u32) -> String {
    let (side, columns) = (page.side, page.side.other());
    let (name, samples) = (side.name(item), side.samples(item));
    let share = |part, whole| format!("{:.2}%", ratio(part, whole) * 100.0);
    let Some(column) = page.column else {
        let (number, of_all) = (count(samples), share(samples, side.matrix.total));
        return format!("{number} samples, {of_all} of all: {name}");
    };
    let cell = side.cell(item, column);
    format!(
        "{} samples, {} of the row, {} of the column: {} × {name}",
        count(cell),
        share(cell, samples),
        share(cell, columns.samples(column)),
        columns.name(column),
    )
}

struct Layout {
    /// Width of the name column.
    name: usize,
    /// Width of a number.
    number: usize,
    /// First visible grid column.
    first: usize,
    /// Number of visible grid columns.
    shown: usize,
}

impl Layout {
    fn of(page: &Page<'_>, width: u16) -> Self {
        let width = usize::from(width);
        let number = if page.side.turned {
            WIDE_NUMBER
        } else {
            NUMBER
        };
        let columns = page.side.other().len();
        let least = (width / 3).clamp(20, 60);
        let room = width.saturating_sub(least + 1 + NUMBER + 1);
        let shown = (room / (number + 1)).clamp(1, columns.max(1));
        let name = width.saturating_sub((number + 1) * shown.min(columns) + NUMBER + 2);
        // Scrolls no further than the selected column needs.
        let selected = page.column.map_or(0, |column| column as usize + 1);
        let first = selected.saturating_sub(shown);
        Layout {
            name: name.min(90),
            number,
            first,
            shown: shown.min(columns.saturating_sub(first)),
        }
    }

    fn columns(&self) -> impl Iterator<Item = u32> {
        (0u32..).skip(self.first).take(self.shown)
    }
}

/// Share in percent; tiny shares show as `<0.01`.
fn percent(samples: u64, total: u64, theme: &Theme) -> String {
    let share = ratio(samples, total) * 100.0;
    match samples {
        0 => theme.sign("·", ".").to_owned(),
        _ if share < 0.005 => "<0.01".to_owned(),
        _ => format!("{share:.2}"),
    }
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
