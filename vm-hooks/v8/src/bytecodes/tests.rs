use proptest::prelude::*;

use super::*;

/// Operand types of V8 11 and 12.
mod types {
    pub const FLAGS: u8 = 1;
    pub const RUNTIME: u8 = 4;
    pub const INDEX: u8 = 6;
    pub const UNSIGNED: u8 = 7;
    pub const COUNT: u8 = 8;
    pub const SIGNED: u8 = 9;
    pub const REGISTER: u8 = 10;
    pub const LIST: u8 = 11;
    pub const PAIR: u8 = 12;
}

/// `kOperandKindSizes` of V8 11 and 12.
fn operand_sizes() -> Vec<u8> {
    let scales = [1, 2, 4].map(|scalable| {
        let mut sizes = vec![0, 1, 2, 1, 2, 1];
        sizes.resize(17, scalable);
        sizes
    });
    scales.concat()
}

/// Instructions by opcode, from 0.
fn instructions() -> Vec<(&'static str, Vec<u8>)> {
    use types::{COUNT, FLAGS, INDEX, LIST, PAIR, REGISTER, RUNTIME, SIGNED, UNSIGNED};
    vec![
        ("Wide", vec![]),
        ("ExtraWide", vec![]),
        ("DebugBreakWide", vec![]),
        ("DebugBreakExtraWide", vec![]),
        ("LdaSmi", vec![SIGNED]),
        ("CallProperty", vec![REGISTER, LIST, COUNT, INDEX]),
        ("CallRuntime", vec![RUNTIME, LIST, COUNT]),
        ("TestTypeOf", vec![FLAGS]),
        ("LdaGlobal", vec![INDEX, INDEX]),
        ("JumpIfFalse", vec![UNSIGNED]),
        ("JumpConstant", vec![INDEX]),
        ("JumpLoop", vec![UNSIGNED, SIGNED, INDEX]),
        ("SwitchOnSmiNoFeedback", vec![INDEX, UNSIGNED, SIGNED]),
        ("CallRuntimeForPair", vec![PAIR]),
        ("Return", vec![]),
    ]
}

fn tables() -> Tables {
    let all = instructions();
    let operands: Vec<Vec<u8>> = all.iter().map(|(_, operands)| operands.clone()).collect();
    let kinds = operand_sizes();
    let size = |scale: usize, operands: &Vec<u8>| {
        let widths = operands
            .iter()
            .map(|it| kinds[scale * 17 + usize::from(*it)]);
        1 + widths.sum::<u8>()
    };
    Tables {
        sizes: (0..3)
            .flat_map(|scale| operands.iter().map(move |it| size(scale, it)))
            .collect(),
        operand_sizes: kinds.clone(),
        names: all.iter().map(|(name, _)| (*name).to_owned()).collect(),
        runtime: vec![String::new(), "Abort".to_owned()],
        operands,
    }
}

fn constant(number: u32) -> Constant {
    match number {
        0 => Constant::Integer(12),
        1 => Constant::Integer(20),
        2 => Constant::Text("a\"b".to_owned(), true),
        3 => Constant::Function("f".to_owned()),
        4 => Constant::Number(f64::NEG_INFINITY),
        _ => Constant::Unknown,
    }
}

fn listing(set: &InstructionSet, code: &[u8]) -> Vec<String> {
    let listing = Listing {
        set,
        first_register: -7,
        constant: &constant,
    };
    let lines = listing.lines(code).into_iter();
    lines.map(|(pc, text)| format!("{} {text}", pc.0)).collect()
}

#[test]
fn operands_are_written_as_by_v8() {
    let set = InstructionSet::new(tables()).unwrap();
    let code = [
        &[4, 0xff][..],
        &[0, 4, 0x00, 0x80],
        &[1, 4, 0xc0, 0xf2, 0xfc, 0xff],
        &[5, 0xf7, 0xf6, 4, 9],
        &[5, 3, 2, 0, 9],
        &[6, 1, 0, 0xf9, 1],
        &[6, 9, 0, 0xff, 1],
        &[7, 3],
        &[8, 2, 7],
        &[8, 9, 7],
        &[13, 0xfe],
    ];
    let expected = [
        "0 LdaSmi [-1]",
        "2 LdaSmi.Wide [-32768]",
        "6 LdaSmi.ExtraWide [-200000]",
        "12 CallProperty r2, r3-r6, [9]",
        "17 CallProperty a0, r0-r0, [9]",
        "22 CallRuntime [Abort], r0-r0",
        "27 CallRuntime [9], <context>-<context>",
        "32 TestTypeOf #3",
        "34 LdaGlobal [2: \"a\\\"b\"], [7]",
        "37 LdaGlobal [9], [7]",
        "40 CallRuntimeForPair <closure>-r-4",
    ];
    assert_eq!(listing(&set, &code.concat()), expected);
}

