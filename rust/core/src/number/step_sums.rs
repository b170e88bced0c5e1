//! Order-independent sums for every step t at once, such as Σ_i ρ_{1:t}^{(i)}: pre-rounded (binned) summation after
//! Demmel & Nguyen (2015), on eight steps together.
//!
//! Bin k counts integer multiples of 2^{40k}. An addend x is cut into three such integers, for the bins k, k−1, k−2,
//! where k is the top bin of the largest addend seen at its step. The remainder, under 2^-80 of that largest addend, is
//! dropped. The top bin of an addend is the lowest k with |x| < 2^{40k+39}: in every bin above, x rounds to 0. So an
//! addend that was cut while the window of bins was low, and was shifted since, has the same integers as one that was
//! cut in the high window at once. Integers add associatively, so no order and no partition of the addends changes the sum.

use std::collections::BTreeMap;
use std::hint::black_box;

use serde::de::Error;
use serde::{Deserialize, Serialize};

use crate::number::block::{Block, LANES};
use crate::number::scaled::{EXPONENT_LIMIT, Scaled, exp2};
use crate::number::sum::Sum;

/// The number of bits of a bin.
const WIDTH: i64 = 40;
/// The number of bins kept, from that of the largest addend downwards.
const FOLD: usize = 3;
/// Adding 1.5 · 2^52 rounds to an integer, which then stands in the low bits of the sum.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// The rounders of the three bins: 2^-40 and 2^-80 of the first one round to integers in units of the bins below.
const ROUNDERS: [f64; FOLD] = [ROUNDER, ROUNDER / BIN, ROUNDER / BIN / BIN];
/// The unit of a bin in units of the bin below.
const BIN: f64 = (1u64 << WIDTH) as f64;
/// A number of less than this many units rounds to 0 in the bin above.
const LIMIT: f64 = BIN / 2.0;
/// The number of additions of 40-bit integers that an i64 certainly holds.
const FLUSH: u32 = 1 << 22;
/// The limit for totals that are read from a state.
const LARGEST: u128 = 1 << 100;

/// The integers of eight steps, in units of their bins.
type Totals<T> = [[T; LANES]; FOLD];

/// The sums of eight steps, on four cache lines.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Cell {
    /// The factor that turns an addend into units of its top bin, a plain float, because the hot loop loads all eight
    /// at once.
    scale: [f64; LANES],
    /// For each bin, the sum over all additions of the bit pattern of (addend + ROUNDER).
    bits: Totals<i64>,
}

/// The factor 2^{-40k} for the top bin k of a step. Where that is beyond 2^±1000, it is a number of about 2^±1008 whose
/// fraction is |k|. Addends are between 2^-700 and 2^600, so they are then certainly above, or below, all bins.
#[derive(Clone, Copy, Debug)]
struct Scale(f64);

/// One sum for each step.
#[derive(Clone, Debug, Default)]
pub struct StepSums {
    cells: Vec<Cell>,
    /// The number of additions in the bits of each cell.
    adds: Vec<u32>,
    /// Totals that the bits of a cell could not hold.
    overflow: BTreeMap<usize, Totals<i128>>,
}

/// The sum of one step as it is serialised.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Window {
    top: Option<i64>,
    totals: [i128; FOLD],
}

impl Scale {
    /// The scale of a step without addends.
    const EMPTY: Self = Self(f64::from_bits((1010 + 1023) << 52));
    /// The exponent, positive or negative, that marks a top bin whose scale is beyond 2^±1000.
    const FAR: i64 = 1008;
    const FRACTION: u64 = (1 << 52) - 1;

    fn new(top: i64) -> Self {
        if top.abs() * WIDTH <= 1000 {
            return Self(exp2(-WIDTH * top));
        }
        let far = exp2(if top < 0 { Self::FAR } else { -Self::FAR });
        Self(f64::from_bits(far.to_bits() | top.unsigned_abs()))
    }

