//! V8's builtins in a program without symbols: names from V8's table of builtins, addresses from an isolate's list
//! of entries.

use vmscope_process::{AdapterError, Memory, Symbol, SymbolKind};
use vmscope_records::Avma;

use crate::bytecodes::OPCODES;
use crate::contents::{Contents, Piece};
use crate::isolate::Isolate;
use crate::vm::BUILTINS;

/// Words of a builtin's description: address of the name, kind, data (`BuiltinMetadata` in V8's
/// `builtins/builtins.cc`).
const WORDS: usize = 3;

/// The first handler of a bytecode, and its data: bytecode 0, operands of one byte.
const FIRST_HANDLER: &str = "WideHandler";
const FIRST_DATA: u64 = 0x100;

/// Number of kinds of builtins at most (V8 14: 10).
const MAX_KINDS: u64 = 32;

/// Maximum number of builtins (V8 14: 2,415).
const MAX_BUILTINS: usize = 1 << 13;

/// Minimum number of handlers (V8 10: 483).
const MIN_HANDLERS: usize = 256;

/// Bytes from an isolate's begin that hold the list of entries.
const HEAD: usize = 1 << 18;

/// Maximum bytes of a builtin (V8 14: 26,000).
const MAX_BUILTIN: u64 = 1 << 16;

/// Bytes of the last builtin, whose end is unknown (V8 14: 120).
const LAST: u64 = 128;

/// A builtin's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Builtin<'a> {
    name: &'a str,
    /// Index in the table of handlers; `None` for other builtins.
    handles: Option<usize>,
}

/// Symbols of builtins, made from V8's data; none if `contents` hold no table of known form. `handlers`: V8's table of
/// handlers.
///
/// # Errors
/// Failed reads.
pub(crate) fn symbols(
    contents: &Contents,
    isolate: Isolate,
    handlers: &[u64],
    memory: &dyn Memory,
) -> Result<Vec<Symbol>, AdapterError> {
    let builtins = table(contents);
    let mut head = vec![0; HEAD];
    let length = memory.read_partial(isolate.0, &mut head);
    head.truncate(length.map_err(AdapterError::reading("isolate"))?);
    let head = Piece {
        at: isolate.0,
        bytes: head,
    };
    let entries = entries(&head, &builtins, handlers).unwrap_or_default();
    let mut placed: Vec<_> = builtins.iter().zip(entries).collect();
    placed.sort_by_key(|(_, at)| *at);
    let ends = placed.iter().skip(1).map(|(_, at)| *at);
    let ends: Vec<u64> = ends.chain([u64::MAX]).collect();
    let symbols = placed.iter().zip(ends).map(|((builtin, at), end)| Symbol {
        name: format!("{BUILTINS}{}", builtin.name),
        address: Avma(*at),
        size: match end {
            u64::MAX => LAST,
            end => (end - at).min(MAX_BUILTIN),
        },
        kind: SymbolKind::Function,
    });
    Ok(symbols.collect())
}

/// V8's table of builtins; empty without one.
fn table(contents: &Contents) -> Vec<Builtin<'_>> {
    let names = contents.addresses_of(FIRST_HANDLER);
    for piece in contents.pieces() {
        let data = piece.words().enumerate().skip(WORDS - 1);
        let places = data.filter(|(_, data)| *data == FIRST_DATA);
        for (index, _) in places {
            let handler = index + 1 - WORDS;
            let name = piece.word(handler).unwrap_or(0);
            let kind = piece.word(handler + 1);
            if let Some(kind) = kind.filter(|_| names.contains(&name)) {
                return table_around(contents, (piece, handler), kind);
            }
        }
    }
    Vec::new()
}

/// The table around the description at `place`, a handler of kind `kind`.
fn table_around<'c>(
    contents: &'c Contents,
    (piece, place): (&Piece, usize),
    kind: u64,
) -> Vec<Builtin<'c>> {
    let builtin = |place: usize| {
        let [name, own, data] = [0, 1, 2].map(|word| piece.word(place + word));
        let name = contents.text(name?)?;
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let own = own.filter(|own| is_name && *own < MAX_KINDS)?;
        Some(Builtin {
            name,
            handles: data.filter(|_| own == kind).and_then(handled),
        })
    };
    let places = (0..=place).rev().step_by(WORDS).take(MAX_BUILTINS);
    let before = places.map_while(builtin);
    let mut all: Vec<_> = before.collect();
    all.reverse();
    let after = (place..).step_by(WORDS).skip(1).map_while(builtin);
    all.extend(after.take(MAX_BUILTINS));
    all
}

/// Index in the table of handlers, from a handler's data: bytecode and scale (1, 2, 4), a byte each.
fn handled(data: u64) -> Option<usize> {
    let [bytecode, scale, ..] = data.to_le_bytes();
    let table = match scale {
        1 => 0,
        2 => 1,
        4 => 2,
        _ => return None,
    };
    Some(table * OPCODES + usize::from(bytecode))
}

/// Addresses of all builtins, from the list of entries in an isolate's `head`. This list and the table of handlers have equal
/// addresses of handlers, or addresses at one distance: V8 maps its builtins twice.
fn entries(head: &Piece, builtins: &[Builtin<'_>], handlers: &[u64]) -> Option<Vec<u64>> {
    let each = builtins.iter().enumerate();
    let expected = each.filter_map(|(index, builtin)| {
        let entry = handlers.get(builtin.handles?)?;
        Some((index, *entry))
    });
    let expected: Vec<(usize, u64)> = expected.collect();
    let (index, entry) = *expected
        .first()
        .filter(|_| expected.len() >= MIN_HANDLERS)?;
    let (words, _) = head.bytes.as_chunks::<8>();
    words.windows(builtins.len()).find_map(|list| {
        let own = |index: usize| list.get(index).map(|word| u64::from_le_bytes(*word));
        let distance = own(index)?.wrapping_sub(entry);
        let mut all = expected.iter();
        let fits = all.all(|(index, entry)| own(*index) == Some(entry.wrapping_add(distance)));
        let entries = list
            .iter()
            .map(|word| u64::from_le_bytes(*word).wrapping_sub(distance));
        fits.then(|| entries.collect())
    })
}

#[cfg(test)]
mod tests;
