//! The decoder: from windows of a dump that is being written to what it tells.

mod small;

use vmscope_records::Avma;

use small::{MOVE_BYTES, UNWINDING_BYTES};

use super::debug::{Complaint, DebugInfo, Waiting};
use super::fault::{
    DumpError, DumpFlaw, MAX_KIND, MAX_LOAD_BYTES, MAX_MISFITS, MAX_NAME_BYTES, MAX_RECORD_BYTES,
    MAX_SLACK_BYTES, RecordFault,
};
use super::fields::Fields;
use super::header::{HEADER_BYTES, Header};
use super::names::Names;
use super::{Event, Load};
use crate::Flaws;

/// Every record begins with its kind, its size, and its time.
const RECORD_BYTES: usize = 16;
/// With what a load begins: process, thread, three addresses or sizes, its number.
const LOAD_BYTES: usize = RECORD_BYTES + 40;
const DEBUG_BYTES: usize = RECORD_BYTES + 16;

/// Decodes a dump, record by record, while it is being written.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    header: Option<Header>,
    /// Where the next record begins.
    offset: u64,
    names: Names,
    waiting: Waiting,
    flaws: Flaws<DumpFlaw>,
    stopped: Option<DumpError>,
    /// The last record in a row whose contents did not fit, and how many in that row.
    suspect: Option<u64>,
    misfits: u32,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The dump told this.
    Event(Event),
    /// So many bytes from [`Decoder::offset`] on are needed to go on; they are in the
    /// file, and the window did not have them. At most
    /// [`MAX_RECORD_BYTES`].
    Need(usize),
    /// What follows is not in the file yet.
    NotYet,
}

/// What came of a record.
enum Taken {
    /// So many bytes of the file are done with.
    Done(u64, Option<Event>),
    Need(usize),
    NotYet,
}

/// What every record begins with.
#[derive(Clone, Copy)]
struct Record {
    kind: u32,
    size: u32,
    time: u64,
}

impl Decoder {
    /// A decoder at the beginning of a dump.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The head of the dump; `None` as long as it was not read.
    #[must_use]
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Where the next bytes that are needed lie, in bytes from the file's start.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What was wrong so far and could be gone past.
    #[must_use]
    pub fn flaws(&self) -> &Flaws<DumpFlaw> {
        &self.flaws
    }

