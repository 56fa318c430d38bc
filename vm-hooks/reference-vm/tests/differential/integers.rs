//! Integer expressions, including sends and exceptions.

use super::{Kind, Last, SELECTORS, Writer};

/// Values near the limits of SmallIntegers and short bytecodes.
const EDGES: [&str; 16] = [
    "2",
    "(-1)",
    "1152921504606846975",
    "(-1152921504606846976)",
    "1152921504606846976",
    "(-1152921504606846977)",
    "1152921504606846974",
    "9223372036854775807",
    "(-9223372036854775808)",
    "18446744073709551616",
    "4294967296",
    "1073741823",
    "(-32769)",
    "255",
    "(-129)",
    "123456789012345678901234567890",
];

impl Writer {
    pub(super) fn integer(&mut self, depth: usize) -> String {
        let below = depth.saturating_sub(1);
        let choice = match depth {
            0 => self.below(4),
            _ => self.below(46),
        };
        match choice {
            0 => self.below(20).to_string(),
            1 | 2 => match self.variable(Kind::Integer, false) {
                Some(name) => name,
                None => "1".to_owned(),
            },
            3 => self.one_of(&EDGES).to_owned(),
            4..=7 => {
                let (left, right) = (self.integer(below), self.integer(below));
                format!("({left} {} {right})", self.one_of(&["+", "-", "*"]))
            }
            8 => {
                let (left, right) = (self.integer(below), self.integer(below));
                let operators = ["//", "\\\\", "quo:", "rem:"];
                format!("({left} {} {right})", self.one_of(&operators))
            }
            9 => {
                let (left, right) = (self.integer(below), self.integer(below));
                let operators = ["bitAnd:", "bitOr:", "bitXor:", "max:", "min:", "gcd:"];
                format!("({left} {} {right})", self.one_of(&operators))
            }
            10 => {
                let distances = ["1", "3", "-1", "30", "59", "60", "61", "-59", "-64", "64"];
                format!(
                    "({} bitShift: {})",
                    self.integer(below),
                    self.one_of(&distances)
                )
            }
            11 => {
                let selector = self.one_of(&["negated", "abs", "sign", "squared"]);
                format!("{} {selector}", self.integer(below))
            }
            12..=15 => self.send(below),
            16 => match self.class > 0 && self.index < SELECTORS {
                true => {
                    let (index, value) = (self.index, self.integer(below));
                    match index % 2 {
                        0 => format!("(super m{index}: {value})"),
                        _ => format!("(super m{index}: {value} with: {})", self.block(below)),
                    }
                }
                false => self.integer(below),
            },
            17 | 18 => {
                let block = self.block(below);
                format!("({block} value: {})", self.integer(below))
            }
            19 => format!("[{}] value", self.body(below, 2, true)),
            20 => {
                let (array, index) = (self.value(Kind::Array, below), self.integer(1));
                match self.below(4) {
                    3 => format!("({array} at: {index})"),
                    _ => format!("({array} at: {index} \\\\ 3 + 1)"),
                }
            }
            21 => {
                let (array, selector) = (self.value(Kind::Array, below), self.below(3));
                format!("{array} {}", ["size", "first", "last"][selector])
            }
            22 => {
                let (array, first) = (self.value(Kind::Array, below), self.integer(below));
                let (sum, each) = (self.name("x"), self.name("x"));
                self.declare(&sum, Kind::Integer, false);
                self.declare(&each, Kind::Integer, false);
                let body = self.body(below, 1, true);
                self.variables.truncate(self.variables.len() - 2);
                format!("({array} inject: {first} into: [:{sum} :{each} | {body}])")
            }
            23 | 24 => {
                let condition = self.boolean(below);
                let (yes, no) = (self.body(below, 1, true), self.body(below, 1, true));
                let (yes, no) = (self.inlined_or_not(&yes), self.inlined_or_not(&no));
                format!("({condition} ifTrue: {yes} ifFalse: {no})")
            }
            25 => {
                let condition = self.boolean(below);
                let yes = self.body(below, 1, true);
                let no = self.integer(below);
                format!("(({condition} ifTrue: [{yes}]) ifNil: [{no}])")
            }
            26 => self.nil_test(below),
            27 => format!("({})", self.counting(below)),
            28 => match self.variable(Kind::Integer, true) {
                Some(name) => format!("({name} := {})", self.integer(below)),
                None => self.integer(below),
            },
            29..=31 => self.caught(below),
            32 | 33 => {
                let (body, unwind) = (self.body(below, 2, true), self.body(below, 2, false));
                let selector = self.one_of(&["ensure:", "ifCurtailed:"]);
                format!("([{body}] {selector} [{unwind}])")
            }
            34 | 35 => {
                let (object, count) = (self.object(below), self.below(4));
                let selector = self.one_of(&["nest:", "guard:", "curtail:"]);
                format!(
                    "({object} {selector} {count} do: [{}])",
                    self.body(below, 2, true)
                )
            }
            36 => {
                let (block, array) = (self.block(below), self.value(Kind::Array, below));
                format!("(self find: {block} in: {array})")
            }
            37 => {
                let array = self.value(Kind::Array, below);
                let (test, none) = (self.test(below), self.body(below, 1, true));
                format!("({array} detect: {test} ifNone: [{none}])")
            }
            38 => {
                let value = self.integer(below);
                format!(
                    "([{} escape value: {value}] on: BlockCannotReturn do: [:error | error result])",
                    self.object(below)
                )
            }
            39 => format!("{} size", self.value(Kind::Text, below)),
            40 => {
                let float = self.value(Kind::Float, below);
                format!("([{float} truncated] on: Error do: [0])")
            }
            41 => {
                let (condition, value) = (self.boolean(below), self.integer(below));
                let branch = self.block(below);
                format!("(({condition} ifTrue: [{branch}] ifFalse: [[:y | y]]) value: {value})")
            }
            42 => {
                let (first, second) = (self.integer(below), self.integer(below));
                let body = self.body_between("Count := z - y. ", below, 1, Last::Integer);
                format!("([:y :z | {body}] value: {first} value: {second})")
            }
            43 => self.risk(below),
            _ => self.unwound(below),
        }
    }

