//! ELF images in process memory, without their files. Memory has the dynamic linker's tables, but
//! no sections such as `.symtab`.

use goblin::elf::dynamic::{DT_GNU_HASH, DT_HASH, DT_STRSZ, DT_STRTAB, DT_SYMTAB};
use goblin::elf::program_header::{PT_DYNAMIC, PT_NOTE};
use vmscope_records::{Avma, BuildId};

use crate::elf::{
    HEADER_BYTES, MAX_NOTE_BYTES, parse_build_id, parse_dynamic, parse_header, parse_segments,
    parse_symbols,
};
use crate::elf_file::{Strings, check, symbol};
use crate::{ElfError, ElfHeader, LoadBias, Memory, RawSymbol, Segment, Symbol};

/// Real images have about a dozen.
const MAX_SEGMENTS: u64 = 4096;
/// Real sections have about thirty entries, plus one per needed library.
const MAX_DYNAMIC_BYTES: usize = 1 << 16;
/// LLVM's library has 60,000 dynamic symbols.
const MAX_SYMBOLS: u64 = 1 << 20;
/// Names of dynamic symbols; LLVM's library has 5 MB.
const MAX_STRING_BYTES: usize = 64 << 20;
const SYMBOLS_AT_ONCE: u64 = 1 << 12;
/// Maximum number of symbols in a bucket of a hash table; real ones have a handful.
const MAX_CHAIN: usize = 4096;

struct Image {
    header: ElfHeader,
    segments: Vec<Segment>,
    bias: LoadBias,
}

fn image(memory: &dyn Memory, at: Avma) -> Result<Image, ElfError> {
    let header = parse_header(&memory.read_vec(at, HEADER_BYTES as u64, HEADER_BYTES)?)?;
    check("program headers", u64::from(header.segments), MAX_SEGMENTS)?;
    let length = usize::from(header.segments).saturating_mul(header.segment_bytes());
    let table_at = Avma(at.get().wrapping_add(header.segments_at));
    let table = memory.read_vec(table_at, length as u64, length)?;
    let segments = parse_segments(&table, &header)?;
    let mut loaded = segments.iter().filter(|segment| segment.is_loaded());
    let first_page = loaded.find(|segment| segment.offset == 0);
    let linked_at = first_page.map_or(0, |segment| segment.address);
    let bias = LoadBias(at.get().wrapping_sub(linked_at));
    Ok(Image {
        header,
        segments,
        bias,
    })
}

