//! Random programs that end.
//!
//! A program is made of random numbers, a chunk for each statement of the first level: every choice takes the next number
//! of the chunk, and 0 where there is none. So each list of numbers is a program, and fewer or smaller numbers
//! make a simpler one: that is how a failing program shrinks.
//!
//! Programs end, because methods send only the selectors below their own, blocks see only the blocks declared before them,
//! and loops are short.

use std::fmt::Write;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};

type Chunk = Vec<u16>;

/// The numbers that make a program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Class, selector and statements of methods.
    methods: Vec<(usize, usize, Vec<Chunk>)>,
    main: Vec<Chunk>,
}

/// Selectors `m0:`, `m1:with:`, `m2:` …: those with an odd number take a block, too. `main:` is one above.
const SELECTORS: usize = 8;
/// A, its subclass B, and B's subclass C.
const CLASSES: [&str; 3] = ["A", "B", "C"];
/// Instance variables of A that hold integers: some are beyond the short bytecodes.
const FIELDS: usize = 18;

/// All programs.
pub fn programs() -> impl Strategy<Value = Program> {
    let chunk = || vec(any::<u16>(), 0..200);
    let method = (0..CLASSES.len(), 0..SELECTORS, vec(chunk(), 1..5));
    let parts = (vec(method, 0..16), vec(chunk(), 1..10));
    parts.prop_map(|(methods, main)| Program { methods, main })
}

impl Program {
    /// The source text. `number` makes the names of its classes unique.
    pub fn source(&self, number: usize) -> String {
        let prefix = format!("P{number}");
        let mut text = definitions(&prefix);
        for index in 0..SELECTORS {
            for (class, name) in CLASSES.iter().enumerate() {
                let mut given = self.methods.iter();
                let body = match given.find(|given| (given.0, given.1) == (class, index)) {
                    Some((_, _, chunks)) => method(&prefix, class, index, chunks),
                    None if class == 0 => format!("\t^n + {index}"),
                    None => continue,
                };
                let pattern = match index % 2 {
                    0 => format!("m{index}: n"),
                    _ => format!("m{index}: n with: aBlock"),
                };
                let _ = writeln!(
                    text,
                    "!{prefix}{name} methodsFor: 'generated'!\n{pattern}\n{body}! !\n"
                );
            }
        }
        let main = method(&prefix, 2, SELECTORS, &self.main);
        let _ = writeln!(
            text,
            "!{prefix}C methodsFor: 'generated'!\nmain: n\n{main}! !\n"
        );
        // What is left, and whatever main: has not sent.
        let _ = writeln!(
            text,
            "!{prefix}A methodsFor: 'end'!\ntrace: n\n\tTranscript showln: {{"
        );
        for index in 0..FIELDS {
            let _ = write!(text, "f{index}. ");
        }
        let _ = writeln!(text, "items. Items. Count}} printString.");
        for index in 0..SELECTORS {
            let message = match index % 2 {
                0 => format!("m{index}: n"),
                _ => format!("m{index}: n with: [:x | x > 8 ifTrue: [^x]. f9 := x + 1]"),
            };
            let _ = writeln!(
                text,
                "\t[Transcript showln: (self {message}) printString]\n\
                 \t\ton: Error do: [:error | Transcript showln: error description]."
            );
        }
        let _ = writeln!(
            text,
            "\tTranscript showln: {{f0. f9. items. Items. Count}} printString! !\n"
        );
        let _ = writeln!(
            text,
            "{prefix}A reset.\n\
             [Transcript showln: ({prefix}C new main: 3) printString]\n\
             \ton: Error do: [:error | Transcript showln: error description].\n\
             [{prefix}C new trace: 3. {prefix}B new trace: 7. {prefix}A new trace: -2]\n\
             \ton: Exception do: [:error | Transcript showln: error description]!"
        );
        text
    }
}

