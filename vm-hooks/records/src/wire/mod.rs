//! Encoding of records as protobuf messages. Readers skip unknown fields and default absent ones,
//! so kinds can grow without another format version.
//!
//! `FORMAT.md` describes the encoding for other languages. Field numbers are equal in code and
//! document, and never reused.

mod budget;
mod code;
mod codes;
mod heap;
mod interpreter;
pub(crate) mod messages;
mod native;
mod process;
mod samples;

pub(crate) use samples::{decode_samples, encode_samples};

use crate::{
    Arch, Avma, BytecodePc, ClassKey, CollectionKey, ConstituentKey, DurationNs, FileOffset,
    MethodKey, ModuleKey, Pid, ProcessKey, SiteKey, ThreadKey, Tid, TimeNs,
};
use prost::Message;

/// Reason why a message is no record. It contains no text of the message; the reader adds the
/// location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Undecodable bytes.
    #[error("malformed message")]
    Malformed,
    /// A required part is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A number out of range.
    #[error("{0} is out of range")]
    Range(&'static str),
    /// Columns of a sample batch with different lengths.
    #[error("sample columns of {0} differ in length")]
    Columns(&'static str),
    /// Too many nested messages, texts or samples for a message of its size.
    #[error("too many parts for the size of the message")]
    TooManyParts,
}

impl From<prost::DecodeError> for WireError {
    fn from(_: prost::DecodeError) -> Self {
        WireError::Malformed
    }
}

/// Appends `record` as a message `M` to `out`.
pub(crate) fn encode<M: Message>(record: &impl Wire<M>, out: &mut Vec<u8>) {
    // Encoding into a growing Vec can't fail.
    let _ = record.to_wire().encode(out);
}

/// Decodes a message `M` as a record; also returns its approximate memory in bytes.
pub(crate) fn decode<M, T>(bytes: &[u8]) -> Result<(T, usize), WireError>
where
    M: Message + Default + budget::Parts,
    T: Wire<M>,
{
    let (message, memory) = budget::decode::<M>(bytes)?;
    Ok((T::from_wire(message)?, memory))
}

/// A record, or a part of a record, with its message form `M`.
pub(crate) trait Wire<M>: Sized {
    fn to_wire(&self) -> M;
    fn from_wire(message: M) -> Result<Self, WireError>;
}

impl<M, T: Wire<M>> Wire<M> for Box<T> {
    fn to_wire(&self) -> M {
        (**self).to_wire()
    }

    fn from_wire(message: M) -> Result<Self, WireError> {
        T::from_wire(message).map(Box::new)
    }
}

impl<M, T: Wire<M>> Wire<Option<M>> for Option<T> {
    fn to_wire(&self) -> Option<M> {
        self.as_ref().map(T::to_wire)
    }

    fn from_wire(message: Option<M>) -> Result<Self, WireError> {
        message.map(T::from_wire).transpose()
    }
}

impl<M, T: Wire<M>> Wire<Vec<M>> for Vec<T> {
    fn to_wire(&self) -> Vec<M> {
        self.iter().map(T::to_wire).collect()
    }

    fn from_wire(messages: Vec<M>) -> Result<Self, WireError> {
        messages.into_iter().map(T::from_wire).collect()
    }
}

/// Types with equal form in records and messages.
macro_rules! equal {
    ($($type:ty),+) => {$(
        impl Wire<$type> for $type {
            fn to_wire(&self) -> $type {
                self.clone()
            }

            fn from_wire(value: $type) -> Result<Self, WireError> {
                Ok(value)
            }
        }
    )+};
}
equal!(bool, u32, u64, f64, String, Vec<u8>);

macro_rules! numbers {
    ($inner:ty: $($type:ident),+) => {$(
        impl Wire<$inner> for $type {
            fn to_wire(&self) -> $inner {
                self.0
            }

            fn from_wire(number: $inner) -> Result<Self, WireError> {
                Ok($type(number))
            }
        }
    )+};
}
numbers!(u32: BytecodePc, ModuleKey, Pid, ProcessKey, ThreadKey, Tid);
numbers!(u64: Avma, ClassKey, CollectionKey, ConstituentKey, DurationNs, FileOffset, MethodKey);
numbers!(u64: SiteKey, TimeNs);

impl Wire<u32> for Arch {
    fn to_wire(&self) -> u32 {
        u32::from(self.elf_machine())
    }

    fn from_wire(machine: u32) -> Result<Self, WireError> {
        let machine = u16::try_from(machine).map_err(|_| WireError::Range("elf_machine"))?;
        Ok(Arch::from_elf_machine(machine))
    }
}

#[cfg(test)]
mod tests;
