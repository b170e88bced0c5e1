//! A tabular model R̂(s, a), P̂(s'|s, a) with sparse rows of successors.
//!
//! The missing probability, 1 − Σ_{s'} P̂(s'|s, a), is that of the end of the episode: the absorbing state has value 0
//! and is not stored.

/// The amount by which a row of probabilities may exceed 1.
const TOLERANCE: f64 = 1e-9;

/// A tabular model whose rows are indexed by pairs (s, a).
#[derive(Clone, Debug)]
pub struct Model {
    states: usize,
    actions: usize,
    rewards: Vec<f64>,
    start: Vec<usize>,
    next: Vec<u32>,
    probability: Vec<f64>,
}

impl Model {
    /// Makes a model from rows that are known to fit.
    pub(super) fn from_counts(
        states: usize,
        actions: usize,
        rewards: Vec<f64>,
        start: Vec<usize>,
        next: Vec<u32>,
        probability: Vec<f64>,
    ) -> Self {
        Self { states, actions, rewards, start, next, probability }
    }

    /// Makes a model from rows, or says why they do not make one.
    ///
    /// The successors of pair i are `next[start[i]..start[i + 1]]`.
    pub fn new(
        states: usize,
        actions: usize,
        rewards: Vec<f64>,
        start: Vec<usize>,
        next: Vec<u32>,
        probability: Vec<f64>,
    ) -> Result<Self, String> {
        let pairs = states.checked_mul(actions).filter(|&pairs| pairs > 0 && pairs < u32::MAX as usize);
        let pairs = pairs.ok_or_else(|| format!("{states} states and {actions} actions make no model"))?;
        if rewards.len() != pairs || start.len() != pairs + 1 {
            return Err(format!("{pairs} pairs need {pairs} rewards and {} row starts", pairs + 1));
        }
        if start[0] != 0 || !start.is_sorted() || start[pairs] != next.len() || next.len() != probability.len() {
            return Err("row starts must ascend from 0 to the number of successors and probabilities".into());
        }
        if let Some(pair) = rewards.iter().position(|r| !r.is_finite()) {
            return Err(format!("the reward of state {}, action {} is not finite", pair / actions, pair % actions));
        }
        if let Some(s) = next.iter().find(|&&s| s as usize >= states) {
            return Err(format!("a successor is {s}, but states go from 0 to {}", states - 1));
        }
        for pair in 0..pairs {
            let row = &probability[start[pair]..start[pair + 1]];
            let total: f64 = row.iter().sum();
            if !row.iter().all(|&p| p >= 0.0) || total.is_nan() || total > 1.0 + TOLERANCE {
                let (s, a) = (pair / actions, pair % actions);
                return Err(format!("the successors of state {s}, action {a} have probabilities that add to {total}"));
            }
        }
        Ok(Self { states, actions, rewards, start, next, probability })
    }

    /// Returns |S|.
    pub fn states(&self) -> usize {
        self.states
    }

    /// Returns |A|.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// Returns R̂ by pair.
    pub fn rewards(&self) -> &[f64] {
        &self.rewards
    }

    /// Returns where the row of each pair starts, and where the last one ends.
    pub fn start(&self) -> &[usize] {
        &self.start
    }

    /// Returns s' of all rows.
    pub fn next(&self) -> &[u32] {
        &self.next
    }

    /// Returns P̂ of all rows.
    pub fn probability(&self) -> &[f64] {
        &self.probability
    }

    /// Returns s' and P̂(s'|s, a) of a pair.
    #[inline(always)]
    pub fn successors(&self, pair: usize) -> impl Iterator<Item = (u32, f64)> {
        let range = self.start[pair]..self.start[pair + 1];
        self.next[range.clone()].iter().copied().zip(self.probability[range].iter().copied())
    }

    /// Returns Q(s, a) = R̂(s, a) + γ Σ P̂(s'|s, a) V(s').
    #[inline(always)]
    pub fn backup(&self, pair: usize, value: impl Fn(usize) -> f64, discount: f64) -> f64 {
        let sum = self.successors(pair).fold(0.0, |sum, (next, p)| sum + p * value(next as usize));
        self.rewards[pair] + discount * sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_make_no_model_are_refused() {
        let make = |rewards: &[f64], start: &[usize], next: &[u32], p: &[f64]| {
            Model::new(2, 1, rewards.into(), start.into(), next.into(), p.into()).map(|_| ())
        };
        assert_eq!(make(&[0.0, 1.0], &[0, 1, 2], &[1, 0], &[1.0, 0.5]), Ok(()));
        for (bad, why) in [
            (make(&[0.0], &[0, 1, 2], &[1, 0], &[1.0, 0.5]), "2 rewards"),
            (make(&[0.0, 1.0], &[0, 2, 1], &[1, 0], &[1.0, 0.5]), "ascend"),
            (make(&[0.0, f64::NAN], &[0, 1, 2], &[1, 0], &[1.0, 0.5]), "reward of state 1, action 0"),
            (make(&[0.0, 1.0], &[0, 1, 2], &[1, 2], &[1.0, 0.5]), "from 0 to 1"),
            (make(&[0.0, 1.0], &[0, 1, 2], &[1, 0], &[1.0, 1.5]), "state 1, action 0"),
            (make(&[0.0, 1.0], &[0, 1, 2], &[1, 0], &[-1.0, 0.5]), "state 0, action 0"),
        ] {
            assert!(bad.clone().is_err_and(|found| found.contains(why)), "{bad:?}");
        }
    }
}
