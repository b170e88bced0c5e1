//! The end of a trajectory, as its rows report it.
//!
//! `terminal` says that the trajectory has ended with the row, and `truncated` that it was cut off there. A trajectory
//! with fewer than H steps was cut off if its last row has `terminal` = false or, in a log without that column,
//! `truncated` = true. A row that has both marks has ended: a time limit that is reached at the end takes nothing away.

use serde::{Deserialize, Serialize};

use crate::pass::plan::Plan;

/// The end of a trajectory that a row reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Ending {
    /// No end: the log has no column for it, or only `truncated`, which is false.
    #[default]
    Unsaid,
    /// `terminal` is true.
    Terminal,
    /// `truncated` is true, and `terminal` is not.
    Truncated,
    /// `terminal` is false.
    NotTerminal,
}

impl Ending {
    /// Makes the ending from the marks of a row, which are None where the log has no such column.
    pub fn new(terminal: Option<bool>, truncated: Option<bool>) -> Self {
        match (terminal, truncated) {
            (Some(true), _) => Self::Terminal,
            (_, Some(true)) => Self::Truncated,
            (Some(false), _) => Self::NotTerminal,
            (None, _) => Self::Unsaid,
        }
    }

    /// Returns true if no row of the trajectory may follow.
    pub fn is_last(self) -> bool {
        matches!(self, Self::Terminal | Self::Truncated)
    }

    /// Returns true if a trajectory with fewer than H steps that ends with this row was cut off.
    pub fn is_cut(self) -> bool {
        matches!(self, Self::Truncated | Self::NotTerminal)
    }

    /// Returns the column that reports this ending, and its value.
    pub fn said(self, plan: &Plan) -> Option<(String, String)> {
        let (column, value) = match self {
            Self::Unsaid => return None,
            Self::Terminal => (&plan.terminal, "true"),
            Self::Truncated => (&plan.truncated, "true"),
            Self::NotTerminal => (&plan.terminal, "false"),
        };
        column.clone().map(|column| (column, value.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_goes_before_truncated() {
        let all = [None, Some(false), Some(true)];
        for truncated in all {
            assert!(!Ending::new(Some(true), truncated).is_cut());
            assert!(Ending::new(Some(false), truncated).is_cut());
            assert_eq!(Ending::new(None, truncated).is_cut(), truncated == Some(true));
            assert_eq!(Ending::new(Some(false), truncated).is_last(), truncated == Some(true));
        }
    }
}
