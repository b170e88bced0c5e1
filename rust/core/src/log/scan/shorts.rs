//! Short trajectories that lie in one batch as a whole and have no problem. The scan keeps no state of them, and the engine
//! folds many of them at once. All other trajectories are read run by run.

use super::{Batch, Current, EpisodeRun, Scan};
use crate::log::ending::Ending;
use crate::log::problem::Place;
use crate::number::block::LANES;
use crate::pass::engine::Short;

impl Scan {
    /// Returns true if a run, which is the last of its episode and of ordinary magnitude, is a whole short episode in order.
    pub(super) fn is_short(&self, batch: &Batch, run: &EpisodeRun, first: i64) -> bool {
        run.len <= LANES
            && self.engine.takes_shorts
            && !self.unit_is_new
            && self.crossing.is_empty()
            && self.may_begin(first)
            && !self.goes_on(run)
            && self.engine.longest().is_none_or(|longest| run.len as u64 <= longest)
            && (self.knows_log()
                || batch.steps.are_consecutive(run.start..run.start + run.len) && has_ended(batch, run))
            && !self.broken()
    }

    /// Notes the id, the first step and the length of a short trajectory, which the engine then folds.
    pub(super) fn begin_short<'a>(&mut self, batch: &Batch<'a>, run: &'a EpisodeRun, first: i64) -> Short<'a> {
        self.finish_current();
        let place = Place { row: batch.place.row + run.start as u64, ..batch.place };
        self.note_first_step(first, place, &run.id);
        self.note_id(&run.id, place);
        self.partial.content.add_episode(&run.id, run.len as u64);
        Short { rows: run.start..run.start + run.len, place, id: &run.id }
    }

    /// Returns true if the run belongs to the trajectory that is being read.
    fn goes_on(&self, run: &EpisodeRun) -> bool {
        match &self.current {
            Current::Nothing => false,
            Current::Head(head) => head.id == run.id,
            Current::Open(open) => open.id == run.id,
        }
    }
}

/// Returns true if no row but the last says that it is the last of its episode, and the episode was not cut off.
fn has_ended(batch: &Batch, run: &EpisodeRun) -> bool {
    let marks = [batch.terminal, batch.truncated].map(|marks| marks.map(|marks| &marks[run.start..][..run.len]));
    let [terminal, truncated] = marks.map(|marks| marks.map(|marks| marks[run.len - 1]));
    let goes_on = |marks: &&[bool]| !marks[..run.len - 1].contains(&true);
    marks.iter().flatten().all(goes_on) && !Ending::new(terminal, truncated).is_cut()
}
