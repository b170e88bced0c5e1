//! Joins the pieces of a trajectory: the tail that one unit left open, and the head that another unit begins with.

use std::collections::HashMap;

use super::{Partial, Scan};
use crate::log::episode::{Head, Open};
use crate::log::ids::{Id, Ids};
use crate::log::problem::Kind;

/// Heads and tails that wait for each other, by episode and by the step at which they meet.
#[derive(Debug, Default)]
pub struct Join {
    pub(super) heads: HashMap<(Id, i64), Head>,
    pub(super) tails: HashMap<(Id, i64), Open>,
}

impl Scan {
    pub(super) fn offer_head(&mut self, join: &mut Join, head: Head) {
        let key = (head.id.clone(), head.first_step);
        if let Some(open) = join.tails.remove(&key) {
            self.connect(join, open, head);
        } else if let Some(other) = join.heads.insert(key, head) {
            self.duplicate(other.place, &other.id, other.first_step);
        }
    }

    pub(super) fn offer_tail(&mut self, join: &mut Join, open: Open) {
        let key = (open.id.clone(), open.next_step());
        if let Some(head) = join.heads.remove(&key) {
            self.connect(join, open, head);
        } else if let Some(other) = join.tails.insert(key, open) {
            self.duplicate(other.place, &other.id, other.next_step() - 1);
        }
    }

    pub(super) fn connect(&mut self, join: &mut Join, mut open: Open, head: Head) {
        self.check_end(open.ending, open.last, &open.id, open.next_step() - 1);
        self.check_length(open.steps, head.steps, open.next_step(), &open.id, head.place);
        if open.steps > 0 && open.last.source == head.place.source && open.last.after(1) != head.place {
            let value = Some(("step", head.first_step.to_string()));
            self.problem(Kind::Reappears, Some(head.place), Some(&head.id), Some(head.first_step), value);
        }
        (open.ending, open.last) = (head.ending, head.last);
        self.engine.budget.give_back(head.bytes());
        if self.broken() || head.rows.first().is_some_and(|rows| rows.len() as u64 != head.steps) {
            open.steps += head.steps;
        } else {
            let columns: Vec<&[f64]> = head.rows.iter().map(|rows| &rows[..]).collect();
            self.engine.push(&mut open, &columns, 0..head.steps as usize, head.tame, head.complete, false);
        }
        if head.complete {
            self.close(Box::new(open));
        } else {
            self.offer_tail(join, open);
        }
    }

    /// Closes the open trajectories after the last part of the log, and reports heads whose beginning was not found.
    pub fn finish(mut self, mut join: Join) -> Partial {
        if self.partial.first_step() == 1 {
            let mut first: Vec<(Id, i64)> = join.heads.keys().filter(|key| key.1 == 1).cloned().collect();
            first.sort();
            for head in first.iter().filter_map(|key| join.heads.remove(key)).collect::<Vec<_>>() {
                self.note_first_step(1, head.place, &head.id);
                self.note_id(&head.id, head.place);
                let open = self.open(head.id.clone(), head.place, 1);
                self.connect(&mut join, *open, head);
            }
        }
        self.report_orphans(&mut join);
        let mut tails: Vec<Open> = std::mem::take(&mut join.tails).into_values().collect();
        tails.sort_by_key(|open| open.place);
        tails.into_iter().for_each(|open| self.close(Box::new(open)));
        self.report_pieces();
        self.report_whole();
        self.partial.problems.kept.sort();
        self.partial.ids = Ids::default();
        self.into_partial(join)
    }

    /// Reports heads whose beginning was not found. Such a head is a problem where its neighbours were looked for, and
    /// otherwise one more piece.
    fn report_orphans(&mut self, join: &mut Join) {
        let mut orphans: Vec<Head> = std::mem::take(&mut join.heads).into_values().collect();
        orphans.sort_by_key(|head| head.place);
        let mut before: HashMap<&Id, i64> = HashMap::new();
        for open in join.tails.values() {
            let next = before.entry(&open.id).or_insert(i64::MIN);
            *next = open.next_step().max(*next);
        }
        for head in orphans {
            let value = Some(("step", head.first_step.to_string()));
            let kind = match before.get(&head.id) {
                Some(&next) if next > head.first_step => Kind::Duplicate,
                Some(_) => Kind::Gap,
                None if self.crosses(&head.id) => Kind::FirstStep,
                None => {
                    self.partial.pieces.push(self.engine.plan.problem_limit, head.place, &head.id, head.first_step);
                    self.partial.pieces.rows += head.steps;
                    continue;
                }
            };
            self.problem(kind, Some(head.place), Some(&head.id), Some(head.first_step), value);
        }
    }
}
