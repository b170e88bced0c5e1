//! The problems that a log can have, as data.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::log::ids::Id;

/// A row of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Index of the file, frame or stream.
    pub source: u32,
    /// The row in it, counted from 0, or the largest number where the row is not known.
    pub row: u64,
}

impl Place {
    /// Makes a place in a source, without a row.
    pub fn somewhere_in(source: u32) -> Self {
        Self { source, row: u64::MAX }
    }

    /// Returns the place `rows` rows further on.
    pub fn after(self, rows: u64) -> Self {
        Self { row: self.row.saturating_add(rows), ..self }
    }
}

/// The kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A probability of a logged action that is 0 or negative.
    NotPositive,
    /// A probability above 1.
    AboveOne,
    /// A negative probability or ratio.
    Negative,
    /// Not a number.
    Nan,
    /// A missing value.
    Null,
    /// An infinite value.
    Infinite,
    /// An integer that no f64 holds exactly.
    InexactInteger,
    /// Steps that go down.
    Unsorted,
    /// Ids that are integers in one place and texts in another.
    MixedIds,
    /// An episode that occurs more than once.
    Reappears,
    /// A step that occurs twice.
    Duplicate,
    /// Missing steps.
    Gap,
    /// An episode with another first step than the rest.
    FirstStep,
    /// An episode cut off before its end.
    Truncated,
    /// An episode with more steps than the horizon.
    TooLong,
    /// An episode that goes on after its end.
    AfterTerminal,
    /// A mark that is neither true nor false.
    NotAMark,
}

/// One problem and its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    /// Where it is.
    pub place: Option<Place>,
    /// Its kind.
    pub kind: Kind,
    /// Its episode.
    pub episode: Option<Id>,
    /// Its step, as logged.
    pub step: Option<i64>,
    /// Its column.
    pub column: Option<String>,
    /// The value found.
    pub value: Option<String>,
    /// A sentence that says what was expected.
    pub message: String,
}

/// The number of problems of one kind that are kept as examples.
const EXAMPLES: usize = 3;
/// The number of episode ids that are kept, to count how many different episodes have a kind of problem.
pub const EPISODES: usize = 1 << 16;

/// All problems of one kind: their number, the number of their rows and episodes, and the first of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    problems: u64,
    rows: u64,
    last: Option<Place>,
    hashes: BTreeSet<u64>,
    others: u64,
    examples: Vec<Problem>,
}

impl Tally {
    fn push(&mut self, problem: &Problem) {
        self.problems += 1;
        if self.last.is_none() || self.last != problem.place {
            self.rows += 1;
            self.last = problem.place;
        }
        match &problem.episode {
            Some(id) => drop(self.hashes.insert(hash(id))),
            None if problem.kind == Kind::Reappears => self.others += 1, // one more episode, whose id can be read at its place
            None => {}
        }
        if self.examples.len() < EXAMPLES {
            self.examples.push(problem.clone());
        }
        self.bound();
    }

    fn merge(&mut self, other: Self) {
        self.problems += other.problems;
        self.rows += other.rows;
        self.others += other.others;
        self.hashes.extend(other.hashes);
        self.examples.extend(other.examples);
        self.examples.sort();
        self.examples.truncate(EXAMPLES);
        self.bound();
    }

    fn group(&self, kind: Kind) -> Group<'_> {
        let Self { problems, rows, .. } = *self;
        let (episodes, or_more) = (self.hashes.len() as u64 + self.others, self.hashes.len() == EPISODES);
        Group { kind, problems, rows, episodes, or_more, examples: &self.examples }
    }

    fn bound(&mut self) {
        while self.hashes.len() > EPISODES {
            self.hashes.pop_last();
        }
    }
}

/// Returns a number that stands for an id, the same in every process.
fn hash(id: &Id) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// A summary of the problems of one kind.
#[derive(Debug, Serialize)]
pub struct Group<'a> {
    /// The kind.
    pub kind: Kind,
    /// The number of problems.
    pub problems: u64,
    /// The number of rows that have one.
    pub rows: u64,
    /// The number of episodes that have one.
    pub episodes: u64,
    /// Whether there may be more episodes, because too many were found to keep their ids.
    pub or_more: bool,
    /// The first problems.
    pub examples: &'a [Problem],
}

/// A summary of all problems.
#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    /// The first problems.
    pub kept: &'a [Problem],
    /// The number of problems found.
    pub found: u64,
    /// The problems by kind.
    pub kinds: Vec<Group<'a>>,
}

/// The first problems up to a limit, the number of all, and a tally for each kind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Problems {
    /// The problems that are kept.
    pub kept: Vec<Problem>,
    /// The number of problems found.
    pub found: u64,
    kinds: BTreeMap<Kind, Tally>,
}

impl Problems {
    /// Adds a problem.
    pub fn push(&mut self, limit: usize, problem: Problem) {
        self.found += 1;
        self.kinds.entry(problem.kind).or_default().push(&problem);
        if self.kept.len() < limit {
            self.kept.push(problem);
        }
    }

