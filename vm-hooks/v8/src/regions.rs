//! Which part of V8 (and of Node.js around it) a native function belongs to, by its
//! demangled name.
//!
//! Names are as `cpp_demangle` writes them: with parameters, and instances of function
//! templates with their return type in front (`void v8::internal::F<int>(int)`). Rules for
//! templates therefore search the whole name, not its beginning. Such rules also catch shared
//! templates rightly, since names of collectors and compilers are distinctive:
//! `BodyDescriptorBase::IteratePointers<v8::internal::ScavengeVisitor>` works for
//! the scavenger.
//!
//! Written for, and compared with samples of, Node.js 20, 22, 24 and 26 (V8 11.3, 12.4,
//! 13.6, 14.6). Embedded builtins have the same names there as in the dump, but `Builtins_`
//! instead of `Builtin:` in front, and handlers of bytecodes `Handler` behind.

use vmscope_process::region_table::{self, NamePattern, NamePattern::*, RegionEntry};
use vmscope_records::{ConstituentKind, Region, RegionRule};

/// Part of code that V8's compiler made when V8 was built.
pub const BUILTIN: &str = "builtin";
/// Part of the interpreter's code for one bytecode.
pub const BYTECODE_HANDLER: &str = "bytecode handler";
/// Part of code that calls bytecode handlers, or that handlers use for calls.
pub const INTERPRETER_ENTRY: &str = "interpreter entry";

/// Kind and part of a builtin that is no handler of bytecodes, by its name in V8.
#[must_use]
pub fn kind_of_builtin(name: &str) -> (ConstituentKind, &'static str) {
    if name.starts_with("Interpreter") {
        return (ConstituentKind::Interpreter, INTERPRETER_ENTRY);
    }
    let kind = match name {
        "JSEntry" | "JSConstructEntry" | "JSRunMicrotasksEntry" => ConstituentKind::Enilopmart,
        _ if name.contains("CEntry") || name.ends_with("Trampoline") => ConstituentKind::Trampoline,
        _ => ConstituentKind::Stub,
    };
    (kind, BUILTIN)
}

/// Rules for `modules`, the modules with linked V8. The last rule matches all remaining
/// functions.
#[must_use]
pub fn rules(modules: &[String]) -> Vec<RegionRule> {
    let tables: [&[RegionEntry]; 8] = [
        GENERATED, COMPILERS, COLLECTORS, PARSING, HEAP, VM, LIBRARIES, REST,
    ];
    region_table::rules(&tables.concat(), modules)
}

const HANDLERS: NamePattern = Between("Builtins_", "", "Handler");

/// Code that V8's own compiler made when V8 was built.
const GENERATED: &[RegionEntry] = &[
    (
        Between("Builtins_", "Builtins_Interpreter", ""),
        Region::Interpreter,
        INTERPRETER_ENTRY,
    ),
    // These end like handlers of bytecodes.
    (
        Between("Builtins_", "Builtins_AtomicsMutex", ""),
        Region::Generated,
        BUILTIN,
    ),
    (HANDLERS, Region::Interpreter, BYTECODE_HANDLER),
    (Between("Builtins_", "", ""), Region::Generated, BUILTIN),
];

const TURBOFAN: &str = "TurboFan";
const MAGLEV: &str = "Maglev";
const SPARKPLUG: &str = "Sparkplug";
const IGNITION: &str = "Ignition bytecode generation";
const LIFTOFF: &str = "Liftoff";
const WASM: &str = "WebAssembly";
const REGEXP: &str = "regexp compiler";
const ASSEMBLER: &str = "assembler";
const COMPILATION: &str = "compilation";

