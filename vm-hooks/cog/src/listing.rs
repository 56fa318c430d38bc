//! Bytecodes of a method as text, in the notation of Squeak and Pharo.

use vmscope_process::{AdapterError, Poll, known};
use vmscope_records::{BytecodePc, Method};

use crate::bytecode_table::{EXTENDED, Form, Of, row};
use crate::bytecodes::{Bytecodes, Sets};
use crate::heap::Object;
use crate::instructions::{Instruction, Instructions};
use crate::literals::{Literals, character};
use crate::names::{Names, literals};

/// Maximum bytes of the bytecodes in a method: jumps reach no further.
const MAX_BYTECODES: usize = 1 << 16;

/// Maximum bytes of literals in a method: 15 bits count them.
const MAX_LITERALS: usize = 8 << 15;

/// Maximum bytes of the listings in a recording: several times the needs of all methods in a large image.
const MAX_LISTED: usize = 32 << 20;

/// Maximum bytes of one listing: a third of the longest record.
const MAX_LISTING: usize = 1 << 20;

/// Maximum length of a line in characters.
const MAX_LINE: usize = 256;

/// From this value of extension B on, a send to the superclass takes the class from the stack.
const DIRECTED: i64 = 64;

/// The bytecodes of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Pc of the first bytecode: zero-based offset from the object's first byte after the header, as in maps.
    pub start: u32,
    /// The bytecodes, without the trailer.
    pub bytecodes: Vec<u8>,
    /// A line for each instruction, at the pc of its first byte: of its extensions, if any.
    pub lines: Vec<(BytecodePc, String)>,
    /// The last instruction is a return. Otherwise the bytecodes are damaged or too long.
    pub is_whole: bool,
    /// Bytes of all lines.
    size: usize,
}

impl Listing {
    /// Lists the bytecodes of `code`. `header` is the method's header, which generated code replaces in the
    /// object. `None` for a method of an unknown set.
    ///
    /// # Errors
    /// Failed reads of the bytecodes. Literals that can't be read are numbers.
    fn of(
        names: &mut Names<'_>,
        sets: &Sets,
        code: Object,
        header: i64,
    ) -> Result<Option<Self>, AdapterError> {
        let Some(bytecodes) = sets.of_method(header) else {
            return Ok(None);
        };
        let heap = *names.heap();
        let (bytes, _) = heap.first_bytes(&code, MAX_LITERALS + MAX_BYTECODES)?;
        let start = heap.word() * (literals(header) + 1);
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let mut literals = Literals::new(names, code, header);
        let listing = Self::new(bytecodes, &bytes, start, &mut |of, index| {
            literals.text(of, index)
        });
        literals.error.map_or(Ok(Some(listing)), Err)
    }

    /// A nameless method with this listing.
    pub(crate) fn into_method(self) -> Method {
        Method {
            bytecodes: self.bytecodes,
            listing: self.lines,
            ..Method::default()
        }
    }

    /// Lists `bytes` from `start` on. `literal` gives the text of a literal or special selector.
    fn new(
        bytecodes: &Bytecodes,
        bytes: &[u8],
        start: usize,
        literal: &mut dyn FnMut(Of, u64) -> Option<String>,
    ) -> Self {
        let bytes = bytes
            .get(..start.saturating_add(MAX_BYTECODES))
            .unwrap_or(bytes);
        let pc = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let mut lines = Vec::new();
        let mut size: usize = 0;
        let mut steps = Instructions::new(bytecodes, bytes, start);
        while size < MAX_LISTING
            && let Some(one) = steps.next()
        {
            let operands = bytes.get(one.at + 1..one.behind).unwrap_or_default();
            let mut text = Text {
                one,
                operands,
                extension_a: one.extension_a,
                extension_b: one.extension_b,
                literal,
            };
            let line = (BytecodePc(pc(one.first)), text.line(bytecodes));
            size += size_of_val(&line) + line.1.len();
            lines.push(line);
        }
        if !steps.is_over() {
            let text = "(the rest is unreadable or too long)";
            lines.push((BytecodePc(pc(steps.at())), text.to_owned()));
        }
        Listing {
            start: pc(start),
            bytecodes: bytes.get(start..steps.at()).unwrap_or_default().to_vec(),
            lines,
            is_whole: steps.is_over(),
            size,
        }
    }
}

