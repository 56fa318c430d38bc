//! Debug records: which methods, inlined in each other, and which bytecodes a machine
//! pc stands for (`debugInfoRec.cpp`, `scopeDesc.cpp`).

use vmscope_records::Avma;

use crate::layout::encodings::unsigned5;

use super::Nmethod;

/// Chains of inlined methods deeper than this are not believed (`MaxInlineLevel` is 15).
const MAX_DEPTH: usize = 512;

/// A method in a chain of inlined ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The `Method*`.
    pub method: Avma,
    /// The bytecode; -1 (`SynchronizationEntryBCI`) at the method's entry.
    pub bci: i32,
}

/// What is wrong with a debug record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// Its bytes end too early.
    #[error("debug record at {at} ends too early")]
    Short {
        /// Offset in the scopes data.
        at: u32,
    },
    /// It names a method that is not in the metadata.
    #[error("debug record at {at} names method {method} of {methods}")]
    Method {
        /// Offset in the scopes data.
        at: u32,
        /// The index.
        method: u32,
        /// How many there are.
        methods: usize,
    },
    /// It was inlined into a record that comes later, or into too many.
    #[error("debug record at {at} runs in a circle")]
    Circle {
        /// Offset in the scopes data.
        at: u32,
    },
}

/// One decoded record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The record of the caller that it was inlined into; 0: none.
    pub sender: u32,
    /// Method and bytecode.
    pub frame: Frame,
    /// Where its locals, expressions and monitors are described; 0: not.
    pub values: [u32; 3],
}

impl Nmethod {
    /// The record at `at` in the scopes data.
    ///
    /// # Errors
    ///
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

    /// The chain of methods that the record at `at` stands for, innermost first; empty
    /// for offset 0, which is no record.
    ///
    /// # Errors
    ///
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
