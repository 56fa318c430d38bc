use std::cell::Cell;

use proptest::prelude::*;
use vmscope_records::Avma;

use super::*;
use crate::bytecode::{Operands, PoolLayout, op};
use crate::code::{Blob, NmethodId, PcDesc};
use crate::jvm::Jvm;
use crate::pages::Pages;
use crate::snapshot_files::snapshot;
use crate::testing::walk;

/// Methods with given bytecodes.
struct Given {
    bytecodes: Vec<Vec<u8>>,
    asked: Cell<usize>,
    /// Unreached calls of all methods.
    unreached: Vec<u16>,
}

impl MethodSource for Given {
    fn facts(&self, method: Avma) -> Option<Arc<MethodFacts>> {
        self.asked.set(self.asked.get() + 1);
        let count = self.bytecodes.len() as u64;
        let bytes = self.bytecodes.get(usize::try_from(method.0).ok()?)?;
        let facts = MethodFacts::of(bytes, 4, |instruction| {
            match (instruction.opcode, &instruction.operands) {
                (op::GETSTATIC..=op::PUTFIELD, Operands::Member(bytes)) => {
                    Referent::Field(u16::from_le_bytes(*bytes).into())
                }
                // Every method calls others and itself.
                (_, Operands::Member(bytes)) => {
                    let number = u64::from(u16::from_le_bytes(*bytes));
                    Referent::Call(Targets::Known(vec![Avma(number % count)]))
                }
                _ => Referent::Unknown,
            }
        });
        Some(Arc::new(facts))
    }

    fn unreached(&self, _: Avma, _: u32) -> Bcis {
        self.unreached.clone().into()
    }

    fn narrow_class(&self) -> Option<(u64, u32)> {
        Some((0x8_0000_0000, 0))
    }
}

fn nmethod(code: &[u8]) -> Nmethod {
    Nmethod {
        id: NmethodId {
            blob: Avma(0x1000),
            compile_id: 1,
            osr: false,
        },
        blob: Blob {
            at: Avma(0x1000),
            size: 0x100,
            code_begin: Avma(0x1100),
            code_end: Avma(0x1100 + code.len() as u64),
            content: 0,
            data: 0,
            frame_size: 4,
            frame_complete: -1,
            name_at: Avma(0),
        },
        method: Avma(0),
        level: 4,
        entry_bci: -1,
        state: 0,
        stubs: 0,
        code: code.into(),
        constants: Box::default(),
        pcs: Box::default(),
        scopes: Box::default(),
        metadata: Box::new([0, 1, 2]),
        implicit: Box::default(),
        unsigned5_excess: 0,
    }
}

/// A scope: encoded sender, method and bytecode index, with locals as at a safepoint.
const fn scope(sender: u8, method: u8, bci: u8) -> [u8; 6] {
    [sender, method, bci + 1, 1, 0, 0]
}

fn check(map: &Map, code: usize) {
    for pair in map.pieces.windows(2) {
        assert!(pair[0].end <= pair[1].start, "{pair:?}");
    }
    for piece in &map.pieces {
        assert!(piece.start < piece.end);
        assert!(piece.end as usize <= code + 1);
        assert!(!map.chains[piece.chain as usize].is_empty());
    }
}

