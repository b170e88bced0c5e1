//! The engine of a pass, which folds the rows of a trajectory into its running sums, and ended trajectories into the
//! sums of the pass.

mod group;
mod terms;

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use crate::diagnostics::sums::Leader;
use crate::estimators::about::{Column, StepSum};
use crate::estimators::formula::Ended;
use crate::log::checks::inspect;
use crate::log::ending::Ending;
use crate::log::episode::{Open, PolicyState};
use crate::log::ids::Id;
use crate::log::problem::Place;
use crate::number::block::{Block, Eight, LANES};
use crate::number::running_sum::Lanes;
use crate::number::scaled::Scaled;
use crate::pass::accumulators::{Accumulators, TrajectoryValue};
use crate::pass::fold::Piece;
use crate::pass::memory::Budget;
use crate::pass::normalisers::{Normalisers, Tables};
use crate::pass::plan::{Pass, Plan, Policy, Ratio, Work};
use crate::pass::ratios::{Mixed, Quotients, Ratios};
use crate::pass::weights::Weights;
pub use group::Short;
use group::{Groups, Spread};
use terms::by_blocks;
pub use terms::{Fold, Table};

/// The plan of one pass with its tables, its sums and its scratch memory. Vectors have one element per policy.
pub struct Engine {
    /// What is computed.
    pub plan: Plan,
    /// The pass over the log.
    pub pass: Pass,
    /// The sums so far.
    pub sums: Accumulators,
    /// What the pass computes for each trajectory.
    pub work: Vec<Vec<Work>>,
    /// The sums per step that the pass keeps.
    step_sums: Vec<Vec<StepSum>>,
    /// The indices in `work` of an estimator with a control variate and of the same without it.
    controls: Vec<Option<(usize, usize)>>,
    /// True if an estimator of the policy reads P̂/P.
    shifts: Vec<bool>,
    /// True if the pass computes the returns of trajectories.
    has_returns: bool,
    /// True if the policy is part of the pass.
    needed: Vec<bool>,
    /// The tables over steps.
    tables: Tables,
    /// The limit of memory, which readers share.
    pub budget: Arc<Budget>,
    /// True once the limit of memory was too small.
    pub too_large: bool,
    /// The bytes that a step takes now, and those that it takes when the log has been read.
    bytes: [u64; 2],
    /// The number of blocks whose memory has been counted.
    counted: usize,
    /// The instruction set of the machine.
    arch: pulp::Arch,
    /// True if sums for the diagnostics of the policy's weights are kept.
    watched: Vec<bool>,
    /// True if the ratios of the policy are read more than once.
    keeps_rho: Vec<bool>,
    /// Scratch memory for the ratios that are read more than once.
    rho: Vec<Vec<Eight>>,
    /// Scratch memory for ρ_{1:t}.
    c: Weights,
    /// Scratch memory for P̂/P of the transition to each row.
    previous_ratio: Vec<f64>,
    /// Scratch memory for terms.
    room: Vec<Eight>,
    /// Scratch memory for the values of the trajectory that is being closed, in the order of `work`.
    values: Vec<Scaled>,
    /// True if whole trajectories of at most eight steps may be pushed as [`Short`]s.
    pub takes_shorts: bool,
    /// Scratch memory for groups of short trajectories.
    groups: Groups,
    /// The tables over the first steps of each policy, for groups of short trajectories.
    spread: Vec<Spread>,
}

/// A trajectory that has ended.
struct Trajectory<'a> {
    id: &'a Id,
    place: Place,
    steps: u64,
    ending: Ending,
    /// Σ γ^{t−1} r_t, if the pass computes it.
    returns: Scaled,
}

/// The state of a policy at the end of a trajectory.
struct Final<'a> {
    /// ρ_{1:H}
    weight: Scaled,
    /// V̂(s_1)
    first_v_hat: f64,
    /// The running sums, for blends.
    sums: &'a [Lanes],
}

/// Whole blocks of rows of one trajectory.
struct Rows<'a> {
    /// The columns by slot, with rows before and after these.
    columns: &'a [&'a [f64]],
    /// The first row.
    start: usize,
    /// The number of rows with padding, a multiple of eight.
    len: usize,
    /// The number of rows without padding.
    valid: usize,
    /// The index of the first block in the trajectory.
    block: usize,
    /// True if all values are of ordinary magnitude.
    tame: bool,
}

