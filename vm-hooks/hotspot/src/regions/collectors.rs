//! The collectors.

use super::Row;
use vmscope_records::Region::Gc;

pub(super) const ROWS: &[Row] = &[
    // G1, specific names first.
    Row {
        begins: "",
        holds: "G1FullGC G1FullCollector G1FullKeep G1MarkAndPush G1AdjustClosure G1Adjust G1Compact \
         G1PrepareCompact",
        region: Gc,
        part: "G1 full collection",
    },
    Row {
        begins: "",
        holds: "G1RebuildR G1RemSet G1CardSet G1ConcurrentRefine G1Refine G1DirtyCard DirtyCardQueue \
         G1ScanCard G1MergeHeapRoots G1MergeCard G1ScanHR HeapRegionRemSet G1HeapRegionRemSet \
         OtherRegionsTable SparsePRT PerRegionTable G1ConcurrentRefinement G1HotCard \
         G1ScanObjsDuringUpdateRS G1ScanRSForRegion G1CodeRootSet G1ScanObjsDuringScanRS \
         G1ClearCardTable",
        region: Gc,
        part: "G1 remembered sets",
    },
    Row {
        begins: "",
        holds: "G1CM G1ConcurrentMark G1RootRegionScan G1SATB SATBMarkQueue G1MarkPromoted \
         G1OnRegionClosure G1UpdateRegion G1UpdateRemSetTracking G1RegionMark G1ReclaimEmpty",
        region: Gc,
        part: "G1 marking",
    },
    Row {
        begins: "",
        holds: "G1ParScan G1ParCopy G1ParEvacuate G1Evacuat G1ScanEvacuatedObj G1YoungCollector \
         G1YoungGC G1RootProcessor G1STW G1PLAB G1ScanClosureBase G1FreeCollectionSet \
         FreeCSetClosure FreeCSetStats G1PostEvacuat G1PreEvacuat G1KeepAlive \
         G1CopyingKeepAlive RemoveSelfForwardPtr G1RemoveSelfForward G1Allocator \
         G1CollectionSet G1SurvRate G1RedirtyCards G1ParTask G1ResetSomeRegion \
         RedirtyLoggedCard",
        region: Gc,
        part: "G1 young evacuation",
    },
    Row {
        begins: "VM_G1",
        holds: "G1BlockOffset G1Policy G1Analytics G1Predict G1Service G1MonitoringSupport \
         G1Periodic G1Collected G1Heap HeapRegion G1",
        region: Gc,
        part: "G1",
    },
    // Shenandoah.
    Row {
        begins: "",
        holds: "ShenandoahMark ShenandoahConcurrentMark ShenandoahSTWMark ShenandoahInitMark \
         ShenandoahFinalMark ShenandoahSATB ShenandoahObjToScan",
        region: Gc,
        part: "Shenandoah marking",
    },
    Row {
        begins: "",
        holds: "UpdateRefs UpdateHeapRefs ShenandoahUpdate",
        region: Gc,
        part: "Shenandoah updating references",
    },
    Row {
        begins: "",
        holds: "ShenandoahFull ShenandoahCompact ShenandoahPrepareForCompact ShenandoahAdjust",
        region: Gc,
        part: "Shenandoah full collection",
    },
    Row {
        begins: "",
        holds: "ShenandoahConcurrentEvacuat ShenandoahEvac evacuate_object",
        region: Gc,
        part: "Shenandoah evacuation",
    },
    Row {
        begins: "",
        holds: "Shenandoah",
        region: Gc,
        part: "Shenandoah",
    },
    // Z; before generations, X in JDK 21.
    Row {
        begins: "ZMark XMark",
        holds: "ZMark XMark ZLiveMap XLiveMap",
        region: Gc,
        part: "Z marking",
    },
    Row {
        begins: "ZRelocat forwarding_",
        holds: "ZRelocat XRelocat ZForwarding XForwarding ZPage::relocate ZPage::forward \
         ZHeap::select_relocation XHeap::select_relocation ZFlipAge",
        region: Gc,
        part: "Z relocation",
    },
    Row {
        begins: "",
        holds: "ZRememb ZStoreBarrierBuffer",
        region: Gc,
        part: "Z remembered sets",
    },
    Row {
        begins: "ZBarrier:: XBarrier:: ZBarrierSetRuntime XBarrierSetRuntime",
        holds: "",
        region: Gc,
        part: "Z barriers",
    },
    Row {
        begins: "ZPage XPage ZHeap XHeap ZObjectAllocator XObjectAllocator ZPhysical XPhysical \
         ZVirtual XVirtual ZNMethod XNMethod ZDriver XDriver ZDirector XDirector ZStat XStat \
         ZCollected XCollected ZGeneration ZReference XReference ZRoots XRoots ZUnload \
         XUnload ZUncommit XUncommit ZWorkers XWorkers ZTask XTask ZVerify XVerify ZUnmapper \
         XUnmapper ZBitMap ZIterator ZUncolored ZMapped ZPartition ZPhantom ZRemap \
         mark_barrier_on_oop",
        holds: "ZIterator ZBasicOopIterate ZVerify ZRootsIterator ZBarrierOop XBarrierOop \
         ZOopClosure ZNMethod XNMethod ZDriver ZIsAlive ZWeakRoots ZStrongRoots ZColoredRoots",
        region: Gc,
        part: "Z",
    },
    // Parallel.
    Row {
        begins: "mark_from_roots_work steal_marking_work compaction_with_stealing_task PSCompact",
        holds: "PSParallelCompact ParCompaction ParMarkBitMap ParallelCompactData MoveAndUpdate \
         UpdateOnlyClosure FillClosure PCMark PCAdjust PCIterate PCAddThread PSMarkSweep \
         PSAdjust RefProcTask StealMarking PSOldPromotionLAB FillDensePrefix \
         UpdateDensePrefix CompactionWithStealing",
        region: Gc,
        part: "Parallel compaction",
    },
    Row {
        begins: "steal_work",
        holds: "PSScavenge PSPromotion PSPushContents PSCardTable oop_ps_push PSRootsClosure \
         PSKeepAlive PSIsAlive PSEvacuate PSThreadRoots ScavengeRoots PSPromotionLAB \
         StealTask ThreadRootsTask OldToYoungRootsTask PSYoungGen CheckForUnmarked \
         PSScavengeFromCLD",
        region: Gc,
        part: "Parallel scavenge",
    },
    Row {
        begins: "VM_Parallel",
        holds: "ParallelScavenge PSOldGen PSAdaptive MutableSpace ObjectStartArray PSVirtualSpace \
         GCTaskManager GCTaskThread AdaptiveSizePolicy MutableNUMA UpdateDensePrefix",
        region: Gc,
        part: "Parallel",
    },
    // CMS, up to JDK 13.
    Row {
        begins: "",
        holds: "CMS ConcurrentMarkSweep ParNew PromotionInfo CompactibleFreeList ParScanClosure \
         ParRootScan",
        region: Gc,
        part: "CMS",
    },
    // Serial.
    Row {
        begins: "",
        holds: "SerialFullGC GenMarkSweep MarkSweep:: MarkAndPushClosure AdjustPointerClosure \
         prepare_for_compaction adjust_pointers ::compact( Compacter CompactibleSpace \
         FollowStackClosure FollowRootClosure MarkSweep PreservedMark",
        region: Gc,
        part: "Serial full collection",
    },
    Row {
        begins: "",
        holds: "DefNew scan_evacuated_objs FastScanClosure FastEvacuate oop_since_save_marks \
         OldGenScan YoungGenScan CLDScanClosure FastKeepAlive RootScanClosure OffHeapScan \
         ScanWeakRef CardTableRS DirtyCardToOop YoungGenScanClosure PromoteFailure",
        region: Gc,
        part: "Serial young collection",
    },
    Row {
        begins: "Generation:: VM_GenCollect",
        holds: "SerialHeap TenuredGen GenCollected SerialBlockOffset BlockOffsetArray \
         BlockOffsetTable BlockOffsetSharedArray ContiguousSpace OffsetTableContigSpace",
        region: Gc,
        part: "Serial",
    },
    // Parts common to all collectors.
    Row {
        begins: "",
        holds: "ReferenceProcessor ReferenceProc DiscoveredList WeakProcessor SoftRef RefProc",
        region: Gc,
        part: "references",
    },
    Row {
        begins: "OopMap",
        holds: "oops_do OopIterate oops_interpreted oop_iterate MarkingCodeBlob CodeBlobToOop NMethodToOop \
         OopMapSet OopMapCache StrongRootsScope CLDToOop OopStorage MarkingNMethod",
        region: Gc,
        part: "roots and references in objects",
    },
    Row {
        begins: "",
        holds: "is_unloading do_unloading unload_nmethod_caches CodeCacheUnloading unlink_or_unload \
         ParallelCleaning cleanup_inline_caches possibly_parallel_unlink SymbolTable::unlink \
         StringTable::unlink KlassCleaning IsUnloading ClassUnloading",
        region: Gc,
        part: "unloading of classes and code",
    },
    Row {
        begins: "",
        holds: "StringDedup",
        region: Gc,
        part: "string deduplication",
    },
    Row {
        begins: "CollectedHeap:: GCTrace MemAllocator ObjAllocator ObjArrayAllocator PLAB",
        holds: "MemAllocator:: ThreadLocalAllocBuffer ThreadLocalAllocStats",
        region: Gc,
        part: "allocation",
    },
    Row {
        begins: "CardTable GangWorker WorkGang WorkerThread AbstractGangWorker TaskTerminator \
         ParallelTaskTerminator SubTasksDone AllocTracer AbsSeq HdrSeq TruncatedSeq \
         TraceCollectorStats GCTimer GCTracer TimePartitions WorkerDataArray GCPolicy \
         ConcurrentGCThread MarkBitMap SuspendibleThreadSet GCMemory WorkerThreads WorkerTask \
         VM_GC VM_Collect BarrierSet:: BarrierSetNMethod PtrQueue BufferNode GCId SurvRate \
         AgeTable PartialArray FullGCForwarding SlidingForwarding",
        holds: "CardTable:: TaskQueue GCTimer:: GCTracer:: SpaceCounters",
        region: Gc,
        part: "work and barriers",
    },
];
