//! Native code: `.eh_frame` and `.debug_frame` by framehop, frame pointers where there is neither.

use std::ops::Range;
use std::sync::Arc;

use framehop::{
    CacheNative, Error, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module,
    UnwindRegsNative, Unwinder as _, UnwinderNative,
};
use gimli::{
    BaseAddresses, EhFrame, EhFrameHdr, EhFrameOffset, EndianSlice, LittleEndian, UnwindSection,
};
use rustc_hash::FxHashMap;
use vmscope_process::{
    CodeRule, CopiedStack, ElfFile, Frame, FrameRegisters, Jumps, Modules, ReadAt as _, Unwound,
};
use vmscope_records::{Avma, ChainEnd, ModuleKey, Ranges, TimeNs};

use super::super::generated::Generated;
use super::{Bytes, CodeMapping};

/// Maximum bytes of a module's unwind tables in memory; browsers have 20 MB.
const MAX_TABLE_BYTES: u64 = 64 << 20;

/// Bytes of code before and behind an address without a rule, among which its way back is looked for.
const CODE_AROUND: u64 = 2048;

/// Maximum number of addresses whose coverage is remembered.
const MAX_COVERED: usize = 1 << 16;

/// Unwind tables of all processes' modules, and rules of recent addresses.
#[derive(Default)]
pub(super) struct Caches {
    tables: FxHashMap<ModuleKey, Option<Arc<Tables>>>,
    rules: Rules,
}

/// Rules of recent addresses. One cache of framehop has 509 entries, by the address's remainder.
#[derive(Default)]
struct Rules([CacheNative<MayAllocateDuringUnwind>; 32]);

impl Rules {
    /// The cache of an address: equal remainders lie in different caches.
    fn around(&mut self, pc: u64) -> &mut CacheNative<MayAllocateDuringUnwind> {
        const ENTRIES: u64 = 509;
        let number = (pc / ENTRIES) as usize % self.0.len();
        &mut self.0[number]
    }
}

/// A module's unwind tables.
struct Tables {
    sections: Sections,
    elf: ElfFile,
}

/// The sections of unwind tables.
#[derive(Clone, Default)]
struct Sections(ExplicitModuleSectionInfo<Bytes>);

/// The modules of one address space.
#[derive(Default)]
pub(super) struct Modular {
    unwinder: Option<UnwinderNative<Bytes, MayAllocateDuringUnwind>>,
    /// Mappings that were looked up, with their tables and load bias.
    loaded: Ranges<Option<(Arc<Tables>, u64)>>,
    /// Coverage of looked-up addresses.
    covered: FxHashMap<u64, Coverage>,
    /// Rules of addresses without coverage.
    code_rules: FxHashMap<u64, Option<CodeRule>>,
}

/// Coverage of an address by unwind tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coverage {
    /// No entry.
    None,
    /// A rule.
    Rule,
    /// The mark of the code to which signal handlers return.
    SignalReturn,
    /// No entry, in the program's first function, which has no caller.
    Start,
}

impl Modular {
    /// Drops what is known of these addresses.
    pub fn forget(&mut self, start: u64, end: u64) {
        let gone = self.loaded.overlapping(start, end).count();
        if gone == 0 {
            return;
        }
        for (from, ..) in self.loaded.cut(start, end) {
            if let Some(unwinder) = &mut self.unwinder {
                unwinder.remove_module(from);
            }
        }
        self.covered.clear();
        self.code_rules.clear();
    }

    /// Whether a frame's code has no entry among code with tables: assembly, or a VM's code in its
    /// file. Its frame pointer is anything's.
    pub fn lacks_rule(
        &mut self,
        frame: &Frame<'_>,
        of: &Generated,
        modules: &Modules,
        caches: &mut Caches,
    ) -> bool {
        let at = frame.instruction().0;
        self.load(at, of, modules, caches);
        self.coverage(at) == Coverage::None && self.has_tables(at)
    }

    /// Whether a frame is a signal's frame: its handler returns there. [`Modular::lacks_rule`] must have
    /// loaded the frame's module.
    pub fn is_signal_frame(&mut self, frame: &Frame<'_>) -> bool {
        self.coverage(frame.instruction().0) == Coverage::SignalReturn
    }

