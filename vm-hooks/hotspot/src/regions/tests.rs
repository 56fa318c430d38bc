use vmscope_records::Region;

use super::*;

fn place(name: &str) -> (Region, String) {
    let rules = rules();
    let rule = rules.iter().find(|rule| rule.apply(name).is_some());
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
            assert_eq!(place(name), (region, part), "{name}");
        }
    }
}

#[test]
fn the_number_of_rules_fits_a_recording() {
    let rules = rules();
    assert!(rules.len() < 1500, "{}", rules.len());
    assert!(rules.iter().all(|rule| rule.module == MODULE));
}
