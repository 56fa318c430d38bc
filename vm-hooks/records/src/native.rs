//! Symbols of sampled native code, so that recordings are readable without binaries.

use crate::{Avma, Exactness, FileOffset, ModuleKey};

/// Owner of symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolOwner {
    /// A module; addresses are file offsets.
    Module(ModuleKey),
    /// The kernel, without mappings: each [`FileOffset`] is a run-time address ([`Avma`]).
    Kernel,
}

/// Source of a function's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SymbolSource {
    /// `.symtab`.
    SymbolTable,
    /// `.dynsym`.
    DynamicSymbols,
    /// `.gnu_debugdata`.
    MiniDebugInfo,
    /// A PLT stub, named after its target.
    Plt,
    /// DWARF.
    DebugInfo,
    /// The kernel's table (`/proc/kallsyms`).
    Kallsyms,
    /// No symbol: named after the section or module.
    None,
}

/// Sampled symbols of one module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbols {
    /// Their owner.
    pub owner: SymbolOwner,
    /// Functions, ascending by start, not overlapping.
    pub functions: Vec<NativeFunction>,
    /// Note about the source (`debug file by build-id: /usr/lib/debug/…`, `stripped: .dynsym
    /// only`); may be empty.
    pub note: String,
}

/// A native function, by its symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeFunction {
    /// First byte.
    pub start: FileOffset,
    /// Size in bytes; 0 without symbol size and next symbol.
    pub size: u64,
    /// Linkage name (mangled).
    pub linkage_name: String,
    /// Demangled name.
    pub name: String,
    /// Source of the name.
    pub source: SymbolSource,
    /// Whether the symbol has a size; otherwise `size` is approximate, up to the next symbol.
    pub sized: bool,
    /// Source lines of sampled ranges, ascending, not overlapping.
    pub lines: Vec<NativeLines>,
}

/// A range of a native function with one source line and one chain of inlined functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeLines {
    /// First byte.
    pub start: FileOffset,
    /// First byte after the range.
    pub end: FileOffset,
    /// Executing function and its inline callers, innermost first, up to the function itself.
    pub frames: Vec<NativeFrame>,
    /// Reliability.
    pub exactness: Exactness,
}

/// A position in native source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NativeFrame {
    /// Demangled function; empty if debug information has no name.
    pub function: String,
    /// Source file; empty if unknown.
    pub file: String,
    /// Line, 1-based; 0 if unknown.
    pub line: u32,
}

impl SymbolOwner {
    /// Converts a kernel address for [`Symbols`].
    #[must_use]
    pub const fn kernel_address(address: Avma) -> FileOffset {
        FileOffset(address.0)
    }
}