    /// The caller of a native frame whose module [`Modular::lacks_rule`] has loaded; `None` if the
    /// frame is the thread's first.
    ///
    /// # Errors
    /// [`ChainEnd`].
    pub fn caller(
        &mut self,
        frame: &Frame<'_>,
        caches: &mut Caches,
    ) -> Result<Option<Unwound>, ChainEnd> {
        let FrameRegisters { pc, sp, fp } = frame.registers;
        let address = match frame.sampled {
            Some(_) => FrameAddress::from_instruction_pointer(pc),
            None => FrameAddress::from_return_address(pc).ok_or(ChainEnd::Broken)?,
        };
        let coverage = self.coverage(frame.instruction().0);
        if coverage == Coverage::Start {
            return Ok(None);
        }
        let is_covered = coverage != Coverage::None;
        let unwinder = self.unwinder.get_or_insert_default();
        let rules = caches.rules.around(pc);
        let mut registers = registers(frame, (pc, sp, fp));
        let mut failure = None;
        let mut read = |at| {
            frame.word(at).map_err(|end| {
                failure = Some(end);
            })
        };
        let caller = unwinder.unwind_frame(address, &mut registers, rules, &mut read);
        let caller = match caller {
            Ok(Some(caller)) => caller,
            // Without a table, the frame pointer's zero is a guess, too.
            Ok(None) if is_covered => return Ok(None),
            Ok(None) => return Err(ChainEnd::Broken),
            Err(Error::CouldNotReadStack(_)) => {
                return Err(failure.unwrap_or(ChainEnd::Broken));
            }
            Err(_) => return Err(ChainEnd::Broken),
        };
        Ok(Some(Unwound {
            is_guess: !is_covered,
            ..Unwound::certain(FrameRegisters {
                pc: caller,
                sp: registers.sp(),
                fp: frame_pointer(&registers),
            })
        }))
    }

    /// The caller of a frame in code of a file without a rule, such as the JVM's copying routines in
    /// assembly: where the code itself returns to (x86-64).
    ///
    /// # Errors
    /// [`ChainEnd`].
    pub fn caller_by_code(
        &mut self,
        frame: &Frame<'_>,
        mapping: &CodeMapping,
        modules: &Modules,
    ) -> Result<Unwound, ChainEnd> {
        let pc = frame.registers.pc;
        if self.code_rules.len() >= MAX_COVERED {
            self.code_rules.clear();
        }
        let rule = self.code_rules.entry(pc);
        let rule = rule.or_insert_with(|| code_rule(pc, mapping, modules));
        let rule = (*rule).ok_or(ChainEnd::Broken)?;
        Ok(Unwound::certain(rule.caller(frame)?))
    }

    /// Loads the tables of the mapping at `at`, once.
    fn load(&mut self, at: u64, of: &Generated, modules: &Modules, caches: &mut Caches) {
        if self.loaded.at(at).is_some() {
            return;
        }
        let Some(mapping) = of.code_at(at) else {
            return;
        };
        let tables = tables(&mapping, modules, caches);
        if let Some((tables, bias)) = &tables {
            let range = mapping.start..mapping.end;
            let sections = tables.sections.0.clone();
            let module = Module::new(String::new(), range, *bias, sections);
            self.unwinder.get_or_insert_default().add_module(module);
        }
        self.loaded.put(mapping.start, mapping.end, tables);
    }

    /// Whether the module at `at` has unwind tables.
    fn has_tables(&self, at: u64) -> bool {
        let tables = self.loaded.at(at).and_then(Option::as_ref);
        tables.is_some_and(|(tables, _)| tables.sections.has_frames())
    }

