//! Makes room in the code zone: frees the least used methods and slides the others down.
//!
//! Compaction happens at a safe point. Frames of freed code continue in the interpreter; return
//! addresses and saved ips of other frames move along. All sends are unlinked, and all PICs freed:
//! their sites link again.

use super::machine::{Code, PREFIX};
use super::publication::Change;
use super::zone::ALIGNMENT;
use crate::interpreter::raw::{Fp, Ip};
use crate::interpreter::{MethodHeader, Vm, now_ns};
use crate::memory::Oop;

/// Old and new place of a piece of code; `None` for freed code.
struct Move {
    from: usize,
    bytes: usize,
    to: Option<usize>,
}

impl Vm {
    /// Compacts the code zone if full. All processes have saved their frames.
    pub(crate) fn compact_code_if_wanted(&mut self) {
        let is_full = self
            .jit
            .machine
            .as_ref()
            .is_some_and(|machine| machine.is_full);
        if !is_full {
            return;
        }
        let begin = now_ns();
        let Some(machine) = &mut self.jit.machine else {
            return;
        };
        let freed = least_used(&machine.codes);
        let mut cursor = machine.first;
        let moves: Vec<Move> = machine
            .codes
            .iter()
            .zip(&freed)
            .map(|(code, is_freed)| {
                let to = (!is_freed).then(|| {
                    let to = (cursor + PREFIX).next_multiple_of(ALIGNMENT);
                    cursor = to + code.bytes;
                    to
                });
                Move {
                    from: code.start,
                    bytes: code.bytes,
                    to,
                }
            })
            .collect();
        self.move_frames(&moves);
        self.allocation_sites.forget_places();
        let Some(machine) = &mut self.jit.machine else {
            return;
        };
        machine.unlink_all();
        let codes = std::mem::take(&mut machine.codes);
        let gone = codes.iter().zip(&freed).filter(|(_, is_freed)| **is_freed);
        let gone = gone.map(|(code, _)| Change::Gone(code.id));
        machine.changes.extend(gone);
        for (mut code, place) in codes.into_iter().zip(&moves) {
            let header = MethodHeader::of(code.method);
            let Some(to) = place.to else {
                header.with_machine(0).with_activations(0).put(code.method);
                continue;
            };
            machine
                .zone
                .slide(code.start - PREFIX, to - PREFIX, code.bytes + PREFIX);
            code.start = to;
            code.uses /= 2;
            header.with_machine(to).put(code.method);
            if place.from != to {
                code.since = now_ns();
                machine.changes.push(Change::Moved(code.id, to));
            }
            machine.codes.push(code);
        }
        machine.zone.free = cursor;
        machine.unlink_all();
        machine.is_full = false;
        self.jit.events.compactions += 1;
        self.jit.events.compaction_ns += now_ns() - begin;
        self.publish_code_changes();
    }

    /// Changes where all frames go on.
    fn move_frames(&mut self, moves: &[Move]) {
        let Some(machine) = &self.jit.machine else {
            return;
        };
        let base = machine.zone.base();
        let to_interpreter = self.jit.return_to_interpreter;
        let new_place = |word: Oop| -> Option<Oop> {
            let offset = machine.offset_of(word.0);
            let at = moves.partition_point(|place| place.from <= offset);
            let place = moves.get(at.checked_sub(1)?)?;
            if offset > place.from + place.bytes {
                return None;
            }
            Some(Oop((base + place.to? + (offset - place.from)) as u64))
        };
        for stack in self.stacks() {
            let mut callee: Option<Fp> = None;
            let mut fp = stack.fp;
            while !fp.is_none() {
                let ret = callee.map_or(Oop::NONE, Fp::return_address);
                let returns = ret != to_interpreter && self.jit.is_machine(ret.0);
                let word = if returns { ret } else { fp.ip().word() };
                if self.jit.is_machine(word.0) {
                    let (ip, ret) = match new_place(word) {
                        Some(pc) => (Ip::from_word(pc), if returns { pc } else { to_interpreter }),
                        None => (self.bytecode_ip(Ip::from_word(word)), to_interpreter),
                    };
                    fp.set_ip(ip);
                    if let Some(callee) = callee {
                        callee.set_return_address(ret);
                    }
                }
                callee = Some(fp);
                fp = fp.caller();
            }
        }
    }

    /// A method was added: sends may find others now.
    pub(crate) fn methods_changed(&mut self) {
        if let Some(machine) = &mut self.jit.machine {
            machine.unlink_all();
            self.publish_code_changes();
        }
    }
}

/// Selects code to free: the least used quarter of all bytes.
fn least_used(codes: &[Code]) -> Vec<bool> {
    let total: usize = codes.iter().map(|code| code.bytes).sum();
    let mut order: Vec<usize> = (0..codes.len()).collect();
    order.sort_by_key(|at| codes[*at].uses);
    let mut freed = vec![false; codes.len()];
    let mut bytes = 0;
    for at in order {
        if bytes > total / 4 {
            break;
        }
        bytes += codes[at].bytes;
        freed[at] = true;
    }
    freed
}
