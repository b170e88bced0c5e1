//! Reads batches of rows in order, cuts them into trajectories, and checks and folds these.
//!
//! A log is read in units (a file, a row group or a stream), in any order and several at a time. Within one file, only
//! the first trajectory of a unit can have begun elsewhere. It is kept as rows, a [`Head`], until its beginning
//! arrives. Only the last trajectory can go on elsewhere. It stays [`Open`], as a tail. [`Join`] brings the two
//! together by episode and step. Trajectories that cross files may stand anywhere in them; [`pieces`] explains how they
//! are found.

mod join;
pub mod pieces;
mod report;
mod shorts;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::log::checks::{Ordinary, inspect};
use crate::log::content::Content;
use crate::log::ending::Ending;
use crate::log::episode::{Head, Open};
use crate::log::ids::{Id, Ids};
use crate::log::problem::{Kind, Place, Problems};
use crate::log::steps::{self, Steps};
use crate::number::block::LANES;
use crate::pass::accumulators::Accumulators;
use crate::pass::engine::Engine;
use crate::pass::plan::Pass;
pub use join::Join;
use pieces::Pieces;

/// The number of rows that are checked together before they are folded. They stay in the fastest cache in between.
const AHEAD: usize = 512;

/// Consecutive rows of one episode.
#[derive(Clone, Debug)]
pub struct EpisodeRun {
    /// First row in the batch.
    pub start: usize,
    /// Number of rows.
    pub len: usize,
    /// Id of the episode.
    pub id: Id,
}

/// A value that could not be converted, in whose place the column has a neutral one.
#[derive(Clone, Debug)]
pub struct Flaw {
    /// Row in the batch.
    pub row: usize,
    /// Name of the column.
    pub column: String,
    /// The kind of problem.
    pub kind: Kind,
    /// The value.
    pub value: String,
}

/// Rows of a unit, in order.
pub struct Batch<'a> {
    /// Where the first row is.
    pub place: Place,
    /// The rows by episode, from the first row on. Columns may have more rows behind the last run.
    pub runs: &'a [EpisodeRun],
    /// Whether another episode follows the last run.
    pub complete: bool,
    /// The steps as logged.
    pub steps: Steps<'a>,
    /// The values of each slot of the plan.
    pub columns: &'a [&'a [f64]],
    /// Whether the episode has ended here.
    pub terminal: Option<&'a [bool]>,
    /// Whether the episode was cut off here.
    pub truncated: Option<&'a [bool]>,
    /// The values that could not be converted.
    pub flaws: &'a [Flaw],
}

/// Cut-off episodes of one length: their number, and the first of them in the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cut {
    /// The number of such episodes.
    pub count: u64,
    /// Where the last row of the first one is.
    pub place: Place,
    /// The id of that episode.
    pub id: Id,
    /// The ending that its last row reports.
    pub ending: Ending,
}

/// The result of reading a part of a log. Parts merge, and travel between processes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Partial {
    /// The sums.
    pub sums: Accumulators,
    /// Episodes whose beginning has been seen.
    pub ids: Ids,
    /// The problems found.
    pub problems: Problems,
    /// The first episode that starts at step 0, and the first one that starts at step 1.
    pub first_steps: [Option<(Place, Id)>; 2],
    /// Cut-off episodes by length.
    pub truncated: BTreeMap<u64, Cut>,
    /// Whether some value is not of ordinary magnitude.
    pub wild: bool,
    /// Sums over the content that was read.
    pub content: Content,
    /// Whether the limit of memory was too small. If so, only the lengths of trajectories are right.
    pub too_large: bool,
    /// The bytes of ids and rows that were not kept after that.
    pub untaken: u64,
    /// The reason why ids that were written to a file could not be read again.
    #[serde(skip)]
    pub lost_ids: Option<String>,
    /// Rows of trajectories whose beginning has not been found.
    pub heads: Vec<Head>,
    /// Trajectories that may go on elsewhere.
    pub tails: Vec<Open>,
    /// Pieces of episodes that have begun in another file, which the plan did not know to cross files.
    pub pieces: Pieces,
}

impl Partial {
    /// Returns the first step of episodes, as far as they have been seen.
    fn first_step(&self) -> i64 {
        steps::first_step(self.first_steps[0].is_some())
    }
}

enum Current {
    Nothing,
    Head(Head),
    Open(Box<Open>),
}

impl Current {
    /// What its last row says about the end, and where that row is.
    fn end(&mut self) -> Option<(&mut Ending, &mut Place)> {
        match self {
            Self::Nothing => None,
            Self::Head(head) => Some((&mut head.ending, &mut head.last)),
            Self::Open(open) => Some((&mut open.ending, &mut open.last)),
        }
    }
}

