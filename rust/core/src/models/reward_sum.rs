//! Exact sums of rewards, so that a mean does not depend on the order of its rewards, to the bit.
//!
//! A reward that is a multiple of 2^-64 below 2^24, as all f64 between 2^-12 and 2^24 are, is added as an integer. Any
//! other goes to the bins of [`Sum`]. The reward alone decides between the two, so parts merge in any order.

use std::collections::BTreeMap;

use num_bigint::BigInt;
use serde::{Deserialize, Serialize};

use crate::number::scaled::exp2;
use crate::number::sum::{Exact, Sum};

/// The exponent of the unit that integers count, 2^-64.
const UNIT: i64 = -64;
/// The exponent below which a reward is added as an integer. Such a reward has less than 2^88 units, and the sum of
/// 2^39 of them fits.
const LARGEST_EXPONENT: i64 = 24;
const FRACTION: u32 = 52;

/// Sums of rewards, by index.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RewardSums {
    units: Vec<i128>,
    rest: BTreeMap<usize, Sum>,
}

/// A reward, prepared for adding.
#[derive(Clone, Copy, Debug)]
pub struct Reward {
    value: f64,
    units: Option<i128>,
}

impl Reward {
    /// Returns the reward as a number.
    pub fn value(self) -> f64 {
        self.value
    }
}

impl From<f64> for Reward {
    fn from(value: f64) -> Self {
        Self { value, units: in_units(value) }
    }
}

/// Returns x in units, if that is exact and small enough.
#[inline(always)]
fn in_units(x: f64) -> Option<i128> {
    let bits = x.to_bits();
    let exponent = ((bits >> FRACTION) & 0x7ff).cast_signed() - 1023;
    let integer = (bits & ((1 << FRACTION) - 1)) | (1 << FRACTION);
    let shift = exponent - i64::from(FRACTION) - UNIT;
    let magnitude = if exponent < LARGEST_EXPONENT && shift >= 0 {
        i128::from(integer) << shift
    } else if exponent < LARGEST_EXPONENT && i64::from(integer.trailing_zeros()) >= -shift {
        i128::from(integer >> -shift)
    } else if x == 0.0 {
        0
    } else {
        return None;
    };
    Some(if x < 0.0 { -magnitude } else { magnitude })
}

impl RewardSums {
    /// Makes `len` empty sums.
    pub fn new(len: usize) -> Self {
        Self { units: vec![0; len], rest: BTreeMap::new() }
    }

    /// Returns the number of sums.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Returns true if there are no sums.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Returns true if no sum is beyond the last index.
    pub fn is_consistent(&self) -> bool {
        self.rest.last_key_value().is_none_or(|(&index, _)| index < self.units.len())
    }

    /// Adds a finite reward to a sum.
    #[inline(always)]
    pub fn add(&mut self, index: usize, reward: Reward) {
        match reward.units {
            Some(units) => self.units[index] += units,
            None => self.add_rest(index, reward.value),
        }
    }

    #[cold]
    fn add_rest(&mut self, index: usize, reward: f64) {
        self.rest.entry(index).or_default().add(reward.into());
    }

    /// Adds the sums of another part of the log.
    pub fn merge(&mut self, other: &Self) {
        self.units.iter_mut().zip(&other.units).for_each(|(ours, theirs)| *ours += theirs);
        for (&index, sum) in &other.rest {
            self.rest.entry(index).or_default().merge(sum);
        }
    }

    /// Returns the sum divided by n > 0, correctly rounded.
    pub fn mean(&self, index: usize, n: u64) -> f64 {
        match self.rest.get(&index) {
            None => divide(self.units[index], n),
            Some(rest) => {
                let units = Exact { integer: BigInt::from(-self.units[index]), exponent: UNIT };
                rest.exact().minus(&units).divide(&Exact::integer(n)).lossy_f64()
            }
        }
    }
}

/// Returns units / n. The quotient has at least 63 bits, and its last one records whether anything was cut off, so the
/// conversion rounds once and correctly.
fn divide(units: i128, n: u64) -> f64 {
    let magnitude = units.unsigned_abs();
    if magnitude == 0 {
        return 0.0;
    }
    let shift = magnitude.leading_zeros();
    let (dividend, n) = (magnitude << shift, u128::from(n));
    let quotient = dividend / n;
    let sticky = u128::from(quotient * n != dividend);
    let mean = (quotient | sticky) as f64 * exp2(UNIT - i64::from(shift));
    if units < 0 { -mean } else { mean }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mean(rewards: &[f64]) -> f64 {
        let mut sums = RewardSums::new(1);
        rewards.iter().for_each(|&r| sums.add(0, r.into()));
        sums.mean(0, rewards.len() as u64)
    }

    /// Computes the mean in rational numbers.
    fn exact_mean(rewards: &[f64]) -> f64 {
        let mut sum = Sum::new();
        rewards.iter().for_each(|&r| sum.add(r.into()));
        sum.exact().divide(&Exact::integer(rewards.len())).lossy_f64()
    }

    #[test]
    fn means_of_equal_rewards_are_the_reward() {
        for r in [-1.0, 0.1, 0.0, 1e-300, -3.0 - 4.0 * 2f64.sqrt(), 1e30, 2f64.powi(24), 5e-324] {
            assert_eq!(mean(&[r; 7]), r);
        }
    }

    proptest! {
        #[test]
        fn means_are_correctly_rounded(
            rewards in prop::collection::vec((-1.0..1.0f64, -90..40i32).prop_map(|(m, e)| m * 2f64.powi(e)), 1..40)
        ) {
            prop_assert_eq!(mean(&rewards), exact_mean(&rewards));
        }

        #[test]
        fn ordinary_rewards_are_integers(m in 1.0..2.0f64, e in -12..24i32) {
            prop_assert!(in_units(m * 2f64.powi(e)).is_some());
            prop_assert_eq!(in_units(m * 2f64.powi(e)).map(|units| divide(units, 1)), Some(m * 2f64.powi(e)));
        }

        #[test]
        fn merging_in_any_order_gives_the_same_bits(
            rewards in prop::collection::vec((-1.0..1.0f64, -90..40i32).prop_map(|(m, e)| m * 2f64.powi(e)), 1..40),
            cut in 0..40usize
        ) {
            let cut = cut.min(rewards.len());
            let part = |rewards: &[f64]| {
                let mut sums = RewardSums::new(1);
                rewards.iter().rev().for_each(|&r| sums.add(0, r.into()));
                sums
            };
            let mut merged = part(&rewards[cut..]);
            merged.merge(&part(&rewards[..cut]));
            prop_assert_eq!(merged.mean(0, rewards.len() as u64).to_bits(), mean(&rewards).to_bits());
        }
    }
}
