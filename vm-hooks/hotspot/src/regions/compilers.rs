//! The compilers.

/// Compilers' code for collectors, by substring.
pub(super) const BARRIERS: &str = "
C1: building LIR
  BarrierSetC1 BarrierStubC1 C1BarrierStub
C2: barriers
  BarrierSetC2 BarrierStubC2 C2BarrierStub
assembler
  BarrierSetAssembler
C2: optimisation
  ^G1PreBarrierStub LoadPNode CompareAndSwapPNode
";

pub(super) const ROWS: &str = "
# C2.
C2: register allocation
  ^PhaseChaitin ^PhaseLive ^PhaseIFG ^PhaseCoalesce ^PhaseAggressiveCoalesce
  ^PhaseConservativeCoalesce ^PhaseRegAlloc ^IndexSet ^RegMask ^LRG ^LiveRange ^OptoReg ^Block_Stack
  ^find_hihghest_bit ^RegisterPressure
C2: parse
  ^Parse ^GraphKit ^LibraryCallKit ^InlineTree ^CallGenerator ^JVMState ^PreserveJVMState
  ^StringConcat ^PhaseStringOpts ^PredictedIntrinsic ^LibraryIntrinsic ^ciTypeFlow ^Compile::inline
  ^Compile::make_vm_intrinsic ^Compile::call_generator ^SwitchRanges ^BytecodeParseHistogram
  ^IdealKit ^VectorSet:: CallGenerator
C2: loop optimisation
  ^PhaseIdealLoop ^IdealLoopTree ^LoopNode ^CountedLoop ^SuperWord ^CLoop ^VLoop ^VTransform
  ^SWPointer ^VPointer ^LoopPeeling ^OuterStripMined ^DepEdge ^CountedLoopReserve ^PathFrequency
C2: optimisation
  ^PhaseIterGVN ^PhaseGVN ^PhaseCCP ^PhaseTransform ^PhaseValues ^PhaseRemoveUseless ^PhaseRenumber
  ^PhaseMacro ^ConnectionGraph ^PointsTo ^NodeHash ^Type:: ^TypeP ^TypeI ^TypeL ^TypeO ^TypeA ^TypeT
  ^TypeF ^TypeK ^TypeV ^TypeD ^TypeN ^TypeM ^Dict:: ^PhaseVector ^Unique_Node_List ^Node_List
  ^Node_Array ^Node_Stack ^InterfaceSet ^PhasePeephole ^JavaObjectNode ^Expand ^Compile::Optimize
  ^Compile::identify_useful ^Compile::disconnect_useless ^Compile::final_graph ^Compile::remove_
  ^Compile::igvn ^CastII ^Compile::optimize ^RegionNode ^split_if ^ConstraintCast
C2: scheduling
  ^PhaseCFG ^Block:: ^PhaseBlockLayout ^Trace:: ^CFGLoop ^Block_ ^Node_Backward_Iterator ^Scheduling
  ^PhaseByteVector ^UnionFind ^Tarjan ^NTarjan
C2: instruction selection
  ^Matcher ^State:: ^DFA ^State::DFA ^MachNode::Expand State::_sub_Op
C2: code emission
  ^PhaseOutput ^Compile::Output ^Compile::fill_buffer ^Compile::shorten ^BuildOopMap ^OopFlow
  ^Compile::Build ^C2CodeStub ^C2_MacroAssembler ^ConstantTable ^Compile::Process_OopMap
  ^Compile::Init ^Mach Node::emit MachNode Oper::
C2
  ^Compile:: ^C2Compiler ^Compilation:: ^OptoRuntime::generate ^CompileWrapper
# C1.
C1: register allocation
  ^LinearScan ^Interval ^LIR_OpVisitState ^MoveResolver ^FpuStack ^ControlFlowOptimizer
  ^EdgeMoveOptimizer ^RegisterVerifier ^LinearScanWalker ^Range:: ^RangeArray
C1: parse
  ^GraphBuilder ^BlockListBuilder ^BlockBegin ^ValueStack ^BlockEnd ^ValueMap ^MemoryBuffer
  ^MethodLiveness ^JsrScope ^BciBlock
C1: optimisation
  ^Canonicalizer ^Optimizer ^GlobalValueNumbering ^NullCheckElim ^RangeCheckElim ^IR::
  ^ComputeLinearScanOrder ^CE_Eliminator ^BlockMerger ^UseCountComputer ^CriticalEdge
  ^SubstitutionResolver ^Instruction:: ^LoopInvariant ^ShortLoop ^PredecessorFinder
  ^SuxAndWeightAdjuster ^InstructionPrinter ^BlockList
C1: building LIR
  ^LIRGenerator ^LIR_List ^PhiResolver ^LIR_Opr ^LIRItem ^LIR_Const ^LIR_Address ^LIR_Op
  ^CodeEmitInfo ^FrameMap
C1: code emission
  ^LIR_Assembler ^C1_MacroAssembler ^ConversionStub ^CodeStub ^ExceptionHandlerTable
  ^DebugInformationRecorder ^PatchingStub Stub::emit_code
C1
  ^Compilation ^Compiler:: ^Runtime1::generate
# Both.
assembler
  ^MacroAssembler ^Assembler ^AbstractAssembler ^CodeBuffer ^CodeSection ^StubGenerator
  ^TemplateInterpreterGenerator ^TemplateTable ^Label:: ^InterpreterMacroAssembler ^AddressLiteral
  ^Relocation ^RelocIterator ^Template:: ^NativeCall ^NativeMov ^NativeJump ^OopRecorder
  ^ImplicitExceptionTable ^DebugInfo ^CompressedWriteStream ^CompressedStream ^Dependencies::
  ^VM_Version_StubGenerator ^AdapterGenerator _Relocation::
class and method data
  ^ci ^BCEscape ^ObjectValue ^MethodLiveness
queue and policy
  ^CompileBroker ^CompilationPolicy ^CompileTask ^CompileQueue ^CompilerThread ^TieredThreshold
  ^SimpleThresholdPolicy ^AbstractCompiler ^CompilerOracle ^DirectivesStack ^CompilerDirectives
  ^CompileReplay ^CompilerConfig ^JVMCI ^Threshold ^CallPredicate ^LoopPredicate ^CompilerEvent
  ^DirectiveSet
";

/// Suffixes of C2's node classes, of which there are hundreds.
pub(super) const NODES: &str = "
C2: nodes
  ^Node:: Node::Ideal Node::Identity Node::Value Node::Opcode Node::hash Node::cmp Node::size_of
  Node::bottom_type Node::ideal_reg Node::is_ Node::match Node::in_RegMask Node::out_RegMask
  Node::make Node::adr_type Node::remove_dead_region Node::
";
