use vmscope_records::{FunctionName, Region, ThreadRole};

use super::rules;
use crate::testing::place_of_function;

#[test]
fn functions_of_node_fall_into_their_parts() {
    // Symbols of Node.js 20, 24 and 26 as cpp_demangle writes them.
    let table: &[(&str, Region, &str)] = &[
        (
            "v8::base::FastDtoa(double, v8::base::FastDtoaMode, int, v8::base::Vector<char>, int*, int*)",
            Region::Vm,
            "number conversion",
        ),
        (
            "v8::internal::DoubleToStringView(double, v8::base::Vector<char>)",
            Region::Vm,
            "number conversion",
        ),
        ("v8::base::Mutex::Lock()", Region::Vm, "platform"),
        (
            "v8::internal::Scavenger::Process(v8::JobDelegate*)",
            Region::Gc,
            "scavenger",
        ),
        (
            "heap::base::SlotCallbackResult v8::internal::Scavenger::ScavengeObject<v8::internal::FullHeapObjectSlot>(v8::internal::FullHeapObjectSlot, v8::internal::HeapObject)",
            Region::Gc,
            "scavenger",
        ),
        (
            "void v8::internal::BodyDescriptorBase::IteratePointers<v8::internal::ScavengeVisitor>(v8::internal::HeapObject, int, int, v8::internal::ScavengeVisitor*)",
            Region::Gc,
            "scavenger",
        ),
        (
            "v8::internal::SemiSpaceNewSpace::EvacuatePrologue()",
            Region::Gc,
            "scavenger",
        ),
        (
            "v8::internal::ConcurrentMarking::RunMajor(v8::JobDelegate*, v8::base::EnumSet<v8::internal::CodeFlushMode, int>, unsigned int, bool)",
            Region::Gc,
            "concurrent marking",
        ),
        (
            "v8::internal::MarkCompactCollector::ProcessMarkingWorklist(unsigned long, v8::internal::MarkCompactCollector::MarkingWorklistProcessingMode)",
            Region::Gc,
            "mark-compact: marking",
        ),
        (
            "v8::internal::MarkCompactCollector::ClearWeakReferences()",
            Region::Gc,
            "mark-compact",
        ),
        (
            "v8::internal::(anonymous namespace)::RememberedSetUpdatingItem::Process()",
            Region::Gc,
            "mark-compact: pointer updating",
        ),
        (
            "v8::internal::Evacuator::RawEvacuatePage(v8::internal::MemoryChunk*, long*)",
            Region::Gc,
            "mark-compact: evacuation",
        ),
        (
            "v8::internal::Sweeper::RawSweep(v8::internal::Page*, v8::internal::FreeSpaceTreatmentMode, v8::internal::Sweeper::SweepingMode)",
            Region::Gc,
            "sweeper",
        ),
        (
            "v8::internal::HeapObject::SizeFromMap(v8::internal::Map) const",
            Region::Gc,
            "heap",
        ),
        (
            "v8::internal::HeapObject::SafeSizeFromMap(v8::internal::Tagged<v8::internal::Map>) const",
            Region::Gc,
            "heap",
        ),
        (
            "v8::internal::OldGenerationMemoryChunkIterator::next()",
            Region::Gc,
            "heap",
        ),
        (
            "v8::internal::OldLargeObjectSpace::AllocateRaw(v8::internal::LocalHeap*, int)",
            Region::Gc,
            "heap",
        ),
        (
            "v8::internal::(anonymous namespace)::PreciseObjectPinningVisitor::HandlePointer(v8::internal::FullObjectSlot)",
            Region::Gc,
            "scavenger",
        ),
        (
            "v8::internal::InternalizedStringTableCleaner::VisitRootPointers(v8::internal::Root, char const*, v8::internal::OffHeapObjectSlot, v8::internal::OffHeapObjectSlot)",
            Region::Gc,
            "mark-compact: marking",
        ),
        (
            "cppgc::internal::Sweeper::Start(cppgc::internal::SweepingConfig)",
            Region::Gc,
            "sweeper",
        ),
        (
            "cppgc::internal::PageBackend::Lookup(unsigned char const*) const",
            Region::Gc,
            "cppgc",
        ),
        (
            "v8::internal::HeapSnapshotGenerator::GenerateSnapshot()",
            Region::Vm,
            "inspector and profilers",
        ),
        (
            "v8::internal::compiler::GraphReducer::ReduceTop()",
            Region::Compiler,
            "TurboFan",
        ),
        (
            "void v8::internal::compiler::(anonymous namespace)::UpdateLiveness<true>(int)",
            Region::Compiler,
            "TurboFan",
        ),
        (
            "_ZN2v88internal8compiler10turboshaft12GraphVisitorINS2_27StringEscapeAnalysis",
            Region::Compiler,
            "TurboFan",
        ),
        (
            "v8::internal::maglev::MaglevGraphBuilder::Build()",
            Region::Compiler,
            "Maglev",
        ),
        (
            "v8::internal::baseline::BaselineCompiler::VisitSingleBytecode()",
            Region::Compiler,
            "Sparkplug",
        ),
        (
            "v8::internal::interpreter::BytecodeGenerator::VisitCall(v8::internal::Call*)",
            Region::Compiler,
            "Ignition bytecode generation",
        ),
        (
            "v8::internal::RegExpMacroAssemblerX64::GetCode(v8::internal::Handle<v8::internal::String>)",
            Region::Compiler,
            "regexp compiler",
        ),
        (
            "v8::internal::RegExpGlobalCache::FetchNext()",
            Region::Vm,
            "regexp",
        ),
        (
            "v8::internal::wasm::ModuleDecoderImpl::DecodeExportSection()",
            Region::Compiler,
            "WebAssembly",
        ),
        ("v8::internal::Scanner::Next()", Region::Vm, "parsing"),
        (
            "v8::internal::ParserBase<v8::internal::PreParser>::ParsePrimaryExpression()",
            Region::Vm,
            "parsing",
        ),
        (
            "v8::internal::JsonParser<unsigned char>::ScanJsonString(bool)",
            Region::Vm,
            "JSON",
        ),
        (
            "v8::internal::Runtime_AllocateInYoungGeneration(int, unsigned long*, v8::internal::Isolate*)",
            Region::Vm,
            "runtime",
        ),
        (
            "v8::internal::LoadIC::Load(v8::internal::Handle<v8::internal::Object>, v8::internal::Handle<v8::internal::Name>, bool, v8::internal::Handle<v8::internal::Object>)",
            Region::Vm,
            "inline-cache misses",
        ),
        (
            "v8::internal::Runtime_DefineNamedOwnIC_Miss(int, unsigned long*, v8::internal::Isolate*)",
            Region::Vm,
            "inline-cache misses",
        ),
        (
            "v8::internal::Deoptimizer::GetDeoptimizationEntry(v8::internal::DeoptimizeKind)",
            Region::Vm,
            "deoptimizer",
        ),
        (
            "v8::internal::LinuxPerfJitLogger::LogWriteBytes(char const*, int)",
            Region::Vm,
            "logging of code",
        ),
        ("uv__io_poll", Region::Vm, "libuv"),
        (
            "node::StreamBase::WriteString(v8::FunctionCallbackInfo<v8::Value> const&)",
            Region::Vm,
            "node",
        ),
        ("icu_78::UnicodeSet::add(int)", Region::Vm, "ICU"),
        ("longest_match", Region::Vm, "zlib"),
        ("OPENSSL_LH_retrieve", Region::Vm, "OpenSSL"),
        ("llhttp__internal_execute", Region::Vm, "HTTP"),
        ("_start", Region::Vm, ""),
    ];
    for (name, region, part) in table {
        let (got_region, got_part, _) = place_of_function(name).unwrap();
        assert_eq!((got_region, &*got_part), (*region, *part), "{name}");
    }
}

#[test]
fn the_rules_are_few_and_the_last_takes_all() {
    let rules = rules(&["node".to_owned(), "libnode.so.115".to_owned()]);
    assert!(rules.len() < 2 * 260, "{}", rules.len());
    for module in ["node", "libnode.so.115"] {
        let own = rules.iter().rfind(|rule| rule.module == module).unwrap();
        assert_eq!(
            own.apply(FunctionName::new("anything"), ThreadRole::Other),
            Some("anything")
        );
        assert_eq!(own.region, Region::Vm);
    }
}
