//! Filters for cells and rows of a matrix.

use crate::present::numbers::some;
use crate::queries::matrix::{Category, Matrix};
use crate::tui::filter_state::FilterChange;
use crate::tui::views::{Act, Cx};
use vmscope_symbolizer::EntryId;
use vmscope_symbolizer::matrix::Row;
use vmscope_symbolizer::methods::is_method;

/// Filters all views by a row, a column or a cell. Filters select samples by address, thread and
/// entry; a message names samples attributed through callers, which have no filter.
pub fn narrow(cx: &Cx<'_>, matrix: &Matrix, (row, column): (Option<u32>, Option<u32>)) -> Vec<Act> {
    let row = row.map(|row| (row, &matrix.rows[row as usize]));
    let category = column.map(|column| (column, &matrix.columns[column as usize]));
    let samples = match (row, category) {
        (Some((row, _)), Some((column, _))) => matrix.cell(row, column),
        (Some((_, item)), None) => item.samples,
        (None, Some((_, item))) => item.samples,
        (None, None) => matrix.total,
    };
    if samples == 0 {
        return vec![Act::Say("no samples in this cell".to_owned())];
    }
    let category = category.map(|(_, item)| item);
    let mut acts = Vec::new();
    let all = category.map_or(matrix.total, |category| category.samples);
    let other = |what: &str| {
        let more = some(all.saturating_sub(samples), "sample", "samples");
        Act::Say(format!(
            "the filter also shows {more} of {what} (filters select code, not callers)"
        ))
    };
    let mut own = None;
    match row.map(|(_, item)| &item.what) {
        Some(&Row::Method(method)) => {
            let category = category.map(|category| &category.what);
            let mut entries = matrix.entries_of(cx.profile, category, Some(method));
            entries.retain(|entry| is_method(cx.profile, *entry));
            if entries.is_empty() {
                acts.push(other("other methods"));
            } else {
                own = Some(entries);
            }
        }
        Some(Row::Thread(thread)) => {
            let only = Some([*thread].into_iter().collect());
            acts.push(Act::FilterChange(FilterChange::Threads(only)));
        }
        Some(Row::Compiled(_) | Row::Nobody(_)) if category.is_some() => {
            acts.push(other("others"));
        }
        Some(Row::Compiled(name)) => {
            let text = format!("{name} has no own samples, only samples of its compilation");
            return vec![Act::Say(text)];
        }
        Some(Row::Nobody(_)) => {
            let text = "select a cell of this row: this row alone is no filter";
            return vec![Act::Say(text.to_owned())];
        }
        None => {}
    }
    let changes = match (own, category) {
        (Some(entries), _) => vec![FilterChange::Entries(entries)],
        (None, Some(category)) => of_category(cx, matrix, &category.what),
        (None, None) => Vec::new(),
    };
    let changes = changes.into_iter().map(Act::FilterChange);
    changes.chain(acts).collect()
}

/// Filters for a category, by region and tier where possible.
fn of_category(cx: &Cx<'_>, matrix: &Matrix, category: &Category) -> Vec<FilterChange> {
    let region = FilterChange::Regions(vec![category.region]);
    let Some(part) = category.part.as_deref() else {
        return vec![region];
    };
    let entries = matrix.entries_of(cx.profile, Some(category), None);
    let tier = |entry: &EntryId| &cx.profile.entries[*entry].tier;
    if !part.is_empty() && entries.iter().all(|entry| *tier(entry) == *part) {
        return vec![region, FilterChange::Tiers(vec![part.to_owned()])];
    }
    vec![FilterChange::Entries(entries)]
}
