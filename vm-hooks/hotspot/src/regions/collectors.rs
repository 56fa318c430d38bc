//! The collectors.

pub(super) const ROWS: &str = "
# G1, specific names first.
G1 full collection
  G1Full* G1MarkAndPush* G1Adjust* G1Compact* G1PrepareCompact* G1FollowStack* G1MarkObject*
  G1CMSatb G1CalculatePointersClosure G1SerialRebuild* G1VerifyOops* G1DeterminedCompaction*
G1 remembered sets
  G1Rebuild* G1RemSet* G1CardSet* G1ConcurrentRefine* G1Refine* G1DirtyCard* DirtyCardQueue*
  G1ScanCard* G1MergeHeapRoots* G1MergeCard* G1ScanHR* HeapRegionRemSet* G1HeapRegionRemSet*
  OtherRegionsTable SparsePRT* PerRegionTable G1HotCard* G1ScanObjsDuring* G1ScanRSForRegion*
  G1CodeRootSet* G1ClearCardTable* CodeRootSetTable RSHashTable* G1ConcRefine* G1FromCardCache
G1 marking
  G1CM* G1ConcurrentMark* G1RootRegionScan* G1SATB* SATBMarkQueue* SATBBuffer* G1MarkPromoted*
  G1OnRegionClosure G1UpdateRegion* G1UpdateRemSetTracking* G1RegionMark* G1ReclaimEmpty*
  G1PrintRegionLiveness* G1AggregateCount* G1FinalizeLiveData* G1ClearBitMap* G1CreateLiveData*
  G1ObjectCountIsAlive* ConcurrentMarkThread
G1 young evacuation
  G1ParScan* G1ParCopy* G1ParEvacuat* G1Evac* G1ScanEvacuatedObj* G1YoungCollector* G1YoungGC*
  G1RootProcessor* G1STW* G1PLAB* G1ScanClosureBase G1FreeCollectionSet* FreeCSet* G1FreeCSet*
  G1FreeHumongous* G1PostEvac* G1PreEvac* G1KeepAlive* G1CopyingKeepAlive* RemoveSelfForwardPtr*
  G1RemoveSelfForward* RemoveSelfPointer* G1Allocator* G1CollectionSet* CollectionSetChooser
  G1SurvRate* G1RedirtyCards* G1RedirtyLogged* RedirtyLoggedCard* G1ParTask* G1ResetSomeRegion*
  G1CLDScan* G1EagerlyReclaim* G1PrepareEvacuation* G1PrepareRegions*
G1
  VM_G1* G1* HeapRegion HeapRegionManager HeapRegionSet* HeapRegionType HeapRegionTracer
  HeapRegionClosure HeapRegionClaimer HeapRegionIterator FreeRegionList HumongousRegionSet*
  MutatorAllocRegion SurvivorGCAllocRegion OldGCAllocRegion
# Shenandoah.
Shenandoah marking
  ShenandoahMark* ShenandoahConcurrentMark* ShenandoahSTWMark* ShenandoahInitMark*
  ShenandoahFinalMark* ShenandoahSATB* ShenandoahObjToScan* ShenandoahFlushSATB*
Shenandoah updating references
  ShenandoahUpdate* ShenandoahConcUpdate* ShenandoahConcurrentUpdate* ShenandoahInitUpdate*
  ShenandoahFinalUpdate* VM_ShenandoahInitUpdateRefs VM_ShenandoahFinalUpdateRefs
Shenandoah full collection
  ShenandoahFull* ShenandoahMarkCompact ShenandoahCompact* ShenandoahPrepareForCompact*
  ShenandoahPrepareForMark* ShenandoahPrepareForGenerationalCompact* ShenandoahAdjust*
  VM_ShenandoahFullGC
Shenandoah evacuation
  ShenandoahConcurrentEvac* ShenandoahEvac* ShenandoahGenerationalEvac* ShenandoahSTWEvac*
  evacuate_object *::evacuate_object *::try_evacuate_object
