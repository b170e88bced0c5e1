//! Which term reads which columns: from the names in a plan to the estimators' formulas.

use crate::diagnostics::sums::SquaredWeight;
use crate::estimators::dr::Dr;
use crate::estimators::dr_bsl::DrBsl;
use crate::estimators::dr_v2::DrV2;
use crate::estimators::magic::Part;
use crate::estimators::step_is::StepIs;
use crate::estimators::step_wis::{StepWisInfluence, Weight};
use crate::estimators::wdr::{Residual, ResidualInfluence, Value, ValueInfluence};
use crate::number::block::{Eight, LANES};
use crate::number::running_sum::Lanes;
use crate::number::scaled::Scaled;
use crate::number::step_sums::StepSums;
use crate::pass::accumulators::PolicySums;
use crate::pass::cut_off::AbsoluteReward;
use crate::pass::fold::{Piece, Run, Term, Terms, each_scaled, fold_scaled, scatter_scaled};
use crate::pass::normalisers::{PolicyTables, Tables};
use crate::pass::plan::{Form, Policy, StepForm, Table};
use crate::pass::table::StepTable;

/// A column or table from an index on, by blocks.
#[inline(always)]
pub(super) fn by_blocks(values: &[f64], from: usize) -> &[Eight] {
    values.get(from..).unwrap_or(&[]).as_chunks().0
}

/// The columns of a policy.
pub struct Source<'a> {
    pub(super) columns: &'a [&'a [f64]],
    pub(super) policy: &'a Policy,
    pub(super) reward: usize,
    pub(super) row: usize,
}

impl<'a> Source<'a> {
    /// Rows of a slot from the piece's first on, by blocks.
    #[inline(always)]
    fn slot(&self, slot: usize) -> &'a [Eight] {
        self.columns[slot][self.row..].as_chunks().0
    }

    #[inline(always)]
    fn get(&self, slot: Option<usize>) -> &'a [Eight] {
        slot.map_or(&[], |slot| self.slot(slot))
    }
}

/// A piece, in f64 or (where `scaled` is there) in wide floats, and where its columns are.
pub struct Fold<'a> {
    pub(super) piece: &'a Piece<'a>,
    pub(super) scaled: Option<&'a [Scaled; LANES + 1]>,
    pub(super) source: Source<'a>,
}

impl<'a> Fold<'a> {
    #[inline(always)]
    pub(super) fn term(
        &self,
        form: Form,
        table: Table,
        tables: &Tables,
        p: usize,
        previous_ratio: &[f64],
        lanes: &mut Lanes,
    ) {
        let own: &PolicyTables = &tables.policies[p];
        let table = match table {
            Table::Discount => &tables.discount,
            Table::OverWeight => &own.over_weight,
            Table::OverPreviousWeight => &own.over_previous_weight,
        };
        let source = &self.source;
        let (policy, reward) = (source.policy, source.slot(source.reward));
        let steps = |table| by_blocks(table, self.piece.block * LANES);
        let (q_hat, v_hat) = (source.get(policy.q_hat), source.get(policy.v_hat));
        match form {
            Form::StepIs => self.fold(&StepIs { reward }, table, lanes),
            Form::Dr => self.fold(&Dr { reward, q_hat, v_hat }, table, lanes),
            Form::DrBsl => self.fold(&DrBsl { reward, baseline: steps(&tables.baseline) }, table, lanes),
            Form::DrV2 => {
                let (r_hat, previous_ratio) = (source.get(policy.r_hat), by_blocks(previous_ratio, source.row));
                self.fold(&DrV2 { reward, r_hat, v_hat, previous_ratio }, table, lanes);
            }
            Form::Residual => self.fold(&Residual { reward, q_hat }, table, lanes),
            Form::Value => self.fold(&Value { v_hat }, table, lanes),
            Form::StepWisInfluence => {
                self.fold(
                    &StepWisInfluence { reward, mean_reward: own.mean_reward.each_ref().map(|part| steps(part)) },
                    table,
                    lanes,
                );
            }
            Form::ResidualInfluence => self.fold(&self.residual_influence(own), table, lanes),
            Form::ValueInfluence => self.fold(&self.value_influence(own), table, lanes),
        }
    }

    /// The terms of ψ by segment, for `magic`.
    #[inline(always)]
    pub(super) fn segments(&self, own: &PolicyTables, sums: &mut [Lanes], room: &mut Vec<Eight>) {
        let (residual, value) = sums.split_at_mut(sums.len() / 2);
        let into = |sums: &mut [Lanes], part, run: Run| match run.terms {
            Terms::Plain(terms, e) => own.segments.add(sums, part, run.first, terms, e),
            Terms::Scaled(terms) => {
                (run.first..).zip(terms).for_each(|(t, &term)| own.segments.add_scaled(sums, part, t, term));
            }
        };
        self.each(&self.residual_influence(own), &own.over_weight, room, |run| into(residual, Part::Residual, run));
        self.each(&self.value_influence(own), &own.over_previous_weight, room, |run| into(value, Part::Value, run));
    }

    #[inline(always)]
    fn residual_influence(&self, own: &'a PolicyTables) -> ResidualInfluence<'a> {
        let source = &self.source;
        let mean_residual = own.mean_residual.each_ref().map(|part| by_blocks(part, self.piece.block * LANES));
        ResidualInfluence { reward: source.slot(source.reward), q_hat: source.get(source.policy.q_hat), mean_residual }
    }

    #[inline(always)]
    fn value_influence(&self, own: &'a PolicyTables) -> ValueInfluence<'a> {
        let mean_value = own.mean_value.each_ref().map(|part| by_blocks(part, self.piece.block * LANES));
        ValueInfluence { v_hat: self.source.get(self.source.policy.v_hat), mean_value }
    }

    #[inline(always)]
    pub(super) fn step_sum(&self, form: StepForm, sums: &mut PolicySums) {
        let source = &self.source;
        let reward = source.slot(source.reward);
        let (q_hat, v_hat) = (source.get(source.policy.q_hat), source.get(source.policy.v_hat));
        match form {
            StepForm::Weight => self.scatter(&Weight, &mut sums.weight),
            StepForm::SquaredWeight => self.scatter(&SquaredWeight, &mut sums.watch.squared_weight),
            StepForm::AbsoluteReward => self.scatter(&AbsoluteReward { reward }, &mut sums.watch.cut_off.reward),
            StepForm::Reward => self.scatter(&StepIs { reward }, &mut sums.reward),
            StepForm::Residual => self.scatter(&Residual { reward, q_hat }, &mut sums.residual),
            StepForm::Value => self.scatter(&Value { v_hat }, &mut sums.value),
        }
    }

    #[inline(always)]
    fn fold(&self, term: &impl Term, table: &StepTable, lanes: &mut Lanes) {
        match self.scaled {
            None => self.piece.fold(term, table, lanes),
            Some(c) => fold_scaled(self.piece, 0, c, term, table, lanes),
        }
    }

    #[inline(always)]
    fn each(&self, term: &impl Term, table: &StepTable, room: &mut Vec<Eight>, mut take: impl FnMut(Run)) {
        match self.scaled {
            None => self.piece.each(term, table, room, take),
            Some(c) => each_scaled(self.piece, 0, c, term, table, &mut take),
        }
    }

    #[inline(always)]
    fn scatter(&self, term: &impl Term, sums: &mut StepSums) {
        sums.grow(self.piece.block + self.piece.blocks().max(1));
        match self.scaled {
            None => self.piece.scatter(term, sums),
            Some(c) => scatter_scaled(self.piece, c, term, sums),
        }
    }
}
