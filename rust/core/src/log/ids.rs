//! Episode ids, and the record of those seen, which finds an episode that comes twice.

use std::fmt;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use crate::log::entries::{self, Entries};
use crate::log::problem::Place;

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

/// Consecutive integers `first`, `first`+1, …
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Range {
    first: i128,
    count: u64,
    place: Place,
}

impl Range {
    fn contains(&self, i: i128) -> bool {
        self.first <= i && i - self.first < i128::from(self.count)
    }
}

/// All ids seen. Consecutive integers are kept as ranges, so that a log with ids 0, 1, 2, … costs nothing; any other
/// episode takes the bytes of an entry. A text is known by 128 bits of its hash: that two of n different texts have the
/// same one, and are taken for one episode, has the probability n² / 2^129, which is 10^-21 for a billion.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ids {
    last: Option<Range>,
    ranges: Vec<Range>,
    single: Entries,
    texts: Entries,
    first_text: Option<Place>,
}

/// Integers in their order.
const SIGN: u128 = 1 << 127;

fn key(i: i128) -> u128 {
    i.cast_unsigned() ^ SIGN
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
                _ => self.begin_range(Some(Range { first: *i, count: 1, place })),
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
            (Id::Int(i), last) => *last = Some(Range { first: *i, count: 1, place }),
            (Id::Text(_), _) => {}
        }
        entries::BYTES as u64
    }

    fn begin_range(&mut self, next: Option<Range>) {
        match std::mem::replace(&mut self.last, next) {
            Some(Range { first, count: 1, place }) => self.single.push(key(first), place),
            Some(range) => self.ranges.push(range),
            None => {}
        }
    }

    /// Adds another record.
    pub fn merge(&mut self, mut other: Self) {
        other.begin_range(None);
        self.ranges.append(&mut other.ranges);
        self.single.merge(other.single);
        self.texts.merge(other.texts);
        self.first_text = [self.first_text, other.first_text].into_iter().flatten().min();
    }

    /// Episodes that begin with an id that another has, the first of them up to a limit with the later place (without
    /// its row where ids were consecutive), and how many there are. Integers have their id; the id of a text stands at
    /// the place.
    pub fn repeated(&mut self, limit: usize) -> (Vec<(Option<Id>, Place)>, u64) {
        self.begin_range(None);
        let (mut found, mut count) = (vec![], 0);
        self.ranges.sort_unstable();
        let ranges = self.ranges.iter().copied();
        let single =
            self.single.in_order().map(|(key, place)| Range { first: (key ^ SIGN).cast_signed(), count: 1, place });
        let mut covered: Option<(i128, Place)> = None; // last id so far, and where its range began
        for range in in_order(ranges, single) {
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
        let (places, texts) = self.repeated_texts(limit - found.len());
        found.extend(places.into_iter().map(|place| (None, place)));
        (found, count + texts)
    }

    fn repeated_texts(&mut self, limit: usize) -> (Vec<Place>, u64) {
        let (mut places, mut count, mut before) = (vec![], 0, None);
        for (hash, place) in self.texts.in_order() {
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
        (places, count)
    }

    /// Where a text is, if there are integers too.
    pub fn mixed(&self) -> Option<Place> {
        let integers = self.last.is_some() || !self.ranges.is_empty() || !self.single.is_empty();
        self.first_text.filter(|_| integers)
    }

    /// True if the id was pushed.
    pub fn contains(&self, id: &Id) -> bool {
        match id {
            Id::Int(i) => {
                self.ranges.iter().chain(&self.last).any(|range| range.contains(*i)) || self.single.contains(key(*i))
            }
            Id::Text(text) => self.texts.contains(hash(text)),
        }
    }

    /// True where every id is one that a log can have.
    pub fn is_consistent(&self) -> bool {
        let integers = i128::from(i64::MIN)..=u64::MAX.into();
        let range = |range: &Range| integers.contains(&range.first) && range.count > 0 && range.count < 1 << 60;
        let single = self.single.iter().all(|(key, _)| integers.contains(&(key ^ SIGN).cast_signed()));
        single && self.ranges.iter().chain(&self.last).all(range)
    }

    /// Where episodes start.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let ranges = self.ranges.iter().chain(&self.last).map(|range| range.place);
        ranges.chain(self.single.iter().chain(self.texts.iter()).map(|(_, place)| place))
    }

    /// Bytes that the ids take.
    pub fn bytes(&self) -> u64 {
        let entries = (self.single.len() + self.texts.len()) * entries::BYTES;
        (entries + self.ranges.len() * size_of::<Range>()) as u64
    }
}

/// Two sorted sequences as one.
fn in_order(a: impl Iterator<Item = Range>, b: impl Iterator<Item = Range>) -> impl Iterator<Item = Range> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(x), Some(y)) if x > y => b.next(),
        (None, _) => b.next(),
        _ => a.next(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(row: u64) -> Place {
        Place { source: 0, row }
    }

    #[test]
    fn finds_repeated_integers_in_any_arrangement() {
        let mut ids = Ids::default();
        for (row, i) in [5, 6, 7, 1, 2, 6, 100, 3, 100].into_iter().enumerate() {
            ids.push(&Id::Int(i), place(row as u64));
        }
        let repeated: Vec<Id> = ids.repeated(9).0.into_iter().filter_map(|(id, _)| id).collect();
        assert_eq!(repeated, [Id::Int(6), Id::Int(100)]);
        assert_eq!((ids.repeated(1).0.len(), ids.repeated(1).1), (1, repeated.len() as u64));
        assert!(ids.contains(&Id::Int(7)) && !ids.contains(&Id::Int(8)));
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
        assert_eq!(a.repeated(9), (vec![(None, place(2))], 1));
        assert!(a.contains(&Id::Text("".into())) && !a.contains(&Id::Text("yyy".into())));
    }

    #[test]
    fn consecutive_integers_cost_one_range() {
        let mut ids = Ids::default();
        (0..1000).for_each(|i| ids.push(&Id::Int(i), place(i as u64)));
        assert_eq!(ids.bytes(), 0);
        assert!(ids.repeated(9).0.is_empty());
        assert_eq!(ids.ranges.len(), 1);
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
            assert_eq!(ids.repeated(9), (vec![], 0));
        }
    }

    #[test]
    fn of_many_repeated_texts_the_first_places_are_told() {
        let mut ids = Ids::default();
        for row in 0..2000 {
            ids.push(&Id::Text((row % 1000).to_string().into()), place(row));
        }
        let (found, count) = ids.repeated(3);
        assert_eq!(found, (1000..1003).map(|row| (None, place(row))).collect::<Vec<_>>());
        assert_eq!((count, ids.repeated(0).1), (1000, 1000));
    }
}
