//! The compilers.

pub(super) const ROWS: &str = "
# Compilers' code for collectors.
C1: building LIR
  *BarrierSetC1 *BarrierStubC1 *C1BarrierStub
C2: barriers
  *BarrierSetC2 *BarrierSetC2State *BarrierStubC2 *C2BarrierStub
assembler
  *BarrierSetAssembler
C2: optimisation
  G1PreBarrierStub ShenandoahBarrierC2Support ShenandoahCompareAndSwap*
  ShenandoahWeakCompareAndSwap* ShenandoahCompareAndExchange* ShenandoahLoadReferenceBarrierNode
  ShenandoahIUBarrierNode *LoadPNode *CompareAndSwapPNode *CompareAndExchangePNode
# C2.
C2: register allocation
  PhaseChaitin PhaseLive PhaseIFG PhaseCoalesce PhaseAggressiveCoalesce
  PhaseConservativeCoalesce PhaseRegAlloc IndexSet* RegMask* LRG* LiveRange* OptoReg Block_Stack
  find_hihghest_bit RegisterPressure RegDefUse
C2: parse
  Parse GraphKit PreserveReexecuteState LibraryCallKit InlineTree *CallGenerator JVMState
  PreserveJVMState StringConcat PhaseStringOpts PredictedIntrinsicGenerator LibraryIntrinsic
  ciTypeFlow* Compile::inline* Compile::make_vm_intrinsic Compile::call_generator SwitchRanges
  BytecodeParseHistogram IdealKit VectorSet
C2: loop optimisation
  PhaseIdealLoop IdealLoopTree LoopNode CountedLoop* BaseCountedLoop* SuperWord* CLoop* VLoop*
  VTransform* SWPointer* VPointer* LoopPeeling* OuterStripMined* DepEdge* DepPreds DepSuccs
  DepMem CountedLoopReserve* PathFrequency PackSet* *AssertionPredicate* *Predicates
  PredicateBlock* ParsePredicate*
C2: optimisation
  PhaseIterGVN PhaseGVN PhaseCCP PhaseTransform PhaseValues PhaseRemoveUseless PhaseRenumberLive
  PhaseMacroExpand ConnectionGraph PointsToNode NodeHash ^Type:: TypeAry TypeAryPtr
  TypeAryKlassPtr TypeD TypeF TypeH TypeFunc TypeInstKlassPtr TypeInstPtr TypeInt TypeInteger
  TypeInterfaces TypeKlassPtr TypeLong TypeMetadataPtr TypeNarrow* TypeOopPtr TypePVectMask
  TypePtr TypeRawPtr TypeTuple TypeVect* ^Dict:: PhaseVector* Unique_Node_List Node_List
  Node_Array Node_Stack *InterfaceSet PhasePeephole JavaObjectNode LocalVarNode FieldNode
  ArraycopyNode Expand* Compile::Optimize Compile::identify_useful* Compile::disconnect_useless*
  Compile::final_graph* Compile::remove_* Compile::igvn* Compile::optimize* CastII* RegionNode
  split_if ConstraintCast* MergePrimitiveStores* Invariance MemoryGraphFixer
  IntegerTypeMultiplication ReplacedNodes ArrayPointer EscapeAnalysis
C2: scheduling
  PhaseCFG ^Block:: PhaseBlockLayout ^Trace:: CFGLoop* Block_* Node_Backward_Iterator Scheduling
  PhaseByteVector* UnionFind Tarjan NTarjan
C2: instruction selection
  Matcher ^State:: ^DFA MachNode::Expand Peephole
C2: code emission
  PhaseOutput Compile::Output Compile::fill_buffer Compile::shorten* BuildOopMap* OopFlow
  *C2CodeStub C2CodeStubList C2_MacroAssembler ConstantTable Compile::Process_OopMap*
  Compile::Init* Mach* *Oper IntelJccErratum C2SafepointPollStubTable
C2
  Compile C2Compiler CompileWrapper C2Access* C2Opt* C2Parse* C2Atomic* WarmCallInfo
# C1.
C1: register allocation
  LinearScan Interval IntervalWalker LIR_OpVisitState MoveResolver FpuStack*
  ControlFlowOptimizer EdgeMoveOptimizer RegisterVerifier LinearScanWalker ^Range:: RangeArray
C1: parse
  GraphBuilder BlockListBuilder BlockBegin ValueStack BlockEnd ValueMap MemoryBuffer
  MethodLiveness* JsrScopeEntryResetter BciBlockMapping
C1: optimisation
  Canonicalizer Optimizer GlobalValueNumbering NullCheckElim* NullCheckVisitor
  ValueNumberingVisitor RangeCheckElim* IR ComputeLinearScanOrder CE_Eliminator BlockMerger
  UseCountComputer CriticalEdge* SubstitutionResolver Instruction LoopInvariant*
  ShortLoopOptimizer PredecessorFinder SuxAndWeightAdjuster InstructionPrinter BlockList
  LoadIndexed LoadField Invoke TypeCast ArithmeticOp ShiftOp Convert Intrinsic CheckCast
  NewArray NewInstance Constant
C1: building LIR
  LIRGenerator LIR_List PhiResolver* LIR_Opr* LIRItem LIR_Const LIR_Address LIR_Op* LIRAccess
  CodeEmitInfo FrameMap
C1: code emission
  LIR_Assembler C1_MacroAssembler ConversionStub CodeStub ExceptionHandlerTable
  DebugInformationRecorder PatchingStub *ExceptionStub RangeCheckStub DivByZeroStub
  NewInstanceStub NewTypeArrayStub NewObjectArrayStub MonitorEnterStub MonitorExitStub
  MonitorAccessStub DeoptimizeStub CounterOverflowStub ArrayCopyStub ImplicitNullCheckStub
  PredicateFailedStub C1SafepointPollStub StubAssembler
C1
  Compilation Compilation::* Compiler Runtime1::generate* Runtime1::initialize*
# Both.
assembler
  MacroAssembler Assembler AbstractAssembler CodeBuffer CodeSection *StubGenerator
  TemplateInterpreterGenerator TemplateTable Label InterpreterMacroAssembler AddressLiteral
  Relocation *_Relocation RelocIterator Template NativeCall NativeFarCall NativePltCall
  NativeMov* NativeJump* NativeGeneralJump OopRecorder ImplicitExceptionTable
  DebugInfoWriteStream CompressedWriteStream CompressedStream Dependencies
  VM_Version_StubGenerator AdapterGenerator ValueRecorder* relocInfo
  AbstractInterpreterGenerator OptoRuntime::generate*
class and method data
  ^ci BCEscapeAnalyzer ObjectValue
queue and policy
  CompileBroker CompilationPolicy CompileTask CompileQueue CompilerThread TieredThresholdPolicy
  SimpleThresholdPolicy NonTieredCompPolicy AbstractCompiler CompilerOracle DirectivesStack
  DirectivesParser CompilerDirectives CompileReplay CompilerConfig JVMCI* JNIJVMCI HotSpotJVMCI
  HotSpotCompiled* HotSpotStackFrameReference CodeInstaller CompilerToVM Threshold*
  CallPredicate LoopPredicate CompilerEvent* DirectiveSet TypedMethodOptionMatcher CompileLog
  CompileTrainingData CompileTaskWrapper
";

/// C2's node classes, of which there are hundreds.
pub(super) const NODES: &str = "
C2: nodes
  ^Node:: *Node::* *VectorNode*
";
