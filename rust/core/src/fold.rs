//! Adds the terms of a piece of one trajectory to its running sums, eight steps at a time.

use crate::block::{Block, Eight, LANES, Real};
use crate::lanes::Lanes;
use crate::scaled::Scaled;
use crate::step_sums::StepSums;
use crate::table::StepTable;

/// What eight steps add to an estimator, with before = γ^{t−1} ρ_{1:t−1} and after = γ^{t−1} ρ_{1:t}
/// (or another table in the place of γ^{t−1}).
pub trait Term {
    /// The term of block b, in the paper's letters.
    fn term<T: Real>(&self, before: Block<T>, after: Block<T>, b: usize) -> Block<T>;
}

/// Whole blocks of one trajectory with ρ_{1:t} = `c` · 2^`exponent`; `c` starts one step earlier.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Cumulative ratios, the one before the first step in front.
    pub c: &'a [f64],
    /// Their power of two.
    pub exponent: i64,
    /// Index of the first block in the trajectory.
    pub block: usize,
    /// Steps of the piece that exist; the rest of its last block is padding.
    pub steps: usize,
}

impl Piece<'_> {
    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.c.len() / LANES
    }

    /// 1 for the steps of block b that exist and 0 for padding.
    #[inline(always)]
    pub fn mask<T: Real>(&self, b: usize) -> Block<T> {
        Block(std::array::from_fn(|j| T::real(f64::from(u8::from(b * LANES + j < self.steps)))))
    }

    /// True where block b has no padding.
    #[inline(always)]
    pub fn is_whole(&self, b: usize) -> bool {
        (b + 1) * LANES <= self.steps
    }

    /// ρ_{1:t−1} and ρ_{1:t}, by blocks.
    #[inline(always)]
    fn weights(&self) -> (&[Eight], &[Eight]) {
        let n = self.blocks();
        (&self.c.as_chunks().0[..n], &self.c[1..].as_chunks().0[..n])
    }

    /// Adds the terms to `lanes`.
    #[inline(always)]
    pub fn fold(&self, term: &impl Term, table: &StepTable, lanes: &mut Lanes) {
        let (previous, current) = self.weights();
        let table_blocks = table.blocks(self.block, self.blocks());
        let mut b = 0;
        while b < table_blocks.len() {
            let first = &table_blocks[b];
            if !first.tame {
                let c = std::array::from_fn(|j| Scaled::new(self.c[b * LANES + j], self.exponent));
                fold_scaled(self, b, &c, term, table, lanes);
                b += 1;
                continue;
            }
            let scale = Block::splat(lanes.align(self.exponent + first.exponent));
            let mut sums = lanes.get();
            let (first_exponent, mut at) = (first.exponent, b);
            for ((entry, previous), current) in table_blocks[b..].iter().zip(&previous[b..]).zip(&current[b..]) {
                if entry.exponent != first_exponent || !entry.tame {
                    break;
                }
                let g = if self.is_whole(at) { entry.values } else { entry.values * self.mask(at) };
                let (before, after) = (g * Block::load(previous), g * Block::load(current));
                sums = sums + term.term(before, after, at) * scale;
                at += 1;
            }
            b = at;
            lanes.set(sums);
        }
    }

    /// Adds the terms, without a table, to the sums of their steps.
    #[inline(always)]
    pub fn scatter(&self, term: &impl Term, sums: &mut StepSums) {
        let (previous, current) = self.weights();
        for (b, (previous, current)) in previous.iter().zip(current).enumerate() {
            let x = term.term(Block::load(previous), Block::load(current), b);
            let x = if self.is_whole(b) { x } else { x * self.mask(b) };
            sums.add(self.block + b, x, self.exponent);
        }
    }
}

/// Adds the terms of block b, of any magnitude; `piece.c` is not read.
pub fn fold_scaled(
    piece: &Piece,
    b: usize,
    c: &[Scaled; LANES + 1],
    term: &impl Term,
    table: &StepTable,
    lanes: &mut Lanes,
) {
    let g = table.scaled_block(piece.block + b) * piece.mask(b);
    let before = g * Block(std::array::from_fn(|j| c[j]));
    let after = g * Block(std::array::from_fn(|j| c[j + 1]));
    lanes.set_scaled(lanes.get_scaled() + term.term(before, after, b));
}

/// Adds the terms of one block of any magnitude to the sums of their steps.
pub fn scatter_scaled(piece: &Piece, c: &[Scaled; LANES + 1], term: &impl Term, sums: &mut StepSums) {
    let before = Block(std::array::from_fn(|j| c[j]));
    let after = Block(std::array::from_fn(|j| c[j + 1]));
    let x = term.term(before, after, 0);
    for (j, &x) in x.0.iter().take(piece.steps).enumerate() {
        sums.add_one(piece.block * LANES + j, x);
    }
}
