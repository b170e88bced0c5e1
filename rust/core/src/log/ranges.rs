//! Ranges of consecutive integers among the ids of a log.

use std::io;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

use crate::log::problem::Place;
use crate::log::sorted_runs::SortedRuns;

/// The number of bytes of a range: first, count, source and row.
const BYTES: usize = 36;
/// The sign bit of an integer. Flipping it gives unsigned numbers the order of the integers.
pub const SIGN: u128 = 1 << 127;

/// Returns an integer as an unsigned number of the same order, whose bytes from the most significant on sort alike.
pub fn key(i: i128) -> u128 {
    i.cast_unsigned() ^ SIGN
}

/// Consecutive integers `first`, `first`+1, …
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IdRange {
    /// The first integer.
    pub first: i128,
    /// The number of integers.
    pub count: u64,
    /// Where the episode of the first integer starts.
    pub place: Place,
}

impl IdRange {
    /// Returns true if the integer is in the range.
    pub fn contains(&self, i: i128) -> bool {
        self.first <= i && i - self.first < i128::from(self.count)
    }

    /// Returns the range as bytes that sort as ranges do.
    fn record(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..16].copy_from_slice(&key(self.first).to_be_bytes());
        bytes[16..24].copy_from_slice(&self.count.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.place.source.to_be_bytes());
        bytes[28..].copy_from_slice(&self.place.row.to_be_bytes());
        bytes
    }

    fn read(record: &[u8; BYTES]) -> Self {
        let part =
            |from: usize, to: usize| record[from..to].iter().fold(0, |number, &byte| number << 8 | u128::from(byte));
        let place = Place { source: part(24, 28) as u32, row: part(28, BYTES) as u64 };
        Self { first: (part(0, 16) ^ SIGN).cast_signed(), count: part(16, 24) as u64, place }
    }
}

/// A set of many ranges.
#[derive(Clone, Debug, Default)]
pub struct Ranges(SortedRuns<BYTES>);

impl Ranges {
    /// Adds a range.
    pub fn push(&mut self, range: IdRange) {
        self.0.push(range.record());
    }

    /// Returns true if there are no ranges.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of bytes of the ranges in memory.
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// Adds the ranges of another set.
    pub fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
    }

    /// Moves all ranges from memory to a file in a folder.
    pub fn spill(&mut self, folder: &Path) -> io::Result<()> {
        self.0.spill(folder)
    }

    /// Returns the ranges in memory, in any order.
    pub fn held(&self) -> impl Iterator<Item = IdRange> {
        self.0.held().map(IdRange::read)
    }

    /// Returns all ranges in order.
    pub fn in_order(&mut self) -> io::Result<impl Iterator<Item = io::Result<IdRange>>> {
        Ok(self.0.in_order()?.map(|record| record.map(|record| IdRange::read(&record))))
    }
}

/// Serialises ranges as one list.
impl Serialize for Ranges {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let runs: Vec<_> = self.0.runs().collect::<Result<_, _>>().map_err(ser::Error::custom)?;
        let all: Vec<IdRange> = runs.iter().flatten().map(IdRange::read).collect();
        all.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Ranges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all = Vec::<IdRange>::deserialize(deserializer)?;
        let mut ranges = SortedRuns::default();
        ranges.push_run(all.into_iter().map(IdRange::record).collect());
        Ok(Self(ranges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranges() -> impl Strategy<Value = IdRange> {
        let place = (any::<u32>(), any::<u64>()).prop_map(|(source, row)| Place { source, row });
        (any::<i64>(), any::<u64>(), place).prop_map(|(first, count, place)| IdRange {
            first: first.into(),
            count,
            place,
        })
    }

    proptest! {
        #[test]
        fn bytes_have_the_order_of_ranges_and_tell_all_of_them(a in ranges(), b in ranges()) {
            prop_assert_eq!(a.record().cmp(&b.record()), a.cmp(&b));
            prop_assert_eq!(IdRange::read(&a.record()), a);
        }
    }
}