    /// Counts further problems of a kind, each in a row and an episode of its own, without keeping them.
    pub fn more(&mut self, kind: Kind, count: u64) {
        if count == 0 {
            return;
        }
        self.found += count;
        let tally = self.kinds.entry(kind).or_default();
        tally.problems += count;
        tally.rows += count;
        tally.others += count;
    }

    /// Counts further problems of a kind, each in a row of its own, in the given episodes, without keeping them.
    pub fn more_of<'a>(&mut self, kind: Kind, count: u64, episodes: impl Iterator<Item = &'a Id>) {
        if count == 0 {
            return;
        }
        self.found += count;
        let tally = self.kinds.entry(kind).or_default();
        tally.problems += count;
        tally.rows += count;
        tally.hashes.extend(episodes.map(hash));
        tally.bound();
    }

    /// Returns true if there are no problems.
    pub fn is_empty(&self) -> bool {
        self.found == 0
    }

    /// Adds the problems of another list.
    pub fn merge(&mut self, limit: usize, other: Self) {
        self.found += other.found;
        self.kept.extend(other.kept);
        self.kept.sort();
        self.kept.truncate(limit);
        for (kind, tally) in other.kinds {
            self.kinds.entry(kind).or_default().merge(tally);
        }
    }

    /// Returns true if the counts and the lists can be those of one log.
    pub fn is_consistent(&self, limit: usize) -> bool {
        let (kept, listed) = (self.kept.len(), |tally: &Tally| (1..=EXAMPLES).contains(&tally.examples.len()));
        let counted = self.kinds.values().try_fold(0u64, |sum, tally| sum.checked_add(tally.problems));
        kept <= limit
            && kept as u64 <= self.found
            && (kept == 0) == self.is_empty()
            && counted == Some(self.found)
            && self.kinds.values().all(listed)
    }

    /// Returns the places of the problems that are kept.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let examples = self.kinds.values().flat_map(|tally| &tally.examples);
        self.kept.iter().chain(examples).filter_map(|problem| problem.place)
    }

    /// Returns a summary of all problems.
    pub fn summary(&self) -> Summary<'_> {
        let kinds = self.kinds.iter().map(|(&kind, tally)| tally.group(kind)).collect();
        Summary { kept: &self.kept, found: self.found, kinds }
    }
}

impl Kind {
    /// Returns a sentence that says what was expected.
    pub fn message(self) -> &'static str {
        match self {
            Self::NotPositive => {
                "the probability of a logged action must be above 0: an action that the behaviour policy cannot take cannot be in its log"
            }
            Self::AboveOne => "a probability must be at most 1",
            Self::Negative => "a probability or ratio must not be negative",
            Self::Nan => "NaN is not a value",
            Self::Null => "null is not a value",
            Self::Infinite => "the value must be finite",
            Self::InexactInteger => "an integer beyond 2^53 has no exact f64",
            Self::Unsorted => "steps must go up by 1 within an episode",
            Self::MixedIds => {
                "episode ids are integers in one place and strings in another, so no piece can find its neighbours"
            }
            Self::Reappears => "the episode is in the log more than once, or in several places of one file",
            Self::Duplicate => "the step is there twice",
            Self::Gap => "steps are missing before this one",
            Self::FirstStep => "episodes must all start at step 0, or all at step 1",
            Self::Truncated => "the episode was cut off before the horizon, so its later rewards are unknown",
            Self::TooLong => "the episode is longer than the horizon",
            Self::AfterTerminal => "rows of the episode follow, although it has ended here",
            Self::NotAMark => "a mark must be true or false, or 1 or 0",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(kind: Kind, row: u64, episode: i128) -> Problem {
        let place = Some(Place { source: 0, row });
        let (episode, step, column, value) = (Some(Id::Int(episode)), None, None, None);
        Problem { place, kind, episode, step, column, value, message: kind.message().into() }
    }

    #[test]
    fn kinds_are_counted_beyond_the_limit_and_across_merges() {
        let (mut a, mut b) = (Problems::default(), Problems::default());
        for row in 0..100 {
            a.push(10, problem(Kind::Nan, row, i128::from(row / 10)));
            a.push(10, problem(Kind::Nan, row, i128::from(row / 10)));
            b.push(10, problem(Kind::Gap, 100 + row, 9));
            b.push(10, problem(Kind::Nan, 100 + row, 9));
        }
        a.merge(10, b);
        assert_eq!((a.kept.len(), a.found), (10, 400));
        let counts = a
            .summary()
            .kinds
            .iter()
            .map(|g| (g.kind, g.problems, g.rows, g.episodes, g.examples.len()))
            .collect::<Vec<_>>();
        assert_eq!(counts, [(Kind::Nan, 300, 200, 10, 3), (Kind::Gap, 100, 100, 1, 3)]);
    }
}
