//! Search for symbols by prefixes of their names. A large program's names take 10 MB: they are read in
//! pieces, in the order of the string table.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

use super::{ElfFile, LoadBias, MAX_NAME_BYTES, MAX_STRING_BYTES, Strings, Symbol, check, symbol};
use crate::elf::name_offsets;
use crate::parallel::both;
use crate::{ElfError, Section};

/// Bytes of a piece, apart from the rest of the last name.
const STRINGS_AT_ONCE: usize = 64 << 10;

impl ElfFile {
    /// Symbols whose names begin with one of `prefixes`, `cap` symbols at most. Of symbols with equal
    /// names, the first counts.
    ///
    /// # Errors
    /// [`ElfError`] if the location of a symbol table is invalid.
    pub fn find_prefixes(
        &self,
        prefixes: &[&str],
        bias: LoadBias,
        cap: usize,
    ) -> Result<Vec<Symbol>, ElfError> {
        let prefixes = Prefixes::new(prefixes);
        let mut found = BTreeMap::new();
        for table in self.tables_of_all()? {
            let Some(strings) = self.section_of_strings(table)? else {
                continue;
            };
            let offsets = self.offsets_of_names(table, strings)?;
            let names = self.names(strings, &offsets, &prefixes, cap)?;
            let find = |range: Range<u64>| -> Result<FxHashMap<&str, Symbol>, ElfError> {
                let mut found = FxHashMap::default();
                let _whole = self.visit_range(table, range, &mut |raw| {
                    if let Some(name) = names.get(&raw.name_at) {
                        found
                            .entry(name.as_str())
                            .or_insert_with(|| symbol(name.clone(), raw, bias));
                    }
                    ControlFlow::Continue(())
                })?;
                Ok(found)
            };
            let count = self.symbols_in(table)?;
            let half = count / 2;
            let (first, second) = both(|| find(0..half), || find(half..count));
            for symbol in first?.into_values().chain(second?.into_values()) {
                found.entry(symbol.name.clone()).or_insert(symbol);
            }
        }
        Ok(found.into_values().take(cap).collect())
    }

    /// Offsets of the symbols' names in `strings`.
    fn offsets_of_names(
        &self,
        table: &Section,
        strings: &Section,
    ) -> Result<FixedBitSet, ElfError> {
        check("symbol names", strings.size, MAX_STRING_BYTES)?;
        let size = strings.size.min(self.file.len());
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let mut offsets = FixedBitSet::with_capacity(size);
        let all = 0..self.symbols_in(table)?;
        let _whole = self.pieces(table, all, |piece| {
            let inside = name_offsets(piece, &self.header).filter(|offset| *offset < size);
            inside.for_each(|offset| offsets.insert(offset));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(offsets)
    }

    /// Those names at `offsets` that begin with one of `prefixes`, `cap` of each half of the table at most.
    fn names(
        &self,
        strings: &Section,
        offsets: &FixedBitSet,
        prefixes: &Prefixes<'_>,
        cap: usize,
    ) -> Result<FxHashMap<u64, String>, ElfError> {
        let size = offsets.len();
        let find = |range: Range<usize>| -> Result<FxHashMap<u64, String>, ElfError> {
            let mut names = FxHashMap::default();
            let before = |offset: &usize| *offset < range.start;
            let mut offsets = offsets.ones().skip_while(before).peekable();
            while let Some(start) = offsets.next_if(|offset| *offset < range.end) {
                let bytes = (size - start).min(STRINGS_AT_ONCE + MAX_NAME_BYTES);
                let at = strings.offset.saturating_add(start as u64);
                let piece = Strings(self.table("symbol names", at, bytes as u64, 1, u64::MAX)?);
                let end = range.end.min(start + STRINGS_AT_ONCE);
                let mut next = Some(start);
                while let Some(offset) = next {
                    let at = (offset - start) as u64;
                    if prefixes.begin(piece.from(at)) {
                        let name = String::from_utf8_lossy(piece.name(at)).into_owned();
                        names.insert(offset as u64, name);
                    }
                    if names.len() >= cap {
                        return Ok(names);
                    }
                    next = offsets.next_if(|offset| *offset < end);
                }
            }
            Ok(names)
        };
        let (first, second) = both(|| find(0..size / 2), || find(size / 2..size));
        let mut names = first?;
        names.extend(second?);
        Ok(names)
    }
}

/// Prefixes of names. A binary search finds the only prefix that a name may begin with.
pub(super) struct Prefixes<'a>(Vec<&'a [u8]>);

impl<'a> Prefixes<'a> {
    pub fn new(prefixes: &[&'a str]) -> Self {
        let mut all: Vec<&[u8]> = prefixes.iter().map(|prefix| prefix.as_bytes()).collect();
        all.sort_unstable();
        // Sorted prefixes follow their own prefixes, and each stands for all that begin with it.
        all.dedup_by(|later, former| later.starts_with(former));
        Prefixes(all)
    }

    /// Whether bytes begin with one of the prefixes.
    pub fn begin(&self, bytes: &[u8]) -> bool {
        let after = self.0.partition_point(|prefix| *prefix <= bytes);
        let before = after.checked_sub(1).and_then(|index| self.0.get(index));
        before.is_some_and(|prefix| bytes.starts_with(prefix))
    }
}
