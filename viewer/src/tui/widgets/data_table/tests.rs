use super::drawn::fitting;
use super::*;
use crate::present::document::Value;
use crate::tui::theme::Role;
use crate::tui::views::{Click, Press};
use crate::tui::widgets::search::Finder;
use ratatui::layout::Position;

/// Three groups of numbers; the second contains a group.
struct Numbers;

const NAMES: [&str; 9] = ["b", "a", "c", "ten", "two", "six", "inner", "one", "nine"];
const PARENTS: [Option<usize>; 9] = [
    None,
    None,
    None,
    Some(0),
    Some(0),
    Some(1),
    Some(1),
    Some(6),
    Some(2),
];
const COUNTS: [u64; 9] = [12, 7, 9, 10, 2, 6, 1, 1, 9];

impl Rows for Numbers {
    type Row = usize;
    type Key = &'static str;

    fn columns(&self, _width: u16) -> Vec<Column> {
        vec![
            Column::left("name", "name", 10).sort(Sort::Up),
            Column::right("count", "count", 5).sort(Sort::Down),
            Column::right("again", "", 5).rank(1).sort(Sort::Like(1)),
        ]
    }

    fn stretch(&self) -> usize {
        0
    }

    fn sorts(&self) -> Vec<usize> {
        vec![1, 0]
    }

    fn children(&self, parent: Option<usize>) -> Vec<usize> {
        (0..9).filter(|&row| PARENTS[row] == parent).collect()
    }

    fn can_open(&self, row: usize) -> bool {
        PARENTS.contains(&Some(row))
    }

    fn is_tree(&self) -> bool {
        true
    }

    fn key(&self, row: usize) -> &'static str {
        NAMES[row]
    }

    fn value(&self, row: usize, column: usize) -> Value {
        match column {
            0 => Value::Text(NAMES[row].to_owned()),
            _ => Value::Count(COUNTS[row]),
        }
    }

    fn cell(&self, row: usize, column: usize, _room: &Room<'_>) -> Vec<Piece> {
        let text = match column {
            0 => NAMES[row].to_owned(),
            _ => COUNTS[row].to_string(),
        };
        Piece::cell(Role::Text, text)
    }

    fn fits(&self, row: usize, text: &mut Finder) -> bool {
        text.is_in(NAMES[row])
    }

    fn share(&self, row: usize) -> f64 {
        COUNTS[row] as f64 / 1000.0
    }
}

type Table = DataTable<usize, &'static str>;

const HEIGHT: usize = 5;

fn arranged() -> Table {
    let mut table = Table::default();
    table.arrange(&Numbers, HEIGHT);
    table
}

fn names(table: &Table) -> Vec<&'static str> {
    table.visible().map(|row| NAMES[row]).collect()
}

fn selected(table: &Table) -> Option<&'static str> {
    table.selected().map(|row| NAMES[row])
}

#[test]
fn every_level_is_sorted_and_the_selected_row_stays_selected() {
    let mut table = arranged();
    assert_eq!(names(&table), ["b", "c", "a"]);
    assert!(table.act(Command::Right, &Numbers, HEIGHT));
    assert_eq!(names(&table), ["b", "ten", "two", "c", "a"]);
    table.act(Command::Down, &Numbers, HEIGHT);
    assert_eq!(selected(&table), Some("ten"));
    table.act(Command::Reverse, &Numbers, HEIGHT);
    assert_eq!(names(&table), ["a", "c", "b", "two", "ten"]);
    assert_eq!(selected(&table), Some("ten"));
    assert_eq!(table.crumb(&Numbers), "sorted by count, reversed");
    table.act(Command::Sort, &Numbers, HEIGHT);
    assert_eq!(names(&table), ["a", "b", "ten", "two", "c"]);
    assert_eq!(table.crumb(&Numbers), "sorted by name");
    // Selects the parent row, which then collapses.
    table.act(Command::Left, &Numbers, HEIGHT);
    assert_eq!(selected(&table), Some("b"));
    table.act(Command::Left, &Numbers, HEIGHT);
    assert_eq!(names(&table), ["a", "b", "c"]);
    assert!(!table.act(Command::Open, &Numbers, HEIGHT));
}