/// Remaining size of a recording's listings.
#[derive(Clone, Copy, Debug)]
pub struct ListingRoom {
    left: usize,
    is_told: bool,
}

impl Default for ListingRoom {
    fn default() -> Self {
        ListingRoom {
            left: MAX_LISTED,
            is_told: false,
        }
    }
}

impl ListingRoom {
    /// A listing as [`Listing::of`] makes it; `None` without room or bytecodes.
    ///
    /// # Errors
    /// Errors after which no read can succeed.
    pub(crate) fn listing(
        &mut self,
        names: &mut Names<'_>,
        sets: &Sets,
        code: Object,
        header: i64,
    ) -> Result<Option<Listing>, AdapterError> {
        if self.left == 0 {
            return Ok(None);
        }
        let listing = known(Listing::of(names, sets, code, header))?.flatten();
        Ok(listing.filter(|listing| {
            let left = self.left.checked_sub(listing.size);
            self.left = left.unwrap_or(0);
            left.is_some()
        }))
    }

    /// Reports once that no room is left.
    pub(crate) fn tell(&mut self, poll: &mut Poll) {
        if self.left == 0 && !std::mem::replace(&mut self.is_told, true) {
            let text = "some methods have no listing of bytecodes: too many";
            poll.limit(text.to_owned(), "");
        }
    }
}

/// An instruction that becomes text.
struct Text<'t> {
    one: Instruction,
    operands: &'t [u8],
    /// Values of the extensions, until an operand uses them.
    extension_a: Option<i64>,
    extension_b: Option<i64>,
    literal: &'t mut dyn FnMut(Of, u64) -> Option<String>,
}

