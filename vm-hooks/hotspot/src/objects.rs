//! Java objects: classes, and fields by name.
//!
//! The collector moves objects while vmscope reads them: a reader asks each object for its class.

use vmscope_process::Memory;
use vmscope_records::Avma;

use crate::layout::encodings::unsigned5;
use crate::layout::{Scalar, VmStructs};
use crate::method::MethodLayout;

/// Maximum size of the description of a class's fields in bytes.
const MAX_FIELDS: usize = 1 << 12;

/// Maximum number of superclasses on the way to a class.
const MAX_SUPERS: usize = 16;

const WHAT: &str = "object";

/// Reads Java objects.
#[derive(Clone, Debug)]
pub struct Objects {
    methods: MethodLayout,
    /// Offset of the reference to the `Thread` object in a `JavaThread`.
    thread: u64,
    /// Whether the thread's field holds the address of a slot with the reference (JDK 16 on).
    is_handle: bool,
    super_klass: Scalar,
    fields: Fields,
    oops: Option<Narrow>,
    klasses: Option<Narrow>,
    headers: Vec<Header>,
}

/// A JVM's kind of objects, known once an object was understood.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Header of each object.
    pub header: Header,
    /// Form of each reference.
    pub form: Form,
}

/// Compressed pointers: addresses of their base and shift.
#[derive(Clone, Copy, Debug)]
struct Narrow {
    base: Avma,
    shift: Avma,
}

/// Description of a class's fields in its `InstanceKlass`.
#[derive(Clone, Copy, Debug)]
struct Fields {
    constants: Scalar,
    /// The array with the description.
    array: Scalar,
    length: Scalar,
    data: u64,
    /// Up to JDK 20: number of fields, 16-bit numbers per field. Later: a compressed stream.
    slots: Option<Slots>,
}

#[derive(Clone, Copy, Debug)]
struct Slots {
    count: Scalar,
    per_field: usize,
    name: usize,
    signature: usize,
    low: usize,
    high: usize,
}

/// Header of objects.
#[derive(Clone, Copy, Debug)]
pub enum Header {
    /// A compressed class pointer after the mark.
    Narrow,
    /// A class pointer after the mark.
    Wide,
    /// The mark holds the class, from this bit on (JDK 24 on, `UseCompactObjectHeaders`).
    Compact(u32),
}

/// Form of references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Compressed in objects, addresses outside.
    Narrow,
    /// Addresses.
    Plain,
    /// Addresses shifted by the colour of generational ZGC.
    Coloured,
}

impl Objects {
    /// Finds the fields; `None` if the tables lack one.
    #[must_use]
    pub fn find(structs: &VmStructs, methods: &MethodLayout) -> Option<Self> {
        let thread = structs.field("JavaThread", "_threadObj")?;
        let narrow = |owners: [(&str, &str); 3]| {
            owners.into_iter().find_map(|(owner, prefix)| {
                let of = |name| structs.optional_static(owner, &format!("{prefix}{name}"));
                Some(Narrow {
                    base: of("_base")?,
                    shift: of("_shift")?,
                })
            })
        };
        let fields = Fields::find(structs)?;
        let mut headers = vec![Header::Narrow];
        // From JDK 23 on, arrays with this header differ.
        headers.extend(fields.slots.map(|_| Header::Wide));
        let shift = structs.constant("markWord::klass_shift");
        let shift = shift.and_then(|shift| u32::try_from(shift).ok());
        headers.extend(shift.filter(|shift| *shift < 64).map(Header::Compact));
        Some(Objects {
            methods: methods.clone(),
            thread: thread.offset,
            is_handle: thread.type_name.contains("OopHandle"),
            super_klass: structs.optional_scalar("Klass", "_super")?,
            fields,
            oops: narrow([
                ("CompressedOops", "_narrow_oop."),
                ("Universe", "_narrow_oop."),
                ("CompressedOops", ""),
            ]),
            klasses: narrow([
                ("CompressedKlassPointers", "_narrow_klass."),
                ("Universe", "_narrow_klass."),
                ("CompressedKlassPointers", ""),
            ]),
            headers,
        })
    }

