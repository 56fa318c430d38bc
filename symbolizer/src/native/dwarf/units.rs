//! Units with hits.

use std::sync::Arc;

use gimli::{Attribute, AttributeValue, DebugInfoOffset, Range, constants};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Budget, Dwarf, Shortfall, Slice, Stop, Unit, guard};

/// Maximum number of units per hit: only odd files have several units at one address.
const UNITS_PER_HIT: u8 = 4;
/// Units per file: Chromium has some 50,000.
const UNITS: usize = 1 << 20;

/// A unit, and indices of hits in its ranges, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnitHits {
    pub(super) offset: usize,
    pub(super) hits: Vec<usize>,
    /// The unit's length, an estimate of work.
    length: usize,
}

/// Starts of a file's units.
pub(super) fn starts(dwarf: &Dwarf<'_>, budget: &Budget) -> Vec<usize> {
    lengths(dwarf, budget)
        .into_iter()
        .map(|unit| unit.0)
        .collect()
}

/// Starts and lengths of a file's units.
fn lengths(dwarf: &Dwarf<'_>, budget: &Budget) -> Vec<(usize, usize)> {
    let mut units = Vec::new();
    let mut headers = dwarf.units();
    // A damaged header ends the list: the next start is unknown.
    while let Ok(Some(header)) = headers.next() {
        if units.len() == UNITS || budget.spend(1).is_err() {
            break;
        }
        if let Some(offset) = header.debug_info_offset() {
            units.push((offset.0, header.length_including_self()));
        }
    }
    units
}

pub(super) fn open<'a>(
    dwarf: &Dwarf<'a>,
    offset: usize,
    budget: &Budget,
) -> Result<Unit<'a>, Stop> {
    let header = dwarf.unit_header(DebugInfoOffset(offset))?;
    let abbreviations = guard::abbreviations(dwarf, &header, budget)?;
    guard::open(dwarf, header, abbreviations, budget)
}

/// Units with hits, largest first; and starts of all units.
pub(super) fn find(
    dwarf: &Dwarf<'_>,
    hits: &[u64],
    is_code: &(dyn Fn(u64) -> bool + Sync),
    budget: &Budget,
    shortfall: &mut Shortfall,
) -> (Vec<UnitHits>, Vec<usize>) {
    let units = lengths(dwarf, budget);
    let mut claims = Claims {
        hits,
        is_code,
        taken: vec![0; hits.len()],
        by_unit: FxHashMap::default(),
    };
    let mut indexed = FxHashSet::default();
    match from_aranges(dwarf, &mut claims, &mut indexed, budget) {
        // A damaged index is harmless: the units have ranges, too.
        Ok(()) | Err(Stop::Damaged) => {}
        Err(Stop::OutOfSteps) => shortfall.out_of_steps = true,
    }
    // Without an index, read the ranges of the unit's first entry.
    let mut abbreviations = FxHashMap::default();
    for (offset, _) in &units {
        if indexed.contains(offset) {
            continue;
        }
        match from_root(dwarf, *offset, &mut abbreviations, &mut claims, budget) {
            Ok(()) => {}
            Err(Stop::Damaged) => shortfall.damaged_units += 1,
            Err(Stop::OutOfSteps) => {
                shortfall.out_of_steps = true;
                break;
            }
        }
    }
    let starts = units.iter().map(|unit| unit.0).collect();
    let mut found: Vec<UnitHits> = units
        .into_iter()
        .filter_map(|(offset, length)| {
            let mut hits = claims.by_unit.remove(&offset)?;
            hits.sort_unstable();
            hits.dedup();
            Some(UnitHits {
                offset,
                hits,
                length,
            })
        })
        .collect();
    found.sort_by_key(|unit| std::cmp::Reverse(unit.length));
    (found, starts)
}

/// Hits of units.
struct Claims<'a> {
    hits: &'a [u64],
    is_code: &'a (dyn Fn(u64) -> bool + Sync),
    taken: Vec<u8>,
    by_unit: FxHashMap<usize, Vec<usize>>,
}

