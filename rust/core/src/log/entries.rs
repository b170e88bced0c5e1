//! Entries for many episodes in little memory: 28 bytes each, 16 for the id and 12 for the place where the episode
//! starts.
//!
//! Entries are collected in runs that are sorted when they are full and never move again. So memory does not double
//! when the list grows. It does not double either when equal ids are searched: the runs are then read side by side, in
//! one order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::log::problem::Place;

/// The number of bytes of an entry.
pub const BYTES: usize = 28;
/// The number of entries of the first run. A later run holds an eighth of the entries so far, but never fewer than
/// this.
const FIRST: usize = 1 << 10;
/// The largest number of entries of a run.
const LAST: usize = 1 << 20;

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

fn sort(entries: &mut [Entry]) {
    entries.sort_unstable_by_key(read);
}

/// Keys with their places.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    sorted: Vec<Vec<Entry>>,
    open: Vec<Entry>,
    len: usize,
}

impl Entries {
    /// Adds a key and its place.
    pub fn push(&mut self, key: u128, place: Place) {
        if self.open.len() == self.open.capacity() {
            self.seal();
            self.open.reserve_exact((self.len / 8).clamp(FIRST, LAST));
        }
        self.open.push(entry(key, place));
        self.len += 1;
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds the entries of another set.
    pub fn merge(&mut self, mut other: Self) {
        other.seal();
        self.len += other.len;
        self.sorted.append(&mut other.sorted);
    }

    /// Returns true if the key is among the entries.
    pub fn contains(&self, key: u128) -> bool {
        let inside = |run: &Vec<Entry>| run.binary_search_by_key(&key, |entry| read(entry).0).is_ok();
        self.open.iter().any(|entry| read(entry).0 == key) || self.sorted.iter().any(inside)
    }

    /// Returns all keys and places, in any order.
    pub fn iter(&self) -> impl Iterator<Item = (u128, Place)> {
        self.sorted.iter().flatten().chain(&self.open).map(read)
    }

    /// Returns all keys and places in order.
    pub fn in_order(&mut self) -> impl Iterator<Item = (u128, Place)> {
        self.seal();
        let first = |(run, entries): (usize, &Vec<Entry>)| Some(Reverse((read(entries.first()?), run, 0)));
        let mut next: BinaryHeap<_> = self.sorted.iter().enumerate().filter_map(first).collect();
        std::iter::from_fn(move || {
            let mut top = next.peek_mut()?;
            let Reverse((found, run, at)) = *top;
            match self.sorted[run].get(at + 1) {
                Some(entry) => *top = Reverse((read(entry), run, at + 1)),
                None => drop(std::collections::binary_heap::PeekMut::pop(top)),
            }
            Some(found)
        })
    }

    fn seal(&mut self) {
        if !self.open.is_empty() {
            let mut run = std::mem::take(&mut self.open);
            sort(&mut run);
            if run.len() < run.capacity() / 2 {
                run.shrink_to_fit();
            }
            self.sorted.push(run);
        }
    }
}

/// Serialises runs as bytes.
impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let runs = self.sorted.iter().chain([&self.open]);
        serializer.collect_seq(runs.map(|run| Bytes(run.as_flattened())))
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
        while let Some(Run(mut run)) = runs.next_element()? {
            sort(&mut run);
            entries.len += run.len();
            entries.sorted.push(run);
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
            let bytes = postcard::to_stdvec(&theirs).unwrap();
            prop_assert!(bytes.len() <= theirs.len() * BYTES + 100);
            ours.merge(postcard::from_bytes(&bytes).unwrap());
            prop_assert_eq!((ours.len(), ours.is_empty()), (keys.len(), keys.is_empty()));
            let mut expected: Vec<_> = keys.iter().enumerate().map(|(row, &key)| (key, place(row))).collect();
            expected.sort();
            prop_assert!(ours.in_order().eq(expected));
            prop_assert!(keys.iter().all(|&key| ours.contains(key)));
        }
    }

    #[test]
    fn runs_that_are_cut_short_are_refused() {
        let mut entries = Entries::default();
        entries.push(7, place(1));
        let mut bytes = postcard::to_stdvec(&entries).unwrap();
        bytes[1] -= 1;
        assert!(postcard::from_bytes::<Entries>(&bytes).is_err());
        assert!(!entries.contains(8));
    }
}
