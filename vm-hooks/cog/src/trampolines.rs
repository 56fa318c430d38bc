//! Trampolines and enilopmarts: run-time code that generated code and the VM call each other through.

use vmscope_process::pages::Pages;
use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use crate::Variables;
use crate::cog_method::number;
use crate::variables::TRAMPOLINES;
use crate::zone::Bounds;

/// Maximum number of trampolines; known VMs have fewer than a hundred.
const MAX_TRAMPOLINES: u64 = 4096;

/// Longest name.
const MAX_NAME: usize = 256;

/// Prefixes of enilopmarts' names.
const ENILOPMARTS: [&str; 4] = [
    "ceEnterCogCode",
    "ceCallCogCode",
    "ceCallPIC",
    "cePrimReturnEnterCogCode",
];

/// A piece of run-time code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trampoline {
    /// The VM's name; empty if unreadable.
    pub name: String,
    /// First address.
    pub start: Avma,
    /// First address after it.
    pub end: Avma,
}

impl Trampoline {
    /// Whether the VM enters generated code through it.
    #[must_use]
    pub fn is_enilopmart(&self) -> bool {
        ENILOPMARTS
            .iter()
            .any(|prefix| self.name.starts_with(prefix))
    }
}

/// Reads the VM's table: pairs of a name and an address, ascending. Each piece ends where the next one
/// begins.
///
/// # Errors
/// A missing table, impossible contents; failed reads.
pub fn read(
    variables: &Variables,
    bounds: &Bounds,
    memory: &dyn Memory,
) -> Result<Vec<Trampoline>, AdapterError> {
    let [count, table] = TRAMPOLINES.map(|name| variables.needed(name));
    let (count_at, table) = (count?, table?);
    let reading = AdapterError::reading("table of trampolines");
    let words = memory.read_pointer(count_at).map_err(&reading)?.0;
    let word = memory.pointer_bytes() as u64;
    if !words.is_multiple_of(2) || words / 2 > MAX_TRAMPOLINES {
        return Err(AdapterError::Implausible {
            what: "number of trampolines",
            value: words,
            at: count_at,
        });
    }
    let length = words.saturating_mul(word);
    let cap = usize::try_from(length).unwrap_or(usize::MAX);
    let table = memory.read_vec(table, length, cap).map_err(&reading)?;
    let table: Vec<u64> = table
        .chunks_exact(memory.pointer_bytes())
        .map(number)
        .collect();
    let pages = Pages::new(memory);
    let mut trampolines: Vec<Trampoline> = Vec::new();
    for (name, start) in table
        .as_chunks::<2>()
        .0
        .iter()
        .map(|[name, start]| (*name, Avma(*start)))
    {
        let first = trampolines.last().map_or(bounds.start, |last| last.start);
        if start < first || start >= bounds.methods {
            return Err(AdapterError::Implausible {
                what: "table of trampolines",
                value: start.0,
                at: count_at,
            });
        }
        let name = match pages.read_c_string(Avma(name), MAX_NAME) {
            Err(error) if error.is_final() => return Err(reading(error)),
            name => name.unwrap_or_default(),
        };
        if let Some(last) = trampolines.last_mut() {
            last.end = start;
        }
        trampolines.push(Trampoline {
            name: String::from_utf8_lossy(&name).into_owned(),
            start,
            end: bounds.methods,
        });
    }
    Ok(trampolines)
}