/// The classes, with the methods that all programs share.
fn definitions(prefix: &str) -> String {
    let fields: Vec<String> = (0..FIELDS).map(|index| format!("f{index}")).collect();
    let initial: Vec<String> = (0..FIELDS)
        .map(|index| format!("f{index} := {index}. "))
        .collect();
    format!(
        "Error subclass: #{prefix}E instanceVariableNames: '' classVariableNames: '' package: 'x'!\n\
         Object subclass: #{prefix}A instanceVariableNames: 'items peer {}' classVariableNames: 'Count Items' package: 'x'!\n\
         {prefix}A subclass: #{prefix}B instanceVariableNames: 'own' classVariableNames: '' package: 'x'!\n\
         {prefix}B subclass: #{prefix}C instanceVariableNames: '' classVariableNames: '' package: 'x'!\n\n\
         !{prefix}A class methodsFor: 'shared'!\n\
         reset\n\tCount := 0.\n\tItems := Array new: 4 withAll: 1! !\n\n\
         !{prefix}A methodsFor: 'shared'!\n\
         initialize\n\titems := Array new: 5 withAll: 2.\n\t{}\n\tCount := Count + 1!\n\n\
         peer: anObject\n\tpeer := anObject!\n\n\
         nest: n do: aBlock\n\t^n <= 0 ifTrue: [aBlock value] ifFalse: [self nest: n - 1 do: aBlock]!\n\n\
         guard: n do: aBlock\n\
         \t^n <= 0 ifTrue: [aBlock value] ifFalse: [[self guard: n - 1 do: aBlock] ensure: [f1 := f1 + n]]!\n\n\
         curtail: n do: aBlock\n\
         \t| value |\n\tvalue := 7.\n\
         \t^[value := n. aBlock value] ifCurtailed: [Count := Count + value]!\n\n\
         find: aBlock in: anArray\n\
         \tanArray do: [:each | (aBlock value: each) > n0 ifTrue: [^each]].\n\t^0!\n\n\
         escape\n\t^[:x | ^x + f0]! !\n\n\
         !{prefix}B methodsFor: 'shared'!\n\
         initialize\n\tsuper initialize.\n\town := 40!\n\n\
         nest: n do: aBlock\n\t^(super nest: n do: [f2 := f2 + 1. aBlock value]) + own! !\n\n",
        fields.join(" "),
        initial.concat(),
    )
    .replace("> n0", "> f3")
}

fn method(prefix: &str, class: usize, index: usize, chunks: &[Chunk]) -> String {
    let mut writer = Writer {
        prefix: prefix.to_owned(),
        class,
        index,
        choices: Vec::new(),
        next: 0,
        variables: Vec::new(),
        names: 0,
    };
    writer.declare("n", Kind::Integer, false);
    if index % 2 == 1 {
        writer.declare("aBlock", Kind::Block, false);
    }
    let fields = (0..FIELDS).map(|index| format!("f{index}"));
    for name in fields.chain(["Count".to_owned()]) {
        writer.declare(&name, Kind::Integer, true);
    }
    if class > 0 {
        writer.declare("own", Kind::Integer, true);
    }
    writer.declare("items", Kind::Array, true);
    writer.declare("Items", Kind::Array, true);
    let mut temps = Vec::new();
    let mut lines = String::new();
    for chunk in chunks {
        writer.choices.clone_from(chunk);
        writer.next = 0;
        let guarded = index == SELECTORS && writer.below(3) > 0;
        let statement = match guarded {
            true => {
                let body = writer.body(5, 4, false);
                format!("[{body}] on: Error do: [:error | Transcript showln: error description]")
            }
            false => writer.statement(5, &mut temps),
        };
        let _ = writeln!(lines, "\t{statement}.");
    }
    let result = writer.integer(3);
    format!("\t| {} |\n{lines}\t^{result}", temps.join(" "))
}

/// What an expression answers.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Integer,
    Boolean,
    Float,
    Text,
    /// Of integers.
    Array,
    /// An instance of the program's classes.
    Object,
    /// From an integer to an integer.
    Block,
}

/// How a body ends.
enum Last<'t> {
    /// With an integer, or a return.
    Integer,
    /// With anything.
    Any,
    /// With this.
    Text(&'t str),
}

struct Variable {
    name: String,
    kind: Kind,
    assignable: bool,
}

