//! Episode ids, and the record of those seen, which finds an episode that comes twice.

use std::fmt;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use crate::log::entries::{self, Entries};
use crate::log::problem::Place;
use crate::log::ranges::{IdRange, Ranges, SIGN, key};

/// The id of an episode.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Id {
    /// Any integer up to 64 bits, signed or not.
    Int(i128),
    /// Text.
    Text(Box<str>),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(i) => write!(f, "{i}"),
            Self::Text(text) => write!(f, "{text}"),
        }
    }
}

/// The first ids that come again, as far as they are known, with their places, and how many there are.
pub type Repeated = (Vec<(Option<Id>, Place)>, u64);

/// All ids seen. Consecutive integers are kept as ranges, so that a log with ids 0, 1, 2, … costs nothing; any other
/// episode takes the bytes of an entry, in memory or in a file. A text is known by 128 bits of its hash: that two of n different texts have the
/// same one, and are taken for one episode, has the probability n² / 2^129, which is 10^-21 for a billion.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ids {
    last: Option<IdRange>,
    ranges: Ranges,
    single: Entries,
    texts: Entries,
    first_text: Option<Place>,
}

fn hash(text: &str) -> u128 {
    XxHash3_128::oneshot(text.as_bytes())
}

impl Ids {
    /// Notes an episode that starts at `place`.
    pub fn push(&mut self, id: &Id, place: Place) {
        match id {
            Id::Int(i) => match &mut self.last {
                Some(last) if last.first + i128::from(last.count) == *i && last.place.source == place.source => {
                    last.count += 1;
                }
                _ => self.begin_range(Some(IdRange { first: *i, count: 1, place })),
            },
            Id::Text(text) => {
                self.texts.push(hash(text), place);
                self.first_text = Some(self.first_text.map_or(place, |first| first.min(place)));
            }
        }
    }

    /// Notes an integer that follows the last one, and nothing else; returns the bytes that the id would have taken.
    pub fn skip(&mut self, id: &Id, place: Place) -> u64 {
        match (id, &mut self.last) {
            (Id::Int(i), Some(last)) if last.first + i128::from(last.count) == *i => {
                last.count += 1;
                return 0;
            }
            (Id::Int(i), last) => *last = Some(IdRange { first: *i, count: 1, place }),
            (Id::Text(_), _) => {}
        }
        entries::BYTES as u64
    }

    fn begin_range(&mut self, next: Option<IdRange>) {
        match std::mem::replace(&mut self.last, next) {
            Some(IdRange { first, count: 1, place }) => self.single.push(key(first), place),
            Some(range) => self.ranges.push(range),
            None => {}
        }
    }

    /// Adds another record.
    pub fn merge(&mut self, mut other: Self) {
        other.begin_range(None);
        self.ranges.merge(other.ranges);
        self.single.merge(other.single);
        self.texts.merge(other.texts);
        self.first_text = [self.first_text, other.first_text].into_iter().flatten().min();
    }

    /// Episodes that begin with an id that another has, the first of them up to a limit with the later place (without
    /// its row where ids were consecutive), and how many there are. Integers have their id; the id of a text stands at
    /// the place.
    pub fn repeated(&mut self, limit: usize) -> io::Result<Repeated> {
        self.begin_range(None);
        let (mut found, mut count) = (vec![], 0);
        let alone = |(key, place): (u128, Place)| IdRange { first: (key ^ SIGN).cast_signed(), count: 1, place };
        let single = self.single.in_order()?.map(|entry| entry.map(alone));
        let mut covered: Option<(i128, Place)> = None; // last id so far, and where its range began
        for range in in_order(self.ranges.in_order()?, single) {
            let range = range?;
            let last = range.first + i128::from(range.count) - 1;
            if let Some((end, place)) = covered.filter(|(end, _)| *end >= range.first) {
                let later = place.max(range.place);
                let alone = later == range.place && range.count == 1;
                let later = if alone { later } else { Place::somewhere_in(later.source) };
                let repeated = range.first..=end.min(last);
                count += (*repeated.end() - *repeated.start() + 1) as u64;
                found.extend(repeated.take(limit - found.len()).map(|i| (Some(Id::Int(i)), later)));
            }
            covered = covered.filter(|(end, _)| *end >= last).or(Some((last, range.place)));
        }
        let (places, texts) = self.repeated_texts(limit - found.len())?;
        found.extend(places.into_iter().map(|place| (None, place)));
        Ok((found, count + texts))
    }