    /// A send to a program-defined object.
    fn send(&mut self, depth: usize) -> String {
        if self.index == 0 {
            return self.integer(depth);
        }
        let index = self.below(self.index);
        let (object, value) = (self.object(depth), self.integer(depth));
        if index % 2 == 1 {
            let block = self.block(depth);
            return match self.below(5) {
                4 => format!("({object} perform: #m{index}:with: with: {value} with: {block})"),
                _ => format!("({object} m{index}: {value} with: {block})"),
            };
        }
        match self.below(5) {
            4 => format!("({object} perform: #m{index}: with: {value})"),
            3 => format!("({object} m0: {value}; m{index}: {})", self.integer(depth)),
            _ => format!("({object} m{index}: {value})"),
        }
    }

    /// The `ifNil:` family.
    fn nil_test(&mut self, depth: usize) -> String {
        let name = self.name("it");
        let (tested, kind) = match self.below(3) {
            0 => (self.integer(depth), Kind::Integer),
            1 => ("peer".to_owned(), Kind::Object),
            _ => (self.object(depth), Kind::Object),
        };
        let no = self.body(depth, 1, true);
        self.declare(&name, kind, false);
        let yes = self.body(depth, 1, true);
        self.variables.pop();
        match self.below(4) {
            0 => format!("({tested} ifNil: [{no}] ifNotNil: [:{name} | {yes}])"),
            1 => format!("({tested} ifNotNil: [:{name} | {yes}] ifNil: [{no}])"),
            2 => format!("(({tested} ifNotNil: [:{name} | {yes}]) ifNil: [{no}])"),
            _ => {
                let yes = self.inlined_or_not(&format!(":{name} | {yes}"));
                let no = self.inlined_or_not(&no);
                format!("({tested} ifNil: {no} ifNotNil: {yes})")
            }
        }
    }