/// Build-id of the ELF image loaded at `header_at`, the address of its first page.
///
/// # Errors
/// [`ElfError`] if `header_at` has no readable ELF image.
pub fn build_id_in_memory(
    memory: &dyn Memory,
    header_at: Avma,
) -> Result<Option<BuildId>, ElfError> {
    let image = image(memory, header_at)?;
    let notes = image.segments.iter();
    for note in notes.filter(|segment| segment.kind == PT_NOTE) {
        let length = note.file_bytes.min(MAX_NOTE_BYTES);
        let cap = usize::try_from(MAX_NOTE_BYTES).unwrap_or(usize::MAX);
        // Skip notes missing in memory (or in the core file).
        let Ok(bytes) = memory.read_vec(image.bias.apply(note.address), length, cap) else {
            continue;
        };
        if let Some(found) = parse_build_id(&bytes, note.align, &image.header) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The dynamic linker's tables of a loaded image.
struct Dynamic {
    header: ElfHeader,
    bias: LoadBias,
    symbols: Avma,
    strings: Avma,
    strings_length: u64,
    /// The table of `DT_HASH`.
    hash: Option<Avma>,
    /// The table of `DT_GNU_HASH`.
    gnu_hash: Option<Avma>,
}

/// The tables of the image at `header_at`; `None` without a dynamic section.
fn dynamic(memory: &dyn Memory, header_at: Avma) -> Result<Option<Dynamic>, ElfError> {
    let Image {
        header,
        segments,
        bias,
    } = image(memory, header_at)?;
    let Some(dynamic) = segments.iter().find(|segment| segment.kind == PT_DYNAMIC) else {
        return Ok(None);
    };
    let at = bias.apply(dynamic.address);
    let entries = memory.read_vec(at, dynamic.memory_bytes, MAX_DYNAMIC_BYTES)?;
    let entries = parse_dynamic(&entries, &header)?;
    let value = |tag: u64| {
        let mut entries = entries.iter();
        entries.find_map(|(other, value)| (*other == tag).then_some(*value))
    };
    // glibc adds the bias to addresses in this section; other linkers don't.
    let address = |tag: u64| {
        let value = value(tag)?;
        Some(if value >= header_at.get() {
            Avma(value)
        } else {
            bias.apply(value)
        })
    };
    let (Some(symbols), Some(strings), Some(strings_length)) =
        (address(DT_SYMTAB), address(DT_STRTAB), value(DT_STRSZ))
    else {
        return Ok(None);
    };
    Ok(Some(Dynamic {
        header,
        bias,
        symbols,
        strings,
        strings_length,
        hash: address(DT_HASH),
        gnu_hash: address(DT_GNU_HASH),
    }))
}

impl Dynamic {
    /// Passes all symbols to `visitor`.
    fn visit(
        &self,
        memory: &dyn Memory,
        visitor: &mut dyn FnMut(&Strings, &RawSymbol),
    ) -> Result<(), ElfError> {
        let each = self.header.symbol_bytes() as u64;
        // Only the old hash table counts symbols (second word). Without it, names mark their end: all
        // linkers place names after symbols.
        let count = match self.hash.and_then(|hash| hash.checked_add(4)) {
            Some(chains) => u64::from(memory.read_u32(chains)?),
            None => self.strings.offset_from(self.symbols).unwrap_or(0) / each,
        };
        check("dynamic symbols", count, MAX_SYMBOLS)?;
        let strings = memory.read_vec(self.strings, self.strings_length, MAX_STRING_BYTES)?;
        let strings = Strings(strings);
        let mut done = 0;
        while done < count {
            let step = (count - done).min(SYMBOLS_AT_ONCE);
            for symbol in self.read(memory, done, step)? {
                visitor(&strings, &symbol);
            }
            done += step;
        }
        Ok(())
    }

    /// The defined ones of `count` symbols from the symbol with number `first` on.
    fn read(
        &self,
        memory: &dyn Memory,
        first: u64,
        count: u64,
    ) -> Result<Vec<RawSymbol>, ElfError> {
        let each = self.header.symbol_bytes() as u64;
        let at = Avma(self.symbols.get().wrapping_add(first.wrapping_mul(each)));
        let bytes = count.saturating_mul(each);
        let bytes = memory.read_vec(at, bytes, usize::try_from(bytes).unwrap_or(0))?;
        parse_symbols(&bytes, &self.header)
    }

    /// The symbol with this name, by the table of `DT_GNU_HASH` at `table` (`elf/dl-lookup.c` of glibc).
    ///
    /// The table begins with four numbers: buckets, symbols without hashes, words of the filter, shift of
    /// the filter. The filter follows, then the number of each bucket's first symbol, then each symbol's
    /// hash. The lowest bit of a hash marks the last symbol of a bucket.
    fn hashed(
        &self,
        memory: &dyn Memory,
        table: Avma,
        name: &str,
    ) -> Result<Option<RawSymbol>, ElfError> {
        let words = memory.read_u32s(table, 4, 4)?;
        let [buckets, unhashed, filter, _] = words.as_slice() else {
            return Ok(None);
        };
        let word = |index: u64| {
            let at = table.get().wrapping_add(index.wrapping_mul(4));
            memory.read_u32(Avma(at))
        };
        let hash = gnu_hash(name);
        let Some(bucket) = hash.checked_rem(*buckets) else {
            return Ok(None);
        };
        // The words of the filter have an address's size.
        let first_bucket = 4 + u64::from(*filter) * (self.header.address_bytes() as u64 / 4);
        let chains = first_bucket + u64::from(*buckets);
        let mut number = word(first_bucket + u64::from(bucket))?;
        for _ in 0..MAX_CHAIN {
            let Some(index) = number.checked_sub(*unhashed) else {
                break;
            };
            let other = word(chains + u64::from(index))?;
            if other | 1 == hash | 1
                && let [symbol] = self.read(memory, number.into(), 1)?.as_slice()
                && self.is_named(memory, symbol, name)?
            {
                return Ok(Some(*symbol));
            }
            if other & 1 != 0 {
                break;
            }
            number = number.saturating_add(1);
        }
        Ok(None)
    }

    fn is_named(
        &self,
        memory: &dyn Memory,
        symbol: &RawSymbol,
        name: &str,
    ) -> Result<bool, ElfError> {
        let at = Avma(self.strings.get().wrapping_add(symbol.name_at));
        let length = name.len() + 1;
        let bytes = memory.read_vec(at, length as u64, length)?;
        Ok(bytes.strip_prefix(name.as_bytes()) == Some(&[0]))
    }
}

/// The hash of a name in tables of `DT_GNU_HASH`.
fn gnu_hash(name: &str) -> u32 {
    let bytes = name.bytes();
    bytes.fold(5381, |hash: u32, byte| {
        hash.wrapping_mul(33).wrapping_add(byte.into())
    })
}

/// Dynamic symbols of the ELF image loaded at `header_at`, in the order of `names`: for modules
/// whose files can't be opened. Uses the table of `DT_GNU_HASH`; without the table, all symbols are read.
///
/// # Errors
/// [`ElfError`] if `header_at` has no readable ELF image.
pub fn symbols_in_memory(
    memory: &dyn Memory,
    header_at: Avma,
    names: &[&str],
) -> Result<Vec<Option<Symbol>>, ElfError> {
    let mut found: Vec<Option<Symbol>> = vec![None; names.len()];
    let Some(dynamic) = dynamic(memory, header_at)? else {
        return Ok(found);
    };
    let named = |name: &str, raw: &RawSymbol| symbol(name.to_owned(), raw, dynamic.bias);
    if let Some(table) = dynamic.gnu_hash {
        for (name, slot) in names.iter().zip(&mut found) {
            let raw = dynamic.hashed(memory, table, name)?;
            *slot = raw.map(|raw| named(name, &raw));
        }
        return Ok(found);
    }
    dynamic.visit(memory, &mut |strings, raw| {
        for (name, slot) in names.iter().zip(&mut found) {
            if slot.is_none() && strings.is(raw.name_at, name.as_bytes()) {
                *slot = Some(named(name, raw));
            }
        }
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use vmscope_records::Pid;

    use super::*;
    use crate::{LiveMemory, ProcessView};

    #[test]
    fn the_same_symbols_as_in_the_files() {
        let me = Pid(std::process::id());
        let view = ProcessView::open(me).unwrap();
        let libc = view.module(|name| name.starts_with("libc.so")).unwrap();
        let names = ["getpid", "no such symbol", "malloc", "environ", "qsort"];
        let expected = view.symbols(&libc, &names).unwrap();
        let memory = LiveMemory::new(me);
        let found = symbols_in_memory(&memory, libc.start(), &names).unwrap();
        let addresses = |symbols: &[Option<Symbol>]| -> Vec<_> {
            symbols
                .iter()
                .map(|s| s.as_ref().map(|s| s.address))
                .collect()
        };
        assert_eq!(addresses(&found), addresses(&expected));
        assert!(found[0].is_some() && found[1].is_none());
    }

    #[test]
    fn each_symbol_is_found_by_its_hash() {
        let me = Pid(std::process::id());
        let view = ProcessView::open(me).unwrap();
        let libc = view.module(|name| name.starts_with("libc.so")).unwrap();
        let memory = LiveMemory::new(me);
        let dynamic = dynamic(&memory, libc.start()).unwrap().unwrap();
        let table = dynamic.gnu_hash.unwrap();
        let mut all = std::collections::BTreeMap::new();
        let visit = dynamic.visit(&memory, &mut |strings, raw| {
            let name = String::from_utf8(strings.name(raw.name_at).to_vec()).unwrap();
            // Versions of a symbol share a name; the first counts.
            all.entry(name).or_insert(*raw);
        });
        visit.unwrap();
        assert!(all.len() > 1000, "{}", all.len());
        for (name, raw) in &all {
            let found = dynamic.hashed(&memory, table, name).unwrap();
            assert_eq!(found, Some(*raw), "{name}");
            let other = format!("{name}~");
            assert_eq!(dynamic.hashed(&memory, table, &other).unwrap(), None);
        }
    }
}
