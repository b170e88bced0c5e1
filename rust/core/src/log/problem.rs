//! What can be wrong with a log, as data.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::log::ids::Id;

/// A row of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Index of the file, frame or stream.
    pub source: u32,
    /// Row in it, from 0; the largest number where it is not known.
    pub row: u64,
}

impl Place {
    /// Somewhere in a source.
    pub fn somewhere_in(source: u32) -> Self {
        Self { source, row: u64::MAX }
    }

    /// So many rows further on.
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
    /// No value.
    Null,
    /// Not finite.
    Infinite,
    /// An integer that no f64 can hold.
    InexactInteger,
    /// Steps that go down.
    Unsorted,
    /// Integers here and texts there.
    MixedIds,
    /// An episode that is in the log twice.
    Reappears,
    /// A step that is there twice.
    Duplicate,
    /// Missing steps.
    Gap,
    /// An episode that does not start where the others do.
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

/// One problem and where it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    /// Where.
    pub place: Option<Place>,
    /// What.
    pub kind: Kind,
    /// In which episode.
    pub episode: Option<Id>,
    /// At which step, as logged.
    pub step: Option<i64>,
    /// In which column.
    pub column: Option<String>,
    /// The value found.
    pub value: Option<String>,
    /// What was expected, and how to go on.
    pub message: String,
}

/// Problems of one kind that are kept as examples.
const EXAMPLES: usize = 3;
/// Ids of episodes that are kept to tell how many different ones a kind of problem is in.
pub const EPISODES: usize = 1 << 16;

/// All problems of one kind: how many there are, in how many rows and episodes, and the first of them.
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
            None if problem.kind == Kind::Reappears => self.others += 1, // its id is known where it stands in the log
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

/// A number that stands for an id; the same in every process.
fn hash(id: &Id) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// What is known of one kind of problem.
#[derive(Debug, Serialize)]
pub struct Group<'a> {
    /// What is wrong.
    pub kind: Kind,
    /// How many times.
    pub problems: u64,
    /// In how many rows.
    pub rows: u64,
    /// In how many episodes …
    pub episodes: u64,
    /// … or in more: there are too many to keep.
    pub or_more: bool,
    /// The first of them.
    pub examples: &'a [Problem],
}

/// All that is known of problems.
#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    /// The first of them.
    pub kept: &'a [Problem],
    /// How many there are.
    pub found: u64,
    /// Of which kinds.
    pub kinds: Vec<Group<'a>>,
}

/// The first problems up to a limit, how many there were, and how many of each kind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Problems {
    /// Those that are kept.
    pub kept: Vec<Problem>,
    /// All that were found.
    pub found: u64,
    kinds: BTreeMap<Kind, Tally>,
}

impl Problems {
    /// Notes a problem.
    pub fn push(&mut self, limit: usize, problem: Problem) {
        self.found += 1;
        self.kinds.entry(problem.kind).or_default().push(&problem);
        if self.kept.len() < limit {
            self.kept.push(problem);
        }
    }

    /// Counts problems of a kind that was noted already, each in a row and an episode of its own.
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

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.found == 0
    }

    /// Adds another list.
    pub fn merge(&mut self, limit: usize, other: Self) {
        self.found += other.found;
        self.kept.extend(other.kept);
        self.kept.sort();
        self.kept.truncate(limit);
        for (kind, tally) in other.kinds {
            self.kinds.entry(kind).or_default().merge(tally);
        }
    }

    /// True where the counts and the lists can be those of one log.
    pub fn is_consistent(&self, limit: usize) -> bool {
        let (kept, listed) = (self.kept.len(), |tally: &Tally| (1..=EXAMPLES).contains(&tally.examples.len()));
        let counted = self.kinds.values().try_fold(0u64, |sum, tally| sum.checked_add(tally.problems));
        kept <= limit
            && kept as u64 <= self.found
            && (kept == 0) == self.is_empty()
            && counted == Some(self.found)
            && self.kinds.values().all(listed)
    }

    /// Where those are that are kept.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let examples = self.kinds.values().flat_map(|tally| &tally.examples);
        self.kept.iter().chain(examples).filter_map(|problem| problem.place)
    }

    /// All that is known of them.
    pub fn summary(&self) -> Summary<'_> {
        let kinds = self.kinds.iter().map(|(&kind, tally)| tally.group(kind)).collect();
        Summary { kept: &self.kept, found: self.found, kinds }
    }
}

impl Kind {
    /// What was expected.
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
