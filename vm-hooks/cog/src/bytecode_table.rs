//! The bytecodes of both sets: names, lengths, and places of operands.
//!
//! Names are those of listings in Squeak and Pharo. The class comments of `EncoderForV3PlusClosures` and
//! `EncoderForSistaV1` describe the sets.

use crate::bytecodes::Encoding;

/// What a bytecode does. A text is the instruction's first words in listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// No meaning.
    Unused,
    /// Operand A of the next bytecode.
    ExtensionA,
    /// Operand B of the next bytecode.
    ExtensionB,
    /// The text is complete.
    Plain(&'static str),
    /// The distance from the row's first bytecode is an index.
    Short(&'static str, Of),
    /// The next byte is an index, with extension A in front.
    Long(&'static str, Of),
    /// A send of a special selector: of this number for the row's first bytecode.
    SpecialSend(u8),
    /// A send with at most two arguments. The low four bits are the selector's literal.
    ShortSend,
    /// V3: a send. The next byte has the selector's literal in this many low bits.
    LiteralSend(&'static str, u8),
    /// Sista: a send. The high five bits of the next byte are the selector's literal, with extension A in
    /// front.
    LongSend,
    /// Likewise to the superclass. From 64 on, extension B selects a class on the stack.
    LongSuperSend,
    /// A jump.
    Jump(&'static str),
    /// V3: two bits of the next byte select one of [`EXTENDED`], six are an index. The text replaces `push`.
    Extended(&'static str),
    /// V3: three bits of the next byte select an action, the byte behind is an index.
    DoubleExtended,
    /// Pushes an array, perhaps with elements from the stack.
    PushArray,
    /// The two bytes behind are a primitive's number.
    CallPrimitive,
    /// A variable shared with blocks. Operands: index, then the temp with an array of variables.
    InVector(&'static str),
    /// Sista: the next byte is an integer, with extension B in front.
    PushInteger,
    /// Sista: likewise a character.
    PushCharacter,
    /// Sista: the active context or process, as extension B says.
    PushPseudoVariable,
    /// V3: makes a block of the bytecodes behind.
    PushClosure,
    /// Sista: likewise.
    PushExtendedClosure,
    /// Sista: makes a block of a literal.
    PushFullClosure,
    /// Sista: the next byte is the number of an operation without checks.
    InlinedPrimitive,
}

/// What an index counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Of {
    /// Instance variables, or temps with arguments.
    Number,
    /// Literals as constants.
    Constant,
    /// Literals as variables: associations.
    Variable,
    /// Literals as selectors.
    Selector,
    /// The VM's special selectors.
    SpecialSelector,
}

/// Suffixes and indexes of [`Form::Extended`], by two bits. V3 never stores into constants.
pub const EXTENDED: [(&str, Of); 4] = [
    ("Rcvr:", Of::Number),
    ("Temp:", Of::Number),
    ("Constant:", Of::Constant),
    ("Lit:", Of::Variable),
];

/// First bytecode of a row of bytecodes, number of bytes with operands, and form.
type Row = (u8, u8, Form);

/// The older set, V3PlusClosures.
const V3: &[Row] = &[
    (0, 1, Form::Short("pushRcvr:", Of::Number)),
    (16, 1, Form::Short("pushTemp:", Of::Number)),
    (32, 1, Form::Short("pushConstant:", Of::Constant)),
    (64, 1, Form::Short("pushLit:", Of::Variable)),
    (96, 1, Form::Short("popIntoRcvr:", Of::Number)),
    (104, 1, Form::Short("popIntoTemp:", Of::Number)),
    (112, 1, Form::Plain("self")),
    (113, 1, Form::Plain("pushConstant: true")),
    (114, 1, Form::Plain("pushConstant: false")),
    (115, 1, Form::Plain("pushConstant: nil")),
    (116, 1, Form::Plain("pushConstant: -1")),
    (117, 1, Form::Plain("pushConstant: 0")),
    (118, 1, Form::Plain("pushConstant: 1")),
    (119, 1, Form::Plain("pushConstant: 2")),
    (120, 1, Form::Plain("returnSelf")),
    (121, 1, Form::Plain("return: true")),
    (122, 1, Form::Plain("return: false")),
    (123, 1, Form::Plain("return: nil")),
    (124, 1, Form::Plain("returnTop")),
    (125, 1, Form::Plain("blockReturn")),
    (126, 1, Form::Unused),
    (128, 2, Form::Extended("push")),
    (129, 2, Form::Extended("storeInto")),
    (130, 2, Form::Extended("popInto")),
    (131, 2, Form::LiteralSend("send:", 5)),
    (132, 3, Form::DoubleExtended),
    (133, 2, Form::LiteralSend("superSend:", 5)),
    (134, 2, Form::LiteralSend("send:", 6)),
    (135, 1, Form::Plain("pop")),
    (136, 1, Form::Plain("dup")),
    (137, 1, Form::Plain("pushThisContext")),
    (138, 2, Form::PushArray),
    (139, 3, Form::CallPrimitive),
    (140, 3, Form::InVector("pushTemp:")),
    (141, 3, Form::InVector("storeIntoTemp:")),
    (142, 3, Form::InVector("popIntoTemp:")),
    (143, 4, Form::PushClosure),
    (144, 1, Form::Jump("jumpTo:")),
    (152, 1, Form::Jump("jumpFalse:")),
    (160, 2, Form::Jump("jumpTo:")),
    (168, 2, Form::Jump("jumpTrue:")),
    (172, 2, Form::Jump("jumpFalse:")),
    (176, 1, Form::SpecialSend(0)),
    (198, 1, Form::Plain("send: ==")),
    (199, 1, Form::Plain("send: class")),
    (200, 1, Form::Plain("send: ~~")),
    (201, 1, Form::SpecialSend(25)),
    (208, 1, Form::ShortSend),
];

/// The newer set, SistaV1.
const SISTA: &[Row] = &[
    (0, 1, Form::Short("pushRcvr:", Of::Number)),
    (16, 1, Form::Short("pushLit:", Of::Variable)),
    (32, 1, Form::Short("pushConstant:", Of::Constant)),
    (64, 1, Form::Short("pushTemp:", Of::Number)),
    (76, 1, Form::Plain("self")),
    (77, 1, Form::Plain("pushConstant: true")),
    (78, 1, Form::Plain("pushConstant: false")),
    (79, 1, Form::Plain("pushConstant: nil")),
    (80, 1, Form::Plain("pushConstant: 0")),
    (81, 1, Form::Plain("pushConstant: 1")),
    (82, 1, Form::PushPseudoVariable),
    (83, 1, Form::Plain("dup")),
    (84, 1, Form::Unused),
    (88, 1, Form::Plain("returnSelf")),
    (89, 1, Form::Plain("return: true")),
    (90, 1, Form::Plain("return: false")),
    (91, 1, Form::Plain("return: nil")),
    (92, 1, Form::Plain("returnTop")),
    (93, 1, Form::Plain("blockReturn: nil")),
    (94, 1, Form::Plain("blockReturn")),
    (95, 1, Form::Plain("nop")),
    (96, 1, Form::SpecialSend(0)),
    (118, 1, Form::Plain("send: ==")),
    (119, 1, Form::Plain("send: class")),
    (120, 1, Form::Plain("send: ~~")),
    (121, 1, Form::SpecialSend(25)),
    (128, 1, Form::ShortSend),
    (176, 1, Form::Jump("jumpTo:")),
    (184, 1, Form::Jump("jumpTrue:")),
    (192, 1, Form::Jump("jumpFalse:")),
    (200, 1, Form::Short("popIntoRcvr:", Of::Number)),
    (208, 1, Form::Short("popIntoTemp:", Of::Number)),
    (216, 1, Form::Plain("pop")),
    (217, 1, Form::Plain("trap")),
    (218, 1, Form::Unused),
    (224, 2, Form::ExtensionA),
    (225, 2, Form::ExtensionB),
    (226, 2, Form::Long("pushRcvr:", Of::Number)),
    (227, 2, Form::Long("pushLit:", Of::Variable)),
    (228, 2, Form::Long("pushConstant:", Of::Constant)),
    (229, 2, Form::Long("pushTemp:", Of::Number)),
    (230, 2, Form::Unused),
    (231, 2, Form::PushArray),
    (232, 2, Form::PushInteger),
    (233, 2, Form::PushCharacter),
    (234, 2, Form::LongSend),
    (235, 2, Form::LongSuperSend),
    (236, 2, Form::InlinedPrimitive),
    (237, 2, Form::Jump("jumpTo:")),
    (238, 2, Form::Jump("jumpTrue:")),
    (239, 2, Form::Jump("jumpFalse:")),
    (240, 2, Form::Long("popIntoRcvr:", Of::Number)),
    (241, 2, Form::Long("popIntoLit:", Of::Variable)),
    (242, 2, Form::Long("popIntoTemp:", Of::Number)),
    (243, 2, Form::Long("storeIntoRcvr:", Of::Number)),
    (244, 2, Form::Long("storeIntoLit:", Of::Variable)),
    (245, 2, Form::Long("storeIntoTemp:", Of::Number)),
    (246, 2, Form::Unused),
    (248, 3, Form::CallPrimitive),
    (249, 3, Form::PushFullClosure),
    (250, 3, Form::PushExtendedClosure),
    (251, 3, Form::InVector("pushTemp:")),
    (252, 3, Form::InVector("storeIntoTemp:")),
    (253, 3, Form::InVector("popIntoTemp:")),
    (254, 3, Form::Unused),
];

/// The row of a bytecode.
pub fn row(encoding: Encoding, bytecode: u8) -> Row {
    let rows = match encoding {
        Encoding::V3 => V3,
        Encoding::Sista => SISTA,
    };
    let after = rows.partition_point(|(first, ..)| *first <= bytecode);
    let row = after.checked_sub(1).and_then(|at| rows.get(at));
    row.copied().unwrap_or((bytecode, 1, Form::Unused))
}

impl Form {
    /// The instruction's first words, which no operand changes.
    pub fn name(self) -> &'static str {
        match self {
            Form::Unused => "unused",
            Form::ExtensionA => "extensionA:",
            Form::ExtensionB => "extensionB:",
            Form::Plain(text)
            | Form::Short(text, _)
            | Form::Long(text, _)
            | Form::LiteralSend(text, _)
            | Form::Jump(text)
            | Form::InVector(text) => text,
            Form::SpecialSend(_) | Form::ShortSend | Form::LongSend => "send:",
            Form::LongSuperSend => "superSend:",
            Form::Extended("push") => "extendedPush",
            Form::Extended("storeInto") => "extendedStore",
            Form::Extended(_) => "extendedPop",
            Form::DoubleExtended => "doubleExtended",
            Form::PushArray => "push:",
            Form::CallPrimitive => "callPrimitive:",
            Form::PushInteger | Form::PushCharacter => "pushConstant:",
            Form::PushPseudoVariable => "pushThisContext",
            Form::PushClosure | Form::PushExtendedClosure => "closureNumCopied:",
            Form::PushFullClosure => "pushFullClosure:",
            Form::InlinedPrimitive => "callInlinedPrimitive:",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytecodes::Bytecodes;

    /// The VM's properties of bytecodes agree with the table.
    #[test]
    fn the_table_agrees_with_known_properties() {
        for (encoding, rows) in [(Encoding::V3, V3), (Encoding::Sista, SISTA)] {
            assert!(rows.is_sorted_by_key(|(first, ..)| *first));
            let known = Bytecodes::known(encoding);
            for code in 0..=u8::MAX {
                let (_, _, form) = row(encoding, code);
                let (name, is) = (form.name(), known.get(code));
                let returns = name.starts_with("return") || name.starts_with("blockReturn");
                assert_eq!(is.is_return, returns, "{encoding:?} {code} {name}");
                let skips = matches!(
                    form,
                    Form::Jump(_) | Form::PushClosure | Form::PushExtendedClosure
                );
                assert_eq!(is.has_span, skips, "{encoding:?} {code} {name}");
                let sends = name.ends_with("end:");
                assert!(!sends || is.is_mapped, "{encoding:?} {code} {name}");
            }
        }
    }
}
