//! The registers of a thread that a signal interrupted.

use libc::ucontext_t;

/// The registers that a sample needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registers {
    pub(super) pc: u64,
    pub(super) sp: u64,
    pub(super) fp: u64,
}

#[cfg(target_arch = "x86_64")]
pub(super) fn registers(context: &ucontext_t) -> Registers {
    let registers = &context.uc_mcontext.gregs;
    let get = |index: libc::c_int| {
        let register = usize::try_from(index).ok().and_then(|i| registers.get(i));
        register.map_or(0, |value| value.cast_unsigned())
    };
    Registers {
        pc: get(libc::REG_RIP),
        sp: get(libc::REG_RSP),
        fp: get(libc::REG_RBP),
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) fn registers(context: &ucontext_t) -> Registers {
    let registers = &context.uc_mcontext;
    Registers {
        pc: registers.pc,
        sp: registers.sp,
        fp: registers.regs[29],
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the sampler knows the registers of x86-64 and aarch64");