/// A reader of units.
pub struct Scan {
    /// Whether to add up the bits that are read, so that a change of the log is detected. Files have other means for
    /// that.
    pub adds_bits: bool,
    engine: Engine,
    partial: Partial,
    current: Current,
    heads: Vec<Head>,
    tails: Vec<Open>,
    crossing: HashSet<Id>,
    unit_is_new: bool,
    spare: Option<Box<Open>>,
    tame: bool,
    /// The bytes that have been taken from the budget.
    counted: u64,
    arch: pulp::Arch,
}

impl Scan {
    /// Makes a reader with its own sums. `tame` says that an earlier pass saw only values of ordinary magnitude.
    pub fn new(engine: Engine, tame: bool) -> Self {
        let (current, partial, arch) = (Current::Nothing, Partial::default(), pulp::Arch::new());
        let crossing = engine.plan.crossing.iter().cloned().collect();
        let (adds_bits, heads, tails, unit_is_new, spare, counted) = (true, vec![], vec![], true, None, 0);
        Self { adds_bits, engine, partial, current, heads, tails, crossing, unit_is_new, spare, tame, counted, arch }
    }

    /// Returns true where an earlier pass has checked the log and found every episode in one piece.
    pub fn knows_log(&self) -> bool {
        self.engine.pass != Pass::First
    }

    /// Returns true where the limit of memory was too small, here or where another part was read.
    pub fn too_large(&self) -> bool {
        self.engine.too_large || self.partial.too_large
    }

    fn broken(&self) -> bool {
        self.engine.plan.check_only
            || self.too_large()
            || !self.partial.problems.is_empty()
            || !self.partial.pieces.is_empty()
    }

    /// Reads the next rows of the unit.
    pub fn push(&mut self, batch: &Batch) {
        let rows = batch.runs.last().map_or(0, |run| run.start + run.len);
        self.partial.content.rows += rows as u64;
        if self.adds_bits {
            self.partial.content.add_bits(batch.columns, rows, self.arch);
        }
        let mut flaws: Vec<&Flaw> = batch.flaws.iter().collect();
        flaws.sort_by_key(|flaw| flaw.row);
        flaws.into_iter().for_each(|flaw| self.report_flaw(batch, flaw));
        // All first steps are read together, because a later pass reads no other step and would wait for each of them.
        let first_steps: Vec<i64> = batch.runs.iter().map(|run| batch.steps.get(run.start)).collect();
        let (mut rest, mut first_steps, mut shorts) = (batch.runs, first_steps.into_iter(), vec![]);
        while let [first, others @ ..] = rest {
            let near = |run: &&EpisodeRun| run.start + run.len <= first.start + AHEAD;
            let (group, later) = rest.split_at(1 + others.iter().take_while(near).count());
            let ordinary = self.are_ordinary(batch, group);
            for ((index, run), first_step) in group.iter().enumerate().zip(first_steps.by_ref()) {
                let last = batch.complete || !later.is_empty() || index + 1 < group.len();
                if ordinary && last && self.is_short(batch, run, first_step) {
                    shorts.push(self.begin_short(batch, run, first_step));
                } else {
                    self.push_run(batch, run, first_step, ordinary, last);
                }
            }
            self.engine.push_shorts(batch.columns, &shorts);
            shorts.clear();
            rest = later;
        }
        self.count();
    }

    /// Returns the bytes of the ids and of rows that wait for their beginning, including those that were not kept.
    pub fn taken(&self, join: &Join) -> u64 {
        let heads: u64 = join.heads.values().map(Head::bytes).sum();
        heads + self.partial.ids.bytes() + self.partial.untaken
    }

    /// Takes from the budget the memory that the rows so far have needed beside the sums over steps.
    /// Ids that do not fit go to a file.
    fn count(&mut self) {
        let (ids, others) = (self.partial.ids.bytes(), self.engine.sums.bytes_by_trajectory());
        if ids + others <= self.counted {
            return;
        }
        let budget = self.engine.budget.clone();
        let mut fits = budget.take(ids + others - self.counted);
        self.counted = ids + others;
        if let Some(place) = budget.place_for(ids)
            && self.partial.ids.spill(place).is_ok()
        {
            let freed = ids - self.partial.ids.bytes();
            budget.give_back(freed);
            self.counted -= freed;
            fits = budget.fits();
        }
        self.partial.too_large |= !fits;
    }

