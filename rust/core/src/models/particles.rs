//! Factored transitions by counts, and cached particles of them (Jiang & Li 2016, appendix "KDD Cup 1998"):
//!
//!     P̂(s'|s, a) = Π_i P̂_i(s'_i | s_i, a),    P̂_i(y|x, a) = count(x, a, y) / count(x, a)
//!
//! A value that was never seen with an action stays unchanged. States are rows of k value numbers, from 0 to size_i −
//! 1.
//!
//! The particles of a pair (s, a) are a function of the seed and the pair. They are the same whenever they are needed,
//! like a cache that takes no memory. They are a Latin hypercube sample (McKay, Beckman & Conover 1979): each feature
//! divides [0, 1) into n equal slices, one for each particle, in an order drawn for that feature. Each particle by
//! itself has the distribution P̂(·|s, a), and together they represent every margin better than independent draws do.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The transitions of one feature: for each (action, value) the values that followed, with cumulative counts.
struct Feature {
    size: usize,
    starts: Vec<usize>,
    next: Vec<u32>,
    cumulative: Vec<f64>,
}

/// Counts of one feature's moves: value `x[j]` became `y[j]` under `action[j]` in `count[j]` cases.
#[derive(Clone, Copy)]
pub struct Moves<'a> {
    /// The number of values of the feature.
    pub size: usize,
    /// The actions.
    pub action: &'a [u32],
    /// The values before each move.
    pub x: &'a [u32],
    /// The values after each move.
    pub y: &'a [u32],
    /// The number of times that each move was seen.
    pub count: &'a [f64],
}

/// P̂ as one table per feature.
pub struct Marginals {
    actions: usize,
    features: Vec<Feature>,
}

/// The distinct states among particles, and the index of each particle among them.
pub struct Particles {
    /// (distinct, k) values, in the order in which the states were first met.
    pub distinct: Vec<u32>,
    /// (pairs, particles) row numbers in `distinct`.
    pub index: Vec<u32>,
}

