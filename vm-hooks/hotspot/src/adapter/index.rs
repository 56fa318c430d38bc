//! All methods of a JVM by where their bytecodes are: an interpreted frame shows only
//! the address of the bytecode that it executes.

use vmscope_records::Avma;
use vmscope_target::{AdapterError, Memory};

use crate::method::{ClassesLayout, MethodLayout};

/// More methods than this are not indexed.
const MAX_METHODS: usize = 4 << 20;

/// Methods by their bytecodes' addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct BytecodeIndex {
    /// First address, first address after, `Method*`; ascending.
    ranges: Vec<(u64, u64, Avma)>,
    /// All `Method*`, those without bytecodes too; ascending.
    methods: Vec<Avma>,
}

impl BytecodeIndex {
    /// Goes through all classes. What comes or goes meanwhile is left out: it is found
    /// the next time.
    ///
    /// # Errors
    ///
    /// As [`ClassesLayout::read`]; what is final.
    pub fn read(
        classes: &ClassesLayout,
        layout: &MethodLayout,
        memory: &dyn Memory,
    ) -> Result<Self, AdapterError> {
        let mut index = BytecodeIndex::default();
        for class in classes.read(memory)? {
            let methods = match layout.methods_of(memory, class) {
                Ok(methods) => methods,
                Err(error) if error.is_final() => return Err(error),
                Err(_) => continue,
            };
            if index.methods.len().saturating_add(methods.len()) > MAX_METHODS {
                break;
            }
            for method in methods {
                index.methods.push(method);
                match layout.bytecode_range(memory, method) {
                    Ok((_, 0)) => {}
                    Ok((at, size)) => {
                        let end = at.0.saturating_add(size);
                        index.ranges.push((at.0, end, method));
                    }
                    Err(error) if error.is_final() => return Err(error),
                    Err(_) => {}
                }
            }
        }
        index.ranges.sort_unstable();
        index.methods.sort_unstable();
        Ok(index)
    }

    /// The method that the bytecode at `at` belongs to, or whose object is there.
    pub fn find(&self, at: Avma) -> Option<Avma> {
        let after = self.ranges.partition_point(|(start, _, _)| *start <= at.0);
        let before = after
            .checked_sub(1)
            .and_then(|index| self.ranges.get(index));
        if let Some((_, end, method)) = before
            && at.0 < *end
        {
            return Some(*method);
        }
        self.methods.binary_search(&at).is_ok().then_some(at)
    }
}
