//! Finite-horizon values of policies, by backward induction over the steps h that remain:
//!
//!     Q^h(s, a) = R̂(s, a) + γ Σ_{s'} P̂(s'|s, a) V^{h-1}(s'),    V^h(s) = Σ_a π(a|s) Q^h(s, a),    V^0 = 0
//!
//! Most of the time goes into reading the successors, so several policies are evaluated at once, with their values side
//! by side in lanes. Only V is kept, because Q^h(s, a) follows from V^{h-1} and one row of the model (see
//! [`super::lookup`]).

use std::collections::BTreeMap;

use super::model::Model;

/// The number of policies that are evaluated at once.
pub const LANES: usize = 4;

/// Fills in V of up to `LANES` policies as horizon × |S| × policies values, where row t has H - t steps to go.
///
/// A policy is a table π(a|s) by pairs, or one such table for each step of the horizon. Returns false if there are no
/// or too many policies, or if a table or the memory has another size.
pub fn evaluate(model: &Model, policies: &[&[f64]], horizon: usize, discount: f64, values: &mut [f64]) -> bool {
    let (pairs, states) = (model.rewards().len(), model.states());
    let fits = |table: &&[f64]| table.len() == pairs || Some(table.len()) == pairs.checked_mul(horizon);
    let size = policies.len().checked_mul(horizon).and_then(|rows| rows.checked_mul(states));
    if horizon == 0 || !policies.iter().all(fits) || size != Some(values.len()) {
        return false;
    }
    let (arch, rows) = (pulp::Arch::new(), &Rows::of(model));
    match policies.len() {
        1 => arch.dispatch(Induction::<1> { rows, policies, states, horizon, discount, values }),
        2 => arch.dispatch(Induction::<2> { rows, policies, states, horizon, discount, values }),
        3 => arch.dispatch(Induction::<3> { rows, policies, states, horizon, discount, values }),
        LANES => arch.dispatch(Induction::<LANES> { rows, policies, states, horizon, discount, values }),
        _ => return false,
    }
    true
}

/// The pairs of a model, sorted by their number of successors. A processor predicts the end of loops of equal length,
/// and a wrong prediction costs more than the loop. Pairs with equally many successors are sorted by action, so that
/// neighbours add to different states and need not wait for each other.
struct Rows {
    /// For each number of successors, that number and how many pairs have it.
    groups: Vec<(usize, usize)>,
    pairs: Vec<u32>,
    states: Vec<u32>,
    rewards: Vec<f64>,
    next: Vec<u32>,
    probability: Vec<f64>,
}

impl Rows {
    fn of(model: &Model) -> Self {
        let (actions, start) = (model.actions(), model.start());
        let mut by_length: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for pair in (0..actions).flat_map(|a| (a..start.len() - 1).step_by(actions)) {
            by_length.entry(start[pair + 1] - start[pair]).or_default().push(pair as u32);
        }
        let groups = by_length.iter().map(|(&length, pairs)| (length, pairs.len())).collect();
        let pairs: Vec<u32> = by_length.into_values().flatten().collect();
        let (mut next, mut probability) = (Vec::new(), Vec::new());
        next.reserve_exact(model.next().len());
        probability.reserve_exact(model.next().len());
        for &pair in &pairs {
            let row = start[pair as usize]..start[pair as usize + 1];
            next.extend_from_slice(&model.next()[row.clone()]);
            probability.extend_from_slice(&model.probability()[row]);
        }
        Self {
            groups,
            states: pairs.iter().map(|&pair| pair / actions as u32).collect(),
            rewards: pairs.iter().map(|&pair| model.rewards()[pair as usize]).collect(),
            pairs,
            next,
            probability,
        }
    }

