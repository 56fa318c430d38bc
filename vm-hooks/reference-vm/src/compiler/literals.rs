//! The literals of a unit.

use super::Literal;

/// Literals in the order of their first use.
#[derive(Default)]
pub struct Literals(Vec<Literal>);

impl Literals {
    /// The most literals, so that the loader's two fit into a method header, too.
    pub const MAX: usize = 32_765;

    /// The index of a literal, which is added if need be. `None`: there are too many.
    pub fn index(&mut self, literal: Literal) -> Option<usize> {
        let shared = match &literal {
            // 0.0 and -0.0 are equal.
            Literal::Float(value) => self.0.iter().position(
                |other| matches!(other, Literal::Float(other) if other.to_bits() == value.to_bits()),
            ),
            Literal::Symbol(_)
            | Literal::Binding(_)
            | Literal::Integer(_)
            | Literal::Character(_) => self.0.iter().position(|other| *other == literal),
            _ => None,
        };
        if shared.is_some() {
            return shared;
        }
        if self.0.len() == Self::MAX {
            return None;
        }
        self.0.push(literal);
        Some(self.0.len() - 1)
    }

    /// The literals.
    pub fn into_vec(self) -> Vec<Literal> {
        self.0
    }
}
