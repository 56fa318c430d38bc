//! V8's tables of positions, inlined calls, Sparkplug and bytecodes: decoders end, and their results are
//! inside the code.
//!
//! The input: size of the code and of the first table (16 bits each), then two tables.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use vmscope_records::PcMap;
use vmscope_v8::bytecodes::{Constant, InstructionSet, Listing, Tables};
use vmscope_v8::inlining::Inlining;
use vmscope_v8::lines::{Lines, Width};
use vmscope_v8::positions::{self, EntryForm};
use vmscope_v8::sparkplug;

/// Operand types of V8 11, one kind an instruction from opcode 4 on.
static SET: LazyLock<InstructionSet> = LazyLock::new(|| {
    let operand_sizes: Vec<u8> = [1, 2, 4]
        .into_iter()
        .flat_map(|scalable| {
            let mut sizes = vec![0, 1, 2, 1, 2, 1];
            sizes.resize(17, scalable);
            sizes
        })
        .collect();
    let mut operands = vec![Vec::new(); 4];
    operands.extend((1..=16).map(|kind| vec![kind]));
    operands.extend([vec![6, 7, 9], vec![11, 8]]);
    let size = |scale: usize, kinds: &Vec<u8>| {
        let sizes = kinds.iter().map(|kind| operand_sizes[scale * 17 + usize::from(*kind)]);
        1 + sizes.sum::<u8>()
    };
    let sizes = (0..3).flat_map(|scale| operands.iter().map(move |kinds| size(scale, kinds)));
    let mut names = vec!["JumpConstant".to_owned(); operands.len()];
    names[10] = "JumpLoop".to_owned();
    names[20] = "SwitchOnSmiNoFeedback".to_owned();
    let tables = Tables {
        sizes: sizes.collect(),
        operand_sizes: operand_sizes.clone(),
        names,
        runtime: Vec::new(),
        operands: operands.clone(),
    };
    let set = InstructionSet::new(tables).expect("sound tables");
    assert!(set.has_operands());
    set
});

fuzz_target!(|input: &[u8]| {
    let Some(([a, b, c, d], rest)) = input.split_first_chunk() else {
        return;
    };
    let size = u32::from(u16::from_le_bytes([*a, *b]));
    let cut = usize::from(u16::from_le_bytes([*c, *d])).min(rest.len());
    let (table, second) = rest.split_at(cut);

    for form in [EntryForm::Signed, EntryForm::Flags] {
        let mut end = 0;
        for piece in positions::pieces(table, size, form).unwrap_or_default() {
            assert!(end <= piece.start && piece.start < piece.end && piece.end <= size);
            end = piece.end;
            if let Ok(chain) = Inlining::of(second).chain(piece.position) {
                assert!(chain.last().is_some_and(|outermost| outermost.function.is_none()));
            }
        }
    }

    let bytecodes = SET.instructions(second).map_while(Result::ok);
    if let Ok(PcMap::Boundary { entries, .. }) = sparkplug::map(table, bytecodes.map(|it| it.pc), size) {
        assert!(entries.is_sorted() && entries.iter().all(|(at, _)| *at <= size));
    }
    let listing = Listing {
        set: &SET,
        first_register: -7,
        constant: &|number| Constant::Integer(number.cast_signed()),
    };
    assert!(listing.lines(second).len() <= second.len());

    let mut lines = Lines::new();
    lines.add(table, Width::One);
    lines.add(second, Width::Two);
    assert!(lines.line_of(size).is_none_or(|line| line <= size + 1));
});
