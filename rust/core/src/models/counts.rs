//! Counts of a log's transitions, from which a tabular model is made:
//!
//!     N(s, a),   Σ r over the steps that took a in s,   N(s, a, s')
//!
//! They are sums, so the counts of a log's parts merge, in any order and bit for bit, into those of the log. A step
//! whose successor is unknown, because the log was cut there, counts for its reward only.

use serde::{Deserialize, Serialize};

use super::integers::Integers;
use super::model::Model;
use super::reward_sum::{Reward, RewardSums};
use crate::pass::wire::{self, NotAState};

/// The name at the beginning of encoded counts, inside their versioned envelope.
const KIND: &str = "transition-counts-1";

/// Steps of a log, as indices of states and actions.
#[derive(Clone, Copy, Debug)]
pub struct CountedSteps<'a> {
    /// s
    pub states: &'a [i64],
    /// a
    pub actions: Integers<'a>,
    /// r
    pub rewards: &'a [f64],
    /// s', which is ignored where the episode ends or s' is unknown.
    pub next_states: &'a [i64],
    /// Whether the episode ends with this step.
    pub terminal: &'a [bool],
    /// Whether s' is known. Where the episode ends, that end counts as known.
    pub known: &'a [bool],
}

/// The reason why steps cannot be counted.
#[derive(Clone, Debug, PartialEq)]
pub enum BadSteps {
    /// Arrays of different lengths.
    Lengths,
    /// A row with a value that does not exist: the index of the row, the name of the value, and the value.
    Row(usize, &'static str, f64),
    /// Counts for other numbers of states or actions.
    Shape,
    /// No states or no actions, or more pairs than 32 bits can count.
    Size,
}

/// Mergeable counts of transitions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counts {
    states: usize,
    actions: usize,
    /// N(s, a)
    visits: Vec<u64>,
    rewards: RewardSums,
    successors: Successors,
}

/// N(s, a, s') by pair, with s' ascending in each row and |S| for the end of the episode.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Successors {
    start: Vec<usize>,
    next: Vec<u32>,
    count: Vec<u64>,
}

impl Successors {
    fn none(pairs: usize) -> Self {
        Self { start: vec![0; pairs + 1], next: vec![], count: vec![] }
    }

    fn row(&self, pair: usize) -> impl Iterator<Item = (u32, u64)> {
        let range = self.start[pair]..self.start[pair + 1];
        self.next[range.clone()].iter().copied().zip(self.count[range].iter().copied())
    }

    /// Ends the row of a pair.
    fn close(&mut self, pair: usize) {
        self.start[pair + 1] = self.next.len();
    }

    fn push(&mut self, next: u32, count: u64) {
        self.next.push(next);
        self.count.push(count);
    }

    /// Returns the sums of both, row by row.
    fn merged(&self, other: &Self) -> Self {
        let pairs = self.start.len() - 1;
        let mut sum = Self::none(pairs);
        sum.next.reserve(self.next.len() + other.next.len());
        sum.count.reserve(self.next.len() + other.next.len());
        for pair in 0..pairs {
            let (mut ours, mut theirs) = (self.row(pair).peekable(), other.row(pair).peekable());
            loop {
                let (a, b) = (ours.peek().copied(), theirs.peek().copied());
                match (a, b) {
                    (Some((s, n)), Some((t, m))) if s == t => {
                        sum.push(s, n + m);
                        ours.next();
                        theirs.next();
                    }
                    (Some((s, n)), b) if b.is_none_or(|(t, _)| s < t) => {
                        sum.push(s, n);
                        ours.next();
                    }
                    (_, Some((t, m))) => {
                        sum.push(t, m);
                        theirs.next();
                    }
                    (_, None) => break,
                }
            }
            sum.close(pair);
        }
        sum
    }

    fn is_consistent(&self, pairs: usize, states: usize) -> bool {
        self.start.len() == pairs + 1
            && self.start[0] == 0
            && self.start.is_sorted()
            && self.start[pairs] == self.next.len()
            && self.next.len() == self.count.len()
            && self.count.iter().all(|&n| n > 0)
            && self.start.windows(2).all(|row| {
                let next = &self.next[row[0]..row[1]];
                next.is_sorted_by(|a, b| a < b) && next.last().is_none_or(|&last| last as usize <= states)
            })
    }
}

impl Counts {
    /// Makes counts that are all 0.
    pub fn new(states: usize, actions: usize) -> Result<Self, BadSteps> {
        let pairs = states.checked_mul(actions).filter(|&pairs| pairs > 0 && pairs < u32::MAX as usize);
        let pairs = pairs.ok_or(BadSteps::Size)?;
        let rewards = RewardSums::new(pairs);
        Ok(Self { states, actions, visits: vec![0; pairs], rewards, successors: Successors::none(pairs) })
    }

