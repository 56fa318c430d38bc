//! The copied stack of a sample. A process shows its stack beyond the copy, later than the sample.

use std::cell::{OnceCell, RefCell};

use vmscope_records::{Avma, ChainEnd, StackBytes};

use crate::Memory;

/// Maximum number of bytes beyond a copy that are read from the process.
const MAX_LATER: usize = 64 << 10;

/// Number of a copy's last bytes that the process must still have. A return from their frames would let other calls overwrite
/// them.
const UNCHANGED: usize = 64;

/// A word that a rule has read from the stack: its address, and the result.
pub type WordRead = (u64, Result<u64, ChainEnd>);

/// A copied stack. It keeps the words that rules read: a walk of the same frames reads the same words.
pub struct CopiedStack<'a> {
    copy: &'a StackBytes,
    read: RefCell<Vec<WordRead>>,
    memory: Option<&'a dyn Memory>,
    /// Bytes of the stack beyond the copy, as they are after the sample.
    later: OnceCell<Vec<u8>>,
}

impl std::fmt::Debug for CopiedStack<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CopiedStack")
            .field("copy", &self.copy)
            .finish_non_exhaustive()
    }
}

impl<'a> CopiedStack<'a> {
    /// Stack of which nothing has been read.
    #[must_use]
    pub fn of(copy: &'a StackBytes) -> Self {
        CopiedStack {
            copy,
            read: RefCell::default(),
            memory: None,
            later: OnceCell::new(),
        }
    }

    /// Reads words beyond the copy from the process, as long as the process still has the copy's last bytes.
    #[must_use]
    pub fn with_memory(self, memory: &'a dyn Memory) -> Self {
        CopiedStack {
            memory: Some(memory),
            ..self
        }
    }

    /// Takes words beyond the copy from [`CopiedStack::read_beyond`].
    #[must_use]
    pub fn with_beyond(self, beyond: Vec<u8>) -> Self {
        CopiedStack {
            later: OnceCell::from(beyond),
            ..self
        }
    }

    /// The stack beyond a copy, as `memory` has it now, for a later walk; at most 64 KiB.
    #[must_use]
    pub fn read_beyond(copy: &StackBytes, memory: &dyn Memory) -> Vec<u8> {
        CopiedStack::of(copy).bytes_later(memory)
    }

    /// Whether rules have read words beyond the copy: the process may have changed them since the sample.
    #[must_use]
    pub fn has_read_later(&self) -> bool {
        let is_later = |(at, word): &WordRead| *at >= self.end() && word.is_ok();
        self.later.get().is_some() && self.read.borrow().iter().any(is_later)
    }

    /// A word of the stack.
    ///
    /// # Errors
    /// [`ChainEnd::Stack`] above the known stack, [`ChainEnd::Broken`] below it.
    pub fn read(&self, at: u64) -> Result<u64, ChainEnd> {
        let word = self.word(at);
        self.read.borrow_mut().push((at, word));
        word
    }

    /// Likewise; the word counts as not read.
    ///
    /// # Errors
    /// Likewise.
    pub fn word(&self, at: u64) -> Result<u64, ChainEnd> {
        match self.copy.word(Avma(at)) {
            Some(word) => Ok(word),
            None if at < self.copy.sp.0 => Err(ChainEnd::Broken),
            None => self.later(at).ok_or(ChainEnd::Stack),
        }
    }

    /// A word beyond the copy.
    fn later(&self, at: u64) -> Option<u64> {
        let from = usize::try_from(at.checked_sub(self.end())?).ok()?;
        let to = from.checked_add(size_of::<u64>())?;
        if to > MAX_LATER {
            return None;
        }
        let later = match self.memory {
            Some(memory) => self.later.get_or_init(|| self.bytes_later(memory)),
            None => self.later.get()?,
        };
        let bytes = later.get(UNCHANGED..)?.get(from..to)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The copy's last bytes and those beyond; none if the last bytes have changed.
    fn bytes_later(&self, memory: &dyn Memory) -> Vec<u8> {
        let last = self.copy.bytes.last_chunk::<UNCHANGED>();
        let mut bytes = vec![0; UNCHANGED + MAX_LATER];
        let from = Avma(self.end().wrapping_sub(UNCHANGED as u64));
        let read = memory.read_partial(from, &mut bytes).unwrap_or(0);
        bytes.truncate(read);
        match last {
            Some(last) if bytes.starts_with(last) => bytes,
            _ => Vec::new(),
        }
    }

    /// Bytes of the stack that no later walk compares: only for rules that also depend on other memory. `None`
    /// beyond the copy.
    #[must_use]
    pub fn bytes(&self, at: u64, length: usize) -> Option<&'a [u8]> {
        let from = usize::try_from(at.checked_sub(self.copy.sp.0)?).ok()?;
        self.copy.bytes.get(from..)?.get(..length)
    }

    /// Address of the first copied byte.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.copy.sp.0
    }

    /// End of the copy.
    #[must_use]
    pub fn end(&self) -> u64 {
        (self.copy.sp.0).saturating_add(self.copy.bytes.len() as u64)
    }

    /// Number of words that were read.
    #[must_use]
    pub fn words_read(&self) -> usize {
        self.read.borrow().len()
    }

    /// The words that were read, in the order of the reads.
    #[must_use]
    pub fn into_read(self) -> Vec<WordRead> {
        self.read.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeMemory;

    #[test]
    fn words_beyond_the_copy_come_from_the_process_as_long_as_it_has_the_copy() {
        let copy = StackBytes {
            sp: Avma(0x1000),
            bytes: vec![7; 128],
        };
        let mut memory = FakeMemory::new();
        memory.put(Avma(0x1000), [vec![7; 128], vec![1; 16]].concat());
        let without = CopiedStack::of(&copy);
        let stack = CopiedStack::of(&copy).with_memory(&memory);
        assert_eq!(stack.read(0x1078), Ok(0x0707_0707_0707_0707));
        assert_eq!(stack.word(0x1088), Ok(0x0101_0101_0101_0101));
        assert!(!stack.has_read_later(), "no rule has read it");
        assert!(stack.read(0x1088).is_ok() && stack.has_read_later());
        for at in [0x1089, 0x1090, 0x1000 + (1 << 20), u64::MAX] {
            assert_eq!(stack.read(at), Err(ChainEnd::Stack));
        }
        assert_eq!(stack.read(0xff8), Err(ChainEnd::Broken));
        assert_eq!(without.read(0x1088), Err(ChainEnd::Stack));
        let beyond = CopiedStack::read_beyond(&copy, &memory);
        let stack = CopiedStack::of(&copy).with_beyond(beyond);
        assert!(stack.read(0x1088).is_ok() && stack.has_read_later());
        assert_eq!(stack.read(0x1090), Err(ChainEnd::Stack));
        let mut changed = FakeMemory::new();
        changed.put(
            Avma(0x1000),
            [vec![7; 120], vec![6; 8], vec![1; 16]].concat(),
        );
        let stack = CopiedStack::of(&copy).with_memory(&changed);
        assert_eq!(stack.read(0x1088), Err(ChainEnd::Stack));
    }
}
