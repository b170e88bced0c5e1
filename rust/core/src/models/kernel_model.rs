//! Kernel-based reinforcement learning, Ormoneit & Sen (2002), on discrete states and actions: a model whose rewards
//! and transitions at (s, a) are averages of the samples at neighbouring pairs, weighted by a kernel.
//!
//!     R̂(s,a)    = S(Σ r)(s,a) / S(N)(s,a)
//!     P̂(s'|s,a) = S(N(·, s'))(s,a) / S(N)(s,a)
//!     Q^h(s,a)  = R̂(s,a) + γ S(Σ_{s'} N(·, s') V^{h-1}(s'))(s,a) / S(N)(s,a),    V^h(s) = Σ_a π(a|s) Q^h(s,a)
//!
//! P̂ is never stored: each step sums over the sparse counts and smooths once, for several policies together. Samples
//! that ended their episode count in N and lead nowhere. Where no sample is near, (s, a) has the reward that the user
//! gives and leads back to s.

use crate::models::kernel::{Kernel, Smoother, smoothed};
use crate::models::logged_rows::RowsByRemaining;

/// The number of functions of the state that are backed up side by side.
const LANES: usize = 4;

/// The number of sweeps after which value iteration gives up.
const SWEEPS: usize = 100_000;

/// The samples of a log, by pair = s · actions + a.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    /// The number of samples of each pair.
    pub count: &'a [f64],
    /// The sum of the rewards of each pair.
    pub reward: &'a [f64],
    /// The number of samples of each pair that ended their episode or have a known s'.
    pub known: &'a [f64],
    /// The pair of each transition that did not end its episode, in ascending order, one entry for each s'.
    pub pair: &'a [u32],
    /// The successor s' of each such entry.
    pub next: &'a [u32],
    /// The number of times that s' followed the pair.
    pub times: &'a [f64],
}

/// A fitted model.
#[derive(Clone, Debug)]
pub struct KernelModel {
    kernel: Kernel,
    actions: usize,
    /// R̂.
    reward: Vec<f64>,
    /// 1 / S(N), or 0 where no sample is near and the pair leads back to its state.
    scale: Vec<f64>,
    /// All (s, a, s'), leaf after leaf of the kernel.
    successors: Vec<Successor>,
    /// Where the successors of each leaf begin, and where the last ones end.
    starts: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Successor {
    /// The pair, counted from the first one of its leaf.
    cell: u32,
    next: u32,
    times: f64,
}

/// A policy π(a|s) by pair: one table, or one for each step.
#[derive(Clone, Copy, Debug)]
pub struct PairPolicy<'a> {
    tables: &'a [f64],
    pairs: usize,
}

impl<'a> PairPolicy<'a> {
    /// Takes a table of `pairs` numbers, or one such table for each step of the horizon.
    pub fn new(tables: &'a [f64], pairs: usize) -> Self {
        Self { tables, pairs }
    }

    fn stationary(&self) -> bool {
        self.tables.len() == self.pairs
    }

    fn at(&self, step: usize) -> &'a [f64] {
        let start = if self.stationary() { 0 } else { step * self.pairs };
        &self.tables[start..start + self.pairs]
    }
}

impl KernelModel {
    /// Fits the model. The last coordinate of the kernel's grid is the action.
    pub fn fit(kernel: Kernel, actions: usize, samples: Samples<'_>, unseen_reward: f64) -> Self {
        let (mass, sum) = (smoothed(&kernel, samples.count), smoothed(&kernel, samples.reward));
        let mean = |(sum, mass): (f64, f64)| if mass > 0.0 { sum / mass } else { unseen_reward };
        let reward = sum.into_iter().zip(mass).map(mean).collect();
        let inverse = |mass: f64| if mass > 0.0 { 1.0 / mass } else { 0.0 };
        let scale = smoothed(&kernel, samples.known).into_iter().map(inverse).collect();
        let (successors, starts) = by_leaf(&kernel, samples);
        Self { kernel, actions, reward, scale, successors, starts }
    }

    /// Returns R̂ by pair.
    pub fn reward(&self) -> &[f64] {
        &self.reward
    }

    /// Returns the number of pairs.
    pub fn pairs(&self) -> usize {
        self.kernel.cells()
    }

    /// Returns the number of states.
    pub fn states(&self) -> usize {
        self.pairs() / self.actions
    }