    /// Possible kinds of objects in this JVM.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        let forms = [Form::Narrow, Form::Plain, Form::Coloured].into_iter();
        let of = |form| {
            self.headers
                .iter()
                .map(move |&header| Kind { header, form })
        };
        forms.flat_map(of)
    }

    /// The class at `class`, or its first superclass with this name.
    pub fn class_named(&self, memory: &dyn Memory, class: Avma, name: &str) -> Option<Avma> {
        let mut at = class;
        for _ in 0..MAX_SUPERS {
            if self.methods.class(memory, at).ok()? == name {
                return Some(at);
            }
            at = self.super_klass.read_address(memory, at, WHAT).ok()?;
        }
        None
    }

    /// The `Thread` object of the `JavaThread` at `thread`.
    pub fn of_thread(&self, memory: &dyn Memory, thread: Avma, form: Form) -> Option<Avma> {
        let at = memory.read_pointer(thread.checked_add(self.thread)?).ok()?;
        let object = match self.is_handle {
            true if at.0 != 0 => memory.read_pointer(at).ok()?,
            _ => at,
        };
        let object = match form {
            Form::Coloured => uncoloured(object)?,
            Form::Narrow | Form::Plain => object,
        };
        (object.0 != 0).then_some(object)
    }

    /// The reference in an object's field.
    pub fn reference(&self, memory: &dyn Memory, at: Avma, by: u64, form: Form) -> Option<Avma> {
        let field = at.checked_add(by)?;
        let found = match form {
            Form::Narrow => (self.oops?).widen(memory, memory.read_u32(field).ok()?)?,
            Form::Plain => memory.read_pointer(field).ok()?,
            Form::Coloured => uncoloured(memory.read_pointer(field).ok()?)?,
        };
        (found.0 != 0).then_some(found)
    }

    /// Address of an object's class.
    pub fn class_of(&self, memory: &dyn Memory, object: Avma, header: Header) -> Option<Avma> {
        let after_mark = object.checked_add(8)?;
        match header {
            Header::Narrow => (self.klasses?).widen(memory, memory.read_u32(after_mark).ok()?),
            Header::Wide => memory.read_pointer(after_mark).ok(),
            Header::Compact(shift) => {
                let mark = memory.read_u64(object).ok()?;
                self.klasses?
                    .widen(memory, u32::try_from(mark >> shift).ok()?)
            }
        }
    }

    /// Offset of a field that the class at `class` declares.
    pub fn field(
        &self,
        memory: &dyn Memory,
        class: Avma,
        name: &str,
        signature: &str,
    ) -> Option<u64> {
        let constants = self
            .fields
            .constants
            .read_address(memory, class, WHAT)
            .ok()?;
        let all = self.fields.read(memory, class)?;
        let is = |index, text: &str| {
            let symbol = self.methods.symbol_in_pool(memory, constants, index);
            symbol.is_ok_and(|symbol| symbol == text)
        };
        let found = all
            .iter()
            .find(|(of_name, of_type, _)| is(*of_name, name) && is(*of_type, signature));
        found.map(|(.., offset)| *offset)
    }
}

/// Address in a reference of generational ZGC on x86-64 (`zAddress.hpp`). The one bit that is set
/// among bits 12 to 15 ends the colour.
fn uncoloured(reference: Avma) -> Option<Avma> {
    let remapped = (reference.0 >> 12) & 0xf;
    let shift = 13 + remapped.trailing_zeros();
    (remapped.count_ones() == 1).then(|| Avma(reference.0 >> shift))
}

impl Narrow {
    fn widen(self, memory: &dyn Memory, narrow: u32) -> Option<Avma> {
        let base = memory.read_pointer(self.base).ok()?;
        let shift = memory.read_u32(self.shift).ok()?;
        let by = u64::from(narrow).checked_shl(shift)?;
        if narrow == 0 {
            return None;
        }
        base.checked_add(by)
    }
}

impl Header {
    /// Offsets of length and elements in an array of bytes.
    pub fn of_array(self) -> (u64, u64) {
        match self {
            Header::Narrow => (12, 16),
            Header::Wide => (16, 24),
            Header::Compact(_) => (8, 12),
        }
    }
}

