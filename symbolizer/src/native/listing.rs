//! Functions and data from a list of symbols: `nm` or `nm -S`, or the same columns between tabs.

use vmscope_records::{FileOffset, NativeFunction, SymbolSource};

use super::demangle::demangle;

/// Maximum number of symbols; the largest programs have fewer.
const MAX_SYMBOLS: usize = 1 << 21;

/// A fault in a list of symbols.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListingError {
    /// A wrong line.
    #[error(
        "line {line} is not a symbol; expected `ADDRESS SIZE TYPE NAME` as nm -S prints, or the same columns \
         between tabs with 0x before the address and a decimal size"
    )]
    Line {
        /// Number of the line, from 1.
        line: usize,
    },
    /// No line names a symbol with an address.
    #[error("no line names a symbol with an address")]
    NoSymbol,
    /// No line names a function.
    #[error("no line names a function (nm's types t, T, w, W and i)")]
    NoFunction,
    /// More than the maximum.
    #[error("more than 2097152 symbols")]
    TooMany,
}

/// A symbol of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSymbol {
    /// Name in the list (mangled).
    pub name: String,
    /// Address, with the bias.
    pub address: u64,
    /// Size in bytes, 0 if unknown.
    pub size: u64,
    /// Whether it is a function. Otherwise it is data.
    pub is_function: bool,
}

/// The functions and data in `text`, in its order. `bias` is added to their addresses.
///
/// # Errors
/// A wrong line, no symbol, too many symbols.
pub fn symbols_in_listing(text: &[u8], bias: u64) -> Result<Vec<ListedSymbol>, ListingError> {
    let mut symbols = Vec::new();
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        let is_title = index == 0 && line.starts_with("address\t");
        if line.is_empty() || is_title {
            continue;
        }
        let wrong = ListingError::Line { line: index + 1 };
        let symbol = match line.contains('\t') {
            true => tabbed(line).map(Some),
            false => spaced(line),
        };
        let Some(symbol) = symbol.ok_or(wrong)? else {
            continue;
        };
        if symbols.len() == MAX_SYMBOLS {
            return Err(ListingError::TooMany);
        }
        symbols.push(ListedSymbol {
            address: symbol.address.wrapping_add(bias),
            ..symbol
        });
    }
    match symbols.is_empty() {
        true => Err(ListingError::NoSymbol),
        false => Ok(symbols),
    }
}

/// The functions in `text`, ascending and not overlapping. `bias` is added to their addresses, which become
/// file offsets. A function without a size reaches to the next one.
///
/// # Errors
/// A wrong line, no function, too many symbols.
pub fn functions_in_listing(text: &[u8], bias: u64) -> Result<Vec<NativeFunction>, ListingError> {
    let symbols = symbols_in_listing(text, bias)?.into_iter();
    let functions = symbols.filter(|symbol| symbol.is_function);
    let mut functions: Vec<NativeFunction> = functions
        .map(|symbol| NativeFunction {
            start: FileOffset(symbol.address),
            size: symbol.size,
            name: demangle(&symbol.name),
            linkage_name: symbol.name,
            source: SymbolSource::SymbolTable,
            sized: symbol.size > 0,
            lines: Vec::new(),
        })
        .collect();
    functions.sort_by_key(|function| (function.start, std::cmp::Reverse(function.size)));
    functions.dedup_by_key(|function| function.start);
    let starts: Vec<u64> = functions.iter().map(|function| function.start.0).collect();
    for (function, next) in functions.iter_mut().zip(starts.iter().skip(1)) {
        let room = next - function.start.0;
        function.size = match function.size {
            0 => room,
            size => size.min(room),
        };
    }
    match functions.is_empty() {
        true => Err(ListingError::NoFunction),
        false => Ok(functions),
    }
}

/// Columns between tabs. `None` for a wrong line.
fn tabbed(line: &str) -> Option<ListedSymbol> {
    let mut fields = line.splitn(4, '\t');
    let address = fields.next()?.strip_prefix("0x")?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let size = fields.next()?.parse().ok()?;
    let is_function = is_function(fields.next()?)?;
    let name = fields.next()?.to_owned();
    Some(ListedSymbol {
        name,
        address,
        size,
        is_function,
    })
}

