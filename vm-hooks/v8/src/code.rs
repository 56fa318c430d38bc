//! Pieces of machine code, and the objects that describe them.

use rustc_hash::FxHashSet;
use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use crate::object::{Heap, Tagged};
use crate::versions::{Kinds, Layout};

/// Bytes from the begin of a piece of machine code, or of its object, that hold all fields.
const HEADER: usize = 64;

/// Largest machine code of a function; V8's limit is smaller.
const MAX_CODE: u64 = 512 << 20;

/// Last bits of a `Code`'s flags: its kind.
const KIND: u32 = 15;

/// A piece of machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code {
    /// First instruction.
    pub start: Avma,
    /// First address after the instructions.
    pub end: Avma,
    /// Compiler.
    pub kind: Kind,
    /// Object that describes it.
    pub object: Tagged,
    /// Data for deoptimisation; the `BytecodeArray` for Sparkplug.
    pub data: Tagged,
    /// Source positions; offsets of bytecodes for Sparkplug.
    pub positions: Tagged,
}

impl Code {
    /// Whether V8's object still describes this code.
    ///
    /// # Errors
    /// Failed reads of all memory.
    pub fn is_still(&self, heap: &Heap<'_>) -> Result<bool, AdapterError> {
        let layout = heap.layout;
        let stream = Avma(self.start.0.wrapping_sub(layout.stream.start));
        let object = self.object.address().unwrap_or_default();
        let header = headers(heap.memory, &[object])?
            .into_iter()
            .next()
            .flatten();
        let now = header.and_then(|header| code(layout, (stream, object), &header));
        Ok(now == Some(*self))
    }

    /// Bytes of instructions.
    #[must_use]
    pub fn size(&self) -> u32 {
        let size = self.end.0.saturating_sub(self.start.0);
        u32::try_from(size).unwrap_or(u32::MAX)
    }
}

impl Heap<'_> {
    /// The function (`SharedFunctionInfo`) of optimised code.
    ///
    /// # Errors
    /// Data of another form; failed reads.
    pub fn function_of_optimised(&self, code: &Code) -> Result<Tagged, AdapterError> {
        const WRAPPED: u64 = 8;
        let fields = self.layout.optimised;
        let what = "data of optimised code";
        let item = self.item(code.data, fields.function, what)?;
        match fields.is_wrapped {
            true => self.field(item, WRAPPED, what),
            false => Ok(item),
        }
    }
}

/// Kinds of machine code in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A builtin's entry.
    Builtin,
    /// A regular expression.
    RegExp,
    /// WebAssembly, or code between WebAssembly and JavaScript.
    Wasm,
    /// A copy of the interpreter's entry for one function.
    Interpreted,
    /// Sparkplug.
    Baseline,
    /// Maglev.
    Maglev,
    /// TurboFan.
    Turbofan,
}

impl Kind {
    fn of(flags: u32, layout: &Layout) -> Option<Self> {
        let number = u64::from(flags & KIND);
        let Kinds { builtin, baseline } = layout.kinds;
        Some(match number {
            _ if number == builtin => Kind::Builtin,
            _ if number == builtin + 1 => Kind::RegExp,
            _ if number + 1 == baseline => Kind::Interpreted,
            _ if number == baseline => Kind::Baseline,
            _ if number == baseline + 1 => Kind::Maglev,
            _ if number == baseline + 2 => Kind::Turbofan,
            _ if (builtin..baseline).contains(&number) => Kind::Wasm,
            _ => return None,
        })
    }

    /// The compiler's name; empty for others.
    #[must_use]
    pub fn tier(self) -> &'static str {
        match self {
            Kind::Baseline => "Sparkplug",
            Kind::Maglev => "Maglev",
            Kind::Turbofan => "TurboFan",
            Kind::Interpreted => "Ignition",
            Kind::Builtin | Kind::RegExp | Kind::Wasm => "",
        }
    }
}

