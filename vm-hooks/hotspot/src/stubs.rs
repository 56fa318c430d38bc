//! Routines inside shared blobs: stub routines and codelets of the template interpreter.

use vmscope_process::{AdapterError, LoadedModule, Memory, ProcessView};
use vmscope_records::Avma;

use crate::bytecode::{mnemonic, vm_name};
use crate::layout::encodings::{CODELET_ALIGNMENT, vtable_stub};
use crate::layout::{Scalar, VmStructs};

/// Maximum plausible number of codelets: JDK 25 has 278.
const MAX_CODELETS: usize = 4096;

/// Maximum plausible size of the interpreter, which has about 100 KB.
const MAX_INTERPRETER: u64 = 16 << 20;

/// Maximum length of a description.
const MAX_NAME: usize = 256;

/// Maximum number of stub routine variables.
const MAX_VARIABLES: usize = 4096;

/// A named piece of generated code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    /// First address.
    pub start: Avma,
    /// End address (exclusive).
    pub end: Avma,
    /// The VM's name.
    pub name: String,
}

/// Codelets of the template interpreter, by address. A codelet implements one bytecode, whose
/// name it has, or a routine between bytecodes.
///
/// # Errors
/// [`AdapterError::MissingField`], [`AdapterError::NotReady`], errors of reads.
pub fn codelets(structs: &VmStructs, memory: &dyn Memory) -> Result<Vec<Routine>, AdapterError> {
    const WHAT: &str = "interpreter";
    let reading = AdapterError::reading(WHAT);
    let field = |name| structs.scalar("StubQueue", name);
    let size = structs.scalar("InterpreterCodelet", "_size")?;
    let description = structs.scalar("InterpreterCodelet", "_description").ok();
    let bytecode = Scalar {
        offset: structs.offset("InterpreterCodelet", "_bytecode")?,
        width: 4,
        signed: true,
    };
    let header = structs.size_of("InterpreterCodelet")?;
    let queue = structs.static_at("AbstractInterpreter", "_code")?;
    let queue = Avma(memory.read_u64(queue).map_err(&reading)?);
    if queue.0 == 0 {
        return Err(AdapterError::NotReady { what: WHAT });
    }
    let buffer = field("_stub_buffer")?.read_address(memory, queue, WHAT)?;
    let begin = field("_queue_begin")?.read(memory, queue, WHAT)?;
    let end = field("_queue_end")?.read(memory, queue, WHAT)?;
    let implausible = |value: i64| AdapterError::Implausible {
        what: WHAT,
        value: value.cast_unsigned(),
        at: queue,
    };
    let (Ok(begin), Ok(end)) = (u64::try_from(begin), u64::try_from(end)) else {
        return Err(implausible(end));
    };
    if end < begin || end > MAX_INTERPRETER {
        return Err(implausible(end.cast_signed()));
    }
    // The VM cuts the buffer to its contents once the interpreter is complete.
    let limit = field("_buffer_limit").and_then(|limit| limit.read(memory, queue, WHAT));
    let limit = limit.ok().and_then(|limit| u64::try_from(limit).ok());
    if limit.is_some_and(|limit| limit > end) {
        return Err(AdapterError::NotReady { what: WHAT });
    }
    let mut found = Vec::new();
    let mut at = buffer.0.saturating_add(begin);
    let last = buffer.0.saturating_add(end);
    while at < last && found.len() < MAX_CODELETS {
        let head = memory
            .read_vec(Avma(at), header.min(256), 256)
            .map_err(&reading)?;
        let bytes = size.of(&head).unwrap_or_default();
        let bytes = u64::try_from(bytes).ok().filter(|&bytes| bytes > header);
        let Some(next) = bytes.and_then(|bytes| at.checked_add(bytes)) else {
            return Err(implausible(size.of(&head).unwrap_or_default()));
        };
        let number = bytecode.of(&head).unwrap_or(-1);
        let described = || {
            let at = description?.unsigned_of(&head)?;
            let name = memory.read_c_string(Avma(at), MAX_NAME).ok()?;
            Some(String::from_utf8_lossy(&name).into_owned())
        };
        let name = handler_name(number)
            .or_else(|| described().map(readable))
            .unwrap_or_else(|| "interpreter".to_owned());
        let code = at.saturating_add(header);
        let code = code.next_multiple_of(CODELET_ALIGNMENT).min(next);
        found.push(Routine {
            start: Avma(code),
            end: Avma(next),
            name,
        });
        at = next;
    }
    Ok(found)
}

/// Interpreted methods call from bytecodes, and callees return to these codelets: as callers they
/// stand for an interpreted method.
fn readable(description: String) -> String {
    match description.as_str() {
        "return entry points" | "invoke return entry points" => {
            format!("interpreted method ({description})")
        }
        _ => description,
    }
}

