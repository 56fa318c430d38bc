//! Line rows of hits, and file paths.

use gimli::AttributeValue;
use rustc_hash::FxHashMap;

use super::super::limits;
use super::{Budget, Dwarf, Slice, Stop, Unit};

/// A row of the line table with its range (svma).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Index in the unit's file table.
    pub(super) file: u64,
    /// 0 for code without a line.
    pub(super) line: u32,
}

/// Finds the row of each hit (svma, ascending) in the unit's line program.
pub(super) fn find(
    unit: &Unit<'_>,
    hits: &[u64],
    is_code: &(dyn Fn(u64) -> bool + Sync),
    budget: &Budget,
    found: &mut [Option<Row>],
) -> Result<(), Stop> {
    let Some(program) = unit.line_program.clone() else {
        return Ok(());
    };
    let mut rows = program.rows();
    // The current row, and whether its sequence is loaded code: linkers drop some.
    let mut open: Option<Row> = None;
    let mut in_code = None;
    while let Some((_, row)) = rows.next_row()? {
        budget.spend(1)?;
        let address = row.address();
        let wanted = *in_code.get_or_insert_with(|| is_code(address));
        // The last of several rows at one address counts; a row with a lower address is damage and
        // closes nothing.
        if let Some(mut row) = open.filter(|row| wanted && row.start < address) {
            row.end = address;
            let from = hits.partition_point(|hit| *hit < row.start);
            for (hit, found) in hits.iter().zip(found.iter_mut()).skip(from) {
                if *hit >= address {
                    break;
                }
                budget.spend(1)?;
                found.get_or_insert(row);
            }
        }
        if row.end_sequence() {
            (open, in_code) = (None, None);
            continue;
        }
        let line = row.line().map_or(0, std::num::NonZeroU64::get);
        open = Some(Row {
            start: address,
            end: address,
            file: row.file_index(),
            line: u32::try_from(line).unwrap_or(0),
        });
    }
    Ok(())
}

pub(super) struct Files<'u, 'a> {
    dwarf: &'u Dwarf<'a>,
    unit: &'u Unit<'a>,
    paths: FxHashMap<u64, String>,
}

impl<'u, 'a> Files<'u, 'a> {
    pub(super) fn new(dwarf: &'u Dwarf<'a>, unit: &'u Unit<'a>) -> Self {
        Files {
            dwarf,
            unit,
            paths: FxHashMap::default(),
        }
    }

    /// A file's path, made absolute with the compilation directory; empty if unknown.
    pub(super) fn path(&mut self, index: u64) -> String {
        if let Some(path) = self.paths.get(&index) {
            return path.clone();
        }
        let path = self.make_path(index).unwrap_or_default();
        self.paths.insert(index, path.clone());
        path
    }

    fn make_path(&self, index: u64) -> Option<String> {
        let header = self.unit.line_program.as_ref()?.header();
        let file = header.file(index)?;
        let mut path = self
            .unit
            .comp_dir
            .map(|dir| dir.to_string_lossy().into_owned())
            .unwrap_or_default();
        // Directory 0 is the compilation directory (DWARF 5, §6.2.4).
        if file.directory_index() != 0
            && let Some(directory) = file.directory(header)
        {
            push(&mut path, &self.text(directory)?);
        }
        push(&mut path, &self.text(file.path_name())?);
        while path.len() > limits::PATH_BYTES {
            path.pop();
        }
        Some(path)
    }

    fn text(&self, value: AttributeValue<Slice<'a>>) -> Option<String> {
        let slice = self.dwarf.attr_string(self.unit, value).ok()?;
        let bytes = slice.slice();
        let bytes = &bytes[..bytes.len().min(limits::PATH_BYTES)];
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// Appends a path; an absolute path replaces the previous one.
fn push(path: &mut String, piece: &str) {
    if piece.starts_with('/') || path.is_empty() {
        piece.clone_into(path);
    } else if !piece.is_empty() {
        if !path.ends_with('/') {
            path.push('/');
        }
        path.push_str(piece);
    }
}
