//! Folds short trajectories in groups of eight, one trajectory in each lane, where the engine otherwise has eight steps of
//! one trajectory in them. A trajectory of at most eight steps is a single block, most of which may be padding, so that its
//! cost does not depend on its length; a group has as many blocks as its longest trajectory has steps.
//!
//! Block t−1 of a column holds x_t of eight trajectories. Within a lane the products and sums have the same brackets as
//! within the block of one trajectory:
//!
//!     c_t = [`Block::cumulative_product`],    X = ((x_1 + x_2) + (x_3 + x_4)) + ((x_5 + x_6) + (x_7 + x_8))
//!
//! and the sums over trajectories are sums of integers, so that a group gives the same bits as its trajectories one by one.
//! A group with weights that are not of ordinary magnitude is folded one by one.

use std::cell::Cell;
use std::ops::Range;

use super::terms::Fold;
use super::{Engine, Final, Trajectory};
use crate::log::ending::Ending;
use crate::log::episode::Open;
use crate::log::ids::Id;
use crate::log::problem::Place;
use crate::number::block::{Block, Eight, LANES};
use crate::number::running_sum::Lanes;
use crate::number::scaled::{Scaled, exp2};
use crate::pass::fold::{Piece, Term};
use crate::pass::normalisers::{PolicyTables, Tables};
use crate::pass::plan::{Pass, Plan, Ratio, Work};
use crate::pass::ratios::mixed;
use crate::pass::table::StepTable;

/// Eight ratios within 2^±this, or 0, have products within the 2^±128 of ordinary weights.
const RATIO: i64 = 15;

/// A whole trajectory of at most eight steps. All its values are of ordinary magnitude, and so are those of the rows behind it
/// in the batch, up to eight rows from its first.
pub struct Short<'a> {
    /// Its rows in the batch.
    pub rows: Range<usize>,
    /// Where they start.
    pub place: Place,
    /// Its id.
    pub id: &'a Id,
}

/// Groups of trajectories, and room for what is computed of them.
#[derive(Default)]
pub(super) struct Groups {
    /// Blocks of each group: the steps of the longest trajectory.
    steps: usize,
    /// The columns by slot, one group after the other.
    columns: Vec<Vec<f64>>,
    /// 1 for steps that exist and 0 for padding.
    mask: Vec<Eight>,
    /// ρ_t of each policy.
    rho: Vec<Vec<Eight>>,
    /// ρ_{1:t} of each policy, with ρ_{1:0} in front of each group.
    c: Vec<Vec<Eight>>,
    /// The running sums of each policy in the order of its work, of each group: totals of eight trajectories.
    totals: Vec<Vec<Lanes>>,
    /// Groups all of whose weights are of ordinary magnitude.
    plain: Vec<bool>,
}

/// One group as a fold reads it.
pub(super) struct Across<'a> {
    mask: &'a [Eight],
    c: &'a [Eight],
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

impl Groups {
    /// Lays the rows of some trajectories out by steps.
    fn gather(&mut self, plan: &Plan, columns: &[&[f64]], shorts: &[Short]) {
        self.steps = shorts.iter().map(|short| short.rows.len()).max().unwrap_or(0);
        let (steps, blocks) = (self.steps, shorts.len().div_ceil(LANES) * self.steps);
        self.columns.resize(plan.slots.len(), vec![]);
        for ((own, column), slot) in self.columns.iter_mut().zip(columns).zip(&plan.slots) {
            own.resize(blocks * LANES, 0.0);
            let own = own.as_chunks_mut::<LANES>().0;
            for (blocks, group) in own.chunks_exact_mut(steps).zip(shorts.chunks(LANES)) {
                if group.len() < LANES {
                    blocks.fill([slot.check.neutral(); LANES]);
                }
                for (lane, short) in group.iter().enumerate() {
                    // The rows of the next trajectories serve as padding, which the mask multiplies by 0.
                    let rows = column.get(short.rows.start..short.rows.start + steps);
                    blocks.iter_mut().zip(rows.unwrap_or(&[])).for_each(|(block, &x)| block[lane] = x);
                    if rows.is_none() {
                        blocks.iter_mut().for_each(|block| block[lane] = slot.check.neutral());
                        blocks.iter_mut().zip(&column[short.rows.clone()]).for_each(|(block, &x)| block[lane] = x);
                    }
                }
            }
        }
        self.mask.resize(blocks, [0.0; LANES]);
        for (mask, group) in self.mask.chunks_exact_mut(steps).zip(shorts.chunks(LANES)) {
            let length = |lane: usize| group.get(lane).map_or(0, |short| short.rows.len() as u32);
            let lengths: [u32; LANES] = std::array::from_fn(length);
            for (t, mask) in (0..).zip(mask) {
                *mask = lengths.map(|length| f64::from(u8::from(t < length)));
            }
        }
    }

