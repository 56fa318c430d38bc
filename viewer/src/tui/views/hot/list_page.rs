//! Columns and rows of the list: groups, entries, ranges.

use crate::present::document::Value;
use crate::present::entries::{INLINED, inlined_name, name_of, parts_of, range_label, range_name};
use crate::present::names::{region_letter, region_name};
use crate::present::numbers::{count, ratio, some};
use crate::present::shorten::Name;
use crate::queries::entries::{Common, Entries, Group, GroupBy, GroupKey, Member};
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::data_table::{Column, Piece, Room, Rows, Sort, SortKey};
use crate::tui::widgets::search::Finder;
use vmscope_records::Exactness;
use vmscope_symbolizer::profile::Frame;
use vmscope_symbolizer::{EntryId, IndexVec, Profile, Region, Site, SiteId};

/// Minimum terminal width for region, tier, kind and class columns.
const WIDE: u16 = 104;

/// Minimum terminal width for longer bars.
const WIDEST: u16 = 170;

/// Text of a group's attribute that differs among its entries.
const SEVERAL: &str = "(several)";

const OF: usize = 0;
const SHARE: usize = 1;
const INCLUSIVE: usize = 2;
const BAR: usize = 3;
const SAMPLES: usize = 4;
const CUMULATIVE: usize = 5;
const LETTER: usize = 6;
const NAME: usize = 7;
const PARENT: usize = 8;
const REGION: usize = 9;
const TIER: usize = 10;
const KIND: usize = 11;
const CLASS: usize = 12;
const SIZE: usize = 13;
pub const ERROR: usize = 14;
const INFERRED: usize = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// Index in [`Entries::groups`].
    Group(usize),
    /// Entry in a group: indices in [`Entries::groups`] and [`Entries::members`].
    Entry(usize, usize),
    /// Range of an entry.
    Range {
        group: usize,
        member: usize,
        site: SiteId,
        samples: u64,
        /// Samples of the largest sibling.
        most: u64,
    },
}

/// Identity of a row across answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    Group(GroupKey),
    Entry(GroupKey, EntryId),
    Range(GroupKey, EntryId, SiteId),
}