impl Feature {
    fn new(actions: usize, moves: Moves<'_>) -> Result<Self, String> {
        let n = moves.count.len();
        if moves.action.len() != n || moves.x.len() != n || moves.y.len() != n {
            return Err("action, x, y and count must be of one length".into());
        }
        let mut starts = vec![0; actions * moves.size + 1];
        let mut rows = Vec::with_capacity(n);
        for j in 0..n {
            let (a, x, y) = (moves.action[j] as usize, moves.x[j] as usize, moves.y[j] as usize);
            if a >= actions || x >= moves.size || y >= moves.size {
                return Err(format!(
                    "move {j}: action {a}, {x} to {y} is outside {actions} actions and {} values",
                    moves.size
                ));
            }
            if !(moves.count[j] > 0.0 && moves.count[j].is_finite()) {
                return Err(format!("move {j}: a count must be above 0 and finite, not {}", moves.count[j]));
            }
            rows.push(a * moves.size + x);
            starts[a * moves.size + x + 1] += 1;
        }
        for row in 0..actions * moves.size {
            starts[row + 1] += starts[row];
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_unstable_by_key(|&j| (rows[j], moves.y[j], j));
        let next = order.iter().map(|&j| moves.y[j]).collect();
        let mut cumulative: Vec<f64> = order.iter().map(|&j| moves.count[j]).collect();
        for row in 0..actions * moves.size {
            for j in starts[row] + 1..starts[row + 1] {
                cumulative[j] += cumulative[j - 1];
            }
        }
        Ok(Self { size: moves.size, starts, next, cumulative })
    }

    fn row(&self, action: u32, x: u32) -> (&[u32], &[f64]) {
        let row = action as usize * self.size + x as usize;
        let range = self.starts[row]..self.starts[row + 1];
        (&self.next[range.clone()], &self.cumulative[range])
    }

    /// Returns the value at the quantile u in [0, 1) of P̂_i(·|x, a).
    fn quantile(&self, action: u32, x: u32, u: f64) -> u32 {
        let (next, cumulative) = self.row(action, x);
        let Some(total) = cumulative.last() else { return x };
        let j = cumulative.partition_point(|&c| c <= u * total);
        next[j.min(next.len() - 1)] // the product may round up to the total
    }

    /// Returns Σ_y P̂_i(y|x, a) f(y).
    fn expected(&self, action: u32, x: u32, f: &[f64]) -> f64 {
        let (next, cumulative) = self.row(action, x);
        let Some(total) = cumulative.last() else { return f[x as usize] };
        let mut before = 0.0;
        let mut sum = 0.0;
        for (&y, &c) in next.iter().zip(cumulative) {
            sum += (c - before) * f[y as usize];
            before = c;
        }
        sum / total
    }
}

impl Marginals {
    /// Makes the tables from the counts of each feature's moves.
    pub fn new(actions: usize, moves: &[Moves<'_>]) -> Result<Self, String> {
        let feature = |(i, &m)| Feature::new(actions, m).map_err(|why| format!("feature {i}: {why}"));
        let features = moves.iter().enumerate().map(feature).collect::<Result<_, _>>()?;
        Ok(Self { actions, features })
    }

    /// Returns the number of features of a state.
    pub fn features(&self) -> usize {
        self.features.len()
    }

    /// Refuses pairs that do not exist.
    pub fn check(&self, states: &[u32], actions: &[u32]) -> Result<(), String> {
        let k = self.features();
        if states.len() != actions.len() * k {
            return Err(format!("{} actions need as many states of {k} features", actions.len()));
        }
        if let Some(row) = actions.iter().position(|&a| a as usize >= self.actions) {
            return Err(format!("row {row}: there is no action {}", actions[row]));
        }
        for (row, state) in states.chunks_exact(k).enumerate() {
            for (i, (&x, feature)) in state.iter().zip(&self.features).enumerate() {
                if x as usize >= feature.size {
                    return Err(format!("row {row}: feature {i} has no value number {x}"));
                }
            }
        }
        Ok(())
    }

    /// Returns the next states at given quantiles, one quantile in [0, 1) for each feature of each pair.
    pub fn next(&self, states: &[u32], actions: &[u32], quantiles: &[f64]) -> Result<Vec<u32>, String> {
        self.check(states, actions)?;
        if quantiles.len() != states.len() {
            return Err("next states need a quantile for each feature".into());
        }
        let k = self.features();
        let at = |j: usize| self.features[j % k].quantile(actions[j / k], states[j], quantiles[j]);
        Ok((0..states.len()).map(at).collect())
    }

    /// Returns Σ_y P̂_i(y|x, a) f(y) for every action and value, as (actions, size) numbers.
    pub fn expected(&self, feature: usize, f: &[f64]) -> Result<Vec<f64>, String> {
        let table = self.features.get(feature).ok_or_else(|| format!("there is no feature {feature}"))?;
        if f.len() != table.size {
            return Err(format!("feature {feature} has {} values, not {}", table.size, f.len()));
        }
        let pairs = (0..self.actions as u32).flat_map(|a| (0..table.size as u32).map(move |x| (a, x)));
        Ok(pairs.map(|(a, x)| table.expected(a, x, f)).collect())
    }

    /// Returns the particles of pairs (s, a).
    pub fn particles(&self, states: &[u32], actions: &[u32], count: usize, seed: u64) -> Result<Particles, String> {
        self.check(states, actions)?;
        let k = self.features();
        let mut seen = HashMap::<u64, u32, BuildHasherDefault<Mix>>::default();
        let mut found = Particles { distinct: Vec::new(), index: Vec::with_capacity(actions.len() * count) };
        let mut next = vec![0; k * count];
        let mut order = vec![0; count];
        for (state, &action) in states.chunks_exact(k).zip(actions) {
            let mut random = state.iter().fold(mix(mix(seed) ^ u64::from(action)), |h, &x| mix(h ^ u64::from(x)));
            for (i, feature) in self.features.iter().enumerate() {
                order.iter_mut().enumerate().for_each(|(p, slice)| *slice = p);
                for p in (1..count).rev() {
                    order.swap(p, (uniform(&mut random) * (p + 1) as f64) as usize);
                }
                for (p, &slice) in order.iter().enumerate() {
                    let u = (slice as f64 + uniform(&mut random)) / count as f64;
                    next[p * k + i] = feature.quantile(action, state[i], u);
                }
            }
            for particle in next.chunks_exact(k) {
                let code = particle.iter().zip(&self.features).fold(0, |c, (&y, f)| c * f.size as u64 + u64::from(y));
                let number = *seen.entry(code).or_insert_with(|| {
                    found.distinct.extend_from_slice(particle);
                    (found.distinct.len() / k - 1) as u32
                });
                found.index.push(number);
            }
        }
        Ok(found)
    }

    /// Returns true if every pair (s, a) can have a number of its own below 2^63.
    pub fn pairs_can_be_numbered(&self) -> bool {
        self.features.iter().try_fold(self.actions as i64, |n, f| n.checked_mul(f.size as i64)).is_some()
    }
}

/// Returns for each point the nearest of some others by Σ_i |x_i − y_i|, the first of equals. Points are rows of k
/// numbers.
pub fn nearest(points: &[f32], among: &[f32], k: usize) -> Vec<u32> {
    let m = among.len() / k.max(1);
    let columns: Vec<f32> = (0..k * m).map(|j| among[j % m * k + j / m]).collect();
    let mut distance = vec![0.0f32; m];
    let closest = |point: &[f32]| {
        distance.fill(0.0);
        for (x, column) in point.iter().zip(columns.chunks_exact(m)) {
            for (d, y) in distance.iter_mut().zip(column) {
                *d += (x - y).abs();
            }
        }
        let least = distance.iter().fold(f32::INFINITY, |least, &d| if d < least { d } else { least });
        distance.iter().position(|&d| d == least).unwrap_or(0) as u32
    };
    points.chunks_exact(k.max(1)).map(closest).collect()
}

/// Applies SplitMix64 (Steele, Lea & Flood 2014), a bijection that scatters bits.
fn mix(h: u64) -> u64 {
    let h = h.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^ (h >> 31)
}

/// Returns a number in [0, 1), and moves the generator on.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    (mix(*state) >> 11) as f64 / (1u64 << 53) as f64
}

/// A hasher of state numbers.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = mix(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a model with one action. Of the first feature, value 0 goes to 0 once and to 1 three times, and value 1 was
    /// never seen. The second feature counts up.
    fn two_features() -> Marginals {
        let coin = Moves { size: 2, action: &[0, 0], x: &[0, 0], y: &[1, 0], count: &[3.0, 1.0] };
        let clock = Moves { size: 3, action: &[0, 0], x: &[0, 1], y: &[1, 2], count: &[4.0, 4.0] };
        Marginals::new(1, &[coin, clock]).unwrap()
    }

