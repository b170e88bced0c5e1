//! The fold of a piece of one trajectory: its terms are added to running sums, eight steps at a time.

use std::ops::Range;

use crate::number::block::{Block, Eight, LANES, Real};
use crate::number::running_sum::Lanes;
use crate::number::scaled::Scaled;
use crate::number::step_sums::StepSums;
use crate::pass::table::StepTable;

/// The terms that steps add to an estimator, with before = γ^{t−1} ρ_{1:t−1} and after = γ^{t−1} ρ_{1:t}. Another table
/// may take the place of γ^{t−1}.
pub trait Term {
    /// The number of weights among the factors of the term.
    const DEGREE: i64 = 1;

    /// Returns the terms of some blocks, which are then counted from the first of them.
    fn part(&self, blocks: Range<usize>) -> Self;

    /// Returns the terms of the eight steps of block b.
    fn term<T: Real>(&self, before: Block<T>, after: Block<T>, b: usize) -> Block<T>;
}

/// Consecutive blocks of one trajectory, with ρ_{1:t} = `c` · 2^`exponent`.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The cumulative ratios, preceded by the one before the first step.
    pub c: &'a [f64],
    /// The power of two of the cumulative ratios.
    pub exponent: i64,
    /// The index of the first block in the trajectory.
    pub block: usize,
    /// The number of steps; the rest of the last block is padding.
    pub steps: usize,
}

/// The terms of consecutive steps.
pub struct Run<'a> {
    /// The index t−1 of the first step.
    pub first: usize,
    /// The terms of the steps.
    pub terms: Terms<'a>,
}

/// Terms, one per step.
pub enum Terms<'a> {
    /// Terms in f64, with a common power of two.
    Plain(&'a [f64], i64),
    /// Terms of any magnitude.
    Scaled(&'a [Scaled]),
}

impl Piece<'_> {
    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.c.len() / LANES
    }

    /// Returns 1 for the steps of block b and 0 for its padding.
    #[inline(always)]
    pub fn mask<T: Real>(&self, b: usize) -> Block<T> {
        Block(std::array::from_fn(|j| T::real(f64::from(u8::from(b * LANES + j < self.steps)))))
    }

    /// Returns ρ_{1:t−1} and ρ_{1:t} of some blocks.
    #[inline(always)]
    fn weights(&self, blocks: Range<usize>) -> (&[Eight], &[Eight]) {
        (&self.c.as_chunks().0[blocks.clone()], &self.c[1..].as_chunks().0[blocks])
    }

    /// Adds the terms, each times the entry of a table, to a running sum.
    #[inline(always)]
    pub fn fold(&self, term: &impl Term, table: &StepTable, lanes: &mut Lanes) {
        let (blocks, mut b) = (self.blocks(), 0);
        while b < blocks {
            let stretch = table.stretch(self.block + b, blocks - b);
            let aligned = if stretch.tame { lanes.align(self.exponent + stretch.exponent) } else { None };
            let Some(scale) = aligned.map(Block::splat) else {
                let c = std::array::from_fn(|j| Scaled::new(self.c[b * LANES + j], self.exponent));
                fold_scaled(self, b, &c, term, table, lanes);
                b += 1;
                continue;
            };
            let end = b + stretch.values.len();
            // All slices are cut to the same length, so that the loop needs no bounds checks.
            let whole = b..end.min(self.steps / LANES).max(b);
            let (count, part) = (whole.len(), term.part(whole.clone()));
            let (previous, current) = self.weights(whole.clone());
            let values = &stretch.values[..count];
            let mut sums = lanes.get();
            for i in 0..count {
                let g = Block::load(&values[i]);
                let (before, after) = (g * Block::load(&previous[i]), g * Block::load(&current[i]));
                sums = sums + part.term(before, after, i) * scale;
            }
            if whole.end < end {
                let (previous, current) = self.weights(whole.end..whole.end + 1);
                let g = Block::load(&stretch.values[count]) * self.mask(whole.end);
                let (before, after) = (g * Block::load(&previous[0]), g * Block::load(&current[0]));
                sums = sums + term.term(before, after, whole.end) * scale;
            }
            lanes.set(sums);
            b = end;
        }
    }

    /// Passes the terms, each times the entry of a table, to `take` in runs of steps that share a power of two.
    #[inline(always)]
    pub fn each(&self, term: &impl Term, table: &StepTable, room: &mut Vec<Eight>, mut take: impl FnMut(Run)) {
        let (blocks, mut b) = (self.blocks(), 0);
        while b < blocks {
            let stretch = table.stretch(self.block + b, blocks - b);
            let (count, first) = (stretch.values.len(), (self.block + b) * LANES);
            if !stretch.tame {
                let c = std::array::from_fn(|j| Scaled::new(self.c[b * LANES + j], self.exponent));
                each_scaled(self, b, &c, term, table, &mut take);
                b += 1;
                continue;
            }
            let part = term.part(b..b + count);
            let (previous, current) = self.weights(b..b + count);
            room.resize(room.len().max(count), [0.0; LANES]);
            for (i, (terms, values)) in room.iter_mut().zip(stretch.values).enumerate() {
                let g = Block::<f64>::load(values);
                *terms = part.term(g * Block::load(&previous[i]), g * Block::load(&current[i]), i).0;
            }
            let steps = (self.steps - b * LANES).min(count * LANES);
            take(Run { first, terms: Terms::Plain(&room.as_flattened()[..steps], self.exponent + stretch.exponent) });
            b += count;
        }
    }

    /// Adds each term, without a table, to the sum of its step.
    #[inline(always)]
    pub fn scatter<T: Term>(&self, term: &T, sums: &mut StepSums) {
        let exponent = T::DEGREE * self.exponent;
        let whole = 0..self.blocks().min(self.steps / LANES);
        let part = term.part(whole.clone());
        let (previous, current) = self.weights(whole.clone());
        let x = |i: usize| part.term(Block::load(&previous[i]), Block::load(&current[i]), i);
        sums.add_blocks(self.block, whole.len(), x, exponent);
        if whole.end < self.blocks() {
            let (previous, current) = self.weights(whole.end..whole.end + 1);
            let x = term.term(Block::load(&previous[0]), Block::load(&current[0]), whole.end) * self.mask(whole.end);
            sums.add_blocks(self.block + whole.end, 1, |_| x, exponent);
        }
    }
}

