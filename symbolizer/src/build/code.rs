//! Sites of generated code, from constituents and their pc maps.

use super::{Builder, UNNAMED};
use crate::profile::{Case, Entry, EntryId, EntryKind, Frame, Region, Site, SiteId};
use crate::trace::Trace;
use crate::zone::CodeId;
use std::sync::Arc;
use vmscope_records::{
    BoundaryRule, BytecodePc, ChainFrame, Constituent, ConstituentKind, Cover, Exactness, Method,
    MethodKey, PcMap, Position,
};

/// The longest separator of class and method.
const MAX_SEPARATOR: usize = 2;

/// The names of a constituent.
#[derive(Clone, Debug, Default)]
pub(super) struct NamesOfCode {
    whole: Option<Whole>,
    /// The site of each map piece with samples: a piece has many addresses.
    site_of_piece: Vec<Option<SiteId>>,
}

/// The common part of a constituent's sites.
#[derive(Clone, Debug)]
struct Whole {
    entry: EntryId,
    frame: Frame,
}

/// The common part of a method's frames.
#[derive(Clone, Debug)]
pub(super) struct MethodTexts {
    pub name: Arc<str>,
    pub file: Arc<str>,
    /// The representative of its namesakes; `None` without a record of the method.
    pub key: Option<MethodKey>,
}

