//! Every order of every grouping against sorting by the texts and figures themselves.

use super::*;
use crate::present::names::kind_name;
use crate::queries::entries::GroupBy;
use crate::queries::entry_index::EntryIndex;
use crate::recordings::inferred::inferred;
use crate::recordings::screens;
use crate::tui::testing::profile;
use crate::tui::widgets::data_table::DataTable;
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;
use vmscope_symbolizer::{Filter, Stop, Summary};

/// Two entries by a column: smallest text first, greatest figure first.
fn entries_by(page: &Page<'_>, column: usize, a: &Member, b: &Member) -> Ordering {
    let entry = |member: &Member| &page.profile.entries[member.entry];
    let size = |member: &Member| page.entries.index.sizes[member.entry];
    let error = |member: &Member| page.errors.unwrap()[member.entry];
    let (of_a, of_b) = (entry(a), entry(b));
    match column {
        NAME => of_a.name.cmp(&of_b.name),
        REGION => (of_a.region as usize).cmp(&(of_b.region as usize)),
        KIND => kind_name(&of_a.kind).cmp(kind_name(&of_b.kind)),
        TIER => of_a.tier.cmp(&of_b.tier),
        SIZE => size(b).cmp(&size(a)),
        ERROR => error(b).total_cmp(&error(a)),
        _ => b.samples.cmp(&a.samples),
    }
}

/// What is equal otherwise.
fn entries_alike(page: &Page<'_>, a: &Member, b: &Member) -> Ordering {
    let key = |member: &Member| {
        let entry = &page.profile.entries[member.entry];
        (
            Reverse(member.samples),
            &entry.name,
            &entry.tier,
            member.entry,
        )
    };
    key(a).cmp(&key(b))
}

fn groups_by(page: &Page<'_>, column: usize, a: &Group, b: &Group) -> Ordering {
    let first = |group: &Group| {
        let members = page.entries.members_of(group).iter();
        members
            .copied()
            .min_by(|a, b| entries_by(page, column, a, b))
    };
    match column {
        SHARE => b.samples.cmp(&a.samples),
        SIZE => b.size.cmp(&a.size),
        NAME if page.entries.by != GroupBy::Entry => a.name.cmp(&b.name),
        _ => entries_by(page, column, &first(a).unwrap(), &first(b).unwrap()),
    }
}

fn groups_alike(page: &Page<'_>, a: &Group, b: &Group) -> Ordering {
    let first = |group: &Group| page.entries.members_of(group)[0];
    let by_samples = b.samples.cmp(&a.samples).then_with(|| a.name.cmp(&b.name));
    by_samples.then_with(|| entries_alike(page, &first(a), &first(b)))
}

#[test]
fn every_order_is_what_sorting_by_texts_and_figures_gives() {
    let profile = profile(screens::java());
    let stop = Stop::new();
    let filter = Filter::default();
    let index = Arc::new(EntryIndex::of(&profile, &stop).unwrap());
    let summary = Arc::new(Summary::with_errors(&profile, &filter));
    for by in GroupBy::ALL {
        let entries = Entries::of(&profile, &index, (&summary, &filter), by, None, &stop).unwrap();
        let page = Page {
            profile: &profile,
            entries: &entries,
            errors: Some(&summary.errors),
            are_errors_old: false,
            cumulative: &vec![0; entries.groups.len()],
        };
        for column in page.sorts() {
            for reversed in [false, true] {
                let turned = |order: Ordering| if reversed { order.reverse() } else { order };
                let mut table = DataTable::default();
                table.sort_by(&page, (column, reversed), 10);
                let rows = table.all(&page);
                let groups = rows.iter().filter(|row| matches!(row, Row::Group(_)));
                let groups: Vec<&Group> = groups.map(|row| page.group(*row)).collect();
                assert_eq!(groups.len(), entries.groups.len());
                let in_order = |a: &&Group, b: &&Group| {
                    let order = turned(groups_by(&page, column, a, b));
                    order.then_with(|| groups_alike(&page, a, b)).is_lt()
                };
                assert!(groups.is_sorted_by(in_order), "{by:?} {column} {reversed}");
                let in_group = |a: &Row, b: &Row| page.group(*a).key == page.group(*b).key;
                for rows in rows.chunk_by(in_group) {
                    let inside = rows.iter().filter(|row| matches!(row, Row::Entry(..)));
                    let inside: Vec<Member> = inside.filter_map(|row| page.member(*row)).collect();
                    let in_order = |a: &Member, b: &Member| {
                        let order = turned(entries_by(&page, column, a, b));
                        order.then_with(|| entries_alike(&page, a, b)).is_lt()
                    };
                    assert!(inside.is_sorted_by(in_order), "{by:?} {column} {reversed}");
                }
            }
        }
    }
}

#[test]
fn inferred_methods_are_marked_and_their_errors_contain_the_inference() {
    let profile = inferred().profile();
    let (stop, filter) = (Stop::new(), Filter::default());
    let index = Arc::new(EntryIndex::of(&profile, &stop).unwrap());
    let summary = Arc::new(Summary::with_errors(&profile, &filter));
    let by = GroupBy::Entry;
    let entries = Entries::of(&profile, &index, (&summary, &filter), by, None, &stop).unwrap();
    let page = Page {
        profile: &profile,
        entries: &entries,
        errors: Some(&summary.errors),
        are_errors_old: false,
        cumulative: &vec![0; entries.groups.len()],
    };
    let [inner, outer] = [Row::Group(0), Row::Group(1)];
    let error = |row: Row| {
        let sampling = summary.errors[page.entry(row).unwrap()];
        page.error(row).unwrap() - sampling
    };
    assert!((error(inner) - 0.2).abs() < 1e-12 && (error(outer) - 0.125).abs() < 1e-12);
    let theme = Theme::of(|_| None);
    let details = |row| page.details(row, &theme);
    assert!(
        details(inner).contains("method inferred"),
        "{}",
        details(inner)
    );
    assert!(
        !details(outer).contains("method inferred"),
        "{}",
        details(outer)
    );
    assert_eq!(
        page.value(inner, INFERRED),
        Value::Text("mostly".to_owned())
    );
    assert_eq!(page.value(outer, INFERRED), Value::Empty);
}