    #[test]
    fn quantiles_follow_the_counts_and_an_unseen_value_stays() {
        let next = two_features().next(&[0, 0, 0, 1, 1, 2], &[0, 0, 0], &[0.2, 0.9, 0.25, 0.0, 0.5, 0.5]).unwrap();
        assert_eq!(next, [0, 1, 1, 2, 1, 2]);
    }

    #[test]
    fn expectations_are_exact() {
        assert_eq!(two_features().expected(0, &[10.0, 2.0]).unwrap(), [4.0, 2.0]);
    }

    #[test]
    fn four_particles_of_quarters_hold_the_distribution_exactly() {
        for seed in 0..20 {
            let found = two_features().particles(&[0, 0], &[0], 4, seed).unwrap();
            let ones = found.index.iter().filter(|&&j| found.distinct[2 * j as usize] == 1).count();
            assert_eq!((ones, found.distinct.len()), (3, 4));
        }
    }

    #[test]
    fn particles_are_the_same_whenever_they_are_asked_for() {
        let (all, one) = (
            two_features().particles(&[1, 1, 0, 0], &[0, 0], 5, 7).unwrap(),
            two_features().particles(&[0, 0], &[0], 5, 7).unwrap(),
        );
        let rows = |found: &Particles, from: usize| -> Vec<[u32; 2]> {
            let row = |&j: &u32| [found.distinct[2 * j as usize], found.distinct[2 * j as usize + 1]];
            found.index[from..].iter().map(row).collect()
        };
        assert_eq!(rows(&all, 5), rows(&one, 0));
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        let marginals = two_features();
        assert!(marginals.next(&[0, 3], &[0], &[0.0, 0.0]).unwrap_err().contains("feature 1"));
        assert!(marginals.next(&[0, 0], &[1], &[0.0, 0.0]).unwrap_err().contains("action 1"));
        let wrong = Moves { size: 1, action: &[0], x: &[0], y: &[1], count: &[1.0] };
        assert!(Marginals::new(1, &[wrong]).is_err());
    }

    #[test]
    fn nearest_takes_the_first_of_equals() {
        let among = [0.0, 0.0, 2.0, 2.0, 2.0, 0.0];
        assert_eq!(nearest(&[0.1, 0.2, 1.0, 1.0, 3.0, 0.0], &among, 2), [0, 0, 2]);
    }
}
