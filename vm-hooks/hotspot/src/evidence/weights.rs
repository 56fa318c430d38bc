//! Weights of the kinds of evidence, found by trials, one weight after the other, on seven of
//! eighteen recordings (`examples/evidence`). Random changes by half or double gave no better
//! results there. The other recordings have similar figures. Five weights are newer: `receiver`, `trap`,
//! `apart` and `guess` were chosen on thirteen recordings and tried on eight others, the factor of fields on
//! twelve and six.

use super::facts::Sign;
use super::tree::GuessLimits;

/// Weights of evidence, and costs of moves between bytecodes.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// A debug record.
    pub record: f32,
    /// An entry of the implicit-exception table.
    pub implicit: f32,
    /// An implicit-exception entry for a call's receiver.
    pub receiver: f32,
    /// A branch to a trap.
    pub trap: f32,
    /// A branch to out-of-line code without a trap.
    pub out_of_line: f32,
    /// Factor for all signs.
    pub signs: f32,
    /// Bonus of a sign that matches few bytecodes.
    pub rarity: f32,
    /// Factors per kind of sign, in the order of `Sign`'s variants.
    pub kinds: [f32; 14],
    /// Cost per skipped bytecode of a forward move.
    pub skip: f32,
    /// Forward move in the same method.
    pub forward: f32,
    /// Backward move in the same method.
    pub within: f32,
    /// Entry into an inlined method.
    pub enter: f32,
    /// Return from an inlined method.
    pub leave: f32,
    /// Move to anywhere.
    pub jump: f32,
    /// Move to anywhere without control from the previous instruction.
    pub apart: f32,
    /// Additional cost of entry into a method without a record.
    pub guess: f32,
    /// Limits of guessed inlining.
    pub limits: GuessLimits,
}

impl Weights {
    /// Sets a weight by its short name, for trials; `false` for an unknown name.
    pub fn set(&mut self, name: &str, value: f32) -> bool {
        let kind = name
            .strip_prefix('k')
            .and_then(|kind| kind.parse::<usize>().ok());
        if let Some(slot) = kind.and_then(|kind| self.kinds.get_mut(kind)) {
            *slot = value;
            return true;
        }
        let slot = match name {
            "record" => &mut self.record,
            "implicit" => &mut self.implicit,
            "receiver" => &mut self.receiver,
            "trap" => &mut self.trap,
            "ool" => &mut self.out_of_line,
            "signs" => &mut self.signs,
            "rarity" => &mut self.rarity,
            "skip" => &mut self.skip,
            "forward" => &mut self.forward,
            "within" => &mut self.within,
            "enter" => &mut self.enter,
            "leave" => &mut self.leave,
            "jump" => &mut self.jump,
            "apart" => &mut self.apart,
            "guess" => &mut self.guess,
            _ => return false,
        };
        *slot = value;
        true
    }

    /// Factor of a sign.
    #[must_use]
    pub fn of_kind(&self, sign: &Sign) -> f32 {
        let index = match sign {
            Sign::Field { .. } => 0,
            Sign::Element { .. } => 1,
            Sign::Length => 2,
            Sign::ClassOf => 3,
            Sign::Class(_) => 4,
            Sign::Constant(-1..=1) => 5,
            Sign::Constant(_) => 6,
            Sign::Arithmetic(..) => 7,
            Sign::Branch => 8,
            Sign::Allocate => 9,
            Sign::Lock => 10,
            Sign::Vector => 11,
            Sign::Intrinsic => 12,
            Sign::Return => 13,
        };
        self.kinds.get(index).copied().unwrap_or(1.0)
    }
}

impl Default for Weights {
    fn default() -> Self {
        Weights {
            record: 12.0,
            implicit: 8.0,
            receiver: 8.0,
            trap: 8.0,
            out_of_line: 1.5,
            signs: 1.0,
            rarity: 2.0,
            kinds: [
                1.4, 1.5, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.4, 1.0, 1.0, 8.0, 6.0,
            ],
            skip: 0.04,
            forward: 0.2,
            within: 1.0,
            enter: 2.5,
            leave: 2.0,
            jump: 9.0,
            apart: 4.0,
            guess: 0.3,
            limits: GuessLimits {
                depth: 4,
                size: 80,
                targets: 2,
                steps: 1500,
            },
        }
    }
}