impl<'a> Rows<'a> {
    /// Returns the rows of a slot by blocks.
    #[inline(always)]
    fn slot(&self, slot: usize) -> &'a [Eight] {
        self.columns[slot][self.start..][..self.len].as_chunks().0
    }
}

impl Engine {
    /// Makes an engine for one pass over a log or a part of it.
    pub fn new(plan: Plan, pass: Pass, normalisers: Option<&Normalisers>) -> Self {
        let (tables, budget) = (Tables::new(&plan, normalisers.cloned()), Arc::new(Budget::new(plan.memory)));
        Self::with_tables(plan, pass, tables, budget)
    }

    /// Makes an engine with tables and a limit of memory that it may share with others.
    pub fn with_tables(plan: Plan, pass: Pass, tables: Tables, budget: Arc<Budget>) -> Self {
        let work: Vec<Vec<Work>> = plan.policies.iter().map(|policy| plan.work(policy, pass)).collect();
        let watched: Vec<bool> = plan.policies.iter().map(|policy| plan.watches(policy, pass)).collect();
        let shifts: Vec<bool> = work.iter().map(|work| reads_transitions(work)).collect();
        let takes_shorts = Self::may_group(pass, &work, &shifts, &tables);
        let spread = tables.policies.iter().map(|own| Spread::new(&tables, own)).collect();
        Self {
            sums: Accumulators::new(&plan, pass),
            needed: needed(&plan, pass, &work),
            controls: work.iter().map(|work| Work::control(work)).collect(),
            shifts,
            has_returns: work.first().and_then(|own| own.first()).is_some_and(|own| own.estimator.about().of_behavior),
            work,
            step_sums: plan.policies.iter().map(|policy| plan.step_sums(policy, pass)).collect(),
            tables,
            budget,
            too_large: false,
            bytes: [plan.bytes_by_step(pass), plan.bytes_after(pass)],
            counted: 0,
            arch: pulp::Arch::new(),
            keeps_rho: bases(&plan).iter().zip(&watched).map(|(base, watched)| base | watched).collect(),
            watched,
            rho: vec![vec![]; plan.policies.len()],
            c: Weights::default(),
            previous_ratio: vec![],
            room: vec![],
            values: vec![],
            takes_shorts,
            groups: Groups::default(),
            spread,
            plan,
            pass,
        }
    }

    /// Returns how long a trajectory may be: at most H if it is given, and in a later pass no longer than in the first.
    pub fn longest(&self) -> Option<u64> {
        self.plan.horizon.into_iter().chain(self.tables.reach).min()
    }

    /// Adds the sums of another part of the log, whose memory has been counted.
    pub fn merge(&mut self, sums: Accumulators) {
        self.sums.merge(sums);
        self.counted = self.counted.max(self.sums.blocks());
    }

    /// Adds rows to a trajectory. `last` is true if no more rows follow, and `paddable` if the rows behind them are known
    /// to be of ordinary magnitude.
    pub fn push(
        &mut self,
        open: &mut Open,
        columns: &[&[f64]],
        rows: Range<usize>,
        tame: bool,
        last: bool,
        paddable: bool,
    ) {
        let Range { mut start, end } = rows;
        let padded = (end - start).next_multiple_of(LANES);
        let ahead = end..start + padded;
        if last && open.buffered == 0 && ahead.end <= columns[0].len() && (paddable || self.can_pad(columns, ahead)) {
            // The rows of the next trajectory serve as padding, which the mask multiplies by 0.
            let (valid, block) = (end - start, open.steps as usize / LANES);
            self.fold(open, &Rows { columns, start, len: padded, valid, block, tame });
            open.steps += valid as u64;
            return;
        }
        if open.buffered > 0 {
            start += buffer(open, columns, start..end.min(start + LANES - open.buffered), tame);
            if open.buffered == LANES {
                self.fold_buffer(open);
            }
        }
        let len = (end - start) / LANES * LANES;
        if len > 0 {
            let block = open.steps as usize / LANES;
            self.fold(open, &Rows { columns, start, len, valid: len, block, tame });
            open.steps += len as u64;
        }
        buffer(open, columns, start + len..end, tame);
    }

    /// Returns true if these rows can be padding, because 0 times any of their values is 0.
    fn can_pad(&self, columns: &[&[f64]], rows: Range<usize>) -> bool {
        inspect(&self.plan.slots, columns, rows).tame
    }