    /// Returns 40k, or a number far below all bins where there is no addend.
    #[inline(always)]
    fn exponent(self) -> i64 {
        let exponent = (self.0.to_bits() >> 52).cast_signed() - 1023;
        let fraction = (self.0.to_bits() & Self::FRACTION).cast_signed();
        let far = if exponent > 0 { -WIDTH * fraction } else { WIDTH * fraction };
        let near = if exponent > Self::FAR { i64::MIN / 4 } else { -exponent };
        if fraction == 0 { near } else { far }
    }

    /// Returns k, if there is an addend.
    fn top(self) -> Option<i64> {
        (self.0 != Self::EMPTY.0).then(|| self.exponent() / WIDTH)
    }

    /// Returns 2^{e-40k}, which turns an addend of 2^e into units of the top bin.
    #[inline(always)]
    fn times(self, e: i64) -> f64 {
        let k = e - self.exponent();
        if k < -1000 { 0.0 } else { exp2(k.min(1000)) }
    }
}

/// Returns the part of the bits that `adds` additions of the rounders leave beside the integers.
fn offsets(adds: u32) -> [i64; FOLD] {
    ROUNDERS.map(|rounder| i64::from(adds).wrapping_mul(rounder.to_bits().cast_signed()))
}

impl StepSums {
    /// The number of bytes that one step takes.
    pub const BYTES: u64 = ((size_of::<Cell>() + size_of::<u32>()) / LANES) as u64;

    /// Returns the number of blocks of steps that there is room for.
    pub fn blocks(&self) -> usize {
        self.cells.len()
    }

    /// Makes room for `blocks` blocks of steps.
    #[inline(always)]
    pub fn grow(&mut self, blocks: usize) {
        if self.cells.len() < blocks {
            self.grow_slowly(blocks);
        }
    }

    #[cold]
    fn grow_slowly(&mut self, blocks: usize) {
        let (have, len) = (self.cells.capacity(), self.cells.len());
        if have < blocks {
            let room = blocks.max(len + len / 4) - len;
            self.cells.reserve_exact(room);
            self.adds.reserve_exact(room);
        }
        self.cells.resize(blocks, Cell { scale: [Scale::EMPTY.0; LANES], bits: [[0; LANES]; FOLD] });
        self.adds.resize(blocks, 0);
    }

