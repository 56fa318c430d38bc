//! Interpreter and runtime.

/// Code with classes of a collector as template arguments, which is not the collector's.
pub(super) const HEAP_ACCESS: &str = "
heap access
  AccessInternal AccessBarrier
JFR
  Jfr* JFR* ^jfr_ EventWriter* LeakProfiler ObjectSample* ReferenceToRootClosure EdgeStore
runtime for compiled code
  freeze* Freeze* Thaw* thaw* FreezeBase ThawBase ^Config
";

pub(super) const INTERPRETER: &str = "
runtime
  InterpreterRuntime* LinkResolver* Rewriter* Bytecode* Bytecodes* AbstractInterpreter*
  TemplateInterpreter InterpreterCodelet* ConstantPoolCache* CallInfo* Interpreter*
  ZeroInterpreter* MethodData MethodCounters* SignatureHandler* InvocationCounter*
  MaskFillerForNative* OopMapForCacheEntry* GenerateOopMap* CellTypeState* MethodData*
  ResolvedMethodEntry* ResolvedFieldEntry*
";

pub(super) const ROWS: &str = "
class loading
  ClassFileParser* ClassFileStream* ClassLoader* SystemDictionary* KlassFactory* Dictionary*
  PlaceholderTable* LoaderConstraint* ResolutionError* PackageEntry* ModuleEntry* Modules*
  ImageFileReader* FieldLayout* DefaultMethods* MethodFamily* ClassLoaderData* ClassPathZip*
  ClassHierarchy* VM_PopulateDump* MetaspaceShared* CDS* AOT* FileMapInfo* Archive* HeapShared*
  DumpTime* method_comparator* QuickSort* SystemDictionaryShared* Lambda* JImage* vmClasses*
  vmSymbols* FieldStream* FieldInfo* MethodBytecodeComparator*
class verification
  ClassVerifier* Verifier* StackMap* VerificationType* ErrorContext* StackMapTable*
  SignatureIterator* SignatureStream* Signature* Fingerprinter*
class linking and metadata
  InstanceKlass* Klass* ConstantPool* Method ConstMethod* klassVtable* klassItable* ArrayKlass*
  ObjArrayKlass* TypeArrayKlass* InstanceMirror* Metaspace* metaspace Metadata* Annotations*
  Dependency* InstanceRef* Method* MetaspaceArena* nmethodBucket* java_lang_Class*
  RecordComponent*
symbol and string tables
  Symbol java_lang_String* UTF8* UNICODE* AltHashing* CompactHashtable* Symbol* SymbolTable*
  StringTable* ConcurrentHashTable* BasicHashtable* ResourceHashtable*
safepoints and VM operations
  Safepoint* VMThread* VM_* VMOperation* Handshake* ThreadSafepointState* SafepointMechanism*
  VMError* WaitBarrier* HandshakeState*
deoptimisation
  Deoptimization* vframe* compiledVFrame* interpretedVFrame* javaVFrame* StackValue*
  UnrollBlock* ScopeDesc* ScopeValue* DeoptimizationScope* DebugInfoReadStream* PcDesc*
code cache
  CodeCache* CodeHeap* nmethod* NMethod* CompiledMethod* CodeBlob* CompiledIC* VtableStubs*
  VtableStub* AdapterHandler* InlineCache* ICStub* PcDescContainer* PcDescCache* RuntimeBlob*
  BufferBlob* ExceptionCache* CodeStrings* AdapterBlob* StubQueue* CompiledDirectCall*
  CompiledStaticCall* DependencyContext* I2CAdapter* ICacheStub* OopMap OopMapSet OopMapStream
  OopMapValue ImmutableOopMap*
runtime for compiled code
  SharedRuntime* OptoRuntime* Runtime1* StubRoutines* StackWatermark* StackOverflow* JavaCalls*
  JavaCallWrapper* JavaCallArguments* Exceptions* javaVFrame* BacktraceBuilder*
  java_lang_Throwable* java_lang_Stack* StackWalk* Continuation* frame RegisterMap*
  StackFrameStream* C1_Runtime*
locks
  ObjectMonitor* ObjectSynchronizer* Monitor* Mutex* os::PlatformEvent* Parker* BiasedLocking*
  LightweightSynchronizer* LockStack* ParkEvent* PlatformEvent* PlatformMutex* PlatformMonitor*
  Semaphore* PosixSemaphore* BasicLock* RTMLocking* PlatformParker* Thread::Spin* QuickSpin*
spinning
  SpinPause* SpinYield*
JNI
  jni_* JNI* JVM_* JNIHandles* JNIHandleBlock* checked_jni_* NativeLookup* jni* quicken_jni*
  Perf_* WB_* NativeEntryPoint*
Unsafe, reflection and method handles
  Unsafe_* MHN_* MethodHandles* java_lang_invoke* Reflection* CallSite*
JVMTI
  Jvmti* jvmti* JVMTI*
threads
  JavaThread* Threads* Thread OSThread* ThreadsSMR* ThreadsList* ThreadService* WatcherThread*
  PeriodicTask* NamedThread* SafeThreadsList* java_lang_Thread* ServiceThread*
memory of the VM itself
  Arena* Chunk* ResourceArea* resource_* AllocateHeap* FreeHeap* ReallocateHeap* os::malloc*
  os::realloc* os::free* MallocTracker* MallocSite* MemTracker* VirtualMemory* NMT*
  GuardedMemory* AnyObj* ResourceObj* ChunkPool*
monitoring
  Perf* StatSampler* Management* jmm_* MemoryService* MemoryPool* Events DCmd* AttachListener*
  LowMemory* SensorInfo* RuntimeService*
logging
  Log* outputStream* stringStream* fileStream* UL_* AsyncLog* bufferedStream* ttyLocker*
  defaultStream* LogImpl*
starting and stopping
  JVMFlag* Arguments* JDK_Version* init_globals* VM_Version* Universe* universe_* initialize_*
operating system
  os SignalHandling* PosixSignals* JVM_handle* Posix* OSContainer* Cgroup* CGroup* pd_* Linux*
copying
  Copy _Copy_* pd_* _mm_* memcpy* memset* memmove* strlen* strcmp* @plt
objects
  oopDesc* oopFactory* *oopDesc
handles
  HandleMark* methodHandle* constantPoolHandle* HandleArea*
bit maps
  BitMap* *BitMap
";
