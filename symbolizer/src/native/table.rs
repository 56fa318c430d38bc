//! The symbol of each hit, from one pass over the symbol tables. Memory grows with hits, not with
//! symbols.
//!
//! The innermost *sized* symbol around a hit wins (the symbol with the last start). If none exists,
//! the nearest symbol before the hit counts if it has no size: it reaches to the next symbol. A
//! nearest symbol with a size ends before the hit; the hit is in padding and has no symbol.
//!
//! ```text
//!   symbols   |--f-----------|      |-g (no size)
//!             |     |-h-|    |      |
//!   hits      1     2     3     4   5
//!   answer    f     h     f    gap  g
//! ```

use goblin::elf::section_header::{SHN_LORESERVE, SHN_UNDEF, SHN_XINDEX};
use goblin::elf::sym::{
    STB_GLOBAL, STB_LOCAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Sym, Symtab,
};

use super::elf::{Elf, ElfError};
use super::limits;

const STB_GNU_UNIQUE: u8 = 10;
/// Machines with mapping symbols `$x` and `$d` between code and data: 32-bit and 64-bit Arm,
/// RISC-V.
const WITH_MAPPING_SYMBOLS: [u16; 3] = [40, 183, 243];

/// The location of a symbol's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameAt {
    /// The table's number in [`Lookup::scan`].
    pub(crate) table: u8,
    pub(crate) offset: u32,
}

/// The symbol of a hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Symbol {
        /// Start (svma).
        start: u64,
        /// End, exclusive; `u64::MAX` without a next symbol.
        end: u64,
        /// Whether the symbol has a size.
        sized: bool,
        /// Its name and equally good aliases; not empty.
        names: Vec<NameAt>,
    },
    /// No symbol.
    Gap {
        /// End of the previous symbol; 0 without one.
        start: u64,
        /// Start of the next symbol; `u64::MAX` without one.
        end: u64,
    },
}

/// A possible answer. Ordered by start, then by rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    start: u64,
    rank: u8,
    end: u64,
    name: NameAt,
}

/// The symbols between two neighbouring hits.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// The last symbol with its start here.
    last: Option<Candidate>,
    /// The first start here.
    first_start: u64,
    /// The last end of a sized symbol here.
    last_end: u64,
}

/// Collects symbols for hits.
#[derive(Debug)]
pub(crate) struct Lookup<'h> {
    /// Ascending, without duplicates (svma).
    hits: &'h [u64],
    /// `cells[i]` lies between `hits[i - 1]` (exclusive) and `hits[i]` (inclusive).
    cells: Vec<Cell>,
    sized: Vec<Candidate>,
    /// Whether [`limits::CANDIDATES`] was reached.
    pub(crate) truncated: bool,
}

impl<'h> Lookup<'h> {
    /// `hits` are ascending, without duplicates.
    pub(crate) fn new(hits: &'h [u64]) -> Self {
        let empty = Cell {
            last: None,
            first_start: u64::MAX,
            last_end: 0,
        };
        Lookup {
            hits,
            cells: vec![empty; hits.len() + 1],
            sized: Vec::new(),
            truncated: false,
        }
    }

    /// Scans the symbol table in section `index`. Returns its number of functions.
    pub(crate) fn scan(&mut self, elf: &Elf<'_>, index: usize, table: u8) -> Result<u64, ElfError> {
        let section = elf.sections.get(index).ok_or(ElfError::NoContents)?;
        if section.kind == goblin::elf::section_header::SHT_NOBITS {
            return Err(ElfError::NoContents);
        }
        let size = Sym::size(elf.context.container) as u64;
        if section.entry_size != size {
            return Err(ElfError::EntrySize {
                what: "symbols",
                actual: section.entry_size,
                expected: size,
            });
        }
        let count = section.size / size;
        if count > limits::SYMBOLS {
            return Err(ElfError::TooMany {
                what: "symbols",
                actual: count,
                limit: limits::SYMBOLS,
            });
        }
        let is_code: Vec<bool> = elf.sections.iter().map(|s| s.is_code()).collect();
        // Names distinguish mapping symbols from functions.
        let names = if WITH_MAPPING_SYMBOLS.contains(&elf.machine) {
            elf.section_bytes(section.link, limits::STRING_TABLE_BYTES as u64)
                .ok()
        } else {
            None
        };
        let per_read = limits::SYMBOL_READ_BYTES as u64 / size;
        let mut functions = 0;
        let mut done = 0;
        while done < count {
            let now = per_read.min(count - done);
            // `piece` checks the offset.
            let offset = section.offset.saturating_add(done * size);
            let bytes = elf.piece(offset, now * size, "symbol table")?;
            let symbols = Symtab::parse(&bytes, 0, usize::try_from(now).unwrap_or(0), elf.context)
                .map_err(|source| ElfError::Malformed {
                    what: "symbol table",
                    source,
                })?;
            for symbol in symbols.iter() {
                let Some(rank) = rank(&symbol, &is_code) else {
                    continue;
                };
                let is_mapping = names.as_ref().is_some_and(|names| {
                    symbol.st_type() == STT_NOTYPE && names.get(symbol.st_name) == Some(&b'$')
                });
                let Ok(offset) = u32::try_from(symbol.st_name) else {
                    continue;
                };
                if is_mapping || offset == 0 {
                    continue;
                }
                functions += 1;
                // The lowest address bit marks Thumb code.
                let start = match elf.machine {
                    40 => symbol.st_value & !1,
                    _ => symbol.st_value,
                };
                self.add(start, symbol.st_size, rank, NameAt { table, offset });
            }
            done += now;
        }
        Ok(functions)
    }

