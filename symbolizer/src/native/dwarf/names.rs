//! Names of functions, often in another entry, unit or file.

use std::rc::Rc;

use gimli::{AttributeValue, DebugInfoOffset, UnitOffset, constants};
use rustc_hash::FxHashMap;

use super::super::demangle::demangle;
use super::super::limits;
use super::{Budget, Dwarf, Slice, Unit, units};

/// A function's names; empty if unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Name {
    /// Linkage name, else plain name.
    pub(super) linkage_name: String,
    /// Demangled.
    pub(super) name: String,
}

/// The file of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum In {
    Main,
    Sup,
}

/// A cache of names.
pub(super) struct Names<'a> {
    dwarf: &'a Dwarf<'a>,
    starts: &'a [usize],
    sup_starts: &'a [usize],
    /// By offset in the main file's `.debug_info`.
    known: FxHashMap<usize, Name>,
    /// Referenced units, by their start.
    units: FxHashMap<(In, usize), Option<Rc<Unit<'a>>>>,
    none: Name,
}

impl<'a> Names<'a> {
    pub(super) fn new(dwarf: &'a Dwarf<'a>, starts: &'a [usize], sup_starts: &'a [usize]) -> Self {
        Names {
            dwarf,
            starts,
            sup_starts,
            known: FxHashMap::default(),
            units: FxHashMap::default(),
            none: Name::default(),
        }
    }

    /// The name of an entry's function.
    pub(super) fn of(&mut self, unit: &Unit<'a>, entry: UnitOffset, budget: &Budget) -> &Name {
        let Some(key) = entry.to_debug_info_offset(&unit.header) else {
            return &self.none;
        };
        if !self.known.contains_key(&key.0) {
            let mut linkage_name = self.find(unit, entry, budget).unwrap_or_default();
            // Demangling takes some 10 to 100 ns per byte.
            if budget.spend(8 * linkage_name.len() as u64).is_err() {
                linkage_name.clear();
            }
            let name = Name {
                name: demangle(&linkage_name),
                linkage_name,
            };
            self.known.insert(key.0, name);
        }
        self.known.get(&key.0).unwrap_or(&self.none)
    }

    /// Follows abstract origins and specifications (DWARF 5, §2.13.2, §3.3.8) to a linkage name;
    /// else returns the first plain name.
    fn find(&mut self, unit: &Unit<'a>, entry: UnitOffset, budget: &Budget) -> Option<String> {
        let mut plain = None;
        let mut other: Option<Rc<Unit<'a>>> = None;
        let (mut file, mut entry) = (In::Main, entry);
        // The limit ends cycles.
        for _ in 0..limits::ORIGIN_LINKS {
            budget.spend(1).ok()?;
            let now = other.as_deref().unwrap_or(unit);
            let dwarf = self.dwarf_of(file)?;
            let mut origin = None;
            // Attributes before damage count.
            if let Ok(found) = now.entry(entry) {
                for attribute in found.attrs() {
                    let value = attribute.value();
                    match attribute.name() {
                        constants::DW_AT_linkage_name | constants::DW_AT_MIPS_linkage_name => {
                            if let Some(name) = text(dwarf, now, value) {
                                return Some(name);
                            }
                        }
                        constants::DW_AT_name if plain.is_none() => {
                            plain = text(dwarf, now, value);
                        }
                        constants::DW_AT_abstract_origin | constants::DW_AT_specification => {
                            origin = Some(value);
                        }
                        _ => {}
                    }
                }
            }
            match origin {
                Some(AttributeValue::UnitRef(offset)) => entry = offset,
                Some(AttributeValue::DebugInfoRef(offset)) => {
                    let Some(found) = self.entry_at(file, offset, budget) else {
                        break;
                    };
                    (other, entry) = (Some(found.0), found.1);
                }
                Some(AttributeValue::DebugInfoRefSup(offset)) => {
                    let Some(found) = self.entry_at(In::Sup, offset, budget) else {
                        break;
                    };
                    (file, other, entry) = (In::Sup, Some(found.0), found.1);
                }
                _ => break,
            }
        }
        plain
    }

    fn dwarf_of(&self, file: In) -> Option<&'a Dwarf<'a>> {
        match file {
            In::Main => Some(self.dwarf),
            In::Sup => self.dwarf.sup(),
        }
    }

    /// The unit around `offset`, and the entry's offset inside.
    fn entry_at(
        &mut self,
        file: In,
        offset: DebugInfoOffset,
        budget: &Budget,
    ) -> Option<(Rc<Unit<'a>>, UnitOffset)> {
        let starts = match file {
            In::Main => self.starts,
            In::Sup => self.sup_starts,
        };
        let index = starts.partition_point(|start| *start <= offset.0);
        let start = *starts.get(index.checked_sub(1)?)?;
        let dwarf = self.dwarf_of(file)?;
        let unit = self
            .units
            .entry((file, start))
            .or_insert_with(|| units::open(dwarf, start, budget).ok().map(Rc::new))
            .clone()?;
        let entry = offset.to_unit_offset(&unit.header)?;
        Some((unit, entry))
    }
}

/// A nonempty string attribute, cut at the limit.
fn text<'a>(
    dwarf: &Dwarf<'a>,
    unit: &Unit<'a>,
    value: AttributeValue<Slice<'a>>,
) -> Option<String> {
    let slice = dwarf.attr_string(unit, value).ok()?;
    let bytes = slice.slice();
    let bytes = &bytes[..bytes.len().min(limits::NAME_BYTES)];
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
}
