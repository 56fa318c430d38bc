//! Instruction set: Java's 202 instructions (JVM specification, chapter 6) and HotSpot's
//! replacements (`bytecodes.hpp`).
//!
//! HotSpot's numbers are equal from JDK 11 to 25. The process's tables lack them, but the
//! interpreter's codelets have the names; a test compares this table with them.

use std::sync::LazyLock;

/// Java's instructions in opcode order; then HotSpot's own instructions, each with its Java
/// instruction.
macro_rules! instructions {
    ($($java:ident)* ; $($own:ident = $original:ident,)*) => {
        /// Opcodes, named as in the JVM specification and in HotSpot.
        pub mod op {
            #![allow(missing_docs, reason = "names are those of the JVM specification")]
            #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "as above")]
            enum Opcode { $($java,)* $($own,)* }
            $(pub const $java: u8 = Opcode::$java as u8;)*
            $(pub const $own: u8 = Opcode::$own as u8;)*
        }

        /// Java instruction of each opcode.
        const ORIGINALS: &[u8] = &[$(op::$java,)* $(op::$original,)*];

        /// Names by opcode.
        static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
            let names = [$(stringify!($java),)* $(stringify!($own),)*];
            names.iter().map(|name| name.to_ascii_lowercase()).collect()
        });
    };
}

// The second instruction of a fused pair (`fast_iaccess_0`, `fast_iload2`, `fast_icaload`) stays
// in place: the Java instruction is the first only.
instructions! {
    NOP ACONST_NULL ICONST_M1 ICONST_0 ICONST_1 ICONST_2 ICONST_3 ICONST_4 ICONST_5 LCONST_0
    LCONST_1 FCONST_0 FCONST_1 FCONST_2 DCONST_0 DCONST_1 BIPUSH SIPUSH LDC LDC_W LDC2_W ILOAD
    LLOAD FLOAD DLOAD ALOAD ILOAD_0 ILOAD_1 ILOAD_2 ILOAD_3 LLOAD_0 LLOAD_1 LLOAD_2 LLOAD_3
    FLOAD_0 FLOAD_1 FLOAD_2 FLOAD_3 DLOAD_0 DLOAD_1 DLOAD_2 DLOAD_3 ALOAD_0 ALOAD_1 ALOAD_2
    ALOAD_3 IALOAD LALOAD FALOAD DALOAD AALOAD BALOAD CALOAD SALOAD ISTORE LSTORE FSTORE DSTORE
    ASTORE ISTORE_0 ISTORE_1 ISTORE_2 ISTORE_3 LSTORE_0 LSTORE_1 LSTORE_2 LSTORE_3 FSTORE_0
    FSTORE_1 FSTORE_2 FSTORE_3 DSTORE_0 DSTORE_1 DSTORE_2 DSTORE_3 ASTORE_0 ASTORE_1 ASTORE_2
    ASTORE_3 IASTORE LASTORE FASTORE DASTORE AASTORE BASTORE CASTORE SASTORE POP POP2 DUP DUP_X1
    DUP_X2 DUP2 DUP2_X1 DUP2_X2 SWAP IADD LADD FADD DADD ISUB LSUB FSUB DSUB IMUL LMUL FMUL DMUL
    IDIV LDIV FDIV DDIV IREM LREM FREM DREM INEG LNEG FNEG DNEG ISHL LSHL ISHR LSHR IUSHR LUSHR
    IAND LAND IOR LOR IXOR LXOR IINC I2L I2F I2D L2I L2F L2D F2I F2L F2D D2I D2L D2F I2B I2C I2S
    LCMP FCMPL FCMPG DCMPL DCMPG IFEQ IFNE IFLT IFGE IFGT IFLE IF_ICMPEQ IF_ICMPNE IF_ICMPLT
    IF_ICMPGE IF_ICMPGT IF_ICMPLE IF_ACMPEQ IF_ACMPNE GOTO JSR RET TABLESWITCH LOOKUPSWITCH
    IRETURN LRETURN FRETURN DRETURN ARETURN RETURN GETSTATIC PUTSTATIC GETFIELD PUTFIELD
    INVOKEVIRTUAL INVOKESPECIAL INVOKESTATIC INVOKEINTERFACE INVOKEDYNAMIC NEW NEWARRAY
    ANEWARRAY ARRAYLENGTH ATHROW CHECKCAST INSTANCEOF MONITORENTER MONITOREXIT WIDE
    MULTIANEWARRAY IFNULL IFNONNULL GOTO_W JSR_W BREAKPOINT
    ;
    FAST_AGETFIELD = GETFIELD, FAST_BGETFIELD = GETFIELD, FAST_CGETFIELD = GETFIELD,
    FAST_DGETFIELD = GETFIELD, FAST_FGETFIELD = GETFIELD, FAST_IGETFIELD = GETFIELD,
    FAST_LGETFIELD = GETFIELD, FAST_SGETFIELD = GETFIELD, FAST_APUTFIELD = PUTFIELD,
    FAST_BPUTFIELD = PUTFIELD, FAST_ZPUTFIELD = PUTFIELD, FAST_CPUTFIELD = PUTFIELD,
    FAST_DPUTFIELD = PUTFIELD, FAST_FPUTFIELD = PUTFIELD, FAST_IPUTFIELD = PUTFIELD,
    FAST_LPUTFIELD = PUTFIELD, FAST_SPUTFIELD = PUTFIELD, FAST_ALOAD_0 = ALOAD_0,
    FAST_IACCESS_0 = ALOAD_0, FAST_AACCESS_0 = ALOAD_0, FAST_FACCESS_0 = ALOAD_0,
    FAST_ILOAD = ILOAD, FAST_ILOAD2 = ILOAD, FAST_ICALOAD = ILOAD,
    FAST_INVOKEVFINAL = INVOKEVIRTUAL, FAST_LINEARSWITCH = LOOKUPSWITCH,
    FAST_BINARYSWITCH = LOOKUPSWITCH, FAST_ALDC = LDC, FAST_ALDC_W = LDC_W,
    RETURN_REGISTER_FINALIZER = RETURN, INVOKEHANDLE = INVOKEVIRTUAL, NOFAST_GETFIELD = GETFIELD,
    NOFAST_PUTFIELD = PUTFIELD, NOFAST_ALOAD_0 = ALOAD_0, NOFAST_ILOAD = ILOAD,
}

/// Java instruction of `opcode`; `opcode` itself if Java's or unknown.
#[must_use]
pub fn original(opcode: u8) -> u8 {
    let found = ORIGINALS.get(usize::from(opcode));
    found.copied().unwrap_or(opcode)
}

/// Name of the Java instruction of `opcode`; `None` for numbers unused by Java and HotSpot.
#[must_use]
pub fn mnemonic(opcode: u8) -> Option<&'static str> {
    vm_name(original(opcode))
}

/// The VM's name of `opcode` (`fast_igetfield`); Java's name for Java instructions.
#[must_use]
pub fn vm_name(opcode: u8) -> Option<&'static str> {
    NAMES.get(usize::from(opcode)).map(String::as_str)
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
