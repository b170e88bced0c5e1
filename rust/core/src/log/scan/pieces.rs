//! Pieces of trajectories that have begun in another file, such as a session over midnight in files of one day each.
//!
//! A file is sorted by episode and step, so a piece may stand anywhere in it. Only the second piece shows that an
//! episode crosses files, and by then its first piece may have been folded and closed. So the ids of such pieces are
//! kept here, and the log is read once more with these ids in the plan's `crossing`. Their pieces then stay open, and
//! are joined by episode and step like those at the ends of a unit. Where some episodes start at step 0 and others at
//! step 1, the latter may be second pieces too. The plan's `first_step` then tells the next reading that episodes start
//! at step 0.
//!
//! Pieces that wait for their neighbours are kept in memory, hence the limits.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Partial, Scan};
use crate::log::ids::Id;
use crate::log::problem::{Kind, Place};
use crate::pass::plan::Plan;

/// The largest number of pieces that may wait for their neighbours.
pub const MOST_PIECES: u64 = 1 << 17;
/// The largest number of rows that these pieces may have.
pub const MOST_ROWS: u64 = 1 << 22;

/// Pieces without a beginning: the first of them, the ids of their episodes, and how many there are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pieces {
    first: Vec<(Place, Id, i64)>,
    ids: BTreeSet<Id>,
    count: u64,
    /// The number of rows of these pieces.
    pub rows: u64,
}

impl Pieces {
    /// Adds a piece.
    pub fn push(&mut self, limit: usize, place: Place, id: &Id, first_step: i64) {
        self.count += 1;
        if self.count <= MOST_PIECES {
            self.ids.insert(id.clone());
        }
        if self.first.len() < limit {
            self.first.push((place, id.clone(), first_step));
        }
    }

    /// Adds the pieces of another list.
    pub fn merge(&mut self, limit: usize, other: Self) {
        (self.count, self.rows) = (self.count + other.count, self.rows + other.rows);
        if self.count <= MOST_PIECES {
            self.ids.extend(other.ids);
        }
        self.first.extend(other.first);
        self.first.sort();
        self.first.truncate(limit);
    }

    /// Returns true if there are no pieces.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns true if no list is longer than the number of pieces.
    pub fn is_consistent(&self, limit: usize) -> bool {
        let listed = self.first.len().max(self.ids.len()) as u64;
        self.first.len() <= limit && listed <= self.count
    }

    /// Returns the places of the first pieces.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.first.iter().map(|(place, _, _)| *place)
    }

    /// Returns the episodes of the pieces, unless too many pieces or rows would have to wait.
    pub fn episodes(&self) -> Option<&BTreeSet<Id>> {
        (self.count <= MOST_PIECES && self.rows <= MOST_ROWS).then_some(&self.ids)
    }
}

/// The facts that another reading of several files needs.
#[derive(Debug, Serialize)]
pub struct Crossing<'a> {
    /// The episodes that cross files.
    pub crossing: BTreeSet<&'a Id>,
    /// The first step of every episode.
    pub first_step: Option<i64>,
}

impl Partial {
    /// Returns the facts that another reading needs beyond the plan of this one. Returns None where nothing is new, or
    /// where too much would have to wait in memory.
    pub fn crossing<'a>(&'a self, plan: &'a Plan) -> Option<Crossing<'a>> {
        let both = self.first_steps.iter().all(Option::is_some);
        let first_step = if both { Some(0) } else { plan.first_step };
        let found = self.pieces.episodes().filter(|found| !found.is_empty() || first_step != plan.first_step)?;
        Some(Crossing { crossing: found.iter().chain(&plan.crossing).collect(), first_step })
    }
}

impl Scan {
    /// Reports pieces whose neighbours were not looked for. Pieces that are not kept count under the kind of the last
    /// one kept.
    pub(super) fn report_pieces(&mut self) {
        let Pieces { first, count, ids, .. } = self.partial.pieces.clone();
        let mut rest = count - first.len() as u64;
        for (place, id, step) in first.into_iter().rev() {
            let found = self.partial.ids.contains(&id);
            let kind = if self.readable(found) { Kind::Reappears } else { Kind::FirstStep };
            self.problem(kind, Some(place), Some(&id), Some(step), Some(("step", step.to_string())));
            self.partial.problems.more_of(kind, std::mem::take(&mut rest), ids.iter());
        }
    }
}