impl Builder<'_> {
    pub(super) fn code_site(&mut self, code: CodeId, offset: u32) -> SiteId {
        let constituent = self.trace.constituent(code);
        let piece = piece_of(&constituent.map, offset) as usize;
        let known = self.names.codes.get(code);
        if let Some(&Some(site)) = known.and_then(|known| known.site_of_piece.get(piece)) {
            return site;
        }
        let site = self.new_code_site(code, constituent, offset);
        let sites = &mut self.names_of(code).site_of_piece;
        if sites.len() <= piece {
            // No larger than the map.
            sites.resize(piece + 1, None);
        }
        sites[piece] = Some(site);
        site
    }

    /// The site of code without a frame: a range for each call.
    pub(super) fn called_site(&mut self, code: CodeId, call: (CodeId, u32)) -> SiteId {
        let (site, caller) = (self.code_site(code, 0), self.code_site(call.0, call.1));
        self.put_site(Site {
            caller: Some(caller),
            ..self.sites[site].clone()
        })
    }

    fn names_of(&mut self, code: CodeId) -> &mut NamesOfCode {
        self.names.codes.slot(code, NamesOfCode::default())
    }

    fn new_code_site(&mut self, code: CodeId, constituent: &Constituent, offset: u32) -> SiteId {
        if let Some((cover, chain)) = constituent.map.cover(offset)
            && let Some((innermost, outer)) = chain.split_first()
        {
            return self.covered_site(code, constituent, innermost, outer, cover);
        }
        let Whole { entry, mut frame } = self.whole(code, constituent);
        let map = &constituent.map;
        let range = map.boundary_range(offset);
        let exactness = match map {
            PcMap::Boundary { exactness, .. } => *exactness,
            PcMap::None if !has_an_inside(constituent) => Exactness::Exact,
            _ => Exactness::MethodOnly,
        };
        let pc = range.and_then(|range| range.from);
        // By the other rule, a range may have bytecodes of several lines.
        if let PcMap::Boundary {
            rule: BoundaryRule::AtStart,
            ..
        } = map
        {
            let method = constituent
                .method
                .and_then(|key| self.trace.methods.get(&key));
            frame.line = method.zip(pc).and_then(|(method, pc)| line_of(method, pc));
        }
        self.put_site(Site {
            from: pc,
            to: range.and_then(|range| range.to),
            bounded: range.is_some(),
            exactness,
            ..Site::whole(entry, frame)
        })
    }

    /// The site of a covers map's piece, which counts for the innermost method.
    fn covered_site(
        &mut self,
        code: CodeId,
        constituent: &Constituent,
        innermost: &ChainFrame,
        outer: &[ChainFrame],
        &Cover {
            exactness,
            method_error,
            ..
        }: &Cover,
    ) -> SiteId {
        let mut frame = self.frame(innermost);
        let entry = if outer.is_empty() {
            // Only the constituent's own name shows its kind of entry (on-stack replacement, for
            // instance).
            let whole = self.whole(code, constituent);
            frame.name = whole.frame.name;
            whole.entry
        } else {
            self.inlined_entry(constituent, &frame.name, innermost.method)
        };
        let via = self.frames(outer, |builder, frame| builder.frame(frame));
        self.put_site(Site {
            from: frame.bytecode,
            via,
            exactness,
            method_error,
            ..Site::whole(entry, frame)
        })
    }

    fn whole(&mut self, code: CodeId, constituent: &Constituent) -> Whole {
        let known = self.names.codes.get(code);
        if let Some(whole) = known.and_then(|known| known.whole.as_ref()) {
            return whole.clone();
        }
        let key = constituent.method;
        let is_nameless =
            constituent.name.is_empty() && constituent.kind == ConstituentKind::Method;
        let shown = shown_name(constituent);
        let (name, entry) = if is_nameless {
            let unnamed = Entry {
                region: region_of(constituent),
                ..Entry::named(UNNAMED, EntryKind::Unnamed)
            };
            (UNNAMED, unnamed)
        } else {
            let named = Entry {
                cases: constituent.cases.iter().map(Case::from).collect(),
                ..self.method_entry(constituent, &shown, &constituent.kind, key)
            };
            (shown.as_str(), named)
        };
        let method = key.and_then(|key| self.trace.methods.get(&key));
        let whole = Whole {
            entry: self.put_entry(entry),
            frame: Frame {
                name: self.text(name),
                file: self.text(method.map_or("", |method| &method.file)),
                line: None,
                bytecode: None,
                method: key.and_then(|key| self.method_texts(key).key),
            },
        };
        self.names_of(code).whole = Some(whole.clone());
        whole
    }

    /// The entry of an inlined method: inlined and own code of one tier share an entry.
    fn inlined_entry(
        &mut self,
        constituent: &Constituent,
        name: &str,
        method: MethodKey,
    ) -> EntryId {
        let kind = ConstituentKind::Method;
        let entry = self.method_entry(constituent, name, &kind, Some(method));
        self.put_entry(entry)
    }

    /// Source positions distinguish methods of one name.
    fn method_entry(
        &self,
        constituent: &Constituent,
        name: &str,
        kind: &ConstituentKind,
        method: Option<MethodKey>,
    ) -> Entry {
        let method = method.and_then(|key| self.trace.methods.get(&key));
        let text = |of: fn(&Method) -> &String| method.map_or_else(String::new, |m| of(m).clone());
        Entry {
            region: region_of(constituent),
            tier: constituent.tier.clone(),
            module: text(|method| &method.class),
            file: text(|method| &method.file),
            line: method.map(|method| method.line).filter(|&line| line != 0),
            ..Entry::named(name, EntryKind::Code(kind.clone()))
        }
    }

    fn first_of_namesakes(&mut self, method: &Method, key: MethodKey) -> MethodKey {
        let texts = [&method.class, &method.name, &method.file].map(|text| self.text(text));
        let [class, name, file] = texts;
        let all = &mut self.names.first_of_namesakes;
        *all.entry((class, name, file, method.line)).or_insert(key)
    }

    fn frame(&mut self, frame: &ChainFrame) -> Frame {
        let method = self.trace.methods.get(&frame.method);
        let (line, bytecode) = match frame.position {
            Position::Unknown => (None, None),
            Position::Line(line) => (Some(line), None),
            Position::Bytecode(pc) => (method.and_then(|m| line_of(m, pc)), Some(pc)),
        };
        let MethodTexts { name, file, key } = self.method_texts(frame.method);
        Frame {
            name,
            file,
            line,
            bytecode,
            method: key,
        }
    }

    pub(super) fn method_texts(&mut self, key: MethodKey) -> MethodTexts {
        if let Some(texts) = self.names.texts_of_method.get(&key) {
            return texts.clone();
        }
        let texts = match self.trace.methods.get(&key) {
            Some(method) => MethodTexts {
                name: self.text(&full_name(method, self.separator)),
                file: self.text(&method.file),
                key: Some(self.first_of_namesakes(method, key)),
            },
            None => MethodTexts {
                name: self.text("(unknown method)"),
                file: self.text(""),
                key: None,
            },
        };
        self.names.texts_of_method.insert(key, texts.clone());
        texts
    }
}

