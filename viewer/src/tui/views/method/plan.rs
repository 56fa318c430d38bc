//! What has a column in front of the listing, and how many versions there is room for.

use super::listing::Listing;
use super::sides::Side;
use crate::annotate::layout::has_bytecodes;
use crate::queries::method::Found;
use crate::tui::theme::Theme;
use crate::tui::widgets::table::Col;
use ratatui::layout::Rect;

/// Machine code has columns of its own accord where there are so many columns.
const WIDE: u16 = 110;

/// Lines of source have a column beside versions where there are so many columns.
const WIDE_FOR_LINES: u16 = 100;

/// More versions are never side by side.
pub const MAX_SIDES: usize = 8;

/// Columns of what moved, with the blank behind it.
pub const MOVED: usize = 8;

/// Columns of the line between versions, with the blank behind it.
pub const BETWEEN: usize = 2;

/// What is shown of each version, beside its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// The share's error.
    pub error: bool,
    /// Columns of the bar.
    pub bar: usize,
    /// Samples.
    pub samples: bool,
    /// Columns of the machine code's offsets.
    pub machine: usize,
}

/// What is shown of one.
pub const ALONE: Fields = Fields {
    error: true,
    bar: 8,
    samples: true,
    machine: 18,
};

/// What is shown of several: the first that fits, the last if none does. Without machine code
/// where none is wanted.
const ABREAST: [Fields; 5] = [
    Fields {
        machine: 14,
        ..ALONE
    },
    PLAIN,
    Fields { bar: 0, ..PLAIN },
    Fields {
        bar: 0,
        machine: 12,
        ..PLAIN
    },
    Fields {
        error: false,
        bar: 0,
        machine: 12,
        ..PLAIN
    },
];

/// The least of each of more than two.
const PLAIN: Fields = Fields {
    error: true,
    bar: 4,
    samples: false,
    machine: 14,
};

impl Fields {
    /// Columns of all of it.
    pub fn width(self) -> usize {
        let optional = |width: usize| if width > 0 { width + 1 } else { 0 };
        let samples = if self.samples { 7 } else { 0 };
        let error = if self.error { 5 } else { 0 };
        8 + optional(error) + optional(self.bar) + optional(samples) + 2 + optional(self.machine)
    }

    /// Adds its columns.
    pub fn columns(self, columns: &mut Vec<Col>) {
        columns.push(Col::new("share", 7, true, 0));
        if self.error {
            columns.push(Col::new("±", 5, true, 5));
        }
        if self.bar > 0 {
            columns.push(Col::new("", self.bar, false, 2));
        }
        if self.samples {
            columns.push(Col::new("samples", 7, true, 3));
        }
        columns.push(Col::new("", 1, false, 0));
        if self.machine > 0 {
            columns.push(Col::new("machine code", self.machine, false, 0));
        }
    }
}

/// How versions stand side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How many versions there is room for.
    pub sides: usize,
    /// What is shown of each.
    pub fields: Fields,
    /// Whether it is shown how the share of the second differs from that of the first.
    pub moved: bool,
}

/// What is drawn beside the lines.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    /// What the terminal can show.
    pub theme: &'a Theme,
    /// The versions side by side; none for all together, or the one that the listing is of.
    pub sides: &'a [Side],
    /// Whether machine code is shown where it is not of its own accord, or the other way.
    pub machine: bool,
    /// What the lines are counted in.
    pub number: &'static str,
}

/// What the lines' numbers are.
pub fn number_title(found: &Found) -> &'static str {
    if has_bytecodes(&found.annotation) {
        "pc"
    } else {
        "line"
    }
}

impl Listing {
    /// Whether machine code has a column in an area.
    pub fn shows_machine(&self, shape: Shape<'_>, area: Rect) -> bool {
        let of_all = || self.items.iter().any(|item| !item.machine.is_empty());
        let any = match shape.sides {
            [] => of_all(),
            sides => sides.iter().any(|side| !side.machine.is_empty()),
        };
        any && wants_machine(shape.machine, area)
    }

    /// How at most so many versions stand side by side in an area; `machine`: whether any has
    /// machine code.
    pub fn plan(&self, versions: usize, machine: bool, area: Rect) -> Plan {
        let width = usize::from(area.width);
        let longest = self
            .items
            .iter()
            .map(|item| item.text.len() + item.depth * 2);
        let text = longest.max().unwrap_or(0).clamp(16, (width / 5).max(16));
        let number = self.number_width("line") + 1;
        let line = if self.has_lines(area) { 6 } else { 0 };
        let room = width.saturating_sub(text + number + line + 2);
        let without = |fields: Fields| match machine {
            true => fields,
            false => Fields {
                machine: 0,
                ..fields
            },
        };
        let needed = |fields: Fields, sides: usize| sides * (fields.width() + BETWEEN);
        let most = versions.clamp(2, MAX_SIDES);
        let sides = (3..=most).rev();
        let mut sides = sides.filter(|&sides| needed(without(PLAIN), sides) + MOVED <= room);
        let sides = sides.next().unwrap_or(2);
        let mut all = ABREAST.into_iter().map(without);
        let fits = |moved: usize| move |fields: &Fields| needed(*fields, sides) + moved <= room;
        let fitting = all.clone().find(fits(MOVED));
        Plan {
            sides,
            moved: fitting.is_some(),
            fields: fitting
                .or_else(|| all.find(fits(0)))
                .unwrap_or(without(Fields {
                    error: false,
                    bar: 0,
                    machine: 12,
                    ..PLAIN
                })),
        }
    }

    /// Columns of the lines' numbers.
    pub fn number_width(&self, title: &str) -> usize {
        let numbers = self.items.iter().map(|item| item.number.len());
        numbers.max().unwrap_or(0).clamp(title.len(), 8)
    }

    /// Whether source lines have a column beside versions.
    pub fn has_lines(&self, area: Rect) -> bool {
        area.width >= WIDE_FOR_LINES && self.items.iter().any(|item| item.line.is_some())
    }
}

/// Whether machine code is wanted where there is any.
pub fn wants_machine(toggled: bool, area: Rect) -> bool {
    (area.width >= WIDE) != toggled
}
