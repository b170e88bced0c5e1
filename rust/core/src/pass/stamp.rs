//! The stamp and the extents of a state, by which it is accepted only for the plan, the pass and the rows of the log
//! that it was made for.

use serde::{Deserialize, Serialize};

use crate::pass::plan::Pass;

/// Rows of a log that were read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// The index of the file, frame or stream.
    pub source: u32,
    /// The fingerprint of the file, or the token of a log that has none.
    pub log: u64,
    /// The first row, counted from 0.
    pub row: u64,
    /// The number of rows.
    pub rows: u64,
}

/// The version, plan, pass and normalisers that a state was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The version of this crate.
    pub version: String,
    /// The fingerprint of the plan.
    pub plan: u64,
    /// The pass.
    pub pass: Pass,
    /// The fingerprint of the normalisers that the pass read, if any.
    pub normalisers: Option<u64>,
}

impl Stamp {
    /// Makes the stamp of this version for a plan and normalisers with these fingerprints.
    pub fn new(plan: u64, pass: Pass, normalisers: Option<u64>) -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), plan, pass, normalisers }
    }

    /// Returns an error that says what differs if another stamp is not the same.
    pub fn check(&self, other: &Self) -> Result<(), String> {
        if self.version != other.version {
            return Err(format!("it was made by version {}, and this is version {}", other.version, self.version));
        }
        if self.pass != other.pass {
            return Err(format!("it is of the {} pass, and this is the {} pass", other.pass.name(), self.pass.name()));
        }
        if self.plan != other.plan {
            return Err("it is of another plan: of other columns, policies, estimators or settings".to_owned());
        }
        if self.normalisers != other.normalisers {
            return Err("it was made with the normalisers of another first pass".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named() {
        let own = Stamp::new(1, Pass::Second, Some(3));
        assert_eq!(own.check(&own), Ok(()));
        let others = [
            (Stamp { version: "0.0.0".into(), ..own.clone() }, "version 0.0.0"),
            (Stamp::new(1, Pass::First, Some(3)), "the first pass"),
            (Stamp::new(2, Pass::Second, Some(3)), "another plan"),
            (Stamp::new(1, Pass::Second, Some(4)), "another first pass"),
            (Stamp::new(1, Pass::Second, None), "another first pass"),
        ];
        for (other, why) in others {
            assert!(own.check(&other).unwrap_err().contains(why), "{why}");
        }
    }
}
