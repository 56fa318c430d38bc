//! Places at which V8 can leave Maglev's code, against the source positions of the same code.

use std::ops::Range;

use vmscope_records::{BytecodePc, Chain, ChainFrame, PcMap, Position};
use vmscope_v8::V8;
use vmscope_v8::code::{self, Code, Kind};
use vmscope_v8::deopt::DeoptData;
use vmscope_v8::inlining::Inlining;
use vmscope_v8::object::Heap;
use vmscope_v8::positions;

use super::maps::told;
use crate::common::nodes::nodes;
use crate::common::say;

/// The chain of a map at an offset.
fn chain_at(map: &PcMap, offset: u32) -> Option<&Chain> {
    let PcMap::Covers { covers, chains } = map else {
        return None;
    };
    let cover = covers
        .iter()
        .find(|it| (it.start..it.end).contains(&offset))?;
    chains.get(cover.chain as usize)
}

/// Code by source positions: its range, and the numbers of the inlined functions, innermost first.
fn inlined(heap: &Heap<'_>, code: &Code) -> Vec<(Range<u32>, Vec<u32>)> {
    let (fields, most) = (heap.layout.optimised, 1 << 20);
    let table = heap.bytes(code.positions, most, "positions").unwrap();
    let calls = heap.item(code.data, fields.inlining, "calls").unwrap();
    let calls = heap.bytes(calls, most, "calls").unwrap();
    let pieces = positions::pieces(&table, code.size(), heap.layout.positions).unwrap();
    let with_functions = pieces.into_iter().map(|piece| {
        let chain = Inlining::of(&calls).chain(piece.position).unwrap();
        let functions = chain.iter().filter_map(|frame| frame.function);
        (piece.start..piece.end, functions.collect())
    });
    with_functions.collect()
}

#[test]
fn calls_have_their_functions_and_bytecodes() {
    for node in nodes().iter().filter(|node| node.release == 24) {
        let (stopped, told) = told(node, &["--no-turbofan"]);
        let process = stopped.view();
        let vm = V8::open(&process).unwrap().expect("V8");
        let form = vm.layout.deopt.expect("a form");
        let heap = vm.heap(process.memory());
        let isolate = *vm
            .isolates(process.memory())
            .unwrap()
            .first()
            .expect("an isolate");
        let tables = vm.tables(isolate, process.memory()).unwrap();
        let streams = vm.streams(&process, &heap, (&tables, isolate)).unwrap();
        let codes = code::describe(&heap, &streams.addresses).unwrap();
        let (mut calls, mut callers, mut bytes, mut same) = (0, 0, 0, 0);
        for code in codes.iter().filter(|code| code.kind == Kind::Maglev) {
            let known = told.code.values().find(|one| one.start == code.start);
            let Some(known) = known else { continue };
            let data = DeoptData::read(&heap, code, form).unwrap();
            let inlined = inlined(&heap, code);
            // Behind the last source position is code out of line.
            let end = inlined.last().map_or(0, |piece| piece.0.start);
            for piece in data.pieces().iter().filter(|piece| piece.end <= end) {
                let frames = data.frames(piece.place);
                let Some(chain) = chain_at(&known.map, piece.end - 1) else {
                    continue;
                };
                let functions = inlined.iter().find(|it| it.0.contains(&(piece.end - 1)));
                let (_, callees) = frames.split_last().expect("the code's own function");
                let callees: Vec<u32> = callees.iter().map(|frame| frame.function).collect();
                let is_same = functions.is_some_and(|it| it.1 == callees);
                bytes += piece.end - piece.start;
                same += u32::from(is_same) * (piece.end - piece.start);
                if !piece.is_call {
                    continue;
                }
                assert!(is_same, "{frames:?}, not {chain:?}");
                for (depth, (frame, known)) in frames.iter().zip(chain).enumerate() {
                    // The check of the stack has no bytecode.
                    let Some(bytecode) = frame.bytecode.map(BytecodePc) else {
                        continue;
                    };
                    let listing = &told.methods[&known.method].listing;
                    let listed = listing.iter().find(|(pc, _)| *pc == bytecode);
                    let text = &*listed.expect("a bytecode").1;
                    if depth > 0 {
                        let is_call = ["Call", "Construct"].iter().any(|it| text.starts_with(it));
                        assert!(is_call, "{text}");
                        callers += 1;
                    // V8 gives the check at a loop's end the place of the loop's begin.
                    } else if !text.starts_with("JumpLoop") {
                        let position = Position::Bytecode(bytecode);
                        let method = known.method;
                        let line = told.line(&ChainFrame { method, position });
                        assert_eq!(line, told.line(known), "{text}");
                        calls += 1;
                    }
                }
            }
        }
        say(&format!(
            "{}: {calls} calls, {callers} callers, {same} of {bytes} bytes",
            node.release
        ));
        assert!(calls > 10 && callers > 5, "{calls}, {callers}");
        assert!(same * 100 >= bytes * 75, "{same} of {bytes}");
    }
}
