//! Where a state belongs: a state is only of use to the plan, the pass and the log that it was made for.

use serde::{Deserialize, Serialize};

use crate::pass::plan::Pass;

/// Rows of a log that were read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Index of the file, frame or stream.
    pub source: u32,
    /// Fingerprint of the file, or the token of a log that has none.
    pub log: u64,
    /// The first row, from 0.
    pub row: u64,
    /// How many.
    pub rows: u64,
}

/// What a state was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Version of this crate.
    pub version: String,
    /// Fingerprint of the plan as it was written.
    pub plan: u64,
    /// Which pass.
    pub pass: Pass,
    /// Fingerprint of the normalisers that the pass read, if any.
    pub normalisers: Option<u64>,
}

impl Stamp {
    /// Of states that are made here, for a plan and normalisers with these fingerprints.
    pub fn new(plan: u64, pass: Pass, normalisers: Option<u64>) -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), plan, pass, normalisers }
    }

    /// Says what a state with another stamp belongs to.
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
