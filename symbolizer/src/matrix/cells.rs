//! A sparse matrix: only cells that have samples.

/// One cell: samples at a row and column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Index of the row.
    pub row: u32,
    /// Index of the column.
    pub column: u32,
    /// At least one.
    pub samples: u64,
}

/// The cells of a matrix; cells without samples are not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    /// By row and column, ascending.
    all: Vec<Cell>,
    /// Index of each row's first cell, then the total cell count.
    begins: Vec<usize>,
}

impl Cells {
    /// Sorts the cells of a matrix with `rows` rows, and sums up equal places.
    #[must_use]
    pub fn of(cells: &[Cell], rows: usize) -> Self {
        // Counting sort by row: typical rows have few cells.
        let mut ends = vec![0; rows];
        for cell in cells {
            ends[cell.row as usize] += 1;
        }
        let mut end = 0;
        for slot in &mut ends {
            end += std::mem::replace(slot, end);
        }
        let mut all = vec![Cell::default(); end];
        for cell in cells {
            let at = &mut ends[cell.row as usize];
            all[*at] = *cell;
            *at += 1;
        }
        let mut first = 0;
        for end in ends {
            all[first..end].sort_unstable_by_key(|cell| cell.column);
            first = end;
        }
        all.dedup_by(|again, kept| {
            let is_same = (again.row, again.column) == (kept.row, kept.column);
            kept.samples += if is_same { again.samples } else { 0 };
            is_same
        });
        let mut begins = Vec::with_capacity(rows + 1);
        for (index, cell) in all.iter().enumerate() {
            while begins.len() <= cell.row as usize {
                begins.push(index);
            }
        }
        begins.resize(rows + 1, all.len());
        Cells { all, begins }
    }

    /// All cells, by row and column.
    #[must_use]
    pub fn all(&self) -> &[Cell] {
        &self.all
    }

    /// One row's cells, sorted by column.
    #[must_use]
    pub fn of_row(&self, row: u32) -> &[Cell] {
        let row = row as usize;
        &self.all[self.begins[row]..self.begins[row + 1]]
    }

    /// Finds a cell's index in [`Self::all`]; `None` for empty cells.
    #[must_use]
    pub fn at(&self, row: u32, column: u32) -> Option<usize> {
        let of_row = self.of_row(row);
        let at = of_row.binary_search_by_key(&column, |cell| cell.column);
        Some(self.begins[row as usize] + at.ok()?)
    }

    /// The samples of a cell.
    #[must_use]
    pub fn get(&self, row: u32, column: u32) -> u64 {
        self.at(row, column).map_or(0, |at| self.all[at].samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_and_summed() {
        let cell = |row, column, samples| Cell {
            row,
            column,
            samples,
        };
        let all = [cell(3, 1, 5), cell(1, 2, 7), cell(3, 0, 1), cell(1, 2, 2)];
        let cells = Cells::of(&all, 5);
        assert_eq!(cells.all(), [cell(1, 2, 9), cell(3, 0, 1), cell(3, 1, 5)]);
        for (row, column, samples) in [(1, 2, 9), (3, 0, 1), (3, 1, 5)] {
            assert_eq!(cells.get(row, column), samples);
        }
        for (row, column) in [(0, 0), (1, 0), (1, 3), (2, 2), (4, 0), (4, 9)] {
            assert_eq!(cells.at(row, column), None);
        }
        assert_eq!(cells.of_row(3), [cell(3, 0, 1), cell(3, 1, 5)]);
        assert_eq!(cells.of_row(4), []);
        assert_eq!(Cells::of(&[], 1).get(0, 0), 0);
    }
}