    /// Sorts rows of a log, given the pair and the number of remaining steps of each, up to the horizon.
    pub fn rows<'a>(&self, pairs: &'a [u32], remaining: &[u32], horizon: usize) -> RowsByRemaining<'a> {
        RowsByRemaining::new(pairs, remaining, horizon, &self.kernel)
    }

    /// Returns V^0, …, V^H of each policy by state, and Q^h(s,a) of each policy at the rows.
    pub fn values(
        &self,
        policies: &[PairPolicy<'_>],
        horizon: usize,
        discount: f64,
        rows: &RowsByRemaining,
    ) -> Vec<(Vec<f64>, Vec<f64>)> {
        let some = |some: &[PairPolicy<'_>]| match some {
            [policy] => Vec::from(self.values_in_lanes([*policy], horizon, discount, rows)),
            _ => {
                let lanes: [_; LANES] = std::array::from_fn(|lane| some[lane.min(some.len() - 1)]);
                let mut values = Vec::from(self.values_in_lanes(lanes, horizon, discount, rows));
                values.truncate(some.len());
                values
            }
        };
        policies.chunks(LANES).flat_map(some).collect()
    }

    fn values_in_lanes<const L: usize>(
        &self,
        policies: [PairPolicy<'_>; L],
        horizon: usize,
        discount: f64,
        rows: &RowsByRemaining,
    ) -> [(Vec<f64>, Vec<f64>); L] {
        let states = self.states();
        let mut all = policies.map(|_| (vec![0.0; (horizon + 1) * states], vec![0.0; rows.len()]));
        let mut smoother = Smoother::new(&self.kernel);
        let (mut v, mut next_v) = (vec![[0.0; L]; states], vec![[0.0; L]; states]);
        let stationary = policies.iter().all(PairPolicy::stationary);
        let backup_at = |h: usize| Backup::new(self, policies.map(|policy| policy.at(horizon - h)), discount);
        let mut backup = backup_at(horizon.min(1));
        for h in 1..=horizon {
            if h > 1 && !stationary {
                backup = backup_at(h);
            }
            self.smooth(
                &mut smoother,
                &v,
                #[inline(always)]
                |first, smooth| {
                    backup.apply(first, smooth, &v, &mut next_v);
                    for (row, pair) in rows.within(h, first) {
                        for (lane, (_, q)) in all.iter_mut().enumerate() {
                            let (smooth, v) = (smooth[pair - first][lane], v[pair / self.actions][lane]);
                            q[row] = self.action_value(pair, smooth, v, discount);
                        }
                    }
                },
            );
            std::mem::swap(&mut v, &mut next_v);
            for (lane, (all, _)) in all.iter_mut().enumerate() {
                for (into, v) in all[h * states..(h + 1) * states].iter_mut().zip(&v) {
                    *into = v[lane];
                }
            }
        }
        all
    }

    /// Returns Q^h(s,a) of a policy at the rows, given V^0, …, V^H of that policy.
    pub fn action_values(&self, values: &[f64], discount: f64, rows: &RowsByRemaining) -> Vec<f64> {
        let states = self.states();
        let steps: Vec<usize> = (1..=rows.horizon()).filter(|&h| !rows.with(h).is_empty()).collect();
        let mut out = vec![0.0; rows.len()];
        let mut smoother = Smoother::<LANES>::new(&self.kernel);
        let mut v = vec![[0.0; LANES]; states];
        for steps in steps.chunks(LANES) {
            for (lane, h) in steps.iter().enumerate() {
                let start = (h - 1) * states;
                for (v, &value) in v.iter_mut().zip(&values[start..start + states]) {
                    v[lane] = value;
                }
            }
            self.smooth(&mut smoother, &v, |first, smooth| {
                for (lane, &h) in steps.iter().enumerate() {
                    for (row, pair) in rows.within(h, first) {
                        let (smooth, v) = (smooth[pair - first][lane], v[pair / self.actions][lane]);
                        out[row] = self.action_value(pair, smooth, v, discount);
                    }
                }
            });
        }
        out
    }

    /// Returns the best legal action of each state, or the worst, by value iteration until no value moves by more than
    /// `tolerance` times the largest. Of equal actions the first is taken. Returns None if the values do not settle.
    pub fn optimal_actions(&self, legal: &[bool], discount: f64, maximize: bool, tolerance: f64) -> Option<Vec<u32>> {
        let mut smoother = Smoother::<1>::new(&self.kernel);
        let (mut v, mut next_v) = (vec![[0.0]; self.states()], vec![[0.0]; self.states()]);
        let mut best = vec![0u32; self.states()];
        for _ in 0..SWEEPS {
            self.smooth(&mut smoother, &v, |first, smooth| {
                for (i, smooth) in smooth.chunks_exact(self.actions).enumerate() {
                    let s = first / self.actions + i;
                    let mut found: Option<(f64, usize)> = None;
                    for (a, &[smooth]) in smooth.iter().enumerate().filter(|&(a, _)| legal[s * self.actions + a]) {
                        let q = self.action_value(s * self.actions + a, smooth, v[s][0], discount);
                        if found.is_none_or(|(best, _)| if maximize { q > best } else { q < best }) {
                            found = Some((q, a));
                        }
                    }
                    let (value, a) = found.unwrap_or((0.0, 0));
                    (next_v[s][0], best[s]) = (value, a as u32);
                }
            });
            std::mem::swap(&mut v, &mut next_v);
            let largest = |x: f64, y: f64| if y > x { y } else { x };
            let size = v.iter().map(|v| v[0].abs()).fold(0.0, largest);
            let moved = v.iter().zip(&next_v).map(|(v, old)| (v[0] - old[0]).abs()).fold(0.0, largest);
            if moved <= tolerance * size {
                return Some(best);
            }
        }
        None
    }

    /// Returns R̂ + γ P̂V, where `smooth` is S(Σ N V) at the pair and v is V of its state.
    fn action_value(&self, pair: usize, smooth: f64, v: f64, discount: f64) -> f64 {
        let next = if self.scale[pair] > 0.0 { smooth * self.scale[pair] } else { v };
        self.reward[pair] + discount * next
    }

    /// Computes S(Σ_{s'} N(·, s') V(s')), which `take` receives row by row.
    fn smooth<const L: usize>(
        &self,
        smoother: &mut Smoother<'_, L>,
        v: &[[f64; L]],
        take: impl FnMut(usize, &[[f64; L]]),
    ) {
        pulp::Arch::new().dispatch(Smooth { model: self, smoother, v, take });
    }
}

struct Smooth<'a, 'k, const L: usize, F> {
    model: &'a KernelModel,
    smoother: &'a mut Smoother<'k, L>,
    v: &'a [[f64; L]],
    take: F,
}

impl<const L: usize, F: FnMut(usize, &[[f64; L]])> pulp::WithSimd for Smooth<'_, '_, L, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        let Self { model, smoother, v, take } = self;
        let fill = |first: usize, into: &mut [[f64; L]]| {
            into.fill([0.0; L]);
            let leaf = first / into.len();
            for &Successor { cell, next, times } in &model.successors[model.starts[leaf]..model.starts[leaf + 1]] {
                let (into, v) = (&mut into[cell as usize], &v[next as usize]);
                for lane in 0..L {
                    into[lane] += times * v[lane];
                }
            }
        };
        smoother.smooth(fill, take);
    }
}

