//! The running sum of one trajectory's terms, a lane for each step modulo eight, with a common power of two.

use serde::{Deserialize, Serialize};

use crate::block::{Block, LANES};
use crate::scaled::{Scaled, exp2};

/// Σ over lanes of `sums` · 2^`exponent`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Lanes {
    sums: [f64; LANES],
    exponent: i64,
}

impl Lanes {
    /// Brings the lanes to a common exponent with terms of exponent `e`; returns what those terms are to be multiplied by.
    #[inline(always)]
    pub fn align(&mut self, e: i64) -> f64 {
        if self.exponent == e { 1.0 } else { self.align_slowly(e) }
    }

    #[cold]
    fn align_slowly(&mut self, e: i64) -> f64 {
        if self.sums == [0.0; LANES] {
            self.exponent = e;
        } else if e > self.exponent {
            let scale = exp2(self.exponent - e);
            self.sums = self.sums.map(|x| x * scale);
            self.exponent = e;
        }
        exp2(e - self.exponent)
    }

    /// The sums, relative to 2^exponent.
    #[inline(always)]
    pub fn get(&self) -> Block<f64> {
        Block(self.sums)
    }

    /// Puts the sums back.
    #[inline(always)]
    pub fn set(&mut self, sums: Block<f64>) {
        self.sums = sums.0;
    }

    /// The sums as wide floats.
    pub fn get_scaled(&self) -> Block<Scaled> {
        Block(self.sums.map(|x| Scaled::new(x, self.exponent)))
    }

    /// Puts wide sums back; what is 2^-1000 of the largest lane vanishes.
    pub fn set_scaled(&mut self, sums: Block<Scaled>) {
        let largest = sums.0.iter().filter(|x| !x.is_zero()).map(|x| x.exponent()).max();
        self.exponent = largest.unwrap_or(0);
        self.sums = sums.0.map(|x| if x.is_zero() { 0.0 } else { x.relative_to(self.exponent) });
    }

    /// The sum of the lanes.
    pub fn total(&self) -> Scaled {
        let [a, b, c, d, e, f, g, h] = self.sums;
        Scaled::new(((a + b) + (c + d)) + ((e + f) + (g + h)), self.exponent)
    }
}