    /// Coverage of an address. Without a rule, framehop follows the frame pointer.
    fn coverage(&mut self, at: u64) -> Coverage {
        if let Some(known) = self.covered.get(&at) {
            return *known;
        }
        let tables = self.loaded.at(at).and_then(Option::as_ref);
        let coverage = tables.map_or(Coverage::None, |(tables, bias)| {
            let at = at.wrapping_sub(*bias);
            match tables.sections.coverage(at) {
                Coverage::None if tables.is_start(at) => Coverage::Start,
                coverage => coverage,
            }
        });
        if self.covered.len() >= MAX_COVERED {
            self.covered.clear();
        }
        self.covered.insert(at, coverage);
        coverage
    }
}

/// The rule of the code around `pc`.
fn code_rule(pc: u64, mapping: &CodeMapping, modules: &Modules) -> Option<CodeRule> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let (module, offset) = mapping.file?;
    let begin = pc.saturating_sub(CODE_AROUND).max(mapping.start);
    let end = pc.saturating_add(CODE_AROUND).min(mapping.end);
    let length = usize::try_from(end.checked_sub(begin)?).ok()?;
    let from = offset.checked_add(begin.checked_sub(mapping.start)?)?;
    let code = modules.file(module)?.read_at(from, length).ok()?;
    CodeRule::of_returning(&code, begin, pc, Jumps::Unknown)
}

/// A mapping's tables and load bias.
fn tables(
    mapping: &CodeMapping,
    modules: &Modules,
    caches: &mut Caches,
) -> Option<(Arc<Tables>, u64)> {
    let (key, offset) = mapping.file?;
    let tables = caches.tables.entry(key).or_insert_with(|| {
        let elf = ElfFile::open(modules.file(key)?).ok()?;
        Some(Arc::new(Tables::read(elf)))
    });
    let tables = Arc::clone(tables.as_ref()?);
    let bias = tables.elf.bias_of(Avma(mapping.start), offset, true)?;
    Some((tables, bias.0))
}

impl Tables {
    fn read(elf: ElfFile) -> Self {
        let mut sections = ExplicitModuleSectionInfo::default();
        let part = |name: &str| {
            let (range, bytes) = elf.section(name, MAX_TABLE_BYTES).ok()??;
            Some((range, Bytes::from(bytes)))
        };
        let split = |found: Option<(Range<u64>, Bytes)>| found.unzip();
        (sections.eh_frame_svma, sections.eh_frame) = split(part(".eh_frame"));
        (sections.eh_frame_hdr_svma, sections.eh_frame_hdr) = split(part(".eh_frame_hdr"));
        if sections.eh_frame.is_none() {
            sections.debug_frame = part(".debug_frame").map(|(_, bytes)| bytes);
        }
        let sections = Sections(sections);
        Tables { sections, elf }
    }

    /// Whether an address is in the program's first function: `_start`, which is short.
    fn is_start(&self, svma: u64) -> bool {
        const MAX_BYTES: u64 = 64;
        let entry = self.elf.header().entry;
        entry != 0 && (entry..entry.saturating_add(MAX_BYTES)).contains(&svma)
    }
}

impl Sections {
    fn has_frames(&self) -> bool {
        self.0.eh_frame.is_some() || self.0.debug_frame.is_some()
    }

