//! ELF images in process memory, without their files. Memory has the dynamic linker's tables, but
//! no sections such as `.symtab`.

use std::ops::ControlFlow;

use goblin::elf::dynamic::{DT_HASH, DT_STRSZ, DT_STRTAB, DT_SYMTAB};
use goblin::elf::program_header::{PT_DYNAMIC, PT_LOAD, PT_NOTE};
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
    let mut loaded = segments.iter().filter(|segment| segment.kind == PT_LOAD);
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

/// Passes the dynamic symbols of a loaded ELF image to `visitor` until it breaks; none without a
/// dynamic section.
fn visit_in_memory(
    memory: &dyn Memory,
    header_at: Avma,
    visitor: &mut dyn FnMut(&Strings, &RawSymbol, LoadBias) -> ControlFlow<()>,
) -> Result<(), ElfError> {
    let Image {
        header,
        segments,
        bias,
    } = image(memory, header_at)?;
    let Some(dynamic) = segments.iter().find(|segment| segment.kind == PT_DYNAMIC) else {
        return Ok(());
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
    let (Some(symbols), Some(strings), Some(length)) =
        (address(DT_SYMTAB), address(DT_STRTAB), value(DT_STRSZ))
    else {
        return Ok(());
    };
    let each = header.symbol_bytes();
    // Only the old hash table counts symbols (second word). Without it, names mark their end: all
    // linkers place names after symbols.
    let count = match address(DT_HASH).and_then(|hash| hash.checked_add(4)) {
        Some(chains) => u64::from(memory.read_u32(chains)?),
        None => strings.offset_from(symbols).unwrap_or(0) / each as u64,
    };
    check("dynamic symbols", count, MAX_SYMBOLS)?;
    let strings = Strings(memory.read_vec(strings, length, MAX_STRING_BYTES)?);
    let mut done = 0;
    while done < count {
        let step = (count - done).min(SYMBOLS_AT_ONCE);
        let at = Avma(symbols.get().wrapping_add(done.wrapping_mul(each as u64)));
        let bytes = step.saturating_mul(each as u64);
        let piece = memory.read_vec(at, bytes, usize::try_from(bytes).unwrap_or(0))?;
        for symbol in parse_symbols(&piece, &header)? {
            if visitor(&strings, &symbol, bias).is_break() {
                return Ok(());
            }
        }
        done += step;
    }
    Ok(())
}

/// Dynamic symbols of the ELF image loaded at `header_at`, in the order of `names`: for modules
/// whose files can't be opened.
///
/// # Errors
/// [`ElfError`] if `header_at` has no readable ELF image.
pub fn symbols_in_memory(
    memory: &dyn Memory,
    header_at: Avma,
    names: &[&str],
) -> Result<Vec<Option<Symbol>>, ElfError> {
    let mut found: Vec<Option<Symbol>> = vec![None; names.len()];
    visit_in_memory(memory, header_at, &mut |strings, raw, bias| {
        for (name, slot) in names.iter().zip(&mut found) {
            if slot.is_none() && strings.is(raw.name_at, name.as_bytes()) {
                *slot = Some(symbol((*name).to_owned(), raw, bias));
            }
        }
        ControlFlow::Continue(())
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
}
