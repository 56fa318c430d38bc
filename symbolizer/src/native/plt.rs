//! PLT stubs, named after their callees.
//!
//! A stub jumps through a GOT slot; a relocation names the slot's function. The decoder follows each
//! stub with hits to its slot, and searches the relocations for these slots. This works for all
//! layouts of linkers (lazy, `-z now`, IBT, BTI, PAC), whatever their numbering of stubs.
//!
//! ```text
//! x86-64 .plt      ff 25 disp32          jmp  *disp(%rip)
//!                  68 imm32              push $index      into .rela.plt
//!                  e9 disp32             jmp  .plt[0]
//! with IBT .plt    f3 0f 1e fa, 68 imm32, (f2) e9 disp32
//!          .plt.sec / .plt.got
//!                  f3 0f 1e fa, (f2) ff 25 disp32
//! aarch64 .plt     (bti c)
//!                  adrp x16, page
//!                  ldr  x17, [x16, #low]
//!                  add  x16, x16, #low
//!                  (autia1716), br x17
//! ```
//!
//! Source: x86-64 psABI §5.2; AAELF64 "Dynamic linking".

use goblin::elf::reloc::RelocSection;
use goblin::elf::section_header::{SHT_NOBITS, SHT_RELA};
use goblin::elf::sym::{Sym, Symtab};
use rustc_hash::FxHashMap;

use super::elf::{Elf, Section, string_at};
use super::limits;

const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;

/// A stub with hits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stub {
    /// Start (svma).
    pub(crate) start: u64,
    /// End, exclusive.
    pub(crate) end: u64,
    /// `callee@plt`.
    pub(crate) name: String,
}

/// A stub's reference to its callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Target {
    /// GOT slot at this address (svma).
    Slot(u64),
    /// Index of a relocation in `.rela.plt`.
    Index(u64),
    /// No callee: the first entry calls the dynamic linker for all others.
    Linker,
}

pub(crate) fn is_plt(section: &Section) -> bool {
    section.is_code() && matches!(&*section.name, ".plt" | ".plt.sec" | ".plt.got" | ".iplt")
}

/// The stubs at `hits` (svma, ascending), ascending, without duplicates.
pub(crate) fn stubs(elf: &Elf<'_>, hits: &[u64]) -> Vec<Stub> {
    let mut found: Vec<(u64, u64, Target)> = Vec::new();
    for section in elf.sections.iter().filter(|section| is_plt(section)) {
        let from = hits.partition_point(|hit| *hit < section.address);
        let to = hits.partition_point(|hit| *hit < section.end());
        let Some(hits) = hits.get(from..to).filter(|hits| !hits.is_empty()) else {
            continue;
        };
        if section.kind == SHT_NOBITS || section.size > limits::PLT_BYTES as u64 {
            continue;
        }
        let Ok(code) = elf.piece(section.offset, section.size, "PLT") else {
            continue;
        };
        match elf.machine {
            EM_X86_64 => found.extend(hits.iter().filter_map(|hit| x86_64(section, &code, *hit))),
            EM_AARCH64 => {
                let all = aarch64(section, &code);
                found.extend(hits.iter().filter_map(|hit| {
                    let next = all.partition_point(|stub| stub.0 <= *hit);
                    let stub = all.get(next.checked_sub(1)?)?;
                    (*hit < stub.1).then_some(*stub)
                }));
            }
            _ => {}
        }
    }
    found.sort_unstable_by_key(|stub| stub.0);
    found.dedup_by_key(|stub| stub.0);
    let mut names = FxHashMap::default();
    for (.., target) in &found {
        names.insert(*target, None);
    }
    find_names(elf, &mut names);
    names.insert(Target::Linker, Some("[lazy binding]".to_owned()));
    found
        .into_iter()
        .filter_map(|(start, end, target)| {
            let name = names.get(&target)?.as_ref()?;
            Some(Stub {
                start,
                end,
                name: format!("{name}@plt"),
            })
        })
        .collect()
}

