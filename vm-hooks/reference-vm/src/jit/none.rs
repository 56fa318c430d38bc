//! A machine without a JIT: the interpreter does everything.

use super::{Jit, JitOptions};
use crate::interpreter::raw::Ip;
use crate::interpreter::raw::Sp;
use crate::interpreter::{Next, Vm};
use crate::memory::Oop;

/// No machine code.
#[derive(Debug)]
pub(crate) enum Machine {}

impl Machine {
    pub fn set_next(&mut self, _pc: u64) {
        match *self {}
    }

    pub fn bytecode_ip(&self, _pc: u64) -> Option<Ip> {
        match *self {}
    }
}

impl Jit {
    pub fn new(_options: &JitOptions) -> Self {
        Self::default()
    }
}

impl Vm {
    pub(crate) fn connect_jit(&mut self) {}

    pub(super) fn frame_entry(&mut self, _method: Oop, _closure: Option<Oop>) -> Option<u64> {
        None
    }

    pub(super) fn loop_entry(&mut self, _ip: Ip) -> Option<u64> {
        None
    }

    pub(crate) fn run_machine_code(&mut self, ip: Ip, sp: Sp) -> Next {
        Next { ip, sp }
    }

    pub(crate) fn compact_code_if_wanted(&mut self) {}

    #[allow(clippy::unused_self, reason = "the JIT's version uses it")]
    pub(crate) fn publish_zone(&self, _to: &crate::publish::To<'_>) {}

    #[allow(clippy::unused_self, reason = "the JIT's version uses it")]
    pub(crate) fn code_constituents(&self) -> Vec<(String, Vec<u64>)> {
        Vec::new()
    }

    pub(crate) fn methods_changed(&mut self) {}
}
