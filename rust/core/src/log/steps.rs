//! The step column, 32 or 64 bits wide, and the rule for the first step.
//!
//! The steps of a log count from 0 if any of its rows has step 0, and from 1 otherwise. All its episodes count alike.
//! `offpolicy.logs.steps` is the same rule for Python.

use std::ops::Range;

/// Returns the first step of every episode of a log, given whether one begins with 0.
pub fn first_step(has_zero: bool) -> i64 {
    if has_zero { 0 } else { 1 }
}

/// Returns true if an episode may begin with this step. `known` is the first step of the log where an earlier reading
/// found it.
pub fn may_begin(step: i64, known: Option<i64>) -> bool {
    step == 0 || step == 1 && known != Some(0)
}

/// Steps as logged.
#[derive(Clone, Copy, Debug)]
pub enum Steps<'a> {
    /// 32 bits.
    Int32(&'a [i32]),
    /// 64 bits.
    Int64(&'a [i64]),
}

impl Steps<'_> {
    /// Returns the step of a row.
    pub fn get(self, row: usize) -> i64 {
        match self {
            Self::Int32(steps) => steps[row].into(),
            Self::Int64(steps) => steps[row],
        }
    }

    /// Returns true if each step of the rows is one more than the step before.
    #[inline]
    pub fn are_consecutive(self, rows: Range<usize>) -> bool {
        if rows.len() < 2 {
            return true;
        }
        let arch = pulp::Arch::new();
        match self {
            Self::Int32(steps) => arch.dispatch(Consecutive(&steps[rows])),
            Self::Int64(steps) => arch.dispatch(Consecutive(&steps[rows])),
        }
    }
}

/// The comparison of steps, compiled for each instruction set; the processor's is chosen at run time.
struct Consecutive<'a, T>(&'a [T]);

macro_rules! consecutive {
    ($type:ty) => {
        impl pulp::WithSimd for Consecutive<'_, $type> {
            type Output = bool;
            #[inline(always)]
            fn with_simd<S: pulp::Simd>(self, _simd: S) -> bool {
                let Some((&first, rest)) = self.0.split_first() else { return true };
                let (mut ok, mut expected) = (true, first);
                for &step in rest {
                    expected = expected.wrapping_add(1);
                    ok &= step == expected;
                }
                ok && expected >= first
            }
        }
    };
}
consecutive!(i32);
consecutive!(i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_step_is_seen_wherever_it_is() {
        let steps: Vec<i64> = (3..103).collect();
        let narrow: Vec<i32> = (3..103).collect();
        assert!(Steps::Int64(&steps).are_consecutive(0..100) && Steps::Int32(&narrow).are_consecutive(5..9));
        for wrong in 1..100 {
            let (mut steps, mut narrow) = (steps.clone(), narrow.clone());
            steps[wrong] += 1;
            narrow[wrong] -= 1;
            assert!(!Steps::Int64(&steps).are_consecutive(0..100));
            assert!(!Steps::Int32(&narrow).are_consecutive(0..100));
        }
        assert!(!Steps::Int32(&[i32::MAX, i32::MIN]).are_consecutive(0..2));
    }
}
