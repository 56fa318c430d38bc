//! Kernel functions, from `/proc/kallsyms`.
//!
//! A line is `address type name` or `address type name\t[module]`: hexadecimal address, zero if
//! `kptr_restrict` hides it, and `nm`'s type letter. Source: the kernel's `kernel/kallsyms.c`,
//! `s_show`.

use vmscope_records::{Avma, NativeFunction, SymbolOwner, SymbolSource, Symbols};

use super::limits;
use super::table::{Answer, Lookup, NameAt};

/// Kernel functions at `hits` (ascending, without duplicates). `kallsyms` is the text of
/// `/proc/kallsyms`, `None` if unreadable. It has no sizes: each function reaches to the next
/// symbol.
#[must_use]
pub fn resolve_kernel(hits: &[Avma], kallsyms: Option<&[u8]>) -> Symbols {
    let (functions, note) = match kallsyms {
        None => (
            Vec::new(),
            "no permission to read /proc/kallsyms".to_owned(),
        ),
        Some(text) => search(hits, text),
    };
    Symbols {
        owner: SymbolOwner::Kernel,
        functions,
        note,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry<'t> {
    address: u64,
    kind: u8,
    name: &'t str,
    /// Including its brackets.
    module: Option<&'t str>,
}

fn search(hits: &[Avma], text: &[u8]) -> (Vec<NativeFunction>, String) {
    let addresses: Vec<u64> = hits.iter().map(|hit| hit.0).collect();
    let mut lookup = Lookup::new(&addresses);
    let mut any = false;
    let mut at = 0_usize;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let offset = u32::try_from(at);
        at += line.len();
        let (Ok(offset), Some(entry)) = (offset, parse(line)) else {
            continue;
        };
        if entry.address == 0 {
            continue;
        }
        any = true;
        let rank = match entry.kind {
            b'T' => 3,
            b't' => 2,
            b'W' | b'w' => 1,
            _ => 0,
        };
        // Data symbols end the function before them.
        lookup.add(entry.address, 0, rank, NameAt { table: 0, offset });
    }
    if !any {
        let note = "/proc/kallsyms has no addresses (kptr_restrict)";
        return (Vec::new(), note.to_owned());
    }
    let mut functions: Vec<NativeFunction> = Vec::new();
    for (hit, answer) in addresses.iter().zip(lookup.answers()) {
        let Answer::Symbol {
            start, end, names, ..
        } = answer
        else {
            continue;
        };
        if functions.last().is_some_and(|f| f.start.0 == start) {
            continue;
        }
        let reach = start.saturating_add(limits::KERNEL_SYMBOL_BYTES);
        let entry = names
            .first()
            .and_then(|name| text.get(usize::try_from(name.offset).ok()?..))
            .and_then(|rest| parse(rest.split_inclusive(|byte| *byte == b'\n').next()?));
        let Some(entry) = entry.filter(|entry| is_code(entry.kind) && *hit < reach) else {
            continue;
        };
        let name = match entry.module {
            Some(module) => format!("{} {module}", entry.name),
            None => entry.name.to_owned(),
        };
        functions.push(NativeFunction {
            start: SymbolOwner::kernel_address(Avma(start)),
            size: end.min(reach) - start,
            linkage_name: entry.name.to_owned(),
            name,
            source: SymbolSource::Kallsyms,
            sized: false,
            lines: Vec::new(),
        });
    }
    (functions, String::new())
}

fn is_code(kind: u8) -> bool {
    matches!(kind, b'T' | b't' | b'W' | b'w')
}

fn parse(line: &[u8]) -> Option<Entry<'_>> {
    let line = line.get(..limits::NAME_BYTES).unwrap_or(line);
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let [kind] = words.next()?.as_bytes() else {
        return None;
    };
    Some(Entry {
        address,
        kind: *kind,
        name: words.next()?,
        module: words.next().filter(|module| module.starts_with('[')),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _stext
ffffffff81000100 T alpha
ffffffff81000100 W weak_alpha
ffffffff81000200 t beta
ffffffff81000300 D some_data
ffffffffc0000000 t gamma\t[ext4]
not a line
";

    fn names(hits: &[u64], text: &str) -> Vec<(u64, u64, String)> {
        let hits: Vec<Avma> = hits.iter().map(|hit| Avma(*hit)).collect();
        resolve_kernel(&hits, Some(text.as_bytes()))
            .functions
            .into_iter()
            .map(|f| (f.start.0, f.size, f.name))
            .collect()
    }

    #[test]
    fn functions_reach_to_the_next_symbol() {
        let found = names(
            &[
                0x1000,
                0xffff_ffff_8100_0100,
                0xffff_ffff_8100_01ff,
                0xffff_ffff_8100_0200,
                0xffff_ffff_8100_0300,
                0xffff_ffff_c000_0040,
                0xffff_ffff_c010_0000,
            ],
            TEXT,
        );
        assert_eq!(
            found,
            [
                (0xffff_ffff_8100_0100, 0x100, "alpha".to_owned()),
                (0xffff_ffff_8100_0200, 0x100, "beta".to_owned()),
                (0xffff_ffff_c000_0000, 1 << 20, "gamma [ext4]".to_owned()),
            ]
        );
    }

    #[test]
    fn hidden_addresses_name_nothing() {
        let hidden = "0000000000000000 T _stext\n0000000000000000 t beta\n";
        let symbols = resolve_kernel(&[Avma(0xffff_ffff_8100_0100)], Some(hidden.as_bytes()));
        assert!(symbols.functions.is_empty());
        assert!(symbols.note.contains("kptr_restrict"), "{}", symbols.note);
        assert!(!resolve_kernel(&[], None).note.is_empty());
    }
}
