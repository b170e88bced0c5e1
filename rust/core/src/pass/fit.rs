//! Checks that the parts of a state from another process are consistent with each other and with the plan. A state that
//! passes can be merged and finished without an index out of range, an endless loop or a table beyond the memory.

use crate::log::episode::{Head, Open};
use crate::log::problem::Place;
use crate::log::scan::Partial;
use crate::number::block::LANES;
use crate::pass::accumulators::{Accumulators, PolicySums};
use crate::pass::plan::{Pass, Plan, Work};
use crate::pass::stamp::Extent;

/// Returns an error that names the part of a state that is not consistent. The extents are the rows that it was made
/// of.
pub fn check(plan: &Plan, pass: Pass, extents: &[Extent], partial: &Partial) -> Result<(), &'static str> {
    let work: Vec<Vec<Work>> = plan.policies.iter().map(|policy| plan.work(policy, pass)).collect();
    let (slots, whole) = (plan.slots.len(), partial.problems.is_empty() && partial.pieces.is_empty());
    let clean = whole && !partial.too_large;
    let rows = extents.iter().fold(0u64, |rows, extent| rows.saturating_add(extent.rows));
    let content = &partial.content;
    expect(content.rows == rows && [0, slots].contains(&content.columns.len()), "the rows")?;
    expect(shape(plan, pass, &work, &partial.sums, clean), "the sums")?;
    expect(partial.ids.is_consistent(), "the episode ids")?;
    expect(partial.heads.iter().all(|head| fits_head(head, slots, clean)), "the first rows")?;
    expect(partial.tails.iter().all(|open| fits_open(open, &work, slots, clean)), "the last episodes")?;
    expect(!clean || steps(partial) == Some(rows), "the lengths of the episodes")?;
    let cuts = partial.truncated.values().try_fold(0u64, |sum, cut| sum.checked_add(cut.count));
    expect(partial.truncated.values().all(|cut| cut.count > 0), "the episodes cut off")?;
    expect(cuts.is_some_and(|cuts| cuts <= partial.sums.episodes()), "the episodes cut off")?;
    expect(partial.problems.is_consistent(plan.problem_limit), "the problems")?;
    expect(partial.pieces.is_consistent(plan.problem_limit), "the pieces of episodes")?;
    expect(places(partial).all(|place| extents.iter().any(|extent| extent.source == place.source)), "the places")
}

fn expect(fits: bool, what: &'static str) -> Result<(), &'static str> {
    if fits { Ok(()) } else { Err(what) }
}

/// Returns true if there are as many policies, estimators and values as a pass of the plan has, and no unknown lengths.
fn shape(plan: &Plan, pass: Pass, work: &[Vec<Work>], sums: &Accumulators, clean: bool) -> bool {
    let first = pass == Pass::First && !plan.check_only;
    let lengths = &sums.lengths;
    let Some(episodes) = lengths.values().try_fold(0u64, |sum, &count| sum.checked_add(count)) else { return false };
    let each = |(index, (own, work)): (usize, (&PolicySums, &Vec<Work>))| {
        let paired = if plan.paired && index > 0 { work.len() } else { 0 };
        let values = if pass.keeps_values() { (work.len() as u64).saturating_mul(episodes) } else { 0 };
        own.moments.len() == work.len()
            && own.paired.len() == paired
            && (!clean || own.values.len() as u64 == values)
            && own.ended.keys().all(|length| first && lengths.contains_key(length))
    };
    sums.policies.len() == work.len() && sums.policies.iter().zip(work).enumerate().all(each)
}

/// Returns true if a head has one row per step in every slot. After a problem the rows need not be complete.
fn fits_head(head: &Head, slots: usize, clean: bool) -> bool {
    let rows = head.rows.first().map_or(0, Vec::len);
    head.rows.len() == slots
        && head.rows.iter().all(|column| column.len() == rows && column.iter().all(|x| x.is_finite()))
        && (!clean || rows as u64 == head.steps)
}

/// Returns true if an open trajectory has the running sums of each item of work, and fewer buffered rows than a block.
fn fits_open(open: &Open, work: &[Vec<Work>], slots: usize, clean: bool) -> bool {
    let lanes = |work: &Vec<Work>| work.iter().map(Work::lanes).sum::<usize>();
    let states = open.policies.iter().map(|state| state.lanes.len());
    let numbers = open.policies.iter().flat_map(|state| [state.first_v_hat, state.previous_ratio]);
    let whole = open.steps.checked_sub(open.buffered as u64);
    states.eq(work.iter().map(lanes))
        && numbers.chain(open.rows.iter().flatten().copied()).all(f64::is_finite)
        && open.rows.len() == slots
        && open.buffered < LANES
        && (!clean || whole.is_some_and(|steps| steps.is_multiple_of(LANES as u64)))
}

/// Returns the number of rows of all episodes, or None if u64 cannot hold it.
fn steps(partial: &Partial) -> Option<u64> {
    let closed = partial.sums.lengths.iter().map(|(length, count)| length.checked_mul(*count));
    let pieces = partial.heads.iter().map(|head| head.steps).chain(partial.tails.iter().map(|open| open.steps));
    closed.chain(pieces.map(Some)).try_fold(0u64, |sum, steps| sum.checked_add(steps?))
}

fn places(partial: &Partial) -> impl Iterator<Item = Place> {
    let heads = partial.heads.iter().flat_map(|head| [head.place, head.last]);
    let tails = partial.tails.iter().flat_map(|open| [open.place, open.last]);
    let values = partial.sums.policies.iter().flat_map(|sums| sums.values.iter().map(|value| value.place));
    let first = partial.first_steps.iter().flatten().map(|(place, _)| *place);
    let problems = partial.problems.places().chain(partial.pieces.places());
    let cuts = partial.truncated.values().map(|cut| cut.place);
    heads.chain(tails).chain(values).chain(first).chain(problems).chain(cuts).chain(partial.ids.places())
}
