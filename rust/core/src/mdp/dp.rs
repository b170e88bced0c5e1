//! Finite-horizon values of policies, by backward induction over the steps h that remain:
//!
//!     Q^h(s, a) = R̂(s, a) + γ Σ_{s'} P̂(s'|s, a) V^{h-1}(s'),    V^h(s) = Σ_a π(a|s) Q^h(s, a),    V^0 = 0
//!
//! Reading the successors is the cost, so several policies are evaluated at once, their values side by side in lanes.
//! Only V is kept: Q^h(s, a) is one row of the model away from V^{h-1} (see [`super::lookup`]).

use super::model::Model;

/// Policies evaluated at once.
const LANES: usize = 4;

/// V of each policy as horizon × |S| values: row t has H - t steps to go.
///
/// A policy is a table π(a|s) by pairs, or horizon such tables, one for each step. None if a table has another size.
pub fn evaluate(model: &Model, policies: &[&[f64]], horizon: usize, discount: f64) -> Option<Vec<Vec<f64>>> {
    let pairs = model.rewards().len();
    let fits = |table: &&[f64]| table.len() == pairs || Some(table.len()) == pairs.checked_mul(horizon);
    if !policies.iter().all(fits) {
        return None;
    }
    let arch = pulp::Arch::new();
    let groups = policies.chunks(LANES).flat_map(|policies| match policies.len() {
        1 => arch.dispatch(Induction::<1> { model, policies, horizon, discount }),
        2 => arch.dispatch(Induction::<2> { model, policies, horizon, discount }),
        _ => arch.dispatch(Induction::<LANES> { model, policies, horizon, discount }),
    });
    Some(groups.collect())
}

struct Induction<'a, const L: usize> {
    model: &'a Model,
    policies: &'a [&'a [f64]],
    horizon: usize,
    discount: f64,
}

impl<const L: usize> pulp::WithSimd for Induction<'_, L> {
    type Output = Vec<Vec<f64>>;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) -> Self::Output {
        let (states, actions) = (self.model.states(), self.model.actions());
        let mut pi = vec![[0.0; L]; states * actions];
        let (mut value, mut before) = (vec![[0.0; L]; states], vec![[0.0; L]; states]);
        let mut values = vec![vec![0.0; self.horizon * states]; self.policies.len()];
        for t in (0..self.horizon).rev() {
            self.side_by_side(t, &mut pi);
            for (s, v) in before.iter_mut().enumerate() {
                *v = [0.0; L];
                for (pair, pi) in (s * actions..).zip(&pi[s * actions..(s + 1) * actions]) {
                    let q = self.model.backup(pair, &value, self.discount);
                    for lane in 0..L {
                        v[lane] += pi[lane] * q[lane];
                    }
                }
            }
            std::mem::swap(&mut value, &mut before);
            for (lane, values) in values.iter_mut().enumerate() {
                let row = &mut values[t * states..(t + 1) * states];
                row.iter_mut().zip(&value).for_each(|(v, lanes)| *v = lanes[lane]);
            }
        }
        values
    }
}

impl<const L: usize> Induction<'_, L> {
    /// The policies at step t, lane by lane; a stationary one is written once, at the first step looked at.
    #[inline(always)]
    fn side_by_side(&self, t: usize, pi: &mut [[f64; L]]) {
        let pairs = pi.len();
        for (lane, table) in self.policies.iter().enumerate() {
            let stationary = table.len() == pairs;
            if stationary && t + 1 < self.horizon {
                continue;
            }
            let now = if stationary { table } else { &table[t * pairs..(t + 1) * pairs] };
            pi.iter_mut().zip(now).for_each(|(lanes, &p)| lanes[lane] = p);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mdp::lookup::q_table;
    use proptest::prelude::*;

    /// Two states; action 0 stays, action 1 moves on; from state 1 it ends.
    fn chain() -> Model {
        Model::new(2, 2, vec![0.0, 1.0, 0.5, 8.0], vec![0, 1, 2, 3, 3], vec![0, 1, 1], vec![1.0; 3]).unwrap()
    }

    #[test]
    fn values_of_a_chain() {
        let walk = [0.0, 1.0, 0.0, 1.0];
        let values = evaluate(&chain(), &[&walk], 3, 0.5).unwrap();
        assert_eq!(values[0], [5.0, 8.0, 5.0, 8.0, 1.0, 8.0]);
    }

    #[test]
    fn a_policy_may_depend_on_the_step() {
        let (stay, walk) = ([1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]);
        let table = [stay, walk].concat();
        let values = evaluate(&chain(), &[&table], 2, 1.0).unwrap();
        assert_eq!(values[0], [0.0 + 1.0, 0.5 + 8.0, 1.0, 8.0]);
        assert_eq!(evaluate(&chain(), &[&table], 3, 1.0), None);
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
        fn company_changes_no_bit(model in model(), ps in prop::collection::vec(0.0..1.0f64, 4 * 7), policies in 1..8usize) {
            let tables: Vec<Vec<f64>> = ps.chunks(4).map(|p| p.iter().flat_map(|&p| [p, 1.0 - p]).collect()).collect();
            let tables: Vec<&[f64]> = tables.iter().take(policies).map(Vec::as_slice).collect();
            let together = evaluate(&model, &tables, 6, 0.9).unwrap();
            for (table, values) in tables.iter().zip(&together) {
                prop_assert_eq!(&evaluate(&model, &[table], 6, 0.9).unwrap()[0], values);
            }
        }

        #[test]
        fn v_is_the_mean_of_q(model in model(), p in prop::collection::vec(0.0..1.0f64, 4)) {
            let table: Vec<f64> = p.iter().flat_map(|&p| [p, 1.0 - p]).collect();
            let v = &evaluate(&model, &[&table], 5, 0.9).unwrap()[0];
            for t in 0..5 {
                let q = q_table(&model, v, t, 0.9);
                for s in 0..4 {
                    let mean = table[2 * s] * q[2 * s] + table[2 * s + 1] * q[2 * s + 1];
                    prop_assert_eq!(mean, v[4 * t + s]);
                }
            }
        }
    }
}
