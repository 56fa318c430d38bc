use super::*;

/// Sizes of 150 instructions at three scales. The first instructions are V8's; later instructions have one operand of
/// one byte each.
fn sizes_of(scale: usize) -> Vec<u8> {
    let operands = [0, 0, 0, 0, 0, 1, 2].into_iter();
    let operands = operands.chain((7..150).map(|number| number % 5));
    operands.map(|count| 1 + (count << scale)).collect()
}

fn operands() -> Vec<u8> {
    let sizes = sizes_of(0);
    sizes.iter().map(|size| size - 1).collect()
}

fn words(words: impl Iterator<Item = u64>) -> Vec<u8> {
    words.flat_map(u64::to_le_bytes).collect()
}

/// All tables with their symbols. Other data precedes each table.
fn program() -> (Contents, Vec<(&'static str, u64, u64)>) {
    let mut contents = Contents::default();
    contents.constants.at = Avma(0x1000);
    let mut expected = Vec::new();
    let bytes = &mut contents.constants.bytes;
    bytes.extend(*b"xname\0..");
    // The first sizes alone.
    bytes.extend(FIRST_SIZES);
    bytes.push(0);
    let mut add = |name, bytes: &mut Vec<u8>, table: &[u8]| {
        expected.push((name, 0x1000 + bytes.len() as u64, table.len() as u64));
        bytes.extend(table);
    };
    let sizes: Vec<u8> = (0..3).flat_map(sizes_of).collect();
    add(SIZES, bytes, &sizes);
    bytes.resize(bytes.len().next_multiple_of(8), 0xff);
    let counts = operands();
    let counts: Vec<u8> = counts.iter().flat_map(|count| [*count, 0, 0, 0]).collect();
    add(COUNTS, bytes, &counts);
    let sizes = sizes_of_operands().last().unwrap();
    add(OPERAND_SIZES, bytes, &sizes);
    // Operands whose bytes grow with the scale have the type 8.
    let ones = 0x1000 + bytes.len() as u64;
    bytes.extend([8; 8]);
    let types = operands().into_iter().map(|count| match count {
        0 => 0,
        _ => ones,
    });
    // A table of the same form refers to other data.
    let others = types.clone().map(|at| if at > 0 { 0x1001 } else { 0 });
    let functions = (0..300_u64).flat_map(|number| [number | (1 << 32), 0x1001, 0x9999, 1]);
    let types = others.chain(types);
    let variables = words([5].into_iter().chain(types).chain([9]).chain(functions));
    expected.push((OPERANDS, 0x8008 + 150 * 8, 150 * 8));
    expected.push((RUNTIME, 0x8008 + 301 * 8, 300 * 32));
    contents.variables.push(Piece {
        at: Avma(0x8000),
        bytes: variables,
    });
    (contents, expected)
}

fn found(contents: &Contents) -> Vec<(String, u64, u64)> {
    let symbols = symbols(contents).into_iter();
    let mut all: Vec<_> = symbols
        .map(|symbol| (symbol.name, symbol.address.0, symbol.size))
        .collect();
    all.sort();
    all
}

#[test]
fn tables_are_found_by_what_they_hold() {
    let (contents, expected) = program();
    let mut expected: Vec<_> = (expected.into_iter())
        .map(|(name, at, size)| (name.to_owned(), at, size))
        .collect();
    expected.sort();
    assert_eq!(found(&contents), expected);
}

#[test]
fn contradictory_sizes_are_no_table() {
    let (mut contents, expected) = program();
    let (_, at, size) = expected[0];
    let last = at - 0x1000 + size - 1;
    contents.constants.bytes[usize::try_from(last).unwrap()] += 1;
    let names: Vec<String> = found(&contents)
        .into_iter()
        .map(|(name, ..)| name)
        .collect();
    assert!(
        !names
            .iter()
            .any(|name| name == SIZES || name == COUNTS || name == OPERANDS)
    );
    assert_eq!(found(&Contents::default()), []);
}

#[test]
fn damaged_programs_have_tables_within_their_data() {
    let (whole, _) = program();
    let check = |contents: &Contents| {
        for (_, at, size) in found(contents) {
            let holds = |piece: &Piece| {
                let range = piece.range(0..piece.bytes.len());
                range.start.0 <= at && at + size <= range.end.0
            };
            assert!(contents.pieces().any(holds), "{at:#x}, {size}");
        }
    };
    let constants = whole.constants.bytes.len();
    for at in (0..constants).step_by(7) {
        let mut damaged = whole.clone();
        damaged.constants.bytes[at] ^= 0x81;
        check(&damaged);
        damaged.constants.bytes.truncate(at);
        check(&damaged);
        let variables = &mut damaged.variables[0].bytes;
        variables.truncate(at * variables.len() / constants);
        check(&damaged);
    }
}
