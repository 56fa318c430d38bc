//! How the rows of the hot list are drawn.

use super::listing::{Alike, Group, Leaf, Listing};
use super::order::By;
use super::rows::Row;
use crate::present::entries::{label_of, name_of, range_label, range_name};
use crate::present::names::kind_name;
use crate::present::names::{region_letter, region_name};
use crate::present::numbers::{count, ratio, some};
use crate::present::shorten::label;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::table::{Col, Piece};
use vmscope_symbolizer::profile::Entry;
use vmscope_symbolizer::{Profile, Region};

/// A column of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The share of all samples.
    Share,
    /// Samples as a bar, against the most of all those beside it.
    Bar,
    /// Samples.
    Samples,
    /// The share of it and of all before it.
    Cumulative,
    /// The region's letter.
    Letter,
    /// The name.
    Name,
    /// The region.
    Region,
    /// The tier.
    Tier,
    /// What it is.
    Kind,
    /// The class or module.
    Class,
    /// Bytes of machine code.
    Size,
    /// The error of the share.
    Error,
}

/// The columns where there is little room.
const NARROW: &[What] = &[
    What::Share,
    What::Bar,
    What::Samples,
    What::Letter,
    What::Name,
    What::Error,
];

/// The columns where there is more.
const WIDE: &[What] = &[
    What::Share,
    What::Bar,
    What::Samples,
    What::Cumulative,
    What::Name,
    What::Region,
    What::Tier,
    What::Kind,
    What::Class,
    What::Size,
    What::Error,
];

/// From so many columns on there is more room.
const IS_WIDE: u16 = 104;

/// From so many columns on there is room for longer bars.
const IS_WIDEST: u16 = 170;

impl What {
    fn col(self, width: u16) -> Col {
        let widest = width >= IS_WIDEST;
        let (name, columns, right, rank) = match self {
            What::Share => ("share", 7, true, 0),
            What::Bar => ("", if widest { 20 } else { 8 }, false, 0),
            What::Samples => ("samples", 9, true, 0),
            What::Cumulative => ("cumul.", 7, true, 2),
            What::Letter => ("", 1, false, 0),
            What::Name if width < IS_WIDE => ("name", 46, false, 0),
            What::Name => ("name", 36, false, 0),
            What::Region => ("region", 11, false, 3),
            What::Tier => ("tier", if widest { 22 } else { 12 }, false, 4),
            What::Kind => ("kind", 9, false, 6),
            What::Class => ("class or module", if widest { 34 } else { 22 }, false, 7),
            What::Size => ("size", 8, true, 5),
            What::Error => ("±", 6, true, 1),
        };
        Col::new(name, columns, right, rank)
    }

    /// What a click on its heading sorts by.
    pub fn by(self) -> Option<By> {
        Some(match self {
            What::Share | What::Bar | What::Samples | What::Cumulative => By::Share,
            What::Name => By::Name,
            What::Letter | What::Region => By::Region,
            What::Tier => By::Tier,
            What::Kind => By::Kind,
            What::Class => return None,
            What::Size => By::Size,
            What::Error => By::Error,
        })
    }
}

/// The columns of a list so wide.
pub fn columns(width: u16) -> (&'static [What], Vec<Col>) {
    let whats = if width < IS_WIDE { NARROW } else { WIDE };
    (whats, whats.iter().map(|what| what.col(width)).collect())
}

/// What is drawn of a listing.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub profile: &'a Profile,
    pub listing: &'a Listing,
    /// 95 % half-widths of entries' shares; empty where they are not known.
    pub errors: &'a [f64],
    pub theme: &'a Theme,
}

/// What a row is of.
pub(super) struct Of<'a> {
    pub group: &'a Group,
    pub leaf: Option<&'a Leaf>,
    pub samples: u64,
    /// Those of what it is in.
    pub whole: u64,
    /// The most of those beside it.
    most: u64,
}

