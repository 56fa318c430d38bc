use super::*;
use crate::bytecodes::Encoding;

/// Pc of the first bytecode.
const START: usize = 16;

/// Number of instructions behind the first one.
const BEHIND: usize = 600;

fn listing(encoding: Encoding, bytes: &[u8]) -> Listing {
    let literal = &mut |of, index| match of {
        Of::Constant => Some(format!("#constant{index}")),
        Of::Variable => Some(format!("Variable{index}")),
        Of::Selector => Some(format!("selector{index}")),
        Of::SpecialSelector => Some(format!("special{index}")),
        Of::Number => None,
    };
    Listing::new(&Bytecodes::known(encoding), bytes, START, literal)
}

/// The first instruction of `code`, before instructions without operands.
fn first(encoding: Encoding, code: &[u8]) -> String {
    let (pop, end) = match encoding {
        Encoding::V3 => (135, 120),
        Encoding::Sista => (216, 88),
    };
    let bytes = [&[0; START], code, &[pop; BEHIND], &[end]].concat();
    let listing = listing(encoding, &bytes);
    assert!(listing.is_whole, "{code:?}");
    assert_eq!(listing.bytecodes, bytes[START..]);
    let [(pc, text), others @ ..] = &listing.lines[..] else {
        panic!("{code:?} has no lines");
    };
    assert_eq!(pc.0, START as u32);
    let (end, others) = others.split_last().unwrap();
    assert!(others.iter().all(|(_, text)| text == "pop"), "{code:?}");
    assert_eq!(others.len(), BEHIND);
    assert_eq!(end.1, "returnSelf");
    text.clone()
}

fn are_texts(encoding: Encoding, table: &[(&[u8], &str)]) {
    for (code, text) in table {
        assert_eq!(first(encoding, code), *text, "{code:?}");
    }
}

/// By the class comment of `EncoderForV3PlusClosures`.
#[test]
fn instructions_of_the_older_set() {
    are_texts(
        Encoding::V3,
        &[
            (&[15], "pushRcvr: 15"),
            (&[16], "pushTemp: 0"),
            (&[63], "pushConstant: #constant31"),
            (&[95], "pushLit: Variable31"),
            (&[103], "popIntoRcvr: 7"),
            (&[104], "popIntoTemp: 0"),
            (&[112], "self"),
            (&[116], "pushConstant: -1"),
            (&[126], "unused"),
            (&[128, 0x3f], "pushRcvr: 63"),
            (&[128, 0x41], "pushTemp: 1"),
            (&[128, 0x82], "pushConstant: #constant2"),
            (&[128, 0xc3], "pushLit: Variable3"),
            (&[129, 0x04], "storeIntoRcvr: 4"),
            (&[129, 0x85], "unused"),
            (&[129, 0xc5], "storeIntoLit: Variable5"),
            (&[130, 0x46], "popIntoTemp: 6"),
            (&[131, 0x5f], "send: selector31"),
            (&[132, 0x1f, 200], "send: selector200"),
            (&[132, 0x20, 9], "superSend: selector9"),
            (&[132, 0x40, 70], "pushRcvr: 70"),
            (&[132, 0x60, 71], "pushConstant: #constant71"),
            (&[132, 0x80, 72], "pushLit: Variable72"),
            (&[132, 0xa0, 73], "storeIntoRcvr: 73"),
            (&[132, 0xc0, 74], "popIntoRcvr: 74"),
            (&[132, 0xe0, 75], "storeIntoLit: Variable75"),
            (&[133, 0x23], "superSend: selector3"),
            (&[134, 0x7f], "send: selector63"),
            (&[136], "dup"),
            (&[137], "pushThisContext"),
            (&[138, 3], "push: (Array new: 3)"),
            (&[138, 0x83], "pop 3 into: (Array new: 3)"),
            (&[139, 0x05, 0x01], "callPrimitive: 261"),
            (&[140, 1, 2], "pushTemp: 1 inVectorAt: 2"),
            (&[141, 3, 4], "storeIntoTemp: 3 inVectorAt: 4"),
            (&[142, 5, 6], "popIntoTemp: 5 inVectorAt: 6"),
            (
                &[143, 0x21, 1, 2],
                "closureNumCopied: 2 numArgs: 1 bytes 20 to 277",
            ),
            (&[144], "jumpTo: 18"),
            (&[159], "jumpFalse: 25"),
            (&[163, 0xfe], "jumpTo: 16"),
            (&[165, 2], "jumpTo: 276"),
            (&[169, 3], "jumpTrue: 277"),
            (&[172, 4], "jumpFalse: 22"),
            (&[176], "send: special0"),
            (&[199], "send: class"),
            (&[207], "send: special31"),
            (&[208], "send: selector0"),
            (&[255], "send: selector15"),
        ],
    );
}

