//! The instruction set: Java's 202 instructions (JVM specification, chapter 6) and
//! those that HotSpot puts in their places (`bytecodes.hpp`).
//!
//! HotSpot's numbers are equal from JDK 11 to 25. No table of the process has them, but
//! the interpreter's codelets are called by them, which is how a test checks this one.

/// Numbers of instructions that code here speaks of.
pub mod op {
    #![allow(missing_docs, reason = "they are called as in the JVM specification")]
    pub const BIPUSH: u8 = 16;
    pub const SIPUSH: u8 = 17;
    pub const LDC: u8 = 18;
    pub const LDC_W: u8 = 19;
    pub const LDC2_W: u8 = 20;
    pub const ILOAD: u8 = 21;
    pub const ALOAD: u8 = 25;
    pub const ALOAD_0: u8 = 42;
    pub const ISTORE: u8 = 54;
    pub const ASTORE: u8 = 58;
    pub const IINC: u8 = 132;
    pub const IFEQ: u8 = 153;
    pub const JSR: u8 = 168;
    pub const RET: u8 = 169;
    pub const TABLESWITCH: u8 = 170;
    pub const LOOKUPSWITCH: u8 = 171;
    pub const RETURN: u8 = 177;
    pub const GETSTATIC: u8 = 178;
    pub const PUTSTATIC: u8 = 179;
    pub const GETFIELD: u8 = 180;
    pub const PUTFIELD: u8 = 181;
    pub const INVOKEVIRTUAL: u8 = 182;
    pub const INVOKESPECIAL: u8 = 183;
    pub const INVOKESTATIC: u8 = 184;
    pub const INVOKEINTERFACE: u8 = 185;
    pub const INVOKEDYNAMIC: u8 = 186;
    pub const NEW: u8 = 187;
    pub const NEWARRAY: u8 = 188;
    pub const ANEWARRAY: u8 = 189;
    pub const CHECKCAST: u8 = 192;
    pub const INSTANCEOF: u8 = 193;
    pub const WIDE: u8 = 196;
    pub const MULTIANEWARRAY: u8 = 197;
    pub const IFNULL: u8 = 198;
    pub const IFNONNULL: u8 = 199;
    pub const GOTO_W: u8 = 200;
    pub const JSR_W: u8 = 201;
    /// Put over an instruction by a debugger; what was there is kept elsewhere.
    pub const BREAKPOINT: u8 = 202;
    /// `ldc` of an object that lies in the resolved references (HotSpot's own).
    pub const FAST_ALDC: u8 = 230;
    /// Likewise, `ldc_w`.
    pub const FAST_ALDC_W: u8 = 231;
}

const JAVA: [&str; 203] = [
    "nop",
    "aconst_null",
    "iconst_m1",
    "iconst_0",
    "iconst_1",
    "iconst_2",
    "iconst_3",
    "iconst_4",
    "iconst_5",
    "lconst_0",
    "lconst_1",
    "fconst_0",
    "fconst_1",
    "fconst_2",
    "dconst_0",
    "dconst_1",
    "bipush",
    "sipush",
    "ldc",
    "ldc_w",
    "ldc2_w",
    "iload",
    "lload",
    "fload",
    "dload",
    "aload",
    "iload_0",
    "iload_1",
    "iload_2",
    "iload_3",
    "lload_0",
    "lload_1",
    "lload_2",
    "lload_3",
    "fload_0",
    "fload_1",
    "fload_2",
    "fload_3",
    "dload_0",
    "dload_1",
    "dload_2",
    "dload_3",
    "aload_0",
    "aload_1",
    "aload_2",
    "aload_3",
    "iaload",
    "laload",
    "faload",
    "daload",
    "aaload",
    "baload",
    "caload",
    "saload",
    "istore",
    "lstore",
    "fstore",
    "dstore",
    "astore",
    "istore_0",
    "istore_1",
    "istore_2",
    "istore_3",
    "lstore_0",
    "lstore_1",
    "lstore_2",
    "lstore_3",
    "fstore_0",
    "fstore_1",
    "fstore_2",
    "fstore_3",
    "dstore_0",
    "dstore_1",
    "dstore_2",
    "dstore_3",
    "astore_0",
    "astore_1",
    "astore_2",
    "astore_3",
    "iastore",
    "lastore",
    "fastore",
    "dastore",
    "aastore",
    "bastore",
    "castore",
    "sastore",
    "pop",
    "pop2",
    "dup",
    "dup_x1",
    "dup_x2",
    "dup2",
    "dup2_x1",
    "dup2_x2",
    "swap",
    "iadd",
    "ladd",
    "fadd",
    "dadd",
    "isub",
    "lsub",
    "fsub",
    "dsub",
    "imul",
    "lmul",
    "fmul",
    "dmul",
    "idiv",
    "ldiv",
    "fdiv",
    "ddiv",
    "irem",
    "lrem",
    "frem",
    "drem",
    "ineg",
    "lneg",
    "fneg",
    "dneg",
    "ishl",
    "lshl",
    "ishr",
    "lshr",
    "iushr",
    "lushr",
    "iand",
    "land",
    "ior",
    "lor",
    "ixor",
    "lxor",
    "iinc",
    "i2l",
    "i2f",
    "i2d",
    "l2i",
    "l2f",
    "l2d",
    "f2i",
    "f2l",
    "f2d",
    "d2i",
    "d2l",
    "d2f",
    "i2b",
    "i2c",
    "i2s",
    "lcmp",
    "fcmpl",
    "fcmpg",
    "dcmpl",
    "dcmpg",
    "ifeq",
    "ifne",
    "iflt",
    "ifge",
    "ifgt",
    "ifle",
    "if_icmpeq",
    "if_icmpne",
    "if_icmplt",
    "if_icmpge",
    "if_icmpgt",
    "if_icmple",
    "if_acmpeq",
    "if_acmpne",
    "goto",
    "jsr",
    "ret",
    "tableswitch",
    "lookupswitch",
    "ireturn",
    "lreturn",
    "freturn",
    "dreturn",
    "areturn",
    "return",
    "getstatic",
    "putstatic",
    "getfield",
    "putfield",
    "invokevirtual",
    "invokespecial",
    "invokestatic",
    "invokeinterface",
    "invokedynamic",
    "new",
    "newarray",
    "anewarray",
    "arraylength",
    "athrow",
    "checkcast",
    "instanceof",
    "monitorenter",
    "monitorexit",
    "wide",
    "multianewarray",
    "ifnull",
    "ifnonnull",
    "goto_w",
    "jsr_w",
    "breakpoint",
];

