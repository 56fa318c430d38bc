//! From source positions to a map of ranges.

use std::collections::HashMap;

use vmscope_process::Poll;
use vmscope_records::{ChainFrame, Cover, Exactness, Method, MethodKey, PcMap, Position};

use super::{CodeLoad, LiveCode};
use crate::dump::LineStart;
use crate::vm::VmKind;

/// A source position without successor holds for this many bytes; code beyond has no line
/// (docs/truth.md §5).
const MAX_DISTANCE: u32 = 4096;

/// V8 adds the size of an ELF header to the addresses of its source positions, where
/// `perf inject` puts the code in the file that it makes (V8's `perf-jit.cc`,
/// `kElfHeaderSize`).
const ELF_HEADER_BYTES: u64 = 0x40;

impl LiveCode {
    /// Source positions as a map: each position holds up to the next, at most [`MAX_DISTANCE`] bytes.
    /// The map gives the nearest debug record only: compilers move instructions between
    /// records.
    pub(super) fn covers(
        &mut self,
        load: &CodeLoad,
        method: MethodKey,
        name: &str,
        file: &str,
        poll: &mut Poll,
    ) -> PcMap {
        let start = load.start.get();
        let bias = line_bias(self.kind, load);
        let Ok(size) = u32::try_from(load.size) else {
            return PcMap::None;
        };
        let offset = |line: &LineStart| {
            let offset = line.address.get().wrapping_sub(start).wrapping_sub(bias);
            u32::try_from(offset).ok().filter(|offset| *offset < size)
        };
        let mut covers: Vec<Cover> = Vec::new();
        let mut chains = Vec::new();
        let mut chain_of: HashMap<ChainFrame, u32> = HashMap::new();
        let mut known = load.lines.iter().filter_map(|l| Some((offset(l)?, l)));
        let mut next = known.next();
        while let Some((from, line)) = next {
            next = known.next();
            let to = next.as_ref().map_or(size, |(to, _)| *to);
            let to = to.min(from.saturating_add(MAX_DISTANCE));
            if to <= from || line.line == 0 {
                continue;
            }
            // Code inlined from another file: the dump does not name the function, so the code stays
            // with this function, with its line in the other file.
            let of = if line.file.is_empty() || *line.file == *file {
                method
            } else {
                let inlined = self.method(
                    Method {
                        time: load.since,
                        name: name.to_owned(),
                        file: line.file.to_string(),
                        ..Method::default()
                    },
                    poll,
                );
                inlined.unwrap_or(method)
            };
            let frame = ChainFrame {
                method: of,
                position: Position::Line(line.line),
            };
            let chain = *chain_of.entry(frame).or_insert_with(|| {
                chains.push(vec![frame]);
                u32::try_from(chains.len() - 1).unwrap_or(u32::MAX)
            });
            match covers.last_mut() {
                Some(last) if last.end == from && last.chain == chain => last.end = to,
                _ => covers.push(Cover {
                    start: from,
                    end: to,
                    chain,
                    exactness: Exactness::Approximate,
                    method_error: 0,
                }),
            }
        }
        if covers.is_empty() {
            return PcMap::None;
        }
        PcMap::Covers { covers, chains }
    }
}

/// What a VM adds to the addresses of its source positions.
fn line_bias(kind: VmKind, load: &CodeLoad) -> u64 {
    let start = load.start.get();
    let first = load.lines.first().map_or(0, |line| line.address.get());
    let last = load.lines.last().map_or(0, |line| line.address.get());
    let is_shifted = first >= start.saturating_add(ELF_HEADER_BYTES);
    let reaches_out = last >= start.saturating_add(load.size);
    if is_shifted && (kind == VmKind::V8 || reaches_out) {
        ELF_HEADER_BYTES
    } else {
        0
    }
}
