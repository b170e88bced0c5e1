//! What a row says about the end of its trajectory.
//!
//! `terminal` says whether the trajectory has ended with the row, and `truncated` that it was cut off there. A trajectory
//! with fewer than H steps whose last row says `terminal` = false, or in a log without that column `truncated` = true, was cut
//! off. Where a row says both, it has ended: a time limit that strikes at the end takes nothing away.

use serde::{Deserialize, Serialize};

use crate::pass::plan::Plan;

/// What a row says about the end of its trajectory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Ending {
    /// Nothing: the log has no column for it, or only `truncated`, which is false.
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
    /// From the marks of a row; None where the log has no such column.
    pub fn new(terminal: Option<bool>, truncated: Option<bool>) -> Self {
        match (terminal, truncated) {
            (Some(true), _) => Self::Terminal,
            (_, Some(true)) => Self::Truncated,
            (Some(false), _) => Self::NotTerminal,
            (None, _) => Self::Unsaid,
        }
    }

    /// No row may follow.
    pub fn is_last(self) -> bool {
        matches!(self, Self::Terminal | Self::Truncated)
    }

    /// A trajectory with fewer than H steps that ends with this row was cut off.
    pub fn is_cut(self) -> bool {
        matches!(self, Self::Truncated | Self::NotTerminal)
    }

    /// The column that says so, and its value.
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