    /// Returns |S|.
    pub fn states(&self) -> usize {
        self.states
    }

    /// Returns |A|.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// Returns N(s, a) by pair.
    pub fn visits(&self) -> &[u64] {
        &self.visits
    }

    /// Counts steps. After an error nothing has been counted.
    pub fn add(&mut self, steps: &CountedSteps) -> Result<(), BadSteps> {
        let n = steps.states.len();
        let lengths = [steps.actions.len(), steps.rewards.len(), steps.next_states.len()];
        if lengths.iter().chain(&[steps.terminal.len(), steps.known.len()]).any(|&len| len != n) {
            return Err(BadSteps::Lengths);
        }
        let counted = match steps.actions {
            Integers::Short(actions) => self.add_rows(steps, actions),
            Integers::Long(actions) => self.add_rows(steps, actions),
        };
        let counted = counted.ok_or_else(|| self.fault(steps))?;
        self.successors = if self.successors.next.is_empty() { counted } else { self.successors.merged(&counted) };
        Ok(())
    }

    /// Counts visits and rewards, and returns N(s, a, s'). Returns None, and counts nothing, if a row is invalid.
    fn add_rows<A: Copy + Into<i64>>(&mut self, steps: &CountedSteps, actions: &[A]) -> Option<Successors> {
        let moves = Moves { states: self.states as u64, action_count: self.actions as u64, steps, actions };
        let mut block = Block { pairs: [0; BLOCK], next: [0; BLOCK], len: 0 };
        let mut end = vec![0u32; self.visits.len()];
        for (start, rewards) in (0..).step_by(BLOCK).zip(steps.rewards.chunks(BLOCK)) {
            if !moves.read(start, &mut block) || !rewards.iter().all(|r| r.is_finite()) {
                return None;
            }
            for (pair, next) in block.rows() {
                end[pair] += u32::from(next != UNKNOWN);
            }
        }
        // Rows are sorted by pair: first the place where each pair begins is found, then each row is put into its
        // place.
        let mut total = 0;
        end.iter_mut().for_each(|end| total += std::mem::replace(end, total));
        let mut by_pair = vec![0u32; total as usize];
        let mut reward = Reward::from(0.0);
        for (start, rewards) in (0..).step_by(BLOCK).zip(steps.rewards.chunks(BLOCK)) {
            moves.read(start, &mut block);
            for ((pair, next), &r) in block.rows().zip(rewards) {
                self.visits[pair] += 1;
                if r != reward.value() {
                    reward = r.into();
                }
                self.rewards.add(pair, reward);
                if next != UNKNOWN {
                    by_pair[end[pair] as usize] = next;
                    end[pair] += 1;
                }
            }
        }
        Some(self.count(&by_pair, &end))
    }

    /// Counts how often each successor occurs in the row of each pair, given where each row ends.
    fn count(&self, by_pair: &[u32], end: &[u32]) -> Successors {
        let mut counted = Successors::none(end.len());
        let (mut times, mut found, mut start) = (vec![0u32; self.states + 1], vec![], 0);
        for (pair, &end) in end.iter().enumerate() {
            for &next in &by_pair[start..end as usize] {
                let times = &mut times[next as usize];
                if *times == 0 {
                    found.push(next);
                }
                *times += 1;
            }
            found.sort_unstable();
            for next in found.drain(..) {
                counted.push(next, std::mem::take(&mut times[next as usize]).into());
            }
            counted.close(pair);
            start = end as usize;
        }
        counted
    }

    /// Describes the first row that cannot be counted. The caller knows that there is one.
    #[cold]
    fn fault(&self, steps: &CountedSteps) -> BadSteps {
        let outside = |index: i64, size: usize| index < 0 || index >= size as i64;
        let faults = (0..steps.states.len()).filter_map(|row| {
            let (s, a) = (steps.states[row], steps.actions.get(row));
            let (r, next) = (steps.rewards[row], steps.next_states[row]);
            let follows = steps.known[row] && !steps.terminal[row];
            if outside(s, self.states) {
                Some(BadSteps::Row(row, "state", s as f64))
            } else if outside(a, self.actions) {
                Some(BadSteps::Row(row, "action", a as f64))
            } else if !r.is_finite() {
                Some(BadSteps::Row(row, "reward", r))
            } else if follows && outside(next, self.states) {
                Some(BadSteps::Row(row, "next state", next as f64))
            } else {
                None
            }
        });
        { faults }.next().unwrap_or(BadSteps::Lengths)
    }

