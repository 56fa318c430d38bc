//! The records that hold nothing but numbers that matter: moves, unwinding information.

use vmscope_records::Avma;

use super::{Decoder, RECORD_BYTES, Record, Taken, is_range, missing};
use crate::dump::fault::{DumpError, DumpFlaw};
use crate::dump::fields::Fields;
use crate::dump::{Event, Header, Move};

/// With what a move begins: process, thread, five addresses or sizes and its number.
pub(super) const MOVE_BYTES: usize = RECORD_BYTES + 48;
/// With what unwinding information begins: three sizes.
pub(super) const UNWINDING_BYTES: usize = RECORD_BYTES + 24;

impl Decoder {
    pub(super) fn take_move(
        &mut self,
        header: Header,
        record: Record,
        mut fields: Fields<'_>,
        available: u64,
    ) -> Result<Taken, DumpError> {
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
            return Ok(Taken::NotYet);
        }
        self.fits();
        if !header.is_process(process) {
            self.flaws.add(DumpFlaw::OtherProcess, self.offset, 1);
            return Ok(Taken::Done(record.size.into(), None));
        }
        if !is_range(from, size) || !is_range(to, size) {
            self.flaws.add(DumpFlaw::NoRange, self.offset, 1);
            return Ok(Taken::Done(record.size.into(), None));
        }
        let event = Event::Move(Move {
            time: record.time,
            from: Avma(from),
            to: Avma(to),
            size,
            index,
        });
        Ok(Taken::Done(record.size.into(), Some(event)))
    }

    /// How to unwind the code that follows is not used; only whether it fits.
    pub(super) fn take_unwinding(
        &mut self,
        record: Record,
        mut fields: Fields<'_>,
        available: u64,
    ) -> Result<Taken, DumpError> {
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
            return Ok(Taken::NotYet);
        }
        self.fits();
        Ok(Taken::Done(record.size.into(), None))
    }
}
