//! Data of programs without symbols: the searches end, and what they find lies in the data.
//!
//! The input: lengths of constant data, variables and the isolate (16 bits each), then these, then the table of
//! handlers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_v8::testing::{StrippedProgram, made_symbols};

fuzz_target!(|input: &[u8]| {
    let Some((lengths, mut rest)) = input.split_first_chunk::<6>() else {
        return;
    };
    let (lengths, _) = lengths.as_chunks::<2>();
    let mut parts = lengths.iter().map(|length| {
        let length = usize::from(u16::from_le_bytes(*length));
        let (part, others) = rest.split_at(length.min(rest.len()));
        rest = others;
        part.to_vec()
    });
    let [constants, variables, isolate] = std::array::from_fn(|_| parts.next().unwrap_or_default());
    let (handlers, _) = rest.as_chunks::<8>();
    let data = [(0x10_0000, constants.len()), (0x20_0000, variables.len())];
    let [tables, builtins] = made_symbols(StrippedProgram {
        constants,
        variables,
        isolate,
        handlers: handlers.iter().map(|entry| u64::from_le_bytes(*entry)).collect(),
    });
    for table in tables {
        let holds = |(at, length): (u64, usize)| {
            at <= table.address.0 && table.address.0 + table.size <= at + length as u64
        };
        assert!(data.into_iter().any(holds), "{table:?}");
    }
    for builtin in &builtins {
        assert!(builtin.size <= 1 << 16, "{builtin:?}");
    }
});