impl Key {
    pub fn entry(&self) -> Option<EntryId> {
        match self {
            Key::Entry(_, entry) | Key::Range(_, entry, _) => Some(*entry),
            Key::Group(GroupKey::Entry(entry) | GroupKey::Method(entry)) => Some(*entry),
            Key::Group(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub profile: &'a Profile,
    pub entries: &'a Entries,
    /// Newest 95 % half-widths of shares, for sorting.
    pub errors: Option<&'a IndexVec<EntryId, f64>>,
    /// Whether they are of older samples: not for display.
    pub are_errors_old: bool,
    /// Running sum of samples per group, in table order.
    pub cumulative: &'a [u64],
}

impl<'a> Page<'a> {
    pub fn group(&self, row: Row) -> &'a Group {
        let (Row::Group(group) | Row::Entry(group, _) | Row::Range { group, .. }) = row;
        &self.entries.groups[group]
    }

    /// Entry of a row; `None` for groups with several entries.
    fn member(&self, row: Row) -> Option<Member> {
        let group = self.group(row);
        match row {
            Row::Group(_) if self.entries.is_single(group) => {
                self.entries.members_of(group).first().copied()
            }
            Row::Group(_) => None,
            Row::Entry(_, member) | Row::Range { member, .. } => Some(self.entries.members[member]),
        }
    }

    pub fn entry(&self, row: Row) -> Option<EntryId> {
        self.member(row).map(|member| member.entry)
    }

    pub fn samples(&self, row: Row) -> u64 {
        match row {
            Row::Group(group) => self.entries.groups[group].samples,
            Row::Entry(_, member) => self.entries.members[member].samples,
            Row::Range { samples, .. } => samples,
        }
    }

    /// Samples of the parent row.
    fn whole(&self, row: Row) -> Option<u64> {
        match row {
            Row::Group(_) => None,
            Row::Entry(group, _) => Some(self.entries.groups[group].samples),
            Row::Range { member, .. } => Some(self.entries.members[member].samples),
        }
    }

    /// Samples of the largest sibling.
    fn most(&self, row: Row) -> u64 {
        let first = match row {
            Row::Group(_) => self.entries.groups.first().map(|group| group.samples),
            Row::Entry(..) => {
                let members = self.entries.members_of(self.group(row));
                members.first().map(|member| member.samples)
            }
            Row::Range { most, .. } => Some(most),
        };
        first.unwrap_or(0)
    }

    fn depth(&self, row: Row) -> usize {
        match row {
            Row::Group(_) => 0,
            Row::Entry(..) => 1,
            Row::Range { .. } if self.entries.is_single(self.group(row)) => 1,
            Row::Range { .. } => 2,
        }
    }

    fn common(&self, row: Row) -> Common {
        match (self.entry(row), row) {
            (Some(entry), Row::Entry(..)) => Common::of(self.profile, &self.entries.index, entry),
            _ => self.group(row).common,
        }
    }

    fn region(&self, row: Row) -> Option<Region> {
        match row {
            Row::Range { group, member, .. } => self.common(Row::Entry(group, member)).region,
            _ => self.common(row).region,
        }
    }

    /// Text of a shared attribute; `None` if entries differ.
    fn text(&self, row: Row, column: usize) -> Option<&'a str> {
        let (index, common) = (&self.entries.index, self.common(row));
        match column {
            REGION => {
                let is_native = self.profile.is_native();
                common.region.map(|region| region_name(region, is_native))
            }
            TIER => common.tier.map(|tier| &*index.tiers[tier as usize]),
            KIND => common.kind.map(|kind| &*index.kinds[kind as usize]),
            _ => common.module.map(|module| &*index.modules[module as usize]),
        }
    }

    fn size(&self, row: Row) -> Option<u64> {
        match row {
            Row::Group(group) => self.entries.groups[group].size,
            Row::Entry(_, member) => {
                let entry = self.entries.members[member].entry;
                self.entries.index.sizes[entry]
            }
            Row::Range { .. } => None,
        }
    }

    fn error(&self, row: Row) -> Option<f64> {
        match row {
            Row::Range { .. } => None,
            _ => {
                let entry = self.entry(row)?;
                let sampling = self.errors.filter(|_| !self.are_errors_old)?.get(entry)?;
                Some(sampling + self.entries.summary().inference_error(entry))
            }
        }
    }

    /// Whether the samples of the row's entry are mostly inferred.
    fn is_inferred(&self, row: Row) -> bool {
        let entry = self.entry(row);
        let entry = entry.filter(|_| !matches!(row, Row::Range { .. }));
        entry.is_some_and(|entry| self.entries.summary().is_inferred(entry))
    }

    fn has_inclusive(&self) -> bool {
        self.entries.inclusive.is_some() && self.entries.by != GroupBy::Thread
    }

    /// Samples of stacks with the entry; thread rows have none, since stacks include all threads.
    fn inclusive(&self, row: Row) -> Option<u64> {
        let is_entry = !matches!(row, Row::Range { .. }) && self.entries.by != GroupBy::Thread;
        self.entries
            .inclusive_of(self.entry(row).filter(|_| is_entry)?)
    }

    pub fn full_name(&self, row: Row) -> String {
        match (row, self.entry(row)) {
            (Row::Range { site, .. }, _) => {
                let site = &self.profile.sites[site];
                let is_near = site.exactness == Exactness::Approximate;
                let name = match self.inlined_at(site) {
                    Some(frame) => Some(format!("{INLINED}{}", inlined_name(frame).full())),
                    None => range_name(self.profile, site),
                };
                let name = name.map(|name| if is_near { format!("~{name}") } else { name });
                name.unwrap_or_else(|| "(place unknown)".to_owned())
            }
            (_, Some(entry)) => name_of(self.profile, &self.entries.namesakes, entry),
            (_, None) => self.group(row).name.to_string(),
        }
    }

    /// The name of the row's entry or group, without distinctions.
    fn own_name(&self, row: Row) -> &'a str {
        match self.entry(row) {
            Some(entry) => &self.profile.entries[entry].name,
            None => &self.group(row).name,
        }
    }

