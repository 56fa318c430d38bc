//! The collectors.

pub(super) const ROWS: &str = "
# G1, specific names first.
G1 full collection
  G1FullGC G1FullCollector G1FullKeep G1MarkAndPush G1AdjustClosure G1Adjust G1Compact
  G1PrepareCompact
G1 remembered sets
  G1RebuildR G1RemSet G1CardSet G1ConcurrentRefine G1Refine G1DirtyCard DirtyCardQueue G1ScanCard
  G1MergeHeapRoots G1MergeCard G1ScanHR HeapRegionRemSet G1HeapRegionRemSet OtherRegionsTable
  SparsePRT PerRegionTable G1ConcurrentRefinement G1HotCard G1ScanObjsDuringUpdateRS
  G1ScanRSForRegion G1CodeRootSet G1ScanObjsDuringScanRS G1ClearCardTable
G1 marking
  G1CM G1ConcurrentMark G1RootRegionScan G1SATB SATBMarkQueue G1MarkPromoted G1OnRegionClosure
  G1UpdateRegion G1UpdateRemSetTracking G1RegionMark G1ReclaimEmpty
G1 young evacuation
  G1ParScan G1ParCopy G1ParEvacuate G1Evacuat G1ScanEvacuatedObj G1YoungCollector G1YoungGC
  G1RootProcessor G1STW G1PLAB G1ScanClosureBase G1FreeCollectionSet FreeCSetClosure FreeCSetStats
  G1PostEvacuat G1PreEvacuat G1KeepAlive G1CopyingKeepAlive RemoveSelfForwardPtr G1RemoveSelfForward
  G1Allocator G1CollectionSet G1SurvRate G1RedirtyCards G1ParTask G1ResetSomeRegion
  RedirtyLoggedCard
G1
  ^VM_G1 G1BlockOffset G1Policy G1Analytics G1Predict G1Service G1MonitoringSupport G1Periodic
  G1Collected G1Heap HeapRegion G1
# Shenandoah.
Shenandoah marking
  ShenandoahMark ShenandoahConcurrentMark ShenandoahSTWMark ShenandoahInitMark ShenandoahFinalMark
  ShenandoahSATB ShenandoahObjToScan
Shenandoah updating references
  UpdateRefs UpdateHeapRefs ShenandoahUpdate
Shenandoah full collection
  ShenandoahFull ShenandoahCompact ShenandoahPrepareForCompact ShenandoahAdjust
Shenandoah evacuation
  ShenandoahConcurrentEvacuat ShenandoahEvac evacuate_object
Shenandoah
  Shenandoah
# Z; before generations, X in JDK 21.
Z marking
  ^ZMark ^XMark ZMark XMark ZLiveMap XLiveMap
Z relocation
  ^ZRelocat ^forwarding_ ZRelocat XRelocat ZForwarding XForwarding ZPage::relocate ZPage::forward
  ZHeap::select_relocation XHeap::select_relocation ZFlipAge
Z remembered sets
  ZRememb ZStoreBarrierBuffer
Z barriers
  ^ZBarrier:: ^XBarrier:: ^ZBarrierSetRuntime ^XBarrierSetRuntime
Z
  ^ZPage ^XPage ^ZHeap ^XHeap ^ZObjectAllocator ^XObjectAllocator ^ZPhysical ^XPhysical ^ZVirtual
  ^XVirtual ^ZNMethod ^XNMethod ^ZDriver ^XDriver ^ZDirector ^XDirector ^ZStat ^XStat ^ZCollected
  ^XCollected ^ZGeneration ^ZReference ^XReference ^ZRoots ^XRoots ^ZUnload ^XUnload ^ZUncommit
  ^XUncommit ^ZWorkers ^XWorkers ^ZTask ^XTask ^ZVerify ^XVerify ^ZUnmapper ^XUnmapper ^ZBitMap
  ^ZIterator ^ZUncolored ^ZMapped ^ZPartition ^ZPhantom ^ZRemap ^mark_barrier_on_oop ZIterator
  ZBasicOopIterate ZVerify ZRootsIterator ZBarrierOop XBarrierOop ZOopClosure ZNMethod XNMethod
  ZDriver ZIsAlive ZWeakRoots ZStrongRoots ZColoredRoots