const COMPILERS: &[RegionEntry] = &[
    (Begins("v8::internal::maglev::"), Region::Compiler, MAGLEV),
    (
        Begins("v8::internal::compiler::"),
        Region::Compiler,
        TURBOFAN,
    ),
    (
        Begins("v8::internal::baseline::"),
        Region::Compiler,
        SPARKPLUG,
    ),
    (
        Begins("v8::internal::interpreter::"),
        Region::Compiler,
        IGNITION,
    ),
    (Holds("::Liftoff"), Region::Compiler, LIFTOFF),
    // Called by WebAssembly code as it runs.
    (Holds("_wrapper("), Region::Vm, RUNTIME),
    (Begins("v8::internal::wasm::WasmCode"), Region::Vm, RUNTIME),
    (
        Begins("v8::internal::wasm::WasmEngine"),
        Region::Vm,
        RUNTIME,
    ),
    (Begins("v8::internal::wasm::"), Region::Compiler, WASM),
    // The same namespaces in templates, after the return type.
    (Holds(" v8::internal::maglev::"), Region::Compiler, MAGLEV),
    (
        Holds(" v8::internal::compiler::"),
        Region::Compiler,
        TURBOFAN,
    ),
    (
        Holds(" v8::internal::baseline::"),
        Region::Compiler,
        SPARKPLUG,
    ),
    (
        Holds(" v8::internal::interpreter::"),
        Region::Compiler,
        IGNITION,
    ),
    (Holds(" v8::internal::wasm::"), Region::Compiler, WASM),
    (
        Holds("interpreter::BytecodeGenerator"),
        Region::Compiler,
        IGNITION,
    ),
    // Names too long to be demangled: Turboshaft's phases are templates of templates.
    (
        Begins("_ZN2v88internal8compiler"),
        Region::Compiler,
        TURBOFAN,
    ),
    (
        Begins("_ZNK2v88internal8compiler"),
        Region::Compiler,
        TURBOFAN,
    ),
    (Begins("_ZN2v88internal6maglev"), Region::Compiler, MAGLEV),
    (Begins("_ZN2v88internal4wasm"), Region::Compiler, WASM),
    (Holds("IrregexpInterpreter"), Region::Interpreter, "regexp"),
    (Holds("::RawMatch<"), Region::Interpreter, "regexp"),
    (Holds("RegExpCompiler"), Region::Compiler, REGEXP),
    (Holds("RegExpMacroAssembler"), Region::Compiler, REGEXP),
    (Holds("RegExpBytecode"), Region::Compiler, REGEXP),
    (Holds("RegExpParser"), Region::Compiler, REGEXP),
    (Holds("RegExpBuilder"), Region::Compiler, REGEXP),
    (Holds("RegExpTextBuilder"), Region::Compiler, REGEXP),
    (Holds("RegExpImpl::Compile"), Region::Compiler, REGEXP),
    (Holds("RegExpNode"), Region::Compiler, REGEXP),
    (Holds("::TextNode::"), Region::Compiler, REGEXP),
    (Holds("ChoiceNode::"), Region::Compiler, REGEXP),
    (Holds("::ActionNode::"), Region::Compiler, REGEXP),
    (Holds("::CharacterRange"), Region::Compiler, REGEXP),
    // The assembler of all compilers.
    (
        Begins("v8::internal::Assembler"),
        Region::Compiler,
        ASSEMBLER,
    ),
    (Holds("::MacroAssembler"), Region::Compiler, ASSEMBLER),
    (Holds("::SharedMacroAssembler"), Region::Compiler, ASSEMBLER),
    (Begins("v8::internal::Reloc"), Region::Compiler, ASSEMBLER),
    (
        Begins("v8::internal::Factory::CodeBuilder::"),
        Region::Compiler,
        ASSEMBLER,
    ),
    (
        Begins("v8::internal::Compiler::"),
        Region::Compiler,
        COMPILATION,
    ),
    (Holds("CompilationJob"), Region::Compiler, COMPILATION),
    (Holds("CompileDispatcher"), Region::Compiler, COMPILATION),
    (Holds("CompilationInfo"), Region::Compiler, COMPILATION),
];