    /// Adds x(i) · 2^exponent to the steps of block b + i, for each i < count. Where x(i) does not fit, it is computed
    /// a second time. Keeping it for that rare case would write it to memory every time.
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
                let scale = self.scales(b + i, exponent);
                if !self.add(b + i, x(i), scale) {
                    self.add_slowly(b + i, x(black_box(i)), exponent);
                }
            }
        }
    }

    /// Returns the scales of block b for addends of 2^e. It is kept out of the loops, which are compiled for every sum.
    #[inline(never)]
    fn scales(&self, b: usize, e: i64) -> [f64; LANES] {
        self.cells[b].scale.map(|scale| Scale(scale).times(e))
    }

    /// Adds x to the steps of block b, with x · scale in units of their top bins. Returns false if it does not fit
    /// there.
    #[inline(always)]
    fn add(&mut self, b: usize, x: Block<f64>, scale: [f64; LANES]) -> bool {
        let (cell, adds) = (&mut self.cells[b], &mut self.adds[b]);
        let mut rest = (x * Block(scale)).0;
        let fits = rest.iter().fold(true, |fits, r| fits & (r.abs() < LIMIT));
        if !fits || *adds == FLUSH {
            return false;
        }
        *adds += 1;
        for (bits, rounder) in cell.bits.iter_mut().zip(ROUNDERS) {
            for j in 0..LANES {
                let rounded = rest[j] + rounder;
                bits[j] = bits[j].wrapping_add(rounded.to_bits().cast_signed());
                rest[j] -= rounded - rounder;
            }
        }
        true
    }

    /// Adds all eight lanes of x(t−1) to the sum of step t, for t = 1, …, `steps` ≤ 8.
    #[inline(always)]
    pub fn add_across(&mut self, steps: usize, x: impl Fn(usize) -> Block<f64>) {
        self.grow(1);
        if self.adds[0] + LANES as u32 > FLUSH {
            self.spill(0);
        }
        self.count(0, LANES as u32);
        for t in 0..steps {
            if !self.add_to_step(t, x(t)) {
                self.add_slowly_to_step(t, x(black_box(t)));
            }
        }
    }

    /// Adds x, whose additions have been counted, to one step of the first block. Returns false if it does not fit there.
    #[inline(always)]
    fn add_to_step(&mut self, t: usize, x: Block<f64>) -> bool {
        let cell = &mut self.cells[0];
        let mut rest = (x * Block::splat(cell.scale[t])).0;
        if !rest.iter().fold(true, |fits, r| fits & (r.abs() < LIMIT)) {
            return false;
        }
        for (bits, rounder) in cell.bits.iter_mut().zip(ROUNDERS) {
            let mut integers = 0i64;
            for rest in &mut rest {
                let rounded = *rest + rounder;
                integers = integers.wrapping_add(rounded.to_bits().cast_signed());
                *rest -= rounded - rounder;
            }
            let offset = (LANES as i64).wrapping_mul(rounder.to_bits().cast_signed());
            bits[t] = bits[t].wrapping_add(integers.wrapping_sub(offset));
        }
        true
    }

    #[cold]
    fn add_slowly_to_step(&mut self, t: usize, x: Block<f64>) {
        x.0.into_iter().for_each(|x| self.add_one(t, x.into()));
    }

    #[cold]
    fn add_slowly(&mut self, b: usize, x: Block<f64>, exponent: i64) {
        self.add_scaled(b, x.0.map(|x| Scaled::new(x, exponent)));
    }

    /// Adds x to the step with index t−1.
    pub fn add_one(&mut self, index: usize, x: Scaled) {
        if !x.is_zero() {
            let (b, j) = (index / LANES, index % LANES);
            self.add_scaled(b, std::array::from_fn(|lane| if lane == j { x } else { Scaled::ZERO }));
        }
    }

    /// Adds x to the steps of block b.
    fn add_scaled(&mut self, b: usize, x: [Scaled; LANES]) {
        if self.adds[b] == FLUSH {
            self.spill(b);
        }
        for (j, x) in x.into_iter().enumerate().filter(|(_, x)| !x.is_zero()) {
            self.raise(b, j, (x.exponent() + 1).div_euclid(WIDTH));
            let cell = &mut self.cells[b];
            let mut rest = x.relative_to(Scale(cell.scale[j]).exponent());
            for bits in &mut cell.bits {
                let integer = rest.round_ties_even();
                bits[j] = bits[j].wrapping_add(integer as i64);
                rest = (rest - integer) * BIN;
            }
        }
        self.count(b, 1);
    }

    /// Raises the window of step j of block b until bin k is in it. Returns how far below the top that bin is, FOLD at
    /// most.
    fn raise(&mut self, b: usize, j: usize, k: i64) -> usize {
        let (totals, cell) = (self.total(b, j), &mut self.cells[b]);
        let Some(top) = Scale(cell.scale[j]).top() else {
            cell.scale[j] = Scale::new(k).0;
            return 0;
        };
        if k <= top {
            return (top - k).min(FOLD as i64) as usize;
        }
        let shift = (k - top).min(FOLD as i64) as usize;
        cell.scale[j] = Scale::new(k).0;
        let lower = |k: usize| k.checked_sub(shift);
        for (k, offset) in offsets(self.adds[b]).into_iter().enumerate() {
            cell.bits[k][j] = offset.wrapping_add(lower(k).map_or(0, |k| totals[k]));
        }
        if let Some(over) = self.overflow.get_mut(&b) {
            (0..FOLD).rev().for_each(|k| over[k][j] = lower(k).map_or(0, |k| over[k][j]));
        }
        0
    }

    /// Returns the integers in the bits of step j of block b.
    fn total(&self, b: usize, j: usize) -> [i64; FOLD] {
        let offsets = offsets(self.adds[b]);
        std::array::from_fn(|k| self.cells[b].bits[k][j].wrapping_sub(offsets[k]))
    }

    /// Counts additions to a block whose integers are already in its bits.
    #[inline(always)]
    fn count(&mut self, b: usize, adds: u32) {
        self.adds[b] += adds;
        for (bits, offset) in self.cells[b].bits.iter_mut().zip(offsets(adds)) {
            bits.iter_mut().for_each(|bits| *bits = bits.wrapping_add(offset));
        }
    }

    /// Moves the totals in the bits of a block to the overflow.
    fn spill(&mut self, b: usize) {
        for j in 0..LANES {
            let (totals, over) = (self.total(b, j), self.overflow.entry(b).or_default());
            (0..FOLD).for_each(|k| over[k][j] += i128::from(totals[k]));
        }
        self.cells[b].bits = [[0; LANES]; FOLD];
        self.adds[b] = 0;
    }

    /// Adds the sums of another set.
    pub fn merge(&mut self, mut other: Self) {
        if self.cells.len() < other.cells.len() {
            std::mem::swap(self, &mut other);
        }
        for b in 0..other.cells.len() {
            if self.adds[b] + other.adds[b] > FLUSH {
                self.spill(b);
            }
            let spilled = other.overflow.get(&b);
            for j in 0..LANES {
                let Some(top) = Scale(other.cells[b].scale[j]).top() else { continue };
                let (shift, theirs) = (self.raise(b, j, top), other.total(b, j));
                for k in shift..FOLD {
                    let bits = &mut self.cells[b].bits[k][j];
                    *bits = bits.wrapping_add(theirs[k - shift]);
                    if let Some(spilled) = spilled {
                        self.overflow.entry(b).or_default()[k][j] += spilled[k - shift][j];
                    }
                }
            }
            self.count(b, other.adds[b]);
        }
    }

    /// Returns the sum of the step with index t−1.
    pub fn sum(&self, index: usize) -> Sum {
        let mut sum = Sum::new();
        if index / LANES >= self.cells.len() {
            return sum;
        }
        let Window { top: Some(top), totals } = self.window(index) else { return sum };
        for (k, total) in (0..).zip(totals) {
            let (high, low) = (total >> 64, total & i128::from(u64::MAX));
            sum.add_integer(low, WIDTH * (top - k));
            sum.add_integer(high, WIDTH * (top - k) + 64);
        }
        sum
    }

    fn window(&self, index: usize) -> Window {
        let (b, j) = (index / LANES, index % LANES);
        let (bits, spilled) = (self.total(b, j), self.overflow.get(&b));
        let total = |k: usize| i128::from(bits[k]) + spilled.map_or(0, |spilled| spilled[k][j]);
        Window { top: Scale(self.cells[b].scale[j]).top(), totals: std::array::from_fn(total) }
    }
}

