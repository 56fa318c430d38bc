//! Choice of versions side by side: two by keys, more on wide screens.

use vmscope_symbolizer::annotate::{Origin, Version};

/// Side-by-side state and choice.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Whether versions are side by side.
    pub on: bool,
    /// The user's choice; `None` selects the hottest versions.
    pair: Option<(Origin, Origin)>,
}

impl Beside {
    /// Fixed version and stepped version. `alone`: version shown alone before. `None` unless
    /// versions are side by side.
    pub fn pair(&self, all: &[Version], alone: Option<Origin>) -> Option<(Origin, Origin)> {
        if !self.on || all.len() < 2 {
            return None;
        }
        let is_there = |origin: Origin| all.iter().any(|version| version.origin == origin);
        self.pair
            .filter(|(first, second)| is_there(*first) && is_there(*second))
            .or_else(|| hottest_two(all, alone.filter(|&origin| is_there(origin))))
    }

    /// The pair, then other versions with samples by time: at most `room` versions, minimum two.
    pub fn shown(&self, all: &[Version], alone: Option<Origin>, room: usize) -> Vec<Origin> {
        let Some((first, second)) = self.pair(all, alone) else {
            return Vec::new();
        };
        let is_other = |version: &&Version| {
            version.samples > 0 && version.origin != first && version.origin != second
        };
        let mut others: Vec<(usize, &Version)> = all
            .iter()
            .enumerate()
            .filter(|(_, version)| is_other(version))
            .collect();
        others.sort_by_key(|(at, version)| (std::cmp::Reverse(version.samples), *at));
        others.truncate(room.saturating_sub(2));
        others.sort_by_key(|(at, _)| *at);
        let others = others.into_iter().map(|(_, version)| version.origin);
        [first, second].into_iter().chain(others).collect()
    }

    /// Replaces the second version by the next or previous version.
    pub fn step(&mut self, all: &[Version], alone: Option<Origin>, later: bool) {
        let Some((first, second)) = self.pair(all, alone) else {
            return;
        };
        let others: Vec<Origin> = (all.iter().map(|version| version.origin))
            .filter(|origin| *origin != first)
            .collect();
        let Some(at) = others.iter().position(|origin| *origin == second) else {
            return;
        };
        let by = if later { 1 } else { others.len() - 1 };
        let next = others.get((at + by) % others.len()).copied();
        self.pair = Some((first, next.unwrap_or(second)));
    }

    /// Replaces the second version; choosing the first version swaps both.
    pub fn put(&mut self, all: &[Version], alone: Option<Origin>, origin: Origin) {
        if let Some((first, second)) = self.pair(all, alone) {
            let first = if origin == first { second } else { first };
            self.pair = Some((first, origin));
        }
    }

    /// Swaps both versions; steps then change the other version.
    pub fn swap(&mut self, all: &[Version], alone: Option<Origin>) {
        let pair = self.pair(all, alone);
        self.pair = pair.map(|(first, second)| (second, first));
    }

    /// Forgets the pair: another method has other versions.
    pub fn forget(&mut self) {
        self.pair = None;
    }
}

/// `alone` with the hottest other version, or the two hottest by time.
fn hottest_two(all: &[Version], alone: Option<Origin>) -> Option<(Origin, Origin)> {
    let mut by_samples: Vec<(usize, &Version)> = all.iter().enumerate().collect();
    // Among equals, the newer version first.
    by_samples.sort_by_key(|(at, version)| std::cmp::Reverse((version.samples, *at)));
    if let Some(first) = alone {
        let mut origins = by_samples.iter().map(|(_, version)| version.origin);
        return Some((first, origins.find(|&other| other != first)?));
    }
    let (one, other) = (by_samples.first()?, by_samples.get(1)?);
    let (first, second) = if one.0 < other.0 {
        (one, other)
    } else {
        (other, one)
    };
    Some((first.1.origin, second.1.origin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_records::ConstituentKey;

    fn version(code: u64, samples: u64) -> Version {
        Version {
            origin: Origin::Code(ConstituentKey(code)),
            tier: String::new(),
            name: String::new(),
            since: None,
            gone: None,
            bytes: None,
            cases: Vec::new(),
            samples,
        }
    }

    #[test]
    fn any_two_versions_can_be_put_side_by_side() {
        let all = [version(1, 5), version(2, 9), version(3, 0), version(4, 7)];
        let at = |code| Origin::Code(ConstituentKey(code));
        let mut beside = Beside::default();
        assert_eq!(beside.pair(&all, None), None);
        beside.on = true;
        assert_eq!(beside.pair(&all, None), Some((at(2), at(4))));
        assert_eq!(beside.pair(&all, Some(at(3))), Some((at(3), at(2))));
        assert_eq!(beside.shown(&all, None, 2), [at(2), at(4)]);
        // What has no samples tells nothing beside others unless it is asked for.
        assert_eq!(beside.shown(&all, None, 9), [at(2), at(4), at(1)]);
        let mut seen = Vec::new();
        for _ in 0..3 {
            beside.step(&all, None, true);
            seen.push(beside.pair(&all, None).unwrap());
        }
        assert_eq!(seen, [(at(2), at(1)), (at(2), at(3)), (at(2), at(4))]);
        beside.step(&all, None, false);
        beside.swap(&all, None);
        assert_eq!(beside.pair(&all, None), Some((at(3), at(2))));
        beside.put(&all, None, at(3));
        assert_eq!(beside.pair(&all, None), Some((at(2), at(3))));
        // What is gone is chosen anew.
        assert_eq!(beside.pair(&all[..2], None), Some((at(1), at(2))));
        assert_eq!(beside.pair(&all[..1], None), None);
    }
}
