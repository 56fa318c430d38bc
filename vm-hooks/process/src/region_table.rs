//! Tables of region rules, a line for each.

use vmscope_records::{Region, RegionRule};

/// How a name is asked.
#[derive(Clone, Copy, Debug)]
pub enum NamePattern {
    /// It begins with this.
    Begins(&'static str),
    /// It holds this somewhere.
    Holds(&'static str),
    /// It is any.
    Any,
    /// It begins with the first, holds the second and ends with the third, and is
    /// shown without the first and the third.
    Between(&'static str, &'static str, &'static str),
}

/// A line of such a table: what the name is asked, the region, the part.
pub type RegionEntry = (NamePattern, Region, &'static str);

/// Rules of `entries` for each module, in order.
pub fn rules(entries: &[RegionEntry], modules: &[String]) -> Vec<RegionRule> {
    let each = |module: &String| {
        let module = module.clone();
        entries
            .iter()
            .map(move |(pattern, region, part)| rule(&module, *pattern, *region, part))
    };
    modules.iter().flat_map(each).collect()
}

fn rule(module: &str, pattern: NamePattern, region: Region, part: &str) -> RegionRule {
    let (prefix, contains, suffix) = match pattern {
        NamePattern::Begins(prefix) => (prefix, "", ""),
        NamePattern::Holds(contains) => ("", contains, ""),
        NamePattern::Any => ("", "", ""),
        NamePattern::Between(prefix, contains, suffix) => (prefix, contains, suffix),
    };
    RegionRule {
        module: module.to_owned(),
        prefix: prefix.to_owned(),
        contains: contains.to_owned(),
        suffix: suffix.to_owned(),
        region,
        part: part.to_owned(),
        strip: matches!(pattern, NamePattern::Between(..)),
        ..RegionRule::default()
    }
}
