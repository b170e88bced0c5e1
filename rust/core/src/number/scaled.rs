//! Floats that neither under- nor overflow: x = m · 2^e with |m| in [1, 2) or 0, and a 64-bit exponent.
//!
//! Cumulative ratios of long trajectories leave the range of f64 while they still matter as ratios of each other. Every
//! operation rounds exactly as the f64 operation does wherever that one stays in range, so a computation may move
//! between the two forms without changing a bit.

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Neg, Sub};

use serde::{Deserialize, Serialize};

use crate::number::magnitude::TWO_FACTORS;

/// The number of bits of an f64's significand after the leading one.
pub const FRACTION_BITS: i64 = 52;
/// The bits of 1.0.
const ONE_BITS: u64 = 1.0f64.to_bits();
/// An operand of a sum that must be shifted by more than this does not change the other one.
const ALIGN_LIMIT: i64 = 200;

/// The largest exponent that a state may have: ten thousand million ratios of 2^1000 multiplied.
pub const EXPONENT_LIMIT: i64 = 1 << 44;

/// The number m · 2^e with |m| in [1, 2), or zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "(f64, i64)")]
pub struct Scaled {
    mantissa: f64,
    exponent: i64,
}

/// Returns 2^k for k within the normal range of f64, 0 below that range and +inf above it.
#[inline(always)]
pub fn exp2(k: i64) -> f64 {
    f64::from_bits((k.clamp(-1023, 1024) + 1023).cast_unsigned() << 52)
}

/// Returns true for 0 and for magnitudes of which a few can be added and two multiplied without leaving the range of
/// f64.
#[inline(always)]
pub fn is_ordinary(x: f64) -> bool {
    x == 0.0 || (exp2(-TWO_FACTORS)..exp2(TWO_FACTORS + 1)).contains(&x.abs())
}

impl Scaled {
    /// Zero.
    pub const ZERO: Self = Self { mantissa: 0.0, exponent: 0 };
    /// One.
    pub const ONE: Self = Self { mantissa: 1.0, exponent: 0 };

    /// Returns x · 2^e for a finite x.
    #[inline]
    pub fn new(x: f64, e: i64) -> Self {
        if !x.is_normal() {
            return Self::of_unusual(x, e);
        }
        let exponent = ((x.to_bits() >> FRACTION_BITS) & 0x7ff).cast_signed() - 1023;
        let mantissa = f64::from_bits(x.to_bits() & !(0x7ff << FRACTION_BITS) | ONE_BITS);
        Self { mantissa, exponent: e + exponent }
    }

    /// Returns x · 2^e for 0 and for subnormal numbers.
    #[cold]
    fn of_unusual(x: f64, e: i64) -> Self {
        let scaled = x * exp2(64);
        if scaled.is_normal() { Self::new(scaled, e - 64) } else { Self { mantissa: x + 0.0, exponent: 0 } }
    }

    /// Returns the exponent e of the leading bit, 2^e ≤ |x| < 2^(e+1). It has no meaning for zero.
    pub fn exponent(self) -> i64 {
        self.exponent
    }

    /// Returns the significand, which is in ±[1, 2) or 0.
    pub fn mantissa(self) -> f64 {
        self.mantissa
    }

    /// Returns an integer of at most 53 bits and an exponent e. The value is the integer times 2^e.
    #[inline]
    pub fn to_integer(self) -> (i64, i64) {
        let (bits, leading) = (self.mantissa.to_bits(), 1u64 << FRACTION_BITS);
        let size = if self.is_zero() { 0 } else { (bits & (leading - 1) | leading).cast_signed() };
        let sign = bits.cast_signed() >> 63;
        ((size ^ sign) - sign, self.exponent - FRACTION_BITS)
    }

    /// Returns true for zero.
    pub fn is_zero(self) -> bool {
        self.mantissa == 0.0
    }

    /// Returns the nearest f64, or None where a value out of range would become infinite or zero.
    pub fn to_f64(self) -> Option<f64> {
        let x = self.lossy_f64();
        (x.is_finite() && (x != 0.0) == (self.mantissa != 0.0)).then_some(x)
    }

    /// Returns the nearest f64, which is 0 or infinite where the value is out of range.
    pub fn lossy_f64(self) -> f64 {
        let e = self.exponent.clamp(-2200, 2200);
        self.mantissa * exp2(e / 3) * exp2((e - e / 3) / 2) * exp2(e - e / 3 - (e - e / 3) / 2)
    }

    /// Returns x · 2^-e as an f64, for e near the exponent of x. It is 0 or infinite where that is out of range.
    pub fn relative_to(self, e: i64) -> f64 {
        Self { exponent: self.exponent - e, ..self }.lossy_f64()
    }

    /// Returns log10 |x|.
    pub fn log10(self) -> f64 {
        self.mantissa.abs().log10() + self.exponent as f64 * std::f64::consts::LOG10_2
    }

    /// Returns |x|.
    pub fn abs(self) -> Self {
        Self { mantissa: self.mantissa.abs(), ..self }
    }

    /// Returns the square root of a value that is not negative.
    pub fn sqrt(self) -> Self {
        let odd = self.exponent.rem_euclid(2);
        Self::new((self.mantissa * exp2(odd)).sqrt(), (self.exponent - odd) / 2)
    }

    /// Returns the value, or 0 where it is negative.
    pub fn positive(self) -> Self {
        if self.mantissa > 0.0 { self } else { Self::ZERO }
    }

    /// Returns the value as an f64, where it is of ordinary magnitude.
    #[inline]
    pub fn ordinary(self) -> Option<f64> {
        (self.is_zero() || self.exponent.abs() <= TWO_FACTORS).then(|| self.mantissa * exp2(self.exponent))
    }