#[test]
fn a_search_expands_what_hides_the_row() {
    let mut table = arranged();
    assert!(table.find("one", Find::Here, &Numbers, HEIGHT));
    assert_eq!(selected(&table), Some("one"));
    assert_eq!(names(&table), ["b", "c", "a", "six", "inner", "one"]);
    assert!(table.find("t", Find::Next, &Numbers, HEIGHT));
    assert_eq!(selected(&table), Some("ten"));
    assert!(!table.find("nobody", Find::Next, &Numbers, HEIGHT));
    assert_eq!(selected(&table), Some("ten"));
    assert!(table.find("", Find::Here, &Numbers, HEIGHT));
}

#[test]
fn hot_rows_are_expanded_and_walked() {
    let mut table = arranged();
    table.set_all(&Numbers, Some(HOT), HEIGHT);
    assert_eq!(names(&table), ["b", "ten", "two", "c", "a"]);
    table.act(Command::NextHot, &Numbers, HEIGHT);
    assert_eq!(selected(&table), Some("ten"));
    table.act(Command::NextHot, &Numbers, HEIGHT);
    assert_eq!(selected(&table), Some("b"));
    table.set_all(&Numbers, None, HEIGHT);
    assert_eq!(names(&table), ["b", "c", "a"]);
}

#[test]
fn headings_sort_signs_expand_and_rows_are_selected() {
    let area = Rect::new(0, 2, 30, 6);
    let mut table = arranged();
    let mut click = |x, y, what| {
        let at = Position { x, y };
        let clicked = table.click(Click { at, what }, &Numbers, area);
        (clicked, names(&table), selected(&table))
    };
    // The name takes what the two others leave: 30 - 12.
    let (_, rows, _) = click(20, 2, Press::Down);
    assert_eq!(rows, ["a", "c", "b"]);
    let (_, rows, _) = click(20, 2, Press::Down);
    assert_eq!(rows, ["b", "c", "a"]);
    let (clicked, rows, _) = click(0, 3, Press::Down);
    assert_eq!(clicked, Clicked::Nothing);
    assert_eq!(rows, ["b", "ten", "two", "c", "a"]);
    let (clicked, _, selected) = click(21, 4, Press::Double);
    let column = Some(1);
    assert_eq!(
        clicked,
        Clicked::Row {
            column,
            twice: true
        }
    );
    assert_eq!(selected, Some("ten"));
}

#[test]
fn exports_have_the_columns_with_a_name() {
    let table = arranged();
    let all = table.all(&Numbers).into_iter();
    let table = Table::export(&Numbers, all, &Stop::default()).unwrap();
    let heads: Vec<&str> = table.columns.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(heads, ["name", "count"]);
    assert_eq!(table.rows.len(), 9);
    let first = [Value::Text("b".to_owned()), Value::Count(12)];
    assert_eq!(table.rows[0], first);
}

#[test]
fn narrow_screens_lose_the_least_important_columns() {
    let column = |width, rank| Column::left("", "", width).rank(rank);
    let columns = [
        column(10, 0),
        column(20, 2),
        column(8, 1),
        column(5, 0),
        column(0, 0),
    ];
    let on = |room| -> Vec<usize> {
        let fitting = fitting(&columns, 0, room).into_iter();
        fitting.map(|(at, _)| at).collect()
    };
    assert_eq!(on(100), [0, 1, 2, 3]);
    assert_eq!(on(30), [0, 2, 3]);
    assert_eq!(on(20), [0, 3]);
    assert_eq!(on(3), [0, 3]);
    let total: usize = fitting(&columns, 0, 100)
        .iter()
        .map(|(_, width)| width + 1)
        .sum();
    assert_eq!(total, 101);
}

#[test]
fn floats_are_ordered_as_numbers() {
    let keys = [-2.0, -0.5, 0.0, 0.25, 3.0].map(SortKey::of_float);
    assert!(keys.is_sorted());
}
