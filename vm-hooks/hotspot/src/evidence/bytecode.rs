//! Stepping over bytecodes as the VM keeps them in memory: rewritten, so that operands
//! of fields and calls are indices of its own in its own byte order (`rewriter.cpp`,
//! `bytecodes.hpp`, the same on JDK 11 to 25).

/// One bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it is.
    pub at: usize,
    /// What it is in a class file.
    pub code: u8,
    /// Its index into the pool or its cache; 0 where it has none.
    pub operand: u16,
    /// Its number: of `bipush`, `sipush` and `iinc`.
    pub immediate: i16,
    /// Where the next one is.
    pub next: usize,
}

/// First of the bytecodes that only the VM knows.
const FIRST_OWN: u8 = 203;

/// What the VM's own bytecodes stand for, from [`FIRST_OWN`] on.
const OWN: [u8; 36] = [
    0xb4, 0xb4, 0xb4, 0xb4, 0xb4, 0xb4, 0xb4, 0xb4, // fast getfields
    0xb5, 0xb5, 0xb5, 0xb5, 0xb5, 0xb5, 0xb5, 0xb5, 0xb5, // fast putfields
    0x2a, 0x2a, 0x2a, 0x2a, // aload_0, and that with the getfield behind it
    0x15, 0x15, 0x15, // iload, two of them, that with the caload behind it
    0xb6, // final invokevirtual
    0xab, 0xab, // switches
    0x12, 0x13, // ldc of an object
    0xb1, // return of Object's constructor
    0xb6, // invokehandle
    0xb4, 0xb5, 0x2a, 0x15, // those that class data sharing does not rewrite
    0x00,
];

/// Lengths of the bytecodes from `nop` (0) to `jsr_w` (201); 0: by its operands.
const LENGTHS: [u8; 202] = {
    let mut lengths = [1_u8; 202];
    let two = [
        0x10_u8, 0x12, 0x15, 0x16, 0x17, 0x18, 0x19, 0x36, 0x37, 0x38, 0x39, 0x3a, 0xa9, 0xbc,
    ];
    let mut i = 0;
    while i < two.len() {
        lengths[two[i] as usize] = 2;
        i += 1;
    }
    let mut code = 0x99;
    while code <= 0xa8 {
        lengths[code] = 3;
        code += 1;
    }
    let mut code = 0xb2;
    while code <= 0xb8 {
        lengths[code] = 3;
        code += 1;
    }
    let three = [
        0x11_u8, 0x13, 0x14, 0x84, 0xbb, 0xbd, 0xc0, 0xc1, 0xc6, 0xc7,
    ];
    let mut i = 0;
    while i < three.len() {
        lengths[three[i] as usize] = 3;
        i += 1;
    }
    lengths[0xb9] = 5;
    lengths[0xba] = 5;
    lengths[0xc5] = 4;
    lengths[0xc8] = 5;
    lengths[0xc9] = 5;
    lengths[0xaa] = 0;
    lengths[0xab] = 0;
    lengths[0xc4] = 0;
    lengths
};

/// The bytecode at `at`; `None` at the end, or where it is torn or not known.
#[must_use]
pub fn step(bytecodes: &[u8], at: usize) -> Option<Step> {
    let raw = *bytecodes.get(at)?;
    let own = raw.checked_sub(FIRST_OWN);
    let code = match own {
        Some(own) => *OWN.get(usize::from(own))?,
        None => raw,
    };
    let byte = |offset: usize| bytecodes.get(at.checked_add(offset)?).copied();
    let big = |offset| Some(u16::from_be_bytes([byte(offset)?, byte(offset + 1)?]));
    let native = |offset| Some(u16::from_le_bytes([byte(offset)?, byte(offset + 1)?]));
    let length = match code {
        0xaa | 0xab => switch_length(bytecodes, at, raw)?,
        0xc4 => {
            if byte(1)? == 0x84 {
                6
            } else {
                4
            }
        }
        code => usize::from(*LENGTHS.get(usize::from(code))?),
    };
    let next = at.checked_add(length)?;
    if next > bytecodes.len() {
        return None;
    }
    let operand = match code {
        0x12 => u16::from(byte(1)?),
        0xb2..=0xba => native(1)?,
        0x13 if own.is_some() => native(1)?,
        0x13 | 0x14 | 0xbb | 0xbd | 0xc0 | 0xc1 | 0xc5 => big(1)?,
        _ => 0,
    };
    let immediate = match code {
        0x10 => i16::from(byte(1)?.cast_signed()),
        0x11 => big(1)?.cast_signed(),
        0x84 => i16::from(byte(2)?.cast_signed()),
        _ => 0,
    };
    Some(Step {
        at,
        code,
        operand,
        immediate,
        next,
    })
}

/// The numbers of a switch, all of them big endian: from the first aligned place on.
fn switch_word(bytecodes: &[u8], at: usize, index: usize) -> Option<i32> {
    let begin = (at.checked_add(4)? & !3).checked_add(index.checked_mul(4)?)?;
    let four = bytecodes.get(begin..begin.checked_add(4)?)?;
    Some(i32::from_be_bytes(four.try_into().ok()?))
}

fn switch_length(bytecodes: &[u8], at: usize, raw: u8) -> Option<usize> {
    let words = if raw == 0xaa {
        let (low, high) = (
            switch_word(bytecodes, at, 1)?,
            switch_word(bytecodes, at, 2)?,
        );
        let cases = i64::from(high) - i64::from(low) + 1;
        usize::try_from(cases).ok()?.checked_add(3)?
    } else {
        let pairs = usize::try_from(switch_word(bytecodes, at, 1)?).ok()?;
        pairs.checked_mul(2)?.checked_add(2)?
    };
    let end = (at.checked_add(4)? & !3).checked_add(words.checked_mul(4)?)?;
    (end <= bytecodes.len()).then(|| end - at)
}

/// The keys of the switch at `at`, `limit` at most.
#[must_use]
pub fn switch_keys(bytecodes: &[u8], at: usize, limit: usize) -> Vec<i32> {
    let word = |index| switch_word(bytecodes, at, index);
    if bytecodes.get(at) == Some(&0xaa) {
        let (Some(low), Some(high)) = (word(1), word(2)) else {
            return Vec::new();
        };
        return (low..=high).take(limit).collect();
    }
    let pairs = usize::try_from(word(1).unwrap_or(0))
        .unwrap_or(0)
        .min(limit);
    (0..pairs).map_while(|pair| word(2 + 2 * pair)).collect()
}
