//! The best stationary policy of a model, by value iteration:
//!
//!     V(s) ← max_a [R̂(s, a) + γ Σ_{s' ≠ s} P̂(s'|s, a) V(s')] / (1 − γ P̂(s|s, a))
//!
//! The maximum is over the legal actions; the worst policy has min in place of max. The division accounts for the time
//! spent in s, so a pair that leads back to its own state has its value at once. Values are replaced as they are found
//! (Gauss–Seidel), in sweeps of alternating direction. Each sweep contracts the distance to V* by γ at least, so after
//! one that changes no value by more than δ, |V − V*| ≤ δγ/(1 − γ). The start is a lower bound on the value of every
//! policy.
//!
//! Actions whose Q differ by no more than that error count as equal, and the first of them is taken.

use super::model::Model;

/// δ in units of the largest |R̂|.
pub const TOLERANCE: f64 = 1e-10;
/// The limit on sweeps. 0.99999^k falls below the tolerance long before.
const MOST_SWEEPS: usize = 10_000_000;

/// The goal of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The largest value.
    Maximize,
    /// The smallest value.
    Minimize,
}

/// The reason why there is no best policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoOptimum {
    /// γ is not in [0, 1).
    Discount,
    /// The mask of legal actions does not have one entry per pair.
    Mask,
    /// A state without a legal action.
    NoAction(usize),
}

/// The best policy, and its value to within the tolerance.
#[derive(Clone, Debug)]
pub struct Optimum {
    /// The action of each state.
    pub actions: Vec<u32>,
    /// V(s).
    pub values: Vec<f64>,
    /// The number of sweeps over all states.
    pub sweeps: usize,
}

/// Returns the best stationary policy. `legal` says for each pair whether it may be chosen.
pub fn optimum(model: &Model, discount: f64, goal: Goal, legal: Option<&[bool]>) -> Result<Optimum, NoOptimum> {
    let (states, actions) = (model.states(), model.actions());
    if !(0.0..1.0).contains(&discount) {
        return Err(NoOptimum::Discount);
    }
    if let Some(legal) = legal {
        if legal.len() != states * actions {
            return Err(NoOptimum::Mask);
        }
        if let Some(s) = legal.chunks(actions).position(|row| !row.contains(&true)) {
            return Err(NoOptimum::NoAction(s));
        }
    }
    // Minimising is maximising with the opposite sign.
    let sign = if goal == Goal::Maximize { 1.0 } else { -1.0 };
    let problem = Problem { model, discount, sign, legal, stay: stay(model, discount) };
    let rewards = model.rewards().iter().map(|r| sign * r);
    let worst = rewards.clone().fold(0.0, f64::min) / (1.0 - discount);
    let largest = rewards.fold(0.0f64, |largest, r| largest.max(r.abs()));
    let (mut values, mut sweeps) = (vec![worst; states], 0);
    loop {
        let change = problem.sweep(&mut values, sweeps % 2 == 1);
        sweeps += 1;
        if change <= TOLERANCE * largest || sweeps == MOST_SWEEPS {
            break;
        }
    }
    let equal = TOLERANCE * largest * 2.0 / (1.0 - discount);
    let actions = (0..states).map(|s| problem.first_of_the_best(s, &values, equal)).collect();
    values.iter_mut().for_each(|v| *v *= sign);
    Ok(Optimum { actions, values, sweeps })
}

/// Returns 1 − γ P̂(s|s, a) by pair.
fn stay(model: &Model, discount: f64) -> Vec<f64> {
    let itself = |pair: usize| model.successors(pair).filter(move |&(s, _)| s as usize == pair / model.actions());
    (0..model.rewards().len()).map(|pair| 1.0 - discount * itself(pair).map(|(_, p)| p).sum::<f64>()).collect()
}

struct Problem<'a> {
    model: &'a Model,
    discount: f64,
    sign: f64,
    legal: Option<&'a [bool]>,
    stay: Vec<f64>,
}

