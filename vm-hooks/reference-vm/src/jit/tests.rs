//! Tests of what profilers see of machine code.

use super::JitOptions;
use crate::compiler::bytecodes::{Instruction, decode};
use crate::interpreter::raw::Fp;
use crate::{Options, Outcome, Vm};

/// Runs a text until it quits inside machine code, which compiles at the first activation.
fn stopped(text: &str) -> Vm {
    let options = Options {
        arguments: vec!["20".to_owned()],
        output: Box::new(std::io::sink()),
        jit: JitOptions {
            compile_at: 1,
            ..JitOptions::default()
        },
        ..Options::default()
    };
    let mut vm = Vm::new(options).expect("the class library loads");
    let outcome = vm.load("test.st", text).expect("the text is right");
    assert_eq!(outcome, Outcome::Quit(3));
    vm
}

/// Name of the constituent that a profiler finds for a return address: the constituent of the
/// byte before.
fn caller_name(vm: &Vm, ret: u64) -> Option<String> {
    let all = vm.code_constituents();
    let after = all.partition_point(|(_, words)| words[0] < ret);
    let (name, _) = all.get(after.checked_sub(1)?)?;
    vm.jit.is_machine(ret).then(|| name.clone())
}

#[test]
fn the_outermost_frame_returns_to_the_interpreter() {
    let vm = stopped(
        "!Object methodsFor: 'x'!
        down: n
            n = 0 ifTrue: [Smalltalk quit: 3].
            ^(self down: n - 1) + 1! !
        Object new down: 3!",
    );
    let mut names = Vec::new();
    let mut fp = vm.running_frame();
    while fp != Fp::NONE {
        names.extend(caller_name(&vm, fp.return_address().0));
        fp = fp.caller();
    }
    let is_down = |name: &&String| *name == "Object>>down:";
    assert_eq!(names.iter().filter(is_down).count(), 3, "{names:?}");
    let outermost = names.last().map(String::as_str);
    assert_eq!(outermost, Some("ceReturnToInterpreter"), "{names:?}");
}

#[test]
fn boundaries_lead_from_each_bytecode_to_its_successor() {
    let program = crate::PROGRAMS.iter().find(|one| one.name == "json");
    let program = program.expect("the program").text;
    let vm = stopped(&format!("{program}\n!Smalltalk quit: 3!"));
    let machine = vm.jit.machine.as_ref().expect("machine code");
    assert!(machine.codes.len() > 100);
    for code in &machine.codes {
        let method = vm.image.method(code.method).expect("the method");
        for range in code.made.boundaries.windows(2) {
            let [(start, from), (end, to)] = [range[0], range[1]];
            assert!(start <= end, "{}", method.title());
            let bytecodes = &method.code.bytecodes;
            let (_, length) = decode(bytecodes, from as usize).unwrap_or((Instruction::Nop, 0));
            let is_right = to == from || to as usize == from as usize + length;
            assert!(is_right || start == end, "{}: {range:?}", method.title());
        }
    }
}
