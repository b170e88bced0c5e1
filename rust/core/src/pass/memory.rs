//! How much memory an evaluation takes, and the limit that it keeps.
//!
//! What grows with a log: sums for each step of the longest trajectory, of every policy and in every thread; what is made
//! of them when the log has been read; the ids of trajectories; rows of trajectories whose beginning has not been seen;
//! and values of single trajectories where a pass keeps them. It is counted before it is taken. From half of the limit on
//! ids go to files, where there is a place for them. Beyond the limit nothing more is taken: the rest of the log is read
//! for the lengths of its trajectories alone, which tell what would be needed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::estimators::about::StepSum;
use crate::number::moments::Moments;
use crate::number::scaled::Scaled;
use crate::number::step_sums::StepSums;
use crate::pass::accumulators::{Accumulators, TrajectoryValue};
use crate::pass::plan::{Pass, Plan, Policy};
use crate::pass::table::StepTable;

/// Numbers by step that are told of a policy whose weights are watched.
const DIAGNOSES: u64 = 4;
/// A value of a trajectory and its id, as objects of Python.
const OBJECTS: u64 = 96;
/// What a map keeps beside its entry.
const NODE: u64 = 32;

/// Fewer bytes are not written to a file.
const WORTH_A_FILE: u64 = 1 << 16;

/// A limit, and what has been counted towards it by all readers of a pass.
#[derive(Debug)]
pub struct Budget {
    limit: i64,
    used: AtomicI64,
    longest: AtomicU64,
    place: Option<PathBuf>,
}

impl Budget {
    /// With so many bytes; None for no limit.
    pub fn new(limit: Option<u64>) -> Self {
        let limit = limit.and_then(|limit| limit.try_into().ok()).unwrap_or(i64::MAX);
        Self { limit, used: AtomicI64::new(0), longest: AtomicU64::new(0), place: None }
    }

    /// The same with a folder for what can be written to files.
    pub fn with_place(limit: Option<u64>, place: PathBuf) -> Self {
        Self { place: Some(place), ..Self::new(limit) }
    }

    /// The folder, where so many bytes are worth a file and half of the limit is used.
    pub fn place_for(&self, bytes: u64) -> Option<&PathBuf> {
        let short = self.used.load(Ordering::Relaxed) > self.limit / 2;
        self.place.as_ref().filter(|_| short && bytes >= WORTH_A_FILE)
    }

    /// True where no more is taken than may be.
    pub fn fits(&self) -> bool {
        self.used.load(Ordering::Relaxed) <= self.limit
    }

    /// Counts bytes; false where they are too many.
    pub fn take(&self, bytes: u64) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX / 2);
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes) <= self.limit
    }

    /// Counts bytes no longer.
    pub fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes.cast_signed(), Ordering::Relaxed);
    }

    /// Counts so many bytes for each step of the longest trajectory, which has at least so many steps.
    pub fn take_longest(&self, steps: u64, bytes: u64) -> bool {
        let before = self.longest.fetch_max(steps, Ordering::Relaxed);
        self.take(steps.saturating_sub(before).saturating_mul(bytes))
    }
}

impl Plan {
    /// Bytes that each reader of a pass takes for a step of its longest trajectory.
    pub fn bytes_by_step(&self, pass: Pass) -> u64 {
        let sums = |policy: &Policy| {
            // Σ ρ_t and Σ (ρ_t − 1)² belong to no estimator.
            let watched = if self.watches(policy, pass) { 2 } else { 0 };
            self.step_sums(policy, pass).len() as u64 + watched
        };
        let discounts = 2 * StepTable::BYTES;
        self.policies.iter().map(sums).sum::<u64>() * StepSums::BYTES + discounts
    }

    /// Bytes of what is made of a step when the log has been read.
    pub fn bytes_after(&self, pass: Pass) -> u64 {
        let made = |policy: &Policy| {
            let sums = self.step_sums(policy, pass);
            // A mean takes two wide floats, and the weights one.
            let means = sums.iter().filter(|sum| **sum != StepSum::SquaredWeight).count() as u64 * 2;
            let means = if policy.normalises_steps() { means * size_of::<Scaled>() as u64 } else { 0 };
            let told = if self.watches(policy, pass) { DIAGNOSES * size_of::<f64>() as u64 } else { 0 };
            means + told
        };
        if pass == Pass::First { self.policies.iter().map(made).sum() } else { 0 }
    }

    /// Bytes of a table over the horizon that was given, which is made before the log is read.
    pub fn bytes_before(&self) -> u64 {
        let steps = self.baseline.and(self.horizon).unwrap_or(0);
        steps.saturating_mul(size_of::<f64>() as u64)
    }

    /// Bytes that suffice for trajectories of so many steps, read by so many threads, beside those of other things.
    pub fn bytes_for(&self, pass: Pass, steps: u64, threads: u64) -> u64 {
        let by_step = self.bytes_by_step(pass).saturating_mul(threads) + self.bytes_after(pass);
        self.bytes_before().saturating_add(steps.next_multiple_of(8).saturating_mul(by_step))
    }
}

impl Accumulators {
    /// Blocks of steps that the sums over steps reach to.
    pub fn blocks(&self) -> usize {
        self.policies.iter().map(|policy| policy.weight.blocks()).max().unwrap_or(0)
    }

    /// Bytes of what grows with the number of trajectories, and of their lengths.
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
