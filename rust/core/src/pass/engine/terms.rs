//! The rows of a trajectory as an estimator reads them: columns of the policy, tables over steps, and ways to add
//! terms.

use std::cell::Cell;

use super::group::Across;
use crate::diagnostics::sums::SquaredWeight;
use crate::estimators::about::StepSum;
use crate::estimators::magic::Segments;
use crate::estimators::step_is;
use crate::estimators::step_wis::Weight;
use crate::estimators::wdr::{Residual, Value};
use crate::number::block::{Eight, LANES};
use crate::number::running_sum::Lanes;
use crate::number::scaled::Scaled;
use crate::number::step_sums::StepSums;
use crate::pass::accumulators::PolicySums;
use crate::pass::cut_off::AbsoluteReward;
use crate::pass::fold::{Piece, Run, Term, each_scaled, fold_scaled, scatter_scaled};
use crate::pass::normalisers::{PolicyTables, Tables};
use crate::pass::plan::{Pass, Policy};
use crate::pass::table::StepTable;

/// The table whose entry multiplies the term of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Table {
    /// γ^{t−1}
    Discount,
    /// γ^{t−1} / D_t
    OverWeight,
    /// γ^{t−1} / D_{t−1}
    OverPreviousWeight,
}

/// Returns a column or table from an index on, by blocks.
#[inline(always)]
pub(super) fn by_blocks(values: &[f64], from: usize) -> &[Eight] {
    values.get(from..).unwrap_or(&[]).as_chunks().0
}

/// Some rows of a trajectory, with their weights, columns and tables. The weights are in `piece`, or in `scaled` if
/// they need wide floats.
pub struct Fold<'a> {
    pub(super) piece: &'a Piece<'a>,
    pub(super) scaled: Option<&'a [Scaled; LANES + 1]>,
    /// The group, if these are the rows of eight short trajectories side by side.
    pub(super) across: Option<&'a Across<'a>>,
    pub(super) pass: Pass,
    pub(super) columns: &'a [&'a [f64]],
    pub(super) row: usize,
    pub(super) reward: usize,
    pub(super) policy: &'a Policy,
    pub(super) tables: &'a Tables,
    pub(super) own: &'a PolicyTables,
    pub(super) previous_ratio: &'a [f64],
    pub(super) room: Cell<Option<&'a mut Vec<Eight>>>,
}

impl<'a> Fold<'a> {
    /// Returns the pass over the log.
    #[inline(always)]
    pub fn pass(&self) -> Pass {
        self.pass
    }