/// Name of a bytecode's codelet. First comes the Java instruction as in listings, so that
/// samples match the bytecode in their registers; then the VM's own name, if different.
fn handler_name(number: i64) -> Option<String> {
    let opcode = u8::try_from(number).ok()?;
    let (java, own) = (mnemonic(opcode)?, vm_name(opcode)?);
    Some(if java == own {
        format!("{java} (bytecode)")
    } else {
        format!("{java} ({own})")
    })
}

/// Begins of the routines inside the `StubRoutines` blobs, by address. Sources: the VM's
/// exported fields (up to JDK 22) and, with a symbol table, its variables.
#[must_use]
pub fn stub_routines(
    process: &ProcessView,
    library: &LoadedModule,
    structs: &VmStructs,
    memory: &dyn Memory,
) -> Vec<(Avma, String)> {
    let mut found: Vec<(Avma, String)> = Vec::new();
    let mut take = |variable: Avma, name: &str| {
        if let Ok(entry) = memory.read_pointer(variable)
            && entry.0 != 0
        {
            found.push((entry, name.trim_start_matches('_').to_owned()));
        }
    };
    for (name, field) in structs.fields_of("StubRoutines") {
        if field.is_static && field.type_name == "address" {
            take(field.address, name);
        }
    }
    // Mangled: _ZN12StubRoutines16_jbyte_arraycopyE, _ZN12StubRoutines3x8619_verify_fpu…E
    let variables = process.symbols_beginning(library, &["_ZN12StubRoutines"], MAX_VARIABLES);
    for symbol in variables.unwrap_or_default() {
        if symbol.size == 8
            && let Some(name) = last_component(&symbol.name)
        {
            take(symbol.address, name);
        }
    }
    found.sort();
    found.dedup_by_key(|(entry, _)| *entry);
    found
}

/// The last part of a mangled nested name: `_ZN12StubRoutines3x866_entryE` → `_entry`.
fn last_component(mangled: &str) -> Option<&str> {
    let mut rest = mangled.strip_prefix("_ZN")?;
    let mut last = None;
    while !rest.starts_with('E') {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let length: usize = rest.get(..digits)?.parse().ok()?;
        let end = digits.checked_add(length)?;
        last = Some(rest.get(digits..end)?);
        rest = rest.get(end..)?;
    }
    (rest == "E").then_some(last).flatten()
}

/// The VM's name of a blob with vtable and itable stubs.
pub const DISPATCH_STUBS: &str = "vtable chunks";

/// Finds vtable and itable stubs: code that calls the method of the receiver's class, and leaves
/// no frame.
#[derive(Clone, Copy, Debug)]
pub struct DispatchStubs {
    /// Offset of the entry in `Method`, to which each stub jumps.
    entry: Option<u64>,
}

impl DispatchStubs {
    /// By the VM's tables.
    #[must_use]
    pub fn of(structs: &VmStructs) -> Self {
        let entry = structs.optional_scalar("Method", "_from_compiled_entry");
        DispatchStubs {
            entry: entry.map(|entry| entry.offset),
        }
    }

    /// The stubs of a [`DISPATCH_STUBS`] blob with this code, by address. Between them and behind
    /// them lie gaps.
    #[must_use]
    pub fn within(&self, begin: Avma, code: &[u8]) -> Vec<Routine> {
        let mut found = Vec::new();
        let mut at = begin.0.wrapping_neg() % vtable_stub::ALIGNMENT;
        while let Ok(offset) = usize::try_from(at)
            && let Some(stub) = code.get(offset..).filter(|stub| !stub.is_empty())
        {
            if let Some((size, name)) = self.stub(stub) {
                let start = begin.0.wrapping_add(at + vtable_stub::HEADER);
                found.push(Routine {
                    start: Avma(start),
                    end: Avma(start.wrapping_add(size)),
                    name,
                });
                at += (vtable_stub::HEADER + size).next_multiple_of(vtable_stub::ALIGNMENT);
            } else {
                at += vtable_stub::ALIGNMENT;
            }
        }
        found
    }

    /// Code size and name of the stub whose header begins `bytes`. A stub jumps to the method
    /// where its header says.
    fn stub(&self, bytes: &[u8]) -> Option<(u64, String)> {
        let index = vtable_stub::INDEX.unsigned_of(bytes)?;
        let jump = vtable_stub::JUMP.unsigned_of(bytes)?;
        let (kind, last) = match vtable_stub::IS_VTABLE.of(bytes)? {
            1 => ("vtable", 0),
            0 => ("itable", vtable_stub::FAILURE),
            _ => return None,
        };
        let code = bytes.get(usize::try_from(vtable_stub::HEADER.checked_add(jump)?).ok()?..)?;
        // jmp [rbx + offset]
        let (to, size) = match *code {
            [0xff, 0x63, short, ..] => (u64::from(short), 3),
            [0xff, 0xa3, a, b, c, d, ..] => (u64::from(u32::from_le_bytes([a, b, c, d])), 6),
            _ => return None,
        };
        // JDK 28 has three such entries: objects may be passed as their fields.
        let is_entry = |entry: u64| (0..3).any(|field| entry.wrapping_add(field * 8) == to);
        let is_sound = jump > 0 && self.entry.is_none_or(is_entry);
        is_sound.then(|| (jump + size + last, format!("{kind} stub, index {index}")))
    }
}

