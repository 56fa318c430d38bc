//! The pane of the method's callers or callees.

use crate::present::document::Value;
use crate::present::names::{region_key, region_letter};
use crate::present::numbers::{count, percent, ratio, some};
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::widgets::data_table::{Column, DataTable, Piece, Room, Rows, Sort};
use crate::tui::widgets::search::Finder;
use vmscope_symbolizer::annotate::{Call, Calls, Subject};

const SHARE: usize = 0;
const BAR: usize = 1;
const SAMPLES: usize = 2;
const INLINED: usize = 3;
const LETTER: usize = 4;
const REGION: usize = 5;
const NAME: usize = 6;

/// What the pane shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shows {
    /// The pane is closed.
    #[default]
    Nothing,
    /// Callers of the method.
    Callers,
    /// Callees of the method.
    Callees,
}

impl Shows {
    /// The next state of the pane.
    pub fn next(self) -> Self {
        match self {
            Shows::Nothing => Shows::Callers,
            Shows::Callers => Shows::Callees,
            Shows::Callees => Shows::Nothing,
        }
    }

    /// Name of the calls.
    pub fn name(self) -> &'static str {
        match self {
            Shows::Callees => "callees",
            Shows::Callers | Shows::Nothing => "callers",
        }
    }
}

/// Table of the calls: indices by method.
pub type Table = DataTable<usize, Subject>;

/// Data of the table.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Callers or callees.
    pub all: &'a [Call],
    /// Samples with the method on the stack, the base of shares.
    pub samples: u64,
    pub is_native: bool,
}

impl<'a> Page<'a> {
    /// Page of callers or callees.
    pub fn of(shows: Shows, calls: &'a Calls, is_native: bool) -> Self {
        let all: &[Call] = match shows {
            Shows::Nothing => &[],
            Shows::Callers => &calls.callers,
            Shows::Callees => &calls.callees,
        };
        Page {
            all,
            samples: calls.samples,
            is_native,
        }
    }
}

impl Rows for Page<'_> {
    type Row = usize;
    type Key = Subject;

    fn columns(&self, _width: u16) -> Vec<Column> {
        vec![
            Column::right("share", "share", 7).sort(Sort::Like(SAMPLES)),
            Column::left("", "", 8).rank(2),
            Column::right("samples", "samples", 8)
                .rank(1)
                .sort(Sort::Down),
            Column::right("inlined", "inlined", 8)
                .rank(3)
                .sort(Sort::Down),
            Column::left("", "", 1),
            Column::left("", "region", 0),
            Column::left("", "name", 24),
        ]
    }

    fn stretch(&self) -> usize {
        NAME
    }

    fn sorts(&self) -> Vec<usize> {
        vec![SAMPLES, INLINED]
    }

    fn children(&self, _parent: Option<usize>) -> Vec<usize> {
        (0..self.all.len()).collect()
    }

    fn key(&self, row: usize) -> Subject {
        self.all[row].subject.clone()
    }

    fn value(&self, row: usize, column: usize) -> Value {
        let call = &self.all[row];
        match column {
            SHARE => Value::Share(self.share(row)),
            SAMPLES => Value::Count(call.samples),
            INLINED => Value::Count(call.inlined),
            REGION => Value::Text(region_key(call.region, self.is_native).to_owned()),
            NAME => Value::Text(call.name.to_string()),
            _ => Value::Empty,
        }
    }

    fn cell(&self, row: usize, column: usize, room: &Room<'_>) -> Vec<Piece> {
        let call = &self.all[row];
        let share = self.share(row);
        match column {
            SHARE => Piece::cell(Role::Heat(share), percent(share)),
            BAR => Piece::cell(Role::Heat(share), room.theme.bar(share, room.width)),
            SAMPLES => Piece::cell(Role::Text, count(call.samples)),
            INLINED if call.inlined == 0 => Piece::cell(Role::Dim, ""),
            INLINED => Piece::cell(Role::Dim, count(call.inlined)),
            LETTER => {
                let letter = region_letter(call.region, self.is_native);
                Piece::cell(Role::Region(call.region), letter)
            }
            _ => Piece::cell(Role::Text, &*call.name),
        }
    }

    fn fits(&self, row: usize, text: &mut Finder) -> bool {
        text.is_in(&self.all[row].name)
    }

    fn share(&self, row: usize) -> f64 {
        ratio(self.all[row].samples, self.samples)
    }
}

/// Title of the pane, with limits of the figures.
pub fn title(shows: Shows, calls: &Calls, cx: &Cx<'_>, focused: bool) -> String {
    let all = some(calls.samples, "sample", "samples");
    let rest = match shows {
        Shows::Callees => format!("{} in itself", count(calls.own)),
        _ => format!("{} without a known caller", count(calls.outermost)),
    };
    let samples = &cx.profile.trace.samples;
    let note = if cx.profile.trace.chains.is_empty() {
        "; inlined callers only (--call-graph=off)".to_owned()
    } else if samples.chain_ends.depth > 0 {
        let cut = some(samples.chain_ends.depth, "chain", "chains");
        format!("; {cut} of the recording cut off (maximum depth)")
    } else {
        String::new()
    };
    let mark = match focused {
        true => cx.theme.sign("▶", ">"),
        false => cx.theme.sign("─", "-"),
    };
    let name = shows.name();
    format!("{mark} {name}: {all} with the method on the stack, {rest}{note}")
}
