//! Functions and inlined functions around hits.

use gimli::{AttributeValue, UnitOffset, constants};

use super::super::limits;
use super::{Budget, Dwarf, Stop, Unit, units};

/// A function, perhaps inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scope {
    /// Offset in the unit.
    pub(super) entry: UnitOffset,
    /// Depth in the tree of entries.
    depth: isize,
    /// The file of the call, for inlined functions.
    pub(super) call_file: Option<u64>,
    /// The line of the call; 0 if unknown.
    pub(super) call_line: u32,
}

/// All functions around a hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scopes {
    /// The function, then inlined ones, outermost first.
    pub(super) chain: Vec<Scope>,
    /// Start of the piece around the hit with equal scopes (svma).
    pub(super) start: u64,
    /// End of the piece, exclusive.
    pub(super) end: u64,
    /// The outermost function's range around the hit.
    pub(super) function: (u64, u64),
}

impl Default for Scopes {
    fn default() -> Self {
        Scopes {
            chain: Vec::new(),
            start: 0,
            end: u64::MAX,
            function: (0, u64::MAX),
        }
    }
}

/// Collects the functions around each hit (svma, ascending) from the unit's entries.
pub(super) fn find<'a>(
    dwarf: &Dwarf<'a>,
    unit: &Unit<'a>,
    hits: &[u64],
    budget: &Budget,
    found: &mut [Scopes],
) -> Result<(), Stop> {
    let mut entries = unit.entries_raw(None)?;
    let mut attributes = Vec::new();
    while !entries.is_empty() {
        budget.spend(1)?;
        let (offset, depth) = (entries.next_offset(), entries.next_depth());
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        let inlined = match abbreviation.tag() {
            constants::DW_TAG_subprogram => false,
            constants::DW_TAG_inlined_subroutine => true,
            _ => {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
        };
        // Declarations and abstract instances have no code.
        let has_code = abbreviation.attributes().iter().any(|attribute| {
            matches!(
                attribute.name(),
                constants::DW_AT_low_pc | constants::DW_AT_ranges
            )
        });
        if !has_code {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        entries.read_attributes(abbreviation.attributes(), &mut attributes)?;
        let mut scope = Scope {
            entry: offset,
            depth,
            call_file: None,
            call_line: 0,
        };
        if inlined {
            for attribute in &attributes {
                match (attribute.name(), attribute.value()) {
                    (constants::DW_AT_call_file, AttributeValue::FileIndex(file)) => {
                        scope.call_file = Some(file);
                    }
                    (constants::DW_AT_call_line, value) => {
                        let line = value.udata_value().unwrap_or(0);
                        scope.call_line = u32::try_from(line).unwrap_or(0);
                    }
                    _ => {}
                }
            }
        }
        units::ranges(dwarf, unit, &attributes, |range| {
            budget.spend(1)?;
            let from = hits.partition_point(|hit| *hit < range.begin);
            let to = hits.partition_point(|hit| *hit < range.end);
            // The nearest hits outside this scope: their pieces end at its borders.
            if let Some(before) = from.checked_sub(1).and_then(|index| found.get_mut(index)) {
                before.end = before.end.min(range.begin);
            }
            if let Some(after) = found.get_mut(to) {
                after.start = after.start.max(range.end);
            }
            for scopes in found.iter_mut().take(to).skip(from) {
                budget.spend(1)?;
                enter(scopes, scope, inlined, (range.begin, range.end));
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn enter(scopes: &mut Scopes, scope: Scope, inlined: bool, range: (u64, u64)) {
    if inlined {
        // Only deeper entries: siblings with equal address are damage, like inlined functions
        // without an outer function.
        let fits = scopes
            .chain
            .last()
            .is_some_and(|outer| outer.depth < scope.depth);
        if !fits || scopes.chain.len() >= limits::INLINE_DEPTH {
            return;
        }
    } else {
        // Nested functions (GNU C, Ada, Fortran) or two entries for the same code: the later entry
        // counts.
        scopes.chain.clear();
        scopes.function = range;
    }
    scopes.start = scopes.start.max(range.0);
    scopes.end = scopes.end.min(range.1);
    scopes.chain.push(scope);
}