# Parallel.
Parallel compaction
  ^mark_from_roots_work ^steal_marking_work ^compaction_with_stealing_task ^PSCompact
  PSParallelCompact ParCompaction ParMarkBitMap ParallelCompactData MoveAndUpdate UpdateOnlyClosure
  FillClosure PCMark PCAdjust PCIterate PCAddThread PSMarkSweep PSAdjust RefProcTask StealMarking
  PSOldPromotionLAB FillDensePrefix UpdateDensePrefix CompactionWithStealing
Parallel scavenge
  ^steal_work PSScavenge PSPromotion PSPushContents PSCardTable oop_ps_push PSRootsClosure
  PSKeepAlive PSIsAlive PSEvacuate PSThreadRoots ScavengeRoots PSPromotionLAB StealTask
  ThreadRootsTask OldToYoungRootsTask PSYoungGen CheckForUnmarked PSScavengeFromCLD
Parallel
  ^VM_Parallel ParallelScavenge PSOldGen PSAdaptive MutableSpace ObjectStartArray PSVirtualSpace
  GCTaskManager GCTaskThread AdaptiveSizePolicy MutableNUMA UpdateDensePrefix
# CMS, up to JDK 13.
CMS
  CMS ConcurrentMarkSweep ParNew PromotionInfo CompactibleFreeList ParScanClosure ParRootScan
# Serial.
Serial full collection
  SerialFullGC GenMarkSweep MarkSweep:: MarkAndPushClosure AdjustPointerClosure
  prepare_for_compaction adjust_pointers ::compact( Compacter CompactibleSpace FollowStackClosure
  FollowRootClosure MarkSweep PreservedMark
Serial young collection
  DefNew scan_evacuated_objs FastScanClosure FastEvacuate oop_since_save_marks OldGenScan
  YoungGenScan CLDScanClosure FastKeepAlive RootScanClosure OffHeapScan ScanWeakRef CardTableRS
  DirtyCardToOop YoungGenScanClosure PromoteFailure
Serial
  ^Generation:: ^VM_GenCollect SerialHeap TenuredGen GenCollected SerialBlockOffset BlockOffsetArray
  BlockOffsetTable BlockOffsetSharedArray ContiguousSpace OffsetTableContigSpace
# Parts common to all collectors.
references
  ReferenceProcessor ReferenceProc DiscoveredList WeakProcessor SoftRef RefProc
roots and references in objects
  ^OopMap oops_do OopIterate oops_interpreted oop_iterate MarkingCodeBlob CodeBlobToOop NMethodToOop
  OopMapSet OopMapCache StrongRootsScope CLDToOop OopStorage MarkingNMethod
unloading of classes and code
  is_unloading do_unloading unload_nmethod_caches CodeCacheUnloading unlink_or_unload
  ParallelCleaning cleanup_inline_caches possibly_parallel_unlink SymbolTable::unlink
  StringTable::unlink KlassCleaning IsUnloading ClassUnloading
string deduplication
  StringDedup
allocation
  ^CollectedHeap:: ^GCTrace ^MemAllocator ^ObjAllocator ^ObjArrayAllocator ^PLAB MemAllocator::
  ThreadLocalAllocBuffer ThreadLocalAllocStats
work and barriers
  ^CardTable ^GangWorker ^WorkGang ^WorkerThread ^AbstractGangWorker ^TaskTerminator
  ^ParallelTaskTerminator ^SubTasksDone ^AllocTracer ^AbsSeq ^HdrSeq ^TruncatedSeq
  ^TraceCollectorStats ^GCTimer ^GCTracer ^TimePartitions ^WorkerDataArray ^GCPolicy
  ^ConcurrentGCThread ^MarkBitMap ^SuspendibleThreadSet ^GCMemory ^WorkerThreads ^WorkerTask ^VM_GC
  ^VM_Collect ^BarrierSet:: ^BarrierSetNMethod ^PtrQueue ^BufferNode ^GCId ^SurvRate ^AgeTable
  ^PartialArray ^FullGCForwarding ^SlidingForwarding CardTable:: TaskQueue GCTimer:: GCTracer::
  SpaceCounters
";
