//! Conversion of an nmethod to a pc map of the recording.

use std::cell::RefCell;
use std::sync::Arc;

use vmscope_process::{Memory, Poll};
use vmscope_records::{
    Avma, BytecodePc, Chain, ChainFrame, CodeChange, Constituent, Cover, PcMap, Position, TimeNs,
};

use super::kept::Kept;
use super::methods::Methods;
use crate::code::{Frame, Nmethod};
use crate::evidence::{
    Facts, FactsLayout, Map, MemoryMethods, MethodFacts, MethodSource, Referent, full,
    has_full_tables, pieces, without_needless,
};
use crate::pages::Pages;

/// Nanoseconds for which facts about a method stay in use.
const FRESH: u64 = 60_000_000_000;

/// Makes pc maps.
#[derive(Debug)]
pub(super) struct Maps {
    layout: Option<FactsLayout>,
    /// Facts about methods, from earlier polls, and the begin of the poll that read the first.
    facts: RefCell<(Facts, TimeNs)>,
    /// Whether C2's positions with `-XX:+DebugNonSafepoints` are wrong.
    is_c2_wrong: bool,
}

/// Methods of a finished JVM: bytecodes without resolved references.
struct Remembered<'a>(&'a Methods);

impl MethodSource for Remembered<'_> {
    fn facts(&self, method: Avma) -> Option<Arc<MethodFacts>> {
        let info = self.0.info(method)?;
        let facts = MethodFacts::of(&info.bytecodes, 4, |_| Referent::Unknown);
        Some(Arc::new(facts))
    }
}

impl Maps {
    /// Uses `layout` to find methods; without it there is less evidence. `is_c2_wrong`: see
    /// [`crate::jvm::Version::has_wrong_positions`].
    pub fn new(layout: Option<FactsLayout>, is_c2_wrong: bool) -> Self {
        Maps {
            layout,
            facts: RefCell::default(),
            is_c2_wrong,
        }
    }

    /// Present methods, as a source for the maps of a poll that began at `now`. Facts stay known
    /// for a while: the VM resolves references and profiles receivers step by step.
    pub fn source<'p>(
        &self,
        pages: &'p Pages<'p>,
        methods: &Methods,
        now: TimeNs,
    ) -> Option<MemoryMethods<'p>> {
        let layout = self.layout.clone()?;
        let (facts, since) = self.facts.take();
        let (facts, since) = match methods.are_same_since(since) && now.since(since).0 < FRESH {
            true => (facts, since),
            false => (Facts::default(), now),
        };
        self.facts.replace((Facts::default(), since));
        Some(MemoryMethods::new(pages, layout, facts))
    }

    /// Keeps the facts of a poll's source.
    pub fn keep(&self, source: MemoryMethods<'_>) {
        self.facts.borrow_mut().0 = source.into_facts();
    }

    /// Reports the pc map of an nmethod. The map of a large one covers the code around its sampled
    /// pcs; hits elsewhere make a larger map later. `memory`: the VM's memory with
    /// [`Maps::source`]; `None` after the methods are gone.
    pub fn tell(
        &self,
        kept: &mut Kept,
        memory: Option<(&Pages<'_>, Option<&MemoryMethods<'_>>)>,
        methods: &mut Methods,
        poll: &mut Poll,
    ) {
        let (false, Some(constituent)) = (kept.is_mapped, &mut kept.constituent) else {
            return;
        };
        let hits = kept.hits.as_slice();
        let by_evidence = |nmethod: &Nmethod| match memory.and_then(|(_, source)| source) {
            Some(source) => pieces(nmethod, source, hits),
            None => pieces(nmethod, &Remembered(methods), hits),
        };
        let nmethod = &kept.nmethod;
        let map = if !has_full_tables([nmethod]) {
            by_evidence(nmethod)
        } else if self.is_c2_wrong && nmethod.is_by_c2() {
            by_evidence(&without_needless(nmethod))
        } else {
            // With `-XX:+DebugNonSafepoints`, the records are complete.
            full(nmethod)
        };
        let memory = memory.map(|(pages, _)| pages as &dyn Memory);
        kept.is_mapped = map.is_whole();
        kept.covered.clone_from(&map.covered);
        let told = Constituent {
            map: covers(&map, nmethod.is_by_c2(), memory, methods, poll),
            ..constituent.clone()
        };
        if told.name.is_empty() {
            // A later record with the name has the map, too.
            constituent.map = told.map.clone();
        }
        poll.code(CodeChange::Seen(told));
        kept.has_map(poll.began(), map.is_of_records());
    }
}

