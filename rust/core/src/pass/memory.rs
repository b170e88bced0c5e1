//! The memory that an evaluation takes, and its limit.
//!
//! The following grows with a log: the sums per step of the longest trajectory, for every policy and thread; the means
//! that are made of them when the log has been read; the ids of trajectories; the rows of trajectories whose beginning
//! has not been seen; and the values of single trajectories, if a pass keeps them. All of it is counted before it is
//! taken. Once half of the limit is used, ids go to files if there is a folder for them. Once all of it is used,
//! nothing more is taken, and the rest of the log is read only for the lengths of its trajectories, which tell how much
//! would be needed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::estimators::about::StepSum;
use crate::number::moments::Moments;
use crate::number::scaled::Scaled;
use crate::number::step_sums::StepSums;
use crate::pass::accumulators::{Accumulators, TrajectoryValue};
use crate::pass::plan::{Pass, Plan, Policy};
use crate::pass::table::StepTable;

/// The number of diagnostics per step of a policy.
const DIAGNOSES: u64 = 4;
/// The bytes of a trajectory's value and id as Python objects.
const OBJECTS: u64 = 96;
/// The bytes that a map takes for an entry beside the entry itself.
const NODE: u64 = 32;

/// The least number of bytes that are written to a file.
const WORTH_A_FILE: u64 = 1 << 16;

/// A limit of memory, and the bytes that all readers of a pass have counted towards it.
#[derive(Debug)]
pub struct Budget {
    limit: i64,
    used: AtomicI64,
    longest: AtomicU64,
    place: Option<PathBuf>,
}

impl Budget {
    /// Makes a budget with a limit in bytes, or without a limit.
    pub fn new(limit: Option<u64>) -> Self {
        let limit = limit.and_then(|limit| limit.try_into().ok()).unwrap_or(i64::MAX);
        Self { limit, used: AtomicI64::new(0), longest: AtomicU64::new(0), place: None }
    }

    /// Makes a budget with a folder for what can be written to files.
    pub fn with_place(limit: Option<u64>, place: PathBuf) -> Self {
        Self { place: Some(place), ..Self::new(limit) }
    }

    /// Returns the folder if half of the limit is used and the bytes are enough for a file.
    pub fn place_for(&self, bytes: u64) -> Option<&PathBuf> {
        let short = self.used.load(Ordering::Relaxed) > self.limit / 2;
        self.place.as_ref().filter(|_| short && bytes >= WORTH_A_FILE)
    }

    /// Returns true if the limit has not been exceeded.
    pub fn fits(&self) -> bool {
        self.used.load(Ordering::Relaxed) <= self.limit
    }

    /// Counts bytes, and returns false if they exceed the limit.
    pub fn take(&self, bytes: u64) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX / 2);
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes) <= self.limit
    }

    /// Stops counting bytes that have been freed.
    pub fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes.cast_signed(), Ordering::Relaxed);
    }

    /// Counts bytes for each step by which a trajectory exceeds the longest one that any reader has seen. Returns false
    /// if they exceed the limit.
    pub fn take_longest(&self, steps: u64, bytes: u64) -> bool {
        let before = self.longest.fetch_max(steps, Ordering::Relaxed);
        self.take(steps.saturating_sub(before).saturating_mul(bytes))
    }
}

impl Plan {
    /// Returns the bytes that each reader of a pass takes for a step of its longest trajectory.
    pub fn bytes_by_step(&self, pass: Pass) -> u64 {
        let sums = |policy: &Policy| {
            // Σ ρ_t and Σ (ρ_t − 1)² belong to no estimator.
            let watched = if self.watches(policy, pass) { 2 } else { 0 };
            self.step_sums(policy, pass).len() as u64 + watched
        };
        let discounts = 2 * StepTable::BYTES;
        self.policies.iter().map(sums).sum::<u64>() * StepSums::BYTES + discounts
    }

    /// Returns the bytes per step of the means and diagnostics that are made when the log has been read.
    pub fn bytes_after(&self, pass: Pass) -> u64 {
        let made = |policy: &Policy| {
            let sums = self.step_sums(policy, pass);
            // A mean takes two wide floats. A mean weight takes only one, and is counted as two.
            let means = sums.iter().filter(|sum| **sum != StepSum::SquaredWeight).count() as u64 * 2;
            let means = if policy.normalises_steps() { means * size_of::<Scaled>() as u64 } else { 0 };
            let told = if self.watches(policy, pass) { DIAGNOSES * size_of::<f64>() as u64 } else { 0 };
            means + told
        };
        if pass == Pass::First { self.policies.iter().map(made).sum() } else { 0 }
    }

    /// Returns the bytes of the baseline's table, which is made before the log is read if the horizon is given.
    pub fn bytes_before(&self) -> u64 {
        let steps = self.baseline.and(self.horizon).unwrap_or(0);
        steps.saturating_mul(size_of::<f64>() as u64)
    }

    /// Returns the bytes that trajectories with this number of steps need, if this number of threads reads them.
    pub fn bytes_for(&self, pass: Pass, steps: u64, threads: u64) -> u64 {
        let by_step = self.bytes_by_step(pass).saturating_mul(threads) + self.bytes_after(pass);
        self.bytes_before().saturating_add(steps.next_multiple_of(8).saturating_mul(by_step))
    }
}

impl Accumulators {
    /// Returns the number of blocks of steps for which there are sums.
    pub fn blocks(&self) -> usize {
        self.policies.iter().map(|policy| policy.weight.blocks()).max().unwrap_or(0)
    }

    /// Returns the bytes of what grows with the number of trajectories and of different lengths.
    pub fn bytes_by_trajectory(&self) -> u64 {
        let values: usize = self.policies.iter().map(|policy| policy.values.len()).sum();
        let lengths = (self.lengths.len() * self.policies.len()) as u64;
        let (value, moments) = (size_of::<TrajectoryValue>() as u64, size_of::<Moments>() as u64);
        values as u64 * (value + OBJECTS) + lengths * (moments + NODE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_a_limit_and_the_longest_trajectory_counts_once() {
        let budget = Budget::new(Some(1000));
        assert!(budget.take(400) && budget.take_longest(10, 30) && budget.take_longest(9, 30));
        assert!(budget.take_longest(20, 30));
        assert!(!budget.take(1));
        budget.give_back(2);
        assert!(budget.take(1));
        assert!(Budget::new(None).take(u64::MAX));
    }

    #[test]
    fn from_half_of_the_limit_on_what_is_worth_it_goes_to_files() {
        let budget = Budget::with_place(Some(1 << 20), "place".into());
        budget.take(1 << 19);
        assert_eq!(budget.place_for(WORTH_A_FILE), None);
        budget.take(1);
        assert_eq!(budget.place_for(WORTH_A_FILE), Some(&"place".into()));
        assert_eq!(budget.place_for(WORTH_A_FILE - 1), None);
        assert!(budget.fits() && !budget.take(1 << 19) && !budget.fits());
        let without = Budget::new(Some(1));
        assert!(!without.take(1 << 19) && without.place_for(1 << 19).is_none());
    }
}