impl Serialize for StepSums {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..self.cells.len() * LANES).map(|index| self.window(index)))
    }
}

impl<'de> Deserialize<'de> for StepSums {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let windows = Vec::<Window>::deserialize(deserializer)?;
        let mut sums = Self::default();
        sums.grow(windows.len().div_ceil(LANES));
        for (b, windows) in windows.chunks(LANES).enumerate() {
            let largest = windows.iter().flat_map(|window| window.totals).map(i128::unsigned_abs).max().unwrap_or(0);
            let furthest = windows.iter().filter_map(|window| window.top).map(i64::unsigned_abs).max().unwrap_or(0);
            if largest > LARGEST || furthest > EXPONENT_LIMIT.unsigned_abs() {
                return Err(D::Error::custom("a sum that no log has"));
            }
            // The smallest number of additions that can give integers of this size.
            let adds = u32::try_from((largest >> WIDTH) + 1).ok().filter(|&adds| adds <= FLUSH);
            for (j, window) in windows.iter().enumerate() {
                sums.cells[b].scale[j] = window.top.map_or(Scale::EMPTY, Scale::new).0;
                for (k, total) in window.totals.into_iter().enumerate() {
                    match adds {
                        Some(_) => sums.cells[b].bits[k][j] = total as i64,
                        None => sums.overflow.entry(b).or_default()[k][j] = total,
                    }
                }
            }
            sums.count(b, adds.unwrap_or(0));
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

    fn bits(sums: &StepSums) -> Vec<(u64, i64)> {
        (0..LANES).map(|j| sums.sum(j).value()).map(|x| (x.mantissa().to_bits(), x.exponent())).collect()
    }

    #[test]
    fn equals_the_exact_sum() {
        let blocks: Vec<_> = (1..2000).map(|i| (std::array::from_fn(|j| (i * j) as f64 / 3.0), 0)).collect();
        let sums = total(&blocks);
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
        let sums = total(&[([0.0; LANES], 0), ([0.0; LANES], -3000)]);
        assert!(sums.sum(3).value().is_zero());
        assert!(sums.sum(99).value().is_zero());
    }

    /// An addend of −0.67 units of the lowest bin rounds to −1 there, or to 0 where a lower window has cut it before.
    #[test]
    fn what_rounds_up_into_the_lowest_bin_does_so_in_any_order() {
        let block = |x: f64| ([x; LANES], 0);
        let (large, minus_large, small) = (block(2f64.powi(85)), block(-2f64.powi(85)), block(-0.67));
        let sums = |blocks| bits(&total(blocks));
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
            // Every second addend cancels, so that the lowest bins show.
            let cancelling: Vec<_> = blocks.iter().skip(1).step_by(2).map(|(x, e)| (x.map(|x| -x), *e)).collect();
            blocks.extend(cancelling);
            let cut = cut.min(blocks.len());
            let reversed: Vec<_> = blocks[..cut].iter().rev().copied().collect();
            let mut merged = total(&blocks[cut..]);
            let bytes = postcard::to_stdvec(&total(&reversed)).unwrap();
            merged.merge(postcard::from_bytes(&bytes).unwrap());
            prop_assert_eq!(bits(&total(&blocks)), bits(&merged));
        }
    }