    /// Goes on. `window` is what the file has from [`Decoder::offset`] on, as much of
    /// it as is at hand; `length` is how long the file is now.
    ///
    /// # Errors
    ///
    /// [`DumpError`] when the dump can be read no further; the same again from then on.
    pub fn step(&mut self, window: &[u8], length: u64) -> Result<Step, DumpError> {
        let mut window = window;
        loop {
            if let Some(error) = self.stopped {
                return Err(error);
            }
            let available = length.saturating_sub(self.offset);
            // A window of what the file does not have any more is not looked at.
            let bounded = usize::try_from(available).unwrap_or(usize::MAX);
            window = window.get(..bounded).unwrap_or(window);
            let taken = match self.header {
                None => self.take_header(window, available),
                Some(header) => self.take_record(header, window, available),
            };
            match taken {
                Err(error) => self.stopped = Some(error),
                Ok(Taken::Need(bytes)) => return Ok(Step::Need(bytes)),
                Ok(Taken::NotYet) => return Ok(Step::NotYet),
                Ok(Taken::Done(bytes, event)) => {
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

    /// Counts what can't be completed any more, when nothing will be added to the
    /// file, whose length is `length`, and goes past it.
    pub fn finish(&mut self, length: u64) {
        let mut complaints = Vec::new();
        self.waiting.abandon(&mut complaints);
        let torn = length.saturating_sub(self.offset);
        if self.stopped.is_none() {
            complaints.push((DumpFlaw::Torn, self.offset, (torn > 0).into()));
            self.offset = self.offset.max(length);
        }
        self.complain(complaints);
    }

    fn take_header(&mut self, window: &[u8], available: u64) -> Result<Taken, DumpError> {
        let Some(bytes) = window.first_chunk::<HEADER_BYTES>() else {
            return Ok(missing(HEADER_BYTES, available));
        };
        let (header, size) = Header::parse(bytes)?;
        if u64::from(size) > available {
            return Ok(Taken::NotYet);
        }
        self.header = Some(header);
        Ok(Taken::Done(size.into(), None))
    }

    fn take_record(
        &mut self,
        header: Header,
        window: &[u8],
        available: u64,
    ) -> Result<Taken, DumpError> {
        let mut fields = Fields::new(window, header.big_endian);
        let (Some(kind), Some(size), Some(time)) = (fields.u32(), fields.u32(), fields.u64())
        else {
            return Ok(missing(RECORD_BYTES, available));
        };
        let record = Record { kind, size, time };
        let (least, most) = match kind {
            // A name is at least its end.
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
        let skip = Taken::Done(size.into(), None);
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
                    return Ok(Taken::NotYet);
                }
                self.fits();
                Ok(Taken::Done(size.into(), Some(Event::Close)))
            }
            4 => self.take_unwinding(record, fields, available),
            _ if whole => {
                self.flaws.add(DumpFlaw::UnknownKind, self.offset, 1);
                Ok(skip)
            }
            _ => Ok(Taken::NotYet),
        }
    }

    fn take_load(
        &mut self,
        header: Header,
        record: Record,
        mut fields: Fields<'_>,
        available: u64,
    ) -> Result<Taken, DumpError> {
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
        // The name, its end, and padding.
        let Some(room) = u64::from(record.size - LOAD_BYTES as u32).checked_sub(code) else {
            return self.misfit(record, available);
        };
        let bound = usize::try_from(room).map_or(MAX_NAME_BYTES, |room| room.min(MAX_NAME_BYTES));
        let rest = fields.rest();
        let named = rest.get(..bound).unwrap_or(rest);
        let (name, cut) = match memchr::memchr(0, named) {
            Some(end) => (named.get(..end).unwrap_or_default(), false),
            // The end may be there although all of the room is not: if the size lies,
            // that tells.
            None if named.len() < bound => {
                let at_hand = LOAD_BYTES + named.len();
                let there = usize::try_from(available).unwrap_or(usize::MAX);
                let wanted = there.min(LOAD_BYTES + bound);
                return Ok(match wanted > at_hand {
                    true => Taken::Need(wanted),
                    false => Taken::NotYet,
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
            return Ok(Taken::NotYet);
        }
        let done = |event| Ok(Taken::Done(record.size.into(), event));
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
        let mut complaints = Vec::new();
        let address = Avma(address);
        let lines = self
            .waiting
            .take(address, &name, &mut self.names, &mut complaints);
        if !header.is_process(process) {
            self.flaws.add(DumpFlaw::OtherProcess, self.offset, 1);
            return done(None);
        }
        self.complain(complaints);
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
        let mut complaints = Vec::new();
        match DebugInfo::parse(self.offset, body, big_endian, &mut self.names) {
            Some(info) => {
                self.fits();
                complaints.push((DumpFlaw::TooManyLines, self.offset, info.dropped));
                self.waiting.put(info, &mut complaints);
            }
            None => {
                complaints.push((DumpFlaw::BadDebugInfo, self.offset, 1));
                self.suspects();
            }
        }
        self.complain(complaints);
    }

    /// A record's contents need more than its size: if that is right, the next record
    /// is where it says.
    fn misfit(&mut self, record: Record, available: u64) -> Result<Taken, DumpError> {
        if u64::from(record.size) > available {
            return Ok(Taken::NotYet);
        }
        self.flaws.add(DumpFlaw::Misfit, self.offset, 1);
        self.suspects();
        Ok(Taken::Done(record.size.into(), None))
    }

    /// A record that is far larger than what it holds has swallowed others.
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

    fn complain(&mut self, complaints: Vec<Complaint>) {
        for (flaw, at, count) in complaints {
            self.flaws.add(flaw, at, count);
        }
    }
}

/// What a window that lacks some of the `bytes` means: they are there to be read, or
/// not yet.
fn missing(bytes: usize, available: u64) -> Taken {
    if bytes as u64 <= available {
        Taken::Need(bytes)
    } else {
        Taken::NotYet
    }
}

fn is_range(address: u64, size: u64) -> bool {
    size > 0 && address.checked_add(size).is_some()
}
