use proptest::prelude::*;
use vmscope_process::testing::FakeMemory;

use super::*;
use crate::debug::Debug;
use crate::versions::Layout;

const VARIABLE: u64 = 0x1000;
const MANAGER: u64 = 0x2000;
const MODULE: u64 = 0x3000;
const REGION: (u64, u64) = (0x70_0000, 0x78_0000);
/// Nodes of maps, each 0x100 bytes.
const NODES: u64 = 0x4000;
const VECTOR: u64 = 0x6000;
/// `WasmCode`s, each 0x100 bytes.
const OBJECTS: u64 = 0x7000;
const BYTES: u64 = 0x9000;

/// A process with one module: functions 1 and 3 in its map of code, function 4 in its vector of new code.
struct Fake {
    memory: FakeMemory,
    fields: WasmFields,
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl Fake {
    fn new(version: (u32, u32)) -> Self {
        let layout = Layout::new(version, &Debug::default()).unwrap();
        let (mut memory, fields) = (FakeMemory::new(), layout.wasm);
        memory.put(Avma(VARIABLE), words(&[MANAGER]));
        memory.put(Avma(MANAGER), vec![0; 0x100]);
        memory.put(Avma(MODULE), vec![0; 0x400]);
        let mut fake = Fake { memory, fields };
        fake.put(MANAGER + fields.modules + ROOT, NODES);
        fake.node(0, [0, 0], [REGION.0, REGION.1, MODULE]);
        let (one, two, new) = (fake.code(1, 1), fake.code(3, 2), fake.code(4, 1));
        fake.put(MODULE + fields.code + ROOT, NODES + 0x100);
        fake.node(1, [0, NODES + 0x200], [fake.start(1), one, 0]);
        fake.node(2, [0, 0], [fake.start(3), two, 0]);
        fake.put(MODULE + fields.code + MAP, VECTOR);
        fake.put(MODULE + fields.code + MAP + 8, VECTOR + 8);
        fake.memory.put(Avma(VECTOR), words(&[new]));
        fake.put(MODULE + fields.bytes, BYTES);
        fake.memory.put(Avma(BYTES), words(&[BYTES + 16, 8]));
        fake
    }

    fn put(&mut self, at: u64, value: u64) {
        self.memory.write(Avma(at), &value.to_le_bytes());
    }

    fn node(&mut self, number: u64, [left, right]: [u64; 2], [key, value, more]: [u64; 3]) {
        let node = words(&[0, 0, left, right, key, value, more]);
        self.memory.put(Avma(NODES + number * 0x100), node);
    }

    fn start(&self, index: u64) -> u64 {
        REGION.0 + index * 0x1000
    }

    /// Puts a function of 256 bytes by a compiler: 1 for Liftoff, 2 for TurboFan. Returns its object's
    /// address.
    fn code(&mut self, index: u64, compiler: u8) -> u64 {
        let (at, fields) = (OBJECTS + index * 0x100, self.fields);
        self.memory.put(Avma(at), vec![0; HEADER]);
        self.put(at, MODULE);
        self.put(at + 8, self.start(index));
        let half = |offset: usize| Avma(at + offset as u64);
        self.memory.write(half(fields.size), &256_u32.to_le_bytes());
        let number = u32::try_from(index).unwrap().to_le_bytes();
        self.memory.write(half(fields.index), &number);
        self.memory
            .write(half(fields.flags), &[compiler << fields.use_bits]);
        at
    }

    fn wasm(&self) -> Wasm {
        let fields = self.fields;
        Wasm::find(&self.memory, (Some(Avma(VARIABLE)), None), fields).unwrap()
    }

    fn regions(&self) -> Vec<Region> {
        self.wasm().regions(&self.memory).unwrap()
    }

    fn all(&self) -> (Vec<WasmCode>, Option<&'static str>) {
        self.wasm().all(&self.memory, &self.regions()).unwrap()
    }

    fn at(&self, addresses: &[u64]) -> Vec<WasmCode> {
        let addresses: Vec<Avma> = addresses.iter().copied().map(Avma).collect();
        let regions = self.regions();
        self.wasm().at(&self.memory, &regions, &addresses).unwrap()
    }
}

const VERSIONS: [(u32, u32); 5] = [(10, 2), (11, 3), (12, 4), (13, 6), (14, 6)];

fn numbers(codes: &[WasmCode]) -> Vec<u32> {
    codes.iter().filter_map(|code| code.index).collect()
}

/// The tables lie behind data of protected instructions and relocation data.
#[test]
fn tables_are_source_positions_and_inlined_calls() {
    const TABLES: u64 = 0xa000;
    for version in VERSIONS {
        let mut fake = Fake::new(version);
        let (object, fields) = (OBJECTS + 0x100, fake.fields);
        let inlines = version > (11, 0);
        let half = |fake: &mut Fake, offset: usize, value: u32| {
            let at = Avma(object + offset as u64);
            fake.memory.write(at, &value.to_le_bytes());
        };
        half(&mut fake, fields.index - 4, 8);
        half(&mut fake, fields.size + 4, 2);
        half(&mut fake, fields.size + 8, 3);
        if inlines {
            half(&mut fake, fields.size + 12, 13);
        }
        fake.put(object + fields.tables as u64, TABLES);
        let call = [7, 0, 0, 0, 1, 20, 21, 22, 23, 24, 25, 26, 27];
        let tables = [&[0xee; 10][..], &[1, 2, 3], &call].concat();
        fake.memory.put(Avma(TABLES), tables);
        let (codes, _) = fake.all();
        let read = codes[0].tables.read(&fake.memory).unwrap();
        let expected = [20, 21, 22, 23, 24, 25, 26, 27, 7, 0, 0, 0, 0, 0, 0, 0];
        let expected = if inlines {
            expected.to_vec()
        } else {
            Vec::new()
        };
        assert_eq!(read, (vec![1, 2, 3], expected), "{version:?}");
        // Too much.
        half(&mut fake, fields.size + 8, u32::MAX);
        assert!(fake.all().0[0].tables.read(&fake.memory).is_err());
    }
}

#[test]
fn code_is_in_the_map_and_in_the_vector_of_new_code() {
    for version in VERSIONS {
        let fake = Fake::new(version);
        let (all, damage) = fake.all();
        assert_eq!(
            (numbers(&all), damage),
            (vec![1, 3, 4], None),
            "{version:?}"
        );
        let kinds: Vec<WasmKind> = all.iter().map(|code| code.kind).collect();
        let expected = [WasmKind::Liftoff, WasmKind::Turbofan, WasmKind::Liftoff];
        assert_eq!(kinds, expected, "{version:?}");
        let inside = |index| fake.start(index) + 7;
        assert_eq!(numbers(&fake.at(&[inside(3)])), [3]);
        assert_eq!(numbers(&fake.at(&[inside(1), inside(4)])), [1, 4]);
        // A return address may be behind the last instruction.
        assert_eq!(numbers(&fake.at(&[fake.start(1) + 256])), [1]);
        assert_eq!(fake.at(&[inside(2), 0x1234]), []);
        let bytes = fake.wasm().bytes_of(&fake.memory, Avma(MODULE)).unwrap();
        let expected = ModuleBytes {
            start: Avma(BYTES + 16),
            size: 8,
        };
        assert_eq!(bytes, Some(expected));
    }
}

#[test]
fn removed_code_is_not_there() {
    let mut fake = Fake::new((12, 4));
    let all = fake.all().0;
    // The allocator uses the object's first words once it is free.
    fake.put(OBJECTS + 0x300, 0x1111);
    let still = fake.wasm().still(&fake.memory, &all).unwrap();
    assert_eq!(numbers(&still), [1, 4]);
    assert_eq!(numbers(&fake.all().0), [1, 4]);
}

#[test]
fn without_local_symbols_a_function_tells_the_variable() {
    let mut fake = Fake::new((11, 3));
    let distance = i32::try_from(VARIABLE).unwrap() - 0x507;
    let code = [&[0x48, 0x8b, 5][..], &distance.to_le_bytes(), &[0xc3]].concat();
    fake.memory.put(Avma(0x500), code);
    let find = |getter| Wasm::find(&fake.memory, (None, getter), fake.fields);
    let wasm = find(Some(Avma(0x500))).unwrap();
    assert_eq!(wasm.regions(&fake.memory).unwrap(), fake.regions());
    assert!(find(Some(Avma(VARIABLE))).is_none());
    assert!(find(None).is_none());
}

#[test]
fn damaged_lists_end() {
    let mut fake = Fake::new((13, 6));
    fake.put(NODES + 0x200 + 24, NODES + 0x100);
    assert!(fake.all().1.is_some(), "a circle");
    let mut fake = Fake::new((13, 6));
    fake.put(MODULE + fake.fields.code + MAP + 8, u64::MAX);
    assert_eq!(numbers(&fake.all().0), [1, 3], "a vector without an end");
    assert!(fake.all().1.is_some(), "a vector without an end");
    let mut fake = Fake::new((13, 6));
    fake.put(OBJECTS + 0x108, u64::MAX - 3);
    assert_eq!(numbers(&fake.all().0), [3, 4], "code beyond all addresses");
    let mut fake = Fake::new((13, 6));
    fake.put(BYTES + 8, MAX_MODULE + 1);
    let bytes = fake.wasm().bytes_of(&fake.memory, Avma(MODULE)).unwrap();
    assert_eq!(bytes, None, "a module too large");
    fake.put(VARIABLE, 0);
    assert_eq!(fake.regions(), [], "before V8's start");
}

proptest! {
    #[test]
    fn wrong_words_are_no_harm(
        version in 0..4_usize,
        patches in prop::collection::vec((0x2000..0x9000_u64, prop_oneof![any::<u64>(), 0..0xa000_u64]), 1..40),
    ) {
        let mut fake = Fake::new(VERSIONS[version]);
        for (at, value) in patches {
            fake.put(at & !7, value);
        }
        let wasm = fake.wasm();
        if let Ok(regions) = wasm.regions(&fake.memory) {
            let sampled: Vec<Avma> = (0..8).map(|i| Avma(fake.start(i) + 7)).collect();
            let found = wasm.at(&fake.memory, &regions, &sampled);
            for codes in [wasm.all(&fake.memory, &regions).map(|(codes, _)| codes), found].into_iter().flatten() {
                prop_assert!(codes.iter().all(|code| code.start < code.end));
                prop_assert!(codes.is_sorted_by(|one, next| one.end <= next.start));
            }
        }
    }
}