    /// The inlined function that a range's row stands for. Groups of an innermost function show its
    /// ranges.
    fn inlined_at(&self, site: &'a Site) -> Option<&'a Frame> {
        match self.entries.by {
            GroupBy::Innermost => None,
            _ => self.profile.inlined_at(site),
        }
    }

    fn label(&self, row: Row, room: &Room<'_>) -> String {
        match row {
            Row::Range { site, .. } => {
                let site = &self.profile.sites[site];
                if let Some(frame) = self.inlined_at(site) {
                    let columns = room.width.saturating_sub(INLINED.len());
                    return format!("{INLINED}{}", inlined_name(frame).label(columns));
                }
                let name = range_label(self.profile, site, room.width);
                name.unwrap_or_else(|| "(place unknown)".to_owned())
            }
            _ => room.label.to_owned(),
        }
    }

    /// All facts of a row, including columns hidden on narrow screens.
    pub fn details(&self, row: Row, theme: &Theme) -> String {
        let mut parts = vec![self.full_name(row)];
        if let Some(whole) = self.whole(row).filter(|whole| *whole > 0) {
            let share = ratio(self.samples(row), whole) * 100.0;
            parts.push(format!("{share:.1}% of its parent"));
        }
        if let Some(samples) = self.inclusive(row) {
            let share = ratio(samples, self.entries.total) * 100.0;
            parts.push(format!("{share:.1}% with callees"));
        }
        if let Some(error) = self.error(row) {
            let inferred = match self.is_inferred(row) {
                true => " (~ method inferred)",
                false => "",
            };
            parts.push(format!("±{:.2}%{inferred}", error * 100.0));
        }
        if let Some(size) = self.size(row) {
            parts.push(some(size, "byte", "bytes"));
        }
        if !matches!(row, Row::Range { .. }) {
            let name = self.own_name(row);
            let class = self.text(row, CLASS).filter(|class| !name.contains(class));
            let known = [self.text(row, REGION), self.text(row, KIND), class];
            let known = known.into_iter().flatten().filter(|text| !text.is_empty());
            parts.extend(known.map(str::to_owned));
        }
        parts.join(theme.sign(" · ", "; "))
    }

    fn key_of_member(&self, member: &Member, column: usize) -> u64 {
        let entry = member.entry;
        let ranks = self.entries.index.ranks[entry];
        match column {
            NAME => ranks.name.into(),
            REGION => self.profile.entries[entry].region as u64,
            TIER => ranks.tier.into(),
            KIND => ranks.kind.into(),
            // Unknown sizes come last.
            SIZE => self.entries.index.sizes[entry].map_or(0, |size| size.saturating_add(1)),
            INCLUSIVE => self.entries.inclusive_of(member.entry).unwrap_or(0),
            // Bits of non-negative floats sort like the floats.
            ERROR => self
                .errors
                .and_then(|errors| errors.get(entry))
                .map_or(0, |error| {
                    (error + self.entries.summary().inference_error(entry)).to_bits()
                }),
            _ => member.samples,
        }
    }
}

impl Rows for Page<'_> {
    type Row = Row;
    type Key = Key;

    fn columns(&self, width: u16) -> Vec<Column> {
        let (wide, widest) = (width >= WIDE, width >= WIDEST);
        let longest = &self.entries.index.longest;
        let several = match self.entries.by {
            GroupBy::Entry => 0,
            _ => SEVERAL.len(),
        };
        // Columns are as wide as their longest text: names get the rest. Narrow screens hide them.
        let on = |title: &str, longest: usize, most: usize| match longest {
            1.. if wide => longest.max(several).max(title.len()).min(most),
            _ => 0,
        };
        let (letter, name) = if wide { (0, 44) } else { (1, 46) };
        let bar = match (wide, widest) {
            (_, true) => 12,
            (false, false) if self.has_inclusive() => 0,
            _ => 8,
        };
        let like_share = Sort::Like(SHARE);
        // Without stacks nothing is inclusive.
        let (inclusive, name_of_inclusive) = match self.has_inclusive() {
            true => (7, "inclusive"),
            false => (0, ""),
        };
        vec![
            Column::left("", "of", 0),
            Column::right("share", "share", 7).sort(Sort::Down),
            Column::right("incl.", name_of_inclusive, inclusive).sort(Sort::Down),
            Column::left("", "", bar).sort(like_share),
            Column::right("samples", "samples", 9).sort(like_share),
            Column::right("cumul.", "", on("cumul.", 7, 7))
                .rank(2)
                .sort(like_share),
            Column::left("", "", letter).sort(Sort::Like(REGION)),
            Column::left("name", "name", name).sort(Sort::Up),
            Column::right("", "share of parent", 0),
            Column::left("region", "region", on("region", longest.region, 11))
                .rank(3)
                .sort(Sort::Up),
            Column::left("tier", "tier", on("tier", longest.tier, 26))
                .rank(4)
                .sort(Sort::Up),
            Column::left("kind", "kind", on("kind", longest.kind, 11))
                .rank(6)
                .sort(Sort::Up),
            Column::left(
                "module",
                "class or module",
                on("module", longest.module, 16),
            )
            .rank(7),
            Column::right("size", "machine code", on("size", longest.size, 9))
                .rank(5)
                .sort(Sort::Down),
            Column::right("±", "error", 6).rank(1).sort(Sort::Down),
            Column::left("", "method inferred", 0),
        ]
    }

