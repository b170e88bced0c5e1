//! Reads batches of rows in order, cuts them into trajectories, checks them and folds them.
//!
//! A log is read in units (a file, a row group, a stream) that may be read in any order and at the same time. Only the first
//! trajectory of a unit can have begun elsewhere: it is kept as rows, a [`Head`], until its beginning arrives. Only the last
//! can go on elsewhere: it stays [`Open`]. [`Join`] brings the two together by episode and step.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::accumulators::Accumulators;
use crate::engine::Engine;
use crate::episode::{Head, Open};
use crate::ids::{Id, Ids};
use crate::inspect::Inspect;
use crate::plan::Pass;
use crate::problem::{Kind, Place, Problem, Problems};
use crate::steps::Steps;

/// Consecutive rows of one episode.
#[derive(Clone, Debug)]
pub struct Run {
    /// First row in the batch.
    pub start: usize,
    /// Number of rows.
    pub len: usize,
    /// Its episode.
    pub id: Id,
}

/// A value that could not be converted; its row holds a neutral one.
#[derive(Clone, Debug)]
pub struct Flaw {
    /// Row in the batch.
    pub row: usize,
    /// Name of the column.
    pub column: String,
    /// What is wrong.
    pub kind: Kind,
    /// The value.
    pub value: String,
}

/// Rows of a unit, in order.
pub struct Batch<'a> {
    /// Where the first row stands.
    pub place: Place,
    /// The rows by episode, all of them.
    pub runs: &'a [Run],
    /// The steps as logged.
    pub steps: Steps<'a>,
    /// The plan's slots.
    pub columns: &'a [&'a [f64]],
    /// Whether the episode was cut off here.
    pub truncated: Option<&'a [bool]>,
    /// What could not be converted.
    pub flaws: &'a [Flaw],
}

/// What the parts of a log add up to; it also travels between processes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Partial {
    /// The sums.
    pub sums: Accumulators,
    /// Episodes whose beginning has been seen.
    pub ids: Ids,
    /// What is wrong.
    pub problems: Problems,
    /// Steps at which episodes start: the first one seen for 0, and for 1.
    pub first_steps: [Option<(Place, Id)>; 2],
    /// Cut-off episodes by length: how many, and one of them.
    pub truncated: std::collections::BTreeMap<u64, (u64, Id, Place)>,
    /// Some value is of extraordinary magnitude.
    pub wild: bool,
    /// Beginnings that have not been found.
    pub heads: Vec<Head>,
    /// Episodes that may go on elsewhere.
    pub tails: Vec<Open>,
}

/// Heads and tails that wait for each other.
#[derive(Debug, Default)]
pub struct Join {
    heads: HashMap<(Id, i64), Head>,
    tails: HashMap<(Id, i64), Open>,
}

enum Current {
    Nothing,
    Head(Head),
    Open(Open),
}

/// One reader of units.
pub struct Scan {
    engine: Engine,
    partial: Partial,
    current: Current,
    head: Option<Head>,
    unit_is_new: bool,
    spare: Option<Open>,
    tame: bool,
    arch: pulp::Arch,
}

impl Scan {
    /// A reader with its own sums; `tame` if an earlier pass saw only values of ordinary magnitude.
    pub fn new(engine: Engine, tame: bool) -> Self {
        let (current, partial) = (Current::Nothing, Partial::default());
        Self { engine, partial, current, head: None, unit_is_new: true, spare: None, tame, arch: pulp::Arch::new() }
    }

    fn broken(&self) -> bool {
        self.engine.plan.check_only || !self.partial.problems.is_empty()
    }

    /// Reads the next rows of the unit.
    pub fn push(&mut self, batch: &Batch) {
        for flaw in batch.flaws {
            self.report_flaw(batch, flaw);
        }
        for (index, run) in batch.runs.iter().enumerate() {
            self.push_run(batch, run, index + 1 < batch.runs.len());
        }
    }

    /// Ends the unit: its first and last trajectories wait in `join` for what comes before and after them.
    pub fn end_unit(&mut self, join: &mut Join) {
        let (mut head, mut tail) = (self.head.take(), None);
        match std::mem::replace(&mut self.current, Current::Nothing) {
            Current::Nothing => {}
            Current::Head(current) => head = Some(current),
            Current::Open(open) => tail = Some(open),
        }
        self.unit_is_new = true;
        if let Some(head) = head {
            self.offer_head(join, head);
        }
        if let Some(tail) = tail {
            self.offer_tail(join, tail);
        }
    }