impl Claims<'_> {
    fn claim(&mut self, unit: usize, range: Range, budget: &Budget) -> Result<(), Stop> {
        budget.spend(1)?;
        let from = self.hits.partition_point(|hit| *hit < range.begin);
        let to = self.hits.partition_point(|hit| *hit < range.end);
        if from >= to || !(self.is_code)(range.begin) {
            return Ok(());
        }
        budget.spend((to - from) as u64)?;
        let mine = self.by_unit.entry(unit).or_default();
        for index in from..to {
            // Several ranges of one unit may contain a hit.
            if self.taken[index] < UNITS_PER_HIT && mine.last() != Some(&index) {
                self.taken[index] += 1;
                mine.push(index);
            }
        }
        Ok(())
    }
}

/// `.debug_aranges`.
fn from_aranges(
    dwarf: &Dwarf<'_>,
    claims: &mut Claims<'_>,
    indexed: &mut FxHashSet<usize>,
    budget: &Budget,
) -> Result<(), Stop> {
    let mut headers = dwarf.debug_aranges.headers();
    while let Some(header) = headers.next()? {
        budget.spend(1)?;
        let unit = header.debug_info_offset().0;
        let mut entries = header.entries();
        while let Some(entry) = entries.next()? {
            indexed.insert(unit);
            claims.claim(unit, entry.range(), budget)?;
        }
    }
    Ok(())
}

/// Ranges of a unit's first entry.
fn from_root<'a>(
    dwarf: &Dwarf<'a>,
    offset: usize,
    abbreviations: &mut FxHashMap<usize, Arc<gimli::Abbreviations>>,
    claims: &mut Claims<'_>,
    budget: &Budget,
) -> Result<(), Stop> {
    let header = dwarf.unit_header(DebugInfoOffset(offset))?;
    // Type and partial units have no code.
    if !matches!(
        header.type_(),
        gimli::UnitType::Compilation | gimli::UnitType::Skeleton(_)
    ) {
        return Ok(());
    }
    let key = header.debug_abbrev_offset().0;
    let table = match abbreviations.get(&key) {
        Some(table) => Arc::clone(table),
        None => {
            let table = guard::abbreviations(dwarf, &header, budget)?;
            // Helps if units share one table.
            if abbreviations.len() < 64 {
                abbreviations.insert(key, Arc::clone(&table));
            }
            table
        }
    };
    let unit = guard::open(dwarf, header, table, budget)?;
    let mut entries = unit.entries_raw(None)?;
    if let Some(abbreviation) = entries.read_abbreviation()? {
        let mut attributes = Vec::new();
        entries.read_attributes(abbreviation.attributes(), &mut attributes)?;
        ranges(dwarf, &unit, &attributes, |range| {
            claims.claim(offset, range, budget)
        })?;
    }
    Ok(())
}

/// Calls `each` for every address range in an entry's attributes (DWARF 5, §2.17). gimli's
/// `die_ranges` may overflow adding low and length.
pub(super) fn ranges<'a>(
    dwarf: &Dwarf<'a>,
    unit: &Unit<'a>,
    attributes: &[Attribute<Slice<'a>>],
    mut each: impl FnMut(Range) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let (mut low, mut high, mut length) = (None, None, None);
    for attribute in attributes {
        match attribute.name() {
            constants::DW_AT_low_pc => low = dwarf.attr_address(unit, attribute.value())?,
            constants::DW_AT_high_pc => match attribute.value() {
                AttributeValue::Udata(value) => length = Some(value),
                value => high = dwarf.attr_address(unit, value)?,
            },
            constants::DW_AT_ranges => {
                if let Some(mut list) = dwarf.attr_ranges(unit, attribute.value())? {
                    while let Some(range) = list.next()? {
                        each(range)?;
                    }
                    return Ok(());
                }
            }
            _ => {}
        }
    }
    let Some(begin) = low else {
        return Ok(());
    };
    match high.or_else(|| begin.checked_add(length?)) {
        Some(end) if begin < end => each(Range { begin, end }),
        _ => Ok(()),
    }
}