    /// Compares by value.
    #[inline]
    pub fn compare(self, other: Self) -> Ordering {
        if self.mantissa > 0.0 && other.mantissa > 0.0 {
            return self.exponent.cmp(&other.exponent).then(self.mantissa.total_cmp(&other.mantissa));
        }
        self.compare_signed(other)
    }

    fn compare_signed(self, other: Self) -> Ordering {
        let key = |x: Self| {
            let size = x.exponent.saturating_add(i64::MAX / 2);
            let signed = if x.is_zero() { 0 } else { size.max(1) * x.mantissa.signum() as i64 };
            (signed, x.mantissa)
        };
        let ((size, mantissa), (their_size, theirs)) = (key(self), key(other));
        size.cmp(&their_size).then(mantissa.total_cmp(&theirs))
    }
}

/// Reads a number from a state, and refuses any that does not have the form that all operations rely on.
impl TryFrom<(f64, i64)> for Scaled {
    type Error = &'static str;
    fn try_from((mantissa, exponent): (f64, i64)) -> Result<Self, Self::Error> {
        let normal = mantissa == 0.0 || (1.0..2.0).contains(&mantissa.abs());
        let fits = normal && exponent.unsigned_abs() <= EXPONENT_LIMIT.unsigned_abs();
        if fits { Ok(Self { mantissa, exponent }) } else { Err("not a number of the form m · 2^e") }
    }
}

impl From<f64> for Scaled {
    fn from(x: f64) -> Self {
        Self::new(x, 0)
    }
}

impl Mul for Scaled {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::new(self.mantissa * other.mantissa, self.exponent.saturating_add(other.exponent))
    }
}

/// Divides by a number that is not zero.
impl Div for Scaled {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        Self::new(self.mantissa / other.mantissa, self.exponent - other.exponent)
    }
}

impl Add for Scaled {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        if self.is_zero() {
            return other;
        }
        if other.is_zero() {
            return self;
        }
        let (big, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let shift = (big.exponent - small.exponent).min(ALIGN_LIMIT);
        Self::new(big.mantissa + small.mantissa * exp2(-shift), big.exponent)
    }
}

impl Neg for Scaled {
    type Output = Self;
    fn neg(self) -> Self {
        Self { mantissa: -self.mantissa, ..self }
    }
}

impl Sub for Scaled {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exp2_spans_the_range() {
        assert_eq!(exp2(0), 1.0);
        assert_eq!(exp2(-1022), f64::MIN_POSITIVE);
        assert_eq!(exp2(1023), 2f64.powi(1023));
        assert_eq!(exp2(-1023), 0.0);
        assert_eq!(exp2(1024), f64::INFINITY);
    }

    #[test]
    fn products_far_beyond_f64_come_back() {
        let (mut x, tiny, huge) = (Scaled::ONE, Scaled::from(1e-200), Scaled::from(1e200));
        for _ in 0..1000 {
            x = x * tiny;
        }
        assert!(x.to_f64().is_none());
        assert!((x.log10() + 200_000.0).abs() < 1e-6);
        for _ in 0..1000 {
            x = x * huge;
        }
        assert!((x.to_f64().unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn subnormals_are_exact() {
        for x in [5e-324, 3.3e-310, f64::MIN_POSITIVE, f64::MAX, -1e-320] {
            assert_eq!(Scaled::from(x).to_f64(), Some(x));
        }
    }

    proptest! {
        #[test]
        fn rounds_as_f64_does(a in -1e100..1e100f64, b in -1e-100..1e100f64, k in -60..60i32) {
            let b = b * 2f64.powi(k);
            prop_assert_eq!((Scaled::from(a) * Scaled::from(b)).to_f64().unwrap_or(0.0), a * b);
            prop_assert_eq!((Scaled::from(a) + Scaled::from(b)).lossy_f64(), a + b);
            prop_assert_eq!((Scaled::from(a) - Scaled::from(b)).lossy_f64(), a - b);
            prop_assert_eq!(Scaled::from(a.abs()).sqrt().lossy_f64(), a.abs().sqrt());
            prop_assert_eq!(Scaled::from(a).abs().lossy_f64(), a.abs());
            prop_assert_eq!(Scaled::from(a).compare(Scaled::from(b)), a.total_cmp(&b));
            if b != 0.0 {
                prop_assert_eq!((Scaled::from(a) / Scaled::from(b)).lossy_f64(), a / b);
                prop_assert!((Scaled::from(b).log10() - b.abs().log10()).abs() < 1e-12);
            }
        }

        /// Shows that numbers far outside of the range of f64 behave like those inside.
        #[test]
        fn a_common_exponent_changes_no_digit(a in -1e9..1e9f64, b in -1e9..1e9f64, e in -1_000_000..1_000_000i64) {
            let (x, y) = (Scaled::new(a, e), Scaled::new(b, e));
            prop_assert_eq!((x + y).relative_to(e), a + b);
            prop_assert_eq!((x - y).relative_to(e), a - b);
            prop_assert_eq!((x * y).relative_to(2 * e), a * b);
            prop_assert_eq!(x.compare(y), a.total_cmp(&b));
            prop_assert_eq!(Scaled::new(a.abs(), 2 * e).sqrt().relative_to(e), a.abs().sqrt());
            prop_assert_eq!(x.to_f64().is_some(), a == 0.0 || x.exponent().abs() < 1023 || x.lossy_f64().is_normal());
            let (integer, exponent) = x.to_integer();
            prop_assert_eq!(Scaled::new(integer as f64, exponent), x);
            if b != 0.0 {
                prop_assert_eq!((x / y).lossy_f64(), a / b);
            }
        }
    }
}
