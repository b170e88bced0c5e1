//! Runs of equal values in a column, which separate the episodes.

/// The number of ids that are compared together.
const STRIDE: usize = 32;

/// Calls `found` with the start and the length of each run of equal ids.
pub fn equal_runs<T: PartialEq>(ids: &[T], found: impl FnMut(usize, usize)) {
    pulp::Arch::new().dispatch(EqualRuns { ids, found });
}

/// Calls `found` for the runs of ids that are known to stand together, without reading most of the ids.
pub fn contiguous_runs<T: PartialEq>(ids: &[T], mut found: impl FnMut(usize, usize)) {
    let (mut start, mut length) = (0, 1);
    while start < ids.len() {
        length = gallop(&ids[start..], length);
        found(start, length);
        start += length;
    }
}

/// Returns how many ids at the start are equal. It first tries the length of the previous run, since many runs are
/// equally long.
fn gallop<T: PartialEq>(ids: &[T], guess: usize) -> usize {
    let same = |index: usize| ids.get(index).is_some_and(|id| *id == ids[0]);
    if same(guess - 1) && !same(guess) {
        return guess;
    }
    let mut end = 1;
    while same(end) {
        end *= 2;
    }
    end / 2 + ids[end / 2..end.min(ids.len())].partition_point(|id| *id == ids[0])
}

/// The search for runs, compiled for each instruction set; the processor's is chosen at run time.
struct EqualRuns<'a, T, F> {
    ids: &'a [T],
    found: F,
}

impl<T: PartialEq, F: FnMut(usize, usize)> pulp::WithSimd for EqualRuns<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(mut self, _simd: S) {
        let mut start = 0;
        while start < self.ids.len() {
            let length = run_length(&self.ids[start..]);
            (self.found)(start, length);
            start += length;
        }
    }
}

/// Returns how many ids at the start are equal.
#[inline(always)]
fn run_length<T: PartialEq>(ids: &[T]) -> usize {
    let (first, mut length) = (&ids[0], 1);
    while let Some(chunk) = ids.get(length..length + STRIDE) {
        let mut same = true;
        for id in chunk {
            same &= id == first;
        }
        if !same {
            break;
        }
        length += STRIDE;
    }
    while ids.get(length) == Some(first) {
        length += 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_maximal_and_cover_all(lengths in prop::collection::vec(1..100usize, 0..20)) {
            let ids: Vec<i64> = (0..).zip(&lengths).flat_map(|(id, &n)| vec![id % 3; n]).collect();
            let mut found = vec![];
            equal_runs(&ids, |start, length| found.push((start, length)));
            let distinct: Vec<i64> = (0..).zip(&lengths).flat_map(|(id, &n)| vec![id; n]).collect();
            let mut galloped = vec![];
            contiguous_runs(&distinct, |start, length| galloped.push((start, length)));
            prop_assert_eq!(&found, &galloped);
            let starts = lengths.iter().scan(0, |next, n| Some(std::mem::replace(next, *next + n)));
            prop_assert_eq!(found, starts.zip(lengths.iter().copied()).collect::<Vec<_>>());
        }
    }
}
