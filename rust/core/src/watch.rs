//! What the first pass keeps of a target policy to tell whether its weights can be trusted. With c_t = ρ_{1:t}:
//!
//!     Σ_i c_t,  Σ_i c_t²,  Σ_i ρ_t    for each step, over the trajectories that run
//!     S = Σ_{i,t} (ρ_t − 1),    Q = Σ_{i,t} (ρ_t − 1)²
//!     Σ x, Σ x²    of the control variate x_i = Σ_t γ^{t−1} (c_t Q̂_t − c_{t−1} V̂_t), step-IS less DR
//!
//! and the largest final weights, with all that is known of the trajectories that have the very largest.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::block::{Block, Eight, LANES, Real};
use crate::fold::{Piece, Term};
use crate::ids::Id;
use crate::lanes::Lanes;
use crate::largest::{Largest, falling};
use crate::moments::Moments;
use crate::scaled::Scaled;
use crate::step_sums::StepSums;
use crate::sum::Sum;

/// Trajectories that are kept for their weight.
pub const LEADERS: usize = 10;

/// The sums of one policy.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Watch {
    /// Σ c_t²
    pub squared_weight: StepSums,
    /// Σ ρ_t
    pub ratio: StepSums,
    /// S
    pub excess: Sum,
    /// Q
    pub squared_excess: Sum,
    /// Of the control variate.
    pub control: Moments,
    /// Of the final weights.
    pub largest: Largest,
    /// The trajectories with the largest of them, in falling order.
    pub leaders: Vec<Leader>,
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
    /// Notes a trajectory that ended; `leader` makes its record if it is one.
    pub fn end(&mut self, weight: Scaled, excess: &Excess, episode: &Id, leader: impl FnOnce() -> Leader) {
        self.excess.add(excess.sum.total());
        self.squared_excess.add(excess.squares.total());
        self.largest.push(weight);
        if self.leaders.len() < LEADERS || self.leaders.last().is_some_and(|last| last.follows(weight, episode)) {
            self.lead(leader());
        }
    }

    /// Adds all of another set.
    pub fn merge(&mut self, mut other: Self) {
        self.squared_weight.merge(&mut other.squared_weight);
        self.ratio.merge(&mut other.ratio);
        self.excess.merge(&other.excess);
        self.squared_excess.merge(&other.squared_excess);
        self.control.merge(&other.control);
        self.largest.merge(other.largest);
        other.leaders.into_iter().for_each(|leader| self.lead(leader));
    }

    fn lead(&mut self, leader: Leader) {
        let place = self.leaders.partition_point(|other| !other.follows(leader.weight, &leader.episode));
        self.leaders.insert(place, leader);
        self.leaders.truncate(LEADERS);
    }
}

impl Leader {
    /// True if a trajectory with this weight and id comes before; of equal weights the smaller id.
    fn follows(&self, weight: Scaled, episode: &Id) -> bool {
        falling(&self.weight, &weight).then(self.episode.cmp(episode)).is_gt()
    }
}

/// ρ_t − 1 and its square, summed over a trajectory.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Excess {
    sum: Lanes,
    squares: Lanes,
}

impl Excess {
    /// Adds the ratios of a piece, and each to the sum of its step.
    #[inline(always)]
    pub fn watch(&mut self, piece: &Piece, rho: &[Eight], ratio: &mut StepSums) {
        ratio.grow(piece.block + rho.len());
        let whole = piece.steps / LANES;
        ratio.add_blocks(piece.block, whole, |b| Block(rho[b]), 0);
        let (scale, scale_of_squares) = (Block::splat(self.sum.align(0)), Block::splat(self.squares.align(0)));
        let (mut sum, mut squares) = (self.sum.get(), self.squares.get());
        for rho in &rho[..whole] {
            let x = Block(*rho) - Block::splat(1.0);
            sum = sum + x * scale;
            squares = squares + x * x * scale_of_squares;
        }
        if whole < rho.len() {
            let mask = piece.mask(whole);
            ratio.add_blocks(piece.block + whole, 1, |_| Block(rho[whole]) * mask, 0);
            let x = (Block(rho[whole]) - Block::splat(1.0)) * mask;
            sum = sum + x * scale;
            squares = squares + x * x * scale_of_squares;
        }
        self.sum.set(sum);
        self.squares.set(squares);
    }

    /// The same for one block of ratios of any magnitude.
    pub fn watch_scaled(&mut self, piece: &Piece, rho: Block<Scaled>, ratio: &mut StepSums) {
        ratio.grow(piece.block + 1);
        for (j, &rho) in rho.0.iter().take(piece.steps).enumerate() {
            ratio.add_one(piece.block * LANES + j, rho);
        }
        let x = (rho - Block::splat(1.0)) * piece.mask(0);
        self.sum.set_scaled(self.sum.get_scaled() + x);
        self.squares.set_scaled(self.squares.get_scaled() + x * x);
    }
}

/// c_t².
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