/// Numbers in a header that was read in one piece.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        let at = usize::try_from(offset).ok()?;
        self.0.get(at..)?.first_chunk().copied()
    }

    fn word(&self, offset: u64) -> Option<u64> {
        self.bytes(offset).map(u64::from_le_bytes)
    }

    fn half(&self, offset: u64) -> Option<u32> {
        self.bytes(offset).map(u32::from_le_bytes)
    }
}

/// Describes the machine code at `streams` (addresses of headers). What is no whole piece of code, for
/// example because V8 has just freed it, is omitted.
///
/// # Errors
/// Failed reads of all memory.
pub fn describe(heap: &Heap<'_>, streams: &[Avma]) -> Result<Vec<Code>, AdapterError> {
    let layout = heap.layout;
    let read = |addresses: &[Avma]| -> Result<Vec<Option<[u8; HEADER]>>, AdapterError> {
        headers(heap.memory, addresses)
    };
    let (Some(code_at), Some(_)) = (layout.stream.code, layout.code.stream) else {
        let headers = read(streams)?;
        let each = streams.iter().zip(headers);
        let each = each.filter_map(|(at, header)| code(layout, (*at, *at), &header?));
        return Ok(each.collect());
    };
    let headers = read(streams)?;
    let pairs = streams.iter().zip(headers).filter_map(|(stream, header)| {
        let object = Tagged(Fields(&header?).word(code_at)?);
        Some((*stream, object.address()?))
    });
    let (streams, objects): (Vec<Avma>, Vec<Avma>) = pairs.unzip();
    let headers = read(&objects)?;
    let each = streams.into_iter().zip(objects).zip(headers);
    Ok(each
        .filter_map(|(pair, header)| code(layout, pair, &header?))
        .collect())
}

/// The `codes` that memory still holds, unchanged.
///
/// # Errors
/// As [`describe`].
pub(crate) fn present<'c>(
    heap: &Heap<'_>,
    codes: impl Iterator<Item = &'c Code>,
) -> Result<FxHashSet<Code>, AdapterError> {
    let header = heap.layout.stream.start;
    let streams = codes.map(|code| Avma(code.start.0.saturating_sub(header)));
    let streams: Vec<Avma> = streams.collect();
    let found = match streams.is_empty() {
        true => Vec::new(),
        false => describe(heap, &streams)?,
    };
    Ok(found.into_iter().collect())
}

fn headers(
    memory: &dyn Memory,
    addresses: &[Avma],
) -> Result<Vec<Option<[u8; HEADER]>>, AdapterError> {
    let mut bytes = Vec::new();
    let read = memory.read_each(addresses, HEADER, &mut bytes);
    let read = read.map_err(AdapterError::reading("code"))?;
    let (headers, _) = bytes.as_chunks::<HEADER>();
    let each = headers.iter().zip(read);
    Ok(each
        .map(|(header, is_read)| is_read.then_some(*header))
        .collect())
}

/// Code from its object's header, if the header refers to the instruction stream.
fn code(layout: &Layout, (stream, object): (Avma, Avma), header: &[u8]) -> Option<Code> {
    let (fields, at) = (Fields(header), layout.code);
    let start = Avma(stream.0.checked_add(layout.stream.start)?);
    let is_whole = match (at.stream, at.start) {
        (Some(own), Some(first)) => {
            fields.word(own)? == Tagged::of(stream).0 && fields.word(first)? == start.0
        }
        _ => true,
    };
    let size = u64::from(fields.half(at.size)?);
    if !is_whole || size == 0 || size > MAX_CODE {
        return None;
    }
    Some(Code {
        start,
        end: Avma(start.0.checked_add(size)?),
        kind: Kind::of(fields.half(at.flags)?, layout)?,
        object: Tagged::of(object),
        data: Tagged(fields.word(at.data)?),
        positions: Tagged(fields.word(at.positions)?),
    })
}
