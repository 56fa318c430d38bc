//! The records' encoding: protobuf messages. Unknown fields are skipped, absent
//! ones have their defaults, so a kind can grow without a new format version.
//!
//! `FORMAT.md` describes the encoding for readers in other languages; a field's
//! number there is its number here, and is never used again for something else.

mod budget;
mod code;
mod codes;
mod heap;
mod interpreter;
mod messages;
mod native;
mod process;
mod samples;

pub(crate) use samples::{decode_samples, encode_samples};

use crate::Record;
use prost::Message;

/// Why a message is not a record. It carries no text from the message: the
/// reader adds where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Not a message, or of a shape that none has.
    #[error("malformed message")]
    Malformed,
    /// A part that the record can't do without is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A number is out of its range.
    #[error("{0} is out of range")]
    Range(&'static str),
    /// Columns of a sample batch differ in length.
    #[error("sample columns of {0} differ in length")]
    Columns(&'static str),
    /// More nested messages, texts or samples than a message of its size may have.
    #[error("more parts than a message of its size may have")]
    TooManyParts,
}

impl From<prost::DecodeError> for WireError {
    fn from(_: prost::DecodeError) -> Self {
        WireError::Malformed
    }
}

/// The number of the kind that a sample batch has; samples have no kind of their own.
pub(crate) const SAMPLES_KIND: u32 = 11;

/// The kinds' numbers, encoders and decoders in one table.
macro_rules! kinds {
    ($($number:literal $variant:ident),+ $(,)?) => {
        /// All kinds but the samples', by number and message.
        #[cfg(test)]
        const KINDS: &[(u32, &str)] = &[$(($number, stringify!($variant))),+];

        /// Appends `record`'s message to `out` and returns its kind. A sample is not
        /// written alone: `None`.
        pub(crate) fn encode_record(record: &Record, out: &mut Vec<u8>) -> Option<u32> {
            match record {
                Record::Sample(_) => None,
                $(Record::$variant(inner) => {
                    // A Vec grows as needed: encoding into it can't fail.
                    let _ = messages::$variant::from(inner).encode(out);
                    Some($number)
                })+
            }
        }

        /// The record of that kind in `bytes`; `None` for a kind that this version
        /// does not know.
        pub(crate) fn decode_record(kind: u32, bytes: &[u8]) -> Option<Result<Record, WireError>> {
            Some(match kind {
                $($number => budget::decode::<messages::$variant>(bytes)
                    .and_then(TryInto::try_into)
                    .map(Record::$variant),)+
                _ => return None,
            })
        }
    };
}

kinds! {
    1 Session, 2 Limit, 3 Process, 4 ProcessEnd, 5 Thread, 6 ThreadUpdate, 7 ThreadEnd,
    8 Module, 9 Mapping, 10 Unmapping, 12 Constituent, 13 ConstituentGone,
    14 ConstituentMoved, 15 Method, 16 Collection, 17 Class, 18 Lifetime, 19 Counter,
    20 Fact, 21 Symbols, 22 Lost, 23 End, 24 ThreadCpu, 25 RegionRules,
    26 InterpreterRules,
    27 Compilation, 28 Mark,
}

#[cfg(test)]
mod tests;