    fn stretch(&self) -> usize {
        NAME
    }

    fn sorts(&self) -> Vec<usize> {
        let mut sorts = vec![SHARE, NAME, REGION, KIND, TIER, SIZE, ERROR];
        if self.has_inclusive() {
            sorts.insert(1, INCLUSIVE);
        }
        sorts
    }

    fn is_tree(&self) -> bool {
        true
    }

    fn can_open(&self, row: Row) -> bool {
        match (row, self.entry(row)) {
            (Row::Range { .. }, _) => false,
            (_, Some(entry)) => self.entries.has_ranges(self.profile, entry),
            (_, None) => true,
        }
    }

    fn keeps_order(&self, parent: Row) -> bool {
        self.member(parent).is_some()
    }

    fn children(&self, parent: Option<Row>) -> Vec<Row> {
        let Some(row) = parent else {
            return (0..self.entries.groups.len()).map(Row::Group).collect();
        };
        let (group, member) = match row {
            Row::Group(at) if self.member(row).is_none() => {
                let members = self.entries.groups[at].members.clone();
                return members.map(|member| Row::Entry(at, member)).collect();
            }
            Row::Group(at) => (at, self.entries.groups[at].members.start),
            Row::Entry(at, member) => (at, member),
            Row::Range { .. } => return Vec::new(),
        };
        let entry = self.entries.members[member].entry;
        let ranges = self.entries.ranges(self.profile, self.group(row), entry);
        let most = ranges.iter().map(|range| range.samples).max().unwrap_or(0);
        let ranges = ranges.into_iter().map(|range| Row::Range {
            group,
            member,
            site: range.site,
            samples: range.samples,
            most,
        });
        ranges.collect()
    }

    fn searched(&self, row: Row) -> Vec<Row> {
        // Search covers names, not each entry's ranges.
        match self.member(row) {
            Some(_) => Vec::new(),
            None => self.children(Some(row)),
        }
    }

    fn key(&self, row: Row) -> Key {
        let group = self.group(row).key.clone();
        match row {
            Row::Group(_) => Key::Group(group),
            Row::Entry(_, member) => Key::Entry(group, self.entries.members[member].entry),
            Row::Range { member, site, .. } => {
                Key::Range(group, self.entries.members[member].entry, site)
            }
        }
    }

    fn value(&self, row: Row, column: usize) -> Value {
        let is_range = matches!(row, Row::Range { .. });
        let share = |part, whole| Value::Share(ratio(part, whole));
        let samples = self.samples(row);
        match column {
            OF if is_range => Value::Text("range".to_owned()),
            OF if self.member(row).is_some() => Value::Text("entry".to_owned()),
            OF => Value::Text(self.entries.by.name().to_owned()),
            SHARE => share(samples, self.entries.total),
            SAMPLES => Value::Count(samples),
            CUMULATIVE => match row {
                Row::Group(group) => share(self.cumulative[group], self.entries.total),
                _ => Value::Empty,
            },
            NAME => {
                let indent = "  ".repeat(self.depth(row));
                Value::Text(format!("{indent}{}", self.full_name(row)))
            }
            PARENT => self
                .whole(row)
                .map_or(Value::Empty, |whole| share(samples, whole)),
            REGION | TIER | KIND | CLASS => match self.text(row, column) {
                Some(text) if !is_range && !text.is_empty() => Value::Text(text.to_owned()),
                _ => Value::Empty,
            },
            SIZE => self.size(row).map_or(Value::Empty, Value::Bytes),
            ERROR => self.error(row).map_or(Value::Empty, Value::Share),
            INFERRED if self.is_inferred(row) => Value::Text("mostly".to_owned()),
            INCLUSIVE => match self.inclusive(row) {
                Some(samples) => share(samples, self.entries.total),
                None => Value::Empty,
            },
            _ => Value::Empty,
        }
    }

