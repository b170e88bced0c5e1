//! Order-independent sums for every step t at once, such as Σ_i ρ_{1:t}^{(i)}: pre-rounded (binned) summation after
//! Demmel & Nguyen (2015), on eight steps together.
//!
//! Bin k counts integer multiples of 2^{40k}. An addend x is cut into three such integers, for the bins k, k−1, k−2 below
//! the largest addend seen at its step; what is left, under 2^-80 of that largest addend, is dropped. An addend's own
//! top bin is the lowest k with |x| < 2^{40k+39}: in every bin above, x rounds to 0. So a cut made while the window was
//! low and shifted since is the cut that a high window makes at once, and as integers add associatively, no order and no
//! partition can change the sum.

use std::hint::black_box;

use serde::de::Error;
use serde::{Deserialize, Serialize};

use crate::block::{Block, LANES};
use crate::scaled::{EXPONENT_LIMIT, Scaled, exp2};
use crate::sum::Sum;

/// Bits a bin.
const WIDTH: i64 = 40;
/// Bins kept below the largest addend.
const FOLD: usize = 3;
/// Adding 1.5 · 2^52 rounds to an integer, which then stands in the low bits of the sum …
const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// … and 2^-40, 2^-80 of it to an integer in units of the bins below.
const ROUNDERS: [f64; FOLD] = [ROUNDER, ROUNDER / BIN, ROUNDER / BIN / BIN];
/// A bin in units of the one below.
const BIN: f64 = (1u64 << WIDTH) as f64;
/// What is less than this many units rounds to 0 in the bin above.
const LIMIT: f64 = BIN / 2.0;
/// Additions of 40-bit integers that an i64 holds for certain.
const FLUSH: u32 = 1 << 22;
/// The window of a step without addends.
const EMPTY: i64 = i64::MIN / 256;

/// What the hot loop touches: eight steps, on cache lines of their own.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Cell {
    /// 2^{-40k}: turns an addend into units of its top bin. Saturates, so that an addend out of range shows.
    scale: [f64; LANES],
    /// Sums of the bit patterns of (addend + ROUNDER) of each bin.
    bits: [[i64; LANES]; FOLD],
    adds: u32,
}

/// What it does not: the windows and the flushed sums.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Window {
    top: i64,
    totals: [i128; FOLD],
}

/// A sum for each step.
#[derive(Clone, Debug, Default)]
pub struct StepSums {
    cells: Vec<Cell>,
    windows: Vec<Window>,
}

#[inline(always)]
fn scale_for(top: i64, exponent: i64) -> f64 {
    let k = exponent - WIDTH * top;
    // Addends are within 2^-700 and 2^600: beyond ±1000 they are certainly above, or below, all bins.
    if k < -1000 { 0.0 } else { exp2(k.min(1000)) }
}

impl StepSums {
    /// Makes room for `blocks` blocks of steps.
    pub fn grow(&mut self, blocks: usize) {
        if self.cells.len() < blocks {
            let cell = Cell { scale: [scale_for(EMPTY, 0); LANES], bits: [[0; LANES]; FOLD], adds: 0 };
            self.cells.resize(blocks, cell);
            self.windows.resize(blocks * LANES, Window { top: EMPTY, totals: [0; FOLD] });
        }
    }

    /// Adds x(i) · 2^exponent to the steps of block b + i, for each i < count. What does not fit is computed once more:
    /// kept for that rare case, it would be written to memory every time.
    #[inline(always)]
    pub fn add_blocks(&mut self, b: usize, count: usize, x: impl Fn(usize) -> Block<f64>, exponent: i64) {
        if exponent == 0 {
            for i in 0..count {
                let scale = self.cells[b + i].scale;
                if !self.add(b + i, x(i), scale) {
                    self.add_slowly(b + i, x(black_box(i)), 0);
                }
            }
        } else {
            for i in 0..count {
                let tops = &self.windows[(b + i) * LANES..][..LANES];
                let scale = std::array::from_fn(|j| scale_for(tops[j].top, exponent));
                if !self.add(b + i, x(i), scale) {
                    self.add_slowly(b + i, x(black_box(i)), exponent);
                }
            }
        }
    }

