//! Records with numbers only: moves; unwinding information (contents ignored).

use vmscope_records::Avma;

use super::{Decoder, RECORD_BYTES, Record, RecordResult, is_range, missing};
use crate::dump::fault::{DumpError, DumpFlaw};
use crate::dump::fields::Fields;
use crate::dump::{Event, Header, Move};

/// Fixed part of a move: process, thread, five addresses or sizes, code number.
pub(super) const MOVE_BYTES: usize = RECORD_BYTES + 48;
/// Fixed part of unwinding information: three sizes.
pub(super) const UNWINDING_BYTES: usize = RECORD_BYTES + 24;

impl Decoder {
    pub(super) fn take_move(
        &mut self,
        header: Header,
        record: Record,
        mut fields: Fields<'_>,
        available: u64,
    ) -> Result<RecordResult, DumpError> {
        let (
            Some(process),
            Some(_thread),
            Some(_virtual),
            Some(from),
            Some(to),
            Some(size),
            Some(index),
        ) = (
            fields.u32(),
            fields.u32(),
            fields.u64(),
            fields.u64(),
            fields.u64(),
            fields.u64(),
            fields.u64(),
        )
        else {
            return Ok(missing(MOVE_BYTES, available));
        };
        self.check_slack(record, MOVE_BYTES as u64)?;
        if u64::from(record.size) > available {
            return Ok(RecordResult::NotYet);
        }
        self.fits();
        if !header.is_process(process) {
            self.flaws.add(DumpFlaw::OtherProcess, self.offset, 1);
            return Ok(RecordResult::Done(record.size.into(), None));
        }
        if !is_range(from, size) || !is_range(to, size) {
            self.flaws.add(DumpFlaw::NoRange, self.offset, 1);
            return Ok(RecordResult::Done(record.size.into(), None));
        }
        let event = Event::Move(Move {
            time: record.time,
            from: Avma(from),
            to: Avma(to),
            size,
            index,
        });
        Ok(RecordResult::Done(record.size.into(), Some(event)))
    }

    /// Skips unwinding information; checks only its size.
    pub(super) fn take_unwinding(
        &mut self,
        record: Record,
        mut fields: Fields<'_>,
        available: u64,
    ) -> Result<RecordResult, DumpError> {
        let (Some(tables), Some(_header), Some(_mapped)) =
            (fields.u64(), fields.u64(), fields.u64())
        else {
            return Ok(missing(UNWINDING_BYTES, available));
        };
        let needed = tables.saturating_add(UNWINDING_BYTES as u64);
        if needed > record.size.into() {
            return self.misfit(record, available);
        }
        self.check_slack(record, needed)?;
        if u64::from(record.size) > available {
            return Ok(RecordResult::NotYet);
        }
        self.fits();
        Ok(RecordResult::Done(record.size.into(), None))
    }
}