    /// Adds the counts of another part of the log.
    pub fn merge(&mut self, other: &Self) -> Result<(), BadSteps> {
        if (self.states, self.actions) != (other.states, other.actions) {
            return Err(BadSteps::Shape);
        }
        self.visits.iter_mut().zip(&other.visits).for_each(|(ours, theirs)| *ours += theirs);
        self.rewards.merge(&other.rewards);
        self.successors = self.successors.merged(&other.successors);
        Ok(())
    }

    /// Returns R̂ and P̂ by frequencies. A pair that was never seen has the reward `unseen_reward` and leads back to
    /// its own state. A pair whose successor was never known leads back too, with the mean of the rewards that were
    /// seen.
    pub fn model(&self, unseen_reward: f64) -> Model {
        let (mut start, mut next, mut probability) = (vec![0], vec![], vec![]);
        let mut rewards = Vec::with_capacity(self.visits.len());
        for (pair, &visits) in self.visits.iter().enumerate() {
            rewards.push(if visits > 0 { self.rewards.mean(pair, visits) } else { unseen_reward });
            let total: u64 = self.successors.row(pair).map(|(_, n)| n).sum();
            if total == 0 {
                next.push((pair / self.actions) as u32);
                probability.push(1.0);
            }
            for (s, n) in self.successors.row(pair).filter(|&(s, _)| (s as usize) < self.states) {
                next.push(s);
                probability.push(n as f64 / total as f64);
            }
            start.push(next.len());
        }
        Model::from_counts(self.states, self.actions, rewards, start, next, probability)
    }

    /// Encodes the counts as bytes with a version and a checksum.
    pub fn encode(&self) -> Result<Vec<u8>, NotAState> {
        wire::encode(&(KIND, self))
    }

    /// Decodes counts, and refuses bytes that are not consistent.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotAState> {
        let (kind, counts): (String, Self) = wire::decode(bytes)?;
        let pairs = counts.states.checked_mul(counts.actions).unwrap_or(0);
        let fits = pairs > 0 && pairs < u32::MAX as usize && counts.visits.len() == pairs;
        let fits = fits && counts.rewards.len() == pairs && counts.rewards.is_consistent();
        if kind != KIND || !fits || !counts.successors.is_consistent(pairs, counts.states) {
            return Err(NotAState("not the counts of transitions".to_owned()));
        }
        Ok(counts)
    }
}

/// The successor of a row where the log does not tell it.
const UNKNOWN: u32 = u32::MAX;
/// The number of rows whose indices are computed at a time.
const BLOCK: usize = 512;

/// The pairs and the successors of a few rows. A successor that is not known is `UNKNOWN`.
struct Block {
    pairs: [u32; BLOCK],
    next: [u32; BLOCK],
    len: usize,
}

impl Block {
    fn rows(&self) -> impl Iterator<Item = (usize, u32)> {
        self.pairs[..self.len].iter().map(|&pair| pair as usize).zip(self.next[..self.len].iter().copied())
    }
}

/// The transitions of a log, read block by block.
struct Moves<'a, A> {
    states: u64,
    action_count: u64,
    steps: &'a CountedSteps<'a>,
    actions: &'a [A],
}

impl<A: Copy + Into<i64>> Moves<'_, A> {
    /// Fills a block from row `start` on. Returns false if a row is invalid.
    fn read(&self, start: usize, block: &mut Block) -> bool {
        pulp::Arch::new().dispatch(ReadBlock { moves: self, start, block })
    }
}

struct ReadBlock<'a, A> {
    moves: &'a Moves<'a, A>,
    start: usize,
    block: &'a mut Block,
}

