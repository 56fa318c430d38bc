//! Faulty programs end with a message or a Smalltalk exception.

mod common;

use vmscope_reference_vm::memory::Parameters;
use vmscope_reference_vm::{JitOptions, Options, Outcome, Vm};

/// Runs a text. Returns its ending and its output.
fn end_of(memory: Parameters, text: &str) -> (String, String) {
    let mut running = common::vm(memory, &[]);
    let outcome = match running.load(text) {
        Ok(Outcome::Value(_)) => "value".to_owned(),
        Ok(Outcome::Quit(code)) => format!("quit {code}"),
        Err(error) => error.to_string(),
    };
    (outcome, running.output.get() + &running.errors.get())
}

fn outcome_of(text: &str) -> String {
    end_of(Parameters::default(), text).0
}

#[test]
fn syntax_errors_have_place_and_expectation() {
    for (text, start) in [
        ("Transcript show: (3 + !", "test.st:1:"),
        ("| a |\na := 3.\nb := 4!", "test.st:3:1: "),
        ("!Object methodsFor: 'x'!\nfoo\n\t^#(1 2! !", "test.st:3:"),
        ("thisContext!", "test.st:1:1: "),
        (
            "NoSuch subclass: #Foo instanceVariableNames: '' classVariableNames: '' package: ''!",
            "test.st:1: the superclass NoSuch is not defined",
        ),
        (
            "!NoSuch methodsFor: 'x'!\nfoo\n\t^1! !",
            "test.st:2: the class NoSuch is not defined",
        ),
        (
            "Object subclass: #Array instanceVariableNames: 'a' classVariableNames: '' package: ''!",
            "test.st:1: the class Array exists with other variables",
        ),
        (
            "!Context methodsFor: 'x'!\nbreak\n\tframe := 3! !",
            "test.st:2: the instance variables of Context can only be read",
        ),
        (
            "!Class methodsFor: 'x'!\nbreak\n\tformat := 3! !",
            "test.st:2: the instance variables of",
        ),
    ] {
        let outcome = outcome_of(text);
        assert!(outcome.starts_with(start), "{text}: {outcome}");
    }
}

#[test]
fn unhandled_errors_print_a_trace_and_end_the_vm() {
    let text = "Object subclass: #Foo instanceVariableNames: '' classVariableNames: '' package: ''!\n\
                !Foo methodsFor: 'x'!\nouter\n\t^#(1) collect: [:each |\n\t\tself inner: each]!\n\ninner: each\n\t^each frobnicate! !\n\
                Foo new outer!";
    let (outcome, output) = end_of(Parameters::default(), text);
    assert_eq!(outcome, "quit 1");
    for part in [
        "frobnicate",
        "Foo>>inner: (test.st:8)",
        "[] in Foo>>outer (test.st:5)",
        "UndefinedObject>>DoIt",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
}

#[test]
fn exhaustion_ends_in_exceptions() {
    let mut running = common::vm(Parameters::default(), &[]);
    let text = "!Object methodsFor: 'x'!\ndown\n\t^self down + 1! !\n\
        Transcript showln: ([nil down] on: StackOverflow do: [:error | error messageText printString size > 0])!\n\
        Transcript showln: ([3 / 0] on: ZeroDivide do: [:error | error class name])!\n\
        Transcript showln: ([#(1 2) at: 3] on: Error do: [:error | error class name])!\n\
        Transcript showln: ([Array new: -1] on: Error do: [:error | 'size'])!\n\
        Transcript showln: (['x' + 1] on: MessageNotUnderstood do: [:error | 'understood'])!\n\
        Transcript showln: ([nil foo: 1 bar: 2] on: MessageNotUnderstood do: [:error | error message selector])!";
    running.output_of(text);
}

#[test]
fn a_full_heap_is_an_exception_that_can_be_handled() {
    let memory = Parameters {
        max_old_bytes: 8 << 20,
        eden_bytes: 1 << 20,
        growth_headroom: 1 << 20,
        ..Parameters::default()
    };
    let text = "| all | all := OrderedCollection new.\n\
        [[true] whileTrue: [all add: (Array new: 1000)]] on: OutOfMemory do: [:error | all := nil].\n\
        Smalltalk garbageCollect.\n\
        all := (1 to: 100) collect: [:each | Array new: each].\n\
        Transcript showln: all size printString!";
    let (outcome, output) = end_of(memory, text);
    assert_eq!((outcome.as_str(), output.as_str()), ("value", "100\n"));
}

#[test]
fn bad_arguments_of_primitives_fail() {
    // Calls these primitives with odd receivers and arguments. No combination may crash the VM.
    let numbers: Vec<usize> = (1..=62)
        .chain(70..=75)
        .chain(83..=89)
        .chain([105, 110, 111, 130, 131, 135, 136, 148])
        .chain(158..=163)
        .chain(167..=174)
        .chain(197..=206)
        .chain([240, 254])
        .chain(500..=507)
        .chain(522..=532)
        .chain([540])
        .collect();
    let values = "{nil. 3. -1. 1.5. $a. 'text'. #symbol. {1. 2}. Object. Object class. [:x | x]. \
                  Context current. Semaphore new. 1/2}";
    let methods = "odd # ^nil!\nodd: x # ^nil!\nodd: x with: y # ^nil!\nodd: x with: y with: z with: w # ^nil! !";
    for number in numbers {
        let methods = methods.replace('#', &format!("<primitive: {number}>"));
        let text = format!(
            "!Object methodsFor: 'x'!\n{methods}\n\
             {values} do: [:a | {values} do: [:b |\n\
             [a odd] on: Error do: [:error | error return: nil].\n\
             [a odd: b] on: Error do: [:error | error return: nil].\n\
             [a odd: b with: 2] on: Error do: [:error | error return: nil].\n\
             [a odd: 1 with: 2 with: b with: 1] on: Error do: [:error | error return: nil]]]!\n"
        );
        let (outcome, _) = end_of(small(), &text);
        // Some primitives wait for ever, quit or terminate the process: a quit is a valid outcome.
        assert!(
            outcome == "value" || outcome.starts_with("quit"),
            "primitive {number}: {outcome}"
        );
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn without_memory_for_machine_code_the_vm_interprets_and_says_so() {
    let jit = JitOptions {
        zone_bytes: 1 << 60,
        ..JitOptions::default()
    };
    let options = Options {
        jit,
        ..Options::default()
    };
    let mut vm = Vm::new(options).expect("a VM");
    let trouble = vm.jit_trouble().expect("the reason").to_owned();
    assert!(
        trouble.starts_with("cannot make a zone of machine code: "),
        "{trouble}"
    );
    let outcome = vm.load("test.st", "(1 to: 100) inject: 0 into: [:a :b | a + b]!");
    assert!(matches!(outcome, Ok(Outcome::Value(_))), "{outcome:?}");
}

fn small() -> Parameters {
    Parameters {
        eden_bytes: 1 << 20,
        max_old_bytes: 64 << 20,
        ..Parameters::default()
    }
}