#[test]
fn a_field_is_found_in_the_method_that_reads_it() {
    // Method 0: invokestatic #1; getfield 0x40; ireturn. Method 1: getfield 0x20; ireturn.
    let given = Given {
        bytecodes: vec![
            vec![0xb8, 1, 0, 0x2a, 0xb4, 0x40, 0, 0xac],
            vec![0x2a, 0xb4, 0x20, 0, 0xac],
        ],
        asked: Cell::new(0),
        unreached: Vec::new(),
    };
    // mov eax,[rsi+0x20]; add ecx,eax (no sign); mov eax,[rsi+0x40]; ret
    let code = [0x8b, 0x46, 0x20, 0x8b, 0xc8, 0x8b, 0x46, 0x40, 0xc3];
    let map = pieces(&nmethod(&code), &given, &[]);
    check(&map, code.len());
    let at = |offset| {
        let (_, chain) = map.at(offset).unwrap();
        let chain = chain.iter().map(|frame| (frame.method.0, frame.bci));
        chain.collect::<Vec<_>>()
    };
    // Sampled pcs lie behind their instruction.
    assert_eq!(at(3), [(1, 1), (0, 0)]);
    assert_eq!(at(8), [(0, 4)]);
    let named_by = |offset| map.at(offset).map(|(piece, _)| piece.named_by);
    assert_eq!(named_by(3), Some(NamedBy::Guess));
    assert_eq!(named_by(8), Some(NamedBy::Own));
    assert_eq!(map.at(100), None);
}

#[test]
fn a_branch_to_a_trap_is_where_the_trap_says() {
    let ends: [(&[u8], &[u16], _); 5] = [
        (&[0xac], &[], NamedBy::Certain),
        // A call of an unknown method.
        (&[0xb8, 9, 0, 0xac], &[], NamedBy::Alone),
        (&[0xb8, 9, 0, 0xac], &[8], NamedBy::Certain),
        (&[0xb8, 9, 0, 0xb8, 9, 0, 0xac], &[8], NamedBy::Alone),
        // Bytecodes that end in an instruction.
        (&[0xac, 0xb8, 9], &[9], NamedBy::Alone),
    ];
    for (end, unreached, named_by) in ends {
        branch_to_a_trap(end, unreached, named_by);
    }
}

/// `named_by`: what names code of a method with this end, of which these calls are unreached.
fn branch_to_a_trap(end: &[u8], unreached: &[u16], named_by: NamedBy) {
    let given = Given {
        bytecodes: vec![[&[0x2a, 0xb4, 0x20, 0, 0x2a, 0xb4, 0x20, 0], end].concat()],
        asked: Cell::new(0),
        unreached: unreached.to_vec(),
    };
    let mut code = vec![0x85, 0xf6]; // test esi,esi
    code.extend([0x74, 0x04]); // je the trap
    code.extend([0x8b, 0x46, 0x20]); // mov eax,[rsi+0x20]
    code.push(0xc3);
    code.extend([0xbe, 0xf6, 0xff, 0xff, 0xff]); // mov esi,-10
    code.extend([0xe8, 0, 0, 0, 0]); // call
    let mut nmethod = nmethod(&code);
    let mut scopes = vec![0];
    scopes.extend(scope(0, 1, 5));
    nmethod.scopes = scopes.into();
    nmethod.pcs = Box::new([PcDesc {
        pc: i32::try_from(code.len()).unwrap(),
        scope: 1,
    }]);
    let map = pieces(&nmethod, &given, &[]);
    check(&map, code.len());
    let bci = |offset| {
        map.at(offset)
            .map(|(piece, chain)| (chain[0].bci, piece.exactness, piece.named_by))
    };
    assert_eq!(bci(2), Some((5, Exactness::Approximate, named_by)));
    assert_eq!(bci(4), Some((5, Exactness::Approximate, named_by)));
    assert_eq!(bci(18), Some((5, Exactness::Exact, NamedBy::Record)));
}