impl<A: Copy + Into<i64>> pulp::WithSimd for ReadBlock<'_, A> {
    type Output = bool;

    /// Reads without branches, so that several rows are computed at once.
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) -> bool {
        let Self { moves: Moves { states, action_count, steps, actions }, start, block } = self;
        let rows = start..steps.states.len().min(start + BLOCK);
        block.len = rows.len();
        let mut sound = true;
        let from = steps.states[rows.clone()].iter().zip(&actions[rows.clone()]);
        let ends = steps.terminal[rows.clone()].iter().zip(&steps.known[rows.clone()]);
        let to = steps.next_states[rows].iter().zip(ends);
        let made = block.pairs.iter_mut().zip(&mut block.next);
        for ((pair, follows), ((&s, &a), (&next, (&terminal, &known)))) in made.zip(from.zip(to)) {
            let (s, a, next) = (s.cast_unsigned(), a.into().cast_unsigned(), next.cast_unsigned());
            sound &= (s < *states) & (a < *action_count) & ((next < *states) | terminal | !known);
            *pair = s.wrapping_mul(*action_count).wrapping_add(a) as u32;
            let next = if terminal { *states } else { next };
            *follows = if known { next as u32 } else { UNKNOWN };
        }
        sound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A row of s, a, r, s', whether the episode ends, and whether s' is known.
    type Row = (i64, i64, f64, i64, bool, bool);

    fn counts(rows: &[Row]) -> Counts {
        let mut counts = Counts::new(3, 2).unwrap();
        add(&mut counts, rows).unwrap();
        counts
    }

    fn add(counts: &mut Counts, rows: &[Row]) -> Result<(), BadSteps> {
        counts.add(&CountedSteps {
            states: &rows.iter().map(|row| row.0).collect::<Vec<_>>(),
            actions: Integers::Long(&rows.iter().map(|row| row.1).collect::<Vec<_>>()),
            rewards: &rows.iter().map(|row| row.2).collect::<Vec<_>>(),
            next_states: &rows.iter().map(|row| row.3).collect::<Vec<_>>(),
            terminal: &rows.iter().map(|row| row.4).collect::<Vec<_>>(),
            known: &rows.iter().map(|row| row.5 || row.4).collect::<Vec<_>>(),
        })
    }

    #[test]
    fn frequencies_and_means() {
        let rows = [
            (0, 1, 1.0, 2, false, true),
            (0, 1, 2.0, 1, false, true),
            (0, 1, 6.0, 9, true, true),
            (0, 1, 3.0, -1, false, false),
        ];
        let model = counts(&rows).model(-5.0);
        assert_eq!(model.rewards(), [-5.0, 3.0, -5.0, -5.0, -5.0, -5.0]);
        assert_eq!(model.successors(1).collect::<Vec<_>>(), [(1, 1.0 / 3.0), (2, 1.0 / 3.0)]);
        assert_eq!(model.successors(0).collect::<Vec<_>>(), [(0, 1.0)]);
        assert_eq!(model.successors(5).collect::<Vec<_>>(), [(2, 1.0)]);
    }

    #[test]
    fn a_pair_that_always_ends_has_no_successor() {
        let model = counts(&[(1, 0, 4.0, 0, true, true)]).model(0.0);
        assert_eq!(model.successors(2).count(), 0);
    }

    #[test]
    fn a_pair_whose_successor_is_unknown_keeps_its_reward() {
        let model = counts(&[(1, 0, 4.0, 0, false, false)]).model(0.0);
        assert_eq!((model.rewards()[2], model.successors(2).collect::<Vec<_>>()), (4.0, vec![(1, 1.0)]));
    }

    #[test]
    fn bad_rows_are_named_and_nothing_is_counted() {
        let mut counts = Counts::new(3, 2).unwrap();
        let good = (0, 0, 1.0, 1, false, true);
        for (bad, found) in [
            ((3, 0, 1.0, 1, false, true), BadSteps::Row(1, "state", 3.0)),
            ((0, -1, 1.0, 1, false, true), BadSteps::Row(1, "action", -1.0)),
            ((0, 0, 1.0, 3, false, true), BadSteps::Row(1, "next state", 3.0)),
            ((0, 0, f64::INFINITY, 1, false, true), BadSteps::Row(1, "reward", f64::INFINITY)),
        ] {
            assert_eq!(add(&mut counts, &[good, bad]), Err(found));
        }
        assert_eq!(counts.visits(), [0; 6]);
        assert_eq!(Counts::new(0, 2).map(|_| ()), Err(BadSteps::Size));
        assert_eq!(Counts::new(1 << 40, 2).map(|_| ()), Err(BadSteps::Size));
    }

    proptest! {
        #[test]
        fn parts_merge_in_any_order_to_the_same_bytes(
            rows in prop::collection::vec((0..3i64, 0..2i64, -1e3..1e3f64, 0..3i64, any::<bool>(), any::<bool>()), 0..60),
            cuts in prop::collection::vec(0..60usize, 2)
        ) {
            let (low, high) = (cuts[0].min(cuts[1]).min(rows.len()), cuts[0].max(cuts[1]).min(rows.len()));
            let whole = counts(&rows).encode().unwrap();
            let mut merged = counts(&rows[high..]);
            merged.merge(&counts(&rows[..low])).unwrap();
            merged.merge(&counts(&rows[low..high])).unwrap();
            prop_assert_eq!(&merged.encode().unwrap(), &whole);
            let mut batched = counts(&rows[..low]);
            add(&mut batched, &rows[low..]).unwrap();
            prop_assert_eq!(&batched.encode().unwrap(), &whole);
            let again = Counts::decode(&whole).unwrap();
            prop_assert_eq!(again.encode().unwrap(), whole);
        }
    }
}