    /// Adds x to the steps of block b, with x · scale in units of their top bins; false if it does not fit there.
    #[inline(always)]
    fn add(&mut self, b: usize, x: Block<f64>, scale: [f64; LANES]) -> bool {
        let cell = &mut self.cells[b];
        let mut rest = (x * Block(scale)).0;
        let fits = rest.iter().fold(true, |fits, r| fits & (r.abs() < LIMIT));
        if !fits || cell.adds == FLUSH {
            return false;
        }
        cell.adds += 1;
        for (bits, rounder) in cell.bits.iter_mut().zip(ROUNDERS) {
            for j in 0..LANES {
                let rounded = rest[j] + rounder;
                bits[j] = bits[j].wrapping_add(rounded.to_bits().cast_signed());
                rest[j] -= rounded - rounder;
            }
        }
        true
    }

    #[cold]
    fn add_slowly(&mut self, b: usize, x: Block<f64>, exponent: i64) {
        for (j, &x) in x.0.iter().enumerate() {
            self.add_one(b * LANES + j, Scaled::new(x, exponent));
        }
    }

    /// Adds x to the step with index t−1.
    pub fn add_one(&mut self, index: usize, x: Scaled) {
        if x.is_zero() {
            return;
        }
        self.flush(index / LANES);
        let window = &mut self.windows[index];
        window.raise((x.exponent() + 1).div_euclid(WIDTH));
        self.cells[index / LANES].scale[index % LANES] = scale_for(window.top, 0);
        let mut rest = x.relative_to(WIDTH * window.top);
        for total in &mut window.totals {
            let integer = rest.round_ties_even();
            *total += integer as i128;
            rest = (rest - integer) * BIN;
        }
    }

    fn flush(&mut self, b: usize) {
        let cell = &mut self.cells[b];
        if cell.adds == 0 {
            return;
        }
        let offsets = ROUNDERS.map(|rounder| i64::from(cell.adds).wrapping_mul(rounder.to_bits().cast_signed()));
        for (j, window) in self.windows[b * LANES..][..LANES].iter_mut().enumerate() {
            for ((total, bits), offset) in window.totals.iter_mut().zip(&cell.bits).zip(offsets) {
                *total += i128::from(bits[j].wrapping_sub(offset));
            }
        }
        cell.bits = [[0; LANES]; FOLD];
        cell.adds = 0;
    }

    /// Adds all of another set of sums.
    pub fn merge(&mut self, other: &mut Self) {
        self.grow(other.cells.len());
        for b in 0..other.cells.len() {
            other.flush(b);
            self.flush(b);
        }
        for (index, theirs) in other.windows.iter().enumerate().filter(|(_, w)| w.top != EMPTY) {
            let ours = &mut self.windows[index];
            ours.raise(theirs.top);
            let offset = (ours.top - theirs.top).min(FOLD as i64) as usize;
            for (total, their) in ours.totals.iter_mut().skip(offset).zip(theirs.totals) {
                *total += their;
            }
            self.cells[index / LANES].scale[index % LANES] = scale_for(ours.top, 0);
        }
    }

    /// The sum of the step with index t−1.
    pub fn sum(&mut self, index: usize) -> Sum {
        let mut sum = Sum::new();
        if index >= self.windows.len() {
            return sum;
        }
        self.flush(index / LANES);
        let Window { top, totals } = self.windows[index];
        for (k, total) in (0..).zip(totals) {
            let (high, low) = (total >> 64, total & i128::from(u64::MAX));
            sum.add_integer(low, WIDTH * (top - k));
            sum.add_integer(high, WIDTH * (top - k) + 64);
        }
        sum
    }
}

impl Window {
    fn raise(&mut self, bin: i64) {
        if self.top == EMPTY {
            self.top = bin;
        } else if bin > self.top {
            let shift = (bin - self.top).min(FOLD as i64) as usize;
            self.totals.copy_within(..FOLD - shift, shift);
            self.totals[..shift].fill(0);
            self.top = bin;
        }
    }
}

