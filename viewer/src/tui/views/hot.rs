//! Hot list: entries and groups with ranges (`List`), category × method and category × thread
//! matrices (`MatrixView`). Key `m` switches between these views, which share an entry index.

mod grid;
mod list;
mod list_page;
mod matrix;
mod matrix_page;
mod narrow;
mod side;
#[cfg(test)]
mod tests;

use super::{Act, Choice, Click, Cx, Find, View};
use crate::present::document::{Document, Part, Table};
use crate::queries::entry_index::IndexCache;
use crate::tui::jobs::{Question, QuestionId};
use crate::tui::keys::{Binding, Command, ch, own};
use crate::tui::widgets::data_table::{DataTable, HOT, RowsOf};
use list::List;
use matrix::MatrixView;
use ratatui::Frame;
use ratatui::layout::Rect;
use std::hash::Hash;
use vmscope_symbolizer::Stop;
use vmscope_symbolizer::matrix::Axis;

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Toggle, &[ch(' ')], "expand", "expand or collapse a group, an entry's ranges, or a matrix row"),
    own(Command::Sort, &[ch('s')], "sort", "sort by the next column"),
    own(Command::Reverse, &[ch('S')], "", "sort the other way round"),
    own(Command::Group, &[ch('b')], "group", "next grouping: method, class, region, kind, thread, tier, innermost function; matrix: swap rows and columns"),
    own(Command::GroupBack, &[ch('B')], "", "previous grouping"),
    own(Command::Mode, &[ch('m')], "matrix", "list, matrix of categories and methods (side by side or nested), or of categories and threads"),
    own(Command::ZoomIn, &[ch('+'), ch('=')], "", "matrix: split regions by tier and phase"),
    own(Command::ZoomOut, &[ch('-')], "", "matrix: whole regions"),
    own(Command::NextHot, &[ch('}')], "", "next hot row or cell"),
    own(Command::PreviousHot, &[ch('{')], "", "previous hot row or cell"),
];

/// Palette line numbers.
const SORT: u16 = 0;
const GROUP: u16 = 100;
const FORM: u16 = 200;
const EXPAND: u16 = 300;
const COLLAPSE: u16 = 301;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shown {
    #[default]
    List,
    Methods,
    Threads,
}

/// Forms in key order: view, nested layout, display name.
const FORMS: [(Shown, bool, &str); 5] = [
    (Shown::List, false, "the list"),
    (Shown::Methods, false, "category × method"),
    (Shown::Methods, true, "category × method, nested"),
    (Shown::Threads, false, "category × thread"),
    (Shown::Threads, true, "category × thread, nested"),
];

#[derive(Clone, Debug)]
pub struct Hot {
    shown: Shown,
    list: List,
    methods: MatrixView,
    threads: MatrixView,
}

impl Default for Hot {
    fn default() -> Self {
        let index = IndexCache::default();
        Hot {
            shown: Shown::default(),
            list: List::new(index.clone()),
            methods: MatrixView::new(Axis::Methods, index.clone()),
            threads: MatrixView::new(Axis::Threads, index),
        }
    }
}

impl Hot {
    fn view(&self) -> &dyn View {
        match self.shown {
            Shown::List => &self.list,
            Shown::Methods => &self.methods,
            Shown::Threads => &self.threads,
        }
    }

    fn view_mut(&mut self) -> &mut dyn View {
        match self.shown {
            Shown::List => &mut self.list,
            Shown::Methods => &mut self.methods,
            Shown::Threads => &mut self.threads,
        }
    }

    /// Index in [`FORMS`].
    fn form(&self) -> usize {
        match self.shown {
            Shown::List => 0,
            Shown::Methods => 1 + usize::from(self.methods.is_nested),
            Shown::Threads => 3 + usize::from(self.threads.is_nested),
        }
    }

    fn show(&mut self, form: usize, cx: &Cx<'_>) {
        let Some(&(shown, is_nested, _)) = FORMS.get(form) else {
            return;
        };
        let before = std::mem::replace(&mut self.shown, shown);
        // Orientation and parts carry over between matrices.
        let (other, matrix) = match shown {
            Shown::List => return,
            Shown::Methods => (&self.threads, &mut self.methods),
            Shown::Threads => (&self.methods, &mut self.threads),
        };
        if before != Shown::List && before != shown {
            matrix.in_parts = other.in_parts;
            if matrix.turned != other.turned {
                matrix.turn(cx);
            }
        }
        matrix.is_nested = is_nested;
        matrix.arrange(cx);
    }
}

impl View for Hot {
    fn copied(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn bindings(&self) -> &'static [Binding] {
        BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        match command {
            Command::Mode => self.show((self.form() + 1) % FORMS.len(), cx),
            Command::Own(number @ FORM..EXPAND) => self.show(usize::from(number - FORM), cx),
            _ => return self.view_mut().act(command, cx),
        }
        Vec::new()
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        self.view_mut().click(click, cx)
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        self.view_mut().questions(cx)
    }

    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>) {
        // Answers may arrive after switching views.
        let views: [&mut dyn View; 3] = [&mut self.list, &mut self.methods, &mut self.threads];
        for view in views {
            view.answer(ended, cx);
        }
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        self.view_mut().find(pattern, find, cx)
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        self.view().draw(cx, frame, area);
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        self.view().shown(cx, stop)
    }

    fn choices(&self, cx: &Cx<'_>) -> Vec<Choice> {
        let mut choices = self.view().choices(cx);
        let forms = FORMS.iter().zip(FORM..).enumerate();
        let others = forms.filter(|(form, _)| *form != self.form());
        choices.extend(others.map(|(_, ((.., name), number))| Choice {
            text: format!("show {name}"),
            number,
        }));
        choices
    }

    fn crumb(&self, cx: &Cx<'_>) -> String {
        self.view().crumb(cx)
    }

    fn is_pending(&self) -> bool {
        self.view().is_pending()
    }
}

fn document(crumb: &str, table: Option<Table>) -> Document {
    let comma = if crumb.is_empty() { "" } else { ", " };
    Document {
        title: format!("Hot list{comma}{crumb}"),
        parts: table.map(Part::Table).into_iter().collect(),
    }
}

/// Table commands, and palette lines that sort, expand and collapse.
fn act_on_table<Row: Copy, Key: Clone + Eq + Hash>(
    table: &mut DataTable<Row, Key>,
    command: Command,
    data: &impl RowsOf<Row, Key>,
    height: usize,
) {
    match command {
        Command::Toggle => {
            table.toggle(data, height);
        }
        Command::Own(EXPAND) => table.set_all(data, Some(HOT), height),
        Command::Own(COLLAPSE) => table.set_all(data, None, height),
        Command::Own(line) => table.choose(data, line - SORT, height),
        _ => {
            table.act(command, data, height);
        }
    }
}

fn expand_choices() -> [Choice; 2] {
    [
        Choice {
            text: format!("expand all hot rows (from {:.0} % on)", HOT * 100.0),
            number: EXPAND,
        },
        Choice {
            text: "collapse all".to_owned(),
            number: COLLAPSE,
        },
    ]
}
