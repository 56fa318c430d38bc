//! The interpreter and the rest of the VM.

use super::Row;
use vmscope_records::Region::{Interpreter, Vm};

/// Mutators' loads and stores through a collector's barriers, by substring.
pub(super) const HEAP_ACCESS: &[Row] = &[
    Row {
        begins: "",
        holds: "AccessInternal:: AccessBarrier<",
        region: Vm,
        part: "heap access",
    },
    Row {
        begins: "Jfr JFR jfr_",
        holds: "EventWriter",
        region: Vm,
        part: "JFR",
    },
];

pub(super) const INTERPRETER: &[Row] = &[Row {
    begins: "InterpreterRuntime LinkResolver Rewriter Bytecode Bytecodes AbstractInterpreter \
         TemplateInterpreter:: InterpreterCodelet ConstantPoolCache CallInfo Interpreter \
         ZeroInterpreter MethodData:: MethodCounters SignatureHandler InvocationCounter \
         MaskFillerForNative OopMapForCacheEntry GenerateOopMap CellTypeState MethodData \
         ResolvedMethodEntry ResolvedFieldEntry",
    holds: "",
    region: Interpreter,
    part: "runtime",
}];

pub(super) const ROWS: &[Row] = &[
    Row {
        begins: "ClassFileParser ClassFileStream ClassLoader SystemDictionary KlassFactory Dictionary \
         PlaceholderTable LoaderConstraint ResolutionError PackageEntry ModuleEntry Modules \
         ImageFileReader FieldLayout DefaultMethods MethodFamily ClassLoaderData ClassPathZip \
         ClassHierarchy VM_PopulateDump MetaspaceShared CDS AOT FileMapInfo Archive \
         HeapShared DumpTime method_comparator QuickSort SystemDictionaryShared Lambda JImage \
         vmClasses vmSymbols FieldStream FieldInfo MethodBytecodeComparator",
        holds: "",
        region: Vm,
        part: "class loading",
    },
    Row {
        begins: "ClassVerifier Verifier StackMap VerificationType ErrorContext StackMapTable \
         SignatureIterator SignatureStream Signature Fingerprinter",
        holds: "",
        region: Vm,
        part: "class verification",
    },
    Row {
        begins: "InstanceKlass Klass ConstantPool Method:: ConstMethod klassVtable klassItable \
         ArrayKlass ObjArrayKlass TypeArrayKlass InstanceMirror Metaspace metaspace:: \
         Metadata Annotations Dependency InstanceRef Method MetaspaceArena nmethodBucket \
         java_lang_Class RecordComponent",
        holds: "",
        region: Vm,
        part: "class linking and metadata",
    },
    Row {
        begins: "Symbol:: java_lang_String UTF8 UNICODE AltHashing CompactHashtable Symbol",
        holds: "SymbolTable StringTable ConcurrentHashTable BasicHashtable ResourceHashtable",
        region: Vm,
        part: "symbol and string tables",
    },
    Row {
        begins: "Safepoint VMThread VM_ VMOperation Handshake ThreadSafepointState SafepointMechanism \
         VMError WaitBarrier HandshakeState",
        holds: "WaitBarrier",
        region: Vm,
        part: "safepoints and VM operations",
    },
    Row {
        begins: "Deoptimization vframe compiledVFrame interpretedVFrame javaVFrame StackValue \
         UnrollBlock ScopeDesc ScopeValue DeoptimizationScope DebugInfoReadStream PcDesc",
        holds: "",
        region: Vm,
        part: "deoptimisation",
    },
    Row {
        begins: "CodeCache CodeHeap nmethod NMethod CompiledMethod CodeBlob CompiledIC VtableStubs \
         VtableStub AdapterHandler InlineCache ICStub PcDescContainer PcDescCache RuntimeBlob \
         BufferBlob ExceptionCache CodeStrings AdapterBlob StubQueue CompiledDirectCall \
         CompiledStaticCall DependencyContext I2CAdapter ICacheStub",
        holds: "",
        region: Vm,
        part: "code cache",
    },
    Row {
        begins: "SharedRuntime OptoRuntime Runtime1 StubRoutines StackWatermark StackOverflow \
         JavaCalls JavaCallWrapper JavaCallArguments Exceptions javaVFrame BacktraceBuilder \
         java_lang_Throwable java_lang_Stack StackWalk freeze Freeze Thaw thaw Continuation \
         frame:: RegisterMap StackFrameStream C1_Runtime",
        holds: "FreezeBase ThawBase",
        region: Vm,
        part: "runtime for compiled code",
    },
    Row {
        begins: "ObjectMonitor ObjectSynchronizer Monitor Mutex os::PlatformEvent Parker \
         BiasedLocking LightweightSynchronizer LockStack ParkEvent PlatformEvent \
         PlatformMutex PlatformMonitor Semaphore PosixSemaphore BasicLock RTMLocking \
         PlatformParker Thread::Spin QuickSpin",
        holds: "",
        region: Vm,
        part: "locks",
    },
    Row {
        begins: "SpinPause SpinYield",
        holds: "",
        region: Vm,
        part: "spinning",
    },
    Row {
        begins: "jni_ JNI JVM_ JNIHandles JNIHandleBlock checked_jni_ NativeLookup jni quicken_jni \
         Perf_ WB_ NativeEntryPoint",
        holds: "",
        region: Vm,
        part: "JNI",
    },
    Row {
        begins: "Unsafe_ MHN_ MethodHandles java_lang_invoke Reflection CallSite",
        holds: "",
        region: Vm,
        part: "Unsafe, reflection and method handles",
    },
    Row {
        begins: "Jvmti jvmti JVMTI",
        holds: "",
        region: Vm,
        part: "JVMTI",
    },
    Row {
        begins: "JavaThread Threads Thread:: OSThread ThreadsSMR ThreadsList ThreadService \
         WatcherThread PeriodicTask NamedThread SafeThreadsList java_lang_Thread \
         ServiceThread",
        holds: "",
        region: Vm,
        part: "threads",
    },
    Row {
        begins: "Arena Chunk ResourceArea resource_ AllocateHeap FreeHeap ReallocateHeap os::malloc \
         os::realloc os::free MallocTracker MallocSite MemTracker VirtualMemory NMT \
         GuardedMemory AnyObj ResourceObj ChunkPool",
        holds: "",
        region: Vm,
        part: "memory of the VM itself",
    },
    Row {
        begins: "Perf StatSampler Management jmm_ MemoryService MemoryPool Events:: DCmd \
         AttachListener LowMemory SensorInfo RuntimeService",
        holds: "",
        region: Vm,
        part: "monitoring",
    },
    Row {
        begins: "Log outputStream stringStream fileStream UL_ AsyncLog bufferedStream ttyLocker \
         defaultStream",
        holds: "LogImpl",
        region: Vm,
        part: "logging",
    },
    Row {
        begins: "JVMFlag Arguments JDK_Version init_globals VM_Version Universe universe_ initialize_",
        holds: "",
        region: Vm,
        part: "starting and stopping",
    },
    Row {
        begins: "os:: SignalHandling PosixSignals JVM_handle Posix OSContainer Cgroup CGroup pd_ \
         Linux",
        holds: "",
        region: Vm,
        part: "operating system",
    },
    Row {
        begins: "Copy:: _Copy_ pd_ _mm_",
        holds: "memcpy memset memmove strlen strcmp @plt",
        region: Vm,
        part: "copying",
    },
    Row {
        begins: "oopDesc oopFactory",
        holds: "oopDesc::",
        region: Vm,
        part: "objects",
    },
    Row {
        begins: "HandleMark methodHandle constantPoolHandle HandleArea",
        holds: "",
        region: Vm,
        part: "handles",
    },
    Row {
        begins: "BitMap",
        holds: "BitMap::",
        region: Vm,
        part: "bit maps",
    },
];