    /// Groups sort by their own name, samples, size; else by the smallest region, kind or tier, or
    /// the largest error among members.
    fn sort_key(&self, row: Row, column: usize) -> SortKey {
        let group = self.group(row);
        let is_single = self.entries.is_single(group);
        let members = || {
            let members = self.entries.members_of(group).iter();
            members.map(|member| self.key_of_member(member, column))
        };
        let key = match (row, column) {
            (Row::Entry(_, member), _) => self.key_of_member(&self.entries.members[member], column),
            (_, NAME) if !matches!(group.key, GroupKey::Entry(_)) => group.rank.into(),
            (_, SHARE) => group.samples,
            (_, SIZE) if !is_single => group.size.map_or(0, |size| size.saturating_add(1)),
            (_, ERROR) => members().max().unwrap_or(0),
            _ => members().min().unwrap_or(0),
        };
        SortKey::Number(key)
    }

    fn name(&self, row: Row, columns: &[usize]) -> Option<Name<'_>> {
        match (row, self.entry(row)) {
            (Row::Range { .. }, _) => None,
            (_, Some(entry)) => {
                let with_tier = !columns.contains(&TIER);
                let namesakes = &self.entries.namesakes;
                Some(parts_of(self.profile, namesakes, entry, with_tier))
            }
            (_, None) => {
                let group = self.group(row);
                let entries = some(group.members.len() as u64, "entry", "entries");
                Some(Name {
                    name: &group.name,
                    place: None,
                    tail: format!(" ({entries})"),
                })
            }
        }
    }

    fn cell(&self, row: Row, column: usize, room: &Room<'_>) -> Vec<Piece> {
        let is_range = matches!(row, Row::Range { .. });
        let samples = self.samples(row);
        let region = self.region(row);
        let own = if is_range { Role::Dim } else { Role::Text };
        let role = match column {
            SHARE => {
                let groups = self.entries.groups.first();
                Role::Heat(ratio(samples, groups.map_or(0, |group| group.samples)))
            }
            BAR | LETTER => region.map_or(Role::Text, Role::Region),
            REGION => region.map_or(Role::Dim, Role::Region),
            NAME if self.member(row).is_none() => Role::Strong,
            NAME | SAMPLES => own,
            _ => Role::Dim,
        };
        let text = match (column, self.value(row, column)) {
            (BAR, _) => {
                let indent = self.depth(row);
                let bar = ratio(samples, self.most(row));
                let bar = room.theme.bar(bar, room.width.saturating_sub(indent));
                format!("{}{bar}", " ".repeat(indent))
            }
            (LETTER, _) if !is_range => region.map_or_else(String::new, |region| {
                region_letter(region, self.profile.is_native()).to_string()
            }),
            (NAME, _) => self.label(row, room),
            // A Java method's name begins with its class.
            (CLASS, Value::Text(class)) if self.own_name(row).contains(&class) => String::new(),
            (REGION | TIER | KIND | CLASS, Value::Empty) if !is_range => {
                match self.text(row, column) {
                    Some(_) => String::new(),
                    None => SEVERAL.to_owned(),
                }
            }
            (SHARE, Value::Share(share)) if self.is_inferred(row) => {
                format!("~{:.1}%", share * 100.0)
            }
            (SHARE, Value::Share(share)) => format!("{:.2}%", share * 100.0),
            (CUMULATIVE | INCLUSIVE, Value::Share(share)) => format!("{:.1}%", share * 100.0),
            (_, Value::Share(share)) => format!("{:.2}", share * 100.0),
            (_, Value::Count(number) | Value::Bytes(number)) => count(number),
            (_, Value::Text(text)) => text,
            _ => String::new(),
        };
        Piece::cell(role, text)
    }

    fn fits(&self, row: Row, text: &mut Finder) -> bool {
        match row {
            Row::Range { site, .. } => {
                let name = range_name(self.profile, &self.profile.sites[site]);
                name.is_some_and(|name| text.is_in(&name))
            }
            _ => text.is_in(self.own_name(row)),
        }
    }

    fn share(&self, row: Row) -> f64 {
        ratio(self.samples(row), self.entries.total)
    }
}

#[cfg(test)]
mod tests;
