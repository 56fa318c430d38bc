//! Statements.

use super::{Kind, Last, Writer};

impl Writer {
    pub(super) fn statement(&mut self, depth: usize, temps: &mut Vec<String>) -> String {
        let below = depth.saturating_sub(1);
        if depth == 0 {
            let value = self.integer(0);
            return format!("Transcript showln: {value} printString");
        }
        match self.below(24) {
            0..=2 => {
                let value = self.integer(depth);
                format!("Transcript showln: {value} printString")
            }
            3 => {
                let kinds = [
                    Kind::Boolean,
                    Kind::Float,
                    Kind::Text,
                    Kind::Array,
                    Kind::Object,
                ];
                let kind = kinds[self.below(kinds.len())];
                let value = self.value(kind, depth);
                format!("Transcript showln: {value} printString")
            }
            4 | 5 => match self.variable(Kind::Integer, true) {
                Some(name) => format!("{name} := {}", self.integer(depth)),
                None => self.integer(depth),
            },
            6 | 7 => {
                let value = self.integer(depth);
                let name = self.name("t");
                temps.push(name.clone());
                self.declare(&name, Kind::Integer, true);
                match self.below(4) {
                    3 => format!("Transcript showln: {name} printString. {name} := {value}"),
                    _ => format!("{name} := {value}"),
                }
            }
            8 => {
                let kinds = [
                    Kind::Array,
                    Kind::Object,
                    Kind::Text,
                    Kind::Float,
                    Kind::Boolean,
                ];
                let kind = kinds[self.below(kinds.len())];
                let value = self.value(kind, depth);
                let name = self.name("t");
                temps.push(name.clone());
                self.declare(&name, kind, true);
                format!("{name} := {value}")
            }
            9 | 10 => {
                let value = self.block(depth);
                let name = self.name("b");
                temps.push(name.clone());
                self.declare(&name, Kind::Block, false);
                format!("{name} := {value}")
            }
            11 => {
                let condition = self.boolean(below);
                let selector = self.one_of(&["ifTrue:", "ifFalse:"]);
                let body = self.body(below, 2, false);
                format!("{condition} {selector} {}", self.inlined_or_not(&body))
            }
            12 => {
                let condition = self.boolean(below);
                let (yes, no) = (self.body(below, 2, false), self.body(below, 2, false));
                let selectors = [("ifTrue:", "ifFalse:"), ("ifFalse:", "ifTrue:")];
                let (first, second) = selectors[self.below(2)];
                let (yes, no) = (self.inlined_or_not(&yes), self.inlined_or_not(&no));
                format!("{condition} {first} {yes} {second} {no}")
            }
            13 | 14 => self.counting(below),
            15 => {
                let count = match self.below(5) {
                    4 => "(Count bitAnd: 3)".to_owned(),
                    count => count.to_string(),
                };
                let body = self.body(below, 2, false);
                format!("{count} timesRepeat: {}", self.inlined_or_not(&body))
            }
            16 | 17 => {
                let name = self.name("c");
                temps.push(name.clone());
                self.declare(&name, Kind::Integer, false);
                let limit = self.below(4);
                let next = format!("{name} := {name} + 1");
                let next = format!("{next}. ");
                let text = match self.below(4) {
                    0 => {
                        let body = self.body(below, 2, false);
                        format!("[({name} := {name} + 1) > {limit}] whileFalse: [{body}]")
                    }
                    form @ (1 | 2) => {
                        let (operator, selector) =
                            [("<", "whileTrue"), (">", "whileFalse")][form - 1];
                        let last = format!("{name} {operator} {limit}");
                        let condition = self.body_between(&next, below, 2, Last::Text(&last));
                        format!("[{condition}] {selector}")
                    }
                    _ => {
                        let body = self.body_between(&next, below, 2, Last::Any);
                        let body = self.inlined_or_not(&body);
                        format!("[{name} < {limit}] whileTrue: {body}")
                    }
                };
                format!("{name} := 0. {text}")
            }
            18 => {
                let array = self.value(Kind::Array, below);
                let (index, value) = (self.integer(1), self.integer(below));
                format!("{array} at: {index} \\\\ 4 + 1 put: {value}")
            }
            19 => {
                let array = self.value(Kind::Array, below);
                let selector = self.one_of(&["do:", "reverseDo:", "collect:"]);
                format!("{array} {selector} {}", self.block(below))
            }
            22 | 23 => {
                let blocks = self.name("blocks");
                temps.push(blocks.clone());
                format!(
                    "{blocks} := Array new: 3. {}",
                    self.blocks_of_a_loop(&blocks, below)
                )
            }
            20 => {
                let (object, other) = (self.object(below), self.object(below));
                format!("{object} peer: {other}")
            }
            _ => {
                let body = self.body(below, 2, false);
                let unwind = self.body(below, 2, false);
                let selector = self.one_of(&["ensure:", "ifCurtailed:"]);
                format!("[{body}] {selector} [{unwind}]")
            }
        }
    }

    /// A loop with a counter. The loop answers its first value.
    pub(super) fn counting(&mut self, depth: usize) -> String {
        let counter = self.name("i");
        self.declare(&counter, Kind::Integer, false);
        let body = self.body(depth, 2, false);
        self.variables.pop();
        let limit = self.below(4);
        let body = self.inlined_or_not(&format!(":{counter} | {body}"));
        match self.below(5) {
            0 | 1 => format!("1 to: {limit} do: {body}"),
            2 => format!("{limit} to: 1 by: -1 do: {body}"),
            3 => {
                let start = "1152921504606846974";
                format!("{start} to: {start} + {limit} do: {body}")
            }
            _ => format!("0 to: (Count bitAnd: 3) by: 2 do: {body}"),
        }
    }

    /// A loop that creates blocks. The blocks run after the loop: each block sees its own
    /// iteration's variables.
    fn blocks_of_a_loop(&mut self, blocks: &str, depth: usize) -> String {
        let outer = self.variables.len();
        let (counter, temp) = (self.name("i"), self.name("u"));
        let value = self.integer(depth);
        self.declare(&counter, Kind::Integer, false);
        self.declare(&temp, Kind::Integer, true);
        let block = self.block(depth);
        let after = self.body(depth, 1, false);
        self.variables.truncate(outer);
        let argument = self.integer(1);
        let body = format!(
            "Transcript showln: {temp} printString. {temp} := {value}. \
             {blocks} at: {counter} put: {block}. [{after}] value. {temp} := {temp} + {counter}"
        );
        let text = match self.below(3) {
            0 => {
                let body = self.inlined_or_not(&format!(":{counter} | | {temp} | {body}"));
                format!("1 to: 3 do: {body}")
            }
            1 => format!(
                "Count := 0. [Count < 3] whileTrue: [| {counter} {temp} | \
                 Count := Count + 1 max: 1. {counter} := Count. {body}]"
            ),
            _ => format!(
                "Count := 0. [| {counter} {temp} | \
                 {counter} := (Count bitAnd: 3) + 1 min: 3. {body}. Count := {counter}. Count < 3] whileTrue"
            ),
        };
        format!(
            "{text}. {blocks} do: [:each | Transcript showln: (each value: {argument}) printString]"
        )
    }
}
