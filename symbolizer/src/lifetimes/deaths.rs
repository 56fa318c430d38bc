//! The distribution of a group's lifetimes, in bytes allocated.
//!
//! The first scavenge says of each object only whether it still lives: its age is known, its death is
//! not (current status data). The most likely distribution is the isotonic regression of "is dead" on
//! the age (Groeneboom and Wellner, Information Bounds and Nonparametric Maximum Likelihood
//! Estimation, 1992, §II.1), by pooling adjacent violators. Later collections do not look at all
//! objects; beyond the ages of the first scavenge, objects die at a constant rate.

/// A distribution of lifetimes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Deaths {
    /// Ages, and the share of objects that die before; both ascending. Linear between the points.
    points: Vec<(f64, f64)>,
    /// Deaths per byte beyond the last point, as a share of the living.
    rate: f64,
}

/// What collections saw of a group's objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    first: Vec<AtFirst>,
    /// Weighted bytes that objects lived beyond their first scavenge interval, and their deaths.
    exposure: f64,
    deaths: f64,
}

/// An object at its first scavenge.
#[derive(Clone, Copy, Debug)]
struct AtFirst {
    age: f64,
    weight: f64,
    is_dead: bool,
}

/// Neighbours with one share.
struct Block {
    /// First and last age.
    ages: (f64, f64),
    /// Sum of weights, and of weights of the dead.
    weight: f64,
    dead: f64,
}

impl Seen {
    /// An object at its first scavenge.
    pub fn first(&mut self, age: f64, weight: f64, is_dead: bool) {
        let one = AtFirst {
            age,
            weight,
            is_dead,
        };
        self.first.push(one);
    }

    /// Objects that lived so many bytes longer, and died or not.
    pub fn later(&mut self, bytes: f64, weight: f64, is_dead: bool) {
        self.exposure += weight * bytes;
        self.deaths += if is_dead { weight } else { 0.0 };
    }
}

impl Deaths {
    /// The most likely distribution.
    pub fn of(mut seen: Seen) -> Self {
        seen.first.sort_by(|a, b| a.age.total_cmp(&b.age));
        let mut blocks: Vec<Block> = Vec::new();
        for one in seen.first {
            let mut block = Block {
                ages: (one.age, one.age),
                weight: one.weight,
                dead: if one.is_dead { one.weight } else { 0.0 },
            };
            while let Some(last) =
                blocks.pop_if(|last| last.dead * block.weight >= block.dead * last.weight)
            {
                block.ages.0 = last.ages.0;
                block.weight += last.weight;
                block.dead += last.dead;
            }
            blocks.push(block);
        }
        let points = blocks.iter().flat_map(|block| {
            let share = block.dead / block.weight;
            [(block.ages.0, share), (block.ages.1, share)]
        });
        Deaths {
            points: [(0.0, 0.0)].into_iter().chain(points).collect(),
            rate: seen.deaths / seen.exposure.max(1.0),
        }
    }

    fn last(&self) -> (f64, f64) {
        self.points.last().copied().unwrap_or_default()
    }

    /// Share of objects that die before an age, possibly infinite.
    fn share(&self, age: f64) -> f64 {
        let (last_age, last_share) = self.last();
        if age <= last_age {
            return interpolated(&self.points, age, |point| *point);
        }
        if self.rate == 0.0 {
            return last_share;
        }
        1.0 - (1.0 - last_share) * (-self.rate * (age - last_age)).exp()
    }

    /// The age before which a share of the objects dies; infinite if the share is never reached.
    fn age(&self, share: f64) -> f64 {
        let (last_age, last_share) = self.last();
        if share <= last_share {
            return interpolated(&self.points, share, |(age, share)| (*share, *age));
        }
        if self.rate == 0.0 {
            return f64::INFINITY;
        }
        last_age - ((1.0 - share) / (1.0 - last_share)).ln() / self.rate
    }

    /// The lifetime of an object that dies between two ages, or after the first one if the second is
    /// infinite: possibly never. `chance` is uniform in [0, 1). Between ages at which nothing dies all
    /// are equally likely.
    pub fn lifetime(&self, (from, to): (f64, f64), chance: f64) -> f64 {
        let first = self.share(from);
        if to == f64::INFINITY {
            return self.age(first + chance * (1.0 - first)).max(from);
        }
        let last = self.share(to);
        if last - first < 1e-9 {
            return from + chance * (to - from);
        }
        self.age(first + chance * (last - first)).clamp(from, to)
    }
}

/// Linear interpolation in ascending points; beyond the last one its value. `turned` gives the
/// abscissa first.
fn interpolated(points: &[(f64, f64)], at: f64, turned: impl Fn(&(f64, f64)) -> (f64, f64)) -> f64 {
    let next = points.partition_point(|point| turned(point).0 <= at);
    let before = next.checked_sub(1).and_then(|last| points.get(last));
    match (before.map(&turned), points.get(next).map(&turned)) {
        (Some((x, y)), Some((x_next, y_next))) => y + (y_next - y) * (at - x) / (x_next - x),
        (Some((_, y)), None) | (None, Some((_, y))) => y,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn violators_are_pooled() {
        let mut seen = Seen::default();
        for (age, is_dead) in [(4.0, false), (1.0, false), (2.0, true), (5.0, true)] {
            seen.first(age, 1.0, is_dead);
        }
        let deaths = Deaths::of(seen);
        // 1: none of 1; 2 and 4: one of 2; 5: one of 1.
        let half = [(2.0, 0.5), (4.0, 0.5)];
        assert_eq!(deaths.points[1..3], [(1.0, 0.0); 2]);
        assert_eq!(deaths.points[3..5], half);
        assert_eq!(deaths.points[5..], [(5.0, 1.0); 2]);
        assert!(is_near(deaths.lifetime((0.0, 5.0), 0.25), 1.5));
        assert!(is_near(deaths.lifetime((0.0, 3.0), 0.5), 1.5));
        assert!(is_near(deaths.lifetime((4.0, 5.0), 0.5), 4.5));
        // No deaths there.
        assert!(is_near(deaths.lifetime((2.5, 3.0), 0.5), 2.75));
        assert!(is_near(Deaths::default().lifetime((2.0, 4.0), 0.5), 3.0));
    }

    #[test]
    fn older_objects_die_at_a_constant_rate_or_never() {
        let mut seen = Seen::default();
        seen.first(10.0, 3.0, false);
        assert_eq!(
            Deaths::of(seen.clone()).lifetime((10.0, f64::INFINITY), 0.9),
            f64::INFINITY
        );
        seen.later(50.0, 2.0, true);
        let deaths = Deaths::of(seen);
        let half = deaths.lifetime((30.0, f64::INFINITY), 0.5);
        assert!(is_near(half, 30.0 + 50.0 * 2.0_f64.ln()), "{half}");
    }
}
