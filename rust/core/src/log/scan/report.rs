//! Finds the problems of rows, of episodes and of the whole log, and tells their places.

use std::io;

use super::{Batch, EpisodeRun, Flaw, Scan};
use crate::log::ending::Ending;
use crate::log::ids::Id;
use crate::log::problem::{EPISODES, Kind, Place, Problem};

impl Scan {
    /// Reports problems that only the whole log shows.
    pub(super) fn report_whole(&mut self) {
        if let [Some(_), Some((place, id))] = self.partial.first_steps.clone() {
            self.problem(Kind::FirstStep, Some(place), Some(&id), Some(1), Some(("step", "1".into())));
        }
        if let Some(place) = self.partial.ids.mixed() {
            self.problem(Kind::MixedIds, Some(place), None, None, None);
        }
        let first = self.partial.first_step();
        // Where some episodes begin at step 0 and others at step 1, nobody knows at which of them this one begins again.
        let begins = (!self.partial.first_steps.iter().all(Option::is_some)).then_some(first);
        let found = self.partial.ids.repeated(EPISODES.max(self.engine.plan.problem_limit));
        let (repeated, count) = self.readable(found);
        self.partial.problems.more(Kind::Reappears, count - repeated.len() as u64);
        for (id, place) in repeated {
            self.problem(Kind::Reappears, Some(place), id.as_ref(), begins, None);
        }
        let horizon = self.engine.plan.horizon.unwrap_or_else(|| self.engine.sums.longest());
        if !self.engine.plan.truncated_as_terminal {
            let early: Vec<_> = self.partial.truncated.range(..horizon).map(|(l, cut)| (*l, cut.clone())).collect();
            for (length, cut) in early {
                self.partial.problems.more(Kind::Truncated, cut.count - 1);
                let step = first + length.cast_signed() - 1;
                self.report_ending(Kind::Truncated, cut.ending, cut.place, &cut.id, step);
            }
        }
    }

    /// Returns what was found among the ids. If they cannot be read, returns nothing and keeps the reason, for which the
    /// log is refused.
    pub(super) fn readable<T: Default>(&mut self, found: io::Result<T>) -> T {
        found.unwrap_or_else(|error| {
            self.partial.lost_ids = Some(error.to_string());
            T::default()
        })
    }

    pub(super) fn check_step(&mut self, place: Place, id: &Id, previous: i64, step: i64) {
        let kind = match step - previous {
            1 => return,
            0 => Kind::Duplicate,
            difference if difference < 0 => Kind::Unsorted,
            _ => Kind::Gap,
        };
        self.problem(kind, Some(place), Some(id), Some(step), Some(("step", step.to_string())));
    }

    /// Keeps the ending that the last row of a run reports, and reports any earlier row of the episode that is marked
    /// as its last.
    pub(super) fn check_ending(&mut self, batch: &Batch, run: &EpisodeRun, place: Place, first: i64) {
        let marks = [batch.terminal, batch.truncated].map(|marks| marks.map(|marks| &marks[run.start..][..run.len]));
        let at = |index: usize| Ending::new(marks[0].map(|mark| mark[index]), marks[1].map(|mark| mark[index]));
        let last = run.len - 1;
        if let Some((ending, last)) = self.current.end() {
            let (ending, last) = (*ending, *last);
            self.check_end(ending, last, &run.id, first - 1);
        }
        if marks.iter().flatten().any(|marks| marks[..last].contains(&true)) {
            for index in 0..last {
                self.check_end(at(index), place.after(index as u64), &run.id, first + index as i64);
            }
        }
        if let Some((ending, _)) = self.current.end() {
            *ending = at(last);
        }
    }

    /// Reports a row that is marked as the last of its episode although the episode goes on.
    pub(super) fn check_end(&mut self, ending: Ending, place: Place, id: &Id, step: i64) {
        if ending.is_last() {
            let kind = if ending == Ending::Terminal { Kind::AfterTerminal } else { Kind::Truncated };
            self.report_ending(kind, ending, place, id, step);
        }
    }

    fn report_ending(&mut self, kind: Kind, ending: Ending, place: Place, id: &Id, step: i64) {
        let said = ending.said(&self.engine.plan);
        let value = said.as_ref().map(|(column, value)| (&**column, value.clone()));
        self.problem(kind, Some(place), Some(id), Some(step), value);
    }

    /// Reports an episode that exceeds the horizon: it has `steps` steps, and `more` follow from step `next` at
    /// `place`.
    pub(super) fn check_length(&mut self, steps: u64, more: u64, next: i64, id: &Id, place: Place) {
        let Some(horizon) = self.engine.longest() else { return };
        if steps <= horizon && horizon < steps + more {
            let (place, step) = (place.after(horizon - steps), next + (horizon - steps).cast_signed());
            self.problem(Kind::TooLong, Some(place), Some(id), Some(step), Some(("step", step.to_string())));
        }
    }

    pub(super) fn duplicate(&mut self, place: Place, id: &Id, step: i64) {
        self.problem(Kind::Duplicate, Some(place), Some(id), Some(step), Some(("step", step.to_string())));
    }

    pub(super) fn report_values(&mut self, batch: &Batch, run: &EpisodeRun) {
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

    pub(super) fn report_flaw(&mut self, batch: &Batch, flaw: &Flaw) {
        let run = batch.runs.iter().find(|run| (run.start..run.start + run.len).contains(&flaw.row));
        let place = Place { row: batch.place.row + flaw.row as u64, ..batch.place };
        let value = Some((&*flaw.column, flaw.value.clone()));
        self.problem(flaw.kind, Some(place), run.map(|run| &run.id), Some(batch.steps.get(flaw.row)), value);
    }

    pub(super) fn problem(
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