    /// The sums and all that is wrong; what waits in `join` goes along.
    pub fn into_partial(mut self, join: Join) -> Partial {
        self.partial.sums = std::mem::take(&mut self.engine.sums);
        self.partial.heads = join.heads.into_values().collect();
        self.partial.tails = join.tails.into_values().collect();
        self.partial
    }

    /// Adds another part of the log.
    pub fn merge(&mut self, join: &mut Join, other: Partial) {
        self.engine.sums.merge(other.sums);
        self.partial.ids.merge(other.ids);
        self.partial.wild |= other.wild;
        self.partial.problems.merge(self.engine.plan.problem_limit, other.problems);
        for (ours, theirs) in self.partial.first_steps.iter_mut().zip(other.first_steps) {
            *ours = [ours.take(), theirs].into_iter().flatten().min();
        }
        for (length, (count, id, place)) in other.truncated {
            note_truncated(&mut self.partial, length, count, id, place);
        }
        other.heads.into_iter().for_each(|head| self.offer_head(join, head));
        other.tails.into_iter().for_each(|tail| self.offer_tail(join, tail));
    }

    /// Looks at the values of a run; true if they are of ordinary magnitude.
    fn inspect(&mut self, batch: &Batch, run: &Run) -> bool {
        let rows = run.start..run.start + run.len;
        let (slots, columns) = (&self.engine.plan.slots[..], batch.columns);
        let finding = self.arch.dispatch(Inspect { slots, columns, rows });
        if !finding.ok {
            self.report_values(batch, run);
        }
        finding.tame
    }

    fn push_run(&mut self, batch: &Batch, run: &Run, last: bool) {
        let place = Place { row: batch.place.row + run.start as u64, ..batch.place };
        let rows = run.start..run.start + run.len;
        let first = batch.steps.get(run.start);
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
        // What the first pass has seen need not be looked at again.
        let seen = self.engine.pass != Pass::First;
        if !seen && !batch.steps.are_consecutive(rows.clone()) {
            for row in rows.start + 1..rows.end {
                let place = Place { row: batch.place.row + row as u64, ..place };
                self.check_step(place, &run.id, batch.steps.get(row - 1), batch.steps.get(row));
            }
        }
        self.check_truncated(batch, run, place, first);
        let tame = seen && self.tame || self.inspect(batch, run);
        self.partial.wild |= !tame;
        self.extend(batch, run, place, tame, last);
    }

    fn extend(&mut self, batch: &Batch, run: &Run, place: Place, tame: bool, last: bool) {
        let (broken, rows) = (self.broken(), run.start..run.start + run.len);
        let last_step = batch.steps.get(rows.end - 1);
        match &mut self.current {
            Current::Nothing => {}
            Current::Head(head) => {
                if !broken {
                    for (rows_of_slot, column) in head.rows.iter_mut().zip(batch.columns) {
                        rows_of_slot.extend_from_slice(&column[rows.clone()]);
                    }
                    head.tame &= tame;
                }
                // After a problem the steps need not be consecutive: the last one tells what comes next.
                head.steps = (last_step + 1 - head.first_step).max(0).cast_unsigned();
            }
            Current::Open(open) => {
                if broken {
                    open.steps = (last_step + 1 - open.first_step).max(0).cast_unsigned();
                } else {
                    self.engine.push(open, batch.columns, rows, tame, last);
                }
                let (steps, first_step) = (open.steps, open.first_step);
                let horizon = self.engine.plan.horizon.filter(|&horizon| steps > horizon);
                if let Some(horizon) = horizon {
                    let step = Some(first_step + horizon.cast_signed());
                    self.problem(
                        Kind::TooLong,
                        Some(place),
                        Some(&run.id),
                        step,
                        Some(("step", last_step.to_string())),
                    );
                }
            }
        }
    }

    fn begin(&mut self, id: Id, place: Place, first_step: i64) {
        // In the middle of a unit an episode begins; at its start only step 0 says so for certain, and step 1 where
        // others have begun there.
        let begins = first_step == 0 || first_step == 1 && self.partial.first_steps[1].is_some();
        if self.unit_is_new && !begins {
            let (rows, steps) = (vec![vec![]; self.engine.plan.slots.len()], 0);
            let (complete, truncated, tame) = (false, false, true);
            let head = Head { id, place, first_step, steps, complete, truncated, tame, rows };
            self.current = Current::Head(head);
            return;
        }
        if let 0 | 1 = first_step {
            self.note_first_step(first_step, place, &id);
            self.partial.ids.push(&id, place);
        } else {
            let few = self.partial.problems.found < self.engine.plan.problem_limit as u64;
            let again = few && self.partial.ids.contains(&id);
            let kind = if again { Kind::Reappears } else { Kind::FirstStep };
            self.problem(kind, Some(place), Some(&id), Some(first_step), Some(("step", first_step.to_string())));
        }
        self.current = Current::Open(self.open(id, place, first_step));
    }

