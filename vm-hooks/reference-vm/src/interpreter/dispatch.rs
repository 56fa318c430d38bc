//! The interpreter's loop.
//!
//! Each family of bytecodes has a function, its handler. The loop and the handlers lie in an ELF
//! section of their own, so that a sample's address tells that the interpreter ran, and which
//! bytecode. The loop keeps the address of the running bytecode in a register that called functions
//! preserve: profilers find the address there, or among the words that a handler has saved.
#![allow(
    unsafe_code,
    reason = "names a section, and keeps a value in a register"
)]

use super::bytecodes as b;
use super::raw::{Ip, Sp};
use super::vm::{Next, Vm};

/// Runs a bytecode: takes its address and the stack, returns where to go on.
pub(super) type Handler = extern "C" fn(&mut Vm, Ip, Sp) -> Next;

/// Declares the table of handlers, and the list of their names.
macro_rules! table {
    ($($($first:literal)..+ $handler:ident,)*) => {
        /// Handlers by opcode.
        static TABLE: [Handler; 256] = {
            let mut table: [Handler; 256] = [b::unused; 256];
            $(fill(&mut table, &[$($first),+], b::$handler);)*
            table
        };

        /// Names and addresses of the handlers, and of the loop.
        #[must_use]
        pub fn bytecode_handlers() -> Vec<(&'static str, usize)> {
            vec![
                $((stringify!($handler), b::$handler as *const () as usize),)*
                ("unused", b::unused as *const () as usize),
                ("dispatch", interpret as *const () as usize),
            ]
        }
    };
}

/// Puts a handler at an opcode, or at all from the first to the last.
const fn fill(table: &mut [Handler; 256], range: &[usize], handler: Handler) {
    let mut at = range[0];
    while at <= range[range.len() - 1] {
        table[at] = handler;
        at += 1;
    }
}

table! {
    0..15 push_inst_var,
    16..31 push_lit_var,
    32..63 push_constant,
    64..75 push_temp,
    76 push_self,
    77 push_true,
    78 push_false,
    79 push_nil,
    80 push_zero,
    81 push_one,
    83 dup,
    88 return_self,
    89 return_true,
    90 return_false,
    91 return_nil,
    92 return_top,
    93 block_return_nil,
    94 block_return_top,
    95 nop,
    96 add,
    97 subtract,
    98 less,
    99 greater,
    100 less_or_equal,
    101 greater_or_equal,
    102 equal,
    103 not_equal,
    104 multiply,
    105 divide,
    106 modulo,
    107 make_point,
    108 bit_shift,
    109 integer_divide,
    110 bit_and,
    111 bit_or,
    112 special_at,
    113 special_at_put,
    114 special_size,
    115..117 special_send,
    118 same,
    119 special_class,
    120 not_same,
    121 special_value,
    122 special_value_with,
    123..127 special_send,
    128..143 send_without_arguments,
    144..159 send_with_1_argument,
    160..175 send_with_2_arguments,
    176..183 short_jump,
    184..191 short_jump_if_true,
    192..199 short_jump_if_false,
    200..207 pop_into_inst_var,
    208..215 pop_into_temp,
    216 pop,
    224 extend_a,
    225 extend_b,
    226 push_inst_var_extended,
    227 push_lit_var_extended,
    228 push_constant_extended,
    229 push_temp_extended,
    231 push_array,
    232 push_integer,
    233 push_character,
    234 send_extended,
    235 send_super,
    237 jump,
    238 jump_if_true,
    239 jump_if_false,
    240 pop_into_inst_var_extended,
    241 pop_into_lit_var,
    242 pop_into_temp_extended,
    243 store_into_inst_var,
    244 store_into_lit_var,
    245 store_into_temp,
    248 call_primitive,
    249 push_closure,
    251 push_temp_in_vector,
    252 store_temp_in_vector,
    253 pop_into_temp_in_vector,
}

/// Runs bytecodes until a handler ends it.
#[unsafe(link_section = "vmscope_bytecodes")]
#[inline(never)]
pub(super) extern "C" fn interpret(vm: &mut Vm, mut ip: Ip, mut sp: Sp) {
    while sp != Sp::NONE {
        let next = TABLE[usize::from(ip.byte(0))](vm, ip, sp);
        // SAFETY: no instruction. The address counts as used after the call, so the compiler keeps
        // it in a register that the handler preserves.
        unsafe {
            core::arch::asm!("/* {0} */", in(reg) ip.0.addr(), options(nomem, nostack, preserves_flags));
        }
        ip = next.ip;
        sp = next.sp;
    }
}

unsafe extern "C" {
    #[link_name = "__start_vmscope_bytecodes"]
    static SECTION_START: u8;
    #[link_name = "__stop_vmscope_bytecodes"]
    static SECTION_END: u8;
}

/// Addresses of the interpreter's code: the first, and the first after it.
#[must_use]
pub fn code_range() -> (usize, usize) {
    (
        (&raw const SECTION_START).addr(),
        (&raw const SECTION_END).addr(),
    )
}
