//! Names of bytecodes: those of the VM's routines, without its suffix `Bytecode`.

/// First bytecode of each routine, ascending, with the routine's name. Unknown ones have an empty name.
type Names = [(u8, &'static str)];

/// The older set (V3PlusClosures).
const V3: &Names = &[
    (0, "pushReceiverVariable"),
    (16, "pushTemporaryVariable"),
    (32, "pushLiteralConstant"),
    (64, "pushLiteralVariable"),
    (96, "storeAndPopReceiverVariable"),
    (104, "storeAndPopTemporaryVariable"),
    (112, "pushReceiver"),
    (113, "pushConstantTrue"),
    (114, "pushConstantFalse"),
    (115, "pushConstantNil"),
    (116, "pushConstantMinusOne"),
    (117, "pushConstantZero"),
    (118, "pushConstantOne"),
    (119, "pushConstantTwo"),
    (120, "returnReceiver"),
    (121, "returnTrue"),
    (122, "returnFalse"),
    (123, "returnNil"),
    (124, "returnTopFromMethod"),
    (125, "returnTopFromBlock"),
    (126, ""),
    (128, "extendedPush"),
    (129, "extendedStore"),
    (130, "extendedStoreAndPop"),
    (131, "singleExtendedSend"),
    (132, "doubleExtendedDoAnything"),
    (133, "singleExtendedSuper"),
    (134, "secondExtendedSend"),
    (135, "popStack"),
    (136, "duplicateTop"),
    (137, "pushActiveContext"),
    (138, "pushNewArray"),
    (139, "callPrimitive"),
    (140, "pushRemoteTemp"),
    (141, "storeRemoteTemp"),
    (142, "storeAndPopRemoteTemp"),
    (143, "pushClosure"),
    (144, "shortUnconditionalJump"),
    (152, "shortConditionalJump"),
    (160, "longUnconditionalJump"),
    (168, "longJumpIfTrue"),
    (172, "longJumpIfFalse"),
    (176, "arithmeticSend"),
    (192, "specialSend"),
    (198, "identical"),
    (199, "class"),
    (200, "notIdentical"),
    (201, "specialSend"),
    (208, "sendWithoutArguments"),
    (224, "sendWithOneArgument"),
    (240, "sendWithTwoArguments"),
];

/// The newer set (SistaV1).
const SISTA: &Names = &[
    (0, "pushReceiverVariable"),
    (16, "pushLiteralVariable"),
    (32, "pushLiteralConstant"),
    (64, "pushTemporaryVariable"),
    (76, "pushReceiver"),
    (77, "pushConstantTrue"),
    (78, "pushConstantFalse"),
    (79, "pushConstantNil"),
    (80, "pushConstantZero"),
    (81, "pushConstantOne"),
    (82, "pushPseudoVariable"),
    (83, "duplicateTop"),
    (84, ""),
    (88, "returnReceiver"),
    (89, "returnTrue"),
    (90, "returnFalse"),
    (91, "returnNil"),
    (92, "returnTopFromMethod"),
    (93, "returnNilFromBlock"),
    (94, "returnTopFromBlock"),
    (95, "noOperation"),
    (96, "arithmeticSend"),
    (112, "specialSend"),
    (118, "identical"),
    (119, "class"),
    (120, "notIdentical"),
    (121, "specialSend"),
    (128, "sendWithoutArguments"),
    (144, "sendWithOneArgument"),
    (160, "sendWithTwoArguments"),
    (176, "shortUnconditionalJump"),
    (184, "shortJumpIfTrue"),
    (192, "shortJumpIfFalse"),
    (200, "storeAndPopReceiverVariable"),
    (208, "storeAndPopTemporaryVariable"),
    (216, "popStack"),
    (217, "unconditionalTrap"),
    (218, ""),
    (224, "extensionA"),
    (225, "extensionB"),
    (226, "longPushReceiverVariable"),
    (227, "longPushLiteralVariable"),
    (228, "longPushLiteralConstant"),
    (229, "longPushTemporaryVariable"),
    (230, ""),
    (231, "pushNewArray"),
    (232, "pushInteger"),
    (233, "pushCharacter"),
    (234, "longSend"),
    (235, "longSendSuper"),
    (236, "callInlinedPrimitive"),
    (237, "longUnconditionalJump"),
    (238, "longJumpIfTrue"),
    (239, "longJumpIfFalse"),
    (240, "longStoreAndPopReceiverVariable"),
    (241, "storeAndPopLiteralVariable"),
    (242, "longStoreAndPopTemporaryVariable"),
    (243, "longStoreReceiverVariable"),
    (244, "storeLiteralVariable"),
    (245, "longStoreTemporaryVariable"),
    (246, ""),
    (248, "callPrimitive"),
    (249, "pushFullClosure"),
    (250, "pushClosure"),
    (251, "pushRemoteTemp"),
    (252, "storeRemoteTemp"),
    (253, "storeAndPopRemoteTemp"),
    (254, ""),
];

/// Shown for bytecodes without meaning.
const UNKNOWN: &str = "unknownBytecode";

/// Name of a bytecode's routine in one of the two sets.
#[must_use]
pub fn name_of(is_sista: bool, bytecode: u8) -> &'static str {
    let names = if is_sista { SISTA } else { V3 };
    let after = names.partition_point(|(first, _)| *first <= bytecode);
    let name = after.checked_sub(1).and_then(|at| names.get(at));
    name.map(|(_, name)| *name)
        .filter(|name| !name.is_empty())
        .unwrap_or(UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytecodes::{Bytecodes, Encoding};

    /// The VM's properties of bytecodes agree with the names.
    #[test]
    fn names_agree_with_known_properties() {
        for (is_sista, encoding) in [(false, Encoding::V3), (true, Encoding::Sista)] {
            let known = Bytecodes::known(encoding);
            for code in 0..=u8::MAX {
                let (name, is) = (name_of(is_sista, code), known.get(code));
                let returns = name.starts_with("return") && !name.ends_with("Block");
                assert!(!returns || is.is_return, "{encoding:?} {code} {name}");
                assert_eq!(
                    is.is_extension,
                    name.starts_with("extension"),
                    "{code} {name}"
                );
                let creates = matches!(name, "pushClosure");
                assert_eq!(is.creates_block, creates, "{encoding:?} {code} {name}");
                assert!(
                    !name.contains("Send") || is.is_mapped,
                    "{encoding:?} {code} {name}"
                );
            }
        }
        assert!(V3.is_sorted_by_key(|(first, _)| *first));
        assert!(SISTA.is_sorted_by_key(|(first, _)| *first));
    }
}