/// A getter is inlined at a call. Its read finds a null receiver, with a record of the call: a trap in C2's
/// code, a call that throws in C1's.
#[test]
fn a_fault_at_an_inlined_getter_is_no_call() {
    let given = Given {
        bytecodes: vec![
            vec![0x2a, 0xb8, 1, 0, 0xac],
            vec![0x2a, 0xb4, 0x20, 0, 0xac],
        ],
        asked: Cell::new(0),
        unreached: Vec::new(),
    };
    let throws = [0xe8, 0, 0, 0, 0]; // call
    let traps = [&[0xbe, 0xf6, 0xff, 0xff, 0xff][..], &throws].concat(); // mov esi,-10; call
    for fault in [&throws[..], &traps] {
        // mov eax,[rsi+0x20]; ret
        let mut code = vec![0x8b, 0x46, 0x20, 0xc3];
        code.extend(fault);
        let mut nmethod = nmethod(&code);
        let mut scopes = vec![0];
        scopes.extend(scope(0, 1, 1));
        nmethod.scopes = scopes.into();
        nmethod.pcs = Box::new([PcDesc {
            pc: i32::try_from(code.len()).unwrap(),
            scope: 1,
        }]);
        nmethod.implicit = Box::new([(0, 4)]);
        let map = pieces(&nmethod, &given, &[]);
        check(&map, code.len());
        let (piece, chain) = map.at(3).unwrap();
        assert_eq!(piece.named_by, NamedBy::Guess);
        let chain: Vec<_> = chain.iter().map(|it| (it.method.0, it.bci)).collect();
        assert_eq!(chain, [(1, 1), (0, 1)]);
    }
}

/// The search for a string in a string is one call, whatever its instructions look like.
#[test]
fn a_search_for_a_string_is_one_call() {
    // pcmpestri xmm0,[rbx],12; jb; sub edx,16; jle; add rbx,16; jmp to the begin; sub edx,ecx
    let code = [
        0x66, 0x0f, 0x3a, 0x61, 0x03, 0x0c, 0x72, 0x0b, 0x83, 0xea, 0x10, 0x7e, 0x06, 0x48, 0x83,
        0xc3, 0x10, 0xeb, 0xed, 0x29, 0xca,
    ];
    let regions = templates::regions(&machine::Machine::of(&nmethod(&code), None));
    assert_eq!(regions, vec![Range { start: 0, end: 6 }]);
    // Two instructions that loops may contain: vpcmpeqb, vpmovmskb.
    let code = [0xc5, 0xf9, 0x74, 0xc1, 0xc5, 0xf9, 0xd7, 0xc0];
    let regions = templates::regions(&machine::Machine::of(&nmethod(&code), None));
    assert!(regions.is_empty());
}

