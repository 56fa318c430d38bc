//! Pc maps of optimised code: by V8's source positions, or by the places at which V8 can leave the code.

use std::hash::{Hash, Hasher as _};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHasher};
use vmscope_process::{AdapterError, Poll, ProcessView, known};
use vmscope_records::{BytecodePc, Chain, ChainFrame, Cover, Exactness, PcMap, Position};

use super::maps::{MAX_TABLE, damaged};
use super::methods::Whole;
use super::{Reader, V8Adapter};
use crate::code::{Code, Kind};
use crate::deopt::{DeoptData, DeoptFrame, Exits};
use crate::inlining::Inlining;
use crate::positions::{self, ScriptPosition};

/// Maximum number of frames in all chains of a piece of code; then it is damaged. (The largest function of Pyodide: 5,852.)
const MAX_FRAMES: usize = 1 << 20;

/// Bound of the error of inlined functions without positions of all code, in percent ([`Cover::method_error`]): by
/// deoptimisation data, and in WebAssembly.
pub(super) const INFERENCE_ERROR: u8 = 30;

/// Finds the functions of one piece of code.
type Function<'f> = dyn FnMut(Option<u32>) -> Result<Option<Arc<Whole>>, AdapterError> + 'f;

impl V8Adapter {
    /// Map of optimised code.
    pub(super) fn covers(
        &mut self,
        code: &Code,
        process: &ProcessView,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<PcMap, AdapterError> {
        let fields = reader.heap.layout.optimised;
        // V8 takes the data from code that it no longer uses.
        let Some(own) = known(reader.heap.function_of_optimised(code))? else {
            return Ok(PcMap::None);
        };
        let what = "source positions";
        let table = reader.heap.bytes(code.positions, MAX_TABLE, what)?;
        let deopt = reader.heap.layout.deopt;
        let deopt = deopt.filter(|_| table.is_empty() && code.kind == Kind::Maglev);
        let data = match deopt {
            Some(form) => Some(DeoptData::read(&reader.heap, code, form)?),
            None => None,
        };
        if table.is_empty() {
            // Node.js requests positions for its isolates (`UseDetailedSourcePositionsForProfiling`); Maglev
            // ignored the request in Node.js 22.0 to 22.5 and 24.0 to 24.16.
            let text = if data.is_some() {
                "Maglev's code has bytecodes and lines at calls only, and inlined functions are inferred: \
                 V8 keeps no source positions of it in some releases of Node.js 24"
            } else {
                "some optimised code has no bytecodes and lines: V8 keeps no source positions of it \
                 (Maglev's code in some releases of Node.js 22, isolates that addons make)"
            };
            self.limit(text, poll);
            if data.is_none() {
                return Ok(PcMap::None);
            }
        }
        let what = "inlined calls";
        let literals = reader.heap.item(code.data, fields.literals, what)?;
        let calls = reader.heap.item(code.data, fields.inlining, what)?;
        let calls = reader.heap.bytes(calls, MAX_TABLE, what)?;
        let form = reader.heap.layout.positions;
        let exits = known(Exits::read(&reader.heap, code))?;
        let mut functions: FxHashMap<Option<u32>, Option<Arc<Whole>>> = FxHashMap::default();
        let mut function = |number: Option<u32>| -> Result<_, AdapterError> {
            if let Some(known) = functions.get(&number) {
                return Ok(known.clone());
            }
            let read = match number {
                None => Ok(own),
                Some(number) => reader.heap.item(literals, number.into(), what),
            };
            let read = read.and_then(|info| self.whole(info, process, reader, poll));
            let whole = match read {
                Err(busy @ AdapterError::Busy { .. }) => return Err(busy),
                read => known(read)?.flatten(),
            };
            functions.insert(number, whole.clone());
            Ok(whole)
        };
        if let Some(data) = data {
            // Code of inlined functions is inferred.
            let error = if calls.is_empty() { 0 } else { INFERENCE_ERROR };
            let pieces = data.pieces().into_iter().map(|piece| {
                let error = if piece.is_call { 0 } else { error };
                let place = (piece.place, piece.is_call);
                (piece.start, piece.end, place, error)
            });
            return covers_of(with_exits(pieces, exits), |(place, is_call)| {
                chain_of_frames(data.frames(place), is_call, &mut function)
            });
        }
        let pieces = positions::pieces(&table, code.size(), form);
        let pieces = pieces.map_err(|error| damaged(error, code))?;
        let pieces = pieces
            .iter()
            .map(|piece| (piece.start, piece.end, piece.position, 0));
        covers_of(with_exits(pieces, exits), |position| {
            chain(&calls, position, &mut function)
        })
    }

    /// Hash of the functions that optimised code has inlined, 0 without any; `None` if V8 has taken the code's data. In a new
    /// worker, code can have all pointers of an ended worker's code, and other inlined functions.
    pub(super) fn inlined(
        &mut self,
        code: &Code,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<Option<u64>, AdapterError> {
        if !matches!(code.kind, Kind::Turbofan | Kind::Maglev) {
            return Ok(Some(0));
        }
        let fields = reader.heap.layout.optimised;
        let what = "inlined calls";
        let literals = known(reader.heap.item(code.data, fields.literals, what))?;
        let calls = reader.heap.item(code.data, fields.inlining, what);
        let calls = calls.and_then(|calls| reader.heap.bytes(calls, MAX_TABLE, what));
        let Some((literals, calls)) = literals.zip(known(calls)?) else {
            return Ok(None);
        };
        let mut hasher = FxHasher::default();
        for function in Inlining::of(&calls).functions() {
            let info = reader.heap.item(literals, function.into(), what);
            let Some(info) = known(info)? else {
                return Ok(None);
            };
            self.method_of(info, reader, poll)?.hash(&mut hasher);
        }
        Ok(Some(hasher.finish()))
    }
}

/// Pieces of code, and of its exits if they are known ([`Exits::take_places`]).
fn with_exits<P: Copy>(
    pieces: impl Iterator<Item = (u32, u32, P, u8)>,
    exits: Option<Exits>,
) -> impl Iterator<Item = (u32, u32, P, u8)> {
    let mut pieces: Vec<_> = pieces.collect();
    if let Some(exits) = exits {
        exits.take_places(&mut pieces);
    }
    pieces.into_iter()
}

/// Covers of pieces of code, each with start, end, place and error of the innermost method. A piece with an
/// unknown function has no cover: the function must not count for its caller. The code's own method stands
/// for the piece, as for pieces after [`MAX_FRAMES`].
pub(super) fn covers_of<P: Copy + Eq + Hash>(
    pieces: impl Iterator<Item = (u32, u32, P, u8)>,
    mut chain_of: impl FnMut(P) -> Result<Option<Chain>, AdapterError>,
) -> Result<PcMap, AdapterError> {
    let mut chains: Vec<Chain> = Vec::new();
    let mut numbers: FxHashMap<P, Option<u32>> = FxHashMap::default();
    let mut covers: Vec<Cover> = Vec::new();
    let mut left = MAX_FRAMES;
    for (start, end, place, method_error) in pieces {
        let number = match numbers.get(&place) {
            Some(number) => *number,
            None if left == 0 => continue,
            None => {
                let chain = chain_of(place)?;
                left = left.saturating_sub(chain.as_ref().map_or(1, Vec::len));
                let number = u32::try_from(chains.len()).ok();
                let number = number.filter(|_| chain.is_some());
                chains.extend(chain);
                numbers.insert(place, number);
                number
            }
        };
        if let Some(chain) = number {
            let frames = chains.get(chain as usize);
            let innermost = frames.and_then(|frames| frames.first());
            let is_placed = innermost.is_some_and(|frame| frame.position != Position::Unknown);
            covers.push(Cover {
                start,
                end,
                chain,
                exactness: match is_placed {
                    true => Exactness::Approximate,
                    false => Exactness::MethodOnly,
                },
                method_error,
            });
        }
    }
    Ok(match covers.is_empty() {
        true => PcMap::None,
        false => PcMap::Covers { covers, chains },
    })
}

/// The chain at a position; `None` if it has an unknown function.
fn chain(
    calls: &[u8],
    position: ScriptPosition,
    function: &mut Function<'_>,
) -> Result<Option<Chain>, AdapterError> {
    let Ok(frames) = Inlining::of(calls).chain(position) else {
        return Ok(None);
    };
    let mut chain = Vec::with_capacity(frames.len());
    for (depth, frame) in frames.into_iter().enumerate() {
        let Some(whole) = function(frame.function)? else {
            return Ok(None);
        };
        chain.push(ChainFrame {
            method: whole.key,
            position: whole.position(frame.offset, depth > 0),
        });
    }
    Ok(Some(chain))
}

/// The chain of an entry's frames; `None` if it has an unknown function. Without the innermost bytecode
/// for code beside calls.
fn chain_of_frames(
    frames: &[DeoptFrame],
    is_call: bool,
    function: &mut Function<'_>,
) -> Result<Option<Chain>, AdapterError> {
    let mut chain = Vec::with_capacity(frames.len());
    for frame in frames {
        let Some(whole) = function(Some(frame.function))? else {
            return Ok(None);
        };
        let is_known = is_call || !chain.is_empty();
        let bytecode = frame.bytecode.filter(|_| is_known).map(BytecodePc);
        chain.push(ChainFrame {
            method: whole.key,
            position: bytecode.map_or(Position::Unknown, Position::Bytecode),
        });
    }
    Ok((!chain.is_empty()).then_some(chain))
}
