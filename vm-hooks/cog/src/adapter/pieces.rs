//! The zone as pieces of code that records can tell.

use vmscope_process::SeenCode;
use vmscope_records::{Avma, BoundaryRule, BytecodePc, ConstituentKind, Exactness, PcMap, PicCase};

use super::identity::{Ages, Identity, Part};
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
    pub kind: ConstituentKind,
    pub name: String,
    /// Class and selector, with the identity of the whole entry.
    pub method: Option<(Identity, String, String)>,
    pub cases: Vec<PicCase>,
    pub map: PcMap,
}

impl Piece {
    fn new(kind: ConstituentKind, name: String) -> Self {
        Piece {
            kind,
            name,
            method: None,
            cases: Vec::new(),
            map: PcMap::None,
        }
    }
}

/// Addresses of all pieces of a zone, ascending.
pub fn codes(zone: &Zone, ages: &Ages) -> Vec<SeenCode<Identity>> {
    let one = |part, (start, end): (Avma, Avma), compactions| SeenCode {
        identity: Identity {
            at: start,
            size: end.0.saturating_sub(start.0),
            part,
            header: 0,
            compactions,
        },
        start,
        end,
    };
    let trampolines = zone.trampolines.iter();
    let mut codes: Vec<_> = trampolines
        .map(|trampoline| one(Part::Trampoline, (trampoline.start, trampoline.end), 0))
        .collect();
    for entry in &zone.methods.entries {
        let at = |offset: u16| Avma(entry.at.0.saturating_add(u64::from(offset)));
        for (part, from, to) in parts(entry) {
            let mut code = one(part, (at(from), at(to)), ages.at(entry.at));
            if let Part::Entry(_) = part {
                code.identity = ages.identity(entry);
            }
            codes.push(code);
        }
    }
    let bounds = &zone.bounds;
    let rest = [
        (Part::FreeSpace, (bounds.free, bounds.young_referrers)),
        (Part::YoungReferrers, (bounds.young_referrers, bounds.end)),
    ];
    let rest = rest.into_iter().filter(|(_, (start, end))| start < end);
    codes.extend(rest.map(|(part, range)| one(part, range, 0)));
    codes
}

/// Parts of an entry, with offsets of their first byte and of the byte after the last one.
fn parts(entry: &CogMethod) -> impl Iterator<Item = (Part, u16, u16)> {
    let first = entry.blocks.first();
    let whole = first.map_or(entry.size, |block| block.offset);
    let blocks = entry.blocks.iter().enumerate().map(|(number, block)| {
        let after = entry.blocks.get(number + 1);
        let until = after.map_or(entry.block_entry, |next| next.offset);
        (Part::Block(number), block.offset, until)
    });
    let block_entry = first.map(|_| (Part::BlockEntry, entry.block_entry, entry.size));
    std::iter::once((Part::Entry(entry.kind), 0, whole))
        .chain(blocks)
        .chain(block_entry)
}

/// The piece with this identity. `described` gives the description of an entry.
pub fn piece<'d>(
    (zone, ages): (&Zone, &Ages),
    identity: &Identity,
    described: impl Fn(&Identity) -> Option<&'d Described>,
) -> Option<Piece> {
    match identity.part {
        Part::Trampoline => {
            let trampolines = &zone.trampolines;
            let at = trampolines.binary_search_by_key(&identity.at, |one| one.start);
            Some(trampoline(trampolines.get(at.ok()?)?))
        }
        Part::FreeSpace => Some(Piece::new(ConstituentKind::Free, String::new())),
        Part::YoungReferrers => Some(Piece::new(
            ConstituentKind::Other(YOUNG_REFERRERS.to_owned()),
            YOUNG_REFERRERS.to_owned(),
        )),
        Part::Entry(_) | Part::Block(_) | Part::BlockEntry => {
            let entries = &zone.methods.entries;
            let after = entries.partition_point(|entry| entry.at <= identity.at);
            let entry = entries.get(after.checked_sub(1)?)?;
            let whole = ages.identity(entry);
            Some(part_of(entry, whole, identity.part, described(&whole)?))
        }
    }
}

fn trampoline(trampoline: &Trampoline) -> Piece {
    let kind = match trampoline.is_enilopmart() {
        true => ConstituentKind::Enilopmart,
        false => ConstituentKind::Trampoline,
    };
    Piece::new(kind, trampoline.name.clone())
}

fn part_of(entry: &CogMethod, whole: Identity, part: Part, described: &Described) -> Piece {
    let name = match &described.name {
        Name::Unknown => String::new(),
        Name::Method(name) => name.to_string(),
        Name::Selector(selector) => selector.clone(),
    };
    let mut piece = match part {
        Part::Block(number) => {
            let mut piece = Piece::new(ConstituentKind::Block, format!("[] in {name}"));
            let block = entry
                .blocks
                .get(number)
                .zip(described.block_maps.get(number));
            if let Some((block, map)) = block {
                piece.map = boundaries(map, u32::from(block.offset));
            }
            piece
        }
        Part::BlockEntry => {
            let name = format!("[] in {name} (entry)");
            let mut piece = Piece::new(ConstituentKind::Block, name);
            piece.map = boundaries(&Map::Frameless, 0);
            piece
        }
        _ => entry_itself(entry, name, described),
    };
    if let Name::Method(name) = &described.name {
        piece.method = Some((whole, name.class_with_blocks(), name.selector.clone()));
    }
    piece
}

/// An entry without its blocks.
fn entry_itself(entry: &CogMethod, name: String, described: &Described) -> Piece {
    let kind = match entry.kind {
        EntryKind::Method if entry.is_full_block => ConstituentKind::Block,
        EntryKind::Method => ConstituentKind::Method,
        EntryKind::ClosedPic => ConstituentKind::ClosedPic,
        EntryKind::OpenPic => ConstituentKind::OpenPic,
        EntryKind::Free => ConstituentKind::Other(FREED.to_owned()),
    };
    let shown = match entry.kind {
        EntryKind::ClosedPic => with_cases(&name, entry.stack_check, &described.cases),
        EntryKind::Free => format!("{FREED} {name}").trim_end().to_owned(),
        EntryKind::Method | EntryKind::OpenPic => name,
    };
    let mut piece = Piece::new(kind, shown);
    piece.cases = described.cases.iter().map(case).collect();
    if entry.kind == EntryKind::Method {
        piece.map = boundaries(&described.map, 0);
    }
    piece
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