/// Writes a method.
struct Writer {
    prefix: String,
    class: usize,
    /// The method's number: it sends only lower ones.
    index: usize,
    choices: Chunk,
    next: usize,
    /// Innermost last.
    variables: Vec<Variable>,
    names: usize,
}

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
    /// A number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        let choice = self.choices.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        usize::from(choice) % limit
    }

    /// A literal block, or one that the compiler cannot inline.
    fn inlined_or_not(&mut self, body: &str) -> String {
        match self.below(5) {
            4 => format!("[{body}] yourself"),
            _ => format!("[{body}]"),
        }
    }

    fn one_of<'s>(&mut self, texts: &[&'s str]) -> &'s str {
        texts[self.below(texts.len())]
    }

    fn declare(&mut self, name: &str, kind: Kind, assignable: bool) {
        self.variables.push(Variable {
            name: name.to_owned(),
            kind,
            assignable,
        });
    }

    fn name(&mut self, start: &str) -> String {
        self.names += 1;
        format!("{start}{}", self.names)
    }

    /// A variable; the innermost are more likely.
    fn variable(&mut self, kind: Kind, to_assign: bool) -> Option<String> {
        let fits =
            |variable: &&Variable| variable.kind == kind && (variable.assignable || !to_assign);
        let names: Vec<String> = (self.variables.iter().rev().filter(fits))
            .map(|variable| variable.name.clone())
            .collect();
        if names.is_empty() {
            return None;
        }
        let recent = names.len().min(4);
        let choice = match self.below(3) {
            0 | 1 => self.below(recent),
            _ => self.below(names.len()),
        };
        Some(names[choice].clone())
    }

    /// A block's text between the brackets, after its arguments. Its last statement answers an integer, if `answers`.
    fn body(&mut self, depth: usize, most: usize, answers: bool) -> String {
        let last = if answers { Last::Integer } else { Last::Any };
        self.body_between("", depth, most, last)
    }

    /// A body that begins with certain statements.
    fn body_between(&mut self, first: &str, depth: usize, most: usize, last: Last) -> String {
        let outer = self.variables.len();
        let mut temps = Vec::new();
        let mut text = first.to_owned();
        let count = self.below(most + 1);
        for _ in 0..count {
            let statement = self.statement(depth.saturating_sub(1), &mut temps);
            let _ = write!(text, "{statement}. ");
        }
        match (last, self.below(12)) {
            (Last::Text(last), _) => text += last,
            (_, 11) => {
                let value = self.integer(depth.saturating_sub(1));
                let _ = write!(text, "^{value}");
            }
            (Last::Any, _) if count > 0 => {}
            _ => text += &self.integer(depth.saturating_sub(1)),
        }
        self.variables.truncate(outer);
        match temps.is_empty() {
            true => text,
            false => format!("| {} | {text}", temps.join(" ")),
        }
    }

    /// A block of one argument, from an integer to an integer.
    fn block(&mut self, depth: usize) -> String {
        if self.below(4) == 3
            && let Some(name) = self.variable(Kind::Block, false)
        {
            return name;
        }
        let argument = self.name("x");
        self.declare(&argument, Kind::Integer, false);
        let body = self.body(depth, 2, true);
        self.variables.pop();
        format!("[:{argument} | {body}]")
    }

    /// A block of one argument that answers a boolean.
    fn test(&mut self, depth: usize) -> String {
        let argument = self.name("x");
        self.declare(&argument, Kind::Integer, false);
        let body = self.boolean(depth.saturating_sub(1));
        self.variables.pop();
        format!("[:{argument} | {body}]")
    }

    fn statement(&mut self, depth: usize, temps: &mut Vec<String>) -> String {
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
                let count = self.below(4);
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

    /// A loop with a counter. It answers its first value.
    fn counting(&mut self, depth: usize) -> String {
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

    /// A loop that makes blocks, which run when it is over: each has the variables of its own iteration.
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

    fn value(&mut self, kind: Kind, depth: usize) -> String {
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

    fn integer(&mut self, depth: usize) -> String {
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
            26 => {
                let (object, no) = (self.object(below), self.integer(below));
                let yes = self.body(below, 1, true);
                match self.below(3) {
                    0 => format!("({object} ifNil: [{no}] ifNotNil: [:object | {yes}])"),
                    1 => format!("(peer ifNotNil: [{yes}] ifNil: [{no}])"),
                    _ => format!("((peer ifNotNil: [:object | {yes}]) ifNil: [{no}])"),
                }
            }
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

    /// Unwind blocks that raise exceptions themselves, while a handler leaves its `on:do:`.
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

    /// A send to an object of the program.
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
        let end = match self.below(12) {
            0 | 1 => value,
            2 | 3 => format!("error return: {value}"),
            4 => format!("{tries} < 3 ifTrue: [error retry]. {value}"),
            5 => format!("error retryUsing: [{}]", self.body(below, 1, true)),
            6 => "error pass".to_owned(),
            7 => format!("error resume: {value}"),
            8 => "error messageText size".to_owned(),
            9 => format!("^{value}"),
            10 => format!("{tries} < 3 ifTrue: [error signal]. {value}"),
            _ => format!("Transcript showln: error description. {value}"),
        };
        format!(
            "([| {tries} | {tries} := 0. [{tries} := {tries} + 1. [{body}] value. {risk}] \
             on: {class} do: [:error | [{actions}] value. {end}]] value)"
        )
    }

    /// Something that raises an exception, or may.
    fn risk(&mut self, depth: usize) -> String {
        let prefix = self.prefix.clone();
        let value = self.integer(depth);
        match self.below(12) {
            0 => format!("({prefix}E signal: 'own')"),
            1 => format!("({prefix}E new signal: {value} printString)"),
            2 => "Error signal".to_owned(),
            3 => format!("((Notification signal: 'note') ifNil: [{value}])"),
            4 => format!("((Warning signal: 'warning') ifNil: [{value}])"),
            5 => format!("({value} // 0)"),
            6 => "nil zork".to_owned(),
            7 => format!("(self zork: {value})"),
            8 => format!("({value} + peer)"),
            9 => format!("({value} ifTrue: [1] ifFalse: [2])"),
            10 => format!("(items at: {value})"),
            _ => format!("([:y | {value}] value: 1)"),
        }
    }

    fn boolean(&mut self, depth: usize) -> String {
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

    fn float(&mut self, depth: usize) -> String {
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

    fn text(&mut self, depth: usize) -> String {
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

    fn array(&mut self, depth: usize) -> String {
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

    fn object(&mut self, depth: usize) -> String {
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
