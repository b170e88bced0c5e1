//! A group of eight short trajectories as a fold reads it: one block per step, with one trajectory in each lane.

use crate::number::block::{Block, Eight, LANES};
use crate::number::running_sum::Lanes;
use crate::pass::fold::Term;
use crate::pass::normalisers::{PolicyTables, Tables};
use crate::pass::table::StepTable;

/// One group as a fold reads it.
pub(super) struct Across<'a> {
    /// 1 for steps that exist and 0 for padding.
    pub(super) mask: &'a [Eight],
    /// ρ_{1:t}, with ρ_{1:0} in front.
    pub(super) c: &'a [Eight],
    /// Tables over steps, each entry in eight lanes.
    pub(super) tables: &'a Spread,
}

/// The tables of a policy over the first eight steps, each entry in eight lanes.
#[derive(Default)]
pub(super) struct Spread {
    pub(super) baseline: Vec<Eight>,
    pub(super) mean_reward: [Vec<Eight>; 2],
    pub(super) mean_residual: [Vec<Eight>; 2],
    pub(super) mean_value: [Vec<Eight>; 2],
}

impl Spread {
    pub(super) fn new(tables: &Tables, own: &PolicyTables) -> Self {
        let spread = |table: &[f64]| table.iter().take(LANES).map(|&x| [x; LANES]).collect::<Vec<Eight>>();
        Self {
            baseline: spread(&tables.baseline),
            mean_reward: own.mean_reward.each_ref().map(|part| spread(part)),
            mean_residual: own.mean_residual.each_ref().map(|part| spread(part)),
            mean_value: own.mean_value.each_ref().map(|part| spread(part)),
        }
    }
}

impl Across<'_> {
    /// Adds the terms of each trajectory, from its first to its last, and leaves the totals in `lanes`.
    #[inline(always)]
    pub(super) fn add(&self, term: &impl Term, table: &StepTable, lanes: &mut Lanes) {
        let values = &table.stretch(0, 1).values[0];
        let mut sums = [Block::<f64>::splat(0.0); LANES];
        for (t, (sum, mask)) in sums.iter_mut().zip(self.mask).enumerate() {
            let g = Block::splat(values[t]) * Block::load(mask);
            let (before, after) = (g * Block::load(&self.c[t]), g * Block::load(&self.c[t + 1]));
            *sum = *sum + term.term(before, after, t);
        }
        let [a, b, c, d, e, f, g, h] = sums;
        lanes.set(((a + b) + (c + d)) + ((e + f) + (g + h)));
    }

    /// The terms of step t, without a table.
    #[inline(always)]
    pub(super) fn term(&self, term: &impl Term, t: usize) -> Block<f64> {
        term.term(Block::load(&self.c[t]), Block::load(&self.c[t + 1]), t) * Block::load(&self.mask[t])
    }

    /// Steps of the longest trajectory.
    #[inline(always)]
    pub(super) fn steps(&self) -> usize {
        self.mask.len()
    }
}