const SCAVENGER: &str = "scavenger";
const MINOR: &str = "minor mark-sweep";
const CONCURRENT: &str = "concurrent marking";
const MARKING: &str = "mark-compact: marking";
const EVACUATION: &str = "mark-compact: evacuation";
const UPDATING: &str = "mark-compact: pointer updating";
const MARK_COMPACT: &str = "mark-compact";
const SWEEPER: &str = "sweeper";
const CPPGC: &str = "cppgc";

const COLLECTORS: &[RegionEntry] = &[
    // Reports about the heap, not its collection.
    (Holds("HeapSnapshot"), Region::Vm, PROFILER),
    (Holds("HeapProfiler"), Region::Vm, PROFILER),
    (Holds("V8HeapExplorer"), Region::Vm, PROFILER),
    (Begins("v8::internal::GCTracer"), Region::Gc, HEAP_PART),
    (Holds("Scaveng"), Region::Gc, SCAVENGER),
    (Holds("NewSpace::Evacuat"), Region::Gc, SCAVENGER),
    // Objects that the stack may refer to stay in their place.
    (Holds("Pinning"), Region::Gc, SCAVENGER),
    (Holds("ConcurrentMarking"), Region::Gc, CONCURRENT),
    (Holds("MinorMark"), Region::Gc, MINOR),
    (Holds("YoungGenerationM"), Region::Gc, MINOR),
    (Holds("Sweeper"), Region::Gc, SWEEPER),
    // Both collectors use this allocator for copies into the spaces.
    (
        Holds("EvacuationAllocator"),
        Region::Gc,
        "allocation for survivors",
    ),
    (Holds("UpdatingItem"), Region::Gc, UPDATING),
    (Holds("PointersUpdating"), Region::Gc, UPDATING),
    (Holds("UpdatingVisitor"), Region::Gc, UPDATING),
    (Holds("UpdatePointers"), Region::Gc, UPDATING),
    (Holds("UpdateSlot"), Region::Gc, UPDATING),
    (Holds("Evacuat"), Region::Gc, EVACUATION),
    (Holds("CompactionSpace"), Region::Gc, EVACUATION),
    (Holds("MigrateObject"), Region::Gc, EVACUATION),
    (Holds("MigratedSlot"), Region::Gc, EVACUATION),
    (Begins("cppgc::"), Region::Gc, CPPGC),
    (Holds(" cppgc::"), Region::Gc, CPPGC),
    (Begins("v8::internal::CppHeap"), Region::Gc, CPPGC),
    (Holds("UnifiedHeapMarking"), Region::Gc, CPPGC),
    (Holds("Marking"), Region::Gc, MARKING),
    (Holds("::ClearNonLive"), Region::Gc, MARKING),
    (Holds("WeakObjects"), Region::Gc, MARKING),
    (Holds("StringTableCleaner"), Region::Gc, MARKING),
    (Holds("MarkCompact"), Region::Gc, MARK_COMPACT),
];

const HEAP_PART: &str = "heap";
const ALLOCATION: &str = "allocation";
const ROOTS: &str = "roots and handles";
const SAFEPOINTS: &str = "safepoints";

