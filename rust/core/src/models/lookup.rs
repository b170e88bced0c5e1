//! Look-up of the values that a tabular policy and a model have at logged steps:
//!
//!     π(a|s),    V̂ = V^{H-t}(s),    Q̂ = R̂(s, a) + γ Σ_{s'} P̂(s'|s, a) V^{H-t-1}(s'),    R̂(s, a)
//!
//! Here s is a cell, a an action and t a step. Rows are looked up block by block, on several threads.

use std::ops::Range;

use super::dp::LANES;
use super::integers::Integers;
use super::model::Model;
use super::split::threads_for;

const BLOCK: usize = 256;

/// V of policies over a horizon, in some lanes of a table of several policies, where row t has H - t steps to go.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// The model to which the values belong.
    pub model: &'a Model,
    /// V as horizon × |S| × lanes values.
    pub v: &'a [f64],
    /// The number of policies in the table.
    pub lanes: usize,
    /// The lane of the policy, or of the first one of several.
    pub lane: usize,
    /// γ
    pub discount: f64,
}

impl Values<'_> {
    #[inline(always)]
    fn v(&self, t: usize, s: usize) -> f64 {
        self.v[(t * self.model.states() + s) * self.lanes + self.lane]
    }

    #[inline(always)]
    fn q(&self, t: usize, pair: usize) -> f64 {
        let last = self.v.len() <= (t + 1) * self.model.states() * self.lanes;
        self.model.backup(pair, |next| if last { 0.0 } else { self.v(t + 1, next) }, self.discount)
    }

    /// Computes Q of N policies for the rows of a block.
    #[inline(always)]
    fn q_of<const N: usize>(&self, block: &Block, actions: usize, q: &mut [&mut [f64]]) {
        let a_step = self.model.states() * self.lanes;
        for i in 0..block.cells.len() {
            let pair = block.cells[i] as usize * actions + block.actions[i] as usize;
            let next = self.v.get((block.steps[i] as usize + 1) * a_step..).unwrap_or_default();
            let value = |s: usize| -> [f64; N] {
                let here = s * self.lanes + self.lane;
                next.get(here..here + N).and_then(|lanes| lanes.try_into().ok()).unwrap_or([0.0; N])
            };
            let sums = self.model.successors(pair).fold([0.0; N], |sums, (next, p)| {
                let v = value(next as usize);
                std::array::from_fn(|lane| sums[lane] + p * v[lane])
            });
            for (column, sum) in q.iter_mut().zip(sums) {
                column[i] = self.model.rewards()[pair] + self.discount * sum;
            }
        }
    }

    /// Returns Q of all pairs at step t.
    pub fn q_table(&self, t: usize) -> Vec<f64> {
        (0..self.model.rewards().len()).map(|pair| self.q(t, pair)).collect()
    }

    /// Returns V(s), Q(s, 0), Q(s, 1), … of all steps and states, so that the values of a row lie side by side.
    fn records(&self, horizon: usize) -> Vec<f64> {
        let (states, actions) = (self.model.states(), self.model.actions());
        let mut records = Vec::with_capacity(horizon * states * (1 + actions));
        for (t, s) in (0..horizon).flat_map(|t| (0..states).map(move |s| (t, s))) {
            records.push(self.v(t, s));
            records.extend((s * actions..(s + 1) * actions).map(|pair| self.q(t, pair)));
        }
        records
    }
}

/// Steps of a log. Each array has one value per row.
#[derive(Clone, Copy, Debug)]
pub struct LoggedSteps<'a> {
    /// s
    pub cells: &'a [i64],
    /// a
    pub actions: Integers<'a>,
    /// t
    pub steps: Integers<'a>,
    /// The number of the first step of an episode: 0 or 1.
    pub first_step: i64,
}

/// The tables in which to look up.
#[derive(Clone, Copy, Debug)]
pub struct ValueTables<'a> {
    /// |S|
    pub states: usize,
    /// |A|
    pub actions: usize,
    /// H
    pub horizon: usize,
    /// π by pair, or by step and pair.
    pub policy: Option<&'a [f64]>,
    /// A model and its values for one policy or several.
    pub values: Option<Values<'a>>,
}