Shenandoah
  Shenandoah* VM_Shenandoah*
# Z; before generations, X in JDK 21.
Z marking
  ZMark* XMark* ZLiveMap XLiveMap ZYoungMark* ZOldMark*
Z relocation
  ZRelocat* XRelocat* ZForwarding* XForwarding* forwarding_* ZPage::relocate* ZPage::forward*
  ZPage::reset* ZHeap::select_relocation* XHeap::select_relocation* ZFlipAge* ZFlipPromot*
Z remembered sets
  ZRememb* ZStoreBarrierBuffer ZScanRemembered*
Z barriers
  ZBarrier XBarrier ZBarrierSetRuntime XBarrierSetRuntime ZBarrierSet XBarrierSet
  ZBarrierSetStackChunk XBarrierSetStackChunk ZBarrierSetNMethod XBarrierSetNMethod
Z
  ZPage* XPage* ZHeap* XHeap* ZObjectAllocator* XObjectAllocator* ZPhysical* XPhysical*
  ZVirtual* XVirtual* ZNMethod* XNMethod* ZDriver* XDriver* ZDirector* XDirector* ZStat* XStat*
  ZCollected* XCollected* ZGeneration* ZReference* XReference* ZRoots* XRoots* ZUnload* XUnload*
  ZUncommit* XUncommit* ZWorker* XWorker* ZTask XTask ZVerify* XVerify* ZUnmapper XUnmapper
  ZBitMap ZIterator ZUncolored* ZMapped* ZPartition* ZPhantom* XPhantom* ZRemap*
  mark_barrier_on_oop* ZBasicOopIterate* ZOop* XOop* ZIsAlive* XIsAlive* ZWeakRoots* XWeakRoots*
  ZStrongRoots* ZColoredRoots* ZConcurrent* XConcurrent* ZMemoryManager XMemoryManager
  ZBackingFile XBackingFile ZThread* XThread* ZStackWatermark* XStackWatermark* ZContinuation*
  ZNUMA XNUMA ZTracer XTracer ZHeuristics XHeuristics ZServiceability* XServiceability*
  ZBreakpoint XBreakpoint ZJNICritical VM_Z* VM_X* ZOperation* ZList* ZArray* ZLock* ZCPU
  ZTLABUsage ZMetronome XMetronome ZSafeDelete* XSafeDelete* ZGranuleMap* XGranuleMap*
  ZAttachedArray* ZAllocat* ZDeferredConstructed* ZRange* ZInitialize ZArguments XArguments
# Parallel.
Parallel compaction
  mark_from_roots_work steal_marking_work compaction_with_stealing_task PSCompact*
  PSParallelCompact* ParCompactionManager* ParMarkBitMap* ParallelCompactData* MoveAndUpdate*
  UpdateOnlyClosure FillClosure PCMark* PCAdjust* PCIterate* PCAddThread* PSMarkSweep* PSAdjust*
  RefProcTask* StealMarking* PSOldPromotionLAB FillDensePrefix* UpdateDensePrefix*
  CompactionWithStealing* MarkFromRootsTask MarkingNMethodClosure* *::oop_pc_*
Parallel scavenge
  steal_work PSScavenge* PSPromotion* PSPushContents* PSCardTable* oop_ps_push* PSRootsClosure
  PSKeepAlive* PSIsAlive* PSEvacuate* PSThreadRoots* ScavengeRoots* StealTask ThreadRootsTask*
  OldToYoungRootsTask PSYoungGen CheckForUnmarked* PSScavengeFromCLD* *::oop_ps_*
Parallel
  VM_Parallel* ParallelScavenge* PSOldGen PSAdaptive* MutableSpace ObjectStartArray
  PSVirtualSpace* GCTaskManager GCTaskThread GCTask* IdleGCTask NoopGCTask WaitForBarrierGCTask
  AdaptiveSizePolicy MutableNUMA* PSGeneration* PSGCAdaptive* ParallelArguments