/// The parts of V^h = reward + stay · V^{h-1} + Σ_a weight · S(Σ N V^{h-1}) that depend on the policies and the model
/// only.
struct Backup<const L: usize> {
    actions: usize,
    /// Σ_a π(a|s) R̂(s,a).
    reward: Vec<[f64; L]>,
    /// γ Σ_a π(a|s) over the pairs without a near sample.
    stay: Vec<[f64; L]>,
    /// γ π(a|s) / S(N)(s,a).
    weight: Vec<[f64; L]>,
}

impl<const L: usize> Backup<L> {
    fn new(model: &KernelModel, policies: [&[f64]; L], discount: f64) -> Self {
        let zeros = |n: usize| vec![[0.0; L]; n];
        let (mut reward, mut stay, mut weight) = (zeros(model.states()), zeros(model.states()), zeros(model.pairs()));
        for (pair, weight) in weight.iter_mut().enumerate() {
            let state = pair / model.actions;
            for lane in 0..L {
                let pi = policies[lane][pair];
                reward[state][lane] += pi * model.reward[pair];
                weight[lane] = discount * pi * model.scale[pair];
                if model.scale[pair] == 0.0 {
                    stay[state][lane] += discount * pi;
                }
            }
        }
        Self { actions: model.actions, reward, stay, weight }
    }

    /// Writes V^h of the states whose pairs are in this row.
    #[inline(always)]
    fn apply(&self, first: usize, smooth: &[[f64; L]], v: &[[f64; L]], next_v: &mut [[f64; L]]) {
        let weights = self.weight[first..first + smooth.len()].chunks_exact(self.actions);
        for (i, (smooth, weight)) in smooth.chunks_exact(self.actions).zip(weights).enumerate() {
            let s = first / self.actions + i;
            let mut sum = [0.0; L];
            for (smooth, weight) in smooth.iter().zip(weight) {
                for lane in 0..L {
                    sum[lane] += smooth[lane] * weight[lane];
                }
            }
            for lane in 0..L {
                next_v[s][lane] = self.reward[s][lane] + self.stay[s][lane] * v[s][lane] + sum[lane];
            }
        }
    }
}

/// Sorts successors by leaf, then by their rank among the successors of a pair, so that no sum waits for the one before
/// it.
fn by_leaf(kernel: &Kernel, samples: Samples<'_>) -> (Vec<Successor>, Vec<usize>) {
    let leaf = kernel.leaf();
    let mut ranked = Vec::with_capacity(samples.pair.len());
    let mut rank = 0u32;
    for (i, &pair) in samples.pair.iter().enumerate() {
        rank = if i > 0 && samples.pair[i - 1] == pair { rank + 1 } else { 0 };
        let cell = (pair as usize % leaf) as u32;
        ranked.push((pair as usize / leaf, rank, Successor { cell, next: samples.next[i], times: samples.times[i] }));
    }
    ranked.sort_unstable_by_key(|&(leaf, rank, successor)| (leaf, rank, successor.cell));
    let mut starts = vec![0; kernel.cells() / leaf + 1];
    for &(leaf, ..) in &ranked {
        starts[leaf + 1] += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    (ranked.into_iter().map(|(_, _, successor)| successor).collect(), starts)
}
