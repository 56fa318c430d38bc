//! The interpreter's loop.
//!
//! Each family of bytecodes has one function, its handler. The loop and the handlers lie in their
//! own ELF section. A sample's address therefore shows interpretation, and names the bytecode. The
//! loop keeps the running bytecode's address in a callee-saved register: profilers find the address
//! in that register, or among the words saved by a handler.
#![allow(
    unsafe_code,
    reason = "names a section, and keeps a value in a register"
)]

use super::bytecodes as b;
use super::raw::{Ip, Sp};
use super::vm::{Next, Vm};

/// Runs one bytecode: takes the bytecode's address and the stack, returns the next address and
/// stack.
pub(super) type Handler = extern "C" fn(&mut Vm, Ip, Sp) -> Next;

/// Declares the handler table and the handlers' names. Each name begins with the disassembler's
/// mnemonic, so a profiler can match handler and bytecode.
macro_rules! table {
    ($($($first:literal)..+ $handler:ident $name:literal,)*) => {
        /// Handlers by opcode.
        static TABLE: [Handler; 256] = {
            let mut table: [Handler; 256] = [b::unused; 256];
            $(fill(&mut table, &[$($first),+], b::$handler);)*
            table
        };

        /// Names and addresses of the handlers and the loop.
        #[must_use]
        pub fn bytecode_handlers() -> Vec<(&'static str, usize)> {
            vec![
                $(($name, b::$handler as *const () as usize),)*
                ("send: (slow)", b::send_special as *const () as usize),
                ("send: (floats)", b::float_arithmetic as *const () as usize),
                ("mustBeBoolean", b::must_be_boolean as *const () as usize),
                ("unused", b::unused as *const () as usize),
                ("dispatch", interpret as *const () as usize),
            ]
        }
    };
}

/// Assigns a handler to one opcode, or to a range of opcodes (first, last).
const fn fill(table: &mut [Handler; 256], range: &[usize], handler: Handler) {
    let mut at = range[0];
    while at <= range[range.len() - 1] {
        table[at] = handler;
        at += 1;
    }
}

table! {
    0..15 push_inst_var "pushRcvr:",
    16..31 push_lit_var "pushLit:",
    32..63 push_constant "pushConstant:",
    64..75 push_temp "pushTemp:",
    76 push_self "self",
    77 push_true "pushConstant: true",
    78 push_false "pushConstant: false",
    79 push_nil "pushConstant: nil",
    80 push_zero "pushConstant: 0",
    81 push_one "pushConstant: 1",
    83 dup "dup",
    88 return_self "returnSelf",
    89 return_true "return: true",
    90 return_false "return: false",
    91 return_nil "return: nil",
    92 return_top "returnTop",
    93 block_return_nil "blockReturn: nil",
    94 block_return_top "blockReturn",
    95 nop "nop",
    96 add "send: +",
    97 subtract "send: -",
    98 less "send: <",
    99 greater "send: >",
    100 less_or_equal "send: <=",
    101 greater_or_equal "send: >=",
    102 equal "send: =",
    103 not_equal "send: ~=",
    104 multiply "send: *",
    105 divide "send: /",
    106 modulo "send: \\\\",
    107 make_point "send: @",
    108 bit_shift "send: bitShift:",
    109 integer_divide "send: //",
    110 bit_and "send: bitAnd:",
    111 bit_or "send: bitOr:",
    112 special_at "send: at:",
    113 special_at_put "send: at:put:",
    114 special_size "send: size",
    115..117 special_send "send: (special selector)",
    118 same "send: ==",
    119 special_class "send: class",
    120 not_same "send: ~~",
    121 special_value "send: value",
    122 special_value_with "send: value:",
    123..127 special_send "send: (special selector)",
    128..143 send_without_arguments "send: (0 arguments)",
    144..159 send_with_1_argument "send: (1 argument)",
    160..175 send_with_2_arguments "send: (2 arguments)",
    176..183 short_jump "jumpTo:",
    184..191 short_jump_if_true "jumpTrue:",
    192..199 short_jump_if_false "jumpFalse:",
    200..207 pop_into_inst_var "popIntoRcvr:",
    208..215 pop_into_temp "popIntoTemp:",
    216 pop "pop",
    224 extend_a "extendA",
    225 extend_b "extendB",
    226 push_inst_var_extended "pushRcvr: (long)",
    227 push_lit_var_extended "pushLit: (long)",
    228 push_constant_extended "pushConstant: (long)",
    229 push_temp_extended "pushTemp: (long)",
    231 push_array "push: (Array new:)",
    232 push_integer "pushConstant: (integer)",
    233 push_character "pushConstant: (character)",
    234 send_extended "send: (long)",
    235 send_super "superSend:",
    237 jump "jumpTo: (long)",
    238 jump_if_true "jumpTrue: (long)",
    239 jump_if_false "jumpFalse: (long)",
    240 pop_into_inst_var_extended "popIntoRcvr: (long)",
    241 pop_into_lit_var "popIntoLit:",
    242 pop_into_temp_extended "popIntoTemp: (long)",
    243 store_into_inst_var "storeIntoRcvr:",
    244 store_into_lit_var "storeIntoLit:",
    245 store_into_temp "storeIntoTemp:",
    217 machine_code "ceEnterMachineCode",
    248 call_primitive "callPrimitive:",
    249 push_closure "closure:",
    251 push_temp_in_vector "pushTemp: inVectorAt:",
    252 store_temp_in_vector "storeIntoTemp: inVectorAt:",
    253 pop_into_temp_in_vector "popIntoTemp: inVectorAt:",
}

/// Words of stack between the loop and its callers. A profiler searches `ROOM` words above a
/// handler's frame for the running bytecode's address. The gap keeps stale addresses in callers'
/// frames outside that search.
const ROOM: usize = 32;

/// Runs bytecodes from `vm.start` until a handler ends it.
#[inline(never)]
pub(super) fn run(vm: &mut Vm) {
    let room = std::hint::black_box([0_usize; ROOM]);
    interpret(vm);
    std::hint::black_box(room);
}

/// The loop.
#[unsafe(link_section = "vmscope_bytecodes")]
#[inline(never)]
extern "C" fn interpret(vm: &mut Vm) {
    let Next { mut ip, mut sp } = vm.start;
    while sp != Sp::NONE {
        let next = TABLE[usize::from(ip.byte(0))](vm, ip, sp);
        // SAFETY: the assembly has no instruction. It uses the address after the call, so the
        // compiler keeps the address in a callee-saved register.
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

/// Address range of the interpreter's code: start, and end (exclusive).
#[must_use]
pub fn code_range() -> (usize, usize) {
    (
        (&raw const SECTION_START).addr(),
        (&raw const SECTION_END).addr(),
    )
}
