use super::*;
use proptest::prelude::*;

/// A section, or a subsection of names.
fn section(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let size = u8::try_from(bytes.len()).unwrap();
    assert!(size < 0x80);
    [&[kind, size], bytes].concat()
}

fn text(word: &str) -> Vec<u8> {
    let size = u8::try_from(word.len()).unwrap();
    [&[size], word.as_bytes()].concat()
}

/// A module that imports function 0, and exports function 1 and function 2.
fn module(names: &[u8]) -> Vec<u8> {
    let import = [&[1][..], &text("env"), &text("now"), &[0, 0]].concat();
    let exports = [
        &[2][..],
        &text("run"),
        &[0, 1],
        &text("_ZN3foo3barE"),
        &[0, 2],
    ];
    [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, &[1, 0x60, 0, 0]),
        section(2, &import),
        section(3, &[3, 0, 0, 0]),
        section(7, &exports.concat()),
        section(10, &[3, 2, 0, 0x0b, 2, 0, 0x0b, 2, 0, 0x0b]),
        section(0, &[&text("name")[..], names].concat()),
    ]
    .concat()
}

fn functions(bytes: &[u8]) -> [String; 4] {
    [0, 1, 2, 3].map(|number| Module::of(bytes).function(number))
}

#[test]
fn names_come_from_the_section_of_names_before_exports() {
    let none = functions(&module(&[]));
    assert_eq!(none, ["env.now", "run", "foo::bar", "wasm-function[3]"]);
    let named = [&[2, 1][..], &text("own"), &[3], &text("inner")].concat();
    let named = [section(0, &text("shares")), section(1, &named)].concat();
    let bytes = module(&named);
    assert_eq!(functions(&bytes), ["env.now", "own", "foo::bar", "inner"]);
    assert!(Module::of(&bytes).url.starts_with("wasm://wasm/shares-"));
}

#[test]
fn bodies_have_places_in_the_module() {
    let bytes = module(&[]);
    let module = Module::of(&bytes);
    for number in 1..=3 {
        let body = module.body(number).expect("a body");
        let body = body.start as usize..body.end as usize;
        assert_eq!(bytes[body], [0, 0x0b]);
    }
    assert_eq!([0, 4].map(|number| module.body(number)), [None, None]);
}

/// As `node` 18 to 24 print them in stack traces of a module with this code.
#[test]
fn addresses_are_those_of_stack_traces() {
    let begin = [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, &[1, 0x60, 0, 0]),
        section(3, &[1, 0]),
        section(7, &[&[1][..], &text("tra"), &[0, 0]].concat()),
        section(10, &[1, 3, 0, 0, 0x0b]),
    ]
    .concat();
    assert_eq!(Module::of(&begin).url, "wasm://wasm/9f9d98de");
    let name = [text("name"), section(0, &text("hello.wasm"))].concat();
    let named = [begin.clone(), section(0, &name)].concat();
    assert_eq!(Module::of(&named).url, "wasm://wasm/hello.wasm-f588eade");
    // A section of 20,000 bytes named `pad`.
    let padded = [&begin[..], &[0, 0xa4, 0x9c, 1], &text("pad"), &[7; 20000]].concat();
    assert_eq!(padded.len(), 20042);
    assert_eq!(Module::of(&padded).url, "wasm://wasm/0001392a");
}

#[test]
fn long_names_are_cut_between_characters() {
    let name = cut(format!("{}ü", "x".repeat(MAX_NAME - 1)));
    assert_eq!(name, "x".repeat(MAX_NAME - 1));
}

proptest! {
    /// Damaged modules have names, or none.
    #[test]
    fn damage_is_no_harm(patches in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..9)) {
        let named = [&[1, 1][..], &text("own")].concat();
        let mut bytes = module(&section(1, &named));
        for (at, byte) in patches {
            *at.get_mut(&mut bytes) = byte;
        }
        let names = Module::of(&bytes);
        prop_assert!(names.url.len() <= MAX_NAME + 32);
        for number in 0..4 {
            prop_assert!(names.function(number).len() <= MAX_NAME);
        }
    }
}