/// The map piece of an offset: all offsets of a piece share a site. All gaps between covers
/// are one piece.
pub(crate) fn piece_of(map: &PcMap, offset: u32) -> u32 {
    let piece = match map {
        PcMap::None => 0,
        PcMap::Boundary { entries, .. } => entries.partition_point(|&(mc, _)| mc <= offset),
        PcMap::Covers { covers, .. } => {
            let after = covers.partition_point(|cover| cover.start <= offset);
            let cover = after.checked_sub(1).and_then(|index| covers.get(index));
            match cover {
                Some(cover) if offset < cover.end => after,
                _ => 0,
            }
        }
    };
    // Pieces start at distinct 32-bit offsets, so their number fits.
    u32::try_from(piece).unwrap_or(u32::MAX)
}

/// A method's name with its class, in the VM's own style.
#[must_use]
pub fn full_name(method: &Method, separator: &str) -> String {
    if method.class.is_empty() {
        method.name.clone()
    } else {
        format!("{}{separator}{}", method.class, method.name)
    }
}

/// The separator of class and method in the names of a VM's constituents (`>>` in Smalltalk,
/// `.` in Java): inlined methods need the same names. A full stop if no constituent shows it.
#[must_use]
pub fn separator_of(trace: &Trace) -> &str {
    let mut all = trace.code.constituents.iter();
    all.find_map(|constituent| separator_in(trace, constituent))
        .unwrap_or(".")
}

/// The separator of class and method in a constituent's name, if visible.
pub(crate) fn separator_in<'c>(trace: &Trace, constituent: &'c Constituent) -> Option<&'c str> {
    separator_between(constituent, trace.methods.get(&constituent.method?)?)
}

/// The separator of class and method in the name of a method's constituent, if visible.
#[must_use]
pub fn separator_between<'c>(constituent: &'c Constituent, method: &Method) -> Option<&'c str> {
    let from = constituent
        .name
        .strip_prefix(&method.class)
        .filter(|_| !method.class.is_empty())?;
    let between = from.strip_suffix(&method.name)?;
    (1..=MAX_SEPARATOR)
        .contains(&between.len())
        .then_some(between)
}

/// A constituent's name for display. PICs have the names of VMProfiler, whose VMs name a PIC by its
/// selector alone.
fn shown_name(constituent: &Constituent) -> String {
    let name = &constituent.name;
    match constituent.kind {
        ConstituentKind::ClosedPic => format!("cPIC {name}"),
        ConstituentKind::OpenPic => format!("OpenPIC {name}"),
        _ => name.clone(),
    }
}

/// Whether a constituent has distinct ranges. Trampolines and PICs have none: their name is the
/// whole answer.
fn has_an_inside(constituent: &Constituent) -> bool {
    constituent.method.is_some()
        || matches!(
            constituent.kind,
            ConstituentKind::Method | ConstituentKind::Block
        )
}

fn region_of(constituent: &Constituent) -> Region {
    match constituent.kind {
        ConstituentKind::Interpreter => Region::Interpreter,
        _ => Region::Generated,
    }
}

/// The source line of a bytecode, by the method's line table.
pub(crate) fn line_of(method: &Method, pc: BytecodePc) -> Option<u32> {
    let after = method.lines.partition_point(|entry| entry.from <= pc);
    method
        .lines
        .get(after.checked_sub(1)?)
        .map(|entry| entry.line)
}