    fn repeated_texts(&mut self, limit: usize) -> io::Result<(Vec<Place>, u64)> {
        let (mut places, mut count, mut before) = (vec![], 0, None);
        for entry in self.texts.in_order()? {
            let (hash, place) = entry?;
            if before.replace(hash) == Some(hash) {
                count += 1;
                places.push(place);
                if places.len() >= 2 * limit.max(1) {
                    places.sort_unstable();
                    places.truncate(limit);
                }
            }
        }
        places.sort_unstable();
        places.truncate(limit);
        Ok((places, count))
    }

    /// Writes what is in memory to files in a folder, which go with the process.
    pub fn spill(&mut self, folder: &Path) -> io::Result<()> {
        self.ranges.spill(folder)?;
        self.single.spill(folder)?;
        self.texts.spill(folder)
    }

    /// Where a text is, if there are integers too.
    pub fn mixed(&self) -> Option<Place> {
        let integers = self.last.is_some() || !self.ranges.is_empty() || !self.single.is_empty();
        self.first_text.filter(|_| integers)
    }

    /// True if the id was pushed.
    pub fn contains(&mut self, id: &Id) -> io::Result<bool> {
        match id {
            Id::Int(i) => {
                if self.last.is_some_and(|range| range.contains(*i)) || self.single.contains(key(*i))? {
                    return Ok(true);
                }
                let mut ranges = self.ranges.in_order()?;
                ranges.try_fold(false, |found, range| Ok(found || range?.contains(*i)))
            }
            Id::Text(text) => self.texts.contains(hash(text)),
        }
    }

    /// True where every id in memory is one that a log can have.
    pub fn is_consistent(&self) -> bool {
        let integers = i128::from(i64::MIN)..=u64::MAX.into();
        let range = |range: &IdRange| integers.contains(&range.first) && range.count > 0 && range.count < 1 << 60;
        let single = self.single.held().all(|(key, _)| integers.contains(&(key ^ SIGN).cast_signed()));
        single && self.ranges.held().chain(self.last).all(|found| range(&found))
    }

    /// Where episodes start whose ids are in memory.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let ranges = self.ranges.held().chain(self.last).map(|range| range.place);
        ranges.chain(self.single.held().chain(self.texts.held()).map(|(_, place)| place))
    }

    /// Bytes that the ids take in memory.
    pub fn bytes(&self) -> u64 {
        self.ranges.bytes() + self.single.bytes() + self.texts.bytes()
    }
}

