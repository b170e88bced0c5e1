//! Trajectories that are being read: a state of constant size for each policy, and the rows since the last whole block.

use serde::{Deserialize, Serialize};

use crate::log::ending::Ending;
use crate::log::ids::Id;
use crate::log::problem::Place;
use crate::number::block::LANES;
use crate::number::running_sum::Lanes;
use crate::pass::plan::Work;
use crate::pass::weights::Carry;

/// The state of one policy in a trajectory, after the rows so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PolicyState {
    /// ρ_{1:t}
    pub carry: Carry,
    /// Running sums, in the order of the plan's work and its terms.
    pub lanes: Vec<Lanes>,
    /// V̂(s_1)
    pub first_v_hat: f64,
    /// P̂/P of the last row, or 0 before the first.
    pub previous_ratio: f64,
    /// The step t at which ρ_{1:t} became 0.
    pub zero_at: Option<u64>,
}

/// A trajectory whose beginning has been seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Open {
    /// Its id.
    pub id: Id,
    /// Where its first row is.
    pub place: Place,
    /// Its first step as logged, 0 or 1.
    pub first_step: i64,
    /// The number of rows so far.
    pub steps: u64,
    /// Where its last row is.
    pub last: Place,
    /// The ending that the last row reports.
    pub ending: Ending,
    /// The state of each policy.
    pub policies: Vec<PolicyState>,
    /// The rows since the last whole block: eight values of each slot.
    pub rows: Vec<[f64; LANES]>,
    /// The number of rows in that block so far.
    pub buffered: usize,
    /// Whether all values of these rows are of ordinary magnitude.
    pub tame: bool,
}

impl Open {
    /// Makes a trajectory without rows.
    pub fn new(id: Id, place: Place, first_step: i64, work: &[Vec<Work>], slots: usize) -> Self {
        let state = |work: &Vec<Work>| {
            let lanes = vec![Lanes::default(); work.iter().map(Work::lanes).sum()];
            PolicyState { lanes, ..PolicyState::default() }
        };
        let (policies, rows) = (work.iter().map(state).collect(), vec![[0.0; LANES]; slots]);
        let (steps, ending, buffered, tame) = (0, Ending::Unsaid, 0, true);
        Self { id, place, first_step, steps, last: place, ending, policies, rows, buffered, tame }
    }

    /// Starts over with another trajectory, in the same memory.
    pub fn restart(&mut self, id: Id, place: Place, first_step: i64) {
        for state in &mut self.policies {
            state.lanes.fill(Lanes::default());
            let lanes = std::mem::take(&mut state.lanes);
            *state = PolicyState { lanes, ..PolicyState::default() };
        }
        (self.id, self.place, self.last, self.first_step) = (id, place, place, first_step);
        (self.steps, self.buffered, self.ending, self.tame) = (0, 0, Ending::Unsaid, true);
    }

    /// Returns the step that must come next, as logged.
    pub fn next_step(&self) -> i64 {
        self.first_step + self.steps.cast_signed()
    }
}

/// Rows of a trajectory whose beginning has not been seen yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Head {
    /// Its id.
    pub id: Id,
    /// Where the first of the rows is.
    pub place: Place,
    /// The step of the first row, as logged.
    pub first_step: i64,
    /// The number of rows.
    pub steps: u64,
    /// Whether another trajectory follows, so that this one has no more rows.
    pub complete: bool,
    /// Where the last of the rows is.
    pub last: Place,
    /// The ending that the last row reports.
    pub ending: Ending,
    /// Whether all values are of ordinary magnitude.
    pub tame: bool,
    /// The values of each slot, one per row.
    pub rows: Vec<Vec<f64>>,
}

impl Head {
    /// Returns the number of bytes of its rows.
    pub fn bytes(&self) -> u64 {
        self.rows.iter().map(|rows| size_of_val(&rows[..]) as u64).sum()
    }

    /// Returns the step that must come next, as logged.
    pub fn next_step(&self) -> i64 {
        self.first_step + self.steps.cast_signed()
    }
}