/// The arrays to fill in, each with one value per row, or none.
#[derive(Debug, Default)]
pub struct Found<'a> {
    /// π(a|s)
    pub target_prob: Option<&'a mut [f64]>,
    /// Q̂ of the policy in `Values::lane` and of those in the lanes after it.
    pub q_hat: Vec<&'a mut [f64]>,
    /// V̂ of the same policies.
    pub v_hat: Vec<&'a mut [f64]>,
    /// R̂
    pub r_hat: Option<&'a mut [f64]>,
}

impl<'a> Found<'a> {
    /// Splits off the first rows from the rest.
    fn split_at(self, rows: usize) -> (Found<'a>, Found<'a>) {
        let cut = |column: Option<&'a mut [f64]>| column.map(|column| column.split_at_mut(rows)).unzip();
        let each = |columns: Vec<&'a mut [f64]>| columns.into_iter().map(|column| column.split_at_mut(rows)).unzip();
        let (p, p_rest) = cut(self.target_prob);
        let (q, q_rest) = each(self.q_hat);
        let (v, v_rest) = each(self.v_hat);
        let (r, r_rest) = cut(self.r_hat);
        (
            Found { target_prob: p, q_hat: q, v_hat: v, r_hat: r },
            Found { target_prob: p_rest, q_hat: q_rest, v_hat: v_rest, r_hat: r_rest },
        )
    }
}