/// Adds the terms of block b, whose weights `c` have any magnitude, to a running sum. `piece.c` is not read.
pub fn fold_scaled(
    piece: &Piece,
    b: usize,
    c: &[Scaled; LANES + 1],
    term: &impl Term,
    table: &StepTable,
    lanes: &mut Lanes,
) {
    lanes.set_scaled(lanes.get_scaled() + scaled_terms(piece, b, c, term, table));
}

fn scaled_terms(
    piece: &Piece,
    b: usize,
    c: &[Scaled; LANES + 1],
    term: &impl Term,
    table: &StepTable,
) -> Block<Scaled> {
    let g = table.scaled_block(piece.block + b) * piece.mask(b);
    let before = g * Block(std::array::from_fn(|j| c[j]));
    let after = g * Block(std::array::from_fn(|j| c[j + 1]));
    term.term(before, after, b)
}

/// Passes the terms of block b, whose weights `c` have any magnitude, to `take`. `piece.c` is not read.
pub fn each_scaled(
    piece: &Piece,
    b: usize,
    c: &[Scaled; LANES + 1],
    term: &impl Term,
    table: &StepTable,
    take: &mut impl FnMut(Run),
) {
    let terms = scaled_terms(piece, b, c, term, table);
    let steps = (piece.steps - b * LANES).min(LANES);
    take(Run { first: (piece.block + b) * LANES, terms: Terms::Scaled(&terms.0[..steps]) });
}

/// Adds each term of one block, whose weights `c` have any magnitude, to the sum of its step.
pub fn scatter_scaled(piece: &Piece, c: &[Scaled; LANES + 1], term: &impl Term, sums: &mut StepSums) {
    let before = Block(std::array::from_fn(|j| c[j]));
    let after = Block(std::array::from_fn(|j| c[j + 1]));
    let x = term.term(before, after, 0);
    for (j, &x) in x.0.iter().take(piece.steps).enumerate() {
        sums.add_one(piece.block * LANES + j, x);
    }
}