    fn fold_buffer(&mut self, open: &mut Open) {
        let valid = open.buffered;
        for (rows, slot) in open.rows.iter_mut().zip(&self.plan.slots) {
            rows[valid..].fill(slot.check.neutral());
        }
        let rows = std::mem::take(&mut open.rows);
        let columns: Vec<&[f64]> = rows.iter().map(|rows| &rows[..]).collect();
        let block = (open.steps as usize - valid) / LANES;
        let (columns, tame) = (&columns[..], open.tame);
        self.fold(open, &Rows { columns, start: 0, len: LANES, valid, block, tame });
        open.rows = rows;
        (open.buffered, open.tame) = (0, true);
    }

    fn fold(&mut self, open: &mut Open, rows: &Rows) {
        let blocks = rows.block + rows.len / LANES;
        if self.too_large || blocks > self.counted && !self.count(blocks) {
            return;
        }
        self.tables.grow(self.plan.discount, blocks);
        let arch = self.arch;
        for p in 0..self.plan.policies.len() {
            if self.needed[p] {
                arch.dispatch(FoldPolicy { engine: self, p, state: &mut open.policies[p], rows });
            }
        }
    }

    /// Counts the memory that this number of blocks of steps takes, and returns false if it exceeds the limit.
    #[cold]
    fn count(&mut self, blocks: usize) -> bool {
        let (steps, more) = ((blocks * LANES) as u64, ((blocks - self.counted) * LANES) as u64);
        let [now, after] = self.bytes;
        let fits = self.budget.take(more.saturating_mul(now)) & self.budget.take_longest(steps, after);
        self.counted = blocks;
        self.too_large |= !fits;
        fits
    }

    #[inline(always)]
    fn fold_policy<S: pulp::Simd>(&mut self, simd: S, p: usize, state: &mut PolicyState, rows: &Rows) {
        let policy = &self.plan.policies[p];
        let (bases, rest) = self.rho.split_at_mut(p);
        if self.keeps_rho[p] {
            let rho = &mut rest[0];
            rho.resize(rows.len / LANES, [1.0; LANES]);
            match policy.ratio {
                Ratio::One => rho.fill([1.0; LANES]),
                Ratio::Probabilities { behavior, target } => {
                    let (behavior, target) = (rows.slot(behavior), rows.slot(target));
                    store(&Quotients { behavior, target }, rho);
                }
                Ratio::Column { ratio } => store(&rows.slot(ratio), rho),
                Ratio::Mixture { of, alpha } => store(&Mixed { base: &bases[of][..rho.len()], alpha }, rho),
            }
        }
        if let (0, Some(v_hat)) = (rows.block, policy.v_hat) {
            state.first_v_hat = rows.columns[v_hat][rows.start];
        }
        if self.shifts[p] {
            shift_transition_ratio(policy, state, rows, &mut self.previous_ratio);
        }
        let (mut done, blocks) = (0, rows.len / LANES);
        while done < blocks {
            let exponent = state.carry.exponent();
            let at = done * LANES;
            let (block, row) = (rows.block + done, rows.start + at);
            let (carry, c, steps) = (&mut state.carry, &mut self.c, rows.valid - at);
            let count = match policy.ratio {
                _ if !rows.tame => 0,
                Ratio::One => {
                    c.room(blocks - done).fill(1.0);
                    blocks - done
                }
                _ if self.keeps_rho[p] => carry.cumulate(simd, &&self.rho[p][done..blocks], steps, c),
                Ratio::Probabilities { behavior, target } => {
                    let (behavior, target) = (&rows.slot(behavior)[done..], &rows.slot(target)[done..]);
                    carry.cumulate(simd, &Quotients { behavior, target }, steps, c)
                }
                Ratio::Column { ratio } => carry.cumulate(simd, &&rows.slot(ratio)[done..], steps, c),
                Ratio::Mixture { of, alpha } => {
                    carry.cumulate(simd, &Mixed { base: &self.rho[of][done..blocks], alpha }, steps, c)
                }
            };
            let whole = count > 0;
            let count = count.max(1);
            let steps = (rows.valid - at).min(count * LANES);
            let wild = (!whole).then(|| {
                let rho = scaled_ratio(&self.plan, p, rows, row);
                (rho, state.carry.cumulate_scaled(rho, steps))
            });
            let scaled = wild.as_ref().map(|(_, c)| c);
            let c = if whole { self.c.get(count) } else { &[] };
            let piece = Piece { c, exponent, block, steps };
            if self.watched[p] {
                let watch = &mut self.sums.policies[p].watch;
                match wild {
                    None => watch.ratios(&piece, &self.rho[p][done..done + count]),
                    Some((rho, _)) => watch.ratios_scaled(&piece, rho),
                }
            }
            let target = Fold {
                piece: &piece,
                scaled,
                across: None,
                pass: self.pass,
                columns: rows.columns,
                row,
                reward: self.plan.reward,
                policy,
                tables: &self.tables,
                own: &self.tables.policies[p],
                previous_ratio: &self.previous_ratio,
                room: Cell::new(Some(&mut self.room)),
            };
            let mut lanes = &mut state.lanes[..];
            for work in &self.work[p] {
                let (own, others) = lanes.split_at_mut(work.lanes());
                lanes = others;
                work.estimator.fold(&target, own);
            }
            let sums = &mut self.sums.policies[p];
            for &sum in &self.step_sums[p] {
                target.step_sum(sum, sums);
            }
            if state.carry.is_zero() && state.zero_at.is_none() {
                state.zero_at = first_zero(&piece, scaled);
            }
            done += count;
        }
    }

