//! How values become words, and words values again.
//!
//! Encoding allocates nothing: words go into a [`Sink`], either the ring or a counter. Decoding
//! trusts no count: the decoder compares each count with the remaining words before allocating. A
//! decoded value therefore takes at most a few times its words' memory.

use std::borrow::Cow;
use std::fmt;

/// The longest text, in bytes. Longer ones are cut.
pub const LONGEST_TEXT: usize = 64 << 10;

/// Takes encoded words.
pub trait Sink {
    /// Takes one word.
    fn word(&mut self, word: u64);
}

/// Counts words.
#[derive(Debug, Default)]
pub struct Length(pub usize);

impl Sink for Length {
    #[inline]
    fn word(&mut self, _word: u64) {
        self.0 = self.0.saturating_add(1);
    }
}

impl Sink for Vec<u64> {
    fn word(&mut self, word: u64) {
        self.push(word);
    }
}

/// A malformed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The record ends before the event does.
    Short,
    /// A count is larger than the rest of the record allows.
    Count(u64),
    /// A number without meaning in this field.
    Number(u64),
    /// A kind of a later version.
    Kind(u8),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => write!(f, "the record ends before the event does"),
            Self::Count(count) => write!(f, "a count of {count} does not fit the record"),
            Self::Number(number) => write!(f, "the number {number} has no meaning at its place"),
            Self::Kind(kind) => write!(f, "events of kind {kind} are not known"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Undecoded words of a record.
#[derive(Clone, Copy, Debug)]
pub struct Words<'w>(pub &'w [u64]);

impl Words<'_> {
    /// Takes the next word.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`] if there is none.
    pub fn take(&mut self) -> Result<u64, DecodeError> {
        let (first, rest) = self.0.split_first().ok_or(DecodeError::Short)?;
        self.0 = rest;
        Ok(*first)
    }

    /// Takes a count of values, each `least` words or longer.
    fn count(&mut self, least: usize) -> Result<usize, DecodeError> {
        let word = self.take()?;
        let count = usize::try_from(word).map_err(|_| DecodeError::Count(word))?;
        match count.checked_mul(least.max(1)) {
            Some(words) if words <= self.0.len() => Ok(count),
            _ => Err(DecodeError::Count(word)),
        }
    }
}

/// A value with an encoding in words.
pub trait Wire: Sized {
    /// The least number of words.
    const LEAST: usize;

    /// Pushes the value's words. Pushes the same words each time.
    fn encode<S: Sink>(&self, sink: &mut S);

    /// Takes the value's words.
    ///
    /// # Errors
    ///
    /// If the words are malformed.
    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError>;
}

/// A text that a VM publishes: UTF-8 as a rule, but any bytes are taken. Cut at
/// [`LONGEST_TEXT`].
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Text<'a>(Cow<'a, [u8]>);

impl Text<'_> {
    /// The text, with replacement characters for invalid UTF-8.
    #[must_use]
    pub fn to_str(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_str().fmt(f)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_str().fmt(f)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text.as_bytes()))
    }
}

impl<'a> From<&'a [u8]> for Text<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(Cow::Borrowed(bytes))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text.into_bytes()))
    }
}

/// Pushes bytes, eight to a word, the first one lowest.
fn encode_bytes<S: Sink>(bytes: &[u8], sink: &mut S) {
    sink.word(bytes.len() as u64);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        sink.word(u64::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        let bytes = rest.iter().rev();
        sink.word(bytes.fold(0, |word, &byte| word << 8 | u64::from(byte)));
    }
}

fn decode_bytes(words: &mut Words<'_>) -> Result<Vec<u8>, DecodeError> {
    let word = words.take()?;
    let count = usize::try_from(word).map_err(|_| DecodeError::Count(word))?;
    let (taken, rest) =
        (words.0.split_at_checked(count.div_ceil(8))).ok_or(DecodeError::Count(word))?;
    words.0 = rest;
    let mut bytes = Vec::with_capacity(taken.len() * 8);
    for word in taken {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.truncate(count);
    Ok(bytes)
}

impl Wire for Text<'_> {
    const LEAST: usize = 1;

    #[inline]
    fn encode<S: Sink>(&self, sink: &mut S) {
        let bytes = self.0.get(..LONGEST_TEXT).unwrap_or(&self.0);
        encode_bytes(bytes, sink);
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        let mut bytes = decode_bytes(words)?;
        bytes.truncate(LONGEST_TEXT);
        Ok(Self(Cow::Owned(bytes)))
    }
}

