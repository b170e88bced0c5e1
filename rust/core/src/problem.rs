//! What can be wrong with a log, as data.

use serde::{Deserialize, Serialize};

use crate::ids::Id;

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

/// The first problems up to a limit, and how many there were.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Problems {
    /// Those that are kept.
    pub kept: Vec<Problem>,
    /// All that were found.
    pub found: u64,
}

impl Problems {
    /// Notes a problem.
    pub fn push(&mut self, limit: usize, problem: Problem) {
        self.found += 1;
        if self.kept.len() < limit {
            self.kept.push(problem);
        }
    }

    /// Counts problems of a kind that was noted already.
    pub fn more(&mut self, count: u64) {
        self.found += count;
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
    }
}

impl Kind {
    /// What was expected, and how to go on.
    pub fn message(self) -> &'static str {
        match self {
            Self::NotPositive => {
                "the probability of a logged action must be above 0: an action that the behaviour policy cannot take cannot be in its log"
            }
            Self::AboveOne => "a probability must be at most 1; if it is a density, say density=True",
            Self::Negative => "a probability or ratio must not be negative",
            Self::Nan => "NaN is not a value: mend the column, or leave out the whole episode",
            Self::Null => "null is not a value: mend the column, or leave out the whole episode",
            Self::Infinite => "the value must be finite",
            Self::InexactInteger => "an integer beyond 2^53 has no exact f64: cast the column yourself",
            Self::Unsorted => "steps must go up by 1 within an episode; order=\"any\" sorts the log first",
            Self::MixedIds => {
                "episode ids are integers in one place and strings in another, so no piece can find its neighbours: cast one"
            }
            Self::Reappears => {
                "the episode is in the log more than once; order=\"any\" brings its steps together if they are scattered"
            }
            Self::Duplicate => {
                "the step is there twice; dedupe=\"identical\" drops rows that are equal in every column used"
            }
            Self::Gap => {
                "steps are missing before this one; if the rows are only out of order, order=\"any\" sorts the log"
            }
            Self::FirstStep => {
                "episodes must all start at step 0, or all at step 1; if the rows are only out of order, order=\"any\" sorts the log"
            }
            Self::Truncated => {
                "the episode was cut off before the horizon, so its later rewards are unknown; truncation=\"as-terminal\" counts them as 0, \"bootstrap\" as the model says, \"reduce-horizon\" leaves such steps out for all; if the column means something else, Columns(terminal=None) or Columns(truncated=None) leaves it unread"
            }
            Self::TooLong => {
                "the episode is longer than the horizon: give a larger horizon=, or filter the log to its first steps"
            }
            Self::AfterTerminal => {
                "rows of the episode follow, although it has ended here: give them an episode id of their own, or mend the column; if it means something else, Columns(terminal=None) leaves it unread"
            }
            Self::NotAMark => "a mark must be true or false, or 1 or 0: mend the column",
        }
    }
}
