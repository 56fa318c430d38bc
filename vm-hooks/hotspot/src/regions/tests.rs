use vmscope_records::{FunctionName, Region, ThreadRole};

use super::*;

fn place(name: &str, role: ThreadRole) -> (Region, String) {
    let rules = rules();
    let name = FunctionName::new(name);
    let rule = rules.iter().find(|rule| rule.apply(name, role).is_some());
    rule.map(|rule| (rule.region, rule.part.clone())).unwrap()
}

/// Names from JDK 11, 17, 21 and 25, each behind its part.
const NAMES: [(Region, &str); 4] = [
    (Region::Gc, "
G1 young evacuation | G1ParScanThreadState::trim_queue_to_threshold(unsigned int)
G1 marking | void OopOopIterateDispatch<G1CMOopClosure>::Table::oop_oop_iterate<InstanceKlass, narrowOop>(G1CMOopClosure*, oop, Klass*)
G1 remembered sets | G1RebuildRSAndScrubTask::G1RebuildRSAndScrubRegionClosure::do_heap_region(HeapRegion*)
Parallel scavenge | PSPromotionManager::drain_stacks_depth(bool)
Parallel compaction | ParCompactionManager::follow_marking_stacks()
Shenandoah marking | ShenandoahMark::mark_loop(unsigned int)
Z marking | ZMark::mark_and_follow(ZMarkContext*, ZMarkStackEntry)
Z marking | XMark::mark_and_follow(XMarkContext*, XMarkStackEntry)
Serial young collection | SerialHeap::scan_evacuated_objs(YoungGenScanClosure*)
Serial full collection | ContiguousSpace::prepare_for_compaction(CompactPoint*)
"),
    (Region::Compiler, "
C2: barriers | G1BarrierSetC2::post_barrier(GraphKit*, Node*)
C2: register allocation | PhaseChaitin::Split(unsigned int, ResourceArea*)
C2: loop optimisation | PhaseIdealLoop::build_loop_late(VectorSet&, Node_List&)
C2: parse | Parse::do_one_bytecode()
C2: nodes | AddPNode::Ideal(PhaseGVN*, bool)
C1: register allocation | LinearScan::build_intervals()
C1: code emission | LIR_Assembler::emit_op1(LIR_Op1*)
class and method data | ciObjectFactory::get_metadata(Metadata*)
"),
    (Region::Interpreter, "
runtime | InterpreterRuntime::resolve_invoke(JavaThread*, Bytecodes::Code)
"),
    (Region::Vm, "
class loading | SystemDictionary::resolve_or_null(Symbol*, Handle, Handle, JavaThread*)
JNI | jni_GetStringUTFChars
operating system | os::javaTimeNanos()
- | nothing_that_is_known()
"),
];

#[test]
fn functions_belong_to_parts_of_the_vm() {
    for (region, names) in NAMES {
        for line in names.lines().filter(|line| !line.is_empty()) {
            let (part, name) = line.split_once(" | ").unwrap();
            let part = part.trim_start_matches('-').to_owned();
            assert_eq!(place(name, ThreadRole::Other), (region, part), "{name}");
        }
    }
}

/// Helper functions and functions with names of other parts in their parameters, on threads of
/// different roles.
#[test]
fn the_thread_decides_where_the_name_does_not() {
    use ThreadRole::{Collector, Compiler, Mutator, Other, Vm};
    let helpers = "other work of compiler threads";
    for (name, role, region, part) in [
        (
            "PhaseChaitin::compact()",
            Compiler,
            Region::Compiler,
            "C2: register allocation",
        ),
        (
            "OopMap::OopMap(int, int)",
            Compiler,
            Region::Compiler,
            helpers,
        ),
        (
            "OopMapSet::add_gc_map(int, OopMap*)",
            Compiler,
            Region::Compiler,
            helpers,
        ),
        (
            "nmethod::new_nmethod(methodHandle const&, OopMapSet*)",
            Compiler,
            Region::Compiler,
            helpers,
        ),
        (
            "nmethod::new_nmethod(methodHandle const&, OopMapSet*)",
            Other,
            Region::Vm,
            "code cache",
        ),
        (
            "LinkResolver::resolve_invoke(CallInfo&, Handle)",
            Compiler,
            Region::Compiler,
            helpers,
        ),
        (
            "LinkResolver::resolve_invoke(CallInfo&, Handle)",
            Mutator,
            Region::Interpreter,
            "runtime",
        ),
        (
            "AddPNode::Ideal(PhaseGVN*, bool)",
            Compiler,
            Region::Compiler,
            "C2: nodes",
        ),
        (
            "TypeArrayKlass::allocate_common(int, bool, JavaThread*)",
            Mutator,
            Region::Vm,
            "class linking and metadata",
        ),
        (
            "TypeAryPtr::make(Type const*)",
            Other,
            Region::Compiler,
            "C2: optimisation",
        ),
        (
            "ShenandoahFreeSet::allocate(unsigned long)",
            Vm,
            Region::Gc,
            "Shenandoah",
        ),
        (
            "ShenandoahHeapRegion::recycle()",
            Collector,
            Region::Gc,
            "Shenandoah",
        ),
        (
            "ShenandoahRuntime::load_reference_barrier_strong(oopDesc*)",
            Mutator,
            Region::Gc,
            BARRIERS,
        ),
        (
            "ZRelocate::relocate_object(ZForwarding*, zaddress_unsafe)",
            Mutator,
            Region::Gc,
            BARRIERS,
        ),
        (
            "ZRelocate::relocate_object(ZForwarding*, zaddress_unsafe)",
            Collector,
            Region::Gc,
            "Z relocation",
        ),
        (
            "MemAllocator::allocate() const",
            Mutator,
            Region::Gc,
            "allocation",
        ),
        (
            "SpinPause",
            Collector,
            Region::Gc,
            "other work of collector threads",
        ),
        ("SpinPause", Mutator, Region::Vm, "spinning"),
        ("", Compiler, Region::Compiler, helpers),
        ("", Mutator, Region::Vm, ""),
    ] {
        assert_eq!(
            place(name, role),
            (region, part.to_owned()),
            "{name} {role:?}"
        );
    }
}

#[test]
fn the_number_of_rules_fits_a_recording() {
    let rules = rules();
    assert!(rules.len() < 2000, "{}", rules.len());
    assert!(rules.iter().all(|rule| rule.module == MODULE));
}
