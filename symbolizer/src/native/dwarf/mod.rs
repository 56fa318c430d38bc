//! Source lines and inlined functions of hits, from DWARF.
//!
//! gimli decodes. The addr2line crate keeps tables of all functions and line rows of each touched
//! unit, without limits against hostile files (each entry may refer to the same list of ranges),
//! and can't be shared by threads. Here one pass over each unit with hits keeps only data of hits,
//! within a budget of steps; threads share the units. The tests compare both.
//!
//! Source: DWARF 5, §2.17 (ranges), §3.3 (functions), §6.1.2 (address ranges), §6.2 (lines). Reads
//! versions 2 to 5.

mod guard;
mod lines;
mod names;
mod scopes;
mod sections;
mod units;

use std::cell::Cell;

use gimli::{EndianSlice, RunTimeEndian};
use vmscope_records::{Exactness, NativeFrame};

pub(crate) use sections::Sections;

use super::limits;
use names::Names;
use units::UnitHits;

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
type Dwarf<'a> = gimli::Dwarf<Slice<'a>>;
type Unit<'a> = gimli::Unit<Slice<'a>>;

/// DWARF's result for a hit. Addresses are svma.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Start of the piece around the hit with equal results.
    pub(crate) start: u64,
    /// End, exclusive.
    pub(crate) end: u64,
    /// Innermost first.
    pub(crate) frames: Vec<NativeFrame>,
    pub(crate) exactness: Exactness,
    /// The outermost function, if DWARF knows it.
    pub(crate) function: Option<Function>,
}

/// An outermost function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Linkage name, else plain name.
    pub(crate) linkage_name: String,
    /// Start of the range around the hit.
    pub(crate) start: u64,
    /// End, exclusive.
    pub(crate) end: u64,
}

/// Omissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shortfall {
    /// Units with functions in a `.dwo` file.
    pub(crate) split_units: u64,
    /// Units with unreadable parts.
    pub(crate) damaged_units: u64,
    /// Whether the budget ran out.
    pub(crate) out_of_steps: bool,
}

impl Shortfall {
    fn add(&mut self, other: &Shortfall) {
        self.split_units += other.split_units;
        self.damaged_units += other.damaged_units;
        self.out_of_steps |= other.out_of_steps;
    }
}

/// The reason of an early end.
#[derive(Clone, Copy, Debug)]
enum Stop {
    Damaged,
    OutOfSteps,
}

impl From<gimli::Error> for Stop {
    fn from(_: gimli::Error) -> Self {
        Stop::Damaged
    }
}

/// Remaining steps.
struct Budget(Cell<u64>);

impl Budget {
    fn new(steps: u64) -> Self {
        Budget(Cell::new(steps))
    }

    fn spend(&self, steps: u64) -> Result<(), Stop> {
        match self.0.get().checked_sub(steps) {
            Some(left) => {
                self.0.set(left);
                Ok(())
            }
            None => {
                self.0.set(0);
                Err(Stop::OutOfSteps)
            }
        }
    }
}

/// Finds the place of each hit (svma, ascending, without duplicates). `is_code` tests for loaded
/// code: functions dropped by the linker keep their DWARF, at addresses like 0.
pub(crate) fn places(
    sections: &Sections<'_>,
    hits: &[u64],
    is_code: &(dyn Fn(u64) -> bool + Sync),
    threads: usize,
) -> (Vec<Option<Place>>, Shortfall) {
    let dwarf = sections.dwarf();
    let mut places: Vec<Option<Place>> = vec![None; hits.len()];
    let budget = Budget::new(limits::DWARF_STEPS);
    let mut shortfall = Shortfall::default();
    let (units, starts) = units::find(&dwarf, hits, is_code, &budget, &mut shortfall);
    let sup_starts = dwarf
        .sup()
        .map(|sup| units::starts(sup, &budget))
        .unwrap_or_default();
    let shared = Shared {
        dwarf: &dwarf,
        starts: &starts,
        sup_starts: &sup_starts,
        hits,
        is_code,
    };
    let workers = threads.clamp(1, units.len().max(1));
    let steps = budget.0.get() / workers as u64;
    // Units come by size: dealing them out in turn balances the work well.
    let deal = |worker: usize| units.iter().skip(worker).step_by(workers);
    let results: Vec<_> = if workers == 1 {
        vec![walk(&shared, deal(0), steps)]
    } else {
        std::thread::scope(|scope| {
            let shared = &shared;
            let spawned: Vec<_> = (0..workers)
                .map(|worker| scope.spawn(move || walk(shared, deal(worker), steps)))
                .collect();
            spawned
                .into_iter()
                // A panic is our bug; the units of that worker get no lines.
                .filter_map(|worker| worker.join().ok())
                .collect()
        })
    };
    for (found, short) in results {
        shortfall.add(&short);
        for (index, place) in found {
            let known = &mut places[index];
            // Of several units with the address, prefer one with the function.
            let better = known
                .as_ref()
                .is_none_or(|known: &Place| known.function.is_none() && place.function.is_some());
            if better {
                *known = Some(place);
            }
        }
    }
    (places, shortfall)
}

