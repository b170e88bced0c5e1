//! What a tabular policy and the values of a model say of logged steps:
//!
//!     π(a|s),    V̂ = V^{H-t}(s),    Q̂ = R̂(s, a) + γ Σ_{s'} P̂(s'|s, a) V^{H-t-1}(s'),    R̂(s, a)
//!
//! for a cell s, an action a and a step t. Rows are looked up block by block, on several threads.

use super::model::Model;
use super::split::threads_for;

const BLOCK: usize = 256;

/// Whole numbers of either width.
#[derive(Clone, Copy, Debug)]
pub enum Integers<'a> {
    /// 32 bits.
    Short(&'a [i32]),
    /// 64 bits.
    Long(&'a [i64]),
}

impl Integers<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Short(values) => values.len(),
            Self::Long(values) => values.len(),
        }
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies those from `start` on, less `offset`.
    #[inline(always)]
    fn read(&self, start: usize, offset: i64, into: &mut [i64]) {
        match self {
            Self::Short(values) => {
                into.iter_mut().zip(&values[start..]).for_each(|(to, &value)| *to = i64::from(value) - offset);
            }
            Self::Long(values) => {
                into.iter_mut().zip(&values[start..]).for_each(|(to, &value)| *to = value.wrapping_sub(offset));
            }
        }
    }
}

/// V of one policy over a horizon: horizon × |S| values, row t with H - t steps to go.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// The model they belong to.
    pub model: &'a Model,
    /// V.
    pub v: &'a [f64],
    /// γ
    pub discount: f64,
}

impl Values<'_> {
    fn q(&self, t: usize, pair: usize) -> f64 {
        let states = self.model.states();
        let following = self.v[(t + 1) * states..].get(..states).unwrap_or(&[]);
        // No value is left after the last step.
        let (next, _) = following.as_chunks::<1>();
        if next.is_empty() { self.model.rewards()[pair] } else { self.model.backup(pair, next, self.discount)[0] }
    }
}

/// Q^{H-t} of all pairs.
pub fn q_table(model: &Model, v: &[f64], t: usize, discount: f64) -> Vec<f64> {
    let values = Values { model, v, discount };
    (0..model.rewards().len()).map(|pair| values.q(t, pair)).collect()
}

/// Steps of a log; each array has a value for every row.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// s
    pub cells: &'a [i64],
    /// a
    pub actions: Integers<'a>,
    /// t
    pub steps: Integers<'a>,
    /// What the first step of an episode is called: 0 or 1.
    pub first_step: i64,
}

/// Where to look.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    /// |S|
    pub states: usize,
    /// |A|
    pub actions: usize,
    /// H
    pub horizon: usize,
    /// π by pairs, or for each step by pairs.
    pub policy: Option<&'a [f64]>,
    /// A model and its values of a policy.
    pub values: Option<Values<'a>>,
}

/// What to fill in: arrays with a value for every row, or none.
#[derive(Debug, Default)]
pub struct Found<'a> {
    /// π(a|s)
    pub target_prob: Option<&'a mut [f64]>,
    /// Q̂
    pub q_hat: Option<&'a mut [f64]>,
    /// V̂
    pub v_hat: Option<&'a mut [f64]>,
    /// R̂
    pub r_hat: Option<&'a mut [f64]>,
}

impl<'a> Found<'a> {
    /// The first rows, and the rest.
    fn split_at(self, rows: usize) -> (Found<'a>, Found<'a>) {
        let cut = |column: Option<&'a mut [f64]>| column.map(|column| column.split_at_mut(rows)).unzip();
        let (p, p_rest) = cut(self.target_prob);
        let (q, q_rest) = cut(self.q_hat);
        let (v, v_rest) = cut(self.v_hat);
        let (r, r_rest) = cut(self.r_hat);
        (
            Found { target_prob: p, q_hat: q, v_hat: v, r_hat: r },
            Found { target_prob: p_rest, q_hat: q_rest, v_hat: v_rest, r_hat: r_rest },
        )
    }
}

