//! Which objects are sampled: random choice with known probabilities.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "distances are far below 2^53; the casts to integers saturate"
)]

use vmscope_publish::{LifetimeRate, LifetimeUnit};

use crate::memory::object::WORD;

/// Words of the smallest object.
const LEAST_WORDS: usize = 2;
/// Number of object sizes, in words, whose hit probabilities are computed in advance.
const SIZES: usize = 64;

/// Least mean distance in objects for which points cost less than the sight of every object.
const LEAST_BY_POINTS: u64 = 16;

/// Where an object was allocated.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// In eden.
    Eden {
        /// Address after the object's last byte.
        end: usize,
    },
    /// In old space.
    Old,
}

/// How objects are chosen.
#[derive(Clone, Debug)]
enum Method {
    /// Counts objects. Needs to see every object.
    Objects {
        /// Logarithm of the probability that an object is not sampled.
        ln_miss: f64,
    },
    /// Random points in eden's addresses: each word is a point with the same probability. An object
    /// with a point inside is hit. Needs to see only objects that are hit. An object in old space is
    /// hit with the same probability as in eden, without points.
    Points {
        /// Logarithm of the probability that a word is not a point.
        ln_miss: f64,
        /// Probability of a hit, by size in words.
        hits: Box<[f64; SIZES]>,
    },
}

/// Chooses objects.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    rate: LifetimeRate,
    method: Method,
    /// Address of eden's next sample point; `usize::MAX` without points.
    pub point: usize,
    /// Objects to skip before the next sampled object, where the sampler sees every object.
    pub left: u64,
    random: Random,
}

/// Whether a rate samples every object.
pub(super) fn is_every_object(rate: LifetimeRate) -> bool {
    match rate.unit {
        LifetimeUnit::Bytes => (1..=WORD as u64).contains(&rate.distance),
        _ => rate.distance == 1,
    }
}

impl Sampler {
    /// Creates a sampler. The rate's distance must not be 0. `counts`: it sees every object.
    pub fn new(rate: LifetimeRate, counts: bool, seed: u64) -> Self {
        let mut sampler = Self {
            rate,
            method: Method::Objects { ln_miss: 0.0 },
            point: usize::MAX,
            left: 0,
            random: Random(seed),
        };
        sampler.set_distance(rate.distance, counts);
        sampler
    }

    /// Mean distance between two sampled objects, in the rate's unit.
    pub fn distance(&self) -> u64 {
        self.rate.distance
    }

    /// Sets the mean distance.
    pub fn set_distance(&mut self, distance: u64, counts: bool) {
        self.rate.distance = distance;
        self.point = usize::MAX;
        let every = distance as f64;
        let ln_miss = match self.rate.unit {
            LifetimeUnit::Objects if !counts && distance >= LEAST_BY_POINTS => {
                (-1.0 / every).ln_1p() / LEAST_WORDS as f64
            }
            LifetimeUnit::Bytes if distance > WORD as u64 => (-(WORD as f64) / every).ln_1p(),
            _ => {
                let ln_miss = (-1.0 / every).ln_1p();
                self.method = Method::Objects { ln_miss };
                self.left = self.skip();
                return;
            }
        };
        let hits = std::array::from_fn(|words| hit(ln_miss, words));
        self.method = Method::Points {
            ln_miss,
            hits: Box::new(hits),
        };
    }

    /// Whether the sampler needs to see every object.
    pub fn sees_every_object(&self) -> bool {
        matches!(self.method, Method::Objects { .. })
    }

    /// Draws the next point, at `start` or after.
    pub fn draw_point(&mut self, start: usize) {
        if let Method::Points { ln_miss, .. } = self.method {
            let words = self.random.geometric(ln_miss) as usize;
            self.point = start.saturating_add(words.saturating_mul(WORD));
        }
    }

    /// Decides on a new object of `words` words: its weight if it is sampled. A hit by a point draws
    /// the next point.
    #[inline]
    pub fn choose(&mut self, place: Place, words: usize) -> Option<f64> {
        if self.sees_every_object() {
            return self.choose_seen();
        }
        match place {
            Place::Eden { end } if end <= self.point => return None,
            Place::Eden { end } => self.draw_point(end),
            Place::Old => {
                if self.random.unit() > self.hit(words) {
                    return None;
                }
            }
        }
        let hit = self.hit(words);
        // Large objects are rare, and a single large object may outweigh thousands of small objects:
        // every hit counts.
        if self.rate.unit == LifetimeUnit::Bytes || words >= SIZES {
            return Some(1.0 / hit);
        }
        // A larger object is hit too often. This choice makes its probability 1/distance.
        let every = self.rate.distance as f64;
        let is_chosen = words <= LEAST_WORDS || self.random.unit() * hit * every <= 1.0;
        is_chosen.then_some(every)
    }

    /// Decides on a new object, where the sampler sees every object: its weight if it is sampled.
    #[inline]
    pub fn choose_seen(&mut self) -> Option<f64> {
        if self.left > 0 {
            self.left -= 1;
            return None;
        }
        self.left = self.skip();
        Some(self.objects() as f64)
    }

    /// Mean distance in objects, where the sampler sees every object. A few bytes are each object.
    fn objects(&self) -> u64 {
        match self.rate.unit {
            LifetimeUnit::Bytes => 1,
            _ => self.rate.distance,
        }
    }

    /// Probability that an object of `words` words contains a point.
    fn hit(&self, words: usize) -> f64 {
        match &self.method {
            Method::Objects { .. } => 1.0,
            Method::Points { ln_miss, hits } => {
                let known = hits.get(words).copied();
                known.unwrap_or_else(|| hit(*ln_miss, words))
            }
        }
    }

    /// Number of objects before the next sampled object.
    fn skip(&mut self) -> u64 {
        let ln_miss = match self.method {
            Method::Objects { ln_miss } | Method::Points { ln_miss, .. } => ln_miss,
        };
        match (self.rate.unit, self.objects()) {
            (_, 0 | 1) => 0,
            (LifetimeUnit::EveryNth, distance) => distance - 1,
            _ => self.random.geometric(ln_miss),
        }
    }
}

/// Probability that one of `words` words is a point.
fn hit(ln_miss: f64, words: usize) -> f64 {
    -(words as f64 * ln_miss).exp_m1()
}

/// Random numbers: Steele and others' SplitMix64.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number above 0 and up to 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Number of misses before the first hit.
    fn geometric(&mut self, ln_miss: f64) -> u64 {
        (self.unit().ln() / ln_miss) as u64
    }
}