/// The stub around `hit`.
fn x86_64(section: &Section, code: &[u8], hit: u64) -> Option<(u64, u64, Target)> {
    let size = match (section.entry_size, &*section.name) {
        (size @ (8 | 16), _) => size,
        (_, ".plt.got") => 8,
        _ => 16,
    };
    let into = hit.checked_sub(section.address)? / size * size;
    let start = section.address.checked_add(into)?;
    let at = usize::try_from(into).ok()?;
    let stub = code.get(at..(at + usize::try_from(size).ok()?).min(code.len()))?;
    let body = stub.strip_prefix(b"\xf3\x0f\x1e\xfa").unwrap_or(stub);
    let skipped = (stub.len() - body.len()) as u64;
    let (body, skipped) = match body.strip_prefix(b"\xf2") {
        Some(rest) => (rest, skipped + 1),
        None => (body, skipped),
    };
    let target = match body {
        [0xff, 0x25, a, b, c, d, ..] => {
            let displacement = i64::from(i32::from_le_bytes([*a, *b, *c, *d]));
            let next = start.wrapping_add(skipped + 6);
            Target::Slot(next.wrapping_add_signed(displacement))
        }
        [0x68, a, b, c, d, ..] => Target::Index(u32::from_le_bytes([*a, *b, *c, *d]).into()),
        [0xff, 0x35, ..] if at == 0 => Target::Linker,
        _ => return None,
    };
    Some((start, start.saturating_add(size), target))
}

/// All stubs of the section, ascending.
fn aarch64(section: &Section, code: &[u8]) -> Vec<(u64, u64, Target)> {
    const BTI_C: u32 = 0xd503_245f;
    let words: Vec<u32> = code
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    let mut stubs: Vec<(u64, u64, Target)> = Vec::new();
    for (index, pair) in words.windows(2).enumerate() {
        // adrp x16, page / ldr x17, [x16, #low]
        if pair[0] & 0x9f00_001f != 0x9000_0010 || pair[1] & 0xffc0_03ff != 0xf940_0211 {
            continue;
        }
        let pc = section.address.wrapping_add(index as u64 * 4);
        let pages = i64::from((pair[0] >> 5 & 0x7_ffff) << 2 | pair[0] >> 29 & 3);
        // Sign-extend 21 bits.
        let pages = pages << 43 >> 43;
        let page = (pc & !0xfff).wrapping_add_signed(pages << 12);
        let slot = page.wrapping_add(u64::from(pair[1] >> 10 & 0xfff) * 8);
        let with_bti = index > 0 && words[index - 1] == BTI_C;
        let start = pc.wrapping_sub(if with_bti { 4 } else { 0 });
        if let Some(before) = stubs.last_mut() {
            before.1 = start;
        }
        stubs.push((start, section.end(), Target::Slot(slot)));
    }
    stubs
}

/// Finds names of targets in relocations.
fn find_names(elf: &Elf<'_>, wanted: &mut FxHashMap<Target, Option<String>>) {
    if wanted.is_empty() {
        return;
    }
    for section in elf.sections.iter().filter(|s| s.kind == SHT_RELA) {
        let is_plt = matches!(&*section.name, ".rela.plt" | ".rela.iplt");
        if !is_plt && section.name != ".rela.dyn" {
            continue;
        }
        // .rela.plt has most slots and is small; .rela.dyn has millions of entries in the largest
        // programs: read it in pieces.
        let Some(entries) = section.size.checked_div(section.entry_size) else {
            continue;
        };
        if entries > limits::RELOCATIONS {
            continue;
        }
        let per_read = (limits::SYMBOL_READ_BYTES as u64 / section.entry_size).max(1);
        let mut done = 0;
        while done < entries {
            let now = per_read.min(entries - done);
            let from = section.offset.saturating_add(done * section.entry_size);
            let Ok(bytes) = elf.piece(from, now * section.entry_size, "relocations") else {
                break;
            };
            let Ok(relocations) = RelocSection::parse(&bytes, 0, bytes.len(), true, elf.context)
            else {
                break;
            };
            for (index, relocation) in (done..).zip(relocations.iter()) {
                let slot = Target::Slot(relocation.r_offset);
                let index = is_plt.then_some(Target::Index(index));
                for target in [Some(slot), index].into_iter().flatten() {
                    if let Some(name @ None) = wanted.get_mut(&target) {
                        *name = callee(elf, section.link, relocation.r_sym, relocation.r_addend);
                    }
                }
            }
            done += now;
        }
    }
}

