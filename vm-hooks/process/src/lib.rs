//! A virtual machine's process as seen from outside.
//!
//! Adapters read a VM without its cooperation: its memory ([`Memory`]: live, from a core file, or
//! fake), its mappings ([`MapEntry`]), the mapped files, opened safely ([`Root`], [`ModuleFile`],
//! [`Modules`]), and their symbols ([`ElfFile`]). A VM family implements the [`Adapter`] trait and
//! gets a [`ProcessView`].
//!
//! All data is untrusted: every length, count and offset is checked against a stated limit before
//! use, and impossible values are typed errors.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test that fails is to panic"
    )
)]

mod adapter;
mod adapter_error;
mod attach;
mod cadence;
mod consistent;
mod core_file;
mod core_memory;
mod cpu_time;
mod elf;
mod elf_file;
mod elf_memory;
mod file;
mod keys;
mod listing;
mod live;
mod loaded;
mod maps;
mod memory;
mod modules;
mod opening;
pub mod pages;
mod parallel;
mod poll;
mod process;
pub mod region_table;
mod root;
pub mod testing;
mod unwind;
mod zone;

pub use adapter::{
    Adapter, AdapterFamily, EnvironmentChange, FilesReason, Launch, Recognised, SampleNeeds,
    recognise,
};
pub use adapter_error::{AdapterError, known};
pub use attach::{
    AttachError, ProcessFacts, ProgramStamp, ThreadInfo, examine, file_name, list_threads,
    processes_named,
};
pub use cadence::Cadence;
pub use consistent::read_consistently;
pub use core_file::{CoreFile, CoreInfo, CoreThread};
pub use cpu_time::cpu_time;
pub use elf::{
    ElfError, ElfHeader, HEADER_BYTES, MAX_NOTE_BYTES, MAX_SECTIONS, MAX_SEGMENTS, RawSymbol,
    Section, Segment, SymbolKind, parse_build_id, parse_dynamic, parse_header, parse_sections,
    parse_segments, parse_symbols,
};
pub use elf_file::{ElfFile, LoadBias, Symbol};
pub use elf_memory::{build_id_in_memory, symbols_in_memory};
pub use file::{ModuleFile, ReadAt, open_magic_link};
pub use keys::KeySource;
pub use listing::{quoted, shortened};
pub use live::LiveMemory;
pub use loaded::{LoadedModule, SymbolError};
pub use maps::{MAX_MAPPINGS, MapEntry, Maps, MapsError, parse_line, parse_maps, read_maps};
pub use memory::{Memory, MemoryError, read_words};
pub use modules::{MAX_MODULES, Modules, Sighting};
pub use poll::{MAX_RECORDS_OF_A_POLL, MAX_TOUCHED_OF_A_POLL, Poll};
pub use process::{Environment, ProcessView, monotonic_time, own_root, wall_time};
pub use root::Root;
pub use unwind::{
    CodeRule, CopiedStack, Entered, Frame, FramePointers, FrameRegisters, InterpretedFrames, Jumps,
    KeptFramePointers, MAX_CALL_BYTES, MachineCode, OtherFrame, Piece, Pieces, Run, Unwinder,
    Unwound, WordRead, behind_first_call, ends_with_call, entered, sampled_register,
};
pub use zone::{CodeZone, SeenCode};
