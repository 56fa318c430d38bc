//! The compressed line number table behind a method's bytecodes (`constMethod.cpp`).

use vmscope_records::{BytecodePc, LineEntry};

use crate::layout::encodings::signed5;

/// Maximum number of entries: one line per bytecode, at most 65,535 bytecodes.
const MAX_LINES: usize = 1 << 16;

/// Decodes a compressed line table; entries ascend by bytecode. Invalid data end the table.
#[must_use]
pub fn line_table(bytes: &[u8], excess: u32) -> Vec<LineEntry> {
    let mut lines = Vec::new();
    let (mut at, mut bci, mut line) = (0, 0_i32, 0_i32);
    while lines.len() < MAX_LINES {
        let (bci_delta, line_delta) = match bytes.get(at) {
            None | Some(0) => break,
            Some(0xff) => {
                at += 1;
                let Some(delta) = signed5(bytes, &mut at, excess) else {
                    break;
                };
                let Some(line_delta) = signed5(bytes, &mut at, excess) else {
                    break;
                };
                (delta, line_delta)
            }
            Some(both) => {
                at += 1;
                (i32::from(both >> 3), i32::from(both & 7))
            }
        };
        bci = bci.wrapping_add(bci_delta);
        line = line.wrapping_add(line_delta);
        if let (Ok(from), Ok(line)) = (u32::try_from(bci), u32::try_from(line)) {
            lines.push(LineEntry {
                from: BytecodePc(from),
                line,
            });
        }
    }
    lines.sort_by_key(|entry| entry.from);
    lines.dedup_by_key(|entry| entry.from);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_steps() {
        // bci +0 line +5 | bci +3, line +1 | escape: bci +40, line -2
        let bytes = [5, 3 << 3 | 1, 0xff, 80, 3, 0, 9];
        let lines: Vec<_> = line_table(&bytes, 0)
            .iter()
            .map(|entry| (entry.from.0, entry.line))
            .collect();
        assert_eq!(lines, [(0, 5), (3, 6), (43, 4)]);
    }
}