    /// Adds π(a|s) Q(s, a) to V(s) for all pairs. π is in the order of the rows.
    #[inline(always)]
    fn backup<const L: usize>(&self, following: &[[f64; L]], discount: f64, pi: &[[f64; L]], value: &mut [[f64; L]]) {
        let (mut row, mut entry) = (0, 0);
        for &(length, count) in &self.groups {
            let (rows, entries) = (row..row + count, entry..entry + count * length);
            let mut group = Group {
                states: &self.states[rows.clone()],
                rewards: &self.rewards[rows.clone()],
                pi: &pi[rows.clone()],
                next: &self.next[entries.clone()],
                probability: &self.probability[entries.clone()],
                following,
                discount,
                value,
            };
            match length {
                0 => group.that_ends(),
                1 => group.of::<1>(),
                2 => group.of::<2>(),
                3 => group.of::<3>(),
                4 => group.of::<4>(),
                5 => group.of::<5>(),
                6 => group.of::<6>(),
                _ => group.of_many(length),
            }
            (row, entry) = (rows.end, entries.end);
        }
    }
}

/// Pairs with equally many successors.
struct Group<'a, const L: usize> {
    states: &'a [u32],
    rewards: &'a [f64],
    pi: &'a [[f64; L]],
    next: &'a [u32],
    probability: &'a [f64],
    following: &'a [[f64; L]],
    discount: f64,
    value: &'a mut [[f64; L]],
}

impl<const L: usize> Group<'_, L> {
    /// Handles pairs with N successors, for which the compiler unrolls the loop.
    #[inline(always)]
    fn of<const N: usize>(&mut self) {
        let (next, probability) = (self.next.as_chunks::<N>().0, self.probability.as_chunks::<N>().0);
        for (row, (next, probability)) in next.iter().zip(probability).enumerate() {
            self.add(row, next, probability);
        }
    }

    #[inline(always)]
    fn of_many(&mut self, length: usize) {
        let successors = self.next.chunks_exact(length).zip(self.probability.chunks_exact(length));
        for (row, (next, probability)) in successors.enumerate() {
            self.add(row, next, probability);
        }
    }

    #[inline(always)]
    fn that_ends(&mut self) {
        (0..self.states.len()).for_each(|row| self.add(row, &[], &[]));
    }

    #[inline(always)]
    fn add(&mut self, row: usize, next: &[u32], probability: &[f64]) {
        let mut sum = [0.0; L];
        for (&next, &p) in next.iter().zip(probability) {
            let v = self.following[next as usize];
            sum = std::array::from_fn(|lane| sum[lane] + p * v[lane]);
        }
        let (pi, reward, discount) = (self.pi[row], self.rewards[row], self.discount);
        let v = &mut self.value[self.states[row] as usize];
        *v = std::array::from_fn(|lane| v[lane] + pi[lane] * (reward + discount * sum[lane]));
    }
}

struct Induction<'a, const L: usize> {
    rows: &'a Rows,
    policies: &'a [&'a [f64]],
    states: usize,
    horizon: usize,
    discount: f64,
    values: &'a mut [f64],
}

impl<const L: usize> pulp::WithSimd for Induction<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        let mut pi = vec![[0.0; L]; self.rows.pairs.len()];
        let nothing = vec![[0.0; L]; self.states];
        let (mut earlier, mut following) = (self.values.as_chunks_mut::<L>().0, nothing.as_slice());
        for t in (0..self.horizon).rev() {
            side_by_side(self.policies, self.rows, t, self.horizon, &mut pi);
            let (rest, value) = std::mem::take(&mut earlier).split_at_mut(t * self.states);
            value.fill([0.0; L]);
            self.rows.backup(following, self.discount, &pi, value);
            (earlier, following) = (rest, value);
        }
    }
}