    /// Ends a trajectory and adds it to the sums.
    pub fn close(&mut self, open: &mut Open) {
        *self.sums.lengths.entry(open.steps).or_default() += 1;
        self.end(open);
    }

    /// Ends a trajectory whose length has been counted.
    fn end(&mut self, open: &mut Open) {
        if open.buffered > 0 {
            self.fold_buffer(open);
        }
        let returns = if self.has_returns { open.policies[0].lanes[0].total() } else { Scaled::ZERO };
        let of = Trajectory { id: &open.id, place: open.place, steps: open.steps, ending: open.ending, returns };
        for (p, state) in open.policies.iter().enumerate() {
            let (weight, zero_at, sums) = (state.carry.value(), state.zero_at, &state.lanes[..]);
            let last = Final { weight, first_v_hat: state.first_v_hat, sums };
            let total = |own: Range<usize>| sums[own].iter().fold(Scaled::ZERO, |sum, lanes| sum + lanes.total());
            self.end_policy(p, &of, &last, total);
            if self.pass == Pass::First {
                self.sums.policies[p].end(of.steps, weight, zero_at);
            }
        }
    }

    /// Adds the values of a trajectory that has ended to the sums of a policy; `total` adds up some of its running sums.
    #[inline(always)]
    fn end_policy(&mut self, p: usize, of: &Trajectory, last: &Final, total: impl Fn(Range<usize>) -> Scaled) {
        let (weight, returns) = (last.weight, of.returns);
        let sums = &mut self.sums.policies[p];
        let mut ended = Ended {
            pass: self.pass,
            weight,
            returns,
            first_v_hat: last.first_v_hat,
            steps: of.steps,
            episodes: self.tables.episodes,
            sums: &[],
            total: Scaled::ZERO,
            tables: &self.tables.policies[p],
            arch: self.arch,
        };
        let mut own = 0..0;
        self.values.clear();
        for (index, work) in self.work[p].iter().enumerate() {
            own = own.end..own.end + work.lanes();
            if work.has_values {
                ended.total = total(own.clone());
            } else {
                ended.sums = &last.sums[own.clone()];
            }
            let Some(value) = work.estimator.value(&ended, sums) else {
                self.values.push(Scaled::ZERO);
                continue;
            };
            if self.pass.keeps_values() {
                let (place, episode) = (of.place, of.id.clone());
                sums.values.push(TrajectoryValue { place, episode, value });
            } else {
                sums.moments[index].add(value);
                if self.plan.diagnostics && self.plan.policies[p].ratio != Ratio::One {
                    sums.moments[index].add_cube(value);
                }
                if let Some(paired) = sums.paired.get_mut(index) {
                    paired.add(value - returns);
                }
            }
            self.values.push(value);
        }
        if self.watched[p] {
            if let Some((with, without)) = self.controls[p] {
                sums.watch.control.add(self.values[without] - self.values[with]);
            }
            if of.ending.is_cut() {
                sums.watch.cut_off.note(of.steps, weight);
            }
            sums.watch.end(weight, of.id, || Leader {
                episode: of.id.clone(),
                weight,
                returns,
                first_v_hat: last.first_v_hat.into(),
                values: self.values.clone(),
            });
        }
    }
}

