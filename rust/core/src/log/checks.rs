//! Checks of the values of a column, at the speed at which the column can be read.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::log::problem::Kind;
use crate::number::magnitude::{HUGE, TINY};
use crate::pass::plan::Slot;

/// The largest probability, which may exceed 1 by rounding.
const ONE: f64 = 1.0 + 4.0 * f64::EPSILON;

/// The number of rows of a column that are checked together.
const STRIDE: usize = 64;

/// The values that a column may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// Any finite number.
    Finite,
    /// π0 of an action that was taken: in (0, 1].
    PositiveProbability,
    /// π1: in [0, 1].
    Probability,
    /// A density that was sampled from, above 0.
    PositiveDensity,
    /// A density or ratio, not negative.
    NonNegative,
}

/// The result of checking a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether all values are allowed.
    pub ok: bool,
    /// Whether all values are zero or of ordinary magnitude.
    pub tame: bool,
}

impl Check {
    /// Checks a whole column.
    #[inline(always)]
    pub fn inspect(self, column: &[f64]) -> Finding {
        let good = Finding { ok: true, tame: true };
        if self.is_ordinary(column) { good } else { self.inspect_closely(column) }
    }

    /// Returns true if all values are allowed and of ordinary magnitude. The bits of floats of one sign have the order
    /// of the floats, so one comparison of integers also detects NaN, infinities and wrong signs.
    #[inline(always)]
    fn is_ordinary(self, column: &[f64]) -> bool {
        match self {
            Self::Finite => within(column, |bits| bits & (u64::MAX >> 1), true, HUGE),
            Self::PositiveProbability => within(column, |bits| bits, false, ONE),
            Self::Probability => within(column, |bits| bits, true, ONE),
            Self::PositiveDensity => within(column, |bits| bits, false, HUGE),
            Self::NonNegative => within(column, |bits| bits, true, HUGE),
        }
    }

    #[cold]
    fn inspect_closely(self, column: &[f64]) -> Finding {
        match self {
            Self::Finite => all(column, |x| x.abs() <= f64::MAX),
            Self::PositiveProbability => all(column, |x| (x > 0.0) & (x <= ONE)),
            Self::Probability => all(column, |x| (0.0..=ONE).contains(&x)),
            Self::PositiveDensity => all(column, |x| (x > 0.0) & (x <= f64::MAX)),
            Self::NonNegative => all(column, |x| (0.0..=f64::MAX).contains(&x)),
        }
    }

    /// Returns the value of an absorbed step: 1 for probabilities and ratios, 0 for everything else.
    pub fn neutral(self) -> f64 {
        if self == Self::Finite { 0.0 } else { 1.0 }
    }

    /// Returns the problem of one value, or None if it is allowed.
    pub fn problem(self, x: f64) -> Option<Kind> {
        let positive = matches!(self, Self::PositiveProbability | Self::PositiveDensity);
        let bounded = matches!(self, Self::PositiveProbability | Self::Probability);
        if x.is_nan() {
            Some(Kind::Nan)
        } else if x.is_infinite() {
            Some(Kind::Infinite)
        } else if positive && x <= 0.0 {
            Some(Kind::NotPositive)
        } else if self != Self::Finite && x < 0.0 {
            Some(Kind::Negative)
        } else if bounded && x > ONE {
            Some(Kind::AboveOne)
        } else {
            None
        }
    }
}

/// The check that all values of some rows are allowed and of ordinary magnitude, compiled for each instruction set; the
/// processor's is chosen at run time.
pub struct Ordinary<'a> {
    /// The slots of the plan, with the check of each column.
    pub slots: &'a [Slot],
    /// The values of each slot.
    pub columns: &'a [&'a [f64]],
    /// The rows to check.
    pub rows: Range<usize>,
}

impl pulp::WithSimd for Ordinary<'_> {
    type Output = bool;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) -> bool {
        let Range { start, end } = self.rows;
        let mut ordinary = true;
        // A few rows of every column are checked in turn, so that memory serves all columns at once.
        for from in (start..end).step_by(STRIDE) {
            for (slot, column) in self.slots.iter().zip(self.columns) {
                ordinary &= slot.check.is_ordinary(&column[from..end.min(from + STRIDE)]);
            }
        }
        ordinary
    }
}

/// Checks all columns of some rows.
pub fn inspect(slots: &[Slot], columns: &[&[f64]], rows: Range<usize>) -> Finding {
    let mut all = Finding { ok: true, tame: true };
    for (slot, column) in slots.iter().zip(columns) {
        let finding = slot.check.inspect(&column[rows.clone()]);
        all.ok &= finding.ok;
        all.tame &= finding.tame;
    }
    all
}

#[inline(always)]
fn within(column: &[f64], key: impl Fn(u64) -> u64, zero: bool, high: f64) -> bool {
    let (low, high) = (TINY.to_bits(), high.to_bits());
    let mut ok = true;
    for x in column {
        let key = key(x.to_bits());
        ok &= (key.wrapping_sub(low) <= high - low) | (zero & (key == 0));
    }
    ok
}

fn all(column: &[f64], allowed: impl Fn(f64) -> bool) -> Finding {
    let mut finding = Finding { ok: true, tame: true };
    for &x in column {
        finding.ok &= allowed(x);
        finding.tame &= (x == 0.0) | ((x.abs() >= TINY) & (x.abs() <= HUGE));
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_at_the_column_and_at_the_value_agree() {
        let checks =
            [Check::Finite, Check::PositiveProbability, Check::Probability, Check::PositiveDensity, Check::NonNegative];
        let values =
            [0.0, -0.0, 1.0, 0.5, ONE, 1.0 + 5.0 * f64::EPSILON, 7.0, -1e-300, f64::NAN, f64::INFINITY, -3.0, 5e-324];
        for check in checks {
            for x in values {
                for length in [1, 64, 70] {
                    let mut column = vec![0.5; length];
                    column[length - 1] = x;
                    assert_eq!(check.inspect(&column).ok, check.problem(x).is_none(), "{check:?} {x}");
                }
            }
        }
    }

    #[test]
    fn magnitudes() {
        assert!(!Check::Finite.inspect(&[1e-200]).tame);
        assert!(!Check::Finite.inspect(&[-1e70]).tame);
        assert!(Check::Finite.inspect(&[0.0, -1e50]).tame);
    }
}