/// The heap's own: asked after the collectors and compilers, whose functions may
/// name it.
const HEAP: &[RegionEntry] = &[
    (
        Begins("v8::internal::Heap::Allocate"),
        Region::Gc,
        ALLOCATION,
    ),
    (Holds("HeapAllocator"), Region::Gc, ALLOCATION),
    (
        Begins("v8::internal::MainAllocator"),
        Region::Gc,
        ALLOCATION,
    ),
    (Holds("LinearAllocationArea"), Region::Gc, ALLOCATION),
    (Begins("v8::internal::Heap::Iterate"), Region::Gc, ROOTS),
    (Begins("v8::internal::Heap::"), Region::Gc, HEAP_PART),
    (Begins("v8::internal::LocalHeap"), Region::Gc, HEAP_PART),
    (Begins("v8::internal::SemiSpace"), Region::Gc, HEAP_PART),
    (Begins("v8::internal::Paged"), Region::Gc, HEAP_PART),
    (Begins("v8::internal::NewSpace"), Region::Gc, HEAP_PART),
    (Holds("LargeObjectSpace"), Region::Gc, HEAP_PART),
    (Begins("v8::internal::FreeList"), Region::Gc, HEAP_PART),
    (Begins("v8::internal::Memory"), Region::Gc, HEAP_PART),
    (Begins("v8::internal::MutablePage"), Region::Gc, HEAP_PART),
    (Begins("v8::internal::NormalPage"), Region::Gc, HEAP_PART),
    (Begins("v8::internal::LargePage"), Region::Gc, HEAP_PART),
    (Begins("v8::internal::BasePage"), Region::Gc, HEAP_PART),
    (Holds("MemoryChunkIterator"), Region::Gc, HEAP_PART),
    (Holds("CreateFillerObject"), Region::Gc, HEAP_PART),
    (Holds("SlotSet"), Region::Gc, HEAP_PART),
    (Holds("RememberedSet"), Region::Gc, HEAP_PART),
    (Holds("Pretenuring"), Region::Gc, HEAP_PART),
    (Holds("ObjectStats"), Region::Gc, HEAP_PART),
    (Holds("SizeFromMap("), Region::Gc, HEAP_PART),
    (Holds("BodyDescriptor"), Region::Gc, HEAP_PART),
    (Begins("heap::base::"), Region::Gc, HEAP_PART),
    (Holds("IterateObjectCache"), Region::Gc, ROOTS),
    (Holds("RootVisitor"), Region::Gc, ROOTS),
    (Holds("ConservativeStackVisitor"), Region::Gc, ROOTS),
    (Holds("LeftTrimmedPointerVisitor"), Region::Gc, ROOTS),
    (Begins("v8::internal::GlobalHandles"), Region::Gc, ROOTS),
    (Begins("v8::internal::TracedHandles"), Region::Gc, ROOTS),
    (Holds("IsolateSafepoint"), Region::Gc, SAFEPOINTS),
    (Holds("SafepointScope"), Region::Gc, SAFEPOINTS),
];

const PARSE: &str = "parsing";

const PARSING: &[RegionEntry] = &[
    (Begins("v8::internal::Json"), Region::Vm, JSON),
    (Holds("::JsonParser"), Region::Vm, JSON),
    (Holds("::JsonStringifier"), Region::Vm, JSON),
    (Holds("::Parser"), Region::Vm, PARSE),
    (Holds("::PreParser"), Region::Vm, PARSE),
    (Begins("v8::internal::Preparse"), Region::Vm, PARSE),
    (Begins("v8::internal::Parse"), Region::Vm, PARSE),
    (Begins("v8::internal::Scanner"), Region::Vm, PARSE),
    (Holds("CharacterStream"), Region::Vm, PARSE),
    (Begins("v8::internal::Ast"), Region::Vm, PARSE),
    (Begins("v8::internal::Scope::"), Region::Vm, PARSE),
    (Holds(" v8::internal::Scope::"), Region::Vm, PARSE),
    (Begins("v8::internal::DeclarationScope"), Region::Vm, PARSE),
    (Begins("v8::internal::ClassScope"), Region::Vm, PARSE),
    (Begins("v8::internal::ModuleScope"), Region::Vm, PARSE),
    (Holds("ExpressionScope"), Region::Vm, PARSE),
    (Begins("v8::internal::Variable"), Region::Vm, PARSE),
    (Begins("v8::internal::FunctionLiteral"), Region::Vm, PARSE),
    (Begins("v8::internal::Literal"), Region::Vm, PARSE),
    (Begins("v8::internal::FuncNameInferrer"), Region::Vm, PARSE),
    (Begins("v8::internal::Rewriter"), Region::Vm, PARSE),
    (
        Begins("v8::internal::PerfectKeywordHash"),
        Region::Vm,
        PARSE,
    ),
];

