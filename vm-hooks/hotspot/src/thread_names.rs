//! Java's names of threads: `java.lang.Thread.name`. The kernel's names have 15 bytes.
//!
//! The collector moves objects while vmscope reads them. A name counts if each object on the way
//! has the expected class, and if a second reading finds the same objects and the same text.
//! Otherwise the thread keeps the kernel's name.

use rustc_hash::FxHashSet;
use vmscope_process::Memory;
use vmscope_records::Avma;

use crate::layout::VmStructs;
use crate::method::MethodLayout;
use crate::objects::{Kind, Objects};

/// Maximum length of a name in bytes of the string; the rest is cut off.
const MAX_NAME: u64 = 512;

/// Maximum plausible length of a name in bytes.
const MAX_LENGTH: u64 = 1 << 20;

/// Maximum number of known subclasses of `java.lang.Thread`.
const MAX_CLASSES: usize = 1 << 12;

/// Maximum number of failed attempts to learn the classes.
const MAX_ATTEMPTS: u32 = 1_000;

const THREAD: &str = "java/lang/Thread";

/// Reads names of Java threads.
#[derive(Debug)]
pub struct ThreadNames {
    objects: Objects,
    known: Option<Known>,
    attempts: u32,
}

/// Constant data, known from the first name.
#[derive(Clone, Debug)]
struct Known {
    kind: Kind,
    /// `java.lang.Thread` and subclasses.
    threads: FxHashSet<Avma>,
    name: u64,
    string: Avma,
    value: u64,
    coder: u64,
    bytes: Avma,
}

/// Objects of a name, and its text.
#[derive(Debug, PartialEq, Eq)]
struct Reading {
    objects: [Avma; 3],
    text: String,
}

impl ThreadNames {
    /// Finds the fields; `None` if the tables lack one.
    #[must_use]
    pub fn find(structs: &VmStructs, methods: &MethodLayout) -> Option<Self> {
        Some(ThreadNames {
            objects: Objects::find(structs, methods)?,
            known: None,
            attempts: 0,
        })
    }

    /// Name of the thread whose `JavaThread` is at `thread`.
    pub fn name(&mut self, memory: &dyn Memory, thread: Avma) -> Option<String> {
        if self.known.is_none() {
            if self.attempts >= MAX_ATTEMPTS {
                return None;
            }
            self.attempts += 1;
            self.known = self.objects.kinds().find_map(|kind| {
                let object = self.objects.of_thread(memory, thread, kind.form)?;
                self.learn(memory, object, kind)
            });
        }
        let first = self.read(memory, thread)?;
        let second = self.read(memory, thread)?;
        (first == second && !first.text.is_empty()).then_some(first.text)
    }

    fn read(&mut self, memory: &dyn Memory, thread: Avma) -> Option<Reading> {
        let known = self.known.as_ref()?;
        let (objects, Kind { header, form }) = (&self.objects, known.kind);
        let object = objects.of_thread(memory, thread, form)?;
        let class = objects.class_of(memory, object, header)?;
        if !known.threads.contains(&class) {
            objects.class_named(memory, class, THREAD)?;
            let threads = &mut self.known.as_mut()?.threads;
            if threads.len() < MAX_CLASSES {
                threads.insert(class);
            }
        }
        let known = self.known.as_ref()?;
        let of_class = |at: Avma, class: Avma| {
            let is_it = objects.class_of(memory, at, header)? == class;
            is_it.then_some(at)
        };
        let string = objects.reference(memory, object, known.name, form)?;
        let string = of_class(string, known.string)?;
        let value = objects.reference(memory, string, known.value, form)?;
        let value = of_class(value, known.bytes)?;
        let coder = memory.read_u8(string.checked_add(known.coder)?).ok()?;
        let (length, data) = header.of_array();
        let length = memory.read_u32(value.checked_add(length)?).ok()?;
        let length = Some(u64::from(length)).filter(|length| *length <= MAX_LENGTH)?;
        let cap = usize::try_from(MAX_NAME).ok()?;
        let bytes = memory
            .read_vec(value.checked_add(data)?, length.min(MAX_NAME), cap)
            .ok()?;
        Some(Reading {
            objects: [object, string, value],
            text: text_of(&bytes, coder)?,
        })
    }

    /// Learns classes and fields from a `Thread` object of this kind.
    fn learn(&self, memory: &dyn Memory, object: Avma, kind: Kind) -> Option<Known> {
        let (objects, Kind { header, form }) = (&self.objects, kind);
        let class = objects.class_of(memory, object, header)?;
        let thread = objects.class_named(memory, class, THREAD)?;
        let field = |class, name, signature| objects.field(memory, class, name, signature);
        let class_named = |at, name| {
            let class = objects.class_of(memory, at, header)?;
            let found = objects.class_named(memory, class, name)?;
            (found == class).then_some(class)
        };
        let name = field(thread, "name", "Ljava/lang/String;")?;
        let at = objects.reference(memory, object, name, form)?;
        let string = class_named(at, "java/lang/String")?;
        let value = field(string, "value", "[B")?;
        let array = objects.reference(memory, at, value, form)?;
        Some(Known {
            kind,
            threads: FxHashSet::from_iter([class]),
            name,
            string,
            value,
            coder: field(string, "coder", "B")?,
            bytes: class_named(array, "[B")?,
        })
    }
}

/// Text of a string's bytes in Latin-1 (coder 0) or UTF-16 (coder 1).
fn text_of(bytes: &[u8], coder: u8) -> Option<String> {
    match coder {
        0 => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        1 => {
            let units = bytes.chunks_exact(2).filter_map(|unit| unit.first_chunk());
            let units: Vec<u16> = units.map(|unit| u16::from_le_bytes(*unit)).collect();
            Some(String::from_utf16_lossy(&units))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_latin_or_utf_16() {
        assert_eq!(text_of(b"M\xfcller", 0).as_deref(), Some("Müller"));
        let utf16: Vec<u8> = "日本".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(text_of(&utf16, 1).as_deref(), Some("日本"));
        // Cut within a pair.
        assert_eq!(text_of(&[0x3d, 0xd8, 0], 1).as_deref(), Some("\u{fffd}"));
        assert_eq!(text_of(b"a", 2), None);
    }
}
