//! Messages of constituents, pc maps and methods.

use super::codes::Code;
use super::{Wire, WireError, messages as m};
use crate::{
    Avma, BoundaryRule, BytecodePc, ChainFrame, Compilation, Constituent, ConstituentKey,
    ConstituentKind, Cover, Exactness, LineEntry, Method, MethodKey, PcMap, Position, ProcessKey,
    TimeNs,
};

/// Checks the order of times.
pub(super) fn check_times(r: &Compilation) -> Result<(), WireError> {
    if r.last_seen < r.first_seen {
        return Err(WireError::Range("last_seen"));
    }
    if r.gone_at.is_some_and(|gone| gone < r.last_seen) {
        return Err(WireError::Range("gone_at"));
    }
    if r.absent_at.is_some_and(|absent| absent > r.first_seen) {
        return Err(WireError::Range("absent_at"));
    }
    Ok(())
}

/// Numbers of kinds; 0 is [`ConstituentKind::Other`] with a name.
const KINDS: [(ConstituentKind, u32); 13] = [
    (ConstituentKind::Method, 1),
    (ConstituentKind::Block, 2),
    (ConstituentKind::ClosedPic, 3),
    (ConstituentKind::OpenPic, 4),
    (ConstituentKind::Trampoline, 5),
    (ConstituentKind::Enilopmart, 6),
    (ConstituentKind::Stub, 7),
    (ConstituentKind::Interpreter, 8),
    (ConstituentKind::Adapter, 9),
    (ConstituentKind::RegExp, 10),
    (ConstituentKind::Free, 11),
    (ConstituentKind::Bytecodes, 12),
    (ConstituentKind::MethodObject, 13),
];

impl Wire<m::Constituent> for Constituent {
    fn to_wire(&self) -> m::Constituent {
        let number = KINDS
            .iter()
            .find(|(kind, _)| *kind == self.kind)
            .map(|&(_, number)| number);
        let kind_name = match &self.kind {
            ConstituentKind::Other(name) => name.clone(),
            _ => String::new(),
        };
        let (boundary, covers) = match &self.map {
            PcMap::None => (None, None),
            PcMap::Boundary {
                rule,
                exactness,
                entries,
            } => (Some(boundary_message(*rule, *exactness, entries)), None),
            PcMap::Covers { covers, chains } => (None, Some(covers_message(covers, chains))),
        };
        m::Constituent {
            key: self.key.0,
            process: self.process.0,
            since: self.since.0,
            absent_at: self.absent_at.map(|time| time.0),
            start: self.start.0,
            size: self.end.0.saturating_sub(self.start.0),
            kind: number.unwrap_or(0),
            kind_name,
            tier: self.tier.clone(),
            name: self.name.clone(),
            method: self.method.map(|key| key.0),
            cases: self.cases.to_wire(),
            boundary,
            covers,
        }
    }

    fn from_wire(r: m::Constituent) -> Result<Self, WireError> {
        let end = r
            .start
            .checked_add(r.size)
            .ok_or(WireError::Range("size"))?;
        let kind = KINDS
            .iter()
            .find(|&&(_, number)| number == r.kind)
            .map_or_else(
                || ConstituentKind::Other(r.kind_name),
                |(kind, _)| kind.clone(),
            );
        let map = match (r.boundary, r.covers) {
            (Some(map), _) => boundary_map(map)?,
            (None, Some(map)) => covers_map(map)?,
            (None, None) => PcMap::None,
        };
        Ok(Constituent {
            key: ConstituentKey(r.key),
            process: ProcessKey(r.process),
            since: TimeNs(r.since),
            absent_at: r.absent_at.map(TimeNs),
            start: Avma(r.start),
            end: Avma(end),
            kind,
            tier: r.tier,
            name: r.name,
            method: r.method.map(MethodKey),
            cases: Wire::from_wire(r.cases)?,
            map,
        })
    }
}

fn boundary_message(
    rule: BoundaryRule,
    exactness: Exactness,
    entries: &[(u32, BytecodePc)],
) -> m::BoundaryMap {
    let mut before = 0;
    m::BoundaryMap {
        rule: rule.code(),
        exactness: exactness.code(),
        code_deltas: entries
            .iter()
            .map(|&(offset, _)| {
                let delta = offset.wrapping_sub(before);
                before = offset;
                delta
            })
            .collect(),
        bytecodes: entries.iter().map(|&(_, bytecode)| bytecode.0).collect(),
    }
}

fn boundary_map(map: m::BoundaryMap) -> Result<PcMap, WireError> {
    if map.code_deltas.len() != map.bytecodes.len() {
        return Err(WireError::Columns("boundary"));
    }
    let mut offset = 0u32;
    let entries = map
        .code_deltas
        .into_iter()
        .zip(map.bytecodes)
        .map(|(delta, bytecode)| {
            offset = offset
                .checked_add(delta)
                .ok_or(WireError::Range("code_deltas"))?;
            Ok((offset, BytecodePc(bytecode)))
        })
        .collect::<Result<_, WireError>>()?;
    Ok(PcMap::Boundary {
        rule: BoundaryRule::from_code(map.rule),
        exactness: Exactness::from_code(map.exactness),
        entries,
    })
}