impl ValueTables<'_> {
    /// Fills in the arrays, or returns the first row whose cell, action or step is in no table.
    pub fn look_up(&self, rows: &LoggedSteps, mut found: Found, threads: usize) -> Result<(), usize> {
        let n = rows.cells.len();
        // So many rows need most entries of Q more than once, so a table of all of them pays.
        let many = found.q_hat.len() == 1 && Some(n) > self.horizon.checked_mul(self.states * self.actions);
        let records = &self.values.filter(|_| many).map(|values| values.records(self.horizon));
        let parts = threads_for(n, threads);
        let bad = std::thread::scope(|scope| {
            let mut workers = vec![];
            for part in 1..=parts {
                let (start, end) = (n * (part - 1) / parts, n * part / parts);
                let (mine, rest) = found.split_at(end - start);
                found = rest;
                let work = move || self.part(rows, start..end, mine, records.as_deref()).err();
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

    fn part(
        &self,
        rows: &LoggedSteps,
        range: Range<usize>,
        mut found: Found,
        records: Option<&[f64]>,
    ) -> Result<(), usize> {
        let mut block = Block { cells: &[], actions: [0; BLOCK], steps: [0; BLOCK] };
        for start in range.clone().step_by(BLOCK) {
            let n = BLOCK.min(range.end - start);
            block.cells = &rows.cells[start..start + n];
            rows.actions.read(start, 0, &mut block.actions[..n]);
            rows.steps.read(start, rows.first_step, &mut block.steps[..n]);
            let known = |i: usize| {
                block.cells[i].cast_unsigned() < self.states as u64
                    && block.actions[i].cast_unsigned() < self.actions as u64
                    && block.steps[i].cast_unsigned() < self.horizon as u64
            };
            if !(0..n).fold(true, |all, i| all & known(i)) {
                return Err((0..n).find(|&i| !known(i)).unwrap_or(0) + start);
            }
            let (mine, rest) = found.split_at(n);
            self.fill(&block, mine, records);
            found = rest;
        }
        Ok(())
    }

    #[inline(always)]
    fn fill(&self, block: &Block, found: Found, records: Option<&[f64]>) {
        let row = |i: usize| (block.steps[i] as usize, block.cells[i] as usize, block.actions[i] as usize);
        let pair = |i: usize| block.cells[i] as usize * self.actions + block.actions[i] as usize;
        if let Some(table) = self.policy {
            let a_step = if table.len() == self.states * self.actions { 0 } else { self.states * self.actions };
            each(found.target_prob, |i| table[row(i).0 * a_step + pair(i)]);
        }
        let Some(values) = &self.values else { return };
        each(found.r_hat, |i| values.model.rewards()[pair(i)]);
        if let Some(records) = records {
            let record = |i: usize| (row(i).0 * self.states + row(i).1) * (1 + self.actions);
            each(found.v_hat, |i| records[record(i)]);
            each(found.q_hat, |i| records[record(i) + 1 + row(i).2]);
            return;
        }
        for (lane, column) in found.v_hat.into_iter().enumerate() {
            let values = Values { lane: values.lane + lane, ..*values };
            each(Some(column), |i| values.v(row(i).0, row(i).1));
        }
        let (mut q_hat, mut values) = (found.q_hat, *values);
        for columns in q_hat.chunks_mut(LANES) {
            match columns.len() {
                1 => values.q_of::<1>(block, self.actions, columns),
                2 => values.q_of::<2>(block, self.actions, columns),
                3 => values.q_of::<3>(block, self.actions, columns),
                _ => values.q_of::<LANES>(block, self.actions, columns),
            }
            values.lane += columns.len();
        }
    }
}

/// A few rows whose indices have been checked.
struct Block<'a> {
    cells: &'a [i64],
    actions: [i64; BLOCK],
    steps: [i64; BLOCK],
}

#[inline(always)]
fn each<'a>(columns: impl IntoIterator<Item = &'a mut [f64]>, value: impl Fn(usize) -> f64) {
    columns.into_iter().for_each(|column| column.iter_mut().enumerate().for_each(|(i, x)| *x = value(i)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::dp::evaluate;

    fn model() -> Model {
        Model::new(2, 2, vec![0.0, 1.0, 0.5, 8.0], vec![0, 1, 2, 3, 3], vec![0, 1, 1], vec![1.0; 3]).unwrap()
    }

    fn look_up(steps: &[i32], threads: usize) -> Result<[Vec<f64>; 4], usize> {
        let (model, policy) = (model(), [0.25, 0.75, 0.5, 0.5]);
        let mut both = vec![0.0; 3 * 2 * 2];
        assert!(evaluate(&model, &[&[0.5; 4], &policy], 3, 0.5, &mut both));
        let n = steps.len();
        let cells: Vec<i64> = (0..n as i64).map(|i| i % 2).collect();
        let actions: Vec<i64> = (0..n as i64).map(|i| i / 2 % 2).collect();
        let values = Some(Values { model: &model, v: &both, lanes: 2, lane: 1, discount: 0.5 });
        let tables = ValueTables { states: 2, actions: 2, horizon: 3, policy: Some(&policy), values };
        let rows = LoggedSteps {
            cells: &cells,
            actions: Integers::Long(&actions),
            steps: Integers::Short(steps),
            first_step: 1,
        };
        let mut columns = [vec![0.0; n], vec![0.0; n], vec![0.0; n], vec![0.0; n]];
        let [p, q, v, r] = &mut columns;
        let found = Found { target_prob: Some(p), q_hat: vec![q], v_hat: vec![v], r_hat: Some(r) };
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
    fn policies_side_by_side_are_as_each_alone() {
        let model = model();
        let policies: Vec<[f64; 4]> = (0..4).map(|i| [0.25 * f64::from(i), 0.5, 1.0, 0.125]).collect();
        let mut v = vec![0.0; 3 * 2 * 4];
        assert!(evaluate(&model, &policies.iter().map(<[f64; 4]>::as_slice).collect::<Vec<_>>(), 3, 0.5, &mut v));
        let (cells, actions, steps) = ([0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 2, 0]);
        let rows = LoggedSteps {
            cells: &cells,
            actions: Integers::Long(&actions),
            steps: Integers::Short(&steps),
            first_step: 0,
        };
        let look_up = |lane: usize, count: usize| {
            let values = Some(Values { model: &model, v: &v, lanes: 4, lane, discount: 0.5 });
            let tables = ValueTables { states: 2, actions: 2, horizon: 3, policy: None, values };
            let (mut q, mut w) = (vec![vec![0.0; 4]; count], vec![vec![0.0; 4]; count]);
            let found = Found {
                q_hat: q.iter_mut().map(Vec::as_mut_slice).collect(),
                v_hat: w.iter_mut().map(Vec::as_mut_slice).collect(),
                ..Found::default()
            };
            tables.look_up(&rows, found, 1).unwrap();
            (q, w)
        };
        for (lane, count) in [(0, 4), (1, 3), (1, 2), (0, 1)] {
            let (q, w) = look_up(lane, count);
            let alone: Vec<_> = (lane..lane + count).map(|lane| look_up(lane, 1)).collect();
            assert_eq!(q, alone.iter().map(|(q, _)| q[0].clone()).collect::<Vec<_>>());
            assert_eq!(w, alone.iter().map(|(_, w)| w[0].clone()).collect::<Vec<_>>());
        }
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
