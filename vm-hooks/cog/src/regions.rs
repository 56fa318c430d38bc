//! Part of the VM for its C functions, by name.
//!
//! VMMaker writes each message as a C function with the selector as its name, so names are stable over
//! versions. The table names whole functions, or common beginnings with `*`; the first match counts. A
//! compiler's suffix (`.isra.0`) is no part of a name.

use vmscope_process::ProcessView;
use vmscope_records::{Region, RegionRule};

/// Maximum number of plugins in files of their own.
const MAX_PLUGINS: usize = 256;

/// Region, part, and names of its functions.
type Row = (Region, &'static str, &'static str);

/// Parts in the order of their precedence.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    (Region::Interpreter, "bytecodes", "
      interpret interpretAddress interpretMethodFromMachineCode enterSmalltalkExecutive*",
    ),
    (Region::Gc, "scavenge", "
      scaveng* doScavenge copyAndForward* copyToOldSpace* isScavengeSurvivor processWeakSurvivor
      processWeaklings addToEphemeronList addToWeakList shouldRemapO* remapObj mapMournQueue
      fireEphemerons* cloneInOldSpaceforPinning tenuringIncrementalGC incrementalGC writeScavengeLog
      openScavengeLog computeRefCountToShrinkRT beRootIfOld remember",
    ),
    (Region::Gc, "mark", "
      markAndTrace markAndTraceClassOf markAndTraceStackPage markAndTraceUntraced*
      markAndTraceObjStackandContents markObjects markActiveMethodsAndReferents nilUnmarked*
      activeAndDeferredScan isMarked isUnmarked unmarkAfterPathTo ensureRoomOnObjStackAt
      noCheckPushonObjStack popObjStack objectsReachableFromRoots allObjects relocateObjStack*
      swizzleObjStackAt",
    ),
    (Region::Gc, "compact", "
      compact planCompact* copyAndUnmark* updatePointers* unlinkSolitary* reinitializeScanFrom
      firstGapOfSizeAtLeast returnrestoring*",
    ),
    (Region::Gc, "machine code", "
      mapObjectReferencesIn* markAndTraceMachineCode* markMethodAndReferents markAndTraceLiteral*
      markAndTraceOrFreeCogMethod* freeUnmarkedMachineCode unlinkAllSends unlinkSendsToFree
      unlinkSendsToandFreeIf unlinkSendsLinkedForInvalidClasses unlinkSendsOf* pruneYoungReferrers
      remapIfObjectRef* remapMaybeObjRef* followMaybeObjRef* closedPICRefersToUnmarkedObject
      cogitPostGCAction ensureInYoungReferrers addAllToYoungReferrers checkIfValidOopRef*
      followForwardedMethods followForwardedLiteralsIn",
    ),
    (Region::Gc, "collector", "
      fullGC globalGarbageCollect preGCAction postGCAction mapInterpreterOops mapStackPages
      mapExtraRoots mapVMRegisters mapProfileState mapTraceLogs postGCUpdateDisplayBits
      runLeakChecker* leakCheck* checkHeapIntegrity* clearLeakMap* checkAllAccessible* statNumGCs",
    ),
    (Region::Gc, "old space", "
      growOldSpace* shrink* sweep* freeChunk* addToFree* addFreeSubTree inFreeTree* unlinkFree*
      unlinkLilliputian* allocateOldSpaceChunk* allocateLargestFreeChunk freeObject
      allocateOrExtendSegmentInfos sqAllocateMemorySegment* sqDeallocateMemorySegment*
      segmentContainingObj validFreeTree*",
    ),
    (Region::Vm, "plugin: regular expressions", "
      pcre_* compile_regex match match_ref check_escape first_significant_code is_anchored
      is_startline is_counted_repeat read_repeat_counts find_firstchar find_fixedlength set_bit
      set_start_bits",
    ),
    (Region::Vm, "primitives about machine code", "
      primitiveCollectCogCodeConstituents cogCodeConstituents cleanUpFailingCogCodeConstituents
      mapPCDataForinto pcDataForBlockEntryMethod methodsCompiledToMachineCodeInto",
    ),
    (Region::Compiler, "code compaction", "
      compactCogCompiledCode commenceCogCompiledCodeCompaction callForCogCompiledCodeCompaction
      relocateCall* freeMethod freeOlderMethods* voidCogCompiledCode
      updateStackZoneReferencesToCompiledCodePreCompaction",
    ),
    (Region::Compiler, "inline caches", "
      cogPIC* cogMNUPIC* cogOpenPIC* cogExtendPIC* cogMethodDoesntLookKosher compileOpenPIC*
      compilePIC* compileCPIC* compileMNU* ceCPICMiss* ceSICMiss linkSendAt* patchToOpenPIC*
      rewriteInlineCache* rewriteCPIC* generateClosedPIC* generateOpenPIC* indexForSelectorin*
      genCallPIC*",
    ),
    (Region::Compiler, "code generation", "
      gen* gAnd* gJump* compile* concretize* dispatchConcretize computeMaximumSize computeEntryOffsets
      computeFullBlockEntryOffsets outputInstructions* fillInMethodHeader* annotate*
      resolveJumpTarget jmpTarget instructionSizeAt recordCallOffsetIn recordRunTimeObjectReferences
      initializeCodeZone* addCogMethodsToHeapMap cogFullBlockMethod* cogselector*
      rewritePrimInvocation* setSelectorOf* maybeCompile* getLiteralCountOf*",
    ),
    (Region::Compiler, "bytecode translation", "
      ssPop ssPush* ssFlush* ssStore* ssAllocate* initSimStack* scanMethod scanForCleanBlocks
      addBlockStart* addCleanBlockStarts needsFrame* extABytecode extBBytecode unknownBytecode
      duplicateTopBytecode extendedPushBytecode extendedStore* doubleExtendedDoAnythingBytecode
      loadSubsequentBytes* eventualTargetOf liveRegisters availableRegister*
      allocateRegNotConflictingWith isSameEntryAs popToReg storeToReg ensureSpilledAt*
      ensureReceiverResultReg* marshallSendArguments voidReceiverResultReg* deltaToSkipPrim* v3* v4*",
    ),
    (Region::Compiler, "maps and look-up of code", "
      findMapLocation* mapForperformUntil* findBlockMethod* findMethodForStartBcpc*
      blockDispatchTargets* bytecodePCFor* mcPCForBackwardBranch* isPCWithinMethodZone isSendReturnPC
      methodFor methodhasSameCodeAs* numMethods* codeEntryFor codeEntryNameFor cogCodeBase
      maxCogMethodAddress minCogMethodAddress abortOffset mnuOffset numRegArgs traceLinkedSendOffset
      defaultCogCodeSize allMachineCodeObjectReferencesValid checkIntegrityOfObjectReferencesInCode
      checkAssertsEnabledInCogit recordPrimTraceFunc setBreakMethod setPostCompileHook
      whereIsMaybeCodeThing ceFree ceMalloc",
    ),
    (Region::Interpreter, "entry of machine code", "
      callCogCode* enterCogCode* executeCog* attemptToSwitchToMachineCode returntoExecutive
      returnToExecutive* callRegisterArgCogMethod* cogMethodOf methodHasCogMethod
      methodShouldBeCogged",
    ),
    (Region::Vm, "debugging", "
      print* shortPrint* longPrint* shortReversePrint* inOrderPrint* dumpTraceLog dumpPrimTraceLog
      ceTrace* countMarked* checkOkay* checkOopIntegrity* checkOop* checkInterpreterIntegrity
      checkStackIntegrity assertValid* warning warningat error whereIs couldBe* objCouldBe*
      addressCould* nameOfClass lengthOfNameOfClass safeMethodClassOf setBreak*
      mnuCompilationBreakpoint* compilationBreakpoint* clearTraceLog setTraceFlagOn*
      findClassOfMethod* findClassContainingMethod* findSelectorOfMethod __sq_* sqDebugAnchor
      pushOutputFile popOutputFile reportStackState reportMinimumUnusedHeadroom
      checkAssertsEnabledInCoInterpreter getCrashDumpFilenameInto followForwardedFrameContents*
      classNameOfIs findString*",
    ),
    (Region::Interpreter, "calls from machine code", "
      ce*",
    ),
    (Region::Interpreter, "look-up of methods", "
      lookup* addNewMethodToCache findNewMethodIn* handleForwarded* handleSpecialSelector* handleMNU*
      createActualMessageTo mnuMethodOrNilFor flushMethodCache* rewriteMethodCacheEntry*
      functionPointerFor* ensureNoForwardedLiteralsIn",
    ),
    (Region::Interpreter, "activation", "
      activate* executeNewMethod handleStackOverflow* maybeFlagMethodAsInterpreted
      externalQuickPrimitiveResponse",
    ),
    (Region::Interpreter, "contexts and stack pages", "
      marryFrame* marryContext* makeBaseFrameFor establishFrame* divorce* externalDivorce*
      externalEnsureIsBaseFrame ensureContextHasBytecodePC isWidowedContext isLiveContext
      widowOrForce* moveFramesIn* freeStackPage* markStackPage* newStackPage* updateStateOfSpouse*
      storeSenderOfFrame* externalInstVarof* fetchPointerofMarriedContext findFrame* findUnwind*
      findMethodWithPrimitive* findSPOf* stackPointerIndexForFrame mustMapMachineCodePC*
      instructionPointerForFrame* contextInstructionPointer* checkIsStillMarried* voidVMState*
      tearDownAndRebuild* makeContextSnapshotSafe cloneContext mframeHomeMethod* mMethodClass
      reestablishContext* returnAsThroughCallback* validInstructionPointer*
      followForwardedFieldsInCurrentMethod ifValidWriteBack*",
    ),
    (Region::Interpreter, "processes and events", "
      transferTo* resumepreempted* wakeHighestPriority putToSleep* addLastLinktoList
      removeFirstLinkOfList signalNoResume synchronousSignal doSignalSemaphore*
      doSignalExternalSemaphores signalSemaphoreWithIndex checkForEvents* checkProfileTick
      forceInterruptCheck* checkHighPriorityTickees ioSynchronousCheckForEvents ownVM disownVM
      activeProcess addIdleUsecs callbackEnter callbackLeave sendInvokeCallback*",
    ),
    (Region::Vm, "heartbeat and clock", "
      beatStateMachine heartbeat* updateMicrosecondClock ioUTC* ioLocal* ioMSecs ioMicroMSecs
      ioSeconds* ioHighResClock ioHeartbeat* ioSetHeartbeat* ioInitTime ioInitHeartbeat
      ioGetClockLog* ioUpdateVMTimezone indirect sighandler",
    ),
    (Region::Vm, "the VM's own profiler", "
      pcbufferSIGPROFhandler profileStateMachine ioControlNewProfile ioNewProfile* ioClearProfile",
    ),
    (Region::Vm, "primitives", "
      primitive* prim* doPrimitive* mcprim* retryPrimitiveOnFailure magnitude64* positive32*
      positive64* signed32* signed64* positiveMachineInteger* signedMachineInteger* snapshot
      prepareForSnapshot writeImageFileIO putLongtoFile putShorttoFile putWord32toFile readImageFrom*
      loadImageSegment* storeImageSegment* becomewith* *BecomeandcopyHash* postBecome*
      spurPostBecomeAction changeClassOf* enterIntoClassTable clone allInstancesOf pinObject
      unpinObject shorten* unfollowatIndex followForwardedObjectFields* reapAndResetErrorCode*
      stringForCString floatObjectOf noInlineLoadFloatOrIntFrom",
    ),
    (Region::Vm, "allocation", "
      instantiateClass* eeInstantiate* allocate* headerForSlots*",
    ),
    (Region::Vm, "plugin: graphics", "
      *with copyBits* copyLoop* loadBitBlt* clipRange lockSurfaces unlockSurfaces setupColorMasks*
      rgb* reloadDest* *Surface* display* fullDisplayUpdate updateDisplay* showDisplay*
      reverseDisplay* *Fill* *Edge* *Bezier* *Span* *WideLine* *GET* *AET* *AALevel* fillSorts*
      getSorts* transform* uncheckedTransform* loadBitsFrom loadFormsFrom loadRenderingState
      storeRenderingState loadWorkBuffer* quickLoadEngineFrom loadPointfrom loadTransform*
      stepToFirstLine* proceedRendering* *partitionedMul* createWindow* closeWindow alphaBlend*
      subdivide*",
    ),
    (Region::Vm, "plugin: files", "
      sqFile* fileOpen* fileRecordSize fileValueOf setNewFileMac* sqCopyFile* sqConnectToFile*
      sqCloseDir dir_* makeDirEntry* setMacFileType* sqStdoutToDevTTY",
    ),
    (Region::Vm, "plugin: sockets", "
      sqSocket* sqResolver* sqNetwork* socket* connectHandler acceptHandler dataHandler closeHandler
      findOption",
    ),
    (Region::Vm, "plugin: security", "
      secHas* secCan* secDisable* ioCan* ioDisable* ioHas* isAccessible* ioInitSecurity ioGetSecure*
      ioGetUntrusted*",
    ),
    (Region::Vm, "plugin: large integers", "
      digit* normalize* largeIntgrowTo createLargeFrom* cHighBit32",
    ),
    (Region::Vm, "plugin: floating-point numbers", "
      __ieee754_* __kernel_*",
    ),
    (Region::Vm, "plugin: compression", "
      zip* findMatchlast* determineSizeOfWriteStream",
    ),
    (Region::Vm, "plugins: interface", "
      getModuleName setInterpreter initialiseModule shutdownModule moduleUnloaded rePlugin*
      initGlobalStructure sqGetInterpreterProxy reapmodulesymlinks countnummodules",
    ),
    (Region::Vm, "plugins: loading", "
      ioLoad* ioUnload* ioFindExternal* ioFreeModule ioShutdownAllModules findOrLoadModule
      findInternalFunctionIn tryLoading* loadModule requireModule* queryModule queryLoadModule
      loadImplicit *Module",
    ),
    (Region::Vm, "input and output", "
      io* aio* clipboard* dnd* addSynchronousTickee addHighPriorityTickee undefinedHandler",
    ),
];

