//! What `javap -c -p -v` says of classes, in the words that listings use.

use std::collections::HashMap;

use vmscope_hotspot::method::{class_name, readable_signature};

/// A method as `javap` shows it.
#[derive(Debug, Default)]
pub struct Method {
    /// Bytecode and text of each instruction.
    pub code: Vec<(u32, String)>,
    /// (bytecode, line), as they come.
    pub lines: Vec<(u32, u32)>,
}

/// By class (as the VM writes it), name and descriptor.
pub type Methods = HashMap<(String, String, String), Method>;

type Pool = HashMap<u32, (String, String)>;

/// What is being read.
enum Part {
    Head,
    Code,
    Lines,
    Other,
}

pub fn parse(text: &str) -> Methods {
    let mut methods = Methods::new();
    let (mut class, mut pool, mut name) = (String::new(), Pool::new(), String::new());
    let mut key = None;
    let mut part = Part::Head;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if line.starts_with("Classfile ") {
            (pool, key, part) = (Pool::new(), None, Part::Head);
        } else if let Some(this) = trimmed.strip_prefix("this_class: ") {
            class = this
                .split("// ")
                .nth(1)
                .unwrap()
                .trim_matches('"')
                .to_owned();
        } else if let Some((index, kind, value)) = pool_entry(line) {
            pool.insert(index, (kind, value));
        } else if line.starts_with("  ") && !line.starts_with("   ") && line.ends_with(';') {
            // A member: `public int size();`, `static {};`, `Main(int) throws X;`.
            name = member_name(trimmed, &class);
            (key, part) = (None, Part::Head);
        } else if let Some(descriptor) = trimmed.strip_prefix("descriptor: ") {
            let descriptor = descriptor.to_owned();
            key = Some((class.clone(), name.clone(), descriptor));
        } else if trimmed == "Code:" {
            part = Part::Code;
            methods.insert(key.clone().unwrap(), Method::default());
        } else if trimmed == "LineNumberTable:" {
            part = Part::Lines;
        } else if trimmed.ends_with(':') && !trimmed.starts_with(|c: char| c.is_ascii_digit()) {
            part = Part::Other;
        } else if let Some(key) = &key
            && let Some(method) = methods.get_mut(key)
        {
            match part {
                Part::Lines => match trimmed.strip_prefix("line ") {
                    Some(entry) => {
                        let (line, bci) = entry.split_once(": ").unwrap();
                        method
                            .lines
                            .push((bci.parse().unwrap(), line.parse().unwrap()));
                    }
                    None => part = Part::Other,
                },
                Part::Code => {
                    if let Some((bci, rest)) = trimmed.split_once(": ")
                        && let Ok(bci) = bci.parse()
                    {
                        let text = instruction(rest, &pool, &mut lines);
                        method.code.push((bci, text));
                    }
                }
                Part::Head | Part::Other => {}
            }
        }
    }
    methods
}

fn member_name(line: &str, class: &str) -> String {
    let Some((before, _)) = line.split_once('(') else {
        return if line == "static {};" { "<clinit>" } else { "" }.to_owned();
    };
    let name = before.rsplit(' ').next().unwrap();
    if name == class.replace('/', ".") {
        "<init>"
    } else {
        name
    }
    .to_owned()
}

/// `   #7 = String             #8           // text`.
fn pool_entry(line: &str) -> Option<(u32, String, String)> {
    let (index, rest) = line.trim_start().strip_prefix('#')?.split_once(" = ")?;
    let (kind, value) = rest.split_once(' ').unwrap_or((rest, ""));
    let value = if kind == "Utf8" {
        // Fixed columns: leading spaces belong to the text.
        unescaped(rest.get(19..).unwrap_or(""))
    } else {
        value.split("//").next()?.trim().to_owned()
    };
    Some((index.parse().ok()?, kind.to_owned(), value))
}

fn unescaped(text: &str) -> String {
    let mut units = Vec::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let character = match (character, character == '\\') {
            (_, true) => match characters.next().unwrap() {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' => {
                    let digits: String = characters.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&digits, 16).unwrap());
                    continue;
                }
                other => other,
            },
            (plain, false) => plain,
        };
        units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16_lossy(&units)
}