/// Two sorted sequences as one.
fn in_order(
    a: impl Iterator<Item = io::Result<IdRange>>,
    b: impl Iterator<Item = io::Result<IdRange>>,
) -> impl Iterator<Item = io::Result<IdRange>> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(Ok(x)), Some(Ok(y))) if x > y => b.next(),
        (None, _) => b.next(),
        _ => a.next(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(row: u64) -> Place {
        Place { source: 0, row }
    }

    #[test]
    fn finds_repeated_integers_in_any_arrangement() {
        let mut ids = Ids::default();
        for (row, i) in [5, 6, 7, 1, 2, 6, 100, 3, 100].into_iter().enumerate() {
            ids.push(&Id::Int(i), place(row as u64));
        }
        let repeated: Vec<Id> = ids.repeated(9).unwrap().0.into_iter().filter_map(|(id, _)| id).collect();
        assert_eq!(repeated, [Id::Int(6), Id::Int(100)]);
        let (found, count) = ids.repeated(1).unwrap();
        assert_eq!((found.len(), count), (1, repeated.len() as u64));
        assert!(ids.contains(&Id::Int(7)).unwrap() && !ids.contains(&Id::Int(8)).unwrap());
    }

    #[test]
    fn finds_repeated_texts_across_merges() {
        let (mut a, mut b) = (Ids::default(), Ids::default());
        for text in ["x", "", "yy"] {
            a.push(&Id::Text(text.into()), place(1));
        }
        for text in ["y", "yy", "z"] {
            b.push(&Id::Text(text.into()), place(2));
        }
        a.merge(b);
        assert_eq!(a.repeated(9).unwrap(), (vec![(None, place(2))], 1));
        assert!(a.contains(&Id::Text("".into())).unwrap() && !a.contains(&Id::Text("yyy".into())).unwrap());
    }

    #[test]
    fn consecutive_integers_cost_one_range() {
        let mut ids = Ids::default();
        (0..1000).for_each(|i| ids.push(&Id::Int(i), place(i as u64)));
        assert_eq!(ids.bytes(), 0);
        assert!(ids.repeated(9).unwrap().0.is_empty());
        assert_eq!(ids.ranges.held().count(), 1);
    }

    #[test]
    fn other_ids_cost_an_entry_each_in_memory_and_on_their_way() {
        let (mut ints, mut texts) = (Ids::default(), Ids::default());
        for i in 0..10_000u64 {
            ints.push(&Id::Int((i * 7919 % 10_007).into()), place(i));
            texts.push(&Id::Text(format!("a rather long name of a user {i}").into()), place(i));
        }
        for mut ids in [ints, texts] {
            let bytes = postcard::to_stdvec(&ids).unwrap();
            assert!(bytes.len() < 29 * 10_000 && ids.bytes() <= 28 * 10_000);
            assert_eq!(ids.repeated(9).unwrap(), (vec![], 0));
        }
    }

    #[test]
    fn of_many_repeated_texts_the_first_places_are_told() {
        let mut ids = Ids::default();
        for row in 0..2000 {
            ids.push(&Id::Text((row % 1000).to_string().into()), place(row));
        }
        let (found, count) = ids.repeated(3).unwrap();
        assert_eq!(found, (1000..1003).map(|row| (None, place(row))).collect::<Vec<_>>());
        assert_eq!((count, ids.repeated(0).unwrap().1), (1000, 1000));
    }

    proptest! {
        #[test]
        fn spilled_ids_tell_the_same_as_ids_in_memory(
            ids in prop::collection::vec(prop_oneof![0..60i128, 1000..1009i128], 0..300),
            texts in any::<bool>(), every in 1..40usize, cut in 0..300usize, limit in 0..9usize
        ) {
            let id = |i: i128| if texts { Id::Text(i.to_string().into()) } else { Id::Int(i) };
            let noted = |rows: std::ops::Range<usize>, every: usize| {
                let mut noted = Ids::default();
                for row in rows {
                    noted.push(&id(ids[row]), Place { source: row as u32 / 100, row: row as u64 });
                    if row % every == 0 {
                        noted.spill(&std::env::temp_dir()).unwrap();
                        assert_eq!(noted.bytes(), 0);
                    }
                }
                noted
            };
            let cut = cut.min(ids.len());
            let [mut held, mut spilled] = [usize::MAX, every].map(|every| {
                let mut first = noted(0..cut, every);
                first.merge(noted(cut..ids.len(), every));
                first
            });
            let bytes = postcard::to_stdvec(&spilled).unwrap();
            let mut travelled: Ids = postcard::from_bytes(&bytes).unwrap();
            prop_assert_eq!(spilled.mixed(), held.mixed());
            for i in [0, 7, 59, 500, 1004] {
                prop_assert_eq!(spilled.contains(&id(i)).unwrap(), ids.contains(&i));
            }
            let expected = held.repeated(limit).unwrap();
            prop_assert_eq!(travelled.repeated(limit).unwrap(), expected.clone());
            prop_assert_eq!(spilled.repeated(limit).unwrap(), expected);
        }
    }
}