#[test]
fn targets() {
    let set = InstructionSet::new(tables()).unwrap();
    let code = [
        &[9, 5][..],
        &[0, 9, 5, 0],
        &[10, 1],
        &[10, 9],
        &[11, 8, 0, 3],
        &[12, 0, 2, 0xff],
        &[0, 12, 0, 0, 0xff, 0xff, 1, 0],
        &[14],
    ];
    let expected = [
        "0 JumpIfFalse [5] (@ 5)",
        "2 JumpIfFalse.Wide [5] (@ 8)",
        "6 JumpConstant [1] (@ 26)",
        "8 JumpConstant [9]",
        "10 JumpLoop [8], [0], [3] (@ 2)",
        "14 SwitchOnSmiNoFeedback [0], [2], [-1] { -1: @26, 0: @34 }",
        "18 SwitchOnSmiNoFeedback.Wide [0], [65535], [1] { 1: @31, 2: @39, … 65519 more }",
        "26 Return",
    ];
    assert_eq!(listing(&set, &code.concat()), expected);
}

#[test]
fn damaged_bytecodes_end_a_listing() {
    let set = InstructionSet::new(tables()).unwrap();
    for (code, text) in [
        (&[14, 99][..], "1 (unknown instruction 99 at bytecode 1)"),
        (&[14, 0, 1], "1 (unknown instruction 1 at bytecode 1)"),
        (
            &[14, 4],
            "1 (the instruction at bytecode 1 does not end within 2 bytes)",
        ),
        (
            &[14, 0],
            "1 (the instruction at bytecode 1 does not end within 2 bytes)",
        ),
    ] {
        assert_eq!(listing(&set, code), ["0 Return", text]);
    }
}

#[test]
fn unknown_tables_leave_lengths_and_names() {
    let unknown = Tables {
        operand_sizes: vec![0; 19 * 3],
        ..tables()
    };
    let mut contradiction = tables();
    contradiction.operands[4] = vec![types::INDEX, types::INDEX];
    for tables in [unknown, contradiction] {
        let set = InstructionSet::new(tables).unwrap();
        assert!(!set.has_operands());
        let lines = listing(&set, &[4, 0xff, 0, 4, 1, 2, 14]);
        assert_eq!(lines, ["0 LdaSmi", "2 LdaSmi.Wide", "6 Return"]);
    }
    let nameless = Tables {
        names: Vec::new(),
        ..tables()
    };
    let set = InstructionSet::new(nameless).unwrap();
    assert_eq!(listing(&set, &[0, 4, 1, 0]), ["0 bytecode 4.Wide [1]"]);
    let sizes = vec![1; 7];
    let odd = InstructionSet::new(Tables { sizes, ..tables() });
    assert_eq!(odd, Err(TableError::Sizes(7)));
    let sizes = vec![1, 1, 1, 0, 1, 1];
    let empty = InstructionSet::new(Tables { sizes, ..tables() });
    assert_eq!(empty, Err(TableError::Empty(1)));
}

#[test]
fn a_shared_handler_has_sixteen_names() {
    let mut tables = tables();
    tables.sizes = vec![1; 3 * 20];
    tables.names = vec!["ShortStar".to_owned(); 18];
    let set = InstructionSet::new(tables).unwrap();
    assert_eq!([set.name(0), set.name(15)], ["Star15", "Star0"]);
    assert_eq!([set.name(16), set.name(19)], ["ShortStar", ""]);
}

proptest! {
    #[test]
    fn instructions_follow_each_other(code in prop::collection::vec(0..18_u8, 0..300)) {
        let set = InstructionSet::new(tables()).unwrap();
        let mut at = 0;
        for instruction in set.instructions(&code).map_while(Result::ok) {
            prop_assert_eq!(instruction.pc.0, at);
            at += instruction.length;
        }
        prop_assert!(at as usize <= code.len());
        prop_assert!(listing(&set, &code).len() <= code.len());
    }

    #[test]
    fn any_tables_are_safe(
        sizes in prop::collection::vec(any::<u8>(), 0..60),
        operand_sizes in prop::collection::vec(0..3_u8, 45..60),
        operands in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 0..20),
        code in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let tables = Tables { sizes, operand_sizes, operands, ..Tables::default() };
        if let Ok(set) = InstructionSet::new(tables) {
            prop_assert!(listing(&set, &code).len() <= code.len());
        }
    }
}