/// By the class comment of `EncoderForSistaV1`.
#[test]
fn instructions_of_the_newer_set() {
    are_texts(
        Encoding::Sista,
        &[
            (&[15], "pushRcvr: 15"),
            (&[31], "pushLit: Variable15"),
            (&[63], "pushConstant: #constant31"),
            (&[75], "pushTemp: 11"),
            (&[76], "self"),
            (&[81], "pushConstant: 1"),
            (&[82], "pushThisContext"),
            (&[225, 1, 82], "pushThisProcess"),
            (&[225, 2, 82], "pushPseudoVariable: 2"),
            (&[84], "unused"),
            (&[95], "nop"),
            (&[224, 7, 95], "nop (extension A: 7)"),
            (&[225, 0xff, 95], "nop (extension B: -1)"),
            (&[96], "send: special0"),
            (&[120], "send: ~~"),
            (&[127], "send: special31"),
            (&[143], "send: selector15"),
            (&[160], "send: selector0"),
            (&[176], "jumpTo: 18"),
            (&[191], "jumpTrue: 25"),
            (&[192], "jumpFalse: 18"),
            (&[207], "popIntoRcvr: 7"),
            (&[215], "popIntoTemp: 7"),
            (&[217], "trap"),
            (&[226, 9], "pushRcvr: 9"),
            (&[224, 1, 226, 9], "pushRcvr: 265"),
            (&[224, 1, 224, 0, 226, 9], "pushRcvr: 65545"),
            (&[224, 1, 227, 2], "pushLit: Variable258"),
            (&[228, 40], "pushConstant: #constant40"),
            (&[229, 12], "pushTemp: 12"),
            (&[230, 0], "unused"),
            (&[231, 4], "push: (Array new: 4)"),
            (&[231, 0x84], "pop 4 into: (Array new: 4)"),
            (&[232, 255], "pushConstant: 255"),
            (&[225, 0xff, 232, 255], "pushConstant: -1"),
            (&[225, 0x80, 225, 0, 232, 0], "pushConstant: -8388608"),
            (&[233, 97], "pushConstant: $a"),
            (&[233, 32], "pushConstant: (Character value: 32)"),
            (&[225, 3, 233, 0xb1], "pushConstant: $α"),
            (&[234, 0xf9], "send: selector31"),
            (&[224, 1, 225, 1, 234, 0], "send: selector32"),
            (&[235, 0x0a], "superSend: selector1"),
            (&[225, 64, 235, 0x0a], "directedSuperSend: selector1"),
            (&[236, 11], "callInlinedPrimitive: 11"),
            (&[237, 4], "jumpTo: 22"),
            (&[225, 0xff, 237, 0xfc], "jumpTo: 16"),
            (&[225, 1, 238, 1], "jumpTrue: 277"),
            (&[239, 0], "jumpFalse: 18"),
            (&[240, 8], "popIntoRcvr: 8"),
            (&[241, 8], "popIntoLit: Variable8"),
            (&[242, 8], "popIntoTemp: 8"),
            (&[224, 2, 243, 8], "storeIntoRcvr: 520"),
            (&[244, 8], "storeIntoLit: Variable8"),
            (&[245, 8], "storeIntoTemp: 8"),
            (&[248, 60, 0], "callPrimitive: 60"),
            (&[248, 0x05, 0x01], "callPrimitive: 261"),
            (&[248, 0x05, 0x81], "callInlinedPrimitive: 261"),
            (&[249, 3, 2], "pushFullClosure: #constant3 numCopied: 2"),
            (
                &[224, 1, 249, 3, 0xc0],
                "pushFullClosure: #constant259 numCopied: 0 ignoreOuterContext receiverOnStack",
            ),
            (
                &[224, 0x12, 225, 1, 250, 0x0a, 4],
                "closureNumCopied: 9 numArgs: 18 bytes 23 to 282",
            ),
            (&[251, 1, 2], "pushTemp: 1 inVectorAt: 2"),
            (&[252, 1, 2], "storeIntoTemp: 1 inVectorAt: 2"),
            (&[253, 1, 0x82], "popIntoTemp: 1 inObjectAt: 2"),
        ],
    );
}

/// A return is the end only behind jumps and blocks: 92 returns the top, 76 pushes the receiver.
#[test]
fn a_listing_ends_before_the_trailer() {
    let ends = |code: &[u8]| {
        let bytes = [&[0; START], code].concat();
        let listing = listing(Encoding::Sista, &bytes);
        (listing.bytecodes.len(), listing.is_whole)
    };
    // Two bytes of a trailer.
    assert_eq!(ends(&[76, 92, 76, 0xfc]), (2, true));
    // The jump passes the first return.
    assert_eq!(ends(&[77, 192, 92, 76, 92, 0, 0]), (5, true));
    // A block of two bytecodes.
    assert_eq!(ends(&[250, 0, 2, 76, 94, 92, 1]), (6, true));
    // No return; half an instruction.
    assert_eq!(ends(&[76, 76]), (2, false));
    assert_eq!(ends(&[76, 224]), (1, false));
    assert_eq!(ends(&[76, 224, 1]), (1, false));
    assert_eq!(ends(&[]), (0, false));
}

/// Extensions without an end, jumps out of the method, long texts.
#[test]
fn hostile_bytecodes_have_bounded_listings() {
    let extensions = [225, 0x7f].repeat(MAX_BYTECODES);
    let jumps = [
        &[225, 0x7f].repeat(20)[..],
        &[237, 255],
        &[225, 0x80],
        &[237, 0],
    ]
    .concat();
    for code in [extensions, jumps, vec![32; 2 * MAX_BYTECODES], vec![255; 7]] {
        let bytes = [&[0; START], &code[..]].concat();
        let text = "x".repeat(5000);
        let literal = &mut |_: Of, _: u64| Some(text.clone());
        let listing = Listing::new(&Bytecodes::known(Encoding::Sista), &bytes, START, literal);
        assert!(!listing.is_whole);
        assert!(listing.bytecodes.len() <= MAX_BYTECODES);
        assert!(
            listing.size < MAX_LISTING + 8 * MAX_LINE,
            "{}",
            listing.size
        );
        let lengths = listing.lines.iter().map(|(_, text)| text.chars().count());
        assert!(lengths.max().unwrap() <= MAX_LINE + 1);
    }
}