impl Wire for Cow<'_, [u8]> {
    const LEAST: usize = 1;

    fn encode<S: Sink>(&self, sink: &mut S) {
        encode_bytes(self, sink);
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        decode_bytes(words).map(Cow::Owned)
    }
}

/// An element of a list. (Byte lists have a separate implementation.)
pub trait Item: Wire + Clone {}

impl<T: Item> Wire for Cow<'_, [T]> {
    const LEAST: usize = 1;

    fn encode<S: Sink>(&self, sink: &mut S) {
        sink.word(self.len() as u64);
        for item in &**self {
            item.encode(sink);
        }
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        let count = words.count(T::LEAST)?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(T::decode(words)?);
        }
        Ok(Cow::Owned(items))
    }
}

impl Wire for u64 {
    const LEAST: usize = 1;

    #[inline]
    fn encode<S: Sink>(&self, sink: &mut S) {
        sink.word(*self);
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        words.take()
    }
}

impl Wire for u32 {
    const LEAST: usize = 1;

    #[inline]
    fn encode<S: Sink>(&self, sink: &mut S) {
        sink.word(u64::from(*self));
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        let word = words.take()?;
        Self::try_from(word).map_err(|_| DecodeError::Number(word))
    }
}

impl Wire for i32 {
    const LEAST: usize = 1;

    fn encode<S: Sink>(&self, sink: &mut S) {
        sink.word(u64::from(self.cast_unsigned()));
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        u32::decode(words).map(u32::cast_signed)
    }
}

impl Wire for f64 {
    const LEAST: usize = 1;

    fn encode<S: Sink>(&self, sink: &mut S) {
        sink.word(self.to_bits());
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        words.take().map(Self::from_bits)
    }
}

impl Wire for bool {
    const LEAST: usize = 1;

    fn encode<S: Sink>(&self, sink: &mut S) {
        sink.word(u64::from(*self));
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        words.take().map(|word| word != 0)
    }
}

impl<T: Wire> Wire for Option<T> {
    const LEAST: usize = 1;

    fn encode<S: Sink>(&self, sink: &mut S) {
        self.is_some().encode(sink);
        if let Some(value) = self {
            value.encode(sink);
        }
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        let some = bool::decode(words)?;
        some.then(|| T::decode(words)).transpose()
    }
}

/// Two small numbers in a word.
pub(super) fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// The numbers of [`pair`].
pub(super) fn unpair(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// Declares a struct whose form is its fields' in their order.
macro_rules! wire_struct {
    ($(#[$meta:meta])* pub struct $name:ident $(<$life:lifetime>)? {
        $($(#[$of_field:meta])* pub $field:ident: $type:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name $(<$life>)? {
            $($(#[$of_field])* pub $field: $type,)*
        }

        impl $(<$life>)? $crate::event::wire::Wire for $name $(<$life>)? {
            const LEAST: usize = 0 $(+ <$type as $crate::event::wire::Wire>::LEAST)*;

            #[inline]
            fn encode<S: $crate::event::wire::Sink>(&self, sink: &mut S) {
                $(self.$field.encode(sink);)*
            }

            fn decode(
                words: &mut $crate::event::wire::Words<'_>,
            ) -> Result<Self, $crate::event::wire::DecodeError> {
                Ok(Self {
                    $($field: $crate::event::wire::Wire::decode(words)?,)*
                })
            }
        }
    };
}

/// Declares an enum of plain cases with their numbers. Unknown numbers decode as the first case.
macro_rules! wire_enum {
    ($(#[$meta:meta])* $visible:vis enum $name:ident {
        $(#[$of_first:meta])* $first:ident = 0,
        $($(#[$of_case:meta])* $case:ident = $number:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(u32)]
        #[non_exhaustive]
        $visible enum $name {
            $(#[$of_first])* #[default] $first = 0,
            $($(#[$of_case])* $case = $number,)*
        }

        impl $name {
            /// All cases.
            pub const ALL: &'static [Self] = &[Self::$first, $(Self::$case,)*];

            /// The case with this number; the first one for unknown numbers.
            #[must_use]
            pub fn from_number(number: u64) -> Self {
                match number {
                    $($number => Self::$case,)*
                    _ => Self::$first,
                }
            }
        }

        impl $crate::event::wire::Wire for $name {
            const LEAST: usize = 1;

            #[inline]
            fn encode<S: $crate::event::wire::Sink>(&self, sink: &mut S) {
                sink.word(*self as u64);
            }

            fn decode(
                words: &mut $crate::event::wire::Words<'_>,
            ) -> Result<Self, $crate::event::wire::DecodeError> {
                words.take().map(Self::from_number)
            }
        }
    };
}

pub(crate) use {wire_enum, wire_struct};
