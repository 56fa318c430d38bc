//! Recorded chains of callers beside those that a program tells (docs/truth.md §9).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Chains that the VM told of each leaf, innermost first.
pub type Chains = BTreeMap<String, BTreeSet<Vec<String>>>;

/// The chains that a program printed; `method` names a frame, or leaves it out.
pub fn chains_of(told: &Value, method: impl Fn(&str) -> Option<String>) -> Chains {
    let chain = |chain: &Value| {
        let frames = chain.as_str().expect("a chain").split(';');
        frames.filter_map(&method).collect()
    };
    let of_leaf = |(leaf, told): (&String, &Value)| {
        let told = told.as_array().expect("chains").iter();
        (leaf.clone(), told.map(chain).collect())
    };
    let told = told.as_object().expect("chains").iter();
    told.map(of_leaf).collect()
}

/// Samples in methods whose callers are known, by what the chain shows.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// All of the chain.
    pub whole: u64,
    /// Its inner part: the chain is cut off.
    pub cut: u64,
    /// All of the chain, with interpreted methods or generated code without names.
    pub unnamed: u64,
    /// Anything else, by stack.
    pub wrong: BTreeMap<String, u64>,
}

impl Counts {
    /// Counts collapsed stacks; `firsts` begin the names of a thread's first frames.
    pub fn of(
        collapsed: &str,
        chains: &Chains,
        method: impl Fn(&str) -> Option<String>,
        firsts: &[&str],
    ) -> Self {
        let mut counts = Counts::default();
        for line in collapsed.lines() {
            let (stack, samples) = line.rsplit_once(' ').expect("a count");
            let samples: u64 = samples.parse().expect("a count");
            let frames: Vec<&str> = stack.split(';').skip(1).collect();
            let methods: Vec<String> = (frames.iter().rev())
                .filter_map(|frame| method(frame))
                .collect();
            let leaf = methods.iter().position(|one| chains.contains_key(one));
            let Some(leaf) = leaf else {
                continue;
            };
            let shown = &methods[leaf..];
            let told = &chains[&methods[leaf]];
            let first = frames.first().copied().unwrap_or_default();
            let is_whole = firsts.iter().any(|start| first.starts_with(start));
            let is_unnamed = |frame: &&str| {
                let unnamed = ["interpreted method (", "(generated code, unnamed)"];
                unnamed.iter().any(|start| frame.starts_with(start))
            };
            if frames.iter().any(is_unnamed) {
                counts.unnamed += samples;
            } else if is_whole && told.contains(shown) {
                counts.whole += samples;
            } else if !is_whole && told.iter().any(|all| all.starts_with(shown)) {
                counts.cut += samples;
            } else {
                *counts.wrong.entry(stack.to_owned()).or_default() += samples;
            }
        }
        counts
    }

    /// Asserts 99 % whole chains, and at most 0.1 % wrong chains.
    #[track_caller]
    pub fn are_true(&self, what: &str) {
        let shown = self.say(what);
        let (all, unnamed) = (self.all(), self.unnamed);
        assert!(all > 300, "{shown}");
        assert!(unnamed * 100 < all, "{shown}");
        assert!(self.whole * 100 >= all * 99, "{shown}");
        self.are_not_wrong(&shown);
    }

    /// Asserts at most 0.1 % wrong chains, of however many cut off.
    #[track_caller]
    pub fn have_none_wrong(&self, what: &str) {
        let shown = self.say(what);
        assert!(self.all() + self.unnamed > 300, "{shown}");
        self.are_not_wrong(&shown);
    }

    #[track_caller]
    fn are_not_wrong(&self, shown: &str) {
        let wrong: u64 = self.wrong.values().sum();
        assert!(wrong * 1000 <= self.all(), "{shown}");
    }

    /// Samples with names in all frames.
    fn all(&self) -> u64 {
        self.whole + self.cut + self.wrong.values().sum::<u64>()
    }

    /// Says the counts; returns them with the wrong stacks.
    fn say(&self, what: &str) -> String {
        let wrong: u64 = self.wrong.values().sum();
        let (whole, cut, unnamed) = (self.whole, self.cut, self.unnamed);
        let shown =
            format!("{what}: {whole} whole, {cut} cut off, {unnamed} unnamed, {wrong} wrong");
        super::say(&shown);
        let stacks = self.wrong.iter().map(|(stack, n)| format!("\n{n} {stack}"));
        shown + &stacks.collect::<String>()
    }
}
