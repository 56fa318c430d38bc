//! The compilers.

use super::Row;
use vmscope_records::Region::Compiler;

const C1_EMIT: &str = "C1: code emission";
const C2_EMIT: &str = "C2: code emission";

/// Compilers' code for collectors, by substring.
pub(super) const BARRIERS: &[Row] = &[
    Row {
        begins: "",
        holds: "BarrierSetC1 BarrierStubC1 C1BarrierStub",
        region: Compiler,
        part: "C1: building LIR",
    },
    Row {
        begins: "",
        holds: "BarrierSetC2 BarrierStubC2 C2BarrierStub",
        region: Compiler,
        part: "C2: barriers",
    },
    Row {
        begins: "",
        holds: "BarrierSetAssembler",
        region: Compiler,
        part: "assembler",
    },
    Row {
        begins: "G1PreBarrierStub",
        holds: "LoadPNode CompareAndSwapPNode",
        region: Compiler,
        part: "C2: optimisation",
    },
];

pub(super) const ROWS: &[Row] = &[
    // C2.
    Row {
        begins: "PhaseChaitin PhaseLive PhaseIFG PhaseCoalesce PhaseAggressiveCoalesce \
         PhaseConservativeCoalesce PhaseRegAlloc IndexSet RegMask LRG LiveRange OptoReg \
         Block_Stack find_hihghest_bit RegisterPressure",
        holds: "",
        region: Compiler,
        part: "C2: register allocation",
    },
    Row {
        begins: "Parse GraphKit LibraryCallKit InlineTree CallGenerator JVMState PreserveJVMState \
         StringConcat PhaseStringOpts PredictedIntrinsic LibraryIntrinsic ciTypeFlow \
         Compile::inline Compile::make_vm_intrinsic Compile::call_generator SwitchRanges \
         BytecodeParseHistogram IdealKit VectorSet::",
        holds: "CallGenerator",
        region: Compiler,
        part: "C2: parse",
    },
    Row {
        begins: "PhaseIdealLoop IdealLoopTree LoopNode CountedLoop SuperWord CLoop VLoop VTransform \
         SWPointer VPointer LoopPeeling OuterStripMined DepEdge CountedLoopReserve \
         PathFrequency",
        holds: "",
        region: Compiler,
        part: "C2: loop optimisation",
    },
    Row {
        begins: "PhaseIterGVN PhaseGVN PhaseCCP PhaseTransform PhaseValues PhaseRemoveUseless \
         PhaseRenumber PhaseMacro ConnectionGraph PointsTo NodeHash Type:: TypeP TypeI TypeL \
         TypeO TypeA TypeT TypeF TypeK TypeV TypeD TypeN TypeM Dict:: PhaseVector \
         Unique_Node_List Node_List Node_Array Node_Stack InterfaceSet PhasePeephole \
         JavaObjectNode Expand Compile::Optimize Compile::identify_useful \
         Compile::disconnect_useless Compile::final_graph Compile::remove_ Compile::igvn \
         CastII Compile::optimize RegionNode split_if ConstraintCast",
        holds: "",
        region: Compiler,
        part: "C2: optimisation",
    },
    Row {
        begins: "PhaseCFG Block:: PhaseBlockLayout Trace:: CFGLoop Block_ Node_Backward_Iterator \
         Scheduling PhaseByteVector UnionFind Tarjan NTarjan",
        holds: "",
        region: Compiler,
        part: "C2: scheduling",
    },
    Row {
        begins: "Matcher State:: DFA State::DFA MachNode::Expand",
        holds: "State::_sub_Op",
        region: Compiler,
        part: "C2: instruction selection",
    },
    Row {
        begins: "PhaseOutput Compile::Output Compile::fill_buffer Compile::shorten BuildOopMap \
         OopFlow Compile::Build C2CodeStub C2_MacroAssembler ConstantTable \
         Compile::Process_OopMap Compile::Init Mach",
        holds: "Node::emit MachNode Oper::",
        region: Compiler,
        part: C2_EMIT,
    },
    Row {
        begins: "Compile:: C2Compiler Compilation:: OptoRuntime::generate CompileWrapper",
        holds: "",
        region: Compiler,
        part: "C2",
    },
    // C1.
    Row {
        begins: "LinearScan Interval LIR_OpVisitState MoveResolver FpuStack ControlFlowOptimizer \
         EdgeMoveOptimizer RegisterVerifier LinearScanWalker Range:: RangeArray",
        holds: "",
        region: Compiler,
        part: "C1: register allocation",
    },
    Row {
        begins: "GraphBuilder BlockListBuilder BlockBegin ValueStack BlockEnd ValueMap MemoryBuffer \
         MethodLiveness JsrScope BciBlock",
        holds: "",
        region: Compiler,
        part: "C1: parse",
    },
    Row {
        begins: "Canonicalizer Optimizer GlobalValueNumbering NullCheckElim RangeCheckElim IR:: \
         ComputeLinearScanOrder CE_Eliminator BlockMerger UseCountComputer CriticalEdge \
         SubstitutionResolver Instruction:: LoopInvariant ShortLoop PredecessorFinder \
         SuxAndWeightAdjuster InstructionPrinter BlockList",
        holds: "",
        region: Compiler,
        part: "C1: optimisation",
    },
    Row {
        begins: "LIRGenerator LIR_List PhiResolver LIR_Opr LIRItem LIR_Const LIR_Address LIR_Op \
         CodeEmitInfo FrameMap",
        holds: "",
        region: Compiler,
        part: "C1: building LIR",
    },
    Row {
        begins: "LIR_Assembler C1_MacroAssembler ConversionStub CodeStub ExceptionHandlerTable \
         DebugInformationRecorder PatchingStub",
        holds: "Stub::emit_code",
        region: Compiler,
        part: C1_EMIT,
    },
    Row {
        begins: "Compilation Compiler:: Runtime1::generate",
        holds: "",
        region: Compiler,
        part: "C1",
    },
    // Both.
    Row {
        begins: "MacroAssembler Assembler AbstractAssembler CodeBuffer CodeSection StubGenerator \
         TemplateInterpreterGenerator TemplateTable Label:: InterpreterMacroAssembler \
         AddressLiteral Relocation RelocIterator Template:: NativeCall NativeMov NativeJump \
         OopRecorder ImplicitExceptionTable DebugInfo CompressedWriteStream CompressedStream \
         Dependencies:: VM_Version_StubGenerator AdapterGenerator",
        holds: "_Relocation::",
        region: Compiler,
        part: "assembler",
    },
    Row {
        begins: "ci BCEscape ObjectValue MethodLiveness",
        holds: "",
        region: Compiler,
        part: "what is known of the program",
    },
    Row {
        begins: "CompileBroker CompilationPolicy CompileTask CompileQueue CompilerThread \
         TieredThreshold SimpleThresholdPolicy AbstractCompiler CompilerOracle \
         DirectivesStack CompilerDirectives CompileReplay CompilerConfig JVMCI Threshold \
         CallPredicate LoopPredicate CompilerEvent DirectiveSet",
        holds: "",
        region: Compiler,
        part: "queue and policy",
    },
];

/// Suffixes of C2's node classes, of which there are hundreds.
pub(super) const NODES: &[Row] = &[Row {
    begins: "Node::",
    holds: "Node::Ideal Node::Identity Node::Value Node::Opcode Node::hash Node::cmp \
         Node::size_of Node::bottom_type Node::ideal_reg Node::is_ Node::match \
         Node::in_RegMask Node::out_RegMask Node::make Node::adr_type \
         Node::remove_dead_region Node::",
    region: Compiler,
    part: "C2: nodes",
}];