const RUNTIME: &str = "runtime";
const JSON: &str = "JSON";
const NUMBERS: &str = "number conversion";
const PROFILER: &str = "inspector and profilers";
const IC: &str = "inline-cache misses";
const DEOPTIMIZER: &str = "deoptimizer";
const LOGGING: &str = "logging of code";
const SNAPSHOT: &str = "snapshot";
const PLATFORM: &str = "platform";

const VM: &[RegionEntry] = &[
    (Holds("PerfJitLogger"), Region::Vm, LOGGING),
    (Holds("PerfBasicLogger"), Region::Vm, LOGGING),
    (Holds("LogEventListener"), Region::Vm, LOGGING),
    (Holds("EventLogger"), Region::Vm, LOGGING),
    (Begins("v8::internal::V8FileLogger"), Region::Vm, LOGGING),
    (Begins("v8::internal::LogFile"), Region::Vm, LOGGING),
    (Holds("IC::"), Region::Vm, IC),
    (Holds("IC_Miss"), Region::Vm, IC),
    (Begins("v8::internal::FeedbackNexus"), Region::Vm, IC),
    (Begins("v8::internal::StubCache"), Region::Vm, IC),
    (Holds("Deoptimiz"), Region::Vm, DEOPTIMIZER),
    (Begins("v8::internal::Translat"), Region::Vm, DEOPTIMIZER),
    (Begins("node::inspector::"), Region::Vm, PROFILER),
    (Begins("node::NodePlatform"), Region::Vm, PLATFORM),
    (Begins("node::PerIsolatePlatform"), Region::Vm, PLATFORM),
    (Begins("node::"), Region::Vm, NODE),
    (Holds("Deserializer"), Region::Vm, SNAPSHOT),
    (Holds("::Snapshot"), Region::Vm, SNAPSHOT),
    (
        Begins("v8::internal::SerializedCodeData"),
        Region::Vm,
        SNAPSHOT,
    ),
    (Begins("v8::internal::Debug::"), Region::Vm, PROFILER),
    (Begins("v8::internal::CpuProfiler"), Region::Vm, PROFILER),
    (Begins("v8_inspector::"), Region::Vm, PROFILER),
    (Begins("v8_crdtp::"), Region::Vm, PROFILER),
    (Holds("RegExp"), Region::Vm, "regexp"),
    (Begins("v8::internal::DoubleTo"), Region::Vm, NUMBERS),
    (Begins("v8::internal::StringToDouble"), Region::Vm, NUMBERS),
    (Holds("InternalStringToDouble"), Region::Vm, NUMBERS),
    (Holds("v8::internal::"), Region::Vm, RUNTIME),
    (Begins("v8::bigint::"), Region::Vm, RUNTIME),
    (Begins("v8::base::ieee754::"), Region::Vm, RUNTIME),
    (Begins("v8::base::Bignum"), Region::Vm, NUMBERS),
    (Begins("v8::base::DiyFp::"), Region::Vm, NUMBERS),
    (Begins("v8::base::DoubleToAscii"), Region::Vm, NUMBERS),
    (Begins("v8::base::FastDtoa"), Region::Vm, NUMBERS),
    (Begins("v8::base::FastFixedDtoa"), Region::Vm, NUMBERS),
    (Begins("v8::base::FillDigits64"), Region::Vm, NUMBERS),
    (Begins("v8::base::FillFractionals"), Region::Vm, NUMBERS),
    (
        Begins("v8::base::GenerateCountedDigits"),
        Region::Vm,
        NUMBERS,
    ),
    (Begins("v8::base::PowersOfTenCache::"), Region::Vm, NUMBERS),
    (Begins("v8::base::RoundWeedCounted"), Region::Vm, NUMBERS),
    (Begins("v8::base::Strtod"), Region::Vm, NUMBERS),
    (Begins("v8::base::"), Region::Vm, PLATFORM),
    (Begins("absl::"), Region::Vm, PLATFORM),
    (Begins("v8::platform::"), Region::Vm, PLATFORM),
    (Begins("v8::"), Region::Vm, "V8 API"),
];

