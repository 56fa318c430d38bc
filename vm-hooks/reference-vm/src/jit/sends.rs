//! Inline caches.
//!
//! A send site is `mov eax, class; call target`. Unlinked sites call `ceSendMiss`. Sites with one
//! class call that method's entry, which compares eax with the receiver's class. Two to six classes
//! need a closed PIC, more classes an open PIC.

use super::compile::Site;
use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::machine::{Code, LOOKUPS, Lookup, Machine, Pic};
use super::publication::Change;
use super::trampolines::{Assembler, Stub, field, load_receiver_class, stub};
use crate::interpreter::{MethodHeader, now_ns};
use crate::memory::Oop;

/// Most cases of a closed PIC.
const MOST_CASES: usize = 6;
/// Bytes of a PIC.
pub(super) const PIC_BYTES: usize = 15 + 12 * MOST_CASES + 6;
/// No object's class index.
const NO_CLASS: u32 = 0;

impl Machine {
    /// Lets open PICs find a method.
    pub(super) fn remember(&mut self, selector: Oop, class: u32, entry: u64) {
        let at = (selector.0 as usize >> 4 ^ class as usize) & (LOOKUPS - 1);
        if let Some(place) = self.lookups.get_mut(at) {
            *place = Lookup {
                selector,
                class: u64::from(class),
                entry,
            };
        }
    }

    /// Sets what a site calls. All are offsets in the zone.
    fn set_target(&mut self, ret: usize, class: u32, target: usize) {
        self.zone.put_u32(ret - 9, class);
        self.zone.put_u32(ret - 4, target.wrapping_sub(ret) as u32);
    }

    fn target(&self, ret: usize) -> usize {
        let distance = self.zone.get_u32(ret - 4).cast_signed();
        ret.wrapping_add_signed(distance as isize)
    }

    /// Makes all sites of the code call `ceSendMiss`.
    pub(super) fn unlink_sites(&mut self, code: &Code) {
        let miss = self.stubs[Stub::Send as usize];
        for site in &code.made.sites {
            self.set_target(code.start + site.ret as usize, NO_CLASS, miss);
        }
    }

    /// Unlinks all sends, and forgets the PICs.
    pub(super) fn unlink_all(&mut self) {
        let codes = std::mem::take(&mut self.codes);
        for code in &codes {
            self.unlink_sites(code);
        }
        self.codes = codes;
        let gone = std::mem::take(&mut self.pics);
        let gone = gone.iter().map(|pic| Change::Gone(pic.id));
        self.changes.extend(gone);
        self.lookups.fill(Lookup::NONE);
    }

    /// Links a site to its newly found method. `None` if the zone is full.
    pub(super) fn link(
        &mut self,
        ret: usize,
        site: &Site,
        class: u32,
        method: Oop,
        start: usize,
    ) -> Option<()> {
        let unchecked = start + self.code_at(start)?.made.unchecked as usize;
        if site.above.is_some() {
            // Super sends always find the same method.
            self.set_target(ret, class, unchecked);
            return Some(());
        }
        let target = self.target(ret);
        if target == self.stubs[Stub::Send as usize] {
            self.set_target(ret, class, start);
            return Some(());
        }
        if let Ok(at) = self.pics.binary_search_by_key(&target, |pic| pic.start) {
            return self.add_case(at, class, method);
        }
        let linked = self.zone.get_u32(ret - 9);
        let first = self.code_at(target)?.method;
        let pic = self.take(PIC_BYTES)?;
        let id = self.new_id();
        self.pics.push(Pic {
            start: pic,
            selector: site.selector,
            cases: vec![(linked, first), (class, method)],
            is_open: false,
            id,
            since: now_ns(),
        });
        self.write_pic(self.pics.len() - 1);
        self.changes.push(Change::Pic(pic));
        self.set_target(ret, NO_CLASS, pic);
        Some(())
    }

    fn add_case(&mut self, at: usize, class: u32, method: Oop) -> Option<()> {
        let id = self.new_id();
        let pic = self.pics.get_mut(at)?;
        if pic.is_open || pic.cases.iter().any(|case| case.0 == class) {
            return Some(());
        }
        if pic.cases.len() < MOST_CASES {
            pic.cases.push((class, method));
            self.changes.push(Change::Cases(pic.start));
        } else {
            pic.cases.clear();
            pic.is_open = true;
            self.changes.push(Change::Gone(pic.id));
            (pic.id, pic.since) = (id, now_ns());
            self.changes.push(Change::Pic(pic.start));
        }
        self.write_pic(at);
        Some(())
    }

    /// Writes a PIC's code: compares the receiver's class with each case's.
    fn write_pic(&mut self, at: usize) {
        let Some(pic) = self.pics.get(at) else {
            return;
        };
        if pic.is_open {
            let code = open_pic(pic.selector);
            let start = pic.start;
            return self.zone.put(start, &code);
        }
        let mut ops = Assembler::new(0);
        load_receiver_class(&mut ops);
        let mut code = ops.finalize().unwrap_or_default();
        for (class, method) in &pic.cases {
            let start = MethodHeader::of(*method).machine();
            let unchecked = self.code_at(start).map_or(0, |code| code.made.unchecked);
            let target = start + unchecked as usize;
            // cmp ecx, class; je target
            code.extend([0x81, 0xf9]);
            code.extend(class.to_le_bytes());
            code.extend([0x0f, 0x84]);
            let after = pic.start + code.len() + 4;
            code.extend((target.wrapping_sub(after) as u32).to_le_bytes());
        }
        // jmp [rbx + offset]
        code.extend([0xff, 0xa3]);
        code.extend(stub(Stub::Send).to_le_bytes());
        debug_assert!(code.len() <= PIC_BYTES);
        let start = pic.start;
        self.zone.put(start, &code);
    }
}

/// Code of an open PIC: searches the table of found methods.
fn open_pic(selector: Oop) -> Vec<u8> {
    let mut ops = Assembler::new(0);
    load_receiver_class(&mut ops);
    dynasm!(ops
        ; .arch x64
        ; mov r8, QWORD selector.0 as i64
        ; mov rsi, r8
        ; shr rsi, 4
        ; xor esi, ecx
        ; and esi, LOOKUPS as i32 - 1
        ; shl esi, 5
        ; add rsi, [rbx + field!(lookups)]
        ; cmp [rsi], r8
        ; jne >miss
        ; cmp [rsi + 8], rcx
        ; jne >miss
        ; jmp QWORD [rsi + 16]
        ;miss:
        ; jmp QWORD [rbx + stub(Stub::OpenSend)]
    );
    let code = ops.finalize().unwrap_or_default();
    debug_assert!(code.len() <= PIC_BYTES);
    code
}
