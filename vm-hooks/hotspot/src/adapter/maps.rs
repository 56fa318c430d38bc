//! From an nmethod to the pc map that a recording holds.

use rustc_hash::FxHashMap;
use vmscope_records::{
    BytecodePc, Chain, ChainFrame, CodeChange, Cover, Exactness, PcMap, Position,
};
use vmscope_target::{Look, Memory};

use super::kept::Kept;
use super::methods::Methods;
use crate::code::Frame;
use crate::pages::Pages;

/// Tells the pc map of a compiled method that samples hit, once.
pub(super) fn tell(
    kept: &mut Kept,
    pages: Option<&Pages<'_>>,
    methods: &mut Methods,
    look: &mut Look,
) {
    let (false, Some(constituent)) = (kept.is_mapped, &mut kept.constituent) else {
        return;
    };
    kept.is_mapped = true;
    let nmethod = &kept.nmethod;
    let mut covers = Vec::new();
    let mut chains: Vec<Chain> = Vec::new();
    let mut known: FxHashMap<Vec<Frame>, u32> = FxHashMap::default();
    let mut start = 0;
    for pc in &nmethod.pcs {
        let Ok(chain) = nmethod.chain(pc.scope) else {
            continue;
        };
        let end = u32::try_from(pc.pc).unwrap_or(0).saturating_add(1);
        if chain.is_empty() || end <= start {
            continue;
        }
        let number = match known.get(&chain) {
            Some(number) => *number,
            None => {
                let frames = chain.iter().filter_map(|frame| {
                    if let Some(pages) = pages {
                        methods.meet(pages, frame.method, look);
                    }
                    Some(ChainFrame {
                        method: methods.tell_whole(
                            pages.map(|pages| pages as &dyn Memory),
                            frame.method,
                            look,
                        )?,
                        position: u32::try_from(frame.bci)
                            .map_or(Position::Unknown, |bci| Position::Bytecode(BytecodePc(bci))),
                    })
                });
                let frames: Chain = frames.collect();
                let number = u32::try_from(chains.len()).unwrap_or(u32::MAX);
                chains.push(frames);
                known.insert(chain, number);
                number
            }
        };
        covers.push(Cover {
            start,
            end,
            chain: number,
            exactness: Exactness::Approximate,
        });
        start = end;
    }
    constituent.map = PcMap::Covers { covers, chains };
    look.code(CodeChange::Seen(constituent.clone()));
}