/// Rules for the functions of the VM's program or library `vm`, and of its plugins.
#[must_use]
pub fn rules(vm: &str, plugins: &[String]) -> Vec<RegionRule> {
    let rule = |module: &str, name: &str, region, part: &str| RegionRule {
        module: module.to_owned(),
        identifiers: name.to_owned(),
        region,
        part: part.to_owned(),
        ..RegionRule::default()
    };
    let rows = ROWS.iter().flat_map(|(region, part, names)| {
        let names = names.split_whitespace();
        names.map(|name| rule(vm, name, *region, part))
    });
    let any = std::iter::once(rule(vm, "", Region::Vm, ""));
    let plugins = plugins
        .iter()
        .map(|plugin| rule(plugin, "", Region::Vm, "plugins"));
    rows.chain(any).chain(plugins).collect()
}

/// File names of plugins: libraries in the folder of the VM's program or library, or in a folder below.
#[must_use]
pub fn plugins(process: &ProcessView, vm: &[u8]) -> Vec<String> {
    let folder = |path: &[u8]| {
        path.rsplitn(2, |byte| *byte == b'/')
            .nth(1)
            .map(<[u8]>::to_vec)
    };
    let Some(of_vm) = folder(vm) else {
        return Vec::new();
    };
    let modules = process.modules();
    let is_plugin = |path: &[u8]| {
        let rest = path.strip_prefix(of_vm.as_slice());
        path != vm && rest.is_some_and(|rest| rest.starts_with(b"/"))
    };
    let paths = modules.iter().map(|module| module.path.as_slice());
    let plugins = paths.filter(|path| is_plugin(path)).map(file_name);
    plugins.take(MAX_PLUGINS).collect()
}

/// The last component of a path.
#[must_use]
pub fn file_name(path: &[u8]) -> String {
    let name = path.rsplit(|byte| *byte == b'/').next();
    String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests;
