//! Which objects are sampled: random choice with known probabilities.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "distances are far below 2^53; the casts to integers saturate"
)]

use rustc_hash::FxHashMap;
use vmscope_publish::{LifetimeRate, LifetimeUnit};

use crate::memory::object::WORD;

/// Words of the smallest object.
const LEAST_WORDS: usize = 2;
/// Number of object sizes, in words, whose hit probabilities are computed in advance.
const SIZES: usize = 64;

/// Least mean distance in objects for which points cost less than the sight of every object.
const LEAST_BY_POINTS: u64 = 16;

/// Size of a window in allocated bytes.
const WINDOW: u64 = 1 << 14;

/// A process begins with the rate's distance ÷ this.
const FIRST_SHARE: u64 = 16;
/// Samples of a process before its distance doubles, up to the rate's.
const SAMPLES: u32 = 16;
/// Most processes with own distances. A further process makes all processes begin anew.
const MOST_PROCESSES: usize = 1 << 12;

/// A new object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Its size in words.
    pub words: usize,
    /// Whether it is in old space.
    pub is_old: bool,
    /// Bytes allocated before it.
    pub before: u64,
    /// Address of eden's free part, after the object.
    pub free: usize,
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
        /// Probability of a hit, by size in words, if the distance stays the same.
        hits: Option<Box<[f64; SIZES]>>,
    },
    /// Windows of time, measured in allocated bytes: a run's windows don't depend on the machine's
    /// speed. One window of each group is drawn. An object belongs to the window in which it begins.
    Windows {
        /// Start of the present group, in allocated bytes.
        group: u64,
        /// Start of its drawn window, in allocated bytes.
        window: u64,
    },
    /// Allocation buffers, one after the other. Processes share eden, so they share the buffer, too.
    /// Objects larger than a buffer are outside, and each of them is sampled.
    Buffers {
        /// End of the present buffer, in allocated bytes.
        end: u64,
    },
}

/// Distance of a process that is not running.
#[derive(Clone, Copy, Debug)]
struct Distance {
    /// Its mean, in objects.
    mean: u64,
    /// Samples since the mean changed.
    samples: u32,
    /// Words before the next point.
    left: usize,
}

/// Chooses objects.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    rate: LifetimeRate,
    method: Method,
    /// Address of eden's next sample point. The sampler decides on the object that ends after it.
    /// `usize::MAX` without points.
    pub point: usize,
    /// Objects to skip before the next sampled object, where the sampler sees every object.
    pub left: u64,
    /// Mean distance of the running process. A process's own mean helps only if it begins short: random distances have
    /// no memory, so equal means would give the samples of a common mean.
    mean: u64,
    /// Samples since this mean changed.
    samples: u32,
    /// The other processes, by number.
    processes: FxHashMap<usize, Distance>,
    random: Random,
}

/// Whether a rate samples every object.
pub(super) fn is_every_object(rate: LifetimeRate) -> bool {
    match rate.unit {
        LifetimeUnit::Bytes | LifetimeUnit::Buffers => (1..=WORD as u64).contains(&rate.distance),
        _ => rate.distance == 1,
    }
}

impl Sampler {
    /// Creates a sampler. The rate's distance must not be 0. `counts`: it sees every object.
    /// `allocated`: bytes allocated so far.
    pub fn new(rate: LifetimeRate, counts: bool, seed: u64, allocated: u64) -> Self {
        let mut sampler = Self {
            rate,
            method: Method::Objects { ln_miss: 0.0 },
            point: usize::MAX,
            left: 0,
            mean: 0,
            samples: 0,
            processes: FxHashMap::default(),
            random: Random(seed),
        };
        sampler.set_distance(rate.distance, counts, allocated);
        sampler
    }

    /// Mean distance between two sampled objects, in the rate's unit.
    pub fn distance(&self) -> u64 {
        self.rate.distance
    }

    /// Sets the mean distance.
    pub fn set_distance(&mut self, distance: u64, counts: bool, allocated: u64) {
        self.rate.distance = distance;
        self.point = usize::MAX;
        let every = distance as f64;
        let ln_miss = match self.rate.unit {
            LifetimeUnit::Windows => {
                let window = allocated.saturating_add(self.window());
                self.method = Method::Windows {
                    group: allocated,
                    window,
                };
                return;
            }
            LifetimeUnit::Buffers => {
                let end = allocated.saturating_add(self.random.next() % distance);
                self.method = Method::Buffers { end };
                return;
            }
            LifetimeUnit::Threads => {
                self.set_mean(self.mean.max(distance / FIRST_SHARE));
                return;
            }
            LifetimeUnit::Objects if !counts && distance >= LEAST_BY_POINTS => ln_miss(distance),
            LifetimeUnit::Bytes if distance > WORD as u64 => (-(WORD as f64) / every).ln_1p(),
            _ => {
                let ln_miss = (-1.0 / every).ln_1p();
                self.method = Method::Objects { ln_miss };
                self.left = self.skip();
                return;
            }
        };
        self.mean = distance;
        let hits = std::array::from_fn(|words| hit(ln_miss, words));
        self.method = Method::Points {
            ln_miss,
            hits: Some(Box::new(hits)),
        };
    }

    /// Sets the mean distance of the running process.
    fn set_mean(&mut self, mean: u64) {
        self.mean = mean.max(1);
        self.samples = 0;
        self.method = Method::Points {
            ln_miss: ln_miss(self.mean),
            hits: None,
        };
    }

