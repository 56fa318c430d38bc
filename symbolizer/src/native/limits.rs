//! How much of a hostile file is believed. Each limit is far above what real
//! programs have (the figures in the comments), and none is an error of its own:
//! what lies past it is left out and the note says so.

/// Program headers of one file. Real ones have 5 to 15, core files one per mapping.
pub(crate) const PROGRAM_HEADERS: usize = 1024;
/// Section headers of one file. Linked files have 25 to 60; the limit of ELF
/// without extended numbering is 65,280.
pub(crate) const SECTION_HEADERS: usize = 65_536;
/// Bytes of section names. Real ones have under 1 KiB.
pub(crate) const SECTION_NAMES_BYTES: usize = 16 << 20;
/// Bytes of one note section or segment.
pub(crate) const NOTE_BYTES: usize = 1 << 20;
/// Bytes of one section that only names another file (debug links).
pub(crate) const LINK_BYTES: usize = 8 << 10;
/// Symbols of one table. A Chromium with symbols has some 5 million.
pub(crate) const SYMBOLS: u64 = 64 << 20;
/// Bytes of symbols read at a time.
pub(crate) const SYMBOL_READ_BYTES: usize = 1 << 20;
/// Sized symbols kept because they contain a hit. Real: about one per hit.
pub(crate) const CANDIDATES: usize = 1 << 20;
/// Aliases of one address among which the best name is chosen.
pub(crate) const ALIASES: usize = 16;
/// Bytes of one symbol's name. C++ templates reach some 8 KiB.
pub(crate) const NAME_BYTES: usize = 16 << 10;
/// Bytes of a mangled name that is demangled.
pub(crate) const MANGLED_BYTES: usize = 8 << 10;
/// Bytes of a demangled name; it is cut there.
pub(crate) const DEMANGLED_BYTES: usize = 16 << 10;
/// Depth of a mangled name's grammar.
pub(crate) const DEMANGLE_DEPTH: u32 = 96;
/// Bytes of one PLT section. `librustc_driver` has 6 KiB.
pub(crate) const PLT_BYTES: usize = 16 << 20;
/// Relocations read for PLT names. `librustc_driver` has 250,000.
pub(crate) const RELOCATIONS: u64 = 16 << 20;
/// Bytes of a string table that is read as a whole (only for Arm's mapping symbols).
pub(crate) const STRING_TABLE_BYTES: usize = 1 << 30;
/// Bytes of a decompressed `.gnu_debugdata`. Fedora's largest are some 20 MiB.
pub(crate) const MINI_DEBUG_BYTES: usize = 256 << 20;
/// KiB that the xz decoder may use (its dictionary). `xz -9` needs 65 MiB.
pub(crate) const XZ_MEMORY_KIB: u32 = 128 << 10;
/// Decompressed to compressed bytes. Real debug sections reach 20 (xz of symbol
/// tables 15); a bomb reaches 1,000 (zlib) and far more (xz, zstd).
pub(crate) const COMPRESSION_RATIO: u64 = 200;
/// Bytes that may be decompressed whatever the ratio.
pub(crate) const COMPRESSION_FREE_BYTES: u64 = 1 << 20;
/// log2 of the zstd window that is accepted (`zstd --ultra -22` uses 27).
pub(crate) const ZSTD_WINDOW_LOG: u32 = 27;
/// Candidate files for one separate debug file that are looked at.
pub(crate) const DEBUG_FILE_CANDIDATES: usize = 16;
/// Bytes of a debug file whose CRC32 is computed (at some 10 GB/s from the cache).
pub(crate) const CRC_BYTES: u64 = 4 << 30;
/// Links from a DWARF entry to where its name is: abstract origin, then
/// specification, each perhaps in another unit. Real chains have 3.
pub(crate) const ORIGIN_LINKS: usize = 16;
/// Inlined functions at one address. Real ones reach some 40.
pub(crate) const INLINE_DEPTH: usize = 256;
/// Steps (entries, line rows, ranges, units) spent on one module's DWARF; some 10
/// to 50 ns each, so that the worst file costs seconds. 2,000 hits in a program of
/// 300 MB of debug information take under 30 million.
pub(crate) const DWARF_STEPS: u64 = 200_000_000;
/// Bytes of one table of abbreviations. Real ones have 1 to 10 KiB.
pub(crate) const ABBREVIATIONS_BYTES: usize = 1 << 20;
/// Bytes of the directories and files before one line program. Real ones have 1 to
/// 100 KiB.
pub(crate) const LINE_HEADER_BYTES: usize = 2 << 20;
/// Bytes of all symbols' names of one module; later names are cut short.
pub(crate) const ALL_NAMES_BYTES: usize = 64 << 20;
/// Bytes of a name that is cut short.
pub(crate) const CUT_NAME_BYTES: usize = 64;
/// Bytes of one path made from DWARF.
pub(crate) const PATH_BYTES: usize = 4096;
/// Bytes of one debug section, decompressed.
pub(crate) const DEBUG_SECTION_BYTES: u64 = 2 << 30;
/// How far a kernel symbol reaches at most: kallsyms has no sizes, and after the
/// last symbol of a kernel module anything may come.
pub(crate) const KERNEL_SYMBOL_BYTES: u64 = 1 << 20;
