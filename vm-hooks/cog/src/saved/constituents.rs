//! The constituents of a code zone as text: one pair per line, ascending by address.

use vmscope_process::KeySource;
use vmscope_records::{
    Avma, BoundaryRule, BytecodePc, Constituent, ConstituentKind, Exactness, Method, PcMap,
    PicCase, ProcessKey, Record, TimeNs,
};

use super::item::{self, Item};
use super::{SavedError, lines, wrong};
use crate::adapter::{FREED, YOUNG_REFERRERS, boundaries, with_cases};
use crate::map::Map;

/// Borders of the zone: first address, free space, young referrers (`--all` only), end.
const START: &str = "CogCode";
const FREE: &str = "CCFree";
const YOUNG: &str = "CCYoung";
const END: &str = "CCEnd";

/// Maximum number of constituents. A zone of 16 MiB, the largest, has room for fewer.
const MAX_PIECES: usize = 1 << 19;

/// Kind of a PIC that the file leaves open: closed or open.
const PIC: &str = "pic";

const A_PAIR: &str = "`ITEM | ADDRESS` or `ITEM | (ADDRESS PC BYTECODE PC BYTECODE …)`";
const AN_ITEM: &str = "`~NAME~`, `CLASS>>SELECTOR`, `[] in CLASS>>SELECTOR`, `#SELECTOR` or `(#SELECTOR CLASS \
                       CLASS>>SELECTOR …)`";

/// A code zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedZone {
    /// First address.
    pub start: Avma,
    /// First address after the zone.
    pub end: Avma,
    /// Whether methods have their maps.
    pub is_detailed: bool,
    /// Whether freed entries and blocks inside methods are listed, which primitive 253 omits.
    pub is_complete: bool,
    /// Its parts, ascending, none empty. A part ends where the next one begins.
    pub pieces: Vec<SavedPiece>,
}

/// A part of a code zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedPiece {
    /// First address.
    pub start: Avma,
    /// First address of the next part.
    pub end: Avma,
    /// Kind.
    pub kind: ConstituentKind,
    /// Name as reports show it.
    pub name: String,
    /// Class and selector of a method or block.
    pub method: Option<(String, String)>,
    /// Whether the previous method contains it.
    pub is_inside: bool,
    /// Cases of a closed PIC.
    pub cases: Vec<PicCase>,
    /// Map of a method or block.
    pub map: PcMap,
}

/// Pairs of a machine pc and a bytecode, with the index of their line. `None` without a list.
type Pairs = Option<(usize, Vec<(u64, u32)>)>;

/// Reader of a file.
#[derive(Default)]
struct Reader {
    start: Option<Avma>,
    end: Option<Avma>,
    is_complete: bool,
    is_detailed: bool,
    pieces: Vec<SavedPiece>,
    /// The list of the last piece.
    pairs: Pairs,
}

impl SavedZone {
    /// Parses the text of a file: primitive 253's answer, or what `vmscope constituents --pairs` prints.
    ///
    /// # Errors
    /// [`SavedError`] for the first wrong line, and for a file without its begin or end.
    pub fn parse(text: &[u8]) -> Result<Self, SavedError> {
        let mut reader = Reader::default();
        let mut last = 0;
        for line in lines(text) {
            let (index, line) = line?;
            reader.take(index, line)?;
            last = index;
        }
        reader.finish(last)
    }

    /// Records of the zone at one time: methods and constituents.
    #[must_use]
    pub fn records(&self, process: ProcessKey, time: TimeNs, keys: &KeySource) -> Vec<Record> {
        let mut records = Vec::new();
        let mut home = None;
        for piece in &self.pieces {
            let method = match &piece.method {
                Some(_) if piece.is_inside => home,
                Some((class, name)) => {
                    let key = keys.method();
                    records.push(Record::Method(Box::new(Method {
                        key,
                        time,
                        class: class.clone(),
                        name: name.clone(),
                        ..Method::default()
                    })));
                    Some(key)
                }
                None => None,
            };
            home = method;
            records.push(Record::Constituent(Box::new(Constituent {
                key: keys.constituent(),
                process,
                since: time,
                absent_at: None,
                start: piece.start,
                end: piece.end,
                kind: piece.kind.clone(),
                tier: String::new(),
                name: piece.name.clone(),
                method,
                cases: piece.cases.clone(),
                map: piece.map.clone(),
            })));
        }
        records
    }

    /// Consequences of what the file omits, one sentence each.
    #[must_use]
    pub fn limits(&self) -> Vec<&'static str> {
        let mut limits = Vec::new();
        if !self.is_complete {
            limits.push(
                "the constituents omit freed code and blocks inside methods: their samples count for the \
                 code before them",
            );
        }
        if !self.is_detailed {
            limits.push("the constituents have no bytecodes: the answer was the plain one");
        }
        limits
    }
}

