//! Debug records: inlined methods and bytecodes per machine pc (`debugInfoRec.cpp`,
//! `scopeDesc.cpp`).

use vmscope_records::Avma;

use crate::layout::encodings::unsigned5;

use super::Nmethod;

/// Maximum plausible depth of inlining (`MaxInlineLevel` is 15).
const MAX_DEPTH: usize = 512;

/// A method in an inlining chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The `Method*`.
    pub method: Avma,
    /// Bytecode index; -1 (`SynchronizationEntryBCI`) at the method's entry.
    pub bci: i32,
}

/// Error in a debug record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// The record is cut off.
    #[error("the debug record at {at} ends too early")]
    Short {
        /// Offset in the scopes data.
        at: u32,
    },
    /// The method's index exceeds the metadata.
    #[error("the debug record at {at} names method {method} of only {methods}")]
    Method {
        /// Offset in the scopes data.
        at: u32,
        /// Index.
        method: u32,
        /// Number of metadata.
        methods: usize,
    },
    /// The caller's record comes later, or the chain is too deep.
    #[error("the debug record at {at} is circular")]
    Circle {
        /// Offset in the scopes data.
        at: u32,
    },
}

/// A decoded record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Offset of the caller's record; 0 for none.
    pub sender: u32,
    /// Method and bytecode.
    pub frame: Frame,
    /// Offsets of the locals, expressions and monitors; 0 for none.
    pub values: [u32; 3],
}

impl Nmethod {
    /// Decodes the record at `at` in the scopes data.
    ///
    /// # Errors
    /// [`ScopeError`].
    pub fn scope(&self, at: u32) -> Result<Scope, ScopeError> {
        let mut position = at as usize;
        let mut next = || unsigned5(&self.scopes, &mut position, self.unsigned5_excess);
        let mut field = || next().ok_or(ScopeError::Short { at });
        let (sender, method, bci) = (field()?, field()?, field()?);
        let values = [field()?, field()?, field()?];
        if sender >= at {
            return Err(ScopeError::Circle { at });
        }
        let metadata = method
            .checked_sub(1)
            .and_then(|index| self.metadata.get(index as usize));
        Ok(Scope {
            sender,
            frame: Frame {
                method: Avma(*metadata.ok_or(ScopeError::Method {
                    at,
                    method,
                    methods: self.metadata.len(),
                })?),
                bci: bci.wrapping_sub(1).cast_signed(),
            },
            values,
        })
    }

    /// Inlining chain of the record at `at`, innermost method first; empty for offset 0, which
    /// has no record.
    ///
    /// # Errors
    /// [`ScopeError`].
    pub fn chain(&self, at: u32) -> Result<Vec<Frame>, ScopeError> {
        let mut chain = Vec::new();
        let mut next = at;
        while next != 0 {
            if chain.len() >= MAX_DEPTH {
                return Err(ScopeError::Circle { at });
            }
            let scope = self.scope(next)?;
            chain.push(scope.frame);
            next = scope.sender;
        }
        Ok(chain)
    }
}
