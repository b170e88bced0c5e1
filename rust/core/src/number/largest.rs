//! The largest of many weights, in bounded memory and independent of their order.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::number::scaled::Scaled;

/// The number of largest weights that are certainly kept: three times the square root of thirty million.
pub const CAPACITY: usize = 1 << 14;

/// The [`CAPACITY`] largest of the positive weights seen, or more.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Largest {
    kept: Vec<Scaled>,
    /// Smaller weights than this are not kept.
    floor: Scaled,
}

impl Largest {
    /// Adds a weight.
    pub fn push(&mut self, weight: Scaled) {
        if weight.is_zero() || falling(&weight, &self.floor) == Ordering::Greater {
            return;
        }
        self.kept.push(weight);
        if self.kept.len() == 2 * CAPACITY {
            self.shrink();
        }
    }

    /// Adds the weights of another set.
    pub fn merge(&mut self, other: Self) {
        other.kept.into_iter().for_each(|weight| self.push(weight));
    }

    /// Returns the `count` largest weights in falling order, followed by zeros where fewer were positive.
    pub fn top(&self, count: usize) -> Vec<Scaled> {
        let mut kept = self.kept.clone();
        kept.sort_unstable_by(falling);
        kept.resize(count.min(CAPACITY), Scaled::ZERO);
        kept
    }

    fn shrink(&mut self) {
        let (_, floor, _) = self.kept.select_nth_unstable_by(CAPACITY - 1, falling);
        self.floor = *floor;
        self.kept.truncate(CAPACITY);
    }
}

/// Compares so that the largest weight comes first.
pub fn falling(a: &Scaled, b: &Scaled) -> Ordering {
    b.compare(*a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn many_are_kept_whatever_their_order() {
        let n = 5 * CAPACITY as u64;
        let weight = |i: u64| Scaled::new((i * 7919 % n) as f64, if i.is_multiple_of(3) { -3000 } else { 0 });
        let (mut there, mut back) = (Largest::default(), Largest::default());
        (0..n).for_each(|i| there.push(weight(i)));
        (0..n / 2).rev().for_each(|i| back.push(weight(i)));
        let mut rest = Largest::default();
        (n / 2..n).for_each(|i| rest.push(weight(i)));
        back.merge(rest);
        let mut all: Vec<Scaled> = (0..n).map(weight).collect();
        all.sort_by(falling);
        assert_eq!(there.top(CAPACITY), all[..CAPACITY]);
        assert_eq!(back.top(CAPACITY), all[..CAPACITY]);
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_numbers(a in -1e300..1e300f64, b in -1e-300..1e-300f64, c in -9.0..9.0f64) {
            for (x, y) in [(a, b), (b, a), (a, a), (0.0, b), (c, a), (c, 0.0), (c, c / 2.0), (-c, c)] {
                let expected = (y + 0.0).total_cmp(&(x + 0.0));
                prop_assert_eq!(falling(&x.into(), &y.into()), expected);
            }
        }

        #[test]
        fn few_are_filled_up_with_zeros(xs in prop::collection::vec(0..9u8, 0..20)) {
            let mut largest = Largest::default();
            xs.iter().for_each(|&x| largest.push(f64::from(x).into()));
            let mut expected: Vec<f64> = xs.iter().map(|&x| f64::from(x)).collect();
            expected.sort_by(|a, b| b.total_cmp(a));
            expected.resize(7, 0.0);
            prop_assert_eq!(largest.top(7).iter().map(|x| x.lossy_f64()).collect::<Vec<_>>(), expected);
        }
    }
}
