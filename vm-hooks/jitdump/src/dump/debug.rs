//! Debug information: source positions for the code of the next load record.

use std::collections::VecDeque;
use std::sync::Arc;

use vmscope_records::Avma;

use super::LineStart;
use super::fault::{DumpFlaw, MAX_LINES, MAX_NAME_BYTES};
use super::fields::Fields;
use super::names::Names;

/// Address, line, discriminator, terminating zero of the name.
const LEAST_ENTRY_BYTES: usize = 17;
/// Stands for the previous entry's name.
const SAME_NAME: &[u8] = b"\xff";
/// Greatest distance between code and its source positions, in bytes.
const MAX_DISTANCE: u64 = 256 << 20;
/// Padding at a record's end: fewer bytes than this, or zeros.
const ALIGNMENT: usize = 8;
/// Records waiting for a load. V8 and Erlang write each right before its load, possibly several
/// threads at once.
const MAX_PENDING: usize = 64;
/// Approximate memory limit for waiting records.
const MAX_PENDING_BYTES: usize = 32 << 20;

#[derive(Clone, Debug)]
pub(super) struct DebugInfo {
    at: u64,
    address: Avma,
    lines: Vec<RawLine>,
    files: Vec<FileName>,
    /// Number of entries beyond `MAX_LINES`.
    pub dropped: u64,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct RawLine {
    address: Avma,
    line: u32,
    column: u32,
    /// Index into `files`.
    file: usize,
}

#[derive(Clone, Debug)]
enum FileName {
    Told(Arc<str>),
    /// Apparently overwritten in the VM.
    Spoilt(Box<[u8]>),
    /// `SAME_NAME` in the first entry.
    Missing,
}

impl DebugInfo {
    /// Parses `body`, the bytes after the record header; `at` is the record's file offset.
    /// Unreadable bodies give `None`.
    pub fn parse(at: u64, body: &[u8], big_endian: bool, names: &mut Names) -> Option<Self> {
        let mut fields = Fields::new(body, big_endian);
        let address = Avma(fields.u64()?);
        let count = fields.u64()?;
        let mut rest = fields.rest();
        let most = rest.len() / LEAST_ENTRY_BYTES;
        let count = usize::try_from(count).ok().filter(|count| *count <= most)?;
        let kept = count.min(MAX_LINES);
        let near = |bytes: &[u8]| is_near(bytes, big_endian, address);
        // Only addresses near the code can mark name ends.
        let absolute = near(rest);
        let mut info = Self {
            at,
            address,
            lines: Vec::with_capacity(kept),
            files: Vec::new(),
            dropped: (count - kept) as u64,
            bytes: kept * size_of::<RawLine>(),
        };
        let mut last_name: Option<&[u8]> = None;
        for index in 0..kept {
            let mut fields = Fields::new(rest, big_endian);
            let address = Avma(fields.u64()?);
            let line = fields.u32()?;
            let column = fields.u32()?;
            let is_end = |after: &[u8]| match () {
                () if !absolute => true,
                () if index + 1 < count => near(after),
                () => after.len() < ALIGNMENT || after.iter().all(|byte| *byte == 0),
            };
            let (name, after) = split_name(fields.rest(), is_end, index + 1 == count)?;
            rest = after;
            if info.files.is_empty() || (name != SAME_NAME && last_name != Some(name)) {
                info.add_file(name, names);
                last_name = Some(name);
            }
            let file = info.files.len() - 1;
            info.lines.push(RawLine {
                address,
                line,
                column,
                file,
            });
        }
        Some(info)
    }

    fn add_file(&mut self, name: &[u8], names: &mut Names) {
        self.bytes += name.len() + size_of::<FileName>();
        self.files.push(match std::str::from_utf8(name) {
            _ if name == SAME_NAME => FileName::Missing,
            Ok(told) if !told.contains('\0') => FileName::Told(names.share(told)),
            _ => FileName::Spoilt(name.into()),
        });
    }

