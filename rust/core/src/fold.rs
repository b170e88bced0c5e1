//! Adds the terms of a piece of one trajectory to its running sums, eight steps at a time.

use crate::block::{Block, LANES, Real};
use crate::lanes::Lanes;
use crate::scaled::Scaled;
use crate::step_sums::StepSums;
use crate::table::StepTable;

/// Where a block stands: in the columns of the log and in the tables over steps.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    row: usize,
    step: usize,
}

impl Cursor {
    /// Eight rows of a column.
    #[inline(always)]
    pub fn row<T: Real>(self, column: &[f64]) -> Block<T> {
        Block::load(&column[self.row..])
    }

    /// Eight entries of a table over steps.
    #[inline(always)]
    pub fn step<T: Real>(self, table: &[f64]) -> Block<T> {
        Block::load(&table[self.step..])
    }
}

/// What eight steps add to an estimator, with before = γ^{t−1} ρ_{1:t−1} and after = γ^{t−1} ρ_{1:t}
/// (or another table in the place of γ^{t−1}).
pub trait Term {
    /// The term itself, in the paper's letters.
    fn term<T: Real>(&self, before: Block<T>, after: Block<T>, at: Cursor) -> Block<T>;
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
    /// Index of the first row in the columns.
    pub row: usize,
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

    #[inline(always)]
    fn cursor(&self, b: usize) -> Cursor {
        Cursor { row: self.row + b * LANES, step: (self.block + b) * LANES }
    }

    /// The piece's block b alone.
    fn single(&self, b: usize) -> Self {
        let steps = (self.steps - b * LANES).min(LANES);
        let (block, row) = (self.block + b, self.row + b * LANES);
        Self { c: &self.c[b * LANES..=(b + 1) * LANES], block, row, steps, ..*self }
    }

    /// Adds the terms to `lanes`.
    #[inline(always)]
    pub fn fold(&self, term: &impl Term, table: &StepTable, lanes: &mut Lanes) {
        let mut b = 0;
        while b < self.blocks() {
            let first = table.block(self.block + b);
            if !first.tame {
                let piece = self.single(b);
                let c = std::array::from_fn(|j| Scaled::new(piece.c[j], self.exponent));
                fold_scaled(&piece, &c, term, table, lanes);
                b += 1;
                continue;
            }
            let scale = Block::splat(lanes.align(self.exponent + first.exponent));
            let mut sums = lanes.get();
            while b < self.blocks() {
                let entry = table.block(self.block + b);
                if entry.exponent != first.exponent || !entry.tame {
                    break;
                }
                let g = if self.is_whole(b) { entry.values } else { entry.values * self.mask(b) };
                let before = g * Block::load(&self.c[b * LANES..]);
                let after = g * Block::load(&self.c[b * LANES + 1..]);
                sums = sums + term.term(before, after, self.cursor(b)) * scale;
                b += 1;
            }
            lanes.set(sums);
        }
    }

    /// Adds the terms, without a table, to the sums of their steps.
    #[inline(always)]
    pub fn scatter(&self, term: &impl Term, sums: &mut StepSums) {
        for b in 0..self.blocks() {
            let before = Block::load(&self.c[b * LANES..]);
            let after = Block::load(&self.c[b * LANES + 1..]);
            let x = term.term(before, after, self.cursor(b));
            let x = if self.is_whole(b) { x } else { x * self.mask(b) };
            sums.add(self.block + b, x, self.exponent);
        }
    }
}

/// Adds the terms of one block of any magnitude; `piece.c` is not read.
pub fn fold_scaled(piece: &Piece, c: &[Scaled; LANES + 1], term: &impl Term, table: &StepTable, lanes: &mut Lanes) {
    let g = table.scaled_block(piece.block) * piece.mask(0);
    let before = g * Block(std::array::from_fn(|j| c[j]));
    let after = g * Block(std::array::from_fn(|j| c[j + 1]));
    lanes.set_scaled(lanes.get_scaled() + term.term(before, after, piece.cursor(0)));
}

/// Adds the terms of one block of any magnitude to the sums of their steps.
pub fn scatter_scaled(piece: &Piece, c: &[Scaled; LANES + 1], term: &impl Term, sums: &mut StepSums) {
    let before = Block(std::array::from_fn(|j| c[j]));
    let after = Block(std::array::from_fn(|j| c[j + 1]));
    let x = term.term(before, after, piece.cursor(0));
    for (j, &x) in x.0.iter().take(piece.steps).enumerate() {
        sums.add_one(piece.block * LANES + j, x);
    }
}
