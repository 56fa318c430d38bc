//! Who keeps objects alive.

use super::names::Names;
use super::{ROWS, Wanted, sized};
use crate::present::document::{Table, Value};
use vmscope_symbolizer::lifetimes::groups::GroupKey;
use vmscope_symbolizer::lifetimes::holders::{Held, Holding};

/// Holders shown of each group, unless all rows are wanted; further ones share a row.
const HOLDERS: usize = 4;

/// The holders of the groups; `None` without known holders.
pub fn table(held: &[Held], names: &Names<'_>, wanted: &Wanted) -> Option<Table> {
    if held.is_empty() {
        return None;
    }
    let title = format!(
        "Held by: objects of which class keep survivors alive, by {}",
        wanted.by
    );
    let columns = [
        wanted.by,
        "held by",
        ">share of its survival",
        ">±",
        ">bytes × collections",
    ];
    let mut table = Table::new(&title, &columns);
    let most = if wanted.rows > ROWS {
        usize::MAX
    } else {
        HOLDERS
    };
    for group in held.iter().take(wanted.rows) {
        let (shown, others) = group.holdings.split_at(group.holdings.len().min(most));
        let mut row = |name: String, holdings: &[Holding]| {
            let sum = |of: fn(&Holding) -> f64| holdings.iter().map(of).sum::<f64>();
            // Errors of several holders together are not known.
            let error = match holdings {
                [one] => Value::Share(one.share.error),
                _ => Value::Empty,
            };
            table.rows.push(vec![
                Value::Text(names.group(group.key)),
                Value::Text(name),
                Value::Share(sum(|one| one.share.value)),
                error,
                sized(sum(|one| one.survived.value)),
            ]);
        };
        for one in shown {
            row(names.holder(one.holder), std::slice::from_ref(one));
        }
        if !others.is_empty() {
            row(format!("{} more", others.len()), others);
        }
    }
    Some(table)
}

/// The main holders of groups: `, held by C`; empty if unknown.
pub fn suffix(held: &[Held], names: &Names<'_>, groups: &[GroupKey]) -> String {
    let of_group = |key: &GroupKey| held.iter().find(|held| held.key == *key)?.main_holder();
    let mut classes: Vec<_> = groups.iter().filter_map(of_group).collect();
    classes.sort();
    classes.dedup();
    let classes: Vec<String> = (classes.into_iter())
        .map(|class| names.holder(Some(class)))
        .collect();
    match classes.is_empty() {
        true => String::new(),
        false => format!(", held by {}", classes.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings::lifetimes::{birth, heap};
    use vmscope_records::{Birth, ClassKey, Fate};
    use vmscope_symbolizer::Trace;
    use vmscope_symbolizer::lifetimes::groups::Grouping;
    use vmscope_symbolizer::lifetimes::holders::holders;

    #[test]
    fn the_text_of_advice_names_each_main_holder_once() {
        let mut recording = heap();
        let of = |class: u64| Birth {
            class: ClassKey(class),
            ..birth(class, class)
        };
        let fate = |object: u64, holder| (object, Fate::Survived, holder);
        recording
            .collection(1, "scavenge", 100, 110)
            .births([of(1), of(2), of(3)])
            .held(
                Some(1),
                110,
                &[fate(1, Some(3)), fate(2, Some(3)), fate(3, None)],
            )
            .end(200);
        let lifetimes = recording.lifetimes();
        let held = holders(&lifetimes, Grouping::Class);
        let trace = Trace::default();
        let names = Names::new(&trace, &lifetimes);
        let keys: Vec<GroupKey> = lifetimes.classes.ids().map(GroupKey::Class).collect();
        assert_eq!(suffix(&held, &names, &keys), ", held by C3");
        assert_eq!(suffix(&held, &names, &keys[2..]), "");
        assert_eq!(suffix(&[], &names, &keys), "");
    }
}