    /// The running sums of a policy, of one group.
    fn of(&self, p: usize, g: usize) -> &[Lanes] {
        let sums = self.totals[p].len() / self.plain.len();
        &self.totals[p][g * sums..][..sums]
    }

    /// Finds ρ_t and ρ_{1:t} of a policy.
    #[inline(always)]
    fn weigh(&mut self, plan: &Plan, p: usize) {
        let (bases, rest) = self.rho.split_at_mut(p);
        let (rho, c) = (&mut rest[0], &mut self.c[p]);
        let column = |slot: usize| self.columns[slot].as_chunks::<LANES>().0;
        rho.resize(self.mask.len(), [1.0; LANES]);
        match plan.policies[p].ratio {
            Ratio::One => rho.fill([1.0; LANES]),
            Ratio::Probabilities { behavior, target } => {
                for ((rho, pi_0), pi_1) in rho.iter_mut().zip(column(behavior)).zip(column(target)) {
                    *rho = std::array::from_fn(|i| pi_1[i] / pi_0[i]);
                }
            }
            Ratio::Column { ratio } => rho.copy_from_slice(column(ratio)),
            Ratio::Mixture { of, alpha } => {
                rho.iter_mut().zip(&bases[of]).for_each(|(rho, base)| *rho = mixed(Block(*base), alpha).0);
            }
        }
        let one = Block::splat(1.0);
        c.resize(self.plain.len() * (self.steps + 1), [1.0; LANES]);
        let groups = rho.chunks_exact(self.steps).zip(c.chunks_exact_mut(self.steps + 1));
        for ((rho, c), plain) in groups.zip(&mut self.plain) {
            let mut ratios = Block([one; LANES]);
            for (ratio, rho) in ratios.0.iter_mut().zip(rho) {
                *plain &= rho.iter().fold(true, |plain, &r| plain & is_plain(r));
                *ratio = Block::load(rho);
            }
            let products = ratios.cumulative_product(one);
            c[0] = one.0;
            c[1..].iter_mut().zip(products.0).for_each(|(c, product)| *c = product.0);
        }
    }
}

#[inline(always)]
fn is_plain(ratio: f64) -> bool {
    (ratio == 0.0) | (exp2(-RATIO)..=exp2(RATIO)).contains(&ratio)
}

impl Engine {
    /// Returns true if a pass can fold short trajectories in groups: it keeps sums, and has no blends and no shifted columns.
    pub(super) fn may_group(pass: Pass, work: &[Vec<Work>], shifts: &[bool], tables: &Tables) -> bool {
        let plain = |table: &StepTable| table.is_empty() || is_plain_block(table);
        let own = |own: &PolicyTables| plain(&own.over.weight) && plain(&own.over.previous_weight);
        !pass.keeps_values()
            && work.iter().flatten().all(|work| work.has_values)
            && !shifts.contains(&true)
            && tables.policies.iter().all(own)
    }

    /// Adds whole trajectories.
    pub fn push_shorts(&mut self, columns: &[&[f64]], shorts: &[Short]) {
        let mut lengths = [0; LANES + 1];
        shorts.iter().for_each(|short| lengths[short.rows.len()] += 1);
        for (length, count) in (0..).zip(lengths).filter(|(_, count)| *count > 0) {
            *self.sums.lengths.entry(length).or_default() += count;
        }
        if shorts.is_empty() || self.too_large || self.counted == 0 && !self.count(1) {
            return;
        }
        self.tables.grow(self.plan.discount, 1);
        if !is_plain_block(&self.tables.discount) {
            return shorts.iter().for_each(|short| self.push_alone(columns, short));
        }
        let mut groups = std::mem::take(&mut self.groups);
        groups.gather(&self.plan, columns, shorts);
        self.arch.dispatch(FoldGroups { engine: self, groups: &mut groups, count: shorts.len().div_ceil(LANES) });
        let mut ones = [0; LANES + 1];
        for (g, group) in shorts.chunks(LANES).enumerate() {
            if groups.plain[g] {
                group.iter().for_each(|short| ones[short.rows.len()] += 1);
                self.close_group(&groups, g, group);
            } else {
                group.iter().for_each(|short| self.push_alone(columns, short));
            }
        }
        self.end_with_one(ones);
        self.groups = groups;
    }

    /// Adds the final weights of the policies whose weights are all 1, given the number of trajectories of each length.
    fn end_with_one(&mut self, ones: [u32; LANES + 1]) {
        for p in 0..self.plan.policies.len() {
            if self.pass != Pass::First || !self.weighs_one(p) {
                continue;
            }
            for (length, count) in (0..).zip(ones).filter(|(_, count)| *count > 0) {
                self.sums.policies[p].end_with_one(length, count);
            }
        }
    }

