//! Decodes windows of a growing dump into events.

mod moves;

use vmscope_records::Avma;

use moves::{MOVE_BYTES, UNWINDING_BYTES};

use super::debug::{DebugInfo, FlawAt, PendingDebugInfo};
use super::fault::{
    DumpError, DumpFlaw, MAX_KIND, MAX_LOAD_BYTES, MAX_MISFITS, MAX_NAME_BYTES, MAX_RECORD_BYTES,
    MAX_SLACK_BYTES, RecordFault,
};
use super::fields::Fields;
use super::header::{HEADER_BYTES, Header};
use super::names::Names;
use super::{Event, Load};
use crate::Flaws;

/// Record header: kind, size, time.
const RECORD_BYTES: usize = 16;
/// Fixed part of a load: process, thread, three addresses or sizes, code number.
const LOAD_BYTES: usize = RECORD_BYTES + 40;
const DEBUG_BYTES: usize = RECORD_BYTES + 16;

/// Decodes a growing dump, record by record.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    header: Option<Header>,
    /// File offset of the next record.
    offset: u64,
    names: Names,
    pending: PendingDebugInfo,
    flaws: Flaws<DumpFlaw>,
    stopped: Option<DumpError>,
    /// File offset of the last consecutive misfit record; number of such records.
    suspect: Option<u64>,
    misfits: u32,
}

/// Result of a decoding step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Decoded record.
    Event(Event),
    /// Number of bytes needed from [`Decoder::offset`]: present in the file, missing in the window.
    /// At most [`MAX_RECORD_BYTES`].
    Need(usize),
    /// The file ends before the next record's end.
    NotYet,
}

/// Result of decoding one record.
enum RecordResult {
    /// Number of bytes consumed.
    Done(u64, Option<Event>),
    Need(usize),
    NotYet,
}

#[derive(Clone, Copy)]
struct Record {
    kind: u32,
    size: u32,
    time: u64,
}

impl Decoder {
    /// Creates a decoder for the start of a dump.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Header of the dump; `None` before decoding it.
    #[must_use]
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// File offset of the next bytes needed.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Flaws found so far.
    #[must_use]
    pub fn flaws(&self) -> &Flaws<DumpFlaw> {
        &self.flaws
    }

    /// Decodes until the next event. `window` contains available bytes from [`Decoder::offset`];
    /// `length` is the current file length.
    ///
    /// # Errors
    ///
    /// [`DumpError`] if decoding can't continue; later calls repeat the error.
    pub fn step(&mut self, window: &[u8], length: u64) -> Result<Step, DumpError> {
        let mut window = window;
        loop {
            if let Some(error) = self.stopped {
                return Err(error);
            }
            let available = length.saturating_sub(self.offset);
            // Ignores bytes beyond the current end of the file.
            let bounded = usize::try_from(available).unwrap_or(usize::MAX);
            window = window.get(..bounded).unwrap_or(window);
            let result = match self.header {
                None => self.take_header(window, available),
                Some(header) => self.take_record(header, window, available),
            };
            match result {
                Err(error) => self.stopped = Some(error),
                Ok(RecordResult::Need(bytes)) => return Ok(Step::Need(bytes)),
                Ok(RecordResult::NotYet) => return Ok(Step::NotYet),
                Ok(RecordResult::Done(bytes, event)) => {
                    self.offset = self.offset.saturating_add(bytes);
                    let past = usize::try_from(bytes).unwrap_or(usize::MAX);
                    window = window.get(past..).unwrap_or_default();
                    if let Some(event) = event {
                        return Ok(Step::Event(event));
                    }
                }
            }
        }
    }

    /// Counts and skips incomplete records of a finished file, `length` bytes long.
    pub fn finish(&mut self, length: u64) {
        let mut flaws = Vec::new();
        self.pending.abandon(&mut flaws);
        let torn = length.saturating_sub(self.offset);
        if self.stopped.is_none() {
            flaws.push((DumpFlaw::Torn, self.offset, (torn > 0).into()));
            self.offset = self.offset.max(length);
        }
        self.count_flaws(flaws);
    }