#[test]
fn a_return_address_needs_its_record_alone() {
    let given = Given {
        bytecodes: vec![vec![0xb8, 1, 0, 0xac], vec![0xb8, 2, 0, 0xac], vec![0xac]],
        asked: Cell::new(0),
        unreached: Vec::new(),
    };
    // call; call; ret
    let code = [0xe8, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3];
    let mut nmethod = nmethod(&code);
    let mut scopes = vec![0];
    scopes.extend(scope(0, 1, 0));
    scopes.extend(scope(1, 2, 0));
    nmethod.scopes = scopes.into();
    let record = |pc, scope| PcDesc { pc, scope };
    nmethod.pcs = Box::new([record(5, 1), record(10, 7)]);
    let methods = |map: &Map, offset| {
        let (piece, chain) = map.at(offset)?;
        assert_eq!(piece.exactness, Exactness::Exact);
        Some(
            chain
                .iter()
                .map(|frame| frame.method.0)
                .collect::<Vec<u64>>(),
        )
    };
    let map = pieces(&nmethod, &given, &[10]);
    check(&map, code.len());
    assert!(map.is_of_records() && !map.is_whole());
    // The caller is looked up inside its call.
    assert_eq!(methods(&map, 9), Some(vec![1, 0]));
    assert_eq!(methods(&map, 10), Some(vec![1, 0]));
    assert_eq!(methods(&map, 5), None);
    let both = pieces(&nmethod, &given, &[5, 10]);
    check(&both, code.len());
    assert_eq!(methods(&both, 4), Some(vec![0]));
    assert_eq!(methods(&both, 9), Some(vec![1, 0]));
    assert_eq!(given.asked.get(), 0, "no search");
    // What only looks like a call overlaps no other piece.
    let mut seeming = nmethod.clone();
    seeming.code[3] = 0xe8;
    seeming.pcs = Box::new([record(5, 1), record(8, 1), record(10, 7)]);
    check(&pieces(&seeming, &given, &[5, 8, 10]), code.len());
    // Scope 0 is no scope.
    let mut unscoped = nmethod.clone();
    unscoped.pcs = Box::new([record(5, 0), record(10, 7)]);
    let map = pieces(&unscoped, &given, &[5, 10]);
    check(&map, code.len());
    assert_eq!(methods(&map, 4), None);
    assert_eq!(methods(&map, 9), Some(vec![1, 0]));
    // A sample elsewhere needs the search.
    let map = pieces(&nmethod, &given, &[0, 10]);
    assert!(map.is_whole() && given.asked.get() > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn hostile_nmethods_make_sound_maps(
        mut code in proptest::collection::vec(any::<u8>(), 0..600),
        scopes in proptest::collection::vec(0..12_u8, 0..80),
        pcs in proptest::collection::vec((-5..700_i32, 0..90_u32), 0..40),
        implicit in proptest::collection::vec((0..700_u32, any::<u32>()), 0..10),
        frame_complete in any::<i32>(),
        bytecodes in proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), 0..60), 1..4),
    ) {
        let mut hits: Vec<u32> = pcs.iter().filter_map(|(pc, _)| (*pc).try_into().ok()).collect();
        hits.sort_unstable();
        hits.dedup();
        // Some records are behind calls, or behind what looks like a call.
        for hit in hits.iter().step_by(2) {
            if let Some(call) = (*hit as usize).checked_sub(5).and_then(|at| code.get_mut(at)) {
                *call = 0xe8;
            }
        }
        let mut nmethod = nmethod(&code);
        nmethod.scopes = scopes.into();
        nmethod.pcs = pcs
            .iter()
            .map(|&(pc, scope)| PcDesc { pc, scope })
            .collect();
        nmethod.implicit = implicit.into();
        nmethod.blob.frame_complete = frame_complete;
        let given = Given { bytecodes, asked: Cell::new(0), unreached: vec![3] };
        let map = pieces(&nmethod, &given, &[]);
        check(&map, code.len());
        prop_assert!(given.asked.get() <= 200_000);
        let _ = full(&nmethod);
        nmethod.pcs.sort_unstable_by_key(|record| record.pc);
        let map = pieces(&nmethod, &given, &hits);
        check(&map, code.len());
        prop_assert!(map.covered.windows(2).all(|pair| pair[0].end <= pair[1].start));
        let of_returns: Vec<u32> = hits.into_iter().step_by(2).collect();
        check(&pieces(&nmethod, &given, &of_returns), code.len());
    }

    #[test]
    fn hostile_bytecodes_make_sound_facts(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let facts = MethodFacts::of(&bytes, 4, |_| Referent::Unknown);
        prop_assert!(facts.steps.is_sorted());
        prop_assert!(facts.signs.iter().all(|(_, step)| usize::from(*step) < facts.steps.len()));
        let _ = profile::walk(&bytes, 1);
    }
}

#[test]
fn methods_that_call_each_other_end() {
    // Each method calls all methods, itself included: the tree is cut.
    let calls: Vec<u8> = (0..40).flat_map(|at| [0xb8, at % 3, 0]).collect();
    let given = Given {
        bytecodes: vec![calls.clone(), calls[..60].to_vec(), calls[..60].to_vec()],
        asked: Cell::new(0),
        unreached: Vec::new(),
    };
    let code = [0x8b, 0x46, 0x20, 0xc3].repeat(5000);
    let map = pieces(&nmethod(&code), &given, &[]);
    check(&map, code.len());
    assert!(given.asked.get() < 100_000, "{}", given.asked.get());
}

