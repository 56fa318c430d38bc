//! What keys do in the matrix, and what its cells mean elsewhere.

use super::grid::GridBy;
use super::{Act, Cx, Hot, grid_height};
use crate::present::numbers::some;
use crate::queries::matrix::{Matrix, Shape};
use crate::tui::filter_state::FilterChange;
use crate::tui::jobs::Stamp;
use crate::tui::keys::Command;
use vmscope_symbolizer::matrix::Row as Counted;

impl Hot {
    pub(super) fn arrange(&mut self, cx: &Cx<'_>) {
        if let Some(matrix) = self.matrix.get() {
            self.grid.arrange(matrix, grid_height(cx.area));
        }
    }

    /// Which matrix is to be shown.
    pub(super) fn shape(&self) -> Shape {
        Shape {
            axis: self.form.axis(),
            in_parts: self.in_parts,
            has_errors: self.form.is_nested(),
        }
    }

    /// What is asked for first is without errors, which take longer; but what only grows keeps
    /// those that it has until it has new ones.
    pub(super) fn shape_to_ask(&self, now: Stamp) -> Shape {
        let shape = self.shape();
        let is_counted = self.matrix.answered().is_some_and(|(before, stamp)| {
            let has_grown = before.has_errors && stamp.filters == now.filters;
            before.without_errors() == shape.without_errors() && (*stamp == now || has_grown)
        });
        match is_counted {
            true => shape,
            false => shape.without_errors(),
        }
    }

    /// The matrix, if it is the one that is to be shown.
    pub(super) fn fitting_matrix(&self) -> Option<&Matrix> {
        self.matrix
            .get()
            .filter(|matrix| matrix.shape.axis == self.form.axis())
    }

    pub(super) fn act_in_matrix(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        let height = grid_height(cx.area);
        let axis = self.form.axis();
        let Some(matrix) = self.matrix.get().filter(|matrix| matrix.shape.axis == axis) else {
            return Vec::new();
        };
        if self.grid.act(command, matrix, height) {
            self.grid_search.forget_origin();
            return Vec::new();
        }
        match command {
            Command::Group | Command::GroupBack => self.grid.turn(matrix, height),
            Command::Sort => {
                self.grid.by = match self.grid.by {
                    GridBy::Sum => GridBy::Column,
                    GridBy::Column => GridBy::Name,
                    GridBy::Name => GridBy::Sum,
                };
                self.grid.arrange(matrix, height);
            }
            Command::Reverse => {
                self.grid.reversed = !self.grid.reversed;
                self.grid.arrange(matrix, height);
            }
            Command::NextHot => self.grid.select_hot(matrix, false, height),
            Command::PreviousHot => self.grid.select_hot(matrix, true, height),
            Command::ZoomIn => self.in_parts = true,
            Command::ZoomOut => self.in_parts = false,
            Command::Toggle => self.nest(cx),
            Command::Open | Command::Only => {
                let selected = self.grid.selected();
                return selected.map_or_else(Vec::new, |cell| self.narrow_to_cell(cell, cx));
            }
            _ => {}
        }
        Vec::new()
    }