    fn weighs_one(&self, p: usize) -> bool {
        !self.needed[p] || self.plan.policies[p].ratio == Ratio::One
    }

    /// Adds a whole trajectory whose length has been counted.
    #[cold]
    fn push_alone(&mut self, columns: &[&[f64]], short: &Short) {
        let mut open = Open::new(short.id.clone(), short.place, 0, &self.work, self.plan.slots.len());
        self.push(&mut open, columns, short.rows.clone(), true, true, true);
        self.end(&mut open);
    }

    #[inline(always)]
    fn fold_groups(&mut self, groups: &mut Groups, count: usize) {
        let policies = self.plan.policies.len();
        groups.rho.resize(policies, vec![]);
        groups.c.resize(policies, vec![]);
        groups.totals.resize(policies, vec![]);
        groups.plain.clear();
        groups.plain.resize(count, true);
        for p in (0..policies).filter(|&p| self.needed[p]) {
            groups.weigh(&self.plan, p);
        }
        let steps = groups.steps;
        let columns: Vec<&[f64]> = groups.columns.iter().map(|column| &column[..]).collect();
        for p in (0..policies).filter(|&p| self.needed[p]) {
            let sums_of_each: usize = self.work[p].iter().map(Work::lanes).sum();
            let totals = &mut groups.totals[p];
            totals.clear();
            totals.resize(count * sums_of_each, Lanes::default());
            for g in (0..count).filter(|&g| groups.plain[g]) {
                let blocks = g * steps..(g + 1) * steps;
                let mask = &groups.mask[blocks.clone()];
                let c = &groups.c[p][g * (steps + 1)..][..=steps];
                let across = Across { mask, c, tables: &self.spread[p] };
                if self.watched[p] {
                    self.sums.policies[p].watch.ratios_across(&groups.rho[p][blocks], mask);
                }
                let target = Fold {
                    piece: &Piece { c: &[], exponent: 0, block: 0, steps },
                    scaled: None,
                    across: Some(&across),
                    pass: self.pass,
                    columns: &columns,
                    row: g * steps * LANES,
                    reward: self.plan.reward,
                    policy: &self.plan.policies[p],
                    tables: &self.tables,
                    own: &self.tables.policies[p],
                    previous_ratio: &[],
                    room: Cell::new(None),
                };
                let mut lanes = &mut totals[g * sums_of_each..][..sums_of_each];
                for work in &self.work[p] {
                    let (own, others) = lanes.split_at_mut(work.lanes());
                    lanes = others;
                    work.estimator.fold(&target, own);
                }
                for &sum in &self.step_sums[p] {
                    target.step_sum(sum, &mut self.sums.policies[p]);
                }
            }
        }
    }

    fn close_group(&mut self, groups: &Groups, g: usize, group: &[Short]) {
        let (steps, first) = (groups.steps, g * groups.steps * LANES);
        for p in 0..self.plan.policies.len() {
            if !self.needed[p] {
                continue;
            }
            let (c, totals, returns) = (&groups.c[p][g * (steps + 1)..][..=steps], groups.of(p, g), groups.of(0, g));
            let (weighs_one, v_hat) = (self.weighs_one(p), self.plan.policies[p].v_hat);
            for (lane, short) in group.iter().enumerate() {
                let length = short.rows.len();
                let weight = Scaled::from(c[length][lane]);
                let first_v_hat = v_hat.map_or(0.0, |slot| groups.columns[slot][first + lane]);
                let total = |own: &[Lanes]| {
                    own.iter().fold(Scaled::ZERO, |sum, totals| sum + Scaled::from(totals.get().0[lane]))
                };
                let returns = if self.has_returns { total(&returns[..1]) } else { Scaled::ZERO };
                let (id, place, ending) = (short.id, short.place, Ending::Unsaid);
                let of = Trajectory { id, place, steps: length as u64, ending, returns };
                self.end_policy(p, &of, &Final { weight, first_v_hat, sums: &[] }, |own| total(&totals[own]));
                if self.pass == Pass::First && !weighs_one {
                    let lost = || c.iter().position(|c| c[lane] == 0.0).map(|t| t as u64);
                    let zero_at = if weight.is_zero() { lost() } else { None };
                    self.sums.policies[p].end(length as u64, weight, zero_at);
                }
            }
        }
    }
}

/// Returns true if the first eight entries need no power of two.
fn is_plain_block(table: &StepTable) -> bool {
    let first = table.stretch(0, 1);
    first.tame && first.exponent == 0
}

/// A call of `fold_groups`, compiled for each instruction set and chosen when it runs.
struct FoldGroups<'a> {
    engine: &'a mut Engine,
    groups: &'a mut Groups,
    count: usize,
}

impl pulp::WithSimd for FoldGroups<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        self.engine.fold_groups(self.groups, self.count);
    }
}