/// The name of a symbol in the table of section `table`. Without a symbol, the function at `addend`
/// computes the slot (`IRELATIVE`): named in objdump's notation.
fn callee(elf: &Elf<'_>, table: usize, index: usize, addend: Option<i64>) -> Option<String> {
    if index == 0 {
        return Some(format!("*ABS*+{:#x}", addend?));
    }
    let section = elf.sections.get(table)?;
    let size = Sym::size(elf.context.container);
    let at = index.checked_mul(size)? as u64;
    if section.kind == SHT_NOBITS || at >= section.size {
        return None;
    }
    let bytes = elf
        .piece(section.offset.checked_add(at)?, size as u64, "symbol")
        .ok()?;
    let symbol = Symtab::parse(&bytes, 0, 1, elf.context).ok()?.get(0)?;
    let name = symbol_name(elf, section.link, symbol.st_name as u64)?;
    Some(name).filter(|name| !name.is_empty())
}

/// The name at `offset` in the string table of section `strings`.
pub(crate) fn symbol_name(elf: &Elf<'_>, strings: usize, offset: u64) -> Option<String> {
    let section = elf.sections.get(strings)?;
    if section.kind == SHT_NOBITS {
        return None;
    }
    let left = section.size.checked_sub(offset)?;
    let at = section.offset.checked_add(offset)?;
    // Most names are short: second reads are rare.
    for limit in [128, limits::NAME_BYTES] {
        let len = left.min(limit as u64);
        let bytes = elf.piece(at, len, "symbol name").ok()?;
        if bytes.contains(&0) || len == left || limit == limits::NAME_BYTES {
            return Some(string_at(&bytes, 0, limit));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(name: &str, entry_size: u64, size: usize) -> Section {
        Section {
            name: name.to_owned(),
            kind: 1,
            flags: 6,
            address: 0x1000,
            offset: 0x1000,
            size: size as u64,
            link: 0,
            entry_size,
        }
    }

    #[test]
    fn x86_64_layouts() {
        let lazy = b"\xff\x35\x02\x20\0\0\xff\x25\x04\x20\0\0\x0f\x1f\x40\0\
            \xff\x25\x02\x20\0\0\x68\x05\0\0\0\xe9\xe0\xff\xff\xff";
        let plt = section(".plt", 16, lazy.len());
        let first = (0x1000, 0x1010, Target::Linker);
        assert_eq!(x86_64(&plt, lazy, 0x100a), Some(first));
        let stub = (0x1010, 0x1020, Target::Slot(0x1016 + 0x2002));
        assert_eq!(x86_64(&plt, lazy, 0x1010), Some(stub));
        assert_eq!(x86_64(&plt, lazy, 0x101f), Some(stub));

        let ibt = b"\xf3\x0f\x1e\xfa\x68\x07\0\0\0\xf2\xe9\xe1\xff\xff\xff\x90";
        let plt = section(".plt", 0, ibt.len());
        let stub = (0x1000, 0x1010, Target::Index(7));
        assert_eq!(x86_64(&plt, ibt, 0x1004), Some(stub));

        let second = b"\xf3\x0f\x1e\xfa\xf2\xff\x25\x10\0\0\0\x0f\x1f\x44\0\0";
        let plt = section(".plt.sec", 16, second.len());
        let stub = (0x1000, 0x1010, Target::Slot(0x100b + 0x10));
        assert_eq!(x86_64(&plt, second, 0x1005), Some(stub));

        let got = b"\xff\x25\xf2\xff\xff\xff\x66\x90";
        let plt = section(".plt.got", 0, got.len());
        let stub = (0x1000, 0x1008, Target::Slot(0x1006 - 14));
        assert_eq!(x86_64(&plt, got, 0x1007), Some(stub));
    }

    #[test]
    fn aarch64_layouts() {
        let words: [u32; 13] = [
            // The header: stp x16, x30, [sp, #-16]!; adrp x16; ldr x17, [x16, #0xff8]; …
            0xa9bf_7bf0,
            0xf000_0070, // adrp x16, 0x10000 (page 0x1000 + 0xf * 0x1000)
            0xf947_fe11, // ldr x17, [x16, #4088]
            0x913f_e210,
            0xd61f_0220,
            // With BTI.
            0xd503_245f,
            0x9000_0090, // adrp x16, 0x11000
            0xf940_0211, // ldr x17, [x16]
            0x9100_0210,
            0xd61f_0220,
            // Without.
            0x9000_0090,
            0xf940_0611, // ldr x17, [x16, #8]
            0x9100_2210,
        ];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let plt = section(".plt", 16, code.len());
        assert_eq!(
            aarch64(&plt, &code),
            [
                (0x1004, 0x1014, Target::Slot(0x1_0ff8)),
                (0x1014, 0x1028, Target::Slot(0x1_1000)),
                (0x1028, 0x1034, Target::Slot(0x1_1008)),
            ]
        );
    }
}
