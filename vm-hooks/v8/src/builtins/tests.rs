use vmscope_process::testing::FakeMemory;

use super::*;

const CONSTANTS: u64 = 0x10_0000;
const TABLE: u64 = 0x20_0000;
const ISOLATE: u64 = 0x30_0000;
const CODE: u64 = 0x40_0000;

/// Kind of handlers.
const HANDLER: u64 = 5;

/// Adds a text to constant data; returns its address.
fn text(contents: &mut Contents, text: &str) -> u64 {
    let bytes = &mut contents.constants.bytes;
    let at = CONSTANTS + bytes.len() as u64;
    bytes.extend(text.bytes().chain([0]));
    at
}

/// Names, kinds and data of builtins: `Before`, 300 handlers, `After`.
fn described() -> Vec<(String, u64, u64)> {
    let handlers = (0..300_u64).map(|number| {
        let name = match number {
            0 => FIRST_HANDLER.to_owned(),
            _ => format!("H{number}Handler"),
        };
        let scale = [1, 2][usize::from(number > 199)];
        (name, HANDLER, (scale << 8) | (number % 200))
    });
    let other = |name: &str| (name.to_owned(), 2, 0);
    let all = [other("Before")].into_iter().chain(handlers);
    all.chain([other("After")]).collect()
}

/// A table of builtins between other data.
fn contents(described: &[(String, u64, u64)]) -> Contents {
    let mut contents = Contents::default();
    contents.constants.at = Avma(CONSTANTS);
    let no_name = text(&mut contents, "no name");
    let mut words = vec![no_name, 1, 0];
    for (name, kind, data) in described {
        words.extend([text(&mut contents, name), *kind, *data]);
    }
    words.extend([text(&mut contents, "Another"), 99, 0]);
    contents.variables.push(Piece {
        at: Avma(TABLE),
        bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    });
    contents
}

fn entry(index: usize) -> u64 {
    // Builtins and their addresses have different orders.
    CODE + 0x100 * (index as u64 ^ 1)
}

fn handlers() -> Vec<u64> {
    let mut handlers = vec![0; 768];
    for index in 0..300 {
        let place = if index > 199 {
            256 + index % 200
        } else {
            index
        };
        handlers[place] = entry(index + 1);
    }
    handlers
}

/// An isolate whose list of entries begins at a word.
fn isolate(at: usize, count: usize) -> FakeMemory {
    let mut words = vec![7; at];
    // An equal entry before the list.
    words[2] = entry(1);
    words.extend((0..count).map(entry));
    let mut memory = FakeMemory::new();
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    memory.put(Avma(ISOLATE), bytes.collect());
    memory
}

#[test]
fn the_list_of_entries_may_be_that_of_the_second_mapping() {
    let handlers: Vec<u64> = handlers().iter().map(|entry| entry + 0x1000).collect();
    let found = found(&contents(&described()), &isolate(20, 302), &handlers);
    assert_eq!(found.len(), 302);
    assert_eq!(found[0].address, Avma(CODE + 0x1000));
}

fn found(contents: &Contents, memory: &FakeMemory, handlers: &[u64]) -> Vec<Symbol> {
    symbols(contents, Isolate(Avma(ISOLATE)), handlers, memory).unwrap()
}

#[test]
fn builtins_have_their_names_and_addresses() {
    let described = described();
    let found = found(&contents(&described), &isolate(20, 302), &handlers());
    assert_eq!(found.len(), 302);
    for (index, (name, ..)) in described.iter().enumerate() {
        let symbol = found.iter().find(|symbol| symbol.address.0 == entry(index));
        let symbol = symbol.unwrap();
        assert_eq!(symbol.name, format!("Builtins_{name}"));
        let is_last = entry(index) == CODE + 0x100 * 301;
        assert_eq!(symbol.size, if is_last { LAST } else { 0x100 });
    }
}

#[test]
fn a_contradiction_means_no_names() {
    let described = described();
    let contents = contents(&described);
    // One handler stands elsewhere.
    let mut moved = handlers();
    moved[100] += 16;
    assert_eq!(found(&contents, &isolate(20, 302), &moved), []);
    // The list of entries ends too early.
    assert_eq!(found(&contents, &isolate(20, 200), &handlers()), []);
    let few = super::tests::contents(&described[..200]);
    assert_eq!(found(&few, &isolate(20, 302), &handlers()), []);
    let none = Contents::default();
    assert_eq!(found(&none, &isolate(20, 302), &handlers()), []);
    assert_eq!(found(&contents, &FakeMemory::new(), &handlers()), []);
}

#[test]
fn damaged_tables_are_read_within_their_data() {
    let (described, memory) = (described(), isolate(20, 302));
    let whole = contents(&described);
    // The words around may become descriptions.
    let check = |damaged: &Contents| assert!(found(damaged, &memory, &handlers()).len() <= 304);
    for at in (0..whole.variables[0].bytes.len()).step_by(13) {
        let mut damaged = whole.clone();
        damaged.variables[0].bytes[at] ^= 0x81;
        check(&damaged);
        damaged.variables[0].bytes.truncate(at);
        check(&damaged);
        damaged.constants.bytes.truncate(at / 2);
        check(&damaged);
    }
}
