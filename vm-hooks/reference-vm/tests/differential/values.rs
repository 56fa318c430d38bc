//! Expressions with non-integer answers.

use super::{CLASSES, Kind, Writer};

const FLOATS: [&str; 8] = [
    "1.5",
    "0.0",
    "-2.25",
    "1.0e100",
    "1.0e-200",
    "0.1",
    "1.0e308",
    "123456789.125",
];
const TEXTS: [&str; 6] = ["'abc'", "''", "'it''s'", "#foo", "#at:put:", "'x y'"];

impl Writer {
    pub(super) fn value(&mut self, kind: Kind, depth: usize) -> String {
        if self.below(3) == 0
            && let Some(name) = self.variable(kind, false)
        {
            return name;
        }
        match kind {
            Kind::Integer => self.integer(depth),
            Kind::Boolean => self.boolean(depth),
            Kind::Float => self.float(depth),
            Kind::Text => self.text(depth),
            Kind::Array => self.array(depth),
            Kind::Object => self.object(depth),
            Kind::Block => self.block(depth),
        }
    }

    pub(super) fn boolean(&mut self, depth: usize) -> String {
        let below = depth.saturating_sub(1);
        let choice = match depth {
            0 => self.below(4),
            _ => self.below(15),
        };
        let comparisons = ["<", ">", "<=", ">=", "=", "~="];
        match choice {
            0 => "true".to_owned(),
            1 => "false".to_owned(),
            2 | 3 => {
                let (left, right) = (self.integer(0), self.integer(0));
                format!("({left} {} {right})", self.one_of(&comparisons))
            }
            4 | 5 => {
                let (left, right) = (self.integer(below), self.integer(below));
                format!("({left} {} {right})", self.one_of(&comparisons))
            }
            6 | 7 => {
                let (left, right) = (self.boolean(below), self.boolean(below));
                let right = self.inlined_or_not(&right);
                format!("({left} {} {right})", self.one_of(&["and:", "or:"]))
            }
            8 => {
                let (left, right) = (self.boolean(below), self.boolean(below));
                format!("({left} {} {right})", self.one_of(&["&", "|", "xor:"]))
            }
            9 => format!("{} not", self.boolean(below)),
            10 => format!("(peer == {})", self.object(below)),
            11 => format!("(peer {})", self.one_of(&["isNil", "notNil"])),
            12 => {
                let (left, right) = (
                    self.value(Kind::Float, below),
                    self.value(Kind::Float, below),
                );
                format!("({left} {} {right})", self.one_of(&comparisons))
            }
            13 => {
                let array = self.value(Kind::Array, below);
                format!("({array} anySatisfy: {})", self.test(below))
            }
            _ => {
                let parity = self.one_of(&["even", "odd", "isNil", "notNil"]);
                format!("{} {parity}", self.integer(below))
            }
        }
    }

    pub(super) fn float(&mut self, depth: usize) -> String {
        let below = depth.saturating_sub(1);
        if depth == 0 {
            return self.one_of(&FLOATS).to_owned();
        }
        match self.below(6) {
            0 | 1 => self.one_of(&FLOATS).to_owned(),
            2 | 3 => {
                let (left, right) = (self.float(below), self.float(below));
                let operators = ["+", "-", "*", "/", "max:", "min:"];
                format!("({left} {} {right})", self.one_of(&operators))
            }
            4 => {
                let (left, right) = (self.float(below), self.integer(below));
                format!("({left} {} {right})", self.one_of(&["+", "-", "*"]))
            }
            _ => format!("{} asFloat", self.integer(below)),
        }
    }

    pub(super) fn text(&mut self, depth: usize) -> String {
        let below = depth.saturating_sub(1);
        if depth == 0 {
            return self.one_of(&TEXTS).to_owned();
        }
        match self.below(10) {
            0 | 1 => self.one_of(&TEXTS).to_owned(),
            7 => {
                let (at, character) = (self.below(4), self.one_of(&["$x", "$'", "$ "]));
                format!(
                    "(({} , 'end') at: {at} put: {character}; yourself)",
                    self.text(below)
                )
            }
            8 => format!("({} at: {}) printString", self.text(below), self.below(4)),
            9 => {
                let (number, float) = (self.integer(below), self.float(below));
                format!(
                    "{{{number}. peer isNil. {float}. 'a'. #b. $c. nil. {number} class}} printString"
                )
            }
            2 => format!("({} , {})", self.text(below), self.text(below)),
            3 => format!("{} printString", self.integer(below)),
            4 => format!("{} reversed", self.text(below)),
            5 => format!("{} asUppercase", self.text(below)),
            _ => format!("{} class name", self.integer(below)),
        }
    }

    pub(super) fn array(&mut self, depth: usize) -> String {
        let below = depth.saturating_sub(1);
        if depth == 0 {
            return "items".to_owned();
        }
        match self.below(9) {
            0 => "items".to_owned(),
            1 => "#(3 1 4 1 5)".to_owned(),
            2 | 3 => {
                let count = self.below(6);
                let elements: Vec<String> = (0..count).map(|_| self.integer(below)).collect();
                format!("{{{}}}", elements.join(". "))
            }
            4 => {
                let array = self.value(Kind::Array, below);
                format!("({array} collect: {})", self.block(below))
            }
            5 => {
                let array = self.value(Kind::Array, below);
                format!("({array} select: {})", self.test(below))
            }
            6 => format!("{} copy", self.value(Kind::Array, below)),
            7 => {
                let (left, right) = (
                    self.value(Kind::Array, below),
                    self.value(Kind::Array, below),
                );
                format!("({left} , {right})")
            }
            _ => format!("{} reversed", self.value(Kind::Array, below)),
        }
    }

    pub(super) fn object(&mut self, depth: usize) -> String {
        match self.below(8) {
            0..=2 => "self".to_owned(),
            3 => format!("{}A new", self.prefix),
            4 => format!("{}B new", self.prefix),
            5 => match self.variable(Kind::Object, false) {
                Some(name) => name,
                None => "self".to_owned(),
            },
            6 => "(peer ifNil: [self])".to_owned(),
            _ if depth > 0 => {
                let (class, peer) = (self.one_of(&CLASSES), self.object(depth - 1));
                format!("({}{class} new peer: {peer}; yourself)", self.prefix)
            }
            _ => "self".to_owned(),
        }
    }
}
