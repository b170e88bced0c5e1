//! Pieces of trajectories that have begun in another file: a session over midnight in files of one day each.
//!
//! A file is sorted by episode and step, so that a piece may stand anywhere in it. That an episode crosses files shows when
//! its second piece is found, and by then its first may have been folded and closed. The ids of such pieces are kept here,
//! and the log is read once more with these ids in the plan's `crossing`: then their pieces stay open, and are joined by
//! episode and step as those at the ends of a unit are. Where some episodes start at step 0 and others at step 1, the latter
//! may be second pieces too: the plan's `first_step` says so for the next reading.
//!
//! What waits for its neighbours is kept in memory, hence the limits.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Partial, Scan};
use crate::log::ids::Id;
use crate::log::problem::{Kind, Place};
use crate::pass::plan::Plan;

/// Pieces that may wait for their neighbours, …
pub const MOST_PIECES: u64 = 1 << 17;
/// … with so many rows.
pub const MOST_ROWS: u64 = 1 << 22;

/// Pieces without a beginning: the first of them, the ids of all, and how much they are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pieces {
    first: Vec<(Place, Id, i64)>,
    ids: BTreeSet<Id>,
    count: u64,
    /// Rows of them.
    pub rows: u64,
}

impl Pieces {
    /// Notes a piece.
    pub fn push(&mut self, limit: usize, place: Place, id: &Id, first_step: i64) {
        self.count += 1;
        if self.count <= MOST_PIECES {
            self.ids.insert(id.clone());
        }
        if self.first.len() < limit {
            self.first.push((place, id.clone(), first_step));
        }
    }

    /// Adds another list.
    pub fn merge(&mut self, limit: usize, other: Self) {
        (self.count, self.rows) = (self.count + other.count, self.rows + other.rows);
        if self.count <= MOST_PIECES {
            self.ids.extend(other.ids);
        }
        self.first.extend(other.first);
        self.first.sort();
        self.first.truncate(limit);
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// True where no list is longer than there are pieces.
    pub fn is_consistent(&self, limit: usize) -> bool {
        let listed = self.first.len().max(self.ids.len()) as u64;
        self.first.len() <= limit && listed <= self.count
    }

    /// Where the first of them are.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.first.iter().map(|(place, _, _)| *place)
    }

    /// The episodes that they belong to, if not too much has to wait.
    pub fn episodes(&self) -> Option<&BTreeSet<Id>> {
        (self.count <= MOST_PIECES && self.rows <= MOST_ROWS).then_some(&self.ids)
    }
}

/// What another reading of several files must know.
#[derive(Debug, Serialize)]
pub struct Crossing<'a> {
    /// The episodes that cross them.
    pub crossing: BTreeSet<&'a Id>,
    /// The first step of every episode.
    pub first_step: Option<i64>,
}

impl Partial {
    /// What another reading must know beyond the plan of this one; None where nothing is new, or where too much would have
    /// to wait in memory.
    pub fn crossing<'a>(&'a self, plan: &'a Plan) -> Option<Crossing<'a>> {
        let both = self.first_steps.iter().all(Option::is_some);
        let first_step = if both { Some(0) } else { plan.first_step };
        let found = self.pieces.episodes().filter(|found| !found.is_empty() || first_step != plan.first_step)?;
        Some(Crossing { crossing: found.iter().chain(&plan.crossing).collect(), first_step })
    }
}

impl Scan {
    /// Reports pieces whose neighbours nobody looked for; those that are not kept count as the last that is.
    pub(super) fn report_pieces(&mut self) {
        let Pieces { first, count, .. } = self.partial.pieces.clone();
        let mut rest = count - first.len() as u64;
        for (place, id, step) in first.into_iter().rev() {
            let found = self.partial.ids.contains(&id);
            let kind = if self.readable(found) { Kind::Reappears } else { Kind::FirstStep };
            self.problem(kind, Some(place), Some(&id), Some(step), Some(("step", step.to_string())));
            self.partial.problems.more(kind, std::mem::take(&mut rest));
        }
    }
}
