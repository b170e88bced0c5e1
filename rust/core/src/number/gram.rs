//! Order-independent sums over trajectories of the products of every two entries of a vector, Σ_i ψ_i ψ_iᵀ.
//!
//! Row j holds the products with the entries up to j, in whole blocks of eight. Each product is rounded once.

use pulp::Simd;
use serde::{Deserialize, Serialize};

use crate::number::block::{Block, Eight, LANES};
use crate::number::scaled::Scaled;
use crate::number::step_sums::StepSums;
use crate::number::sum::Sum;

/// The sums of all products ψ_j ψ_k.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Gram {
    sums: StepSums,
}

/// Returns the number of blocks before row j: rows 8q, …, 8q + 7 have q + 1 blocks each.
fn blocks_before(j: usize) -> usize {
    let (q, r) = (j / LANES, j % LANES);
    (q + 1) * (LANES / 2 * q + r)
}

impl Gram {
    /// Adds a vector of `entries` entries, each of which is 0 or within 2^±300.
    pub fn add(&mut self, arch: pulp::Arch, vector: &[Eight], entries: usize) {
        self.sums.grow(blocks_before(entries));
        arch.dispatch(AddProducts { sums: &mut self.sums, vector, entries });
    }

    /// Adds a vector with entries of any magnitude.
    pub fn add_scaled(&mut self, vector: &[Scaled]) {
        self.sums.grow(blocks_before(vector.len()));
        for (j, &x) in vector.iter().enumerate() {
            for (k, &y) in vector.iter().take((j / LANES + 1) * LANES).enumerate() {
                self.sums.add_one(blocks_before(j) * LANES + k, x * y);
            }
        }
    }

    /// Adds the sums of another set.
    pub fn merge(&mut self, other: Self) {
        self.sums.merge(other.sums);
    }

    /// Returns Σ_i ψ_j ψ_k.
    pub fn get(&self, j: usize, k: usize) -> Sum {
        self.sums.sum(blocks_before(j.max(k)) * LANES + j.min(k))
    }
}

/// The additions of one vector, compiled for each instruction set; the processor's is chosen at run time.
struct AddProducts<'a> {
    sums: &'a mut StepSums,
    vector: &'a [Eight],
    entries: usize,
}

impl pulp::WithSimd for AddProducts<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let mut block = 0;
        for j in 0..self.entries {
            let (factor, count) = (Block::<f64>::splat(self.vector[j / LANES][j % LANES]), j / LANES + 1);
            let others = &self.vector[..count];
            self.sums.add_blocks(block, count, |i| factor * Block::load(&others[i]), 0);
            block += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENTRIES: usize = 19;

    fn total(vectors: &[Vec<f64>], plain: bool) -> Gram {
        let mut gram = Gram::default();
        for vector in vectors {
            if plain {
                let mut padded = vector.clone();
                padded.resize(ENTRIES.next_multiple_of(LANES), 0.0);
                gram.add(pulp::Arch::new(), padded.as_chunks().0, ENTRIES);
            } else {
                gram.add_scaled(&vector.iter().map(|&x| x.into()).collect::<Vec<_>>());
            }
        }
        gram
    }

    fn values(gram: &Gram) -> Vec<Scaled> {
        (0..ENTRIES).flat_map(|j| (0..ENTRIES).map(move |k| (j, k))).map(|(j, k)| gram.get(j, k).value()).collect()
    }

    proptest! {
        #[test]
        fn any_partition_and_either_form_gives_the_exact_sum(
            vectors in prop::collection::vec(prop::collection::vec((-1.0..1.0f64, -40..40i32), ENTRIES), 1..12), cut in 0..12usize
        ) {
            let vectors: Vec<Vec<f64>> =
                vectors.iter().map(|v| v.iter().map(|(m, e)| m * 2f64.powi(*e)).collect()).collect();
            let cut = cut.min(vectors.len());
            let whole = total(&vectors, true);
            let mut parts = total(&vectors[cut..], false);
            let bytes = postcard::to_stdvec(&total(&vectors[..cut], true)).unwrap();
            parts.merge(postcard::from_bytes(&bytes).unwrap());
            let found = values(&whole);
            prop_assert_eq!(&found, &values(&parts));
            for (index, found) in found.iter().enumerate() {
                let (j, k) = (index / ENTRIES, index % ENTRIES);
                let mut exact = Sum::new();
                vectors.iter().for_each(|v| exact.add((v[j] * v[k]).into()));
                let largest = vectors.iter().map(|v| (v[j] * v[k]).abs()).fold(0.0, f64::max);
                prop_assert!((*found - exact.value()).abs().lossy_f64() <= largest * 2f64.powi(-49));
            }
        }
    }
}
