//! Random terminating programs.
//!
//! Random numbers determine a program. Each first-level statement has one chunk of numbers. Every
//! choice consumes the chunk's next number, or 0 after its end. Hence any list of numbers forms a
//! program; fewer or smaller numbers form a simpler program. Failing programs shrink in this way.
//!
//! Programs terminate: methods send only lower selectors, blocks see only blocks declared earlier,
//! and loops are short.

mod integers;
mod statements;
mod values;

use std::fmt::Write;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};

type Chunk = Vec<u16>;

/// Numbers that determine a program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Class, selector and statements of methods.
    methods: Vec<(usize, usize, Vec<Chunk>)>,
    main: Vec<Chunk>,
}

/// Selectors `m0:`, `m1:with:`, `m2:` …: odd selectors also take a block. `main:` ranks above all
/// selectors.
const SELECTORS: usize = 8;
/// A, its subclass B, and B's subclass C.
const CLASSES: [&str; 3] = ["A", "B", "C"];
/// Number of A's integer instance variables. High indices need long bytecodes.
const FIELDS: usize = 18;

/// All programs.
pub fn programs() -> impl Strategy<Value = Program> {
    let chunk = || vec(any::<u16>(), 0..200);
    let method = (0..CLASSES.len(), 0..SELECTORS, vec(chunk(), 1..5));
    let parts = (vec(method, 0..16), vec(chunk(), 1..10));
    parts.prop_map(|(methods, main)| Program { methods, main })
}

impl Program {
    /// Source text. `number` makes class names unique.
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
        // `trace:` prints the state. `trace:` also sends every selector: `main:` may have skipped
        // some selectors.
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

/// Class definitions with the shared methods of all programs.
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

/// Kind of an expression's answer.
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

/// Ending of a body.
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

impl Writer {
    /// A number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        let choice = self.choices.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        usize::from(choice) % limit
    }

    /// A literal block, or a block expression that prevents inlining.
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

    /// Text of a block's body, without brackets and arguments. `answers`: the last statement
    /// answers an integer.
    fn body(&mut self, depth: usize, most: usize, answers: bool) -> String {
        let last = if answers { Last::Integer } else { Last::Any };
        self.body_between("", depth, most, last)
    }

    /// A body that begins with the statements `first`.
    fn body_between(&mut self, first: &str, depth: usize, most: usize, last: Last) -> String {
        let outer = self.variables.len();
        let mut temps = Vec::new();
        let mut text = first.to_owned();
        if self.below(25) == 24 {
            // Long enough that jumps over the body need an extension.
            text += &"f17 := f17 + 1. ".repeat(50);
        }
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

    /// A one-argument block from integer to integer.
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

    /// A one-argument block that answers a Boolean.
    fn test(&mut self, depth: usize) -> String {
        let argument = self.name("x");
        self.declare(&argument, Kind::Integer, false);
        let body = self.boolean(depth.saturating_sub(1));
        self.variables.pop();
        format!("[:{argument} | {body}]")
    }
}
