//! Limits for hostile files, far above real programs (figures in the comments). Data beyond a limit
//! is skipped and noted, not an error.

/// Program headers per file: real files have 5 to 15, core files one per mapping.
pub(crate) const PROGRAM_HEADERS: usize = 1024;
/// Section headers per file: linked files have 25 to 60; ELF without extended numbering allows
/// 65,280.
pub(crate) const SECTION_HEADERS: usize = 65_536;
/// Bytes of section names: real files have under 1 KiB.
pub(crate) const SECTION_NAMES_BYTES: usize = 16 << 20;
/// Bytes per note section or segment.
pub(crate) const NOTE_BYTES: usize = 1 << 20;
/// Bytes of a debug link section.
pub(crate) const LINK_BYTES: usize = 8 << 10;
/// Symbols per table: Chromium has some 5 million.
pub(crate) const SYMBOLS: u64 = 64 << 20;
/// Bytes of symbols per read.
pub(crate) const SYMBOL_READ_BYTES: usize = 1 << 20;
/// Sized symbols around hits: really about one per hit.
pub(crate) const CANDIDATES: usize = 1 << 20;
/// Compared aliases per address.
pub(crate) const ALIASES: usize = 16;
/// Bytes per symbol name: C++ templates reach some 8 KiB.
pub(crate) const NAME_BYTES: usize = 16 << 10;
/// Bytes of a mangled name before demangling.
pub(crate) const MANGLED_BYTES: usize = 8 << 10;
/// Bytes of a demangled name, which is cut there.
pub(crate) const DEMANGLED_BYTES: usize = 16 << 10;
/// Depth of a mangled name's grammar.
pub(crate) const DEMANGLE_DEPTH: u32 = 96;
/// Bytes per PLT section: `librustc_driver` has 6 KiB.
pub(crate) const PLT_BYTES: usize = 16 << 20;
/// Relocations scanned for PLT names: `librustc_driver` has 250,000.
pub(crate) const RELOCATIONS: u64 = 16 << 20;
/// Bytes of a string table, read whole only for Arm's mapping symbols.
pub(crate) const STRING_TABLE_BYTES: usize = 1 << 30;
/// Bytes of a decompressed `.gnu_debugdata`: Fedora's largest have some 20 MiB.
pub(crate) const MINI_DEBUG_BYTES: usize = 256 << 20;
/// Memory of the xz decoder (its dictionary), in KiB: `xz -9` needs 65 MiB.
pub(crate) const XZ_MEMORY_KIB: u32 = 128 << 10;
/// Compression ratio: real debug sections reach 20 (xz of symbol tables 15); a bomb reaches 1,000
/// (zlib) and far more (xz, zstd).
pub(crate) const COMPRESSION_RATIO: u64 = 200;
/// Decompressed bytes allowed at any ratio.
pub(crate) const COMPRESSION_FREE_BYTES: u64 = 1 << 20;
/// log2 of the zstd window (`zstd --ultra -22` uses 27).
pub(crate) const ZSTD_WINDOW_LOG: u32 = 27;
/// Candidates checked per separate debug file.
pub(crate) const DEBUG_FILE_CANDIDATES: usize = 16;
/// Bytes of a debug file with a CRC32 (some 10 GB/s from the cache).
pub(crate) const CRC_BYTES: u64 = 4 << 30;
/// Links from a DWARF entry to its name: abstract origin, then specification, perhaps across units.
/// Real chains have 3.
pub(crate) const ORIGIN_LINKS: usize = 16;
/// Inlined functions at one address: real code reaches some 40.
pub(crate) const INLINE_DEPTH: usize = 256;
/// Steps (entries, line rows, ranges, units) per module's DWARF, some 10 to 50 ns each: the worst
/// file costs seconds. 2,000 hits in a program with 300 MB of debug information take under 30
/// million.
pub(crate) const DWARF_STEPS: u64 = 200_000_000;
/// Bytes per abbreviation table: real ones have 1 to 10 KiB.
pub(crate) const ABBREVIATIONS_BYTES: usize = 1 << 20;
/// Bytes of directories and files before a line program: real ones have 1 to 100 KiB.
pub(crate) const LINE_HEADER_BYTES: usize = 2 << 20;
/// Bytes of all symbol names of a module; later names are cut short.
pub(crate) const ALL_NAMES_BYTES: usize = 64 << 20;
/// Bytes of a name cut short.
pub(crate) const CUT_NAME_BYTES: usize = 64;
/// Bytes per path from DWARF.
pub(crate) const PATH_BYTES: usize = 4096;
/// Bytes per decompressed debug section.
pub(crate) const DEBUG_SECTION_BYTES: u64 = 2 << 30;
/// Maximum size of a kernel symbol: kallsyms has no sizes, and unrelated memory may follow a kernel
/// module's last symbol.
pub(crate) const KERNEL_SYMBOL_BYTES: u64 = 1 << 20;