/// A position as one number: 0 unknown, else value * 2 + 1 for a bytecode and value * 2 + 2 for a
/// line.
fn position_number(position: Position) -> u64 {
    match position {
        Position::Unknown => 0,
        Position::Bytecode(pc) => u64::from(pc.0) * 2 + 1,
        Position::Line(line) => u64::from(line) * 2 + 2,
    }
}

fn position_of(number: u64) -> Result<Position, WireError> {
    let Some(value) = number.checked_sub(1) else {
        return Ok(Position::Unknown);
    };
    let half = u32::try_from(value / 2).map_err(|_| WireError::Range("positions"))?;
    Ok(if value % 2 == 0 {
        Position::Bytecode(BytecodePc(half))
    } else {
        Position::Line(half)
    })
}

fn covers_message(covers: &[Cover], chains: &[Vec<ChainFrame>]) -> m::CoversMap {
    m::CoversMap {
        starts: covers.iter().map(|cover| cover.start).collect(),
        ends: covers.iter().map(|cover| cover.end).collect(),
        chain_of: covers.iter().map(|cover| cover.chain).collect(),
        exactness: covers
            .iter()
            .map(|cover| u8::try_from(cover.exactness.code()).unwrap_or(0))
            .collect(),
        // Absent if every method is certain.
        method_errors: if covers.iter().all(|cover| cover.method_error == 0) {
            Vec::new()
        } else {
            covers.iter().map(|cover| cover.method_error).collect()
        },
        chains: chains
            .iter()
            .map(|chain| m::Chain {
                methods: chain.iter().map(|frame| frame.method.0).collect(),
                positions: chain
                    .iter()
                    .map(|frame| position_number(frame.position))
                    .collect(),
            })
            .collect(),
    }
}

fn covers_map(map: m::CoversMap) -> Result<PcMap, WireError> {
    let count = map.starts.len();
    let mut method_errors = map.method_errors;
    if method_errors.is_empty() {
        method_errors.resize(count, 0);
    }
    let lengths = [map.ends.len(), map.chain_of.len()];
    if lengths != [count; 2] || [map.exactness.len(), method_errors.len()] != [count; 2] {
        return Err(WireError::Columns("covers"));
    }
    let chains: Vec<Vec<ChainFrame>> = map
        .chains
        .into_iter()
        .map(|chain| {
            if chain.methods.is_empty() || chain.methods.len() != chain.positions.len() {
                return Err(WireError::Columns("chain"));
            }
            chain
                .methods
                .into_iter()
                .zip(chain.positions)
                .map(|(method, position)| {
                    Ok(ChainFrame {
                        method: MethodKey(method),
                        position: position_of(position)?,
                    })
                })
                .collect()
        })
        .collect::<Result<_, WireError>>()?;
    let mut last_end = 0;
    let covers = (map.starts.into_iter().zip(map.ends))
        .zip(map.chain_of.into_iter().zip(map.exactness))
        .zip(method_errors)
        .map(|(((start, end), (chain, exactness)), method_error)| {
            let known = usize::try_from(chain).is_ok_and(|index| index < chains.len());
            if start < last_end || end < start || !known {
                return Err(WireError::Range("covers"));
            }
            last_end = end;
            Ok(Cover {
                start,
                end,
                chain,
                exactness: Exactness::from_code(u32::from(exactness)),
                method_error,
            })
        })
        .collect::<Result<_, WireError>>()?;
    Ok(PcMap::Covers { covers, chains })
}

impl Wire<m::Method> for Method {
    fn to_wire(&self) -> m::Method {
        m::Method {
            key: self.key.0,
            time: self.time.0,
            class: self.class.clone(),
            name: self.name.clone(),
            file: self.file.clone(),
            line: self.line,
            line_from: self.lines.iter().map(|entry| entry.from.0).collect(),
            line_number: self.lines.iter().map(|entry| entry.line).collect(),
            bytecodes: self.bytecodes.clone(),
            listing_at: self.listing.iter().map(|(at, _)| at.0).collect(),
            listing_text: self.listing.iter().map(|(_, text)| text.clone()).collect(),
        }
    }

    fn from_wire(r: m::Method) -> Result<Self, WireError> {
        if r.line_from.len() != r.line_number.len() {
            return Err(WireError::Columns("lines"));
        }
        if r.listing_at.len() != r.listing_text.len() {
            return Err(WireError::Columns("listing"));
        }
        Ok(Method {
            key: MethodKey(r.key),
            time: TimeNs(r.time),
            class: r.class,
            name: r.name,
            file: r.file,
            line: r.line,
            lines: (r.line_from.into_iter().zip(r.line_number))
                .map(|(from, line)| LineEntry {
                    from: BytecodePc(from),
                    line,
                })
                .collect(),
            bytecodes: r.bytecodes,
            listing: (r.listing_at.into_iter().map(BytecodePc))
                .zip(r.listing_text)
                .collect(),
        })
    }
}
