//! Sites whose objects are allocated in old space.

mod common;

use vmscope_reference_vm::memory::Parameters;
use vmscope_reference_vm::{JitOptions, Options, Outcome, Vm};

/// `make` allocates by `new`, and `copy` by a copying method of the library.
const MAKER: &str = "\
Object subclass: #Maker instanceVariableNames: '' classVariableNames: '' package: 'Test'!

!Maker methodsFor: 'making'!
make
\t^Association new!

copy: text
\t^text copyFrom: 1 to: 20!

other
\t^Association new! !
";

/// Number of scavenges while the statement runs 40,000 times, in a VM that pretenures these methods.
fn scavenges(methods: &[&str], statement: &str, is_jitted: bool) -> u64 {
    // Whatever the pc of the send is.
    let sites = methods
        .iter()
        .flat_map(|method| (1..100).map(move |pc| (format!("Maker>>{method}"), pc)));
    let output = common::Text::default();
    let options = Options {
        memory: Parameters {
            eden_bytes: 256 << 10,
            max_old_bytes: 64 << 20,
            ..Parameters::default()
        },
        jit: JitOptions {
            on: is_jitted,
            ..JitOptions::default()
        },
        pretenured_sites: sites.collect(),
        output: Box::new(output.clone()),
        ..Options::default()
    };
    let mut vm = Vm::new(options).expect("a VM");
    let text = format!(
        "{MAKER}\n| maker text before |\n\
         maker := Maker new. text := String new: 40. before := Smalltalk vmParameterAt: 9.\n\
         1 to: 40000 do: [:n | {statement}].\n\
         Transcript showln: ((Smalltalk vmParameterAt: 9) - before) printString!\n"
    );
    let outcome = vm.load("test.st", &text).expect("the text is right");
    assert!(matches!(outcome, Outcome::Value(_)), "{outcome:?}");
    let printed = output.get();
    printed.trim().parse().expect("a number")
}

#[test]
fn a_site_allocates_in_old_space_alone_or_through_a_library_method() {
    for is_jitted in [false, true] {
        let scavenges = |methods: &[&str], statement| scavenges(methods, statement, is_jitted);
        for (method, statement) in [("make", "maker make"), ("copy:", "maker copy: text")] {
            assert!(scavenges(&[], statement) > 2, "{statement}");
            assert_eq!(scavenges(&[method], statement), 0, "{statement}");
        }
        // Other sites stay in eden, whoever is pretenured.
        assert!(scavenges(&["make", "copy:"], "maker other") > 2);
    }
}
