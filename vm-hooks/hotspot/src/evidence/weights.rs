//! What each kind of evidence is worth. The numbers were found by trying, one after the
//! other, on seven of eighteen recordings (`examples/evidence`); changing them at random by
//! half or double found nothing better there. Figures of the rest are alike.

use super::facts::Sign;
use super::tree::GuessLimits;

/// What each kind of evidence is worth, and each way through the bytecodes costs.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// A debug record.
    pub record: f32,
    /// An entry of the implicit-exception table.
    pub implicit: f32,
    /// Such an entry of the receiver of a call.
    pub receiver: f32,
    /// A branch to a trap.
    pub trap: f32,
    /// A branch to other code out of line.
    pub out_of_line: f32,
    /// Factor of all signs.
    pub signs: f32,
    /// How much more a sign is worth that fits few bytecodes.
    pub rarity: f32,
    /// Factors of the kinds of signs, in the order of [`Sign`]'s variants.
    pub kinds: [f32; 14],
    /// For each bytecode that is skipped, going forward.
    pub skip: f32,
    /// Forward in the same method.
    pub forward: f32,
    /// Backward in the same method.
    pub within: f32,
    /// Into an inlined method.
    pub enter: f32,
    /// Out of one.
    pub leave: f32,
    /// Anywhere.
    pub jump: f32,
    /// Anywhere, where control does not come from the instruction in front.
    pub apart: f32,
    /// Into a method that no record names, besides.
    pub guess: f32,
    /// Which methods that may be.
    pub limits: GuessLimits,
}

impl Weights {
    /// Sets a weight by its short name; `false` where there is none of that name. For
    /// trying.
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

    /// The factor of a sign.
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
            receiver: 4.0,
            trap: 5.0,
            out_of_line: 1.5,
            signs: 1.0,
            rarity: 2.0,
            kinds: [
                1.0, 1.5, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.4, 1.0, 1.0, 8.0, 6.0,
            ],
            skip: 0.04,
            forward: 0.2,
            within: 1.0,
            enter: 2.5,
            leave: 2.0,
            jump: 9.0,
            apart: 2.0,
            guess: 1.0,
            limits: GuessLimits {
                depth: 4,
                size: 80,
                targets: 2,
                steps: 1500,
            },
        }
    }
}
