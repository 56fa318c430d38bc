//! Regions of a VM's native functions, by its adapter's rules.

use crate::trace::MAX_RULES;
use memchr::memmem;
use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{FunctionName, Region, RegionRule, RegionRules, ThreadRole};

/// The rules of a recording, by module file name.
#[derive(Debug, Default)]
pub(super) struct Regions<'a> {
    by_module: FxHashMap<&'a str, Vec<Rule<'a>>>,
}

/// A prepared rule: most comparisons of functions and rules fail.
#[derive(Debug)]
struct Rule<'a> {
    rule: &'a RegionRule,
    /// Required part of the function's name.
    contains: memmem::Finder<'a>,
}

/// A rule's answer for a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told<'a, 'n> {
    pub region: Region,
    /// The part of the region; may be empty.
    pub part: &'a str,
    /// The function's name.
    pub name: &'n str,
    /// Whether the name abbreviates the symbol.
    pub stripped: bool,
}

impl<'a> Regions<'a> {
    /// Prepares rules. Processes of one VM emit equal rules, which count once.
    pub fn new(rules: impl Iterator<Item = &'a RegionRules>) -> Self {
        let mut by_module: FxHashMap<&str, Vec<Rule>> = FxHashMap::default();
        let mut told: FxHashSet<&[RegionRule]> = FxHashSet::default();
        for rules in rules.map(|rules| rules.rules.as_slice()) {
            if !told.insert(rules) {
                continue;
            }
            for rule in rules {
                let list = by_module.entry(&rule.module).or_default();
                // The bound holds for contradicting rules of many VMs together.
                if list.len() < MAX_RULES {
                    let contains = match &*rule.contains {
                        "" => rule.identifiers.trim_matches('*'),
                        contains => contains,
                    };
                    let contains = memmem::Finder::new(contains.as_bytes());
                    list.push(Rule { rule, contains });
                }
            }
        }
        Regions { by_module }
    }

    /// The answer of the first fitting rule for the function `name` of the file `module`, on a
    /// thread with the role `role`.
    pub fn of<'n>(&self, module: &str, name: &'n str, role: ThreadRole) -> Option<Told<'a, 'n>> {
        let rules = self.by_module.get(module)?;
        let function = FunctionName::new(name);
        let (rule, name) = rules.iter().find_map(|Rule { rule, contains }| {
            contains.find(name.as_bytes())?;
            Some((rule, rule.apply(function, role)?))
        })?;
        (rule.region != Region::Unknown).then_some(Told {
            region: rule.region,
            part: &rule.part,
            name,
            stripped: rule.strip,
        })
    }
}