/// Splits `[start, end)` at its entries: each piece ends at the next entry. The first piece
/// belongs to the blob.
#[must_use]
pub fn cut(start: Avma, end: Avma, blob: &str, entries: &[(Avma, String)]) -> Vec<Routine> {
    let first = entries.partition_point(|(at, _)| *at < start);
    let inside = entries.get(first..).unwrap_or_default();
    let inside = inside.iter().take_while(|(at, _)| *at < end);
    let mut cuts = vec![(start, blob)];
    for (at, name) in inside {
        if *at == start {
            cuts.clear();
        }
        cuts.push((*at, name.as_str()));
    }
    let ends = cuts.iter().skip(1).map(|(at, _)| *at).chain([end]);
    cuts.iter()
        .zip(ends)
        .map(|((start, name), end)| Routine {
            start: *start,
            end,
            name: (*name).to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_points_stand_for_an_interpreted_caller() {
        let name = readable("return entry points".to_owned());
        assert_eq!(name, "interpreted method (return entry points)");
        assert_eq!(
            readable("slow signature handler".to_owned()),
            "slow signature handler"
        );
    }

    #[test]
    fn names_of_stub_variables() {
        assert_eq!(
            last_component("_ZN12StubRoutines16_jbyte_arraycopyE"),
            Some("_jbyte_arraycopy")
        );
        assert_eq!(
            last_component("_ZN12StubRoutines3x866_entryE"),
            Some("_entry")
        );
        for odd in [
            "",
            "_ZN",
            "_ZN9x",
            "_ZN12StubRoutinesEv",
            "_ZN99999999999999999999x",
        ] {
            assert_eq!(last_component(odd), None);
        }
    }

    /// As JDK 17 writes them: a vtable stub of index 3, and an itable stub of index 0.
    const VTABLE_STUB: &[u8] = b"\0\0\0\0\0\0\0\0\x03\0\x0e\0\0\0\x01\0\
        \x8b\x46\x08\x48\xc1\xe0\x03\x48\x8b\x98\xe8\x01\0\0\xff\x63\x40";
    const ITABLE_STUB: &[u8] = b"\0\0\0\0\0\0\0\0\0\0\x04\0\x02\0\0\0\
        \x48\x8b\x58\x08\xff\x63\x40\xe9\xa6\x10\xf5\xff";

    #[test]
    fn dispatch_stubs_are_found_by_header_and_jump() {
        let stubs = DispatchStubs { entry: Some(0x40) };
        let mut code = vec![0; 4];
        for stub in [VTABLE_STUB, ITABLE_STUB, VTABLE_STUB] {
            code.extend(stub);
            // A gap; the next header is aligned.
            code.resize((code.len() + 16 - 4).next_multiple_of(8) + 4, 0);
        }
        let found: Vec<_> = stubs
            .within(Avma(0x1004), &code)
            .into_iter()
            .map(|stub| (stub.start.0, stub.end.0, stub.name))
            .collect();
        let named = |start, size, name: &str| (start, start + size, name.to_owned());
        assert_eq!(
            found,
            [
                named(0x1018, 17, "vtable stub, index 3"),
                named(0x1050, 12, "itable stub, index 0"),
                named(0x1080, 17, "vtable stub, index 3"),
            ]
        );
        // Another field of `Method`, or no jump where the header says.
        for other in [0x28, 0x48] {
            let entry = Some(other);
            assert_eq!(DispatchStubs { entry }.within(Avma(0x1004), &code), []);
        }
        for end in 0..VTABLE_STUB.len() {
            let cut = VTABLE_STUB.get(..end).unwrap();
            assert_eq!(stubs.within(Avma(0), cut), []);
        }
    }

    #[test]
    fn a_blob_is_cut_at_its_entries() {
        let entries: Vec<_> = [(5, "before"), (12, "a"), (16, "b"), (30, "after")]
            .map(|(at, name)| (Avma(at), name.to_owned()))
            .into();
        let cut = |start| -> Vec<_> {
            cut(Avma(start), Avma(20), "blob", &entries)
                .into_iter()
                .map(|routine| (routine.start.0, routine.end.0, routine.name))
                .collect()
        };
        assert_eq!(
            cut(10),
            [
                (10, 12, "blob".to_owned()),
                (12, 16, "a".to_owned()),
                (16, 20, "b".to_owned())
            ]
        );
        assert_eq!(cut(12)[0], (12, 16, "a".to_owned()));
    }
}
