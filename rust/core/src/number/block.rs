//! Blocks of eight consecutive steps of one trajectory, on which one operation computes together.
//!
//! The same generic code runs on `Block<f64>`, which the compiler turns into vector instructions, and on
//! `Block<Scaled>`, which never leaves its range. Both round alike, so which one ran cannot be seen in the result.

use std::ops::{Add, Mul, Sub};

use crate::number::scaled::Scaled;

/// Steps in a block.
pub const LANES: usize = 8;

/// Eight consecutive values of a column.
pub type Eight = [f64; LANES];

/// A number that the recursions compute with: f64, or [`Scaled`] where f64 would leave its range.
pub trait Real: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    /// Converts an f64 without rounding.
    fn real(x: f64) -> Self;
}

impl Real for f64 {
    #[inline(always)]
    fn real(x: f64) -> Self {
        x
    }
}

impl Real for Scaled {
    fn real(x: f64) -> Self {
        x.into()
    }
}

/// Eight trajectories side by side, each in its lane.
impl Real for Block<f64> {
    #[inline(always)]
    fn real(x: f64) -> Self {
        Self::splat(x)
    }
}

/// The values of eight consecutive steps.
#[derive(Clone, Copy, Debug)]
pub struct Block<T>(pub [T; LANES]);

impl<T: Real> Block<T> {
    /// Loads eight steps of a column.
    #[inline(always)]
    pub fn load(steps: &Eight) -> Self {
        Self(steps.map(T::real))
    }

    /// Puts the same number into all lanes.
    #[inline(always)]
    pub fn splat(x: f64) -> Self {
        Self([T::real(x); LANES])
    }

    /// Computes ρ_1, ρ_1ρ_2, …, ρ_1⋯ρ_8 in three rounds (after Sklansky 1960): pairs, then fours, then all eight.
    /// Ratios of 1 behind the last step of a trajectory leave its product unchanged, to the bit. `one` must be 1.
    #[inline(always)]
    pub fn cumulative_product(self, one: T) -> Self {
        let [a, _, c, _, e, _, g, _] = self.0;
        let pairs = self * Self([one, a, one, c, one, e, one, g]);
        let [_, b, _, _, _, f, _, _] = pairs.0;
        let fours = pairs * Self([one, one, b, b, one, one, f, f]);
        let [_, _, _, d, _, _, _, _] = fours.0;
        fours * Self([one, one, one, one, d, d, d, d])
    }
}

macro_rules! lanewise {
    ($trait:ident, $method:ident) => {
        impl<T: Real> $trait for Block<T> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(std::array::from_fn(|j| self.0[j].$method(other.0[j])))
            }
        }
    };
}
lanewise!(Add, add);
lanewise!(Sub, sub);
lanewise!(Mul, mul);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cumulative_products_of_powers_of_two() {
        let block = Block::<f64>::load(&[2.0, 4.0, 0.5, 1.0, 8.0, 0.25, 2.0, 2.0]);
        assert_eq!(block.cumulative_product(1.0).0, [2.0, 8.0, 4.0, 4.0, 32.0, 8.0, 16.0, 32.0]);
    }

    #[test]
    fn a_ratio_of_one_changes_no_bit() {
        let ratios = [0.1, 0.7, 1.3, 0.9, 1.7, 0.3, 1.1, 0.6];
        for steps in 1..LANES {
            let mut absorbed = ratios;
            absorbed[steps..].fill(1.0);
            let last = Block(ratios).cumulative_product(1.0).0[steps - 1];
            assert_eq!(Block(absorbed).cumulative_product(1.0).0[steps..], vec![last; LANES - steps]);
        }
    }
}
