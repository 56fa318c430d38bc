//! The copied stack of a sample.

use std::cell::RefCell;

use vmscope_records::{Avma, ChainEnd, StackBytes};

/// A word that a rule has read from the stack: its address, and the result.
pub type WordRead = (u64, Result<u64, ChainEnd>);

/// A copied stack. It keeps the words that rules read: a walk of the same frames reads the same words.
#[derive(Debug)]
pub struct CopiedStack<'a> {
    copy: &'a StackBytes,
    read: RefCell<Vec<WordRead>>,
}

impl<'a> CopiedStack<'a> {
    /// Stack of which nothing has been read.
    #[must_use]
    pub fn of(copy: &'a StackBytes) -> Self {
        CopiedStack {
            copy,
            read: RefCell::default(),
        }
    }

    /// A word of the stack.
    ///
    /// # Errors
    /// [`ChainEnd::Stack`] above the copied stack, [`ChainEnd::Broken`] below it.
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
            None => Err(ChainEnd::Stack),
        }
    }

    /// Bytes of the stack that no later walk compares: only for rules that also depend on other memory. `None`
    /// beyond the copy.
    #[must_use]
    pub fn bytes(&self, at: u64, length: usize) -> Option<&'a [u8]> {
        let from = usize::try_from(at.checked_sub(self.copy.sp.0)?).ok()?;
        self.copy.bytes.get(from..)?.get(..length)
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
