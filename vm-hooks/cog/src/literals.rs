//! Literals of a method as text, in the notation of Smalltalk.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, known};
use vmscope_records::Avma;

use crate::bytecode_table::Of;
use crate::heap::{Contents, Immediate, Object, SPECIAL_SELECTORS};
use crate::names::{Names, literals};

/// Maximum number of characters shown of a string, and of bytes shown of other objects.
const MAX_SHOWN: usize = 64;

/// Maximum number of elements shown of an array, and of arrays around an element.
const MAX_ELEMENTS: u64 = 8;
const MAX_DEPTH: usize = 2;

/// Class indexes of boxed numbers. VMs have them in their code.
const LARGE_NEGATIVE: u32 = 32;
const LARGE_POSITIVE: u32 = 33;
const FLOAT: u32 = 34;

/// Names of `nil`, `false` and `true`, the first special objects.
const CONSTANTS: [&str; 3] = ["nil", "false", "true"];

/// Literals of one method.
#[derive(Debug)]
pub struct Literals<'n, 'm> {
    names: &'n mut Names<'m>,
    code: Object,
    count: u64,
    kept: FxHashMap<(Of, u64), Option<String>>,
    /// A final error: later reads fail, too.
    pub error: Option<AdapterError>,
}

impl<'n, 'm> Literals<'n, 'm> {
    /// Literals of `code` with this header.
    pub fn new(names: &'n mut Names<'m>, code: Object, header: i64) -> Self {
        Literals {
            names,
            code,
            count: literals(header),
            kept: FxHashMap::default(),
            error: None,
        }
    }

    /// Text of the literal or special selector at `index`; `None` if unreadable.
    pub fn text(&mut self, of: Of, index: u64) -> Option<String> {
        if let Some(text) = self.kept.get(&(of, index)) {
            return text.clone();
        }
        let text = known(self.read(of, index)).unwrap_or_else(|error| {
            self.error = Some(error);
            None
        });
        self.kept.insert((of, index), text.clone());
        text
    }

    fn read(&mut self, of: Of, index: u64) -> Result<String, AdapterError> {
        let heap = *self.names.heap();
        if of == Of::SpecialSelector {
            let selectors = heap.special(SPECIAL_SELECTORS)?;
            let oop = heap.slot(&selectors, index.saturating_mul(2))?;
            return self.names.selector(oop);
        }
        if index >= self.count {
            return Err(AdapterError::Implausible {
                what: "number of a literal",
                value: index,
                at: self.code.at,
            });
        }
        // The header is in front.
        let oop = heap.slot(&self.code, index + 1)?;
        match of {
            Of::Selector => self.names.selector(oop),
            Of::Variable => self.variable(oop),
            _ => self.constant(oop, 0),
        }
    }

    /// The name of a variable: its association's key.
    fn variable(&mut self, oop: Avma) -> Result<String, AdapterError> {
        let heap = *self.names.heap();
        let key = heap.at(&heap.object(oop)?, 0)?;
        self.names.text(&key)
    }

    fn constant(&mut self, oop: Avma, depth: usize) -> Result<String, AdapterError> {
        let heap = *self.names.heap();
        match heap.immediate(oop) {
            Some(Immediate::Integer(value)) => return Ok(value.to_string()),
            Some(Immediate::Character(value)) => return Ok(character(value)),
            Some(Immediate::Float(value)) => return Ok(format!("{value:?}")),
            None => {}
        }
        let object = heap.object(oop)?;
        for (index, name) in (0..).zip(CONSTANTS) {
            if heap.special(index)?.at == object.at {
                return Ok(name.to_owned());
            }
        }
        if self.names.is_symbol(&object) {
            return Ok(symbol(&self.names.text(&object)?));
        }
        match (object.class_index, object.contents()) {
            (_, Contents::Code) => return Ok("[]".to_owned()),
            (LARGE_NEGATIVE | LARGE_POSITIVE, Contents::Bytes) => {
                let (bytes, is_whole) = heap.first_bytes(&object, size_of::<u128>())?;
                if is_whole {
                    let value = bytes
                        .iter()
                        .rev()
                        .fold(0, |high: u128, byte| high << 8 | u128::from(*byte));
                    let sign = if object.class_index == LARGE_NEGATIVE {
                        "-"
                    } else {
                        ""
                    };
                    return Ok(format!("{sign}{value}"));
                }
            }
            (FLOAT, Contents::Other) => {
                let low = heap.slot(&object, 0)?.0;
                let bits = match heap.word() {
                    4 => low | heap.slot(&object, 1)?.0 << 32,
                    _ => low,
                };
                return Ok(format!("{:?}", f64::from_bits(bits)));
            }
            _ => {}
        }
        let class = self.names.class_at(object.class_index)?;
        match (class.as_str(), object.contents()) {
            ("ByteString" | "String", Contents::Bytes) => {
                let (bytes, is_whole) = heap.first_bytes(&object, MAX_SHOWN)?;
                Ok(string(&bytes, is_whole))
            }
            ("ByteArray", Contents::Bytes) => {
                let (bytes, is_whole) = heap.first_bytes(&object, MAX_ELEMENTS as usize)?;
                let bytes = bytes.iter().map(u8::to_string).collect();
                Ok(format!("#[{}]", elements(bytes, is_whole)))
            }
            ("Array", Contents::Pointers) if depth < MAX_DEPTH => {
                let mut shown = Vec::new();
                for index in 0..object.slots().min(MAX_ELEMENTS) {
                    let element = heap.slot(&object, index)?;
                    let text = known(self.constant(element, depth + 1))?;
                    shown.push(text.unwrap_or_else(|| "?".to_owned()));
                }
                let is_whole = object.slots() <= MAX_ELEMENTS;
                Ok(format!("#({})", elements(shown, is_whole)))
            }
            (name, Contents::Pointers) if name.ends_with(" class") => self.names.class(&object),
            (name, _) => {
                let is_vowel = name.starts_with(|first: char| "AEIOUaeiou".contains(first));
                Ok(format!("{} {name}", if is_vowel { "an" } else { "a" }))
            }
        }
    }
}

fn elements(mut shown: Vec<String>, is_whole: bool) -> String {
    if !is_whole {
        shown.push("…".to_owned());
    }
    shown.join(" ")
}

/// A character as a literal. Invisible ones are numbers.
pub fn character(code_point: u64) -> String {
    let shown = u32::try_from(code_point).ok().and_then(char::from_u32);
    match shown {
        Some(shown) if !shown.is_control() && !shown.is_whitespace() => format!("${shown}"),
        _ => format!("(Character value: {code_point})"),
    }
}

/// A string of Latin-1 bytes in quotes, control characters escaped.
fn string(bytes: &[u8], is_whole: bool) -> String {
    let mut text = String::from("'");
    for byte in bytes {
        match char::from(*byte) {
            '\'' => text.push_str("''"),
            control if control.is_control() => text.extend(control.escape_default()),
            shown => text.push(shown),
        }
    }
    if !is_whole {
        text.push('…');
    }
    text.push('\'');
    text
}

fn symbol(name: &str) -> String {
    let needs_quotes = |c: char| c.is_whitespace() || c == '\'';
    match name.contains(needs_quotes) {
        true => format!("#'{}'", name.replace('\'', "''")),
        false => format!("#{name}"),
    }
}