    /// Unwind blocks that raise exceptions while a handler leaves its `on:do:`.
    fn unwound(&mut self, depth: usize) -> String {
        let below = depth.saturating_sub(1);
        let own = format!("{}E", self.prefix);
        let (body, risk) = (self.body(below, 1, false), self.risk(below));
        let (unwind, another) = (self.body(below, 1, false), self.risk(below));
        let selector = self.one_of(&["ensure:", "ifCurtailed:"]);
        let class = self.one_of(&["Error", "Exception", own.as_str(), "ZeroDivide"]);
        let value = self.integer(below);
        let end = match self.below(5) {
            0 => value,
            1 | 2 => format!("error return: {value}"),
            3 => format!("error retryUsing: [{value}]"),
            _ => format!("^{value}"),
        };
        format!(
            "([[[[{body}] value. {risk}] {selector} [[{unwind}] value. {another}]] \
             on: {class} do: [:error | {end}]] \
             on: Error do: [:error | error messageText size])"
        )
    }

    /// `on:do:`.
    fn caught(&mut self, depth: usize) -> String {
        let below = depth.saturating_sub(1);
        let prefix = self.prefix.clone();
        let own = format!("{prefix}E");
        let classes = [
            "Error",
            own.as_str(),
            "ZeroDivide",
            "Exception",
            "Notification",
            "MessageNotUnderstood",
            "NonBooleanReceiver",
            "Warning",
            "SubscriptOutOfBounds",
        ];
        let class = self.one_of(&classes);
        let tries = self.name("tries");
        let body = self.body(depth, 1, false);
        let risk = self.risk(depth);
        let actions = self.body(below, 1, false);
        let value = self.integer(below);
        let end = match self.below(14) {
            0 | 1 => value,
            2 | 3 => format!("error return: {value}"),
            4 => format!("{tries} < 3 ifTrue: [error retry]. {value}"),
            5 => format!("error retryUsing: [{}]", self.body(below, 1, true)),
            6 => "error pass".to_owned(),
            7 => format!("error resume: {value}"),
            8 => "error messageText size".to_owned(),
            9 => format!("^{value}"),
            10 => format!("{tries} < 3 ifTrue: [error signal]. {value}"),
            11 | 12 => format!("error resume: {}", self.boolean(below)),
            _ => format!("Transcript showln: error description. {value}"),
        };
        format!(
            "([| {tries} | {tries} := 0. [{tries} := {tries} + 1. [{body}] value. {risk}] \
             on: {class} do: [:error | [{actions}] value. {end}]] value)"
        )
    }

    /// An expression that raises or may raise an exception.
    fn risk(&mut self, depth: usize) -> String {
        let prefix = self.prefix.clone();
        let value = self.integer(depth);
        match self.below(13) {
            0 => format!("({prefix}E signal: 'own')"),
            1 => format!("({prefix}E new signal: {value} printString)"),
            2 => "Error signal".to_owned(),
            3 => format!("((Notification signal: 'note') ifNil: [{value}])"),
            4 => format!("((Warning signal: 'warning') ifNil: [{value}])"),
            5 => format!("({value} // 0)"),
            6 => "nil zork".to_owned(),
            7 => format!("(self zork: {value})"),
            8 => format!("({value} + peer)"),
            9 => {
                // The inner handler's value decides the branch, not the integer.
                let long = "f16 := f16 - 1. ".repeat(50 * self.below(2));
                let yes = self.body_between(&long, depth, 2, Last::Integer);
                let no = self.body(depth, 2, true);
                let decides = self.one_of(&["true", "false"]);
                let test = format!("{value} ifTrue: [{yes}] ifFalse: [{no}]");
                format!("([{test}] on: NonBooleanReceiver do: [:error | error resume: {decides}])")
            }
            11 => format!("({value} ifTrue: [1] ifFalse: [2])"),
            10 => format!("(items at: {value})"),
            _ => format!("([:y | {value}] value: 1)"),
        }
    }
}