impl<'a> Page<'a> {
    pub(super) fn of(&self, row: &Row) -> Option<Of<'a>> {
        let group = self.listing.groups.get(row.group)?;
        let leaf = row.leaf.and_then(|leaf| self.listing.leaves.get(leaf));
        let (samples, whole, most) = match (row.range, leaf) {
            (Some(range), Some(leaf)) => (range.samples, leaf.samples, range.most),
            (None, Some(leaf)) if row.depth > 0 => (leaf.samples, group.samples, group.most),
            _ => (group.samples, self.listing.total, self.listing.most),
        };
        Some(Of {
            group,
            leaf,
            samples,
            whole,
            most,
        })
    }

    /// What all entries of a row have in common; `None` where they differ.
    fn common<T>(
        &self,
        of: &Of<'a>,
        are_alike: impl Fn(&Alike) -> bool,
        get: impl Fn(&'a Entry) -> T,
    ) -> Option<T> {
        let entry = match of.leaf {
            Some(leaf) => Some(leaf.entry),
            None => are_alike(&of.group.alike).then_some(of.group.one),
        };
        self.profile.entries.get(entry? as usize).map(get)
    }

    /// The region of all entries of a row.
    pub(super) fn region(&self, of: &Of<'a>) -> Option<Region> {
        self.common(of, |alike| alike.region, |entry| entry.region)
    }

    /// Their tier.
    pub(super) fn tier(&self, of: &Of<'a>) -> Option<&'a str> {
        self.common(of, |alike| alike.tier, |entry| entry.tier.as_str())
    }

    /// What they are.
    pub(super) fn kind(&self, of: &Of<'a>) -> Option<&'a str> {
        self.common(of, |alike| alike.kind, |entry| kind_name(&entry.kind))
    }

    /// Their class or module.
    pub(super) fn module(&self, of: &Of<'a>) -> Option<&'a str> {
        self.common(of, |alike| alike.module, |entry| entry.module.as_str())
    }

    /// A row's pieces, one for each column.
    pub fn pieces(&self, row: &Row, whats: &[What], cols: &[(usize, usize)]) -> Vec<Piece> {
        let Some(of) = self.of(row) else {
            return Vec::new();
        };
        let width_of = |at: usize| cols.iter().find(|(col, _)| *col == at).map(|(_, w)| *w);
        let has = |what: What| {
            let at = whats.iter().position(|one| *one == what);
            at.is_some_and(|at| width_of(at).is_some())
        };
        let share = ratio(of.samples, self.listing.total);
        let region = self.region(&of);
        let is_range = row.range.is_some();
        let role = if is_range { Role::Dim } else { Role::Text };
        let text = |text: Option<&str>| match text {
            _ if is_range => Piece::text(""),
            Some(text) => Piece::of(Role::Dim, text),
            None => Piece::of(Role::Dim, "(several)"),
        };
        let whats = whats.iter().enumerate();
        let pieces = whats.map(|(at, what)| match what {
            _ if width_of(at).is_none() => Piece::text(""),
            What::Share => {
                let hot = ratio(of.samples, self.listing.most);
                Piece::of(Role::Heat(hot), format!("{:.2}%", share * 100.0))
            }
            What::Bar => {
                let indent = usize::from(row.depth);
                let room = width_of(at).unwrap_or(0).saturating_sub(indent);
                let bar = self.theme.bar(ratio(of.samples, of.most), room);
                let role = region.map_or(Role::Text, Role::Region);
                Piece::of(role, format!("{}{bar}", " ".repeat(indent)))
            }
            What::Samples => Piece::of(role, count(of.samples)),
            What::Cumulative if row.depth == 0 => {
                let share = ratio(of.group.cumulative, self.listing.total);
                Piece::of(Role::Dim, format!("{:.1}%", share * 100.0))
            }
            What::Cumulative => Piece::text(""),
            What::Letter => match region {
                Some(region) if !is_range => {
                    Piece::of(Role::Region(region), region_letter(region).to_string())
                }
                _ => Piece::text(""),
            },
            What::Name => {
                let room = width_of(at).unwrap_or(0);
                let name = self.name(row, &of, room, !has(What::Tier));
                let role = if row.leaf.is_none() {
                    Role::Strong
                } else {
                    role
                };
                Piece::of(role, name)
            }
            What::Region => match region {
                Some(region) if !is_range => Piece::of(Role::Region(region), region_name(region)),
                _ => text(None),
            },
            What::Tier => text(self.tier(&of)),
            What::Kind => text(self.kind(&of)),
            What::Class => text(self.module(&of)),
            What::Size => {
                let size = self.size(row, &of);
                Piece::of(Role::Dim, size.map_or_else(String::new, count))
            }
            What::Error => {
                let error = self.error(row, &of);
                let text = |error: f64| format!("{:.2}", error * 100.0);
                Piece::of(Role::Dim, error.map_or_else(String::new, text))
            }
        });
        pieces.collect()
    }

    pub(super) fn size(&self, row: &Row, of: &Of<'_>) -> Option<u64> {
        match of.leaf {
            _ if row.range.is_some() => None,
            Some(leaf) => self.listing.size(leaf.entry),
            None => of.group.size,
        }
    }

    pub(super) fn error(&self, row: &Row, of: &Of<'_>) -> Option<f64> {
        let leaf = of.leaf.filter(|_| row.range.is_none())?;
        self.errors.get(leaf.entry as usize).copied()
    }

    /// A row's name in the room there is, with the sign of what can be expanded.
    fn name(&self, row: &Row, of: &Of<'_>, columns: usize, with_tier: bool) -> String {
        let sign = match row.open {
            Some(true) => self.theme.sign("▾ ", "- "),
            Some(false) => self.theme.sign("▸ ", "+ "),
            None => "  ",
        };
        let indent = " ".repeat(usize::from(row.depth) * 2);
        let room = columns.saturating_sub(indent.len() + 2);
        let name = match (of.leaf, row.range) {
            (Some(_), Some(range)) => {
                let site = self.profile.sites.get(range.site as usize);
                let name = site.and_then(|site| range_label(site, room));
                name.unwrap_or_else(|| "(place not known)".to_owned())
            }
            (Some(leaf), None) => {
                let namesakes = &self.listing.namesakes;
                label_of(self.profile, namesakes, leaf.entry, with_tier, room)
            }
            (None, _) => {
                let entries = some(of.group.leaves.len() as u64, "entry", "entries");
                label(&of.group.name, None, &format!(" ({entries})"), room)
            }
        };
        format!("{indent}{sign}{name}")
    }

    /// The same in full.
    pub fn full_name(&self, row: &Row) -> String {
        let Some(of) = self.of(row) else {
            return String::new();
        };
        match (of.leaf, row.range) {
            (Some(_), Some(range)) => {
                let site = self.profile.sites.get(range.site as usize);
                let name = site.and_then(|site| {
                    let about = range_name(site)?;
                    let is_near = site.exactness == vmscope_records::Exactness::Approximate;
                    Some(if is_near { format!("~{about}") } else { about })
                });
                name.unwrap_or_else(|| "(place not known)".to_owned())
            }
            (Some(leaf), None) => name_of(self.profile, &self.listing.namesakes, leaf.entry),
            (None, _) => of.group.name.to_string(),
        }
    }

    /// All that is known of a row and has no column where there is little room.
    pub fn details(&self, row: &Row) -> String {
        let Some(of) = self.of(row) else {
            return String::new();
        };
        let mut parts = vec![self.full_name(row)];
        if of.whole > 0 && row.depth > 0 {
            let share = ratio(of.samples, of.whole) * 100.0;
            parts.push(format!("{share:.1}% of what it is in"));
        }
        if let Some(error) = self.error(row, &of) {
            parts.push(format!("±{:.2}%", error * 100.0));
        }
        if let Some(size) = self.size(row, &of) {
            parts.push(some(size, "byte", "bytes"));
        }
        if row.range.is_none() {
            let region = self.region(&of).map(region_name);
            let kind = self.kind(&of);
            let class = self.module(&of);
            // A Java method's name begins with its class.
            let is_told = |class: &str| parts.first().is_some_and(|name| name.contains(class));
            let class = class.filter(|class| !is_told(class));
            let known = [region, kind, class].into_iter().flatten();
            parts.extend(known.filter(|text| !text.is_empty()).map(str::to_owned));
        }
        parts.join(self.theme.sign(" · ", "; "))
    }
}