impl Serialize for StepSums {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut flushed = self.clone();
        (0..flushed.cells.len()).for_each(|b| flushed.flush(b));
        flushed.windows.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StepSums {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let windows = Vec::<Window>::deserialize(deserializer)?;
        let mut sums = Self::default();
        sums.grow(windows.len().div_ceil(LANES));
        for (index, window) in windows.into_iter().enumerate() {
            if window.top != EMPTY && window.top.unsigned_abs() > EXPONENT_LIMIT.unsigned_abs() {
                return Err(D::Error::custom("not a sum"));
            }
            sums.cells[index / LANES].scale[index % LANES] = scale_for(window.top, 0);
            sums.windows[index] = window;
        }
        Ok(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn total(blocks: &[([f64; LANES], i64)]) -> StepSums {
        let mut sums = StepSums::default();
        sums.grow(1);
        for &(x, e) in blocks {
            sums.add_blocks(0, 1, |_| Block(x), e);
        }
        sums
    }

    fn bits(sums: &mut StepSums) -> Vec<(u64, i64)> {
        (0..LANES).map(|j| sums.sum(j).value()).map(|x| (x.mantissa().to_bits(), x.exponent())).collect()
    }

    #[test]
    fn equals_the_exact_sum() {
        let blocks: Vec<_> = (1..2000).map(|i| (std::array::from_fn(|j| (i * j) as f64 / 3.0), 0)).collect();
        let mut sums = total(&blocks);
        for j in 0..LANES {
            let mut exact = Sum::new();
            blocks.iter().for_each(|(x, _)| exact.add(x[j].into()));
            assert_eq!(sums.sum(j).value(), exact.value());
        }
    }

    #[test]
    fn blocks_with_an_exponent_are_the_sums_of_their_steps() {
        let (mut together, mut single) = (StepSums::default(), StepSums::default());
        together.grow(5);
        single.grow(5);
        for (round, exponent) in [40, -90, 300, 0, -40].into_iter().enumerate() {
            for b in 0..4 {
                let x = |i: usize| {
                    let size = 2f64.powi(60 * (b + i) as i32 - 90);
                    Block(std::array::from_fn(|j| (1 + round + i * LANES + j) as f64 / 3.0 * size))
                };
                together.add_blocks(b, 2, x, exponent);
                for (i, j) in (0..2).flat_map(|i| (0..LANES).map(move |j| (i, j))) {
                    single.add_one((b + i) * LANES + j, Scaled::new(x(i).0[j], exponent));
                }
            }
        }
        for step in 0..5 * LANES {
            assert_eq!(together.sum(step).value(), single.sum(step).value(), "step {step}");
        }
    }

    #[test]
    fn empty_and_zero_steps_are_zero() {
        let mut sums = total(&[([0.0; LANES], 0), ([0.0; LANES], -3000)]);
        assert!(sums.sum(3).value().is_zero());
        assert!(sums.sum(99).value().is_zero());
    }

    /// −0.67 units of the lowest bin: it rounds to −1 there, or to 0 where a window below has cut it before.
    #[test]
    fn what_rounds_up_into_the_lowest_bin_does_so_in_any_order() {
        let block = |x: f64| ([x; LANES], 0);
        let (large, minus_large, small) = (block(2f64.powi(85)), block(-2f64.powi(85)), block(-0.67));
        let sums = |blocks| bits(&mut total(blocks));
        assert_eq!(sums(&[large, minus_large, small]), sums(&[small, large, minus_large]));
    }

    proptest! {
        #[test]
        fn any_order_partition_and_transport_gives_the_same_bits(
            xs in prop::collection::vec((prop::array::uniform8(-1.0..1.0f64), -60..60i32, -2..3i64), 1..40),
            cut in 0..40usize
        ) {
            let mut blocks: Vec<_> =
                xs.iter().map(|(x, k, e)| (x.map(|x| x * 2f64.powi(*k)), e * 300)).collect();
            // Every second one cancels, so that the lowest bins show.
            let cancelling: Vec<_> = blocks.iter().skip(1).step_by(2).map(|(x, e)| (x.map(|x| -x), *e)).collect();
            blocks.extend(cancelling);
            let cut = cut.min(blocks.len());
            let reversed: Vec<_> = blocks[..cut].iter().rev().copied().collect();
            let mut merged = total(&blocks[cut..]);
            let bytes = postcard::to_stdvec(&total(&reversed)).unwrap();
            merged.merge(&mut postcard::from_bytes(&bytes).unwrap());
            prop_assert_eq!(bits(&mut total(&blocks)), bits(&mut merged));
        }
    }
}