impl Reader {
    fn take(&mut self, index: usize, line: &str) -> Result<(), SavedError> {
        let fault = |what, text, expected| Err(wrong(index, what, text, expected));
        let Some((text, value)) = line.rsplit_once(" | ") else {
            return fault("no pair in", line, A_PAIR);
        };
        let Some((at, pairs)) = value_of(value) else {
            return fault("not an address or list:", value, A_PAIR);
        };
        let Some(item) = item::parse(text) else {
            return fault("unknown item", text, AN_ITEM);
        };
        let is_start = matches!(&item, Item::Named(name) if name == START);
        let least = self.pieces.last().map(|piece| piece.start).or(self.start);
        match (least, self.end) {
            _ if is_start != least.is_none() => {
                return fault(
                    "wrong begin:",
                    line,
                    "one pair `~CogCode~ | ADDRESS`, the first",
                );
            }
            (_, Some(_)) => return fault("a pair after the end:", line, "nothing after `~CCEnd~`"),
            (Some(least), None) if at < least => {
                return fault(
                    "a smaller address than before:",
                    value,
                    "ascending addresses",
                );
            }
            _ => {}
        }
        if is_start {
            self.start = Some(at);
            return Ok(());
        }
        self.close(at)?;
        if matches!(&item, Item::Named(name) if name == END) {
            self.end = Some(at);
            return Ok(());
        }
        if self.pieces.len() >= MAX_PIECES {
            return fault("too many pairs:", line, "at most 524288");
        }
        self.is_detailed |= pairs.is_some();
        let piece = self.piece(at, item, pairs.is_some());
        self.pieces.push(piece);
        self.pairs = pairs.map(|pairs| (index, pairs));
        Ok(())
    }

    fn piece(&mut self, start: Avma, item: Item, has_list: bool) -> SavedPiece {
        let mut is_inside = false;
        let mut cases = Vec::new();
        let (kind, name) = match item {
            Item::Named(name) => match name.as_str() {
                FREE => (ConstituentKind::Free, String::new()),
                YOUNG => {
                    self.is_complete = true;
                    let kind = ConstituentKind::Other(YOUNG_REFERRERS.to_owned());
                    (kind, YOUNG_REFERRERS.to_owned())
                }
                _ => item::run_time(name, start),
            },
            Item::Method(name) if name.starts_with("[] in ") => (ConstituentKind::Block, name),
            Item::Method(name) => (ConstituentKind::Method, name),
            Item::Inside(name) => {
                is_inside = true;
                (ConstituentKind::Block, name)
            }
            Item::Pic(selector) => (ConstituentKind::Other(PIC.to_owned()), selector),
            Item::Closed(selector, named) => {
                let count = u16::try_from(named.len()).unwrap_or(u16::MAX);
                cases = named.iter().map(item::record).collect();
                (
                    ConstituentKind::ClosedPic,
                    with_cases(&selector, count, &named),
                )
            }
            Item::Freed(selector) => {
                let name = format!("{FREED} {selector}");
                let kind = ConstituentKind::Other(FREED.to_owned());
                (kind, name.trim_end().to_owned())
            }
        };
        let is_code = matches!(kind, ConstituentKind::Method | ConstituentKind::Block);
        // A detailed file has no list for a method without a frame.
        let map = match is_code && !has_list {
            true => boundaries(&Map::Frameless, 0),
            false => PcMap::None,
        };
        SavedPiece {
            start,
            end: start,
            kind,
            method: is_code.then(|| item::class_and_selector(&name)).flatten(),
            name,
            is_inside,
            cases,
            map,
        }
    }

    /// Ends the last piece where the next one begins, and checks its list.
    fn close(&mut self, end: Avma) -> Result<(), SavedError> {
        let pairs = self.pairs.take();
        let Some(piece) = self.pieces.last_mut() else {
            return Ok(());
        };
        piece.end = end;
        if piece.start == end {
            self.pieces.pop();
            return Ok(());
        }
        let Some((index, pairs)) = pairs else {
            return Ok(());
        };
        let mut entries = Vec::with_capacity(pairs.len());
        let mut least = piece.start.0;
        for (pc, bytecode) in pairs {
            let offset = u32::try_from(pc.wrapping_sub(piece.start.0)).ok();
            let Some(offset) = offset.filter(|_| pc >= least && pc <= end.0) else {
                let expected = "ascending machine pcs from the method's address to the next one";
                return Err(wrong(index, "the machine pc", &pc.to_string(), expected));
            };
            least = pc;
            entries.push((offset, BytecodePc(bytecode)));
        }
        piece.map = PcMap::Boundary {
            rule: BoundaryRule::AfterInstruction,
            exactness: Exactness::Exact,
            entries,
        };
        Ok(())
    }

    fn finish(mut self, last: usize) -> Result<SavedZone, SavedError> {
        let (Some(start), Some(end)) = (self.start, self.end) else {
            let expected = "`~CogCode~` first and `~CCEnd~` last: the file may be cut";
            return Err(wrong(last, "the end of the file without", END, expected));
        };
        let is_closed = |piece: &SavedPiece| piece.kind == ConstituentKind::ClosedPic;
        let tells_cases = self.pieces.iter().any(is_closed);
        for piece in &mut self.pieces {
            let is_pic = matches!(&piece.kind, ConstituentKind::Other(kind) if kind == PIC);
            if is_pic && tells_cases {
                piece.kind = ConstituentKind::OpenPic;
            }
            if !self.is_detailed {
                piece.map = PcMap::None;
            }
        }
        Ok(SavedZone {
            start,
            end,
            is_detailed: self.is_detailed,
            is_complete: self.is_complete,
            pieces: self.pieces,
        })
    }
}

/// The second half of a pair: an address, and the numbers of a list behind it.
#[expect(
    clippy::type_complexity,
    reason = "an address, and pairs if there is a list"
)]
fn value_of(text: &str) -> Option<(Avma, Option<Vec<(u64, u32)>>)> {
    let Some(list) = text.strip_prefix('(') else {
        return Some((Avma(text.parse().ok()?), None));
    };
    let mut words = list.strip_suffix(')')?.split_ascii_whitespace();
    let at = Avma(words.next()?.parse().ok()?);
    let mut pairs = Vec::new();
    while let Some(pc) = words.next() {
        pairs.push((pc.parse().ok()?, words.next()?.parse().ok()?));
    }
    Some((at, Some(pairs)))
}
