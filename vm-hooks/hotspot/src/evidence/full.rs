//! Maps of code with complete debug records (`-XX:+DebugNonSafepoints`): the records alone
//! describe all code.

use rustc_hash::FxHashMap;
use vmscope_records::Exactness;

use super::{Map, NamedBy, Piece};
use crate::code::{Frame, Nmethod, PcDesc};

/// Minimum records, and minimum share of all records, with a stale scope. No bytecode has such
/// spread-out instructions.
const MIN_STALE: usize = 10;
const STALE_PART: usize = 5;

/// Opcode of a direct call, used for all calls of Java methods and of the runtime.
const CALL: u8 = 0xe8;
pub(super) const CALL_BYTES: usize = 5;

/// Whether the debug tables of these nmethods are complete. Extra records, unneeded by any
/// call, poll or trap, describe no locals and do not follow a call. A default table has almost
/// no such records.
pub fn has_full_tables<'a>(nmethods: impl IntoIterator<Item = &'a Nmethod>) -> bool {
    let (mut all, mut needless) = (0_usize, 0_usize);
    for nmethod in nmethods {
        all += nmethod.pcs.len();
        needless += nmethod
            .pcs
            .iter()
            .filter(|pc| is_needless(nmethod, pc))
            .count();
    }
    needless.saturating_mul(4) > all
}

/// The nmethod reduced to the records of a JVM without the flag, for JVMs with wrong extra
/// records.
#[must_use]
pub fn without_needless(nmethod: &Nmethod) -> Nmethod {
    let needed = nmethod.pcs.iter().filter(|pc| !is_needless(nmethod, pc));
    Nmethod {
        pcs: needed.copied().collect(),
        ..nmethod.clone()
    }
}

/// Whether the record belongs to no call, poll or trap.
fn is_needless(nmethod: &Nmethod, pc: &PcDesc) -> bool {
    !is_after_call(nmethod, pc) && is_bare(nmethod, pc.scope)
}

/// Whether the record's pc is the return address of a direct call.
pub(super) fn is_after_call(nmethod: &Nmethod, pc: &PcDesc) -> bool {
    let call = usize::try_from(pc.pc)
        .ok()
        .and_then(|pc| pc.checked_sub(CALL_BYTES));
    call.and_then(|call| nmethod.code.get(call)) == Some(&CALL)
}

/// Stale scope, used by C2 after parsing: C2 gives new nodes the notes of the last parsed
/// bytecode, wherever the nodes are. `None` without signs of this defect.
#[must_use]
pub fn stale_scope(nmethod: &Nmethod) -> Option<Vec<Frame>> {
    if !nmethod.is_by_c2() {
        return None;
    }
    let mut counts: FxHashMap<Vec<Frame>, usize> = FxHashMap::default();
    let mut all = 0;
    for pc in &nmethod.pcs {
        let is_bare = nmethod
            .scope(pc.scope)
            .is_ok_and(|scope| scope.values == [0; 3]);
        if is_bare {
            all += 1;
            *counts.entry(nmethod.chain(pc.scope).ok()?).or_default() += 1;
        }
    }
    let (chain, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (count >= MIN_STALE && count.saturating_mul(STALE_PART) >= all).then_some(chain)
}

/// Map of an nmethod by its records. A record covers the pcs after the previous record, up to
/// and including its own pc. Records with a stale scope are skipped.
#[must_use]
pub fn full(nmethod: &Nmethod) -> Map {
    let stale = stale_scope(nmethod);
    let mut map = Map::default();
    let mut indices: FxHashMap<u32, Option<u32>> = FxHashMap::default();
    let mut start = 0;
    for pc in &nmethod.pcs {
        let Some(end) = u32::try_from(pc.pc).ok().and_then(|pc| pc.checked_add(1)) else {
            continue;
        };
        let chain = *indices.entry(pc.scope).or_insert_with(|| {
            let chain = nmethod.chain(pc.scope).ok()?;
            if stale.as_ref() == Some(&chain) && is_bare(nmethod, pc.scope) {
                return None;
            }
            map.chains.push(chain);
            u32::try_from(map.chains.len() - 1).ok()
        });
        let Some(chain) = chain.filter(|_| end > start) else {
            continue;
        };
        map.pieces.push(Piece {
            start,
            end,
            chain,
            exactness: if is_bare(nmethod, pc.scope) {
                Exactness::Approximate
            } else {
                Exactness::Exact
            },
            named_by: NamedBy::Record,
        });
        start = end;
    }
    // Records of calls and polls are exact only at their own pc.
    let mut pieces = Vec::with_capacity(map.pieces.len());
    for piece in map.pieces {
        let at = piece.end - 1;
        if piece.exactness == Exactness::Exact && at > piece.start {
            pieces.push(Piece {
                end: at,
                exactness: Exactness::Approximate,
                ..piece
            });
            pieces.push(Piece { start: at, ..piece });
        } else {
            pieces.push(piece);
        }
    }
    map.pieces = pieces;
    map.covered = std::iter::once(0..u32::MAX).collect();
    map
}

fn is_bare(nmethod: &Nmethod, scope: u32) -> bool {
    nmethod
        .scope(scope)
        .is_ok_and(|scope| scope.values == [0; 3])
}