    /// Returns source positions for the code `code_name`, and the number of positions without file.
    fn lines(self, code_name: &str, names: &mut Names) -> (Vec<LineStart>, u64) {
        let unknown: Arc<str> = "".into();
        let mut name_of = |file: FileName| match file {
            FileName::Told(name) => Some(name),
            FileName::Missing => None,
            FileName::Spoilt(bytes) => match names.restore(&bytes, code_name) {
                None if !bytes.contains(&0) => Some(String::from_utf8_lossy(&bytes).into()),
                restored => restored,
            },
        };
        let files: Vec<Option<Arc<str>>> = self.files.into_iter().map(&mut name_of).collect();
        let mut nameless = 0;
        let mut lines: Vec<LineStart> = Vec::with_capacity(self.lines.len());
        for line in self.lines {
            let file = files.get(line.file).and_then(Clone::clone);
            nameless += u64::from(file.is_none());
            lines.push(LineStart {
                address: line.address,
                line: line.line,
                column: line.column,
                file: file.unwrap_or_else(|| Arc::clone(&unknown)),
            });
        }
        if !lines.is_sorted_by_key(|line| line.address) {
            lines.sort_by_key(|line| line.address);
        }
        (lines, nameless)
    }
}

/// Whether `bytes` can start an entry for code at `address`.
fn is_near(bytes: &[u8], big_endian: bool, address: Avma) -> bool {
    let entry = Fields::new(bytes, big_endian).u64();
    bytes.len() >= LEAST_ENTRY_BYTES
        && entry.is_some_and(|entry| entry.abs_diff(address.0) <= MAX_DISTANCE)
}

/// Splits off a name at the first zero accepted by `is_end`: overwritten names can contain zeros
/// (see `names.rs`). If `is_end` accepts no zero, the last name ends at the first zero; other names
/// give `None`.
fn split_name(bytes: &[u8], is_end: impl Fn(&[u8]) -> bool, last: bool) -> Option<(&[u8], &[u8])> {
    let bounded = bytes.get(..=MAX_NAME_BYTES).unwrap_or(bytes);
    let mut ends = memchr::memchr_iter(0, bounded)
        .filter_map(|zero| Some((bytes.get(..zero)?, bytes.get(zero + 1..)?)));
    let first = ends.clone().next();
    let found = ends.find(|(_, after)| is_end(after));
    if last { found.or(first) } else { found }
}

/// Debug information waiting for load records.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingDebugInfo {
    infos: VecDeque<DebugInfo>,
    bytes: usize,
}

/// Flaw, file offset, count.
pub(super) type FlawAt = (DumpFlaw, u64, u64);

impl PendingDebugInfo {
    /// Adds `info`; reports evicted records in `flaws`.
    pub fn put(&mut self, info: DebugInfo, flaws: &mut Vec<FlawAt>) {
        // Newer debug information for an address replaces older.
        if let Some(old) = self.remove(info.address) {
            flaws.push((DumpFlaw::Unclaimed, old.at, 1));
        }
        self.bytes += info.bytes;
        self.infos.push_back(info);
        while self.infos.len() > MAX_PENDING
            || (self.bytes > MAX_PENDING_BYTES && self.infos.len() > 1)
        {
            let Some(oldest) = self.infos.pop_front() else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(oldest.bytes);
            flaws.push((DumpFlaw::Unclaimed, oldest.at, 1));
        }
    }

    /// Removes and returns source positions for code at `address`.
    pub fn take(
        &mut self,
        address: Avma,
        code_name: &str,
        names: &mut Names,
        flaws: &mut Vec<FlawAt>,
    ) -> Vec<LineStart> {
        let Some(info) = self.remove(address) else {
            return Vec::new();
        };
        let at = info.at;
        let (lines, nameless) = info.lines(code_name, names);
        flaws.push((DumpFlaw::NoFile, at, nameless));
        lines
    }

    /// Drops all waiting records, counted as flaws.
    pub fn abandon(&mut self, flaws: &mut Vec<FlawAt>) {
        self.bytes = 0;
        for info in self.infos.drain(..) {
            flaws.push((DumpFlaw::Unclaimed, info.at, 1));
        }
    }

    fn remove(&mut self, address: Avma) -> Option<DebugInfo> {
        let at = self
            .infos
            .iter()
            .rposition(|info| info.address == address)?;
        let info = self.infos.remove(at)?;
        self.bytes = self.bytes.saturating_sub(info.bytes);
        Some(info)
    }
}