    /// Coverage of an address in the file.
    fn coverage(&self, svma: u64) -> Coverage {
        let sections = &self.0;
        let (Some(header), Some(frames)) = (&sections.eh_frame_hdr, &sections.eh_frame) else {
            // Without an index, each address would need a slow search.
            return match self.has_frames() {
                true => Coverage::Rule,
                false => Coverage::None,
            };
        };
        let start = |range: &Option<Range<u64>>| range.as_ref().map_or(0, |range| range.start);
        let bases = BaseAddresses::default()
            .set_eh_frame(start(&sections.eh_frame_svma))
            .set_eh_frame_hdr(start(&sections.eh_frame_hdr_svma));
        let Ok(header) = EhFrameHdr::new(header, LittleEndian).parse(&bases, 8) else {
            return Coverage::None;
        };
        let mut frames = EhFrame::from(EndianSlice::new(frames, LittleEndian));
        frames.set_address_size(8);
        // As gimli's `fde_for_address`, which subtracts unchecked.
        let entry = header.table().and_then(|table| {
            let found = table.lookup(svma, &bases).ok()?.direct().ok()?;
            let offset = found.checked_sub(header.eh_frame_ptr().direct().ok()?)?;
            let offset = EhFrameOffset(usize::try_from(offset).ok()?);
            let cie = EhFrame::cie_from_offset;
            frames.fde_from_offset(&bases, offset, cie).ok()
        });
        match entry.filter(|entry| entry.contains(svma)) {
            Some(entry) if entry.is_signal_trampoline() => Coverage::SignalReturn,
            Some(_) => Coverage::Rule,
            None => Coverage::None,
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(_: &Frame<'_>, (pc, sp, fp): (u64, u64, u64)) -> UnwindRegsNative {
    UnwindRegsNative::new(pc, sp, fp)
}

#[cfg(target_arch = "x86_64")]
fn frame_pointer(registers: &UnwindRegsNative) -> u64 {
    registers.bp()
}

/// In a caller, the link register holds the return address that led to it.
#[cfg(target_arch = "aarch64")]
fn registers(frame: &Frame<'_>, (pc, sp, fp): (u64, u64, u64)) -> UnwindRegsNative {
    let link = frame.sampled.and_then(|all| all.value(30)).unwrap_or(pc);
    UnwindRegsNative::new(link, sp, fp)
}

#[cfg(target_arch = "aarch64")]
fn frame_pointer(registers: &UnwindRegsNative) -> u64 {
    registers.fp()
}

/// Unwinds a made-up stack by made-up tables. The input holds the lengths of `.eh_frame_hdr` and
/// `.eh_frame` (without a header also as `.debug_frame`), these sections, and the stack. Returns the
/// number of frames. Only for the fuzz target.
pub fn fuzz_tables(input: &[u8]) -> usize {
    const CODE: Range<u64> = 0x10_0000..0x11_0000;
    const STACK: u64 = 0x7000_0000;
    let ([low, high, frames_low, frames_high], rest) = input
        .split_at_checked(4)
        .map_or(([0; 4], input), |(lengths, rest)| {
            (std::array::from_fn(|at| lengths[at]), rest)
        });
    let part =
        |bytes: &[u8], low, high| usize::from(u16::from_le_bytes([low, high])).min(bytes.len());
    let (header, rest) = rest.split_at(part(rest, low, high));
    let (frames, stack) = rest.split_at(part(rest, frames_low, frames_high));
    let some = |bytes: &[u8]| (!bytes.is_empty()).then(|| Bytes::from(bytes));
    let sections = Sections(ExplicitModuleSectionInfo {
        text_svma: Some(0..CODE.end - CODE.start),
        eh_frame_svma: Some(0x2_0000..0x2_0000 + frames.len() as u64),
        eh_frame_hdr_svma: some(header).map(|header| 0x3_0000..0x3_0000 + header.len() as u64),
        eh_frame_hdr: some(header),
        debug_frame: some(frames).filter(|_| header.is_empty()),
        eh_frame: some(frames),
        ..ExplicitModuleSectionInfo::default()
    });
    let stack = vmscope_records::StackBytes {
        sp: Avma(STACK),
        bytes: stack.to_vec(),
    };
    let mut modular = Modular::default();
    let unwinder = modular.unwinder.get_or_insert_default();
    unwinder.add_module(Module::new(
        String::new(),
        CODE,
        CODE.start,
        sections.0.clone(),
    ));
    let (mut caches, mut frames) = (Caches::default(), 0);
    for pc in CODE.step_by(0x1fff) {
        sections.coverage(pc - CODE.start);
        let mut registers = FrameRegisters {
            pc,
            sp: STACK,
            fp: STACK + 0x10,
        };
        // The walk's own conditions: a caller lies above, and in code.
        for _ in 0..u8::MAX {
            let frame = Frame {
                registers,
                sampled: None,
                stack: &CopiedStack::of(&stack),
                time: TimeNs(0),
            };
            match modular.caller(&frame, &mut caches) {
                Ok(Some(unwound)) if CODE.contains(&unwound.caller.pc) => {
                    registers = unwound.caller;
                    frames += 1;
                }
                _ => break,
            }
        }
    }
    frames
}