    fn take_header(&mut self, window: &[u8], available: u64) -> Result<RecordResult, DumpError> {
        let Some(bytes) = window.first_chunk::<HEADER_BYTES>() else {
            return Ok(missing(HEADER_BYTES, available));
        };
        let (header, size) = Header::parse(bytes)?;
        if u64::from(size) > available {
            return Ok(RecordResult::NotYet);
        }
        self.header = Some(header);
        Ok(RecordResult::Done(size.into(), None))
    }

    fn take_record(
        &mut self,
        header: Header,
        window: &[u8],
        available: u64,
    ) -> Result<RecordResult, DumpError> {
        let mut fields = Fields::new(window, header.big_endian);
        let (Some(kind), Some(size), Some(time)) = (fields.u32(), fields.u32(), fields.u64())
        else {
            return Ok(missing(RECORD_BYTES, available));
        };
        let record = Record { kind, size, time };
        let (least, most) = match kind {
            // Shortest name: only the terminating zero.
            0 => (LOAD_BYTES + 1, MAX_LOAD_BYTES),
            1 => (MOVE_BYTES, MAX_RECORD_BYTES),
            2 => (DEBUG_BYTES, MAX_RECORD_BYTES),
            4 => (UNWINDING_BYTES, MAX_RECORD_BYTES),
            _ => (RECORD_BYTES, MAX_RECORD_BYTES),
        };
        let least = u32::try_from(least).unwrap_or(u32::MAX);
        if kind >= MAX_KIND {
            return Err(self.bad(record, RecordFault::NoSuchKind));
        }
        if size < least {
            return Err(self.bad(record, RecordFault::TooSmall { least }));
        }
        if size > most {
            return Err(self.bad(record, RecordFault::TooLarge { most }));
        }
        if self.misfits > MAX_MISFITS {
            return Err(self.bad(record, RecordFault::Misfits));
        }
        let skip = RecordResult::Done(size.into(), None);
        let whole = u64::from(size) <= available;
        match kind {
            0 => self.take_load(header, record, fields, available),
            2 => {
                let Some(bytes) = usize::try_from(size).ok().and_then(|end| window.get(..end))
                else {
                    return Ok(missing(size as usize, available));
                };
                let body = bytes.get(RECORD_BYTES..).unwrap_or_default();
                self.take_debug(body, header.big_endian);
                Ok(skip)
            }
            1 => self.take_move(header, record, fields, available),
            3 => {
                self.check_slack(record, RECORD_BYTES as u64)?;
                if !whole {
                    return Ok(RecordResult::NotYet);
                }
                self.fits();
                Ok(RecordResult::Done(size.into(), Some(Event::Close)))
            }
            4 => self.take_unwinding(record, fields, available),
            _ if whole => {
                self.flaws.add(DumpFlaw::UnknownKind, self.offset, 1);
                Ok(skip)
            }
            _ => Ok(RecordResult::NotYet),
        }
    }

