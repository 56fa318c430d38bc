use super::*;
use crate::recordings::screens;
use crate::tui::testing::profile;
use vmscope_symbolizer::Summary;

fn matrix(profile: &Profile, axis: Axis, in_parts: bool) -> Matrix {
    let stop = Stop::new();
    let index = Arc::new(EntryIndex::of(profile, &stop).unwrap());
    let shape = Shape {
        axis,
        in_parts,
        has_errors: true,
    };
    Matrix::of(profile, &index, &Filter::default(), shape, &stop).unwrap()
}

#[test]
fn rows_and_columns_have_their_samples_names_and_order() {
    let profile = profile(screens::java());
    let summary = Summary::with_errors(&profile, &Filter::default());
    for axis in [Axis::Methods, Axis::Threads] {
        for in_parts in [false, true] {
            let matrix = matrix(&profile, axis, in_parts);
            assert_eq!(matrix.total, summary.total);
            for (row, item) in (0..).zip(&matrix.rows) {
                let cells = matrix.cells.of_row(row).iter();
                let sum: u64 = cells.map(|cell| cell.samples).sum();
                assert_eq!(sum, item.samples, "{item:?}");
                assert!(!item.name.is_empty());
            }
            let keys = matrix
                .rows
                .iter()
                .map(|row| (Reverse(row.samples), &row.name));
            assert!(keys.is_sorted());
            for (column, item) in (0..).zip(&matrix.columns) {
                let rows = &matrix.rows_of_column[column as usize];
                let samples = rows.iter().map(|&row| matrix.cell(row, column));
                assert_eq!(samples.clone().sum::<u64>(), item.samples);
                assert!(samples.clone().all(|samples| samples > 0));
                assert!(samples.is_sorted_by(|a, b| a >= b));
                let entries = matrix.entries_of(&profile, Some(&item.what), None);
                let own = entries.iter().map(|&entry| summary.entries[entry]);
                assert_eq!(own.sum::<u64>(), item.samples, "{item:?}");
                assert_eq!(item.what.part.is_some(), in_parts);
            }
            let regions = matrix.columns.iter().map(|item| item.what.region as usize);
            assert!(regions.is_sorted());
            let most = matrix.cells.all().iter().map(|cell| cell.samples).max();
            assert_eq!(most, Some(matrix.most));
            let first = matrix.cells.all()[0];
            assert!(matrix.error(first.row, first.column).is_some());
        }
    }
}

#[test]
fn regions_and_their_parts_have_names() {
    let profile = profile(screens::java());
    let names = |in_parts| {
        let matrix = matrix(&profile, Axis::Threads, in_parts);
        let names = matrix.columns.into_iter().map(|item| item.name.to_string());
        names.collect::<Vec<String>>()
    };
    assert!(names(false).iter().any(|name| name == "collector"));
    let parts = names(true);
    assert!(
        parts.iter().any(|name| name == "generated: C2"),
        "{parts:?}"
    );
    assert!(
        matrix(&profile, Axis::Threads, false)
            .rows
            .iter()
            .any(|row| row.name.starts_with("main ("))
    );
}