impl Text<'_> {
    fn line(&mut self, bytecodes: &Bytecodes) -> String {
        let (first, bytes, form) = row(bytecodes.encoding, self.one.code);
        let mut line = match bytes == self.one.bytecode.bytes {
            true => self.instruction(form, u64::from(self.one.code.saturating_sub(first))),
            false => Form::Unused.name().to_owned(),
        };
        let extensions = [("A", self.extension_a), ("B", self.extension_b)];
        for (name, value) in extensions {
            if let Some(value) = value {
                line.push_str(&format!(" (extension {name}: {value})"));
            }
        }
        if let Some((end, _)) = line.char_indices().nth(MAX_LINE) {
            line.truncate(end);
            line.push('…');
        }
        line
    }

    fn operand(&self, index: usize) -> u64 {
        u64::from(self.operands.get(index).copied().unwrap_or(0))
    }

    /// Index from extension A, then `operand` with this number of bits.
    fn index(&mut self, operand: u64, bits: u32) -> u64 {
        let high = self.extension_a.take().unwrap_or(0);
        (high << bits).cast_unsigned() | operand
    }

    /// Number from extension B, then the first operand.
    fn signed(&mut self) -> i64 {
        let high = self.extension_b.take().unwrap_or(0);
        high << 8 | self.operand(0).cast_signed()
    }

    fn at(&mut self, text: &str, of: Of, index: u64) -> String {
        let named = match of {
            Of::Number => Some(index.to_string()),
            _ => (self.literal)(of, index),
        };
        let named = named.unwrap_or_else(|| match of {
            Of::SpecialSelector => format!("(special selector {index})"),
            _ => format!("(literal {index})"),
        });
        format!("{text} {named}")
    }

    /// `distance`: from the row's first bytecode.
    fn instruction(&mut self, form: Form, distance: u64) -> String {
        let name = form.name();
        let (first, second) = (self.operand(0), self.operand(1));
        match form {
            Form::Unused | Form::ExtensionA | Form::ExtensionB | Form::Plain(_) => name.to_owned(),
            Form::Short(_, of) => self.at(name, of, distance),
            Form::Long(_, of) => {
                let index = self.index(first, 8);
                self.at(name, of, index)
            }
            Form::SpecialSend(from) => {
                self.at(name, Of::SpecialSelector, u64::from(from) + distance)
            }
            Form::ShortSend => self.at(name, Of::Selector, distance & 15),
            Form::LiteralSend(_, bits) => self.at(name, Of::Selector, first & ((1 << bits) - 1)),
            Form::LongSend | Form::LongSuperSend => {
                let index = self.index(first >> 3, 5);
                // Extension B counts arguments.
                let is_directed = self.extension_b.take().is_some_and(|b| b >= DIRECTED);
                let name = match form == Form::LongSuperSend && is_directed {
                    true => "directedSuperSend:",
                    false => name,
                };
                self.at(name, Of::Selector, index)
            }
            Form::Jump(_) => {
                self.extension_b = None;
                format!("{name} {}", self.one.target())
            }
            Form::Extended(action) => self.extended(action, first),
            Form::DoubleExtended => self.double_extended(first, second),
            Form::PushArray => {
                let size = first & 0x7f;
                match first & 0x80 {
                    0 => format!("push: (Array new: {size})"),
                    _ => format!("pop {size} into: (Array new: {size})"),
                }
            }
            Form::CallPrimitive => {
                let name = match second & 0x80 {
                    0 => name,
                    _ => Form::InlinedPrimitive.name(),
                };
                format!("{name} {}", (second & 0x1f) << 8 | first)
            }
            Form::InVector(_) => match second & 0x80 {
                0 => format!("{name} {first} inVectorAt: {second}"),
                // Not in use by compilers: an instance variable of an object in a temp.
                _ => format!("{name} {first} inObjectAt: {}", second & 0x7f),
            },
            Form::PushInteger => format!("{name} {}", self.signed()),
            Form::PushCharacter => {
                let value = self.signed();
                format!("{name} {}", character(value.cast_unsigned()))
            }
            Form::PushPseudoVariable => match self.extension_b.take() {
                None | Some(0) => name.to_owned(),
                Some(1) => "pushThisProcess".to_owned(),
                Some(other) => format!("pushPseudoVariable: {other}"),
            },
            Form::PushClosure => self.closure(first >> 4, first & 15),
            Form::PushExtendedClosure => {
                // The extension's high four bits count copied values, the low four arguments: in eights.
                let more = self.index(0, 0);
                self.extension_b = None;
                let copied = (more / 16).saturating_mul(8) + (first >> 3 & 7);
                self.closure(copied, more % 16 * 8 + (first & 7))
            }
            Form::PushFullClosure => {
                let index = self.index(first, 8);
                let mut line = self.at(name, Of::Constant, index);
                line.push_str(&format!(" numCopied: {}", second & 0x3f));
                for (bit, text) in [(0x40, " ignoreOuterContext"), (0x80, " receiverOnStack")] {
                    if second & bit != 0 {
                        line.push_str(text);
                    }
                }
                line
            }
            Form::InlinedPrimitive => format!("{name} {first}"),
        }
    }

    /// V3: a push or store with an index of six bits.
    fn extended(&mut self, action: &str, operand: u64) -> String {
        let kind = usize::try_from(operand >> 6).unwrap_or(0);
        match EXTENDED.get(kind) {
            Some((_, Of::Constant)) if action != "push" => Form::Unused.name().to_owned(),
            Some((suffix, of)) => self.at(&format!("{action}{suffix}"), *of, operand & 63),
            None => Form::Unused.name().to_owned(),
        }
    }

    /// V3: an action with an index of eight bits.
    fn double_extended(&mut self, action: u64, index: u64) -> String {
        let (text, of) = match action >> 5 {
            0 => ("send:", Of::Selector),
            1 => ("superSend:", Of::Selector),
            2 => ("pushRcvr:", Of::Number),
            3 => ("pushConstant:", Of::Constant),
            4 => ("pushLit:", Of::Variable),
            5 => ("storeIntoRcvr:", Of::Number),
            6 => ("popIntoRcvr:", Of::Number),
            _ => ("storeIntoLit:", Of::Variable),
        };
        self.at(text, of, index)
    }

    fn closure(&self, copied: u64, arguments: u64) -> String {
        let last = self.one.target().saturating_sub(1);
        format!(
            "closureNumCopied: {copied} numArgs: {arguments} bytes {} to {last}",
            self.one.behind
        )
    }
}

#[cfg(test)]
mod tests;
