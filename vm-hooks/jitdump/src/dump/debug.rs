//! Debug information: the source positions of the code that the next load tells of.

use std::collections::VecDeque;
use std::sync::Arc;

use vmscope_records::Avma;

use super::LineStart;
use super::fault::{DumpFlaw, MAX_LINES, MAX_NAME_BYTES};
use super::fields::Fields;
use super::names::Names;

/// An entry is an address, a line, a discriminator, and a name of at least its end.
const LEAST_ENTRY_BYTES: usize = 17;
/// The name that stands for that of the entry before it.
const SAME_NAME: &[u8] = b"\xff";
/// No code's source positions lie further from it than this.
const MAX_DISTANCE: u64 = 256 << 20;
/// Padding at the end of a record is shorter than this, or zeros.
const ALIGNMENT: usize = 8;
/// What may wait for its load: V8 and Erlang write it right before the load, and a few
/// threads may do so at once.
const MAX_WAITING: usize = 64;
/// What may wait, in bytes of memory, roughly.
const MAX_WAITING_BYTES: usize = 32 << 20;

/// The source positions of one piece of code, as the record tells them.
#[derive(Clone, Debug)]
pub(super) struct DebugInfo {
    at: u64,
    address: Avma,
    lines: Vec<RawLine>,
    files: Vec<FileName>,
    /// How many more there were than are kept.
    pub dropped: u64,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct RawLine {
    address: Avma,
    line: u32,
    column: u32,
    /// Which of the files; the last one where there is none.
    file: usize,
}

#[derive(Clone, Debug)]
enum FileName {
    Told(Arc<str>),
    /// Overwritten in the VM, as far as can be seen.
    Spoilt(Box<[u8]>),
    /// It is to be that of the entry before, and there is none.
    Missing,
}

impl DebugInfo {
    /// The record that begins at `at`, whose body (what follows the record's header)
    /// this is; `None` when it can't be read.
    pub fn parse(at: u64, body: &[u8], big_endian: bool, names: &mut Names) -> Option<Self> {
        let mut fields = Fields::new(body, big_endian);
        let address = Avma(fields.u64()?);
        let count = fields.u64()?;
        let mut rest = fields.rest();
        let most = rest.len() / LEAST_ENTRY_BYTES;
        let count = usize::try_from(count).ok().filter(|count| *count <= most)?;
        let kept = count.min(MAX_LINES);
        let near = |bytes: &[u8]| is_near(bytes, big_endian, address);
        // Where addresses are not near the code, they can't tell where a name ends.
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

    /// The source positions, for the code `code_name`, and how many of them have no
    /// file.
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

/// Whether an entry of the code at `address` may begin with `bytes`.
fn is_near(bytes: &[u8], big_endian: bool, address: Avma) -> bool {
    let entry = Fields::new(bytes, big_endian).u64();
    bytes.len() >= LEAST_ENTRY_BYTES
        && entry.is_some_and(|entry| entry.abs_diff(address.0) <= MAX_DISTANCE)
}

/// A name and what follows it: it ends at the first zero after which `is_end`, for a
/// spoilt name may have zeros in it (see `names.rs`). `None` when there is no such
/// zero; the last name may then end at the first.
fn split_name(bytes: &[u8], is_end: impl Fn(&[u8]) -> bool, last: bool) -> Option<(&[u8], &[u8])> {
    let bounded = bytes.get(..=MAX_NAME_BYTES).unwrap_or(bytes);
    let mut ends = memchr::memchr_iter(0, bounded)
        .filter_map(|zero| Some((bytes.get(..zero)?, bytes.get(zero + 1..)?)));
    let first = ends.clone().next();
    let found = ends.find(|(_, after)| is_end(after));
    if last { found.or(first) } else { found }
}

/// The debug information that waits for its load.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    infos: VecDeque<DebugInfo>,
    bytes: usize,
}

/// What was wrong when something was put or taken: what, where, how many.
pub(super) type Complaint = (DumpFlaw, u64, u64);

impl Waiting {
    /// Lets `info` wait, and says what had to make room for it.
    pub fn put(&mut self, info: DebugInfo, complaints: &mut Vec<Complaint>) {
        // What is told anew holds.
        if let Some(old) = self.remove(info.address) {
            complaints.push((DumpFlaw::Unclaimed, old.at, 1));
        }
        self.bytes += info.bytes;
        self.infos.push_back(info);
        while self.infos.len() > MAX_WAITING
            || (self.bytes > MAX_WAITING_BYTES && self.infos.len() > 1)
        {
            let Some(oldest) = self.infos.pop_front() else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(oldest.bytes);
            complaints.push((DumpFlaw::Unclaimed, oldest.at, 1));
        }
    }

    /// The source positions of the code at `address`.
    pub fn take(
        &mut self,
        address: Avma,
        code_name: &str,
        names: &mut Names,
        complaints: &mut Vec<Complaint>,
    ) -> Vec<LineStart> {
        let Some(info) = self.remove(address) else {
            return Vec::new();
        };
        let at = info.at;
        let (lines, nameless) = info.lines(code_name, names);
        complaints.push((DumpFlaw::NoFile, at, nameless));
        lines
    }

    /// All that still waits, in vain.
    pub fn abandon(&mut self, complaints: &mut Vec<Complaint>) {
        self.bytes = 0;
        for info in self.infos.drain(..) {
            complaints.push((DumpFlaw::Unclaimed, info.at, 1));
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
