//! From an nmethod to the pc map that a recording holds.

use std::sync::Arc;

use vmscope_records::{Avma, BytecodePc, Chain, ChainFrame, CodeChange, Cover, PcMap, Position};
use vmscope_target::{Look, Memory};

use super::kept::Kept;
use super::methods::Methods;
use crate::code::Frame;
use crate::evidence::{
    Map, MemoryMethods, MethodFacts, MethodSource, MethodsLayout, Reference, Weights, pieces,
};
use crate::pages::Pages;

/// Makes pc maps.
#[derive(Debug)]
pub(super) struct Maps {
    layout: Option<MethodsLayout>,
}

/// The methods of a JVM that is over: their bytecodes, without what they refer to.
struct Remembered<'a>(&'a Methods);

impl MethodSource for Remembered<'_> {
    fn facts(&self, method: Avma) -> Option<Arc<MethodFacts>> {
        let info = self.0.info(method)?;
        let facts = MethodFacts::of(&info.bytecodes, 4, |_, _, _| Reference::Unknown);
        Some(Arc::new(facts))
    }
}

impl Maps {
    /// With what `layout` finds about methods; without it there is less evidence.
    pub fn new(layout: Option<MethodsLayout>) -> Self {
        Maps { layout }
    }

    /// Tells the pc maps of compiled methods that samples hit, each once.
    pub fn tell<'k>(
        &self,
        hit: impl Iterator<Item = &'k mut Kept>,
        pages: Option<&Pages<'_>>,
        methods: &mut Methods,
        look: &mut Look,
    ) {
        let source = pages
            .zip(self.layout.as_ref())
            .map(|(pages, layout)| MemoryMethods::new(pages, layout.clone()));
        let memory = pages.map(|pages| pages as &dyn Memory);
        for kept in hit {
            let (false, Some(constituent)) = (kept.is_mapped, &mut kept.constituent) else {
                continue;
            };
            kept.is_mapped = true;
            let weights = Weights::default();
            let map = match &source {
                Some(source) => pieces(&kept.nmethod, source, &weights),
                None => pieces(&kept.nmethod, &Remembered(methods), &weights),
            };
            constituent.map = covers(&map, memory, methods, look);
            look.code(CodeChange::Seen(constituent.clone()));
        }
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
        .map(|chain| chain.iter().filter_map(&mut frame).collect())
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
