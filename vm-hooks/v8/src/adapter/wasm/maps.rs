//! Pc maps of WebAssembly's code, and listings of its functions: read once a sample needs them.

use vmscope_process::{AdapterError, Memory, Poll, known};
use vmscope_records::{
    Avma, BytecodePc, Chain, ChainFrame, Method, MethodKey, PcMap, Position, Stream,
};

use super::super::V8Adapter;
use super::super::optimised::{INFERENCE_ERROR, covers_of};
use super::{ModuleId, Modules, WasmIdentity, WasmZone};
use crate::inlining::Inlining;
use crate::positions::{self, EntryForm, ScriptPosition};
use crate::wasm::Wasm;
use crate::wasm::listing::listing;

/// Maximum bytes of a function's body; V8's own limit is below.
const MAX_BODY: usize = 8 << 20;

/// Maximum bytes of inlined calls, 4,096 calls; V8 inlines fewer.
const MAX_CALLS: usize = 1 << 16;

impl V8Adapter {
    /// Reports the maps of functions at sampled addresses, as far as there is time.
    pub(super) fn tell_wasm_maps(
        &mut self,
        (wasm, memory): (&Wasm, &dyn Memory),
        sampled: &[Avma],
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        for at in sampled {
            let Some(identity) = self.wasm.unmapped(*at) else {
                continue;
            };
            if poll.spare().is_zero() {
                self.wasm.waiting.insert(*at);
                continue;
            }
            poll.spending(|poll| self.tell_wasm_map((wasm, memory), identity, poll))?;
        }
        Ok(())
    }

    fn tell_wasm_map(
        &mut self,
        (wasm, memory): (&Wasm, &dyn Memory),
        identity: WasmIdentity,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let tables = known(identity.code.tables.read(memory))?;
        if wasm.still(memory, &[identity.code])?.is_empty() {
            // The next poll looks for the code.
            return Ok(());
        }
        let form = self.vm.layout.positions;
        let WasmZone { zone, modules, .. } = &mut self.wasm;
        let map = match tables {
            Some((positions, calls)) => {
                modules.map(&identity, (&positions, form), &calls, memory, poll)?
            }
            None => PcMap::None,
        };
        if map != PcMap::None {
            zone.again(poll, &identity, |identity, constituent, poll| {
                modules.describe(identity, constituent, poll);
                constituent.map = map;
            });
        }
        modules.mapped.insert(identity);
        Ok(())
    }
}

impl Modules {
    /// The map of a function's code by its source positions, in a form, and its inlined calls.
    fn map(
        &mut self,
        WasmIdentity { code, module }: &WasmIdentity,
        (positions, form): (&[u8], EntryForm),
        calls: &[u8],
        memory: &dyn Memory,
        poll: &mut Poll,
    ) -> Result<PcMap, AdapterError> {
        let Some((module, own)) = module.zip(code.index) else {
            return Ok(PcMap::None);
        };
        let calls = calls.get(..MAX_CALLS).unwrap_or(calls);
        let size = u32::try_from(code.end.0 - code.start.0).unwrap_or(u32::MAX);
        let Ok(pieces) = positions::pieces(positions, size, form) else {
            poll.lost(Stream::Adapter, 1, poll.began());
            return Ok(PcMap::None);
        };
        // Only calls and memory accesses have positions: code of inlined functions is inferred.
        let error = if calls.is_empty() { 0 } else { INFERENCE_ERROR };
        let pieces = pieces.into_iter();
        let pieces = pieces.map(|piece| (piece.start, piece.end, piece.position, error));
        covers_of(pieces, |position| {
            self.chain((calls, position), (module, own), memory, poll)
        })
    }

    /// Functions at a position in the code of function `own`, innermost first; `None` if the table of inlined `calls` or
    /// the module is damaged.
    fn chain(
        &mut self,
        (calls, position): (&[u8], ScriptPosition),
        (module, own): (ModuleId, u32),
        memory: &dyn Memory,
        poll: &mut Poll,
    ) -> Result<Option<Chain>, AdapterError> {
        let Ok(frames) = Inlining::of(calls).chain(position) else {
            return Ok(None);
        };
        let mut chain = Vec::with_capacity(frames.len());
        for frame in frames {
            let number = frame.function.unwrap_or(own);
            let functions = self.functions.get(&module);
            let Some(body) = functions.and_then(|it| it.body(number)) else {
                return Ok(None);
            };
            let at = frame.offset.and_then(|at| body.start.checked_add(at));
            let at = at.filter(|at| body.contains(at));
            chain.push(ChainFrame {
                method: self.whole(module, number, memory, poll)?,
                position: at.map_or(Position::Unknown, |at| Position::Bytecode(BytecodePc(at))),
            });
        }
        Ok(Some(chain))
    }

    /// The method of a function; reports its listing once.
    fn whole(
        &mut self,
        module: ModuleId,
        number: u32,
        memory: &dyn Memory,
        poll: &mut Poll,
    ) -> Result<MethodKey, AdapterError> {
        let (key, is_listed) = self.method(module, number, poll);
        let key = *key;
        if std::mem::replace(is_listed, true) {
            return Ok(key);
        }
        let Some(functions) = self.functions.get(&module) else {
            return Ok(key);
        };
        let Some(body) = functions.body(number) else {
            return Ok(key);
        };
        let at = Avma(module.bytes.start.0.saturating_add(body.start.into()));
        let length = body.end.saturating_sub(body.start);
        let read = memory.read_vec(at, length.into(), MAX_BODY);
        let read = known(read.map_err(AdapterError::reading("WebAssembly module")))?;
        poll.method(Method {
            key,
            time: poll.now(),
            name: functions.function(number),
            file: functions.url.clone(),
            listing: listing(&read.unwrap_or_default(), body.start, functions),
            ..Method::default()
        });
        Ok(key)
    }
}
