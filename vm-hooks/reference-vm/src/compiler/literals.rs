//! The literals of a unit.

use super::Literal;

/// Literals, ordered by first use.
#[derive(Default)]
pub struct Literals(Vec<Literal>);

impl Literals {
    /// Maximum number of literals. The method header's 15 bits also count the loader's two
    /// literals.
    pub const MAX: usize = 32_765;

    /// Index of a literal; adds missing literals. `None`: too many literals.
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