    fn take_load(
        &mut self,
        header: Header,
        record: Record,
        mut fields: Fields<'_>,
        available: u64,
    ) -> Result<RecordResult, DumpError> {
        let (Some(process), Some(_thread), Some(_virtual), Some(address), Some(code), Some(index)) = (
            fields.u32(),
            fields.u32(),
            fields.u64(),
            fields.u64(),
            fields.u64(),
            fields.u64(),
        ) else {
            return Ok(missing(LOAD_BYTES, available));
        };
        let whole = u64::from(record.size) <= available;
        // Name, terminating zero, padding.
        let Some(room) = u64::from(record.size - LOAD_BYTES as u32).checked_sub(code) else {
            return self.misfit(record, available);
        };
        let bound = usize::try_from(room).map_or(MAX_NAME_BYTES, |room| room.min(MAX_NAME_BYTES));
        let rest = fields.rest();
        let named = rest.get(..bound).unwrap_or(rest);
        let (name, cut) = match memchr::memchr(0, named) {
            Some(end) => (named.get(..end).unwrap_or_default(), false),
            // The terminating zero can arrive before the rest of the record, and reveals a false
            // size.
            None if named.len() < bound => {
                let at_hand = LOAD_BYTES + named.len();
                let there = usize::try_from(available).unwrap_or(usize::MAX);
                let wanted = there.min(LOAD_BYTES + bound);
                return Ok(match wanted > at_hand {
                    true => RecordResult::Need(wanted),
                    false => RecordResult::NotYet,
                });
            }
            None => (named, true),
        };
        let slack = room.saturating_sub(name.len() as u64 + 1);
        let bounded = u64::from(MAX_SLACK_BYTES);
        if slack > bounded {
            let most = u64::from(record.size).saturating_sub(slack - bounded);
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            return Err(self.bad(record, RecordFault::TooLarge { most }));
        }
        if !whole {
            return Ok(RecordResult::NotYet);
        }
        let done = |event| Ok(RecordResult::Done(record.size.into(), event));
        if cut && room <= MAX_NAME_BYTES as u64 {
            self.flaws.add(DumpFlaw::EndlessName, self.offset, 1);
            self.suspects();
            return done(None);
        }
        self.fits();
        if !is_range(address, code) {
            self.flaws.add(DumpFlaw::NoRange, self.offset, 1);
            return done(None);
        }
        self.flaws.add(DumpFlaw::CutName, self.offset, cut.into());
        let name = String::from_utf8_lossy(name).into_owned();
        self.names.learn(&name);
        let mut flaws = Vec::new();
        let address = Avma(address);
        let lines = self
            .pending
            .take(address, &name, &mut self.names, &mut flaws);
        if !header.is_process(process) {
            self.flaws.add(DumpFlaw::OtherProcess, self.offset, 1);
            return done(None);
        }
        self.count_flaws(flaws);
        done(Some(Event::Load(Load {
            time: record.time,
            address,
            size: code,
            index,
            name,
            lines,
        })))
    }

    fn take_debug(&mut self, body: &[u8], big_endian: bool) {
        let mut flaws = Vec::new();
        match DebugInfo::parse(self.offset, body, big_endian, &mut self.names) {
            Some(info) => {
                self.fits();
                flaws.push((DumpFlaw::TooManyLines, self.offset, info.dropped));
                self.pending.put(info, &mut flaws);
            }
            None => {
                flaws.push((DumpFlaw::BadDebugInfo, self.offset, 1));
                self.suspects();
            }
        }
        self.count_flaws(flaws);
    }

    /// Skips a record with contents larger than its size, trusting the size.
    fn misfit(&mut self, record: Record, available: u64) -> Result<RecordResult, DumpError> {
        if u64::from(record.size) > available {
            return Ok(RecordResult::NotYet);
        }
        self.flaws.add(DumpFlaw::Misfit, self.offset, 1);
        self.suspects();
        Ok(RecordResult::Done(record.size.into(), None))
    }

    /// Rejects far oversized records: they would swallow other records.
    fn check_slack(&self, record: Record, needed: u64) -> Result<(), DumpError> {
        let most = needed.saturating_add(MAX_SLACK_BYTES.into());
        if u64::from(record.size) > most {
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            return Err(self.bad(record, RecordFault::TooLarge { most }));
        }
        Ok(())
    }

    fn suspects(&mut self) {
        self.suspect = Some(self.offset);
        self.misfits = self.misfits.saturating_add(1);
    }

    fn fits(&mut self) {
        self.suspect = None;
        self.misfits = 0;
    }

    fn bad(&self, record: Record, why: RecordFault) -> DumpError {
        DumpError::Record {
            at: self.offset,
            kind: record.kind,
            size: record.size,
            why,
            suspect: self.suspect,
        }
    }

    fn count_flaws(&mut self, flaws: Vec<FlawAt>) {
        for (flaw, at, count) in flaws {
            self.flaws.add(flaw, at, count);
        }
    }
}

/// Missing `bytes`: ready to read, or still unwritten.
fn missing(bytes: usize, available: u64) -> RecordResult {
    if bytes as u64 <= available {
        RecordResult::Need(bytes)
    } else {
        RecordResult::NotYet
    }
}

fn is_range(address: u64, size: u64) -> bool {
    size > 0 && address.checked_add(size).is_some()
}
