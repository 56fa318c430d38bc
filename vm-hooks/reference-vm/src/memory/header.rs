//! An object's header: the word before the slots, as in Spur.

/// Layout of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format(pub u8);

impl Format {
    /// No slots.
    pub const EMPTY: Self = Self(0);
    /// Fixed fields.
    pub const FIXED: Self = Self(1);
    /// Indexed references.
    pub const INDEXED: Self = Self(2);
    /// Fixed fields, then indexed references.
    pub const FIXED_AND_INDEXED: Self = Self(3);
    /// Fixed fields, then indexed references that do not keep their objects alive.
    pub const WEAK: Self = Self(4);
    /// Fixed fields. The first field (the key) is weak; the other fields are strong while the key
    /// lives.
    pub const EPHEMERON: Self = Self(5);
    /// A moved object: the first slot is its new address, the hash is the class index of its holder.
    /// Only during collections.
    pub const FORWARDER: Self = Self(7);
    /// Bytes. The low three bits say how many bytes of the last slot are not used.
    pub const BYTES: Self = Self(16);
    /// A method: header, literals, then bytecodes; likewise.
    pub const METHOD: Self = Self(24);

    /// Format of an object with `bytes` bytes; `base` is [`BYTES`](Self::BYTES) or
    /// [`METHOD`](Self::METHOD).
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "less than eight")]
    pub const fn with_bytes(base: Self, bytes: usize) -> Self {
        Self(base.0 + (bytes.wrapping_neg() & 7) as u8)
    }

    /// Whether all slots are references.
    #[must_use]
    #[inline]
    pub const fn is_pointers(self) -> bool {
        self.0 <= Self::EPHEMERON.0
    }

    /// Whether the object is a method.
    #[must_use]
    #[inline]
    pub const fn is_method(self) -> bool {
        self.0 >= Self::METHOD.0
    }

    /// Whether the slots contain only bytes.
    #[must_use]
    #[inline]
    pub const fn is_bytes(self) -> bool {
        self.0 >= Self::BYTES.0 && self.0 < Self::METHOD.0
    }

    /// Number of unused bytes in the last slot of bytes or a method.
    #[must_use]
    #[inline]
    pub const fn unused_bytes(self) -> usize {
        (self.0 & 7) as usize
    }
}

/// The header word. Bits: class index 0–21, immutable 23, format 24–28, remembered 29, pinned 30,
/// grey 31, hash 32–53, tracked 54, marked 55, number of slots 56–63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Header(pub u64);

/// Largest class index, and largest hash.
pub const MAX_CLASS_INDEX: u32 = (1 << 22) - 1;
/// Slot count in the header for large objects: the overflow word before the header contains the
/// true count.
pub const MANY_SLOTS: usize = 255;
const FORMAT_SHIFT: u32 = 24;
const HASH_SHIFT: u32 = 32;
const SLOTS_SHIFT: u32 = 56;
const REMEMBERED: u64 = 1 << 29;
const GREY: u64 = 1 << 31;
const TRACKED: u64 = 1 << 54;
const MARKED: u64 = 1 << 55;

impl Header {
    /// The header of a new object. `slots` above 254 is written as [`MANY_SLOTS`].
    #[must_use]
    #[inline]
    pub const fn new(class_index: u32, format: Format, slots: usize) -> Self {
        let slots = if slots < MANY_SLOTS {
            slots
        } else {
            MANY_SLOTS
        };
        Self(
            (class_index & MAX_CLASS_INDEX) as u64
                | (format.0 as u64) << FORMAT_SHIFT
                | (slots as u64) << SLOTS_SHIFT,
        )
    }

    /// Index of the object's class.
    #[must_use]
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "masked")]
    pub const fn class_index(self) -> u32 {
        self.0 as u32 & MAX_CLASS_INDEX
    }

    /// The object's format.
    #[must_use]
    #[inline]
    pub const fn format(self) -> Format {
        Format((self.0 >> FORMAT_SHIFT) as u8 & 31)
    }

    /// Slot count stored in the header: at most [`MANY_SLOTS`].
    #[must_use]
    #[inline]
    pub const fn slots(self) -> usize {
        (self.0 >> SLOTS_SHIFT) as usize
    }

    /// Identity hash; 0 until somebody asks for it.
    #[must_use]
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "masked")]
    pub const fn hash(self) -> u32 {
        (self.0 >> HASH_SHIFT) as u32 & MAX_CLASS_INDEX
    }

    /// The same header with another hash.
    #[must_use]
    #[inline]
    pub const fn with_hash(self, hash: u32) -> Self {
        let mask = (MAX_CLASS_INDEX as u64) << HASH_SHIFT;
        Self(self.0 & !mask | ((hash & MAX_CLASS_INDEX) as u64) << HASH_SHIFT)
    }

    /// The same header with another format.
    #[must_use]
    #[inline]
    pub const fn with_format(self, format: Format) -> Self {
        Self(self.0 & !(31 << FORMAT_SHIFT) | (format.0 as u64) << FORMAT_SHIFT)
    }

    /// Whether the remembered set contains the object.
    #[must_use]
    #[inline]
    pub const fn is_remembered(self) -> bool {
        self.0 & REMEMBERED != 0
    }

    /// Header with the remembered bit set or cleared.
    #[must_use]
    #[inline]
    pub const fn with_remembered(self, set: bool) -> Self {
        Self(if set {
            self.0 | REMEMBERED
        } else {
            self.0 & !REMEMBERED
        })
    }

    /// Whether the object still waits for tracing.
    #[must_use]
    #[inline]
    pub const fn is_grey(self) -> bool {
        self.0 & GREY != 0
    }

    /// Header with the grey bit set or cleared.
    #[must_use]
    #[inline]
    pub const fn with_grey(self, set: bool) -> Self {
        Self(if set { self.0 | GREY } else { self.0 & !GREY })
    }

    /// Whether the object has a single record of its lifetime. Set only until a full collection marks
    /// the object.
    #[must_use]
    #[inline]
    pub const fn is_tracked(self) -> bool {
        self.0 & TRACKED != 0
    }

    /// Header with the tracked bit set or cleared.
    #[must_use]
    #[inline]
    pub const fn with_tracked(self, set: bool) -> Self {
        Self(if set {
            self.0 | TRACKED
        } else {
            self.0 & !TRACKED
        })
    }

    /// Whether a full collection found the object alive.
    #[must_use]
    #[inline]
    pub const fn is_marked(self) -> bool {
        self.0 & MARKED != 0
    }

    /// Header with the mark set or cleared.
    #[must_use]
    #[inline]
    pub const fn with_mark(self, set: bool) -> Self {
        Self(if set {
            self.0 | MARKED
        } else {
            self.0 & !MARKED
        })
    }
}