/// A line of nm. `None` for a wrong line, `Some(None)` for undefined symbols.
fn spaced(line: &str) -> Option<Option<ListedSymbol>> {
    let (first, rest) = line.trim_start().split_once(' ')?;
    if line.starts_with(' ') {
        // Undefined symbols have no address.
        return is_function(first).map(|_| None);
    }
    let address = u64::from_str_radix(first, 16).ok()?;
    let (second, after) = rest.split_once(' ')?;
    let (size, kind, name) = match is_function(second) {
        Some(_) => (0, second, after),
        None => {
            let (kind, name) = after.split_once(' ')?;
            (u64::from_str_radix(second, 16).ok()?, kind, name)
        }
    };
    Some(Some(ListedSymbol {
        name: name.to_owned(),
        address,
        size,
        is_function: is_function(kind)?,
    }))
}

/// Whether nm's type means a function. `None` for an invalid type.
fn is_function(kind: &str) -> Option<bool> {
    match kind.as_bytes() {
        [b't' | b'T' | b'w' | b'W' | b'i'] => Some(true),
        [kind] => (kind.is_ascii_alphabetic() || *kind == b'?' || *kind == b'-').then_some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str) -> Vec<(u64, u64, String)> {
        let functions = functions_in_listing(text.as_bytes(), 0x100).unwrap();
        let function = |one: NativeFunction| (one.start.0, one.size, one.name);
        functions.into_iter().map(function).collect()
    }

    #[test]
    fn forms_of_nm_are_read() {
        let nm = "0000000000001000 0000000000000020 T main\n                 U printf\n\
                  0000000000001040 t unsized\n0000000000001080 0000000000000100 W _ZN1a1bEv\n\
                  00000000000010a0 t inner\n0000000000004000 0000000000000008 D data\n";
        let wanted = [
            (0x1100, 0x20, "main"),
            (0x1140, 0x40, "unsized"),
            (0x1180, 0x20, "a::b()"),
            (0x11a0, 0, "inner"),
        ];
        let wanted = wanted.map(|(at, size, name)| (at, size, name.to_owned()));
        assert_eq!(found(nm), wanted);
        let tabs = "address\tsize\ttype\tname\n0x1000\t32\tT\tmain\n0x2000\t8\tB\tdata\n";
        assert_eq!(found(tabs), wanted[..1]);
        let symbols = symbols_in_listing(tabs.as_bytes(), 0x100).unwrap();
        let symbols = symbols
            .iter()
            .map(|one| (&*one.name, one.address, one.size, one.is_function));
        let wanted = [("main", 0x1100, 32, true), ("data", 0x2100, 8, false)];
        assert_eq!(symbols.collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn wrong_lists_are_told() {
        let error = |text: &str| functions_in_listing(text.as_bytes(), 0).unwrap_err();
        assert_eq!(error("1000 T a\nx\n"), ListingError::Line { line: 2 });
        assert_eq!(
            error("0x1000\t0x20\tT\tmain"),
            ListingError::Line { line: 1 }
        );
        assert_eq!(error("1000 10 TT a"), ListingError::Line { line: 1 });
        assert_eq!(error("1000 D a\n"), ListingError::NoFunction);
        assert_eq!(error(""), ListingError::NoSymbol);
        assert_eq!(error("                 U printf\n"), ListingError::NoSymbol);
    }

    proptest! {
        #[test]
        fn functions_never_overlap(
            lines in prop::collection::vec((any::<u64>(), any::<u64>(), "[tTDUw]"), 0..20),
            bias: u64,
        ) {
            let lines = lines.iter().map(|(at, size, kind)| format!("{at:x} {size:x} {kind} f\n"));
            if let Ok(functions) = functions_in_listing(lines.collect::<String>().as_bytes(), bias) {
                for two in functions.windows(2) {
                    prop_assert!(two[0].start.0.checked_add(two[0].size).unwrap() <= two[1].start.0);
                }
            }
        }

        #[test]
        fn any_bytes_end(bytes: Vec<u8>) {
            let _ = functions_in_listing(&bytes, 1);
        }
    }
}