/// HotSpot's own, from 203 on, each with the Java instruction that it stands for.
///
/// Those that do the work of two instructions (`fast_iaccess_0`, `fast_iload2`,
/// `fast_icaload`) leave the second one in its place: they stand for the first alone.
const VM: [(&str, u8); 35] = [
    ("fast_agetfield", op::GETFIELD),
    ("fast_bgetfield", op::GETFIELD),
    ("fast_cgetfield", op::GETFIELD),
    ("fast_dgetfield", op::GETFIELD),
    ("fast_fgetfield", op::GETFIELD),
    ("fast_igetfield", op::GETFIELD),
    ("fast_lgetfield", op::GETFIELD),
    ("fast_sgetfield", op::GETFIELD),
    ("fast_aputfield", op::PUTFIELD),
    ("fast_bputfield", op::PUTFIELD),
    ("fast_zputfield", op::PUTFIELD),
    ("fast_cputfield", op::PUTFIELD),
    ("fast_dputfield", op::PUTFIELD),
    ("fast_fputfield", op::PUTFIELD),
    ("fast_iputfield", op::PUTFIELD),
    ("fast_lputfield", op::PUTFIELD),
    ("fast_sputfield", op::PUTFIELD),
    ("fast_aload_0", op::ALOAD_0),
    ("fast_iaccess_0", op::ALOAD_0),
    ("fast_aaccess_0", op::ALOAD_0),
    ("fast_faccess_0", op::ALOAD_0),
    ("fast_iload", op::ILOAD),
    ("fast_iload2", op::ILOAD),
    ("fast_icaload", op::ILOAD),
    ("fast_invokevfinal", op::INVOKEVIRTUAL),
    ("fast_linearswitch", op::LOOKUPSWITCH),
    ("fast_binaryswitch", op::LOOKUPSWITCH),
    ("fast_aldc", op::LDC),
    ("fast_aldc_w", op::LDC_W),
    ("return_register_finalizer", op::RETURN),
    ("invokehandle", op::INVOKEVIRTUAL),
    ("nofast_getfield", op::GETFIELD),
    ("nofast_putfield", op::PUTFIELD),
    ("nofast_aload_0", op::ALOAD_0),
    ("nofast_iload", op::ILOAD),
];

fn of_the_vm(opcode: u8) -> Option<&'static (&'static str, u8)> {
    VM.get(usize::from(opcode).checked_sub(JAVA.len())?)
}

/// The Java instruction that `opcode` stands for: itself where it is one, or unknown.
#[must_use]
pub fn original(opcode: u8) -> u8 {
    of_the_vm(opcode).map_or(opcode, |(_, java)| *java)
}

/// What the Java instruction that `opcode` stands for is called; `None` for numbers
/// that neither Java nor HotSpot uses.
#[must_use]
pub fn mnemonic(opcode: u8) -> Option<&'static str> {
    JAVA.get(usize::from(original(opcode))).copied()
}

/// What the VM calls `opcode` itself (`fast_igetfield`); Java's as Java does.
#[must_use]
pub fn vm_name(opcode: u8) -> Option<&'static str> {
    match of_the_vm(opcode) {
        Some((name, _)) => Some(name),
        None => JAVA.get(usize::from(opcode)).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_specification() {
        for (number, name) in [
            (op::LDC, "ldc"),
            (op::ILOAD, "iload"),
            (op::ALOAD_0, "aload_0"),
            (op::ISTORE, "istore"),
            (op::IINC, "iinc"),
            (op::IFEQ, "ifeq"),
            (op::TABLESWITCH, "tableswitch"),
            (op::RETURN, "return"),
            (op::GETFIELD, "getfield"),
            (op::INVOKEDYNAMIC, "invokedynamic"),
            (op::INSTANCEOF, "instanceof"),
            (op::WIDE, "wide"),
            (op::JSR_W, "jsr_w"),
            (op::BREAKPOINT, "breakpoint"),
        ] {
            assert_eq!(mnemonic(number), Some(name));
            assert_eq!(original(number), number);
        }
        assert_eq!(vm_name(op::FAST_ALDC), Some("fast_aldc"));
        assert_eq!(vm_name(op::FAST_ALDC_W), Some("fast_aldc_w"));
        assert_eq!(mnemonic(237), Some("iload"), "nofast_iload, the last one");
        assert_eq!(mnemonic(238), None);
        assert_eq!(original(255), 255);
    }
}