/// The search covers only surroundings of hits; its result mostly equals a search through all code.
/// Callers have their records' chains, wherever the surroundings end.
#[test]
fn a_map_of_parts_says_mostly_what_the_whole_map_says() {
    let (mut large, mut same, mut same_method, mut callers) = (0, 0, 0, 0);
    for release in [17, 25] {
        let snapshot = snapshot(&format!("jdk{release}"));
        let process = snapshot.process();
        let pages = Pages::new(process.memory());
        let jvm = Jvm::open(&process, &pages).unwrap();
        let pools = PoolLayout::of(&jvm.structs, jvm.methods.clone()).unwrap();
        let layout = FactsLayout::of(&jvm.structs, pools, true);
        let methods = MemoryMethods::new(&pages, layout, Facts::default());
        for found in walk(&process, process.memory()).unwrap().nmethods {
            let nmethod = found.nmethod;
            let whole = pieces(&nmethod, &methods, &[]);
            assert!(whole.is_whole());
            let records = nmethod.pcs.iter();
            let returns: Vec<(u32, u32)> = (records.filter(|pc| full::is_after_call(&nmethod, pc)))
                .map(|record| (record.pc.try_into().unwrap(), record.scope))
                .collect();
            for hit in (40..nmethod.stubs).step_by(331) {
                let mut hits: Vec<u32> = returns.iter().map(|(at, _)| *at).collect();
                hits.push(hit);
                hits.sort_unstable();
                let with_returns = pieces(&nmethod, &methods, &hits);
                check(&with_returns, nmethod.code.len());
                for &(at, scope) in &returns {
                    let (_, chain) = with_returns.at(at - 1).unwrap();
                    assert_eq!(chain, nmethod.chain(scope).unwrap(), "{at:#x}");
                    callers += 1;
                }
                let part = pieces(&nmethod, &methods, &[hit]);
                let frames = |map: &Map| map.at(hit).map(|(_, frames)| frames.to_vec());
                assert!(covers(&part.covered, hit) && frames(&part).is_some());
                let known = part.covered.first().unwrap();
                assert!(part.pieces.iter().all(|piece| known.start <= piece.start));
                if !part.is_whole() {
                    large += 1;
                    same += usize::from(frames(&part) == frames(&whole));
                    let method = |map: &Map| frames(map).and_then(|it| Some(it.first()?.method));
                    same_method += usize::from(method(&part) == method(&whole));
                } else {
                    assert_eq!(part, whole);
                }
            }
        }
    }
    assert!(large > 20 && callers > 1000, "{large} {callers}");
    assert!(100 * same >= 85 * large, "{same} of {large}");
    assert!(100 * same_method >= 95 * large, "{same_method} of {large}");
}

/// Entries of a `MethodData`, with the header's tag and bytecode index.
fn profile_entry(tag: u8, bci: u8, cells: &[u64]) -> Vec<u8> {
    let header = [tag, 0, bci, 0, 0, 0, 0, 0];
    let cells = cells.iter().flat_map(|cell| cell.to_le_bytes());
    header.into_iter().chain(cells).collect()
}

#[test]
fn calls_with_a_count_are_executed() {
    let static_call = |bci, count| profile_entry(2, bci, &[count]);
    let virtual_call = |bci, cells: [u64; 5]| profile_entry(5, bci, &cells);
    let bytes = [
        static_call(1, 0),
        static_call(4, 7),
        virtual_call(8, [0; 5]),
        // Two receivers, the second more frequent; then a receiver without a row.
        virtual_call(12, [0, 0x10_000, 1, 0x20_000, 5]),
        virtual_call(16, [3, 0, 0, 0, 0]),
    ]
    .concat();
    let calls = profile::walk(&bytes, 0).unwrap();
    let calls = calls
        .iter()
        .map(|call| (call.bci, call.receivers.as_slice()));
    let expected: [(u16, &[Avma]); 3] =
        [(4, &[]), (12, &[Avma(0x20_000), Avma(0x10_000)]), (16, &[])];
    assert_eq!(calls.collect::<Vec<_>>(), expected);
    // A cell more per receiver misses the next header, and an unknown tag ends the walk without an answer.
    assert_eq!(profile::walk(&bytes, 1), None);
    assert_eq!(profile::walk(&profile_entry(0, 0, &[0]), 0), None);
}