    /// Filters to a cell, or to a row as a whole, as far as filters can tell it: they go by where a sample
    /// fell, not by whom it was for.
    pub(super) fn narrow_to_cell(
        &self,
        (row, column): (u32, Option<u32>),
        cx: &Cx<'_>,
    ) -> Vec<Act> {
        let Some(matrix) = self.fitting_matrix() else {
            return Vec::new();
        };
        let (who, category) = if self.grid.turned {
            (column, Some(row))
        } else {
            (Some(row), column)
        };
        let samples = match (who, category) {
            (Some(who), Some(category)) => matrix.cell(who, category),
            _ => self.grid.row(matrix, row).1,
        };
        if samples == 0 {
            return vec![Act::Say("there are no samples in this cell".to_owned())];
        }
        let who = who.and_then(|who| matrix.rows.get(who as usize));
        let category = category.and_then(|at| matrix.columns.get(at as usize));
        let mut acts = Vec::new();
        let all = category.map_or(matrix.total, |category| category.samples);
        let other = |what: &str| {
            let more = some(all.saturating_sub(samples), "sample", "samples");
            Act::Say(format!(
                "filters go by where a sample fell: {more} of {what} are shown, too"
            ))
        };
        let mut own = None;
        match who.map(|who| &who.what) {
            Some(&Counted::Method(method)) => {
                let mut entries =
                    matrix.entries_of(cx.profile, category.map(|c| &c.what), Some(method));
                let is_own = |id: &u32| vmscope_symbolizer::methods::is_method(cx.profile, *id);
                entries.retain(is_own);
                if entries.is_empty() {
                    acts.push(other("other methods"));
                } else {
                    own = Some(entries);
                }
            }
            Some(Counted::Thread(thread)) => {
                let only = Some([*thread].into_iter().collect());
                acts.push(Act::FilterChange(FilterChange::Threads(only)));
            }
            Some(Counted::Compiled(_) | Counted::Nobody(_)) if category.is_some() => {
                acts.push(other("others"));
            }
            Some(Counted::Compiled(name)) => {
                let text = format!("{name} has no samples of its own, only of its compilers");
                return vec![Act::Say(text)];
            }
            Some(Counted::Nobody(_)) => {
                let text = "choose a cell of this row: whose samples are is no filter";
                return vec![Act::Say(text.to_owned())];
            }
            None => {}
        }
        match (own, category.map(|category| &category.what)) {
            (Some(entries), _) => acts.insert(0, Act::FilterChange(FilterChange::Entries(entries))),
            (None, Some(category)) => {
                let entries = matrix.entries_of(cx.profile, Some(category), None);
                let region = Act::FilterChange(FilterChange::Regions(vec![category.region]));
                // A part that is a tier is a filter with a name.
                let is_of_tier = |part: &str| {
                    !part.is_empty()
                        && entries.iter().all(|id| {
                            let entry = cx.profile.entries.get(*id as usize);
                            entry.is_some_and(|entry| entry.tier == part)
                        })
                };
                match category.part.as_deref() {
                    None => acts.insert(0, region),
                    Some(part) if is_of_tier(part) => {
                        let tiers = vec![part.to_owned()];
                        acts.insert(0, Act::FilterChange(FilterChange::Tiers(tiers)));
                        acts.insert(0, region);
                    }
                    Some(_) => acts.insert(0, Act::FilterChange(FilterChange::Entries(entries))),
                }
            }
            (None, None) => {}
        }
        acts
    }

    /// Remembers what is selected in the matrix.
    pub(super) fn keep_cell(&mut self) {
        let kept = self.matrix.get().and_then(|matrix| {
            let (row, column) = self.grid.selected()?;
            let (who, category) = if self.grid.turned {
                (column, Some(row))
            } else {
                (Some(row), column)
            };
            let who = who.and_then(|who| matrix.rows.get(who as usize));
            let category = category.and_then(|at| matrix.columns.get(at as usize));
            Some((
                who.map(|item| item.what.clone()),
                category.map(|item| item.what.clone()),
            ))
        });
        self.kept_cell = kept;
    }

    /// Selects it again.
    pub(super) fn restore_cell(&mut self, cx: &Cx<'_>) {
        let (Some((who, category)), Some(matrix)) = (self.kept_cell.take(), self.matrix.get())
        else {
            return;
        };
        let who = who.and_then(|who| matrix.rows.iter().position(|item| item.what == who));
        let category =
            category.and_then(|one| matrix.columns.iter().position(|item| item.what == one));
        let (row, column) = if self.grid.turned {
            (category, who)
        } else {
            (who, category)
        };
        let had_column = self.grid.column > 0;
        if let Some(column) = column.filter(|_| had_column) {
            self.grid.column = column + 1;
            if self.grid.by == GridBy::Column {
                self.grid.arrange(matrix, grid_height(cx.area));
            }
        }
        let place = row.and_then(|row| self.grid.place_of(u32::try_from(row).ok()?));
        if let Some(place) = place.filter(|_| self.grid.list.selected() > 0) {
            let rows = self.grid.rows();
            self.grid.list.select(place, rows, grid_height(cx.area));
        }
    }
}