/// A call of `fold_policy`, which is compiled for several instruction sets and dispatched at run time.
struct FoldPolicy<'a> {
    engine: &'a mut Engine,
    p: usize,
    state: &'a mut PolicyState,
    rows: &'a Rows<'a>,
}

impl pulp::WithSimd for FoldPolicy<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        self.engine.fold_policy(simd, self.p, self.state, self.rows);
    }
}

/// Returns for each policy whether the pass works on it or a mixture reads its ratios. A mixture comes after its base.
fn needed(plan: &Plan, pass: Pass, work: &[Vec<Work>]) -> Vec<bool> {
    let weights = |p: usize| pass == Pass::First && !plan.policies[p].estimators.is_empty();
    let mut needed: Vec<bool> = (0..work.len()).map(|p| !work[p].is_empty() || weights(p)).collect();
    for (p, policy) in plan.policies.iter().enumerate().rev() {
        if let Ratio::Mixture { of, .. } = policy.ratio {
            needed[of] |= needed[p];
        }
    }
    needed
}

/// Returns for each policy whether a mixture reads its ratios.
fn bases(plan: &Plan) -> Vec<bool> {
    let mixed = |p: usize| plan.policies.iter().any(|q| matches!(q.ratio, Ratio::Mixture { of, .. } if of == p));
    (0..plan.policies.len()).map(mixed).collect()
}

#[inline(always)]
fn store(ratios: &impl Ratios, out: &mut [Eight]) {
    for (b, rho) in out.iter_mut().enumerate().take(ratios.blocks()) {
        *rho = ratios.block(b).0;
    }
}

/// Returns true if an estimator reads P̂/P.
fn reads_transitions(work: &[Work]) -> bool {
    work.iter().any(|work| work.estimator.about().uses(Column::TransitionRatio))
}

/// Copies rows behind those that wait for a whole block, and returns the number of rows.
fn buffer(open: &mut Open, columns: &[&[f64]], rows: Range<usize>, tame: bool) -> usize {
    let count = rows.len();
    if count > 0 {
        for (buffer, column) in open.rows.iter_mut().zip(columns) {
            buffer[open.buffered..][..count].copy_from_slice(&column[rows.clone()]);
        }
        open.buffered += count;
        open.tame &= tame;
        open.steps += count as u64;
    }
    count
}

/// Writes p_{t−1} of each row to the index of the row.
fn shift_transition_ratio(policy: &Policy, state: &mut PolicyState, rows: &Rows, out: &mut Vec<f64>) {
    let end = rows.start + rows.len;
    out.resize(out.len().max(end + 1), 1.0);
    out[rows.start] = state.previous_ratio;
    match policy.transition_ratio {
        Some(slot) => out[rows.start + 1..=end].copy_from_slice(&rows.columns[slot][rows.start..end]),
        None => out[rows.start + 1..=end].fill(1.0),
    }
    state.previous_ratio = out[end];
}

/// Returns ρ_t of eight rows of any magnitude.
fn scaled_ratio(plan: &Plan, p: usize, rows: &Rows, row: usize) -> Block<Scaled> {
    let load = |slot: usize| Block::<Scaled>::load(&by_blocks(rows.columns[slot], row)[0]);
    match plan.policies[p].ratio {
        Ratio::One => Block::splat(1.0),
        Ratio::Probabilities { behavior, target } => {
            let (pi_0, pi_1) = (load(behavior), load(target));
            Block(std::array::from_fn(|j| pi_1.0[j] / pi_0.0[j]))
        }
        Ratio::Column { ratio } => load(ratio),
        Ratio::Mixture { .. } => {
            // A loop, because the chain of mixtures may be too long for a recursion.
            let (mut base, mut shares) = (p, vec![]);
            while let Ratio::Mixture { of, alpha } = plan.policies[base].ratio {
                shares.push(alpha);
                base = of;
            }
            shares.into_iter().rev().fold(scaled_ratio(plan, base, rows, row), crate::pass::ratios::mixed)
        }
    }
}

fn first_zero(piece: &Piece, scaled: Option<&[Scaled; LANES + 1]>) -> Option<u64> {
    let index = match scaled {
        Some(c) => c[1..].iter().position(|c| c.is_zero()),
        None => piece.c[1..].iter().position(|&c| c == 0.0),
    };
    index.map(|index| (piece.block * LANES + index + 1) as u64)
}
