//! Mean, standard error and skewness of per-trajectory values from exact, mergeable sums, and the share of the variance
//! that one value has.

use serde::{Deserialize, Serialize};

use crate::number::scaled::Scaled;
use crate::number::sum::{Exact, HALF, Sum};

/// Σx and Σx², both exact, the smallest and the largest x, and on request Σx³.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Moments {
    sum: Sum,
    squares: Sum,
    cubes: Option<Box<Sum>>,
    extremes: Option<(Scaled, Scaled)>,
    #[serde(skip)]
    between: Between,
}

/// The least and the largest x as f64. A number between them is no new extreme.
#[derive(Clone, Copy, Debug)]
struct Between(f64, f64);

impl Default for Between {
    fn default() -> Self {
        Self(f64::INFINITY, f64::NEG_INFINITY)
    }
}

impl Between {
    #[inline(always)]
    fn contains(self, x: f64) -> bool {
        self.0.total_cmp(&x).is_le() && x.total_cmp(&self.1).is_le()
    }
}

impl Moments {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, x: Scaled) {
        let (integer, exponent) = x.to_integer();
        self.sum.add_integer(integer.into(), exponent);
        self.squares.add_wide(i128::from(integer) * i128::from(integer), 2 * exponent);
        if !x.ordinary().is_some_and(|x| self.between.contains(x)) {
            self.stretch(x, x);
        }
    }

    /// Adds a value `count` times.
    pub fn add_times(&mut self, x: Scaled, count: u32) {
        if count > 0 {
            let ((integer, exponent), count) = (x.to_integer(), i128::from(count));
            let (square, low) = (i128::from(integer) * i128::from(integer), (1 << HALF) - 1);
            self.sum.add_integer(i128::from(integer) * count, exponent);
            self.squares.add_integer((square & low) * count, 2 * exponent);
            self.squares.add_integer((square >> HALF) * count, 2 * exponent + HALF);
            self.stretch(x, x);
        }
    }

    /// Adds x³, from which the skewness is computed.
    pub fn add_cube(&mut self, x: Scaled) {
        self.cubes.get_or_insert_default().add_cube(x);
    }

    /// Adds the sums of another set.
    pub fn merge(&mut self, other: &Self) {
        self.sum.merge(&other.sum);
        self.squares.merge(&other.squares);
        if let Some(cubes) = &other.cubes {
            self.cubes.get_or_insert_default().merge(cubes);
        }
        if let Some((low, high)) = other.extremes {
            self.stretch(low, high);
        }
    }

    #[cold]
    fn stretch(&mut self, low: Scaled, high: Scaled) {
        let (least, largest) = self.extremes.unwrap_or((low, high));
        let least = if low.compare(least).is_lt() { low } else { least };
        let largest = if high.compare(largest).is_gt() { high } else { largest };
        self.extremes = Some((least, largest));
        self.between = Between(least.lossy_f64(), largest.lossy_f64());
    }

    /// Returns the smallest and the largest x, or None where no value was added.
    pub fn extremes(&self) -> Option<(f64, f64)> {
        self.extremes.map(|(least, largest)| (least.lossy_f64(), largest.lossy_f64()))
    }

    /// Returns the largest x, or 0 if there is none.
    pub fn largest(&self) -> Scaled {
        self.extremes.map_or(Scaled::ZERO, |(_, largest)| largest)
    }

    /// Returns max (x − x̄)² / Σ (x − x̄)², the share of one trajectory in the variance of n, or 0 where there is no
    /// variance.
    pub fn concentration(&self, n: u64) -> f64 {
        if n < 2 {
            return 0.0;
        }
        let spread = self.std_error(n) * self.std_error(n) * Scaled::from(n as f64) * Scaled::from((n - 1) as f64);
        self.share(self.mean(n), spread)
    }

    /// Returns max x² / Σ x² of influence values, whose mean is 0.
    pub fn influence_concentration(&self) -> f64 {
        self.share(Scaled::ZERO, self.squares.value())
    }

    /// Returns the skewness
    /// γ = (Σ (x − x̄)³ / n) / (Σ (x − x̄)² / n)^{3/2} = (n² Σx³ − 3n Σx Σx² + 2(Σx)³) / (n Σx² − (Σx)²)^{3/2}.
    /// It is 0 where there is no variance, and None where no cubes were added.
    pub fn skewness(&self, n: u64) -> Option<f64> {
        let (sum, squares, cubes) = (self.sum.exact(), self.squares.exact(), self.cubes.as_ref()?.exact());
        let [one_n, two, three] = [n, 2, 3].map(Exact::integer);
        let spread = squares.times(&one_n).minus(&sum.times(&sum)).round();
        if spread.is_zero() {
            return Some(0.0);
        }
        // Σx (3n Σx² − 2(Σx)²)
        let lower = sum.times(&three.times(&one_n).times(&squares).minus(&two.times(&sum).times(&sum)));
        let third = cubes.times(&one_n).times(&one_n).minus(&lower).round();
        Some((third / (spread * spread.sqrt())).lossy_f64())
    }

    fn share(&self, mean: Scaled, spread: Scaled) -> f64 {
        let Some((least, largest)) = self.extremes.filter(|_| !spread.is_zero()) else { return 0.0 };
        let square = |x: Scaled| ((x - mean) * (x - mean) / spread).lossy_f64();
        square(least).max(square(largest)).min(1.0)
    }

    /// Returns Σx / n.
    pub fn mean(&self, n: u64) -> Scaled {
        self.sum.exact().divide(&Exact::integer(n))
    }

    /// Returns s / √n with the unbiased s²: SE² = (n Σx² − (Σx)²) / (n² (n−1)), with the difference formed exactly. n
    /// must be above 1.
    pub fn std_error(&self, n: u64) -> Scaled {
        let (sum, n) = (self.sum.exact(), Exact::integer(n));
        let spread = self.squares.exact().times(&n).minus(&sum.times(&sum));
        spread.divide(&n.times(&n).times(&n.minus(&Exact::integer(1)))).sqrt()
    }

    /// Returns √(Σx² / (n (n−1))), the standard error of an estimate whose influence values are x. n must be above 1.
    pub fn influence_error(&self, n: u64) -> Scaled {
        let n = Exact::integer(n);
        self.squares.exact().divide(&n.times(&n.minus(&Exact::integer(1)))).sqrt()
    }

    /// Returns (Σx)² / Σx², the effective sample size of weights x, or 0 if all are zero.
    pub fn effective_size(&self) -> f64 {
        let (sum, squares) = (self.sum.exact(), self.squares.exact());
        if squares.round().is_zero() { 0.0 } else { sum.times(&sum).divide(&squares).lossy_f64() }
    }

    /// Returns Σx.
    pub fn total(&self) -> &Sum {
        &self.sum
    }

    /// Returns Σx².
    pub fn squares(&self) -> &Sum {
        &self.squares
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moments(values: &[f64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|&x| moments.add(x.into()));
        moments
    }

    #[test]
    fn a_tiny_spread_on_a_huge_mean() {
        let (big, ulp) = (1e15, 0.125);
        let m = moments(&[big, big + ulp, big + 2.0 * ulp]);
        assert_eq!(m.mean(3).to_f64(), Some(big + ulp));
        assert!((m.std_error(3).to_f64().unwrap() * 3f64.sqrt() / ulp - 1.0).abs() < 1e-15);
        assert!(moments(&[0.1; 7]).std_error(7).is_zero());
    }

    #[test]
    fn many_equal_values_are_one_value_many_times() {
        for x in [1.0, -0.1, 3e-200, 0.0] {
            let (mut times, alone) = (Moments::default(), moments(&[x; 77]));
            times.add_times(x.into(), 77);
            times.add_times(5.0.into(), 0);
            assert_eq!((times.mean(77), times.extremes()), (alone.mean(77), alone.extremes()));
            assert_eq!(times.squares().value(), alone.squares().value());
        }
    }

    #[test]
    fn extremes_keep_the_sign_of_zero_and_what_f64_does_not_hold() {
        let extremes = |values: &[Scaled]| {
            let mut moments = Moments::default();
            values.iter().for_each(|&x| moments.add(x));
            moments.extremes.unwrap()
        };
        let (zero, tiny, huge) = (Scaled::ZERO, Scaled::new(1.0, -3000), Scaled::new(1.0, 3000));
        assert!(extremes(&[zero, -zero]).0.mantissa().is_sign_negative());
        assert_eq!(extremes(&[tiny, tiny * tiny, Scaled::ONE]), (tiny * tiny, Scaled::ONE));
        assert_eq!(extremes(&[huge, Scaled::ONE, huge * huge, zero]), (zero, huge * huge));
    }

    #[test]
    fn one_of_many_carries_the_variance() {
        let m = moments(&[0.0, 0.0, 0.0, -8.0]);
        assert_eq!(m.concentration(4), 0.75); // (−8 + 2)² of 36 + 3·4
        assert_eq!(m.influence_concentration(), 1.0);
        assert_eq!(moments(&[1.0, -1.0, 3.0, -3.0]).influence_concentration(), 0.45);
        let mut merged = moments(&[0.0, -8.0]);
        merged.merge(&moments(&[0.0, 0.0]));
        assert_eq!((merged.concentration(4), merged.largest()), (0.75, Scaled::ZERO));
        assert_eq!((merged.extremes(), moments(&[]).extremes()), (Some((-8.0, 0.0)), None));
        assert_eq!((moments(&[2.0; 3]).concentration(3), moments(&[2.0]).concentration(1)), (0.0, 0.0));
    }

    #[test]
    fn skewness_is_that_of_the_values_wherever_they_lie() {
        let skewness = |values: &[f64]| {
            let mut both = [Moments::default(), Moments::default()];
            for (i, &x) in values.iter().enumerate() {
                both[i % 2].add(x.into());
                both[i % 2].add_cube(x.into());
            }
            let [mut left, right] = both;
            left.merge(&right);
            left.skewness(values.len() as u64).unwrap()
        };
        // Deviations −1, −1, −1, 3: 24/4 over (12/4)^{3/2}.
        let expected = 6.0 / 27f64.sqrt();
        assert!((skewness(&[0.0, 0.0, 0.0, 4.0]) - expected).abs() < 1e-15);
        assert!((skewness(&[1e12, 1e12, 1e12, 1e12 + 4.0]) - expected).abs() < 1e-15);
        assert!((skewness(&[0.0, 0.0, 0.0, -4.0]) + expected).abs() < 1e-15);
        assert_eq!((skewness(&[-2.0, 0.0, 2.0]), skewness(&[3.0; 4])), (0.0, 0.0));
        assert_eq!(moments(&[1.0, 2.0]).skewness(2), None);
    }

    #[test]
    fn effective_size_of_equal_and_of_single_weights() {
        assert_eq!(moments(&[0.3; 5]).effective_size(), 5.0);
        assert_eq!(moments(&[1e-200, 0.0, 0.0]).effective_size(), 1.0);
        assert_eq!(moments(&[0.0]).effective_size(), 0.0);
    }

    proptest! {
        #[test]
        fn whole_numbers_have_the_moments_of_whole_numbers(
            xs in prop::collection::vec(-1000..1000i64, 2..20), cut in 0..20usize, scale in -300..300i32
        ) {
            let unit = 2f64.powi(scale);
            let floats: Vec<f64> = xs.iter().map(|&x| x as f64 * unit).collect();
            let (left, right) = floats.split_at(cut.min(floats.len()));
            let mut both = moments(right);
            both.merge(&moments(left));
            let (n, sum) = (xs.len() as i64, xs.iter().sum::<i64>());
            let (squares, total) = (xs.iter().map(|x| x * x).sum::<i64>(), xs.len() as u64);
            let in_units = |found: Scaled| found.relative_to(scale.into());
            let near = |found, expected: f64| (in_units(found) - expected).abs() <= 1e-15 * expected;
            prop_assert_eq!(in_units(both.mean(total)), sum as f64 / n as f64);
            prop_assert_eq!(in_units(both.total().value()), sum as f64);
            let variance = (n * squares - sum * sum) as f64 / (n * (n - 1)) as f64;
            prop_assert!(near(both.std_error(total), (variance / n as f64).sqrt()));
            prop_assert!(near(both.influence_error(total), (squares as f64 / (n * (n - 1)) as f64).sqrt()));
            let size = if squares == 0 { 0.0 } else { (sum * sum) as f64 / squares as f64 };
            prop_assert!((both.effective_size() - size).abs() <= 1e-15 * size);
        }
    }
}