    fn open(&mut self, id: Id, place: Place, first_step: i64) -> Open {
        match self.spare.take() {
            Some(mut open) => {
                open.restart(id, place, first_step);
                open
            }
            None => Open::new(id, place, first_step, &self.engine.work, self.engine.plan.slots.len()),
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
            Current::Head(head) => self.head = Some(Head { complete: true, ..head }),
            Current::Open(open) => self.close(open),
        }
    }

    fn close(&mut self, mut open: Open) {
        if open.truncated {
            note_truncated(&mut self.partial, open.steps, 1, open.id.clone(), open.place);
        }
        if !self.broken() {
            self.engine.close(&mut open);
            self.spare = Some(open);
        } else {
            *self.engine.sums.lengths.entry(open.steps).or_default() += 1;
        }
    }

    fn offer_head(&mut self, join: &mut Join, head: Head) {
        let key = (head.id.clone(), head.first_step);
        if let Some(open) = join.tails.remove(&key) {
            self.connect(join, open, head);
        } else if let Some(other) = join.heads.insert(key, head) {
            self.duplicate(other.place, &other.id, other.first_step);
        }
    }

    fn offer_tail(&mut self, join: &mut Join, open: Open) {
        let key = (open.id.clone(), open.next_step());
        if let Some(head) = join.heads.remove(&key) {
            self.connect(join, open, head);
        } else if let Some(other) = join.tails.insert(key, open) {
            self.duplicate(other.place, &other.id, other.next_step() - 1);
        }
    }

    fn connect(&mut self, join: &mut Join, mut open: Open, head: Head) {
        if open.truncated {
            let step = Some(open.next_step() - 1);
            self.problem(Kind::Truncated, Some(head.place), Some(&open.id), step, None);
        }
        open.truncated = head.truncated;
        if self.broken() || head.rows.first().is_some_and(|rows| rows.len() as u64 != head.steps) {
            open.steps += head.steps;
        } else {
            let columns: Vec<&[f64]> = head.rows.iter().map(|rows| &rows[..]).collect();
            self.engine.push(&mut open, &columns, 0..head.steps as usize, head.tame, head.complete);
        }
        if head.complete {
            self.close(open);
        } else {
            self.offer_tail(join, open);
        }
    }

    /// After the last part of the log: closes what is open, and reports what found no beginning.
    pub fn finish(mut self, mut join: Join) -> Partial {
        if self.partial.first_steps[0].is_none() {
            let mut first: Vec<(Id, i64)> = join.heads.keys().filter(|key| key.1 == 1).cloned().collect();
            first.sort();
            for head in first.iter().filter_map(|key| join.heads.remove(key)).collect::<Vec<_>>() {
                self.note_first_step(1, head.place, &head.id);
                self.partial.ids.push(&head.id, head.place);
                let open = self.open(head.id.clone(), head.place, 1);
                self.connect(&mut join, open, head);
            }
        }
        let mut orphans: Vec<Head> = std::mem::take(&mut join.heads).into_values().collect();
        orphans.sort_by_key(|head| head.place);
        orphans.iter().for_each(|head| self.report_orphan(&join, head));
        let mut tails: Vec<Open> = std::mem::take(&mut join.tails).into_values().collect();
        tails.sort_by_key(|open| open.place);
        tails.into_iter().for_each(|open| self.close(open));
        self.report_whole();
        self.partial.problems.kept.sort();
        self.into_partial(join)
    }

    fn report_orphan(&mut self, join: &Join, head: &Head) {
        let before = join.tails.values().filter(|open| open.id == head.id).map(Open::next_step).max();
        let kind = match before {
            Some(next) if next > head.first_step => Kind::Duplicate,
            Some(_) => Kind::Gap,
            None if self.partial.ids.contains(&head.id) => Kind::Reappears,
            None => Kind::FirstStep,
        };
        let value = Some(("step", head.first_step.to_string()));
        self.problem(kind, Some(head.place), Some(&head.id), Some(head.first_step), value);
    }