    /// Another process runs. `keep`: whether the old one goes on later. `free`: address of eden's
    /// free part.
    pub fn switch(&mut self, (from, keep): (usize, bool), to: usize, free: usize) {
        if self.rate.unit != LifetimeUnit::Threads {
            return;
        }
        if self.processes.len() >= MOST_PROCESSES {
            self.processes.clear();
        }
        if keep {
            let left = self.point.saturating_sub(free) / WORD;
            let (mean, samples) = (self.mean, self.samples);
            let distance = Distance {
                mean,
                samples,
                left,
            };
            self.processes.insert(from, distance);
        }
        if let Some(distance) = self.processes.remove(&to) {
            self.set_mean(distance.mean);
            self.samples = distance.samples;
            self.point = free.saturating_add(distance.left.saturating_mul(WORD));
        } else {
            self.set_mean(self.rate.distance / FIRST_SHARE);
            self.draw_point(free, 0);
        }
    }

    /// Whether the sampler needs to see every object.
    pub fn sees_every_object(&self) -> bool {
        matches!(self.method, Method::Objects { .. })
    }

    /// Draws the next point, at `start` or after. `allocated`: bytes allocated so far.
    pub fn draw_point(&mut self, start: usize, allocated: u64) {
        self.point = match self.method {
            Method::Objects { .. } => return,
            Method::Points { ln_miss, .. } => {
                let words = self.random.geometric(ln_miss) as usize;
                start.saturating_add(words.saturating_mul(WORD))
            }
            Method::Windows { window: next, .. } | Method::Buffers { end: next } => {
                start.saturating_add(next.saturating_sub(allocated) as usize)
            }
        };
    }

    /// Decides on a new object: its weight if it is sampled. A hit by a point draws the next point.
    #[inline]
    pub fn choose(&mut self, new: Candidate) -> Option<f64> {
        match self.method {
            Method::Objects { .. } => return self.choose_seen(),
            Method::Points { .. } => {}
            Method::Windows { .. } | Method::Buffers { .. } => {
                let weight = self.choose_by_time(new.before, (new.words * WORD) as u64);
                self.draw_point(new.free, new.before + (new.words * WORD) as u64);
                return weight;
            }
        }
        if new.is_old {
            if self.random.unit() > self.hit(new.words) {
                return None;
            }
        } else if new.free <= self.point {
            return None;
        } else {
            self.draw_point(new.free, 0);
        }
        let hit = self.hit(new.words);
        // Large objects are rare, and a single large object may outweigh thousands of small objects:
        // every hit counts.
        if self.rate.unit == LifetimeUnit::Bytes || new.words >= SIZES {
            return Some(1.0 / hit);
        }
        // A larger object is hit too often. This choice makes its probability 1/distance.
        let every = self.mean as f64;
        let is_chosen = new.words <= LEAST_WORDS || self.random.unit() * hit * every <= 1.0;
        if is_chosen && self.mean < self.rate.distance {
            self.samples += 1;
            if self.samples == SAMPLES {
                self.set_mean(self.mean.saturating_mul(2).min(self.rate.distance));
                self.draw_point(new.free, 0);
            }
        }
        is_chosen.then_some(every)
    }

    /// Decides on a new object by the time of its allocation: by the bytes allocated before it.
    fn choose_by_time(&mut self, before: u64, bytes: u64) -> Option<f64> {
        let distance = self.rate.distance;
        match self.method {
            Method::Windows {
                mut group,
                mut window,
            } => {
                while before >= window.saturating_add(WINDOW) {
                    let length = WINDOW.saturating_mul(distance);
                    let groups = ((before - group) / length).max(1);
                    group = group.saturating_add(groups.saturating_mul(length));
                    window = group.saturating_add(self.window());
                }
                self.method = Method::Windows { group, window };
                (before >= window).then_some(distance as f64)
            }
            Method::Buffers { end } if bytes > distance => {
                let end = end.saturating_add(bytes);
                self.method = Method::Buffers { end };
                Some(1.0)
            }
            Method::Buffers { end } if before + bytes > end => {
                let end = before.saturating_add(distance);
                self.method = Method::Buffers { end };
                Some(distance as f64 / bytes as f64)
            }
            _ => None,
        }
    }

    /// Draws a window: its start in its group, in bytes.
    fn window(&mut self) -> u64 {
        (self.random.next() % self.rate.distance).saturating_mul(WINDOW)
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
            Method::Points { ln_miss, hits } => {
                let known = hits.as_ref().and_then(|hits| hits.get(words).copied());
                known.unwrap_or_else(|| hit(*ln_miss, words))
            }
            _ => 1.0,
        }
    }

    /// Number of objects before the next sampled object.
    fn skip(&mut self) -> u64 {
        match (&self.method, self.rate.unit, self.objects()) {
            (_, _, 0 | 1) => 0,
            (_, LifetimeUnit::EveryNth, distance) => distance - 1,
            (&Method::Objects { ln_miss }, ..) => self.random.geometric(ln_miss),
            _ => 0,
        }
    }
}

/// Logarithm of the probability that a word is not a point, at a mean distance in objects.
fn ln_miss(distance: u64) -> f64 {
    (-1.0 / distance as f64).ln_1p() / LEAST_WORDS as f64
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