impl Fields {
    fn find(structs: &VmStructs) -> Option<Self> {
        let of = |name| structs.optional_scalar("InstanceKlass", name);
        let number = |name: &str| {
            let number = structs.constant(&format!("FieldInfo::{name}"))?;
            usize::try_from(number).ok()
        };
        let (array, elements, slots) = match of("_fieldinfo_stream") {
            Some(stream) => (stream, "Array<u1>", None),
            None => {
                let slots = Slots {
                    count: of("_java_fields_count")?,
                    per_field: number("field_slots").filter(|slots| *slots > 0)?,
                    name: number("name_index_offset")?,
                    signature: number("signature_index_offset")?,
                    low: number("low_packed_offset")?,
                    high: number("high_packed_offset")?,
                };
                (of("_fields")?, "Array<u2>", Some(slots))
            }
        };
        Some(Fields {
            constants: of("_constants")?,
            array,
            length: structs.optional_scalar("Array<int>", "_length")?,
            data: structs.optional_offset(elements, "_data")?,
            slots,
        })
    }

    /// Fields of a class in Java's order: indices of name and signature, offset.
    fn read(&self, memory: &dyn Memory, class: Avma) -> Option<Vec<(u64, u64, u64)>> {
        let array = self.array.read_address(memory, class, WHAT).ok()?;
        let length = self.length.read(memory, array, WHAT).ok()?.cast_unsigned();
        let bytes = match self.slots {
            Some(_) => length.checked_mul(2)?,
            None => length,
        };
        let bytes = memory.read_vec(array.checked_add(self.data)?, bytes, MAX_FIELDS);
        let bytes = bytes.ok()?;
        let Some(slots) = self.slots else {
            return Some(of_stream(&bytes));
        };
        let count = slots.count.read(memory, class, WHAT).ok()?;
        let fields = bytes.chunks_exact(2 * slots.per_field);
        let fields = fields.take(usize::try_from(count).ok()?);
        fields.map(|field| slots.field(field)).collect()
    }
}

impl Slots {
    fn field(&self, bytes: &[u8]) -> Option<(u64, u64, u64)> {
        let slot = |number: usize| {
            let bytes = bytes.get(2 * number..)?.first_chunk::<2>()?;
            Some(u64::from(u16::from_le_bytes(*bytes)))
        };
        // The lowest two bits are a tag.
        let offset = (slot(self.high)? << 16 | slot(self.low)?) >> 2;
        Some((slot(self.name)?, slot(self.signature)?, offset))
    }
}

/// Fields in a stream (`FieldInfoStream`, JDK 21 on), up to the first that is not whole.
fn of_stream(bytes: &[u8]) -> Vec<(u64, u64, u64)> {
    const INITIALIZED: u32 = 1 << 0;
    const GENERIC: u32 = 1 << 2;
    const CONTENDED: u32 = 1 << 4;
    let mut at = 0;
    let mut next = || unsigned5(bytes, &mut at, 1);
    // Numbers of Java's fields and of the VM's own, which come last.
    let count = next().zip(next()).map_or(0, |(count, _)| count);
    let mut field = || {
        let (name, signature, offset) = (next()?, next()?, next()?);
        let _access = next()?;
        let flags = next()?;
        for optional in [INITIALIZED, GENERIC, CONTENDED] {
            if flags & optional != 0 {
                next()?;
            }
        }
        Some((u64::from(name), u64::from(signature), u64::from(offset)))
    };
    (0..count).map_while(|_| field()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_end_with_their_highest_bit() {
        let address = 0x4000_0012_3458;
        for (bit, shift) in [(1, 13), (2, 14), (4, 15), (8, 16)] {
            let reference = address << shift | bit << 12 | 0xff0;
            assert_eq!(uncoloured(Avma(reference)), Some(Avma(address)));
        }
        assert_eq!(uncoloured(Avma(0)), None);
        assert_eq!(uncoloured(Avma(0x3000)), None);
    }

    #[test]
    fn a_stream_of_fields_ends_with_its_bytes_or_its_count() {
        // Two fields of Java, one of the VM. UNSIGNED5 writes small numbers plus one.
        let head = [3, 2];
        let plain = [5, 6, 13, 1, 1];
        let generic = [7, 8, 17, 1, 1 + 4, 9];
        let all = [&head[..], &generic, &plain, &plain].concat();
        assert_eq!(of_stream(&all), [(6, 7, 16), (4, 5, 12)]);
        let cut = all.get(..10).unwrap_or_default();
        assert_eq!(of_stream(cut), [(6, 7, 16)]);
        assert_eq!(of_stream(&[]), []);
    }
}