impl Problem<'_> {
    fn legal(&self, pair: usize) -> bool {
        self.legal.is_none_or(|legal| legal[pair])
    }

    /// Returns the value of taking a in s until s is left.
    #[inline(always)]
    fn q(&self, s: usize, pair: usize, values: &[f64]) -> f64 {
        let others = self.model.successors(pair).filter(|&(next, _)| next as usize != s);
        let sum: f64 = others.map(|(next, p)| p * values[next as usize]).sum();
        (self.sign * self.model.rewards()[pair] + self.discount * sum) / self.stay[pair]
    }

    fn best(&self, s: usize, values: &[f64]) -> f64 {
        let pairs = s * self.model.actions()..(s + 1) * self.model.actions();
        pairs.filter(|&pair| self.legal(pair)).map(|pair| self.q(s, pair, values)).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Replaces every value, and returns the largest change.
    fn sweep(&self, values: &mut [f64], backwards: bool) -> f64 {
        let mut change = 0.0f64;
        for i in 0..values.len() {
            let s = if backwards { values.len() - 1 - i } else { i };
            let best = self.best(s, values);
            change = change.max((best - std::mem::replace(&mut values[s], best)).abs());
        }
        change
    }

    fn first_of_the_best(&self, s: usize, values: &[f64], equal: f64) -> u32 {
        let first = s * self.model.actions();
        let one_step = |pair: usize| {
            let sum: f64 = self.model.successors(pair).map(|(next, p)| p * values[next as usize]).sum();
            self.sign * self.model.rewards()[pair] + self.discount * sum
        };
        let q: Vec<f64> = (first..first + self.model.actions())
            .map(|pair| if self.legal(pair) { one_step(pair) } else { f64::NEG_INFINITY })
            .collect();
        let best = q.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        q.iter().position(|&q| q >= best - equal).unwrap_or(0) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STATES: usize = 3;
    const ACTIONS: usize = 2;

    fn model() -> impl Strategy<Value = Model> {
        let row = (prop::collection::vec(0.0..1.0f64, STATES + 1), -5.0..5.0f64);
        prop::collection::vec(row, STATES * ACTIONS).prop_map(|rows| {
            let (mut probability, mut rewards) = (vec![], vec![]);
            for (weights, reward) in rows {
                let total: f64 = weights.iter().sum::<f64>() + 1e-3;
                probability.extend(weights[..STATES].iter().map(|w| w / total));
                rewards.push(reward);
            }
            let start = (0..=STATES * ACTIONS).map(|pair| pair * STATES).collect();
            let next = (0..STATES * ACTIONS * STATES).map(|i| (i % STATES) as u32).collect();
            Model::new(STATES, ACTIONS, rewards, start, next, probability).unwrap()
        })
    }

    /// Returns V of a deterministic policy by plain iteration.
    fn value(model: &Model, actions: &[usize], discount: f64) -> Vec<f64> {
        let mut v = vec![0.0; STATES];
        for _ in 0..2000 {
            v = (0..STATES).map(|s| model.backup(s * ACTIONS + actions[s], |next| v[next], discount)).collect();
        }
        v
    }

    proptest! {
        #[test]
        fn no_deterministic_policy_is_better(model in model(), maximize in any::<bool>(), mask in 0..3usize.pow(3)) {
            let goal = if maximize { Goal::Maximize } else { Goal::Minimize };
            // In each state the first action, the second or both are legal.
            let allowed: Vec<usize> = (0..STATES).map(|s| mask / 3usize.pow(s as u32) % 3).collect();
            let legal: Vec<bool> = allowed.iter().flat_map(|&which| [which != 1, which != 0]).collect();
            let best = optimum(&model, 0.9, goal, Some(&legal)).unwrap();
            let chosen: Vec<usize> = best.actions.iter().map(|&a| a as usize).collect();
            prop_assert!(chosen.iter().enumerate().all(|(s, a)| legal[s * ACTIONS + a]));
            let reached = value(&model, &chosen, 0.9);
            for code in 0..1 << STATES {
                let other: Vec<usize> = (0..STATES).map(|s| code >> s & 1).collect();
                if other.iter().enumerate().all(|(s, a)| legal[s * ACTIONS + a]) {
                    for (v, w) in reached.iter().zip(value(&model, &other, 0.9)) {
                        let ahead = if maximize { v - w } else { w - v };
                        prop_assert!(ahead >= -1e-7);
                    }
                }
            }
            for (v, w) in reached.iter().zip(&best.values) {
                prop_assert!((v - w).abs() < 1e-7);
            }
        }
    }

    #[test]
    fn a_pair_that_leads_to_itself_takes_two_sweeps() {
        let model = Model::new(1, 2, vec![-1.0, -1.0], vec![0, 1, 2], vec![0, 0], vec![1.0; 2]).unwrap();
        let best = optimum(&model, 0.99, Goal::Maximize, None).unwrap();
        assert_eq!((best.actions[0], best.sweeps), (0, 1));
        assert!((best.values[0] + 100.0).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_optimum_is_refused() {
        let model = Model::new(1, 2, vec![-1.0, -1.0], vec![0, 1, 2], vec![0, 0], vec![1.0; 2]).unwrap();
        let refused = |discount, legal| optimum(&model, discount, Goal::Maximize, legal).map(|_| ());
        assert_eq!(refused(1.0, None), Err(NoOptimum::Discount));
        assert_eq!(refused(f64::NAN, None), Err(NoOptimum::Discount));
        assert_eq!(refused(0.5, Some(&[true])), Err(NoOptimum::Mask));
        assert_eq!(refused(0.5, Some(&[false, false])), Err(NoOptimum::NoAction(0)));
    }
}
