//! Names, lines and inlined functions of native code, for exactly the addresses
//! that were hit.
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
//! Nothing here opens a file: [`Binaries`] and [`FileBytes`] do, and belong to the
//! driver. The result is what a recording stores to be self-contained, and what a
//! report shows, so that there is one path for both.
//!
//! Files come from outside and are not believed: every count and size is checked
//! against the file and against the limits in `limits.rs`, and work on DWARF has a
//! budget. What is left out is said in [`Symbols::note`].
//!
//! What this can't tell: names of code without symbols, obviously; the inlined
//! functions of split DWARF (`.dwo`), whose lines are known all the same; and which
//! of several functions that the linker folded into one was meant.
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
pub use resolve::{ResolveOptions, resolve_all, resolve_module};
pub use survey::{DwarfPlace, Survey, survey};
