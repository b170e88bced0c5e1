//! Order-independent sums: every addend goes, as an integer, into a bin that its exponent alone selects.
//!
//! Integer addition is associative, so any order, partition or merge tree gives the same bins, hence the same bits. The
//! idea is that of the superaccumulator of Neal (2015), with a window that follows the largest addend instead of a
//! fixed range: bins that are `BINS` or more below the top are dropped, 2^-448 of the largest addend and less.

use num_bigint::{BigInt, Sign};
use num_traits::{Signed, Zero};
use serde::{Deserialize, Serialize};

use crate::number::scaled::{EXPONENT_LIMIT, Scaled};

/// The number of bits between neighbouring bins. A 53-bit addend shifted by less than this leaves 42 bits of an i128
/// for carries.
const SPACING: i64 = 32;
const BINS: usize = 16;
/// The number of bits of the integer significand of an f64.
pub const HALF: i64 = 53;

/// An exact sum, except for parts below 2^-448 of its largest addend, which are dropped.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "(i64, [i128; BINS], bool)")]
pub struct Sum {
    /// The index of `bins[0]`. Bin k counts units of 2^(32 k).
    top: i64,
    bins: [i128; BINS],
    empty: bool,
}

/// An exact rational m · 2^e with an arbitrary integer m.
#[derive(Clone, Debug)]
pub struct Exact {
    /// The integer factor.
    pub integer: BigInt,
    /// The power of two.
    pub exponent: i64,
}

impl Default for Sum {
    fn default() -> Self {
        Self { top: 0, bins: [0; BINS], empty: true }
    }
}

/// Reads a sum from a state, and refuses a window beyond the reach of addends.
impl TryFrom<(i64, [i128; BINS], bool)> for Sum {
    type Error = &'static str;
    fn try_from((top, bins, empty): (i64, [i128; BINS], bool)) -> Result<Self, Self::Error> {
        let fits = top.unsigned_abs() <= EXPONENT_LIMIT.unsigned_abs() && !(empty && bins != [0; BINS]);
        if fits { Ok(Self { top, bins, empty }) } else { Err("not a sum") }
    }
}

impl Sum {
    /// Makes an empty sum.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds x.
    pub fn add(&mut self, x: Scaled) {
        let (integer, exponent) = x.to_integer();
        self.add_integer(integer.into(), exponent);
    }

    /// Adds a · b without rounding the product.
    pub fn add_product(&mut self, a: Scaled, b: Scaled) {
        let ((i, e), (j, f)) = (a.to_integer(), b.to_integer());
        self.add_wide(i128::from(i) * i128::from(j), e + f);
    }

    /// Adds x³ without rounding.
    pub fn add_cube(&mut self, x: Scaled) {
        let (integer, exponent) = x.to_integer();
        let integer = i128::from(integer);
        let square = integer * integer;
        self.add_wide((square & ((1 << HALF) - 1)) * integer, 3 * exponent);
        self.add_wide((square >> HALF) * integer, 3 * exponent + HALF);
    }

    /// Adds i · 2^e for |i| < 2^106.
    #[inline]
    pub fn add_wide(&mut self, i: i128, e: i64) {
        self.add_integer(i & ((1 << HALF) - 1), e);
        self.add_integer(i >> HALF, e + HALF);
    }

    /// Adds i · 2^e for |i| < 2^86.
    #[inline]
    pub fn add_integer(&mut self, i: i128, e: i64) {
        if i == 0 {
            return;
        }
        let bin = e.div_euclid(SPACING);
        self.raise(bin);
        if let Some(slot) = self.bins.get_mut((self.top - bin) as usize) {
            *slot += i << e.rem_euclid(SPACING);
        }
    }

    /// Adds the addends of another sum.
    pub fn merge(&mut self, other: &Self) {
        if other.empty {
            return;
        }
        self.raise(other.top);
        let offset = (self.top - other.top) as usize;
        for (slot, bin) in self.bins.iter_mut().skip(offset).zip(other.bins) {
            *slot += bin;
        }
    }

    #[inline]
    fn raise(&mut self, bin: i64) {
        if self.empty || bin > self.top {
            self.raise_slowly(bin);
        }
    }

    #[cold]
    fn raise_slowly(&mut self, bin: i64) {
        if self.empty {
            (self.top, self.empty) = (bin, false);
        } else {
            let shift = (bin - self.top).min(BINS as i64) as usize;
            self.bins.copy_within(..BINS - shift, shift);
            self.bins[..shift].fill(0);
            self.top = bin;
        }
    }

    /// Returns the sum as one integer times a power of two.
    pub fn exact(&self) -> Exact {
        let integer = self.bins.iter().fold(BigInt::zero(), |sum, &bin| (sum << SPACING) + bin);
        Exact { integer, exponent: SPACING * (self.top - BINS as i64 + 1) }
    }

    /// Returns the sum, correctly rounded.
    pub fn value(&self) -> Scaled {
        self.exact().round()
    }
}

/// Returns a · b as two exact parts.
pub fn product(a: Scaled, b: Scaled) -> [Scaled; 2] {
    let ((i, e), (j, f)) = (a.to_integer(), b.to_integer());
    let full = i128::from(i) * i128::from(j);
    let low = full % (1 << HALF);
    [Scaled::new(((full - low) >> HALF) as f64, e + f + HALF), Scaled::new(low as f64, e + f)]
}

impl From<Scaled> for Exact {
    fn from(x: Scaled) -> Self {
        let (integer, exponent) = x.to_integer();
        Self { integer: integer.into(), exponent }
    }
}