/// Writes the policies at step t into their lanes. A stationary policy is written only once, at the first step
/// computed.
#[inline(always)]
fn side_by_side<const L: usize>(policies: &[&[f64]], rows: &Rows, t: usize, horizon: usize, pi: &mut [[f64; L]]) {
    let pairs = pi.len();
    for (lane, table) in policies.iter().enumerate() {
        let stationary = table.len() == pairs;
        if stationary && t + 1 < horizon {
            continue;
        }
        let now = if stationary { table } else { &table[t * pairs..(t + 1) * pairs] };
        pi.iter_mut().zip(&rows.pairs).for_each(|(lanes, &pair)| lanes[lane] = now[pair as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::lookup::Values;
    use proptest::prelude::*;

    /// Makes a chain of two states: action 0 stays, action 1 moves on, and from state 1 it ends the episode.
    fn chain() -> Model {
        Model::new(2, 2, vec![0.0, 1.0, 0.5, 8.0], vec![0, 1, 2, 3, 3], vec![0, 1, 1], vec![1.0; 3]).unwrap()
    }

    fn values(model: &Model, policies: &[&[f64]], horizon: usize, discount: f64) -> Option<Vec<f64>> {
        let mut values = vec![f64::NAN; policies.len() * horizon * model.states()];
        evaluate(model, policies, horizon, discount, &mut values).then_some(values)
    }

    #[test]
    fn values_of_a_chain() {
        let walk = [0.0, 1.0, 0.0, 1.0];
        assert_eq!(values(&chain(), &[&walk], 3, 0.5).unwrap(), [5.0, 8.0, 5.0, 8.0, 1.0, 8.0]);
    }

    #[test]
    fn a_policy_may_depend_on_the_step() {
        let (stay, walk) = ([1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]);
        let table = [stay, walk].concat();
        assert_eq!(values(&chain(), &[&table], 2, 1.0).unwrap(), [0.0 + 1.0, 0.5 + 8.0, 1.0, 8.0]);
        assert_eq!(values(&chain(), &[&table], 3, 1.0), None);
    }

    fn model() -> impl Strategy<Value = Model> {
        let row = (prop::collection::vec((0..4u32, 0.0..0.25f64), 0..4), -5.0..5.0f64);
        prop::collection::vec(row, 8).prop_map(|rows| {
            let (mut start, mut next, mut probability, mut rewards) = (vec![0], vec![], vec![], vec![]);
            for (successors, reward) in rows {
                successors.iter().for_each(|&(s, p)| {
                    next.push(s);
                    probability.push(p);
                });
                rewards.push(reward);
                start.push(next.len());
            }
            Model::new(4, 2, rewards, start, next, probability).unwrap()
        })
    }

    proptest! {
        #[test]
        fn company_changes_no_bit(model in model(), ps in prop::collection::vec(0.0..1.0f64, 4 * 4), policies in 1..=LANES) {
            let tables: Vec<Vec<f64>> = ps.chunks(4).map(|p| p.iter().flat_map(|&p| [p, 1.0 - p]).collect()).collect();
            let tables: Vec<&[f64]> = tables.iter().take(policies).map(Vec::as_slice).collect();
            let together = values(&model, &tables, 6, 0.9).unwrap();
            for (lane, table) in tables.iter().enumerate() {
                let lane: Vec<f64> = together.iter().skip(lane).step_by(policies).copied().collect();
                prop_assert_eq!(values(&model, &[table], 6, 0.9).unwrap(), lane);
            }
        }

        #[test]
        fn v_is_the_mean_of_q(model in model(), p in prop::collection::vec(0.0..1.0f64, 4)) {
            let table: Vec<f64> = p.iter().flat_map(|&p| [p, 1.0 - p]).collect();
            let v = &values(&model, &[&table], 5, 0.9).unwrap();
            for t in 0..5 {
                let q = Values { model: &model, v, lanes: 1, lane: 0, discount: 0.9 }.q_table(t);
                for s in 0..4 {
                    let mean = table[2 * s] * q[2 * s] + table[2 * s + 1] * q[2 * s + 1];
                    prop_assert!((mean - v[4 * t + s]).abs() <= 1e-13 * (1.0 + mean.abs()));
                }
            }
        }
    }
}
