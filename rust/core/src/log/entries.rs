//! Entries for many episodes in little memory: 28 bytes each, 16 for the id and 12 for the place where the episode
//! starts.

use std::fmt;
use std::io;
use std::path::Path;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

use crate::log::problem::Place;
use crate::log::sorted_runs::SortedRuns;

/// The number of bytes of an entry.
pub const BYTES: usize = 28;

/// The key, the source and the row, each from the most to the least significant byte, so that bytes sort as entries do.
type Entry = [u8; BYTES];

fn entry(key: u128, place: Place) -> Entry {
    let mut bytes = [0; BYTES];
    bytes[..16].copy_from_slice(&key.to_be_bytes());
    bytes[16..20].copy_from_slice(&place.source.to_be_bytes());
    bytes[20..].copy_from_slice(&place.row.to_be_bytes());
    bytes
}

fn read(entry: &Entry) -> (u128, Place) {
    let part = |from: usize, to: usize| entry[from..to].iter().fold(0, |number, &byte| number << 8 | u128::from(byte));
    (part(0, 16), Place { source: part(16, 20) as u32, row: part(20, BYTES) as u64 })
}

/// A set of keys with their places.
#[derive(Clone, Debug, Default)]
pub struct Entries(SortedRuns<BYTES>);

impl Entries {
    /// Adds a key and its place.
    pub fn push(&mut self, key: u128, place: Place) {
        self.0.push(entry(key, place));
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of bytes of the entries in memory.
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// Adds the entries of another set.
    pub fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
    }

    /// Moves all entries from memory to a file in a folder.
    pub fn spill(&mut self, folder: &Path) -> io::Result<()> {
        self.0.spill(folder)
    }

    /// Returns true if the key is among the entries.
    pub fn contains(&self, key: u128) -> io::Result<bool> {
        self.0.contains(&key.to_be_bytes())
    }

    /// Returns the keys and places in memory, in any order.
    pub fn held(&self) -> impl Iterator<Item = (u128, Place)> {
        self.0.held().map(read)
    }

    /// Returns all keys and places in order.
    pub fn in_order(&mut self) -> io::Result<impl Iterator<Item = io::Result<(u128, Place)>>> {
        Ok(self.0.in_order()?.map(|entry| entry.map(|entry| read(&entry))))
    }
}

/// Serialises runs as bytes.
impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let runs: Vec<_> = self.0.runs().collect::<Result<_, _>>().map_err(ser::Error::custom)?;
        serializer.collect_seq(runs.iter().map(|run| Bytes(run.as_flattened())))
    }
}

struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Runs)
    }
}

struct Runs;

impl<'de> Visitor<'de> for Runs {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("runs of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut runs: A) -> Result<Entries, A::Error> {
        let mut entries = Entries::default();
        while let Some(Run(run)) = runs.next_element()? {
            entries.0.push_run(run);
        }
        Ok(entries)
    }
}

struct Run(Vec<Entry>);

impl<'de> Deserialize<'de> for Run {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(RunBytes)
    }
}

struct RunBytes;

impl Visitor<'_> for RunBytes {
    type Value = Run;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entries of {BYTES} bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Run, E> {
        match bytes.as_chunks() {
            (entries, []) => Ok(Run(entries.to_vec())),
            _ => Err(E::invalid_length(bytes.len(), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(row: usize) -> Place {
        Place { source: row as u32 % 3, row: row as u64 }
    }

    proptest! {
        #[test]
        fn any_partition_and_transport_gives_the_entries_in_order(
            keys in prop::collection::vec(any::<u128>(), 0..5000), cut in 0..5000usize
        ) {
            let cut = cut.min(keys.len());
            let (mut ours, mut theirs) = (Entries::default(), Entries::default());
            for (row, &key) in keys.iter().enumerate() {
                let entries = if row < cut { &mut ours } else { &mut theirs };
                entries.push(key, place(row));
            }
            if keys.len() % 2 == 1 {
                theirs.spill(&std::env::temp_dir()).unwrap();
            }
            let bytes = postcard::to_stdvec(&theirs).unwrap();
            prop_assert!(bytes.len() <= (keys.len() - cut) * BYTES + 100);
            ours.merge(postcard::from_bytes(&bytes).unwrap());
            prop_assert_eq!(ours.is_empty(), keys.is_empty());
            let mut expected: Vec<_> = keys.iter().enumerate().map(|(row, &key)| (key, place(row))).collect();
            expected.sort();
            prop_assert!(ours.in_order().unwrap().map(Result::unwrap).eq(expected));
            prop_assert!(keys.iter().all(|&key| ours.contains(key).unwrap()));
        }
    }

    #[test]
    fn runs_that_are_cut_short_are_refused() {
        let mut entries = Entries::default();
        entries.push(7, place(1));
        let mut bytes = postcard::to_stdvec(&entries).unwrap();
        bytes[1] -= 1;
        assert!(postcard::from_bytes::<Entries>(&bytes).is_err());
        assert!(!entries.contains(8).unwrap());
    }
}
