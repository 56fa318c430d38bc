//! The matrix against sums over all owners and threads.

use crate::recordings::{java_filters, read, screens};
use std::collections::BTreeMap;
use vmscope_symbolizer::attribution::{Owner, owner_errors, owners};
use vmscope_symbolizer::matrix::{Axis, Matrix, Row};
use vmscope_symbolizer::methods::Methods;
use vmscope_symbolizer::time_buckets::by_thread;
use vmscope_symbolizer::{
    EntryId, Filter, IndexVec, Profile, Region, Stop, Summary, ThreadId, profile_of,
};

fn java() -> Profile {
    profile_of(read(&screens::java()).unwrap(), Vec::new(), true)
}

fn regions(profile: &Profile) -> IndexVec<EntryId, u32> {
    profile.entries.map(|_, entry| entry.region as u32)
}

/// A matrix with regions as columns.
fn matrix(profile: &Profile, methods: &Methods, filter: &Filter, axis: Axis) -> Matrix {
    let what = (axis, regions(profile), Region::ALL.len());
    Matrix::of(profile, methods, filter, what, &Stop::new()).unwrap()
}

/// Samples of each cell, by row text and column.
fn cells(matrix: &Matrix) -> BTreeMap<(String, u32), u64> {
    let mut cells = BTreeMap::new();
    for cell in matrix.cells.all() {
        let row = &matrix.rows[cell.row as usize];
        let before = cells.insert((format!("{row:?}"), cell.column), cell.samples);
        assert_eq!(before, None, "{row:?} stands twice");
    }
    cells
}

/// The row of an owner, by linear search.
fn row_of(profile: &Profile, methods: &Methods, owner: Owner) -> Row {
    match owner {
        Owner::Method(entry) => Row::Method(methods.of_entry[entry]),
        Owner::Compiled(index) => {
            let name = &profile.trace.compilations[index as usize].name;
            let mut names = methods.names.enumerated();
            match names.find(|(_, other)| ***other == **name) {
                Some((method, _)) => Row::Method(method),
                None => Row::Compiled(name.as_str().into()),
            }
        }
        owner => Row::Nobody(owner),
    }
}

#[test]
fn cells_are_the_sums_of_owners_and_of_threads() {
    let profile = java();
    let methods = Methods::of(&profile);
    let regions = regions(&profile);
    for filter in java_filters() {
        let total = Summary::with_errors(&profile, &filter).total;
        let mut expected: BTreeMap<(String, u32), u64> = BTreeMap::new();
        for one in owners(&profile, &filter, &Stop::new()).unwrap() {
            let row = format!("{:?}", row_of(&profile, &methods, one.owner));
            *expected.entry((row, regions[one.entry])).or_default() += one.samples;
        }
        let by_method = matrix(&profile, &methods, &filter, Axis::Methods);
        assert_eq!(cells(&by_method), expected, "{filter:?}");
        let mut expected: BTreeMap<(String, u32), u64> = BTreeMap::new();
        for one in by_thread(&profile, &filter, &Stop::new()).unwrap() {
            let row = format!("{:?}", Row::Thread(one.thread));
            *expected.entry((row, regions[one.entry])).or_default() += one.samples;
        }
        let by_thread = matrix(&profile, &methods, &filter, Axis::Threads);
        assert_eq!(cells(&by_thread), expected, "{filter:?}");
        for matrix in [by_method, by_thread] {
            assert_eq!(matrix.of_row.iter().sum::<u64>(), total);
            assert_eq!(matrix.of_column.iter().sum::<u64>(), total);
        }
    }
}

#[test]
fn the_order_changes_no_cell() {
    let profile = java();
    let methods = Methods::of(&profile);
    let whole = matrix(&profile, &methods, &Filter::default(), Axis::Methods);
    let rows: Vec<u32> = (0..).take(whole.rows.len()).collect();
    let rows: Vec<u32> = rows.into_iter().rev().collect();
    let columns = (0u32..).take(whole.of_column.len());
    // Leaves out empty columns.
    let columns: Vec<u32> = columns
        .filter(|&column| whole.of_column[column as usize] > 0)
        .collect();
    let turned = whole.clone().in_order(&rows, &columns);
    assert_eq!(turned.of_column.len(), columns.len());
    for (new, &old) in rows.iter().enumerate() {
        assert_eq!(turned.rows[new], whole.rows[old as usize]);
        assert_eq!(turned.of_row[new], whole.of_row[old as usize]);
    }
    for cell in turned.cells.all() {
        let old = (rows[cell.row as usize], columns[cell.column as usize]);
        assert_eq!(whole.cells.get(old.0, old.1), cell.samples);
    }
    assert_eq!(turned.cells.all().len(), whole.cells.all().len());
}

#[test]
fn errors_are_those_of_rows_columns_and_cells() {
    let profile = java();
    let methods = Methods::of(&profile);
    let filter = Filter::default();
    let stop = Stop::new();
    let regions = regions(&profile);
    for axis in [Axis::Methods, Axis::Threads] {
        let matrix = matrix(&profile, &methods, &filter, axis);
        let errors = matrix.errors(&profile, &methods, &filter, &stop);
        let errors = errors.unwrap().unwrap();
        let row = |thread, owner| {
            let wanted = match axis {
                Axis::Methods => row_of(&profile, &methods, owner),
                Axis::Threads => Row::Thread(thread),
            };
            matrix.rows.iter().position(|row| *row == wanted).unwrap()
        };
        // A separate estimate for rows, columns and cells.
        type Group<'a> = &'a dyn Fn(ThreadId, EntryId, Owner) -> usize;
        let groups: [(&[f64], Group<'_>); 3] = [
            (&errors.rows, &|thread, _, owner| row(thread, owner)),
            (&errors.columns, &|_, entry, _| regions[entry] as usize),
            (&errors.cells, &|thread, entry, owner| {
                let row = u32::try_from(row(thread, owner)).unwrap();
                matrix.cells.at(row, regions[entry]).unwrap()
            }),
        ];
        for (errors, group) in groups {
            let total = matrix.of_row.iter().sum();
            let put = |thread, entry, owner, put: &mut dyn FnMut(u32)| {
                put(u32::try_from(group(thread, entry, owner)).unwrap());
            };
            let size = (total, errors.len());
            let expected = owner_errors(&profile, &filter, size, &stop, put).unwrap();
            assert_eq!(errors.len(), expected.len());
            assert!(errors.iter().any(|error| *error > 0.0));
            for (error, expected) in errors.iter().zip(&expected) {
                assert!((error - expected).abs() < 1e-9, "{error} {expected}");
            }
        }
    }
}

#[test]
fn counting_stops_when_that_is_wished() {
    let profile = java();
    let methods = Methods::of(&profile);
    let stop = Stop::new();
    stop.stop();
    let what = (Axis::Methods, regions(&profile), Region::ALL.len());
    let matrix = Matrix::of(&profile, &methods, &Filter::default(), what, &stop);
    assert_eq!(matrix, None);
}
