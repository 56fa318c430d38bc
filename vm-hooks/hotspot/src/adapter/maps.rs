//! From an nmethod to the pc map that a recording holds.

use std::sync::Arc;
use std::time::Instant;

use vmscope_records::{Avma, BytecodePc, Chain, ChainFrame, CodeChange, Cover, PcMap, Position};
use vmscope_target::{Look, Memory};

use super::kept::Kept;
use super::methods::Methods;
use crate::code::{Frame, Nmethod};
use crate::evidence::{
    FactsLayout, Map, MemoryMethods, MethodFacts, MethodSource, Referent, full, has_full_tables,
    pieces, without_needless,
};
use crate::pages::Pages;

/// Makes pc maps.
#[derive(Debug)]
pub(super) struct Maps {
    layout: Option<FactsLayout>,
    /// Whether the positions that C2 records with `-XX:+DebugNonSafepoints` are wrong.
    is_c2_wrong: bool,
}

/// The methods of a JVM that is over: their bytecodes, without what they refer to.
struct Remembered<'a>(&'a Methods);

impl MethodSource for Remembered<'_> {
    fn facts(&self, method: Avma) -> Option<Arc<MethodFacts>> {
        let info = self.0.info(method)?;
        let facts = MethodFacts::of(&info.bytecodes, 4, |_| Referent::Unknown);
        Some(Arc::new(facts))
    }
}

impl Maps {
    /// With what `layout` finds about methods; without it there is less evidence.
    /// `is_c2_wrong`: see [`crate::jvm::Version::has_wrong_positions`].
    pub fn new(layout: Option<FactsLayout>, is_c2_wrong: bool) -> Self {
        Maps {
            layout,
            is_c2_wrong,
        }
    }

    /// Tells the pc maps of compiled methods that samples hit, each once. After `until` no
    /// more is begun than one, since one can take long; returns how many were left.
    pub fn tell<'k>(
        &self,
        hit: impl Iterator<Item = &'k mut Kept>,
        pages: Option<&Pages<'_>>,
        until: Instant,
        methods: &mut Methods,
        look: &mut Look,
    ) -> usize {
        let (mut told, mut left) = (0, 0);
        let source = pages
            .zip(self.layout.as_ref())
            .map(|(pages, layout)| MemoryMethods::new(pages, layout.clone()));
        let memory = pages.map(|pages| pages as &dyn Memory);
        for kept in hit {
            let (false, Some(constituent)) = (kept.is_mapped, &mut kept.constituent) else {
                continue;
            };
            if told > 0 && Instant::now() >= until {
                left += 1;
                continue;
            }
            told += 1;
            kept.is_mapped = true;
            let by_evidence = |nmethod: &Nmethod| match &source {
                Some(source) => pieces(nmethod, source),
                None => pieces(nmethod, &Remembered(methods)),
            };
            let nmethod = &kept.nmethod;
            let map = if !has_full_tables([nmethod]) {
                by_evidence(nmethod)
            } else if self.is_c2_wrong && nmethod.is_by_c2() {
                by_evidence(&without_needless(nmethod))
            } else {
                // `-XX:+DebugNonSafepoints`: the records say it themselves.
                full(nmethod)
            };
            constituent.map = covers(&map, memory, methods, look);
            look.code(CodeChange::Seen(constituent.clone()));
        }
        left
    }
}

fn covers(map: &Map, memory: Option<&dyn Memory>, methods: &mut Methods, look: &mut Look) -> PcMap {
    let mut frame = |frame: &Frame| {
        if let Some(memory) = memory {
            methods.meet(memory, frame.method, look);
        }
        let bci = u32::try_from(frame.bci).ok();
        Some(ChainFrame {
            method: methods.tell_whole(memory, frame.method, look)?,
            position: bci.map_or(Position::Unknown, |bci| Position::Bytecode(BytecodePc(bci))),
        })
    };
    let chains: Vec<Chain> = map
        .chains
        .iter()
        // A chain of which a method can't be named any more is none: its caller is not
        // to be blamed.
        .map(|chain| {
            let frames: Option<Chain> = chain.iter().map(&mut frame).collect();
            frames.unwrap_or_default()
        })
        .collect();
    let covers = map.pieces.iter().map(|piece| Cover {
        start: piece.start,
        end: piece.end,
        chain: piece.chain,
        exactness: piece.exactness,
    });
    PcMap::Covers {
        covers: covers.collect(),
        chains,
    }
}
