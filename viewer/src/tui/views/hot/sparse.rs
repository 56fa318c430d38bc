//! A table of two sides of which only what is not zero is kept.

/// Samples of a row in a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Which row.
    pub row: u32,
    /// Which column.
    pub column: u32,
    /// More than none.
    pub samples: u64,
}

/// The cells of a table.
#[derive(Debug, Default)]
pub struct Cells {
    /// By row and column, ascending.
    all: Vec<Cell>,
    /// Of each row, the index of its first cell; at the end, how many cells there are.
    begins: Vec<usize>,
}

impl Cells {
    /// Those of a table of so many rows: cells in any order, and several of one place. What is
    /// in no row is left out.
    pub fn of(cells: &[Cell], rows: usize) -> Self {
        // Each row's cells find their room at once: there are many rows with few cells.
        let mut ends = vec![0; rows];
        for cell in cells {
            if let Some(count) = ends.get_mut(cell.row as usize) {
                *count += 1;
            }
        }
        let mut end = 0;
        for slot in &mut ends {
            end += std::mem::replace(slot, end);
        }
        let mut all = vec![Cell::default(); end];
        for cell in cells {
            if let Some(at) = ends.get_mut(cell.row as usize)
                && let Some(slot) = all.get_mut(*at)
            {
                *slot = *cell;
                *at += 1;
            }
        }
        let mut first = 0;
        for end in ends {
            if let Some(of_row) = all.get_mut(first..end) {
                of_row.sort_unstable_by_key(|cell| cell.column);
            }
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

    /// All of them, by row and column.
    pub fn all(&self) -> &[Cell] {
        &self.all
    }

    /// Where a cell is in [`Self::all`].
    pub fn at(&self, row: u32, column: u32) -> Option<usize> {
        let begin = *self.begins.get(row as usize)?;
        let of_row = self.all.get(begin..*self.begins.get(row as usize + 1)?)?;
        let at = of_row.binary_search_by_key(&column, |cell| cell.column);
        Some(begin + at.ok()?)
    }

    /// The samples of a place.
    pub fn get(&self, row: u32, column: u32) -> u64 {
        let cell = self.at(row, column).and_then(|at| self.all.get(at));
        cell.map_or(0, |cell| cell.samples)
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
        for (row, column) in [(0, 0), (1, 0), (1, 3), (2, 2), (4, 0), (5, 0), (9, 9)] {
            assert_eq!(cells.at(row, column), None);
        }
        assert_eq!(Cells::of(&[], 0).get(0, 0), 0);
    }
}