impl Exact {
    /// Makes an exact integer.
    pub fn integer(i: impl Into<BigInt>) -> Self {
        Self { integer: i.into(), exponent: 0 }
    }

    /// Returns self · other.
    pub fn times(&self, other: &Self) -> Self {
        Self { integer: &self.integer * &other.integer, exponent: self.exponent + other.exponent }
    }

    /// Returns self − other, or only the larger of the two where their exponents are too far apart to matter.
    pub fn minus(&self, other: &Self) -> Self {
        // Sums of one log are never this far apart. In a state that was tampered with, aligning them would fill the
        // memory.
        const FAR: u64 = 1 << 24;
        if self.exponent.abs_diff(other.exponent) > FAR {
            let negative = Self { integer: -&other.integer, exponent: other.exponent };
            return if self.exponent > other.exponent { self.clone() } else { negative };
        }
        let exponent = self.exponent.min(other.exponent);
        let align = |x: &Self| &x.integer << (x.exponent - exponent).cast_unsigned();
        Self { integer: align(self) - align(other), exponent }
    }

    /// Returns self / other, correctly rounded. `other` must not be zero.
    pub fn divide(&self, other: &Self) -> Scaled {
        const GUARD: u64 = 70;
        if self.integer.is_zero() {
            return Scaled::ZERO;
        }
        let shift = GUARD + other.integer.bits().saturating_sub(self.integer.bits());
        let numerator = &self.integer << shift;
        let quotient = &numerator / &other.integer;
        let sticky = i32::from(&quotient * &other.integer != numerator);
        let sign = if (self.integer.sign() == Sign::Minus) == (other.integer.sign() == Sign::Minus) { 1 } else { -1 };
        let integer = (quotient << 1u8) + sign * sticky;
        Self { integer, exponent: self.exponent - other.exponent - shift.cast_signed() - 1 }.round()
    }

    /// Returns the nearest 53-bit float, ties to even.
    pub fn round(&self) -> Scaled {
        let magnitude = self.integer.abs();
        let excess = magnitude.bits().saturating_sub(64);
        let head = &magnitude >> excess;
        let sticky = u64::from(&head << excess != magnitude);
        // The head has 64 bits and a sticky bit below them, so the cast to f64 rounds once and correctly.
        let head = head.iter_u64_digits().next().unwrap_or(0) | sticky;
        let sign = if self.integer.is_negative() { -1.0 } else { 1.0 };
        Scaled::new(sign * head as f64, self.exponent + excess.cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits(sum: &Sum) -> u64 {
        sum.value().lossy_f64().to_bits()
    }

    #[test]
    fn cubes_are_not_rounded() {
        let (x, y) = (1.0 + f64::EPSILON, -1.0 - f64::EPSILON / 2.0);
        let mut sum = Sum::new();
        [x, y, -0.1, 0.1].into_iter().for_each(|x| sum.add_cube(x.into()));
        let cube = |x: f64| {
            let x = Exact::from(Scaled::from(x));
            x.times(&x).times(&x)
        };
        assert_eq!(sum.exact().minus(&cube(x)).minus(&cube(y)).round(), Scaled::ZERO);
        sum.add_cube((-3.0).into());
        sum.add_cube((-x).into());
        sum.add_cube((-y).into());
        assert_eq!(sum.value().to_f64(), Some(-27.0));
    }

    #[test]
    fn cancellation_leaves_the_small_addend() {
        let mut sum = Sum::new();
        for x in [1e100, 1.5, -1e100] {
            sum.add(x.into());
        }
        assert_eq!(sum.value().to_f64(), Some(1.5));
    }

    #[test]
    fn rounds_to_nearest_even() {
        let mut sum = Sum::new();
        sum.add(1.0.into());
        sum.add(2f64.powi(-53).into());
        assert_eq!(sum.value().to_f64(), Some(1.0));
        sum.add(2f64.powi(-300).into());
        assert_eq!(sum.value().to_f64(), Some(1.0 + f64::EPSILON));
    }

    #[test]
    fn squares_are_exact() {
        let (x, mut sum) = (1.0 + f64::EPSILON, Sum::new());
        sum.add_product(x.into(), x.into());
        sum.add((-1.0 - 2.0 * f64::EPSILON).into());
        assert_eq!(sum.value().to_f64(), Some(f64::EPSILON * f64::EPSILON));
    }

    #[test]
    fn quotients_round_correctly() {
        let third = Exact::integer(1).divide(&Exact::integer(3));
        assert_eq!(third.to_f64(), Some(1.0 / 3.0));
        assert_eq!(Exact::integer(-2).divide(&Exact::integer(3)).to_f64(), Some(-2.0 / 3.0));
    }

    proptest! {
        #[test]
        fn any_order_and_bracketing_gives_the_same_bits(
            xs in prop::collection::vec((-1.0..1.0f64, -300..300i32), 1..60), cut in 0..60usize
        ) {
            let xs: Vec<f64> = xs.iter().map(|(m, e)| m * 2f64.powi(*e)).collect();
            let add = |xs: &mut dyn Iterator<Item = &f64>| {
                let mut sum = Sum::new();
                xs.for_each(|&x| sum.add(x.into()));
                sum
            };
            let whole = add(&mut xs.iter());
            let cut = cut.min(xs.len());
            let mut right = add(&mut xs[cut..].iter().rev());
            right.merge(&add(&mut xs[..cut].iter()));
            prop_assert_eq!(bits(&whole), bits(&right));
        }
    }
}