impl Tables<'_> {
    /// Fills in what is asked for; or the first row whose cell, action or step is in no table.
    pub fn look_up(&self, rows: &Rows, mut found: Found, threads: usize) -> Result<(), usize> {
        let n = rows.cells.len();
        let parts = threads_for(n, threads);
        let bad = std::thread::scope(|scope| {
            let mut workers = vec![];
            for part in 1..=parts {
                let (start, end) = (n * (part - 1) / parts, n * part / parts);
                let (mine, rest) = found.split_at(end - start);
                found = rest;
                let work = move || self.part(rows, start..end, mine).err();
                if part == parts {
                    let last = work();
                    let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
                        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    };
                    return workers.into_iter().filter_map(join).chain(last).min();
                }
                workers.push(scope.spawn(work));
            }
            None
        });
        bad.map_or(Ok(()), Err)
    }

    fn part(&self, rows: &Rows, range: std::ops::Range<usize>, mut found: Found) -> Result<(), usize> {
        let (mut actions, mut steps) = ([0; BLOCK], [0; BLOCK]);
        let mut pairs = [0; BLOCK];
        for start in range.clone().step_by(BLOCK) {
            let n = BLOCK.min(range.end - start);
            let cells = &rows.cells[start..start + n];
            rows.actions.read(start, 0, &mut actions[..n]);
            rows.steps.read(start, rows.first_step, &mut steps[..n]);
            let known = |i: usize| {
                cells[i].cast_unsigned() < self.states as u64
                    && actions[i].cast_unsigned() < self.actions as u64
                    && steps[i].cast_unsigned() < self.horizon as u64
            };
            if !(0..n).fold(true, |all, i| all & known(i)) {
                return Err((0..n).find(|&i| !known(i)).unwrap_or(0) + start);
            }
            for i in 0..n {
                pairs[i] = cells[i] as usize * self.actions + actions[i] as usize;
            }
            let (done, rest) = found.split_at(n);
            self.block(cells, &pairs[..n], &steps[..n], done);
            found = rest;
        }
        Ok(())
    }

    #[inline(always)]
    fn block(&self, cells: &[i64], pairs: &[usize], steps: &[i64], found: Found) {
        if let (Some(column), Some(table)) = (found.target_prob, self.policy) {
            let a_step = if table.len() == self.states * self.actions { 0 } else { self.states * self.actions };
            for ((p, &pair), &t) in column.iter_mut().zip(pairs).zip(steps) {
                *p = table[t as usize * a_step + pair];
            }
        }
        let Some(values) = &self.values else { return };
        for (v, (&cell, &t)) in found.v_hat.into_iter().flatten().zip(cells.iter().zip(steps)) {
            *v = values.v[t as usize * self.states + cell as usize];
        }
        for (q, (&pair, &t)) in found.q_hat.into_iter().flatten().zip(pairs.iter().zip(steps)) {
            *q = values.q(t as usize, pair);
        }
        for (r, &pair) in found.r_hat.into_iter().flatten().zip(pairs) {
            *r = values.model.rewards()[pair];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mdp::dp::evaluate;

    fn model() -> Model {
        Model::new(2, 2, vec![0.0, 1.0, 0.5, 8.0], vec![0, 1, 2, 3, 3], vec![0, 1, 1], vec![1.0; 3]).unwrap()
    }

    fn look_up(steps: &[i32], threads: usize) -> Result<[Vec<f64>; 4], usize> {
        let (model, policy) = (model(), [0.25, 0.75, 0.5, 0.5]);
        let v = &evaluate(&model, &[&policy], 3, 0.5).unwrap()[0];
        let n = steps.len();
        let cells: Vec<i64> = (0..n as i64).map(|i| i % 2).collect();
        let actions: Vec<i64> = (0..n as i64).map(|i| i / 2 % 2).collect();
        let values = Some(Values { model: &model, v, discount: 0.5 });
        let tables = Tables { states: 2, actions: 2, horizon: 3, policy: Some(&policy), values };
        let rows =
            Rows { cells: &cells, actions: Integers::Long(&actions), steps: Integers::Short(steps), first_step: 1 };
        let mut columns = [vec![0.0; n], vec![0.0; n], vec![0.0; n], vec![0.0; n]];
        let [p, q, v, r] = &mut columns;
        let found = Found { target_prob: Some(p), q_hat: Some(q), v_hat: Some(v), r_hat: Some(r) };
        tables.look_up(&rows, found, threads).map(|()| columns)
    }

    #[test]
    fn rows_are_what_the_tables_say() {
        let [p, q, v, r] = look_up(&[3, 3, 3, 2], 1).unwrap();
        assert_eq!(p, [0.25, 0.5, 0.75, 0.5]);
        assert_eq!(q, [0.0, 0.5, 1.0, 8.0]);
        assert_eq!(v, [0.75, 4.25, 0.75, 0.5 * (0.5 + 0.5 * 4.25) + 0.5 * 8.0]);
        assert_eq!(r, [0.0, 0.5, 1.0, 8.0]);
    }

    #[test]
    fn threads_change_nothing_and_the_first_bad_row_is_named() {
        let mut steps: Vec<i32> = (0..300_000).map(|i| 1 + i % 3).collect();
        assert_eq!(look_up(&steps, 1), look_up(&steps, 4));
        steps[250_000] = 4;
        steps[100_001] = 0;
        assert_eq!(look_up(&steps, 4), Err(100_001));
    }
}
