use vmscope_records::Region;

use super::*;

fn place(name: &str) -> (Region, String) {
    let rules = rules();
    let rule = rules.iter().find(|rule| rule.apply(name).is_some());
    rule.map(|rule| (rule.region, rule.part.clone())).unwrap()
}

#[test]
fn names_of_four_versions_belong_where_they_work() {
    use Region::{Compiler, Gc, Interpreter, Vm};
    for (name, region, part) in [
        (
            "G1ParScanThreadState::trim_queue_to_threshold(unsigned int)",
            Gc,
            "G1 young evacuation",
        ),
        (
            "void OopOopIterateDispatch<G1CMOopClosure>::Table::oop_oop_iterate<InstanceKlass, narrowOop>(G1CMOopClosure*, oop, Klass*)",
            Gc,
            "G1 marking",
        ),
        (
            "G1RebuildRSAndScrubTask::G1RebuildRSAndScrubRegionClosure::do_heap_region(HeapRegion*)",
            Gc,
            "G1 remembered sets",
        ),
        (
            "PSPromotionManager::drain_stacks_depth(bool)",
            Gc,
            "Parallel scavenge",
        ),
        (
            "ParCompactionManager::follow_marking_stacks()",
            Gc,
            "Parallel compaction",
        ),
        (
            "ShenandoahMark::mark_loop(unsigned int)",
            Gc,
            "Shenandoah marking",
        ),
        (
            "ZMark::mark_and_follow(ZMarkContext*, ZMarkStackEntry)",
            Gc,
            "Z marking",
        ),
        (
            "XMark::mark_and_follow(XMarkContext*, XMarkStackEntry)",
            Gc,
            "Z marking",
        ),
        (
            "SerialHeap::scan_evacuated_objs(YoungGenScanClosure*)",
            Gc,
            "Serial young collection",
        ),
        (
            "ContiguousSpace::prepare_for_compaction(CompactPoint*)",
            Gc,
            "Serial full collection",
        ),
        (
            "G1BarrierSetC2::post_barrier(GraphKit*, Node*)",
            Compiler,
            "C2: barriers",
        ),
        (
            "PhaseChaitin::Split(unsigned int, ResourceArea*)",
            Compiler,
            "C2: register allocation",
        ),
        (
            "PhaseIdealLoop::build_loop_late(VectorSet&, Node_List&)",
            Compiler,
            "C2: loop optimisation",
        ),
        ("Parse::do_one_bytecode()", Compiler, "C2: parse"),
        ("AddPNode::Ideal(PhaseGVN*, bool)", Compiler, "C2: nodes"),
        (
            "LinearScan::build_intervals()",
            Compiler,
            "C1: register allocation",
        ),
        (
            "LIR_Assembler::emit_op1(LIR_Op1*)",
            Compiler,
            "C1: code emission",
        ),
        (
            "ciObjectFactory::get_metadata(Metadata*)",
            Compiler,
            "what is known of the program",
        ),
        (
            "InterpreterRuntime::resolve_invoke(JavaThread*, Bytecodes::Code)",
            Interpreter,
            "runtime",
        ),
        (
            "SystemDictionary::resolve_or_null(Symbol*, Handle, Handle, JavaThread*)",
            Vm,
            "class loading",
        ),
        ("jni_GetStringUTFChars", Vm, "JNI"),
        ("os::javaTimeNanos()", Vm, "operating system"),
        ("nothing_that_is_known()", Vm, ""),
    ] {
        assert_eq!(place(name), (region, part.to_owned()), "{name}");
    }
}

#[test]
fn the_rules_are_as_many_as_a_recording_takes() {
    let rules = rules();
    assert!(rules.len() < 1500, "{}", rules.len());
    assert!(rules.iter().all(|rule| rule.module == MODULE));
}