    /// Problems that only the whole log shows.
    fn report_whole(&mut self) {
        if let [Some(_), Some((place, id))] = self.partial.first_steps.clone() {
            self.problem(Kind::FirstStep, Some(place), Some(&id), Some(1), Some(("step", "1".into())));
        }
        if let Some(place) = self.partial.ids.mixed() {
            self.problem(Kind::MixedIds, Some(place), None, None, None);
        }
        let first = i64::from(self.partial.first_steps[0].is_none());
        for (id, place) in self.partial.ids.repeated(self.engine.plan.problem_limit) {
            self.problem(Kind::Reappears, Some(place), Some(&id), Some(first), None);
        }
        let horizon = self.engine.plan.horizon.unwrap_or_else(|| self.engine.sums.longest());
        if !self.engine.plan.truncated_as_terminal {
            for (length, (_, id, place)) in
                self.partial.truncated.range(..horizon).map(|(l, t)| (*l, t.clone())).collect::<Vec<_>>()
            {
                let step = Some(first + length.cast_signed() - 1);
                self.problem(Kind::Truncated, Some(place), Some(&id), step, Some(("truncated", "true".into())));
            }
        }
    }

    fn check_step(&mut self, place: Place, id: &Id, previous: i64, step: i64) {
        let kind = match step - previous {
            1 => return,
            0 => Kind::Duplicate,
            difference if difference < 0 => Kind::Unsorted,
            _ => Kind::Gap,
        };
        self.problem(kind, Some(place), Some(id), Some(step), Some(("step", step.to_string())));
    }

    fn check_truncated(&mut self, batch: &Batch, run: &Run, place: Place, first: i64) {
        let marks = batch.truncated.map_or(&[][..], |marks| &marks[run.start..][..run.len]);
        let before = match &self.current {
            Current::Open(open) => open.truncated,
            Current::Head(head) => head.truncated,
            Current::Nothing => false,
        };
        let early = marks.iter().take(run.len.max(1) - 1).position(|&mark| mark);
        if before || early.is_some() {
            let step = first + early.map_or(-1, |index| index as i64);
            let value = Some(("truncated", "true".into()));
            self.problem(Kind::Truncated, Some(place), Some(&run.id), Some(step), value);
        }
        let mark = marks.last().copied().unwrap_or(false);
        match &mut self.current {
            Current::Open(open) => open.truncated = mark,
            Current::Head(head) => head.truncated = mark,
            Current::Nothing => {}
        }
    }

    fn duplicate(&mut self, place: Place, id: &Id, step: i64) {
        self.problem(Kind::Duplicate, Some(place), Some(id), Some(step), Some(("step", step.to_string())));
    }

    fn report_values(&mut self, batch: &Batch, run: &Run) {
        let slots: Vec<_> = self.engine.plan.slots.clone();
        for row in run.start..run.start + run.len {
            for (slot, column) in slots.iter().zip(batch.columns) {
                if let Some(kind) = slot.check.problem(column[row]) {
                    let place = Place { row: batch.place.row + row as u64, ..batch.place };
                    let value = Some((&*slot.name, column[row].to_string()));
                    self.problem(kind, Some(place), Some(&run.id), Some(batch.steps.get(row)), value);
                }
            }
        }
    }

    fn report_flaw(&mut self, batch: &Batch, flaw: &Flaw) {
        let run = batch.runs.iter().find(|run| (run.start..run.start + run.len).contains(&flaw.row));
        let place = Place { row: batch.place.row + flaw.row as u64, ..batch.place };
        let value = Some((&*flaw.column, flaw.value.clone()));
        self.problem(flaw.kind, Some(place), run.map(|run| &run.id), Some(batch.steps.get(flaw.row)), value);
    }

    fn problem(
        &mut self,
        kind: Kind,
        place: Option<Place>,
        id: Option<&Id>,
        step: Option<i64>,
        value: Option<(&str, String)>,
    ) {
        let (column, value) = value.map_or((None, None), |(column, value)| (Some(column.into()), Some(value)));
        let (episode, message) = (id.cloned(), kind.message().into());
        let problem = Problem { place, kind, episode, step, column, value, message };
        self.partial.problems.push(self.engine.plan.problem_limit, problem);
    }
}

fn note_truncated(partial: &mut Partial, length: u64, count: u64, id: Id, place: Place) {
    let entry = partial.truncated.entry(length).or_insert((0, id.clone(), place));
    entry.0 += count;
    if place < entry.2 {
        (entry.1, entry.2) = (id, place);
    }
}