fn covers(
    map: &Map,
    is_by_c2: bool,
    memory: Option<&dyn Memory>,
    methods: &mut Methods,
    poll: &mut Poll,
) -> PcMap {
    let mut frame = |frame: &Frame| {
        if let Some(memory) = memory {
            methods.meet(memory, frame.method, poll);
        }
        let bci = u32::try_from(frame.bci).ok();
        Some(ChainFrame {
            method: methods.tell_whole(memory, frame.method, poll)?,
            position: bci.map_or(Position::Unknown, |bci| Position::Bytecode(BytecodePc(bci))),
        })
    };
    let chains = map.chains.iter();
    let chains = chains.map(|chain| chain.iter().map(&mut frame).collect());
    let pieces = map.pieces.iter().map(|piece| Cover {
        start: piece.start,
        end: piece.end,
        chain: piece.chain,
        exactness: piece.exactness,
        method_error: piece.named_by.error(is_by_c2),
    });
    named(pieces, chains.collect())
}

/// Map of the pieces whose chains have names. A chain with a vanished method is dropped, since
/// its caller must not take the blame; the whole method stands for its pieces.
fn named(pieces: impl Iterator<Item = Cover>, chains: Vec<Option<Chain>>) -> PcMap {
    let mut numbers: Vec<Option<u32>> = Vec::with_capacity(chains.len());
    let mut known: Vec<Chain> = Vec::with_capacity(chains.len());
    for chain in chains {
        let chain = chain.filter(|chain| !chain.is_empty());
        let number = u32::try_from(known.len()).ok();
        numbers.push(number.filter(|_| chain.is_some()));
        known.extend(chain);
    }
    let covers = pieces.filter_map(|piece| {
        let chain = numbers.get(piece.chain as usize).copied().flatten()?;
        Some(Cover { chain, ..piece })
    });
    PcMap::Covers {
        covers: covers.collect(),
        chains: known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use vmscope_records::recording::{Item, Reader, Writer};
    use vmscope_records::{
        Constituent, ConstituentKey, ConstituentKind, Content, Exactness, MethodKey, ProcessKey,
        Record, TimeNs,
    };

    #[test]
    fn pieces_of_methods_that_are_gone_are_left_out_and_the_rest_can_be_read() {
        let piece = |start, chain| Cover {
            start,
            end: start + 8,
            chain,
            exactness: Exactness::Exact,
            method_error: 0,
        };
        let chain = |key| {
            vec![ChainFrame {
                method: MethodKey(key),
                position: Position::Unknown,
            }]
        };
        let pieces = [
            piece(0, 0),
            piece(8, 1),
            piece(16, 2),
            piece(24, 3),
            piece(32, 2),
        ];
        let chains = vec![Some(chain(1)), None, Some(chain(2)), Some(Vec::new())];
        let map = named(pieces.into_iter(), chains);
        let covers = vec![piece(0, 0), piece(16, 1), piece(32, 1)];
        let chains = vec![chain(1), chain(2)];
        assert_eq!(map, PcMap::Covers { covers, chains });

        let told = Record::Constituent(Box::new(Constituent {
            key: ConstituentKey(1),
            process: ProcessKey(1),
            since: TimeNs(1),
            absent_at: None,
            start: Avma(0x1000),
            end: Avma(0x2000),
            kind: ConstituentKind::Method,
            tier: String::new(),
            name: "m".to_owned(),
            method: None,
            cases: Vec::new(),
            map,
        }));
        let mut writer = Writer::begin(Vec::new()).unwrap();
        writer.put(told.clone()).unwrap();
        let bytes = writer.close().unwrap();
        let mut reader = Reader::open(Cursor::new(bytes)).unwrap();
        let chunk = reader.next_chunk(Content::ALL).unwrap().unwrap();
        let items: Vec<Item> = chunk.items().collect();
        assert_eq!(items, [Item::Record(told)]);
    }
}