const NODE: &str = "node";
const UV: &str = "libuv";
const ICU: &str = "ICU";
const ZLIB: &str = "zlib";
const BROTLI: &str = "brotli";
const OPENSSL: &str = "OpenSSL";
const HTTP: &str = "HTTP";
const TEXT: &str = "UTF and URLs";
const DNS: &str = "c-ares";

/// What Node.js links into the same module.
const LIBRARIES: &[RegionEntry] = &[
    (Holds(" node::"), Region::Vm, NODE),
    (Begins("napi_"), Region::Vm, NODE),
    (Begins("v8impl::"), Region::Vm, NODE),
    (Begins("uv_"), Region::Vm, UV),
    (Begins("icu_"), Region::Vm, ICU),
    (Holds(" icu_"), Region::Vm, ICU),
    (Begins("uprv_"), Region::Vm, ICU),
    (Begins("ucnv_"), Region::Vm, ICU),
    (Begins("utrie"), Region::Vm, ICU),
    (Begins("ures_"), Region::Vm, ICU),
    (Begins("ucol_"), Region::Vm, ICU),
    (Begins("deflate"), Region::Vm, ZLIB),
    (Begins("inflate"), Region::Vm, ZLIB),
    (Begins("longest_match"), Region::Vm, ZLIB),
    (Begins("fill_window"), Region::Vm, ZLIB),
    (Begins("compress_block"), Region::Vm, ZLIB),
    (Begins("build_tree"), Region::Vm, ZLIB),
    (Begins("pqdownheap"), Region::Vm, ZLIB),
    (Begins("_tr_"), Region::Vm, ZLIB),
    (Begins("send_tree"), Region::Vm, ZLIB),
    (Begins("scan_tree"), Region::Vm, ZLIB),
    (Begins("crc32"), Region::Vm, ZLIB),
    (Begins("adler32"), Region::Vm, ZLIB),
    (Begins("Brotli"), Region::Vm, BROTLI),
    (Begins("llhttp_"), Region::Vm, HTTP),
    (Begins("nghttp2_"), Region::Vm, HTTP),
    (Begins("simdutf::"), Region::Vm, TEXT),
    (Begins("ada::"), Region::Vm, TEXT),
    (Begins("ares_"), Region::Vm, DNS),
    (Begins("ossl_"), Region::Vm, OPENSSL),
    (Begins("OSSL_"), Region::Vm, OPENSSL),
    (Begins("OPENSSL_"), Region::Vm, OPENSSL),
    (Begins("CRYPTO_"), Region::Vm, OPENSSL),
    (Begins("EVP_"), Region::Vm, OPENSSL),
    (Begins("evp_"), Region::Vm, OPENSSL),
    (Begins("SSL_"), Region::Vm, OPENSSL),
    (Begins("ssl"), Region::Vm, OPENSSL),
    (Begins("tls"), Region::Vm, OPENSSL),
    (Begins("X509"), Region::Vm, OPENSSL),
    (Begins("x509"), Region::Vm, OPENSSL),
    (Begins("ASN1_"), Region::Vm, OPENSSL),
    (Begins("asn1_"), Region::Vm, OPENSSL),
    (Begins("BIO_"), Region::Vm, OPENSSL),
    (Begins("PEM_"), Region::Vm, OPENSSL),
    (Begins("BN_"), Region::Vm, OPENSSL),
    (Begins("bn_"), Region::Vm, OPENSSL),
    (Begins("RSA_"), Region::Vm, OPENSSL),
    (Begins("EC"), Region::Vm, OPENSSL),
    (Begins("ec"), Region::Vm, OPENSSL),
    (Begins("sha"), Region::Vm, OPENSSL),
    (Begins("SHA"), Region::Vm, OPENSSL),
    (Begins("aes"), Region::Vm, OPENSSL),
    (Begins("_aes"), Region::Vm, OPENSSL),
    (Begins("gcm_"), Region::Vm, OPENSSL),
];

/// All else of the module.
const REST: &[RegionEntry] = &[(Any, Region::Vm, "")];

#[cfg(test)]
mod tests;
