//! Maps of code whose debug records are complete (`-XX:+DebugNonSafepoints`): the records
//! themselves say what each piece of code stands for.

use rustc_hash::FxHashMap;
use vmscope_records::Exactness;

use super::{Map, Piece};
use crate::code::{Frame, Nmethod, PcDesc};

/// A scope that so many records share, and such a part of all, is left over: no bytecode
/// has as many instructions in as many places.
const MIN_STALE: usize = 10;
const STALE_PART: usize = 5;

/// A direct call, which all calls of Java methods and of the run time are.
const CALL: u8 = 0xe8;
const CALL_BYTES: usize = 5;

/// Whether the debug tables of these nmethods are complete: the records that no call, poll
/// or trap needs describe no locals, and do not lie behind a call. A default table has
/// next to none of them.
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

/// The nmethod with the records alone that a JVM without the flag would have: for JVMs
/// whose other records are wrong.
#[must_use]
pub fn without_needless(nmethod: &Nmethod) -> Nmethod {
    let needed = nmethod.pcs.iter().filter(|pc| !is_needless(nmethod, pc));
    Nmethod {
        pcs: needed.copied().collect(),
        ..nmethod.clone()
    }
}

/// Whether no call, poll or trap needs a record.
fn is_needless(nmethod: &Nmethod, pc: &PcDesc) -> bool {
    let call = usize::try_from(pc.pc)
        .ok()
        .and_then(|pc| pc.checked_sub(CALL_BYTES));
    let is_call = call.and_then(|call| nmethod.code.get(call)) == Some(&CALL);
    !is_call && is_bare(nmethod, pc.scope)
}

/// The scope that C2 gave to what it made after all was parsed: new nodes get the notes of
/// the bytecode that happened to be parsed last, wherever they are made. `None` where
/// there is no sign of that.
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

/// The map of an nmethod by its records: each covers what lies behind the one before, up to
/// and with its own pc. Records with a stale scope are passed over.
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
        });
        start = end;
    }
    // A record of a call or poll is certain of its own pc alone.
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
    map
}

fn is_bare(nmethod: &Nmethod, scope: u32) -> bool {
    nmethod
        .scope(scope)
        .is_ok_and(|scope| scope.values == [0; 3])
}