    /// Ends the unit. Its first and last trajectories, and those that cross files, wait in `join` for their neighbours.
    pub fn end_unit(&mut self, join: &mut Join) {
        match std::mem::replace(&mut self.current, Current::Nothing) {
            Current::Nothing => {}
            Current::Head(head) => self.heads.push(head),
            Current::Open(open) => self.tails.push(*open),
        }
        self.unit_is_new = true;
        for head in std::mem::take(&mut self.heads) {
            self.offer_head(join, head);
        }
        for tail in std::mem::take(&mut self.tails) {
            self.offer_tail(join, tail);
        }
    }

    /// Returns the sums and the problems, with the pieces that wait in `join`.
    pub fn into_partial(mut self, join: Join) -> Partial {
        self.partial.too_large = self.too_large();
        self.partial.sums = std::mem::take(&mut self.engine.sums);
        self.partial.heads = join.heads.into_values().collect();
        self.partial.tails = join.tails.into_values().collect();
        self.partial
    }

    /// Adds another part of the log.
    pub fn merge(&mut self, join: &mut Join, other: Partial) {
        self.engine.merge(other.sums);
        self.partial.untaken += other.untaken;
        self.partial.ids.merge(other.ids);
        self.partial.wild |= other.wild;
        self.partial.content.merge(&other.content);
        self.partial.too_large |= other.too_large;
        self.partial.problems.merge(self.engine.plan.problem_limit, other.problems);
        self.partial.pieces.merge(self.engine.plan.problem_limit, other.pieces);
        for (ours, theirs) in self.partial.first_steps.iter_mut().zip(other.first_steps) {
            *ours = [ours.take(), theirs].into_iter().flatten().min();
        }
        for (length, cut) in other.truncated {
            note_cut(&mut self.partial, length, cut);
        }
        other.heads.into_iter().for_each(|head| self.offer_head(join, head));
        other.tails.into_iter().for_each(|tail| self.offer_tail(join, tail));
    }

    /// Returns true if all values of some runs are allowed and of ordinary magnitude, or an earlier pass found them so.
    fn are_ordinary(&self, batch: &Batch, runs: &[EpisodeRun]) -> bool {
        let (first, last) = (&runs[0], &runs[runs.len() - 1]);
        let (slots, columns) = (&self.engine.plan.slots[..], batch.columns);
        // What follows the last of them pads its last block.
        let end = last.start + last.len;
        let rows = first.start..columns.first().map_or(end, |column| column.len().min(end + LANES - 1));
        self.knows_log() && self.tame || self.arch.dispatch(Ordinary { slots, columns, rows })
    }

    /// Checks the values of a run, and returns true if they are of ordinary magnitude.
    fn inspect(&mut self, batch: &Batch, run: &EpisodeRun) -> bool {
        let rows = run.start..run.start + run.len;
        let (slots, columns) = (&self.engine.plan.slots[..], batch.columns);
        let finding = inspect(slots, columns, rows);
        if !finding.ok {
            self.report_values(batch, run);
        }
        finding.tame
    }

    fn push_run(&mut self, batch: &Batch, run: &EpisodeRun, first: i64, ordinary: bool, last: bool) {
        let place = Place { row: batch.place.row + run.start as u64, ..batch.place };
        let rows = run.start..run.start + run.len;
        let expected = match &self.current {
            Current::Head(head) if head.id == run.id => Some(head.next_step()),
            Current::Open(open) if open.id == run.id => Some(open.next_step()),
            _ => None,
        };
        if let Some(expected) = expected {
            self.check_step(place, &run.id, expected - 1, first);
        } else {
            self.finish_current();
            self.begin(run.id.clone(), place, first);
        }
        self.unit_is_new = false;
        // The first pass has checked the steps and the endings, so a later one need not.
        let seen = self.knows_log();
        if !seen && !batch.steps.are_consecutive(rows.clone()) {
            for row in rows.start + 1..rows.end {
                let place = Place { row: batch.place.row + row as u64, ..place };
                self.check_step(place, &run.id, batch.steps.get(row - 1), batch.steps.get(row));
            }
        }
        if !seen {
            self.check_ending(batch, run, place, first);
        }
        let tame = ordinary || self.inspect(batch, run);
        self.partial.wild |= !tame;
        self.extend(batch, run, place, tame, last && !self.crosses(&run.id), ordinary);
    }

