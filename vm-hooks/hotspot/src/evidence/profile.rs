//! Calls in the VM's own profile of a method (`MethodData`): whether they have been executed, and their receivers'
//! classes. Optimising compilers inline the receivers' methods.

use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use crate::layout::{Scalar, VmStructs};

const WHAT: &str = "method's profile";

/// Maximum size of a profile in bytes.
const MAX_PROFILE: i64 = 1 << 20;

/// Size of a cell, and of each entry's header (`DataLayout`), in bytes.
const CELL: usize = 8;

/// Receivers per call in a profile (`TypeProfileWidth`).
const ROWS: usize = 2;

/// Field offsets of a `MethodData`.
#[derive(Clone, Debug)]
pub struct ProfileLayout {
    method_data: Scalar,
    data: u64,
    data_size: Scalar,
}

impl ProfileLayout {
    /// Finds all fields; `None` if this version's tables lack them.
    #[must_use]
    pub fn of(structs: &VmStructs) -> Option<Self> {
        Some(ProfileLayout {
            method_data: structs.optional_scalar("Method", "_method_data")?,
            data: structs.optional_offset("MethodData", "_data[0]")?,
            data_size: structs.optional_scalar("MethodData", "_data_size")?,
        })
    }

    /// Executed calls of `method`, ascending by bytecode index; `None` without a profile.
    ///
    /// # Errors
    /// [`AdapterError::Memory`] if the profile is unreadable.
    pub fn calls(
        &self,
        memory: &dyn Memory,
        method: Avma,
    ) -> Result<Option<Vec<ExecutedCall>>, AdapterError> {
        let at = self.method_data.read_address(memory, method, WHAT)?;
        if at.0 == 0 {
            return Ok(None);
        }
        let size = self.data_size.read(memory, at, WHAT)?.clamp(0, MAX_PROFILE);
        let bytes = memory
            .read_vec(
                Avma(at.0.wrapping_add(self.data)),
                size.cast_unsigned(),
                usize::try_from(MAX_PROFILE).unwrap_or(0),
            )
            .map_err(AdapterError::reading(WHAT))?;
        // Up to some version, builds with JVMCI have an additional cell before the receivers.
        let with = walk(&bytes, 1);
        Ok(with.or_else(|| walk(&bytes, 0)))
    }
}

/// A call with a count in the profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutedCall {
    /// Its bytecode index.
    pub bci: u16,
    /// Classes of receivers of a virtual call, frequent ones first.
    pub receivers: Vec<Avma>,
}

/// Walks the entries; `None` if `extra` cells before the receivers make them implausible.
pub(super) fn walk(bytes: &[u8], extra: usize) -> Option<Vec<ExecutedCall>> {
    let mut all = Vec::new();
    let mut at = 0;
    let mut last = 0;
    while at < bytes.len() {
        let entry = bytes.get(at..)?;
        let tag = *entry.first()?;
        let bci = u16::from_le_bytes([*entry.get(2)?, *entry.get(3)?]);
        let cell = |index: usize| -> Option<u64> {
            let begin = CELL.checked_add(CELL.checked_mul(index)?)?;
            let eight = entry.get(begin..begin.checked_add(CELL)?)?;
            Some(u64::from_le_bytes(eight.try_into().ok()?))
        };
        let rest = |index: usize| usize::try_from(cell(index)?).ok();
        let receivers = 1 + extra + 2 * ROWS;
        let cells = match tag {
            1 => 0,
            2 => 1,
            3 => 2,
            4 | 5 => receivers,
            6 => 1 + 2 * ROWS + ROWS,
            7 => 3,
            8 => 1_usize.checked_add(rest(0)?)?,
            10 => 2_usize.checked_add(rest(1)?)?,
            11 => 1_usize
                .checked_add(receivers)?
                .checked_add(rest(receivers)?)?,
            // Arguments and parameters come last.
            9 | 12 => break,
            _ => return None,
        };
        if bci < last {
            return None;
        }
        last = bci;
        let is_counted = cells > 0 && cell(0)? != 0;
        if matches!(tag, 2 | 10) && is_counted {
            all.push(ExecutedCall {
                bci,
                receivers: Vec::new(),
            });
        }
        if matches!(tag, 4 | 5 | 11) {
            let rows = (0..ROWS).filter_map(|row| {
                let class = cell(1 + extra + 2 * row)?;
                let count = cell(2 + extra + 2 * row)?;
                (class != 0).then_some((count, Avma(class)))
            });
            let mut rows: Vec<_> = rows.collect();
            // Class addresses are aligned and not small.
            if rows
                .iter()
                .any(|(_, class)| class.0 < 4096 || class.0 % 8 != 0)
            {
                return None;
            }
            rows.sort_by_key(|row| std::cmp::Reverse(row.0));
            let classes: Vec<_> = rows.into_iter().map(|(_, class)| class).collect();
            // The count is of the receivers without a row.
            if tag != 4 && (is_counted || !classes.is_empty()) {
                all.push(ExecutedCall {
                    bci,
                    receivers: classes,
                });
            }
        }
        at = at
            .checked_add(CELL)?
            .checked_add(CELL.checked_mul(cells)?)?;
    }
    Some(all)
}
