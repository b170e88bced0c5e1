//! The running sum of one trajectory's terms: one lane for each step modulo eight, and a common power of two.

use serde::{Deserialize, Serialize};

use crate::number::block::{Block, Eight, LANES};
use crate::number::scaled::{EXPONENT_LIMIT, Scaled, exp2, is_ordinary};

/// A lane below this, in units of 2^exponent, would be subnormal and lose digits.
const LEAST: f64 = f64::MIN_POSITIVE;

/// The running sum Σ_lanes `sums` · 2^`exponent`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "(Eight, i64)")]
pub struct Lanes {
    sums: [f64; LANES],
    exponent: i64,
}

/// Reads running sums from a state, and refuses any that are not finite.
impl TryFrom<(Eight, i64)> for Lanes {
    type Error = &'static str;
    fn try_from((sums, exponent): (Eight, i64)) -> Result<Self, Self::Error> {
        let near = exponent.unsigned_abs() <= EXPONENT_LIMIT.unsigned_abs();
        let fits = near && sums.iter().all(|sum| sum.is_finite());
        if fits { Ok(Self { sums, exponent }) } else { Err("not running sums") }
    }
}

impl Lanes {
    /// Brings the lanes to a common exponent with terms of exponent `e`, and returns the factor by which to multiply
    /// those terms. Returns None where a lane would vanish beside 2^`e`. The terms themselves may be zero, so they must
    /// then be added as scaled numbers.
    #[inline(always)]
    pub fn align(&mut self, e: i64) -> Option<f64> {
        if self.exponent == e { Some(1.0) } else { self.align_slowly(e) }
    }

    #[cold]
    fn align_slowly(&mut self, e: i64) -> Option<f64> {
        if self.sums == [0.0; LANES] {
            self.exponent = e;
        } else if e > self.exponent {
            let scale = exp2(self.exponent - e);
            let sums = self.sums.map(|x| x * scale);
            let whole = |(&x, &scaled): (&f64, &f64)| x == 0.0 || scaled.abs() >= LEAST;
            if !self.sums.iter().zip(&sums).all(whole) {
                return None;
            }
            (self.sums, self.exponent) = (sums, e);
        }
        Some(exp2(e - self.exponent))
    }

    /// Adds terms · 2^e to one lane, one after the other.
    #[inline(always)]
    pub fn add(&mut self, lane: usize, terms: &[f64], e: i64) {
        match self.align(e) {
            Some(scale) => self.sums[lane] = terms.iter().fold(self.sums[lane], |sum, term| sum + term * scale),
            None => terms.iter().for_each(|&term| self.add_scaled(lane, Scaled::new(term, e))),
        }
    }

    /// Adds a term of any magnitude to one lane.
    pub fn add_scaled(&mut self, lane: usize, term: Scaled) {
        let mut sums = self.get_scaled();
        sums.0[lane] = sums.0[lane] + term;
        self.set_scaled(sums);
    }

    /// Returns the sums as f64, where all are of ordinary magnitude.
    #[inline]
    pub fn ordinary(&self) -> Option<Eight> {
        if self.exponent == 0 {
            return self.sums.iter().fold(true, |all, &sum| all & is_ordinary(sum)).then_some(self.sums);
        }
        let mut sums = self.sums;
        for (sum, wide) in sums.iter_mut().zip(self.get_scaled().0) {
            *sum = wide.ordinary()?;
        }
        Some(sums)
    }

    /// Returns the sums, in units of 2^exponent.
    #[inline(always)]
    pub fn get(&self) -> Block<f64> {
        Block(self.sums)
    }

    /// Replaces the sums, in units of 2^exponent.
    #[inline(always)]
    pub fn set(&mut self, sums: Block<f64>) {
        self.sums = sums.0;
    }

    /// Returns the sums as scaled numbers.
    pub fn get_scaled(&self) -> Block<Scaled> {
        Block(self.sums.map(|x| Scaled::new(x, self.exponent)))
    }

    /// Replaces the sums by scaled numbers. Lanes below about 2^-1000 of the largest vanish.
    pub fn set_scaled(&mut self, sums: Block<Scaled>) {
        let largest = sums.0.iter().filter(|x| !x.is_zero()).map(|x| x.exponent()).max();
        self.exponent = largest.unwrap_or(0);
        self.sums = sums.0.map(|x| if x.is_zero() { 0.0 } else { x.relative_to(self.exponent) });
    }

    /// Returns the sum of the lanes.
    pub fn total(&self) -> Scaled {
        let [a, b, c, d, e, f, g, h] = self.sums;
        Scaled::new(((a + b) + (c + d)) + ((e + f) + (g + h)), self.exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_are_zero_erase_nothing_whatever_their_exponent() {
        let mut lanes = Lanes::default();
        lanes.add(0, &[-0.5], 0);
        lanes.add(1, &[0.0], 2000);
        assert_eq!(lanes.total().lossy_f64(), -0.5);
    }

    #[test]
    fn what_is_far_smaller_than_a_later_term_does_not_change_it() {
        let mut lanes = Lanes::default();
        lanes.add(0, &[1.0], 0);
        lanes.add(1, &[1.5], 3000);
        assert_eq!((lanes.total().exponent(), lanes.total().relative_to(3000)), (3000, 1.5));
    }
}