fn instruction<'a>(text: &str, pool: &Pool, lines: &mut impl Iterator<Item = &'a str>) -> String {
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    let operands = rest.split("// ").next().unwrap().trim();
    if name == "tableswitch" || name == "lookupswitch" {
        return switch(name, lines);
    }
    let shown = match operands.strip_prefix('#') {
        None => operands.replace(",  ", ", "),
        Some(rest) => {
            let (index, more) = rest.split_once(',').unwrap_or((rest, ""));
            let constant = constant(pool, index.trim().parse().unwrap());
            match name {
                "multianewarray" => format!("{constant}, {}", more.trim()),
                _ => constant,
            }
        }
    };
    format!("{name} {shown}").trim_end().to_owned()
}

/// All cases; listings show a limited number.
fn switch<'a>(name: &str, lines: &mut impl Iterator<Item = &'a str>) -> String {
    let (mut cases, mut default) = (Vec::new(), String::new());
    for line in lines {
        match line.trim().split_once(": ") {
            Some(("default", target)) => default = target.trim().to_owned(),
            Some((number, target)) => cases.push((number.trim(), target.trim())),
            None => break,
        }
    }
    let all = cases.len();
    let range = match (name, cases.first(), cases.last()) {
        ("tableswitch", Some(first), Some(last)) => format!(" {}..{}:", first.0, last.0),
        _ => String::new(),
    };
    let mut text = format!("{name}{range}");
    for (number, target) in cases.into_iter().take(16) {
        match name {
            "tableswitch" => text += &format!(" {target},"),
            _ => text += &format!(" {number}: {target},"),
        }
    }
    if all > 16 {
        text += &format!(" … {} more,", all - 16);
    }
    format!("{text} default: {default}")
}

fn constant(pool: &Pool, index: u32) -> String {
    let (kind, value) = &pool[&index];
    let utf8 = |index: u32| pool[&index].1.as_str();
    let two = |value: &str, between: char| {
        let (first, second) = value.split_once(between).unwrap();
        let number = |text: &str| -> u32 {
            text.trim_start_matches('#')
                .parse()
                .unwrap_or_else(|_| panic!("{kind} {value}"))
        };
        (number(first), number(second))
    };
    let one = |value: &str| value.trim_start_matches('#').parse::<u32>().unwrap();
    let class = |index: u32| array_or_class(utf8(one(&pool[&index].1)));
    let named = |index: u32| {
        let (name, descriptor) = two(&pool[&index].1, ':');
        let parameters = match utf8(descriptor) {
            method if method.starts_with('(') => readable_signature(method),
            _ => String::new(),
        };
        format!("{}{parameters}", utf8(name))
    };
    match kind.as_str() {
        "Integer" => value.clone(),
        "Long" => format!("{}L", value.trim_end_matches('l')),
        "Float" => {
            let value: f32 = value.trim_end_matches('f').parse().unwrap();
            format!("{value:?}f").replace("inf", "Infinity")
        }
        "Double" => {
            let value: f64 = value.trim_end_matches('d').parse().unwrap();
            format!("{value:?}").replace("inf", "Infinity")
        }
        "String" => quoted(utf8(one(value))),
        "Class" => class(index),
        "Fieldref" | "Methodref" | "InterfaceMethodref" => {
            let (holder, both) = two(value, '.');
            format!("{}.{}", class(holder), named(both))
        }
        "InvokeDynamic" => named(two(value, ':').1),
        "Dynamic" => {
            let name = named(two(value, ':').1);
            format!("dynamic {name}")
        }
        "MethodType" => format!("method type {}", readable_signature(utf8(one(value)))),
        "MethodHandle" => {
            let (_, member) = value.split_once(':').unwrap();
            format!("method handle {}", constant(pool, one(member)))
        }
        _ => format!("{kind} {value}"),
    }
}

fn array_or_class(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    if dimensions == 0 {
        return class_name(name);
    }
    // `readable_signature` leaves out the package.
    let simple = readable_signature(&format!("({element})V"));
    let simple = simple.trim_matches(['(', ')']);
    let class = element
        .strip_prefix('L')
        .map(|class| class.trim_end_matches(';'));
    class.map_or(simple.to_owned(), class_name) + &"[]".repeat(dimensions)
}

fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(60).collect();
    let shown = shown
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
        .replace('\r', "\\r")
        .replace('\t', "\\t");
    let escape = |c: char| match c {
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    let shown: String = shown.chars().map(escape).collect();
    let more = if text.chars().count() > 60 { "…" } else { "" };
    format!("\"{shown}{more}\"")
}
