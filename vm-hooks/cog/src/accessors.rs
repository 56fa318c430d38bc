//! Functions of the VM that access one variable. Also stripped VMs export them: their plugins and
//! debuggers call them.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use vmscope_process::{AdapterError, Memory, Symbol};
use vmscope_records::{Arch, Avma};

/// Longest accessor in bytes.
const MAX_BYTES: u64 = 256;

/// An exported function, and the variables that its code refers to.
pub struct Accessor {
    /// Its symbol.
    pub function: &'static str,
    /// The variables in the order of their first use.
    pub variables: &'static [&'static str],
    /// Kind of use.
    uses: Uses,
}

enum Uses {
    /// Reads each.
    Reads,
    /// Reads the first; its loop compares the second, an array, from its second word on.
    ReadsAndIndexes,
}

const fn reads(function: &'static str, variables: &'static [&'static str]) -> Accessor {
    Accessor {
        function,
        variables,
        uses: Uses::Reads,
    }
}

/// The accessors, which exist in all known versions.
pub const ACCESSORS: [Accessor; 10] = [
    reads("cogCodeBase", &["codeBase"]),
    reads("minCogMethodAddress", &["methodZoneBase"]),
    reads("maxCogMethodAddress", &["mzFreeStart"]),
    reads(
        "printCogYoungReferrers",
        &["youngReferrers", "limitAddress"],
    ),
    reads("nilObject", &["nilObj"]),
    reads("classArray", &["specialObjectsOop"]),
    reads("splObj", &["specialObjectsOop"]),
    reads("classAtIndex", &["hiddenRootsObj"]),
    reads("numMethods", &["methodCount"]),
    Accessor {
        function: "codeEntryNameFor",
        variables: &["trampolineTableIndex", "trampolineAddresses"],
        uses: Uses::ReadsAndIndexes,
    },
];

impl Accessor {
    /// Addresses of variables in the code of `function`. A compiler may have made code in another
    /// form: then some are missing, and the caller checks the others' values.
    ///
    /// # Errors
    /// Failed reads.
    pub fn decode(
        &self,
        function: &Symbol,
        memory: &dyn Memory,
    ) -> Result<Vec<(&'static str, Avma)>, AdapterError> {
        if Arch::of_this_machine() != Arch::X86_64 {
            return Ok(Vec::new());
        }
        let length = match function.size {
            0 => MAX_BYTES,
            size => size.min(MAX_BYTES),
        };
        let mut code = vec![0; usize::try_from(length).unwrap_or(0)];
        let got = memory.read_partial(function.address, &mut code);
        let got = got.map_err(AdapterError::reading("accessor functions"))?;
        code.truncate(got);
        let word = memory.pointer_bytes();
        let (read, taken) = operands(&code, function.address, word);
        let mut found: Vec<_> = self.variables.iter().copied().zip(read).collect();
        if matches!(self.uses, Uses::ReadsAndIndexes) {
            found.truncate(1);
            let second = taken.first().and_then(|at| at.0.checked_sub(word as u64));
            let names = self.variables.get(1).copied();
            found.extend(names.zip(second.map(Avma)));
        }
        Ok(found)
    }
}

/// Addresses of variables that the code of a function at `at` reads, and addresses that it takes
/// (`lea`, or a constant in a 32-bit VM), each once and in order. Stops at the first return.
fn operands(code: &[u8], at: Avma, word: usize) -> (Vec<Avma>, Vec<Avma>) {
    let bits = if word == 4 { 32 } else { 64 };
    let mut decoder = Decoder::with_ip(bits, code, at.0, DecoderOptions::NONE);
    let (mut read, mut taken) = (Vec::new(), Vec::new());
    let put = |all: &mut Vec<Avma>, address: u64| {
        if !all.contains(&Avma(address)) {
            all.push(Avma(address));
        }
    };
    let mut insn = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut insn);
        if insn.is_invalid() || insn.mnemonic() == Mnemonic::Ret {
            break;
        }
        let operands = 0..insn.op_count();
        let has_memory = operands
            .into_iter()
            .any(|at| insn.op_kind(at) == OpKind::Memory);
        // Position-dependent code has absolute addresses, in 64-bit code also behind a register.
        let is_global = insn.is_ip_rel_memory_operand()
            || (insn.memory_base() == Register::None && insn.memory_displ_size() >= 4);
        if has_memory && is_global {
            let address = insn.memory_displacement64();
            match insn.mnemonic() {
                Mnemonic::Lea => put(&mut taken, address),
                _ if insn.memory_index() == Register::None => put(&mut read, address),
                _ => put(&mut taken, address),
            }
        } else if insn.mnemonic() == Mnemonic::Mov
            && matches!(insn.op1_kind(), OpKind::Immediate32)
            && insn.op0_kind() == OpKind::Register
            && insn.immediate32() != 0
        {
            put(&mut taken, u64::from(insn.immediate32()));
        }
    }
    (read, taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_of_accessors() {
        // mov rax, [rip+0x10]; ret; mov rax, [rip+0x20]
        let code = [
            0x48, 0x8b, 0x05, 0x10, 0, 0, 0, 0xc3, 0x48, 0x8b, 0x05, 0x20, 0, 0, 0,
        ];
        assert_eq!(
            operands(&code, Avma(0x1000), 8),
            (vec![Avma(0x1017)], Vec::new())
        );
        // mov rcx, [rip+0x100]; lea rdx, [rip+0x200]; cmp rdi, [rdx]
        let code = [
            0x48, 0x8b, 0x0d, 0, 1, 0, 0, 0x48, 0x8d, 0x15, 0, 2, 0, 0, 0x48, 0x3b, 0x3a,
        ];
        assert_eq!(
            operands(&code, Avma(0x1000), 8),
            (vec![Avma(0x1107)], vec![Avma(0x120e)])
        );
        // 32-bit: mov eax, [0x8049f0]; cmp edx, [eax*8+0x804a04]
        let code = [
            0xa1, 0xf0, 0x49, 0x80, 0, 0x3b, 0x14, 0xc5, 0x04, 0x4a, 0x80, 0,
        ];
        assert_eq!(
            operands(&code, Avma(0x1000), 4),
            (vec![Avma(0x8049f0)], vec![Avma(0x804a04)])
        );
    }
}