    /// Returns r_t.
    #[inline(always)]
    pub fn reward(&self) -> &'a [Eight] {
        self.slot(self.reward)
    }

    /// Returns Q̂(s_t, a_t).
    #[inline(always)]
    pub fn q_hat(&self) -> &'a [Eight] {
        self.get(self.policy.q_hat)
    }

    /// Returns V̂(s_t).
    #[inline(always)]
    pub fn v_hat(&self) -> &'a [Eight] {
        self.get(self.policy.v_hat)
    }

    /// Returns R̂(s_t, a_t).
    #[inline(always)]
    pub fn r_hat(&self) -> &'a [Eight] {
        self.get(self.policy.r_hat)
    }

    /// Returns P̂/P of the transition from step t−1 to t, which is 0 at the first step. Only for estimators that read
    /// the transition ratio.
    #[inline(always)]
    pub fn previous_ratio(&self) -> &'a [Eight] {
        by_blocks(self.previous_ratio, self.row)
    }

    /// Returns b_t of [`crate::estimators::dr_bsl`].
    #[inline(always)]
    pub fn baseline(&self) -> &'a [Eight] {
        self.across.map_or_else(|| self.steps(&self.tables.baseline), |group| &group.tables.baseline)
    }

    /// Returns R_t of [`crate::estimators::step_wis`] as two tables, whose sum it is.
    #[inline(always)]
    pub fn mean_reward(&self) -> [&'a [Eight]; 2] {
        match self.across {
            Some(group) => group.tables.mean_reward.each_ref().map(|part| &part[..]),
            None => self.own.mean_reward.each_ref().map(|part| self.steps(part)),
        }
    }

    /// Returns A_t of [`crate::estimators::wdr`] as two tables, whose sum it is.
    #[inline(always)]
    pub fn mean_residual(&self) -> [&'a [Eight]; 2] {
        match self.across {
            Some(group) => group.tables.mean_residual.each_ref().map(|part| &part[..]),
            None => self.own.mean_residual.each_ref().map(|part| self.steps(part)),
        }
    }

    /// Returns B_t of [`crate::estimators::wdr`] as two tables, whose sum it is.
    #[inline(always)]
    pub fn mean_value(&self) -> [&'a [Eight]; 2] {
        match self.across {
            Some(group) => group.tables.mean_value.each_ref().map(|part| &part[..]),
            None => self.own.mean_value.each_ref().map(|part| self.steps(part)),
        }
    }

    /// Returns the segments of `magic`.
    #[inline(always)]
    pub fn segments(&self) -> &'a Segments {
        &self.own.segments
    }

    /// Adds terms, each times the entry of a table, to a running sum.
    #[inline(always)]
    pub fn add(&self, term: &impl Term, table: Table, lanes: &mut Lanes) {
        if let Some(group) = self.across {
            return group.add(term, self.table(table), lanes);
        }
        match self.scaled {
            None => self.piece.fold(term, self.table(table), lanes),
            Some(c) => fold_scaled(self.piece, 0, c, term, self.table(table), lanes),
        }
    }

    /// Passes terms, each times the entry of a table, to `take` in runs of consecutive steps.
    #[inline(always)]
    pub fn each(&self, term: &impl Term, table: Table, mut take: impl FnMut(Run)) {
        match self.scaled {
            None => {
                if let Some(room) = self.room.take() {
                    self.piece.each(term, self.table(table), room, take);
                    self.room.set(Some(room));
                }
            }
            Some(c) => each_scaled(self.piece, 0, c, term, self.table(table), &mut take),
        }
    }

    #[inline(always)]
    pub(super) fn step_sum(&self, sum: StepSum, sums: &mut PolicySums) {
        let (reward, q_hat, v_hat) = (self.reward(), self.q_hat(), self.v_hat());
        match sum {
            StepSum::Weight => self.scatter(&Weight, &mut sums.weight),
            StepSum::SquaredWeight => self.scatter(&SquaredWeight, &mut sums.watch.squared_weight),
            StepSum::AbsoluteReward => self.scatter(&AbsoluteReward { reward }, &mut sums.watch.cut_off.reward),
            StepSum::Reward => self.scatter(&step_is::WeightedReward { reward }, &mut sums.reward),
            StepSum::Residual => self.scatter(&Residual { reward, q_hat }, &mut sums.residual),
            StepSum::Value => self.scatter(&Value { v_hat }, &mut sums.value),
        }
    }

    #[inline(always)]
    fn scatter(&self, term: &impl Term, sums: &mut StepSums) {
        if let Some(group) = self.across {
            return sums.add_across(group.steps(), |t| group.term(term, t));
        }
        sums.grow(self.piece.block + self.piece.blocks().max(1));
        match self.scaled {
            None => self.piece.scatter(term, sums),
            Some(c) => scatter_scaled(self.piece, c, term, sums),
        }
    }

    #[inline(always)]
    fn table(&self, table: Table) -> &'a StepTable {
        match table {
            Table::Discount => &self.tables.discount,
            Table::OverWeight => &self.own.over.weight,
            Table::OverPreviousWeight => &self.own.over.previous_weight,
        }
    }

    /// Returns the rows of a slot from the first of the piece on, by blocks.
    #[inline(always)]
    fn slot(&self, slot: usize) -> &'a [Eight] {
        self.columns[slot][self.row..].as_chunks().0
    }

    #[inline(always)]
    fn get(&self, slot: Option<usize>) -> &'a [Eight] {
        slot.map_or(&[], |slot| self.slot(slot))
    }

    /// Returns a table over steps from the first step of the piece on, by blocks.
    #[inline(always)]
    fn steps(&self, table: &'a [f64]) -> &'a [Eight] {
        by_blocks(table, self.piece.block * LANES)
    }
}
