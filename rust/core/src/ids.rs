//! Episode ids, and the record of those seen, which finds an episode that comes twice.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::problem::Place;

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

/// All ids seen: integers as ranges (a log with ids 0, 1, 2, … costs nothing), texts in one piece of memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ids {
    ranges: Vec<Range>,
    text: String,
    texts: Vec<(usize, Place)>,
}

impl Ids {
    /// Notes an episode that starts at `place`.
    pub fn push(&mut self, id: &Id, place: Place) {
        match id {
            Id::Int(i) => match self.ranges.last_mut() {
                Some(last) if last.first + i128::from(last.count) == *i && last.place.source == place.source => {
                    last.count += 1;
                }
                _ => self.ranges.push(Range { first: *i, count: 1, place }),
            },
            Id::Text(text) => {
                self.texts.push((self.text.len(), place));
                self.text.push_str(text);
            }
        }
    }

    /// Adds another record.
    pub fn merge(&mut self, other: Self) {
        let offset = self.text.len();
        self.ranges.extend(other.ranges);
        self.text.push_str(&other.text);
        self.texts.extend(other.texts.into_iter().map(|(start, place)| (start + offset, place)));
    }

    /// Ids that were pushed more than once, the first of them up to a limit with the later place (without its row
    /// where ids were consecutive), and how many there are.
    pub fn repeated(&mut self, limit: usize) -> (Vec<(Id, Place)>, u64) {
        let (mut found, mut count) = (vec![], 0);
        self.ranges.sort_unstable();
        let mut covered: Option<(i128, Place)> = None; // last id so far, and where its range began
        for range in &self.ranges {
            let last = range.first + i128::from(range.count) - 1;
            if let Some((end, place)) = covered.filter(|(end, _)| *end >= range.first) {
                let later = place.max(range.place);
                let alone = later == range.place && range.count == 1;
                let later = if alone { later } else { Place::somewhere_in(later.source) };
                let repeated = range.first..=end.min(last);
                count += (*repeated.end() - *repeated.start() + 1) as u64;
                found.extend(repeated.take(limit - found.len()).map(|i| (Id::Int(i), later)));
            }
            covered = covered.filter(|(end, _)| *end >= last).or(Some((last, range.place)));
        }
        let mut texts: Vec<(&str, Place)> = (0..self.texts.len()).map(|k| self.text_at(k)).collect();
        texts.sort_unstable();
        let pairs = texts.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        count += pairs.clone().count() as u64;
        found.extend(pairs.take(limit - found.len()).map(|pair| (Id::Text(pair[1].0.into()), pair[1].1)));
        (found, count)
    }

    /// Where a text is, if there are integers too.
    pub fn mixed(&self) -> Option<Place> {
        self.texts.iter().map(|(_, place)| *place).min().filter(|_| !self.ranges.is_empty())
    }

    /// True if the id was pushed.
    pub fn contains(&self, id: &Id) -> bool {
        match id {
            Id::Int(i) => self.ranges.iter().any(|r| r.first <= *i && *i < r.first + i128::from(r.count)),
            Id::Text(text) => (0..self.texts.len()).any(|k| self.text_at(k).0 == &**text),
        }
    }

    /// True where every text lies within the memory of texts, and every id is one that a log can have.
    pub fn is_consistent(&self) -> bool {
        let starts = || self.texts.iter().map(|(start, _)| *start);
        let integer = |range: &Range| {
            (i128::from(i64::MIN)..=u64::MAX.into()).contains(&range.first) && range.count > 0 && range.count < 1 << 60
        };
        starts().is_sorted()
            && starts().all(|start| self.text.is_char_boundary(start))
            && self.ranges.iter().all(integer)
    }

    /// Where episodes start.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.ranges.iter().map(|range| range.place).chain(self.texts.iter().map(|(_, place)| *place))
    }

    fn text_at(&self, k: usize) -> (&str, Place) {
        let (start, place) = self.texts[k];
        let end = self.texts.get(k + 1).map_or(self.text.len(), |next| next.0);
        (&self.text[start..end], place)
    }
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
        let repeated: Vec<Id> = ids.repeated(9).0.into_iter().map(|(id, _)| id).collect();
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
        assert_eq!(a.repeated(9), (vec![(Id::Text("yy".into()), place(2))], 1));
        assert!(a.contains(&Id::Text("".into())) && !a.contains(&Id::Text("yyy".into())));
    }

    #[test]
    fn consecutive_integers_cost_one_range() {
        let mut ids = Ids::default();
        (0..1000).for_each(|i| ids.push(&Id::Int(i), place(i as u64)));
        assert_eq!(ids.ranges.len(), 1);
        assert!(ids.repeated(9).0.is_empty());
    }
}