    /// Adds one symbol. Size 0 means unknown; of symbols with equal addresses, the highest rank
    /// wins.
    pub(crate) fn add(&mut self, start: u64, size: u64, rank: u8, name: NameAt) {
        let end = start.saturating_add(size);
        let candidate = Candidate {
            start,
            rank,
            end,
            name,
        };
        let index = self.hits.partition_point(|hit| *hit < start);
        let Some(cell) = self.cells.get_mut(index) else {
            return;
        };
        cell.first_start = cell.first_start.min(start);
        // Sized symbols win over unsized ones, and the first table over others.
        let better = cell.last.is_none_or(|last| {
            (start, end > start, rank) > (last.start, last.end > last.start, last.rank)
        });
        if better {
            cell.last = Some(candidate);
        }
        if size == 0 {
            return;
        }
        let Some(next_hit) = self.hits.get(index) else {
            return;
        };
        if *next_hit >= end {
            cell.last_end = cell.last_end.max(end);
            return;
        }
        let index = self.hits.partition_point(|hit| *hit < end);
        if let Some(cell) = self.cells.get_mut(index) {
            cell.last_end = cell.last_end.max(end);
        }
        if self.sized.len() < limits::CANDIDATES {
            self.sized.push(candidate);
        } else {
            self.truncated = true;
        }
    }

    /// The answers, one per hit.
    pub(crate) fn answers(mut self) -> Vec<Answer> {
        // Best candidates come last; the first table is better.
        self.sized
            .sort_by_key(|c| (c.start, c.rank, std::cmp::Reverse((c.name, c.end))));
        let mut next_starts = vec![u64::MAX; self.hits.len()];
        let mut next = u64::MAX;
        for index in (0..self.hits.len()).rev() {
            next = next.min(self.cells[index + 1].first_start);
            next_starts[index] = next;
        }
        let mut open: Vec<Candidate> = Vec::new();
        let mut sized = self.sized.iter().peekable();
        let (mut last, mut last_end) = (None, 0);
        let mut answers = Vec::with_capacity(self.hits.len());
        for (index, hit) in self.hits.iter().enumerate() {
            while let Some(candidate) = sized.next_if(|c| c.start <= *hit) {
                open.push(*candidate);
            }
            // Hits ascend: drop candidates that end before this hit.
            while open.last().is_some_and(|candidate| candidate.end <= *hit) {
                open.pop();
            }
            let cell = &self.cells[index];
            last = cell.last.or(last);
            last_end = last_end.max(cell.last_end);
            answers.push(match (open.last(), last) {
                (Some(found), _) => Answer::Symbol {
                    start: found.start,
                    end: found.end,
                    sized: true,
                    names: aliases(&open, found),
                },
                (None, Some(last)) if last.start == last.end => Answer::Symbol {
                    start: last.start,
                    end: next_starts[index],
                    sized: false,
                    names: vec![last.name],
                },
                (None, _) => Answer::Gap {
                    start: last_end,
                    end: next_starts[index],
                },
            });
        }
        answers
    }
}

/// Names of all candidates as good as the best.
fn aliases(open: &[Candidate], best: &Candidate) -> Vec<NameAt> {
    open.iter()
        .rev()
        .take(limits::ALIASES)
        .take_while(|c| (c.start, c.rank) == (best.start, best.rank))
        .filter(|c| c.end == best.end && c.name.table == best.name.table)
        .map(|c| c.name)
        .collect()
}

