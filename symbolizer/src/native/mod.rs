//! Names, lines and inlined functions of native code at sampled addresses.
//!
//! ```text
//!   hits (file offsets) ── elf: program headers ──► addresses (svma)
//!        │                                            │
//!        │        .symtab, debug file, .gnu_debugdata, .dynsym
//!        │                                            ├──► table: one symbol per hit
//!        │        .plt* + relocations                 ├──► plt:   callee@plt
//!        │        .debug_*                            └──► dwarf: lines, inlined frames
//!        ▼
//!   Symbols: functions and lines, as file offsets again
//! ```
//!
//! [`Binaries`] and [`FileBytes`] open files; the driver implements them. Recordings store the
//! result, and reports show it.
//!
//! Files are untrusted: `limits.rs` caps counts and sizes, and a budget caps work on DWARF.
//! [`Symbols::note`] lists all omissions.
//!
//! Unknown to this module: names of code without symbols; inlined functions of split DWARF
//! (`.dwo`), but not their lines; the intended one of several functions that the linker folded.
//!
//! [`Symbols::note`]: vmscope_records::Symbols::note

mod assemble;
mod bytes;
mod debug_file;
mod decompress;
mod demangle;
mod dwarf;
mod elf;
mod fuzz;
mod kernel;
mod limits;
mod listing;
mod notes;
mod plt;
mod resolve;
mod survey;
mod table;

pub use bytes::{
    Binaries, DebugFile, DebugFileKind, DebugFileRequest, FileBytes, MemoryFile, ReadError,
};
#[doc(hidden)]
pub use fuzz::fuzz_elf;
pub use kernel::resolve_kernel;
pub use listing::{ListedSymbol, ListingError, functions_in_listing, symbols_in_listing};
pub use resolve::{ResolveOptions, resolve_all, resolve_module};
pub use survey::{DwarfPlace, Survey, survey};