# CMS, up to JDK 13.
CMS
  VM_CMS* CMS* ConcurrentMarkSweep* ParNew* PromotionInfo CompactibleFreeList* ParScanClosure
  ParRootScan* SweepClosure PushOrMarkClosure PushAndMark* ParPush* MarkRefsInto*
  MarkFromRootsClosure ParScanThreadState* AFLBinaryTreeDictionary AdaptiveFreeList
  BinaryTreeDictionary FreeListSpaceDCTOC ScanMarkedObjects*
# Serial.
Serial full collection
  SerialFullGC GenMarkSweep MarkSweep MarkAndPushClosure AdjustPointerClosure Compacter
  CompactibleSpace FollowStackClosure FollowRootClosure PreservedMark* *::prepare_for_compaction
  *::adjust_pointers ContiguousSpace::compact Space::compact TenuredGeneration::compact
  Generation::compact
Serial young collection
  DefNew* *::scan_evacuated_objs FastScanClosure FastEvacuate* *::oop_since_save_marks*
  OldGenScan* YoungGenScan* CLDScanClosure FastKeepAlive* RootScanClosure OffHeapScan*
  ScanWeakRef* CardTableRS DirtyCardToOop* ClearNoncleanCardWrapper PromoteFailure*
  PromotionFailed* ScanClosure ScanClosureWithParBarrier FilteringClosure InHeapScanClosure
Serial
  Generation VM_GenCollect* SerialHeap TenuredGen* TenuredSpace CardGeneration GenCollected*
  SerialBlockOffset* BlockOffset* ContiguousSpace OffsetTableContigSpace
# Parts common to all collectors.
references
  ReferenceProcessor* ReferenceProc* DiscoveredList* WeakProcessor* SoftRef* RefProc*
roots and references in objects
  *oops_do *::oops_do* *OopIterate* *oops_interpreted* *oop_iterate* MarkingCodeBlob*
  CodeBlobToOop* NMethodToOop* OopMapSet::oops_do OopMapSet::all_do OopMapDo OopMapCache
  StrongRootsScope CLDToOop* OopStorage*
unloading of classes and code
  *is_unloading *do_unloading* unload_nmethod_caches *::unload_nmethod_caches
  CodeCacheUnloading* unlink_or_unload *ParallelCleaning* *::cleanup_inline_caches*
  possibly_parallel_unlink *::possibly_parallel_unlink SymbolTable::unlink* StringTable::unlink*
  KlassCleaning* IsUnloading* ClassUnloading* *UnloadingScope *UnloadingTask
string deduplication
  StringDedup*
work and barriers
  CardTable CardTableBarrierSet ModRefBarrierSet GangWorker* WorkGang WorkerThread
  AbstractGangWorker AbstractWorkGang TaskTerminator ParallelTaskTerminator SubTasksDone
  SequentialSubTasksDone AbsSeq HdrSeq TruncatedSeq NumberSeq TraceCollectorStats *GCTimer
  GCTrace* *GCTracer PLAB* TimePartitions WorkerDataArray GCPolicy* ConcurrentGCThread
  MarkBitMap SuspendibleThreadSet* GCMemory* WorkerThreads WorkerTask VM_GC* VM_Collect*
  BarrierSet BarrierSetNMethod PtrQueue* BufferNode* GCId* SurvRate* AgeTable* PartialArray*
  FullGCForwarding SlidingForwarding GenericTaskQueue* TaskQueue* OverflowTaskQueue
  StealTaskQueue SpaceCounters ConcurrentGCBreakpoints EpsilonHeap GCNotifier PreservedMarksSet
";

/// Allocation by the program's threads.
pub(super) const ALLOCATION: &str = "
allocation
  CollectedHeap MemAllocator ObjAllocator ObjArrayAllocator ClassAllocator
  ThreadLocalAllocBuffer ThreadLocalAllocStats AllocTracer GlobalTLABStats
";