/// The quality of a symbol's name for code, higher is better; `None` for data and for symbols of
/// other files.
fn rank(symbol: &Sym, is_code: &[bool]) -> Option<u8> {
    let of_kind = match symbol.st_type() {
        STT_FUNC | STT_GNU_IFUNC => 4,
        STT_NOTYPE => 0,
        _ => return None,
    };
    let section = u32::try_from(symbol.st_shndx).ok()?;
    let in_code = match section {
        SHN_UNDEF => false,
        // Another table has the index: trust functions without it.
        SHN_XINDEX => of_kind > 0,
        SHN_LORESERVE.. => false,
        index => is_code.get(index as usize).copied().unwrap_or(false),
    };
    let of_binding = match symbol.st_bind() {
        STB_GLOBAL | STB_GNU_UNIQUE => 2,
        STB_LOCAL => 1,
        STB_WEAK => 0,
        _ => return None,
    };
    in_code.then_some(of_kind + of_binding)
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests say what went wrong by failing"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(offset: u32) -> NameAt {
        NameAt { table: 0, offset }
    }

    fn symbol(start: u64, end: u64, sized: bool, offset: u32) -> Answer {
        Answer::Symbol {
            start,
            end,
            sized,
            names: vec![name(offset)],
        }
    }

    #[test]
    fn the_figure_of_the_module_comment() {
        let hits = [100, 120, 150, 210, 305];
        let mut lookup = Lookup::new(&hits);
        lookup.add(300, 0, 2, name(3));
        lookup.add(110, 20, 2, name(2));
        lookup.add(100, 100, 2, name(1));
        assert_eq!(
            lookup.answers(),
            [
                symbol(100, 200, true, 1),
                symbol(110, 130, true, 2),
                symbol(100, 200, true, 1),
                Answer::Gap {
                    start: 200,
                    end: 300
                },
                symbol(300, u64::MAX, false, 3),
            ]
        );
    }

    #[test]
    fn better_ranks_win_and_equal_ones_are_aliases() {
        let hits = [5];
        let mut lookup = Lookup::new(&hits);
        lookup.add(0, 10, 1, name(1));
        lookup.add(0, 10, 2, name(2));
        lookup.add(0, 10, 2, name(3));
        lookup.add(0, 0, 6, name(4));
        lookup.add(0, 10, 0, name(5));
        let [Answer::Symbol { names, .. }] = &lookup.answers()[..] else {
            panic!("one symbol");
        };
        assert_eq!(names, &[name(2), name(3)]);
    }

    #[test]
    fn nothing_known_is_one_gap() {
        let hits = [5, 6];
        let gap = Answer::Gap {
            start: 0,
            end: u64::MAX,
        };
        assert_eq!(Lookup::new(&hits).answers(), [gap.clone(), gap]);
    }

    /// The rule of the module comment, checked against all symbols.
    fn naive(hit: u64, symbols: &[(u64, u64)]) -> (u64, u64) {
        let next = symbols.iter().map(|s| s.0).filter(|s| *s > hit).min();
        let next = next.unwrap_or(u64::MAX);
        let inner = symbols
            .iter()
            .filter(|(start, size)| (*start..start + size).contains(&hit))
            .max_by_key(|(start, size)| (*start, std::cmp::Reverse(*size)));
        if let Some((start, size)) = inner {
            return (*start, start + size);
        }
        let before = symbols.iter().filter(|s| s.0 <= hit);
        match before.clone().max_by_key(|s| (s.0, s.1 > 0)) {
            Some((start, 0)) => (*start, next),
            _ => {
                let sized = before.filter(|s| s.1 > 0);
                (sized.map(|s| s.0 + s.1).max().unwrap_or(0), next)
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_rule(
            hits in proptest::collection::btree_set(0_u64..200, 0..20),
            symbols in proptest::collection::vec((0_u64..200, 0_u64..30), 0..40),
        ) {
            let hits: Vec<u64> = hits.into_iter().collect();
            let mut lookup = Lookup::new(&hits);
            for (start, size) in &symbols {
                // Sizes as names make the order total.
                lookup.add(*start, *size, 0, name(u32::try_from(*size).unwrap()));
            }
            for (hit, answer) in hits.iter().zip(lookup.answers()) {
                let range = match answer {
                    Answer::Symbol { start, end, .. } | Answer::Gap { start, end } => (start, end),
                };
                prop_assert_eq!(range, naive(*hit, &symbols));
            }
        }
    }
}
