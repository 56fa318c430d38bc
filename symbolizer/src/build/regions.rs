//! Where native functions of a VM belong, by the rules that its adapter told.

use crate::trace::MAX_RULES;
use memchr::memmem;
use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{Region, RegionRule, RegionRules};

/// The rules of a recording, by the file name of the module that they are about.
#[derive(Debug, Default)]
pub(super) struct Regions<'a> {
    by_module: FxHashMap<&'a str, Vec<Rule<'a>>>,
}

/// A rule, made ready: most functions are compared with most rules in vain.
#[derive(Debug)]
struct Rule<'a> {
    rule: &'a RegionRule,
    contains: memmem::Finder<'a>,
}

/// What a rule says of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told<'a, 'n> {
    pub region: Region,
    /// Which part of the region; may be empty.
    pub part: &'a str,
    /// What the function is called.
    pub name: &'n str,
    /// Whether that is less than its symbol.
    pub stripped: bool,
}

impl<'a> Regions<'a> {
    /// Processes of one VM tell the same rules: each counts once.
    pub fn new(rules: impl Iterator<Item = &'a RegionRules>) -> Self {
        let mut by_module: FxHashMap<&str, Vec<Rule>> = FxHashMap::default();
        let mut told: FxHashSet<&[RegionRule]> = FxHashSet::default();
        for rules in rules.map(|rules| rules.rules.as_slice()) {
            if !told.insert(rules) {
                continue;
            }
            for rule in rules {
                let list = by_module.entry(&rule.module).or_default();
                // Those of many VMs that contradict each other are as many as of one.
                if list.len() < MAX_RULES {
                    let contains = memmem::Finder::new(rule.contains.as_bytes());
                    list.push(Rule { rule, contains });
                }
            }
        }
        Regions { by_module }
    }

    /// What the first rule that fits says of the function `name` of the file `module`.
    pub fn of<'n>(&self, module: &str, name: &'n str) -> Option<Told<'a, 'n>> {
        let rules = self.by_module.get(module)?;
        let (rule, name) = rules.iter().find_map(|Rule { rule, contains }| {
            contains.find(name.as_bytes())?;
            Some((rule, rule.apply(name)?))
        })?;
        (rule.region != Region::Unknown).then_some(Told {
            region: rule.region,
            part: &rule.part,
            name,
            stripped: rule.strip,
        })
    }
}
