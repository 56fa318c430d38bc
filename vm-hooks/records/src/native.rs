//! Symbols of native code that was hit, kept in the recording so that it can be
//! read where the binaries are not.

use crate::{Avma, Exactness, FileOffset, ModuleKey};

/// Whose symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolOwner {
    /// A module: addresses are its file offsets.
    Module(ModuleKey),
    /// The kernel: addresses are run-time addresses ([`Avma`]) in a [`FileOffset`]'s
    /// clothes, since the kernel has no mapping to undo.
    Kernel,
}

/// Where a function's name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SymbolSource {
    /// `.symtab`.
    SymbolTable,
    /// `.dynsym`.
    DynamicSymbols,
    /// `.gnu_debugdata`.
    MiniDebugInfo,
    /// A PLT stub, named after what it calls.
    Plt,
    /// DWARF.
    DebugInfo,
    /// The kernel's own table (`/proc/kallsyms`).
    Kallsyms,
    /// No symbol: made up from the section or the module.
    None,
}

/// The symbols of one module that samples hit, and of no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbols {
    /// Whose.
    pub owner: SymbolOwner,
    /// The functions, ascending by start, not overlapping.
    pub functions: Vec<NativeFunction>,
    /// What is worth knowing about where they come from (`debug file by build-id:
    /// /usr/lib/debug/…`, `stripped: .dynsym only`); may be empty.
    pub note: String,
}

/// A native function, by its symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeFunction {
    /// Its first byte.
    pub start: FileOffset,
    /// Its size in bytes; 0 where the symbol has none and the next symbol is not known.
    pub size: u64,
    /// Its name as linked (mangled).
    pub linkage_name: String,
    /// Its name for people (demangled).
    pub name: String,
    /// Where the name comes from.
    pub source: SymbolSource,
    /// Whether the size is the symbol's own. If not, it reaches to the next symbol
    /// and is approximate.
    pub sized: bool,
    /// Source lines of the pieces that were hit, ascending, not overlapping.
    pub lines: Vec<NativeLines>,
}

/// A piece of a native function that belongs to one source line of one chain of
/// inlined functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeLines {
    /// First byte.
    pub start: FileOffset,
    /// First byte after it.
    pub end: FileOffset,
    /// The function executing there, then those it was inlined through, innermost
    /// first, the last being the function itself.
    pub frames: Vec<NativeFrame>,
    /// What this is worth.
    pub exactness: Exactness,
}

/// A place in native source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NativeFrame {
    /// The function, demangled; empty where the debug information does not name it.
    pub function: String,
    /// The source file; empty where it is not known.
    pub file: String,
    /// The line, 1-based; 0 where it is not known.
    pub line: u32,
}

impl SymbolOwner {
    /// A kernel address as [`Symbols`] keep it.
    #[must_use]
    pub const fn kernel_address(address: Avma) -> FileOffset {
        FileOffset(address.0)
    }
}
