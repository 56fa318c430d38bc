//! The pages of the Smalltalk stack. A page's frames begin at its base address and grow down.

use std::ops::Range;

use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

/// Variables: start of the stack plus one, bytes and number of pages, records of pages, and two words of
/// the heap.
pub(super) const NAMES: [&str; 6] = [
    "stackBasePlus1",
    "bytesPerPage",
    "numStackPages",
    "pages",
    "heapBase",
    "nilObj",
];

/// Maximum number of pages, and bytes of all; VMs have 50 to some hundreds, of 8 KiB.
const MAX_PAGES: u64 = 1 << 12;
const MAX_BYTES: u64 = 8 << 20;

/// A page's record (`StackPage`): its size, and offsets of the innermost frame's stack pointer and frame
/// pointer, and of the base address.
const RECORD: u64 = 80;
const HEAD_SP: u64 = 8;
const HEAD_FP: u64 = 16;
const BASE: usize = 32;

/// The stack pages.
#[derive(Clone, Debug)]
pub(super) struct StackPages {
    start: u64,
    bytes: u64,
    records: Avma,
    /// Base address of each page.
    bases: Vec<u64>,
}

impl StackPages {
    /// Reads the pages; `value` gives the value of a variable.
    ///
    /// # Errors
    /// Missing variables, impossible values; failed reads.
    pub fn read(
        value: impl Fn(&'static str) -> Result<u64, AdapterError>,
        memory: &dyn Memory,
    ) -> Result<Self, AdapterError> {
        let start = value("stackBasePlus1")?;
        let records = Avma(value("pages")?);
        if start == 0 || records.0 == 0 {
            let what = "stack pages";
            return Err(AdapterError::NotReady { what });
        }
        let start = start - 1;
        let sizes = (value("bytesPerPage")?, value("numStackPages")?);
        let impossible = |what, value| AdapterError::Implausible {
            what,
            value,
            at: records,
        };
        let (bytes, count) = sizes;
        if bytes == 0 || bytes > MAX_BYTES || !bytes.is_multiple_of(8) {
            return Err(impossible("size of stack pages", bytes));
        }
        let is_too_large = count > MAX_PAGES || bytes * count > MAX_BYTES;
        if count == 0 || is_too_large || start.checked_add(MAX_BYTES).is_none() {
            return Err(impossible("number of stack pages", count));
        }
        let length = count * RECORD;
        let cap = RECORD as usize * MAX_PAGES as usize;
        let all = memory.read_vec(records, length, cap);
        let all = all.map_err(AdapterError::reading("stack pages"))?;
        let mut bases = Vec::new();
        let mut page = start..start + bytes;
        for record in all.chunks_exact(RECORD as usize) {
            let base = record.get(BASE..).and_then(|rest| rest.first_chunk::<8>());
            let base = base.map_or(0, |base| u64::from_le_bytes(*base));
            if !page.contains(&base) || !base.is_multiple_of(8) {
                return Err(impossible("base of a stack page", base));
            }
            bases.push(base);
            page = page.end..page.end.saturating_add(bytes);
        }
        Ok(StackPages {
            start,
            bytes,
            records,
            bases,
        })
    }

    /// Whether the pages contain an address.
    pub fn hold(&self, at: u64) -> bool {
        self.index(at).is_some()
    }

    /// The page of an address.
    pub fn index(&self, at: u64) -> Option<usize> {
        let page = usize::try_from(at.checked_sub(self.start)? / self.bytes).ok()?;
        (page < self.bases.len() && at.is_multiple_of(8)).then_some(page)
    }

    /// The base address of a page: a word with the context that called its first frame.
    pub fn base(&self, page: usize) -> Option<u64> {
        self.bases.get(page).copied()
    }

    /// Addresses of a page up to its base address.
    pub fn range(&self, page: usize) -> Option<Range<u64>> {
        let start = self.start.checked_add(page as u64 * self.bytes)?;
        Some(start..self.base(page)?.checked_add(8)?)
    }

    /// Stack pointer and frame pointer of a page's innermost frame; valid while another page runs.
    pub fn head(&self, page: usize, memory: &dyn Memory) -> Option<(u64, u64)> {
        let record = self.records.checked_add(page as u64 * RECORD)?;
        let word = |at| memory.read_u64(record.checked_add(at)?).ok();
        Some((word(HEAD_SP)?, word(HEAD_FP)?))
    }
}