    #[test]
    fn a_scale_tells_its_bin_however_far_it_is() {
        for top in [0, 1, -1, 25, -25, 26, -26, 999, -123_456_789, 1 << 40] {
            assert_eq!((Scale::new(top).top(), Scale::new(top).exponent()), (Some(top), WIDTH * top));
            assert_eq!(Scale::new(top).times(WIDTH * top + 3), 8.0);
        }
        assert_eq!((Scale::EMPTY.top(), Scale::EMPTY.times(-3000)), (None, exp2(1000)));
    }

    #[test]
    fn more_additions_than_bits_hold_give_the_same_sums() {
        let block = ([1.0 / 3.0; LANES], 0);
        let mut many = total(&[block]);
        // This counts as if 2^22 addends had been added, so that the next addition spills the bits first.
        many.count(0, FLUSH - 1);
        let (mut few, one) = (total(&[block]), total(&[block]));
        many.add_blocks(0, 1, |_| Block(block.0), 0);
        few.add_blocks(0, 1, |_| Block(block.0), 0);
        assert_eq!((many.overflow.len(), many.adds[0]), (1, 1));
        assert_eq!(bits(&many), bits(&few));
        for sums in [&mut many, &mut few] {
            sums.count(0, FLUSH - 1 - sums.adds[0]);
            sums.merge(one.clone());
            sums.merge(one.clone());
            sums.add_one(3, Scaled::new(5.0, 90));
        }
        assert_eq!(bits(&many), bits(&few));
        let bytes = postcard::to_stdvec(&many).unwrap();
        assert_eq!(bits(&postcard::from_bytes(&bytes).unwrap()), bits(&few));
    }

    #[test]
    fn a_step_takes_few_bytes() {
        assert_eq!(StepSums::BYTES, 32);
    }
}