    fn extend(&mut self, batch: &Batch, run: &EpisodeRun, place: Place, tame: bool, last: bool, ordinary: bool) {
        if let Current::Open(open) = &self.current {
            self.check_length(open.steps, run.len as u64, open.next_step(), &run.id, place);
        }
        let (broken, rows) = (self.broken(), run.start..run.start + run.len);
        let last_step = || batch.steps.get(run.start + run.len - 1);
        let end = place.after(run.len as u64 - 1);
        match &mut self.current {
            Current::Nothing => {}
            Current::Head(head) => {
                let bytes = (rows.len() * size_of::<f64>() * head.rows.len()) as u64;
                if self.engine.too_large || self.partial.too_large {
                    self.partial.untaken += bytes;
                } else if !broken && self.engine.budget.take(bytes) {
                    for (rows_of_slot, column) in head.rows.iter_mut().zip(batch.columns) {
                        rows_of_slot.extend_from_slice(&column[rows.clone()]);
                    }
                    head.tame &= tame;
                } else if !broken {
                    self.partial.too_large = true;
                }
                // After a problem the steps need not be consecutive, so the number of steps follows from the last one.
                head.steps = (last_step() + 1 - head.first_step).max(0).cast_unsigned();
                head.last = end;
            }
            Current::Open(open) => {
                open.last = end;
                if broken {
                    open.steps = (last_step() + 1 - open.first_step).max(0).cast_unsigned();
                } else {
                    self.engine.push(open, batch.columns, rows, tame, last, ordinary);
                }
            }
        }
    }

    fn begin(&mut self, id: Id, place: Place, first_step: i64) {
        // In the middle of a unit, a possible first step begins an episode. At the start of a unit only step 0 does so
        // for certain, or step 1 where another episode has begun with it.
        let certain = first_step == 0 || self.partial.first_steps[1].is_some();
        let begins = self.may_begin(first_step) && (certain || !self.unit_is_new);
        if !begins && (self.unit_is_new || self.crosses(&id)) {
            let (rows, steps) = (vec![vec![]; self.engine.plan.slots.len()], 0);
            let (complete, ending, tame) = (false, Ending::Unsaid, true);
            let head = Head { id, place, first_step, steps, complete, last: place, ending, tame, rows };
            self.current = Current::Head(head);
            return;
        }
        if begins {
            self.note_first_step(first_step, place, &id);
            self.note_id(&id, place);
        } else {
            self.partial.pieces.push(self.engine.plan.problem_limit, place, &id, first_step);
        }
        self.current = Current::Open(self.open(id, place, first_step));
    }

    /// Returns true if an episode may have this first step.
    fn may_begin(&self, first_step: i64) -> bool {
        steps::may_begin(first_step, self.engine.plan.first_step)
    }

    /// Returns true if an episode is known to cross files.
    fn crosses(&self, id: &Id) -> bool {
        !self.crossing.is_empty() && self.crossing.contains(id)
    }

    fn open(&mut self, id: Id, place: Place, first_step: i64) -> Box<Open> {
        match self.spare.take() {
            Some(mut open) => {
                open.restart(id, place, first_step);
                open
            }
            None => Box::new(Open::new(id, place, first_step, &self.engine.work, self.engine.plan.slots.len())),
        }
    }

    /// Keeps the id of an episode, unless an earlier pass has found that every id occurs once.
    fn note_id(&mut self, id: &Id, place: Place) {
        if self.knows_log() {
            return;
        }
        if self.too_large() {
            self.partial.untaken += self.partial.ids.skip(id, place);
        } else {
            self.partial.ids.push(id, place);
        }
    }

    fn note_first_step(&mut self, first_step: i64, place: Place, id: &Id) {
        let slot = &mut self.partial.first_steps[first_step as usize];
        if slot.as_ref().is_none_or(|(seen, _)| *seen > place) {
            *slot = Some((place, id.clone()));
        }
    }

    fn finish_current(&mut self) {
        match std::mem::replace(&mut self.current, Current::Nothing) {
            Current::Nothing => {}
            Current::Head(head) => self.heads.push(Head { complete: !self.crosses(&head.id), ..head }),
            Current::Open(open) if self.crosses(&open.id) => self.tails.push(*open),
            Current::Open(open) => self.close(open),
        }
    }

    fn close(&mut self, mut open: Box<Open>) {
        if !self.may_begin(open.first_step) {
            self.partial.pieces.rows += open.steps;
        }
        self.partial.content.add_episode(&open.id, open.steps);
        if open.ending.is_cut() {
            let cut = Cut { count: 1, place: open.last, id: open.id.clone(), ending: open.ending };
            note_cut(&mut self.partial, open.steps, cut);
        }
        if !self.broken() {
            self.engine.close(&mut open);
            self.spare = Some(open);
        } else {
            *self.engine.sums.lengths.entry(open.steps).or_default() += 1;
        }
    }
}

fn note_cut(partial: &mut Partial, length: u64, cut: Cut) {
    match partial.truncated.entry(length) {
        Entry::Vacant(entry) => {
            entry.insert(cut);
        }
        Entry::Occupied(mut entry) => {
            let count = entry.get().count + cut.count;
            if cut.place < entry.get().place {
                entry.insert(cut);
            }
            entry.get_mut().count = count;
        }
    }
}