/// Shared by all workers.
struct Shared<'a> {
    dwarf: &'a Dwarf<'a>,
    /// Starts of units in `.debug_info`, ascending.
    starts: &'a [usize],
    /// Starts of units in the supplementary file's `.debug_info`.
    sup_starts: &'a [usize],
    hits: &'a [u64],
    is_code: &'a (dyn Fn(u64) -> bool + Sync),
}

/// Reads units. Returns places with the indices of their hits.
fn walk<'a, 'u>(
    shared: &Shared<'a>,
    units: impl Iterator<Item = &'u UnitHits>,
    steps: u64,
) -> (Vec<(usize, Place)>, Shortfall) {
    let budget = Budget::new(steps);
    let mut names = Names::new(shared.dwarf, shared.starts, shared.sup_starts);
    let mut shortfall = Shortfall::default();
    let mut found = Vec::new();
    for unit in units {
        match walk_unit(shared, unit, &budget, &mut names, &mut shortfall) {
            Ok(places) => found.extend(places),
            Err(Stop::Damaged) => shortfall.damaged_units += 1,
            Err(Stop::OutOfSteps) => {
                shortfall.out_of_steps = true;
                break;
            }
        }
    }
    (found, shortfall)
}

fn walk_unit<'a>(
    shared: &Shared<'a>,
    with_hits: &UnitHits,
    budget: &Budget,
    names: &mut Names<'a>,
    shortfall: &mut Shortfall,
) -> Result<Vec<(usize, Place)>, Stop> {
    let dwarf = shared.dwarf;
    let unit = units::open(dwarf, with_hits.offset, budget)?;
    let hits: Vec<u64> = with_hits
        .hits
        .iter()
        .filter_map(|index| shared.hits.get(*index).copied())
        .collect();
    // Results before a damaged entry or row remain valid.
    let mut note = |result: Result<(), Stop>| match result {
        Ok(()) => {}
        Err(Stop::Damaged) => shortfall.damaged_units += 1,
        Err(Stop::OutOfSteps) => shortfall.out_of_steps = true,
    };
    let mut rows = vec![None; hits.len()];
    note(lines::find(&unit, &hits, shared.is_code, budget, &mut rows));
    let mut scopes = vec![scopes::Scopes::default(); hits.len()];
    note(scopes::find(dwarf, &unit, &hits, budget, &mut scopes));
    let split = matches!(unit.dwo_name(), Ok(Some(_)));
    if split {
        shortfall.split_units += 1;
    }
    let mut files = lines::Files::new(dwarf, &unit);
    let mut places = Vec::new();
    for (((index, hit), row), scopes) in with_hits.hits.iter().zip(&hits).zip(rows).zip(scopes) {
        let outermost = scopes.chain.first().copied();
        let mut frames = Vec::with_capacity(scopes.chain.len().max(1));
        let (mut file, mut line) = row.map_or((None, 0), |row| (Some(row.file), row.line));
        for scope in scopes.chain.iter().rev() {
            frames.push(NativeFrame {
                function: names.of(&unit, scope.entry, budget).name.clone(),
                file: file.map_or_else(String::new, |file| files.path(file)),
                line,
            });
            (file, line) = (scope.call_file, scope.call_line);
        }
        if frames.is_empty() {
            if row.is_none() {
                continue;
            }
            frames.push(NativeFrame {
                function: String::new(),
                file: file.map_or_else(String::new, |file| files.path(file)),
                line,
            });
        }
        // Long names and deep chains count, too.
        let bytes = frames.iter().map(|f| f.function.len() + f.file.len());
        budget.spend(bytes.sum::<usize>() as u64)?;
        let exactness = match row {
            // The .dwo file may have more inlined functions.
            Some(row) if row.line > 0 && split && outermost.is_none() => Exactness::Approximate,
            Some(row) if row.line > 0 => Exactness::Exact,
            _ => Exactness::MethodOnly,
        };
        let (start, end) = row.map_or((*hit, hit.saturating_add(1)), |row| (row.start, row.end));
        places.push((
            *index,
            Place {
                start: start.max(scopes.start).min(*hit),
                end: end.min(scopes.end).max(hit.saturating_add(1)),
                frames,
                exactness,
                function: outermost.map(|scope| Function {
                    linkage_name: names.of(&unit, scope.entry, budget).linkage_name.clone(),
                    start: scopes.function.0,
                    end: scopes.function.1,
                }),
            },
        ));
    }
    Ok(places)
}
