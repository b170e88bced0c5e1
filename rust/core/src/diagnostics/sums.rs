//! The sums of a target policy's weights that the first pass keeps for the diagnostics. With c_t = ρ_{1:t}:
//!
//!     Σ_i c_t,  Σ_i c_t²,  Σ_i ρ_t,  Σ_i (ρ_t − 1)²    for each step, over the trajectories that run
//!     Σ x, Σ x²    of the control variate x_i = Σ_t γ^{t−1} (c_t Q̂_t − c_{t−1} V̂_t), step-IS less DR
//!
//! The largest final weights are kept as well, with a record of the trajectories that have the very largest.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::log::ids::Id;
use crate::number::block::{Block, Eight, LANES, Real};
use crate::number::largest::{Largest, falling};
use crate::number::moments::Moments;
use crate::number::scaled::Scaled;
use crate::number::step_sums::StepSums;
use crate::pass::cut_off::CutOff;
use crate::pass::fold::{Piece, Term};

/// The number of trajectories that are recorded for their weight.
pub const LEADERS: usize = 10;

/// The diagnostic sums of one policy.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Watch {
    /// Σ c_t²
    pub squared_weight: StepSums,
    /// Σ ρ_t
    pub ratio: StepSums,
    /// Σ (ρ_t − 1)²
    pub squared_excess: StepSums,
    /// The moments of the control variate.
    pub control: Moments,
    /// The largest final weights.
    pub largest: Largest,
    /// The trajectories with the largest final weights, in falling order.
    pub leaders: Vec<Leader>,
    /// The rewards that were cut off before the horizon.
    pub cut_off: CutOff,
}

/// A trajectory with a large weight.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Leader {
    /// Its id.
    pub episode: Id,
    /// ρ_{1:H}
    pub weight: Scaled,
    /// Its return.
    pub returns: Scaled,
    /// V̂(s_1)
    pub first_v_hat: Scaled,
    /// Its values, in the order of the plan's work.
    pub values: Vec<Scaled>,
}

impl Watch {
    /// Adds a trajectory that has ended. `leader` makes its record if its weight is among the largest.
    pub fn end(&mut self, weight: Scaled, episode: &Id, leader: impl FnOnce() -> Leader) {
        self.largest.push(weight);
        if self.leaders.len() < LEADERS || self.leaders.last().is_some_and(|last| last.follows(weight, episode)) {
            self.lead(leader());
        }
    }

    /// Adds the sums of another set.
    pub fn merge(&mut self, other: Self) {
        self.squared_weight.merge(other.squared_weight);
        self.ratio.merge(other.ratio);
        self.squared_excess.merge(other.squared_excess);
        self.control.merge(&other.control);
        self.largest.merge(other.largest);
        self.cut_off.merge(other.cut_off);
        other.leaders.into_iter().for_each(|leader| self.lead(leader));
    }

    /// Adds the ratios of consecutive steps, each to the sums of its step.
    #[inline(always)]
    pub fn ratios(&mut self, piece: &Piece, rho: &[Eight]) {
        let whole = piece.steps / LANES;
        self.grow(piece.block + rho.len());
        self.ratio.add_blocks(piece.block, whole, |b| Block(rho[b]), 0);
        self.squared_excess.add_blocks(piece.block, whole, |b| squared_excess(Block(rho[b])), 0);
        if whole < rho.len() {
            let (last, mask) = (piece.block + whole, piece.mask(whole));
            self.ratio.add_blocks(last, 1, |_| Block(rho[whole]) * mask, 0);
            self.squared_excess.add_blocks(last, 1, |_| squared_excess(Block(rho[whole])) * mask, 0);
        }
    }

    /// Adds the ratios of eight trajectories side by side, one block per step, to the sums of their steps.
    #[inline(always)]
    pub fn ratios_across(&mut self, rho: &[Eight], mask: &[Eight]) {
        self.ratio.add_across(rho.len(), |t| Block(rho[t]) * Block(mask[t]));
        self.squared_excess.add_across(rho.len(), |t| squared_excess(Block(rho[t])) * Block(mask[t]));
    }

    /// Adds the ratios of one block, of any magnitude, each to the sums of its step.
    pub fn ratios_scaled(&mut self, piece: &Piece, rho: Block<Scaled>) {
        self.grow(piece.block + 1);
        let squared = squared_excess(rho);
        for j in 0..piece.steps {
            let index = piece.block * LANES + j;
            self.ratio.add_one(index, rho.0[j]);
            self.squared_excess.add_one(index, squared.0[j]);
        }
    }

    /// Frees the sums over steps.
    pub fn forget_steps(&mut self) {
        (self.squared_weight, self.ratio, self.squared_excess) = Default::default();
        self.cut_off.reward = StepSums::default();
    }

    fn grow(&mut self, blocks: usize) {
        self.ratio.grow(blocks);
        self.squared_excess.grow(blocks);
    }

    fn lead(&mut self, leader: Leader) {
        let place = self.leaders.partition_point(|other| !other.follows(leader.weight, &leader.episode));
        self.leaders.insert(place, leader);
        self.leaders.truncate(LEADERS);
    }
}

impl Leader {
    /// Returns true if a trajectory with this weight and id comes before this one. Of equal weights the smaller id
    /// comes first.
    fn follows(&self, weight: Scaled, episode: &Id) -> bool {
        falling(&self.weight, &weight).then(self.episode.cmp(episode)).is_gt()
    }
}

/// Returns (ρ_t − 1)².
#[inline(always)]
fn squared_excess<T: Real>(rho: Block<T>) -> Block<T> {
    let x = rho - Block::splat(1.0);
    x * x
}

/// The term c_t².
pub struct SquaredWeight;

impl Term for SquaredWeight {
    const DEGREE: i64 = 2;

    #[inline(always)]
    fn part(&self, _blocks: Range<usize>) -> Self {
        Self
    }

    #[inline(always)]
    fn term<T: Real>(&self, _before: Block<T>, after: Block<T>, _b: usize) -> Block<T> {
        after * after
    }
}
