//! Estimates from weighted samples.
//!
//! Objects are sampled independently; an object's weight `w` is the inverse of its inclusion
//! probability (Horvitz and Thompson, JASA 1952). A total `Σ w·x` then has the variance estimate
//! `Σ w·(w − 1)·x²` (Poisson sampling: Särndal, Swensson and Wretman, Model Assisted Survey Sampling,
//! §3.5), and ratios have the variance of their linearization (§5.5). Weights of 1 have no error.

/// Two-sided 95 % quantile of the normal distribution.
const Z_95: f64 = 1.96;

/// An estimated number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Value.
    pub value: f64,
    /// Half-width of the 95 % interval; 0 for an exact value.
    pub error: f64,
}

impl Estimate {
    /// A value with its variance. Rounding can make a variance of 0 negative.
    pub(super) fn new(value: f64, variance: f64) -> Self {
        Estimate {
            value,
            error: Z_95 * variance.max(0.0).sqrt(),
        }
    }

    /// The mean of equally likely values, with their spread.
    pub(super) fn of_samples(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count() as f64;
        let mean = values.clone().sum::<f64>() / count.max(1.0);
        let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
        Estimate::new(mean, squares / (count - 1.0).max(1.0))
    }

    /// The sum of independent estimates.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Estimate {
            value: self.value + other.value,
            error: self.error.hypot(other.error),
        }
    }

    /// A multiple.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Estimate {
            value: self.value * factor,
            error: self.error * factor.abs(),
        }
    }

    /// The product of independent estimates, by the errors' first order.
    #[must_use]
    pub fn product(self, other: Self) -> Self {
        Estimate {
            value: self.value * other.value,
            error: (self.value * other.error).hypot(other.value * self.error),
        }
    }
}

/// Weighted sums of two quantities, with the variances and the covariance of both sums.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Sums {
    /// Adds objects of a weight, each with the quantities `x` and `y`. `variance` is `w·(w − 1)`, or 0
    /// for counted objects.
    pub fn add(&mut self, weight: f64, variance: f64, (x, y): (f64, f64)) {
        self.x += weight * x;
        self.y += weight * y;
        self.xx += variance * x * x;
        self.xy += variance * x * y;
        self.yy += variance * y * y;
    }

    /// Adds other, independent sums.
    pub fn add_all(&mut self, other: &Sums) {
        self.x += other.x;
        self.y += other.y;
        self.xx += other.xx;
        self.xy += other.xy;
        self.yy += other.yy;
    }

    /// Total of the first quantity.
    pub fn x(&self) -> Estimate {
        Estimate::new(self.x, self.xx)
    }

    /// Total of the second quantity.
    pub fn y(&self) -> Estimate {
        Estimate::new(self.y, self.yy)
    }

    /// Mean of the second quantity by the first: `Σ w·y ÷ Σ w·x`; 0 without objects.
    pub fn ratio(&self) -> Estimate {
        if self.x == 0.0 {
            return Estimate::default();
        }
        let ratio = self.y / self.x;
        let variance = self.yy - 2.0 * ratio * self.xy + ratio * ratio * self.xx;
        Estimate::new(ratio, variance / (self.x * self.x))
    }

    /// Shares of both quantities in the totals of a whole that includes these sums.
    pub fn shares(&self, whole: &Sums) -> (Estimate, Estimate) {
        let share = |part: f64, variance: f64, whole: f64, of_whole: f64| {
            if whole == 0.0 {
                return Estimate::default();
            }
            let share = part / whole;
            let variance = variance * (1.0 - 2.0 * share) + share * share * of_whole;
            Estimate::new(share, variance / (whole * whole))
        };
        (
            share(self.x, self.xx, whole.x, whole.xx),
            share(self.y, self.yy, whole.y, whole.yy),
        )
    }
}
