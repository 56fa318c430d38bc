//! The zone as pieces of code that records can tell.

use vmscope_process::SeenCode;
use vmscope_records::{Avma, BoundaryRule, BytecodePc, ConstituentKind, Exactness, PcMap, PicCase};

use super::{Identity, Part};
use crate::cog_method::{CogMethod, EntryKind};
use crate::describe::{Described, Name, NamedCase};
use crate::map::Map;
use crate::trampolines::Trampoline;
use crate::vm::Zone;

/// The VM's words for a freed entry, and for the array of young referrers.
pub(crate) const FREED: &str = "freed";
pub(crate) const YOUNG_REFERRERS: &str = "young referrers";

/// A piece of the zone. A method with blocks inside is several pieces.
#[derive(Clone, Debug)]
pub struct Piece {
    pub code: SeenCode<Identity>,
    pub kind: ConstituentKind,
    pub name: String,
    /// Class and selector, with the identity of the whole entry.
    pub method: Option<(Identity, String, String)>,
    pub cases: Vec<PicCase>,
    pub map: PcMap,
}

/// Identity of an entry of the zone.
pub fn identity(zone: &Zone, entry: &CogMethod) -> Identity {
    Identity {
        at: entry.at,
        size: u64::from(entry.size),
        part: Part::Entry(entry.kind),
        header: entry.header,
        compactions: zone.compactions,
    }
}

/// All pieces of a zone, ascending. `described` gives the description of an entry.
pub fn pieces<'d>(
    zone: &Zone,
    described: impl Fn(&Identity) -> Option<&'d Described>,
) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = zone.trampolines.iter().map(trampoline).collect();
    for entry in &zone.methods.entries {
        let identity = identity(zone, entry);
        if let Some(described) = described(&identity) {
            put_entry(entry, identity, described, &mut pieces);
        }
    }
    let bounds = &zone.bounds;
    let other = |part, kind, name: &str, start, end| {
        let piece = piece(part, (start, end), kind, name.to_owned());
        (start < end).then_some(piece)
    };
    pieces.extend(other(
        Part::FreeSpace,
        ConstituentKind::Free,
        "",
        bounds.free,
        bounds.young_referrers,
    ));
    pieces.extend(other(
        Part::YoungReferrers,
        ConstituentKind::Other(YOUNG_REFERRERS.to_owned()),
        YOUNG_REFERRERS,
        bounds.young_referrers,
        bounds.end,
    ));
    pieces
}

fn piece(part: Part, (start, end): (Avma, Avma), kind: ConstituentKind, name: String) -> Piece {
    Piece {
        code: SeenCode {
            identity: Identity {
                at: start,
                size: end.0.saturating_sub(start.0),
                part,
                header: 0,
                compactions: 0,
            },
            start,
            end,
        },
        kind,
        name,
        method: None,
        cases: Vec::new(),
        map: PcMap::None,
    }
}

fn trampoline(trampoline: &Trampoline) -> Piece {
    let kind = match trampoline.is_enilopmart() {
        true => ConstituentKind::Enilopmart,
        false => ConstituentKind::Trampoline,
    };
    let range = (trampoline.start, trampoline.end);
    piece(Part::Trampoline, range, kind, trampoline.name.clone())
}

fn put_entry(entry: &CogMethod, identity: Identity, described: &Described, to: &mut Vec<Piece>) {
    let name = match &described.name {
        Name::Unknown => String::new(),
        Name::Method(name) => name.to_string(),
        Name::Selector(selector) => selector.clone(),
    };
    let kind = match entry.kind {
        EntryKind::Method if entry.is_full_block => ConstituentKind::Block,
        EntryKind::Method => ConstituentKind::Method,
        EntryKind::ClosedPic => ConstituentKind::ClosedPic,
        EntryKind::OpenPic => ConstituentKind::OpenPic,
        EntryKind::Free => ConstituentKind::Other(FREED.to_owned()),
    };
    let shown = match entry.kind {
        EntryKind::ClosedPic => with_cases(&name, entry.stack_check, &described.cases),
        EntryKind::Free => format!("{FREED} {name}"),
        EntryKind::Method | EntryKind::OpenPic => name.clone(),
    };
    let first = entry
        .blocks
        .first()
        .map_or(entry.size, |block| block.offset);
    let end = Avma(entry.at.0.saturating_add(u64::from(first)));
    let mut whole = piece(
        identity.part,
        (entry.at, end),
        kind,
        shown.trim_end().to_owned(),
    );
    whole.code.identity = identity;
    whole.cases = described.cases.iter().map(case).collect();
    if let Name::Method(name) = &described.name {
        let class = format!("{}{}", "[] in ".repeat(name.depth), name.class);
        whole.method = Some((identity, class, name.selector.clone()));
    }
    if entry.kind == EntryKind::Method {
        whole.map = boundaries(&described.map, 0);
    }
    let method = whole.method.clone();
    to.push(whole);
    let maps = described.block_maps.iter();
    for (number, (block, map)) in entry.blocks.iter().zip(maps).enumerate() {
        let after = entry.blocks.get(number + 1);
        let until = after.map_or(entry.block_entry, |next| next.offset);
        let part = Part::Block(number);
        let range = (block.offset, until);
        let mut inner = inner(entry, part, range, format!("[] in {name}"));
        inner.code.identity.compactions = identity.compactions;
        inner.method.clone_from(&method);
        inner.map = boundaries(map, u32::from(block.offset));
        to.push(inner);
    }
    if !entry.blocks.is_empty() {
        let range = (entry.block_entry, entry.size);
        let name = format!("[] in {name} (entry)");
        let mut inner = inner(entry, Part::BlockEntry, range, name);
        inner.code.identity.compactions = identity.compactions;
        inner.method = method;
        inner.map = boundaries(&Map::Frameless, 0);
        to.push(inner);
    }
}

/// A part of an entry between two offsets.
fn inner(entry: &CogMethod, part: Part, (from, to): (u16, u16), name: String) -> Piece {
    let at = |offset: u16| Avma(entry.at.0.saturating_add(u64::from(offset)));
    piece(part, (at(from), at(to)), ConstituentKind::Block, name)
}

/// The name of a closed PIC: selector, number of cases, and the cases if they are known.
pub(crate) fn with_cases(selector: &str, count: u16, cases: &[NamedCase]) -> String {
    let cases: Vec<String> = cases
        .iter()
        .map(|case| format!("{} -> {}", class_or_unknown(case), case.target))
        .collect();
    match cases.is_empty() {
        true => format!("{selector} - {count}"),
        false => format!("{selector} - {count} ({})", cases.join(", ")),
    }
}

fn class_or_unknown(case: &NamedCase) -> &str {
    if case.class.is_empty() {
        "?"
    } else {
        &case.class
    }
}

fn case(case: &NamedCase) -> PicCase {
    PicCase {
        class: case.class.clone(),
        method: None,
        target: case.target.clone(),
    }
}

/// A map with offsets from the piece's start, which is `from` bytes behind the entry's. Code without a
/// frame is one range.
pub(crate) fn boundaries(map: &Map, from: u32) -> PcMap {
    let (exactness, entries) = match map {
        Map::Flawed(_) => return PcMap::None,
        Map::Frameless => (Exactness::MethodOnly, Vec::new()),
        Map::Entries(entries) => {
            let entries = entries.iter().map(|entry| {
                let offset = entry.machine.saturating_sub(from);
                (offset, BytecodePc(entry.bytecode))
            });
            (Exactness::Exact, entries.collect())
        }
    };
    PcMap::Boundary {
        rule: BoundaryRule::AfterInstruction,
        exactness,
        entries,
    }
}
