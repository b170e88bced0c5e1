//! Cumulative importance ratios ρ_{1:t} = Π_{t' ≤ t} ρ_{t'} of one trajectory, kept scaled.

use std::hint::black_box;

use serde::{Deserialize, Serialize};

use crate::block::{Block, LANES};
use crate::scaled::{Scaled, exp2};

/// Ratios in this range cannot carry a block of eight out of f64 …
const RATIO: f64 = (1u64 << 32) as f64;
/// … while the product before the block is within 2^±128.
const CARRY_EXPONENT: i64 = 128;

/// ρ_{1:t} up to the last whole block.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Carry {
    mantissa: f64,
    exponent: i64,
}

impl Default for Carry {
    fn default() -> Self {
        Self { mantissa: 1.0, exponent: 0 }
    }
}

impl Carry {
    /// The product so far.
    pub fn value(self) -> Scaled {
        Scaled::new(self.mantissa, self.exponent)
    }

    /// The power of two that `cumulate` leaves out.
    pub fn exponent(self) -> i64 {
        self.exponent
    }

    /// True once a ratio was zero.
    pub fn is_zero(self) -> bool {
        self.mantissa == 0.0
    }

    /// Writes ρ_{1:t} / 2^exponent to `out`, the value before the first step in front. Stops after the block in which the
    /// product left its range, or before one whose ratios are extreme; returns the number of blocks done. Of the ratios
    /// `steps` exist, and the product is that of these.
    #[inline(always)]
    pub fn cumulate(&mut self, rho: &[f64], steps: usize, out: &mut Vec<f64>) -> usize {
        out.resize(rho.len() + 1, 0.0);
        out[0] = self.mantissa;
        // First the products within blocks, each on its own; then the chain from block to block is one product long.
        let blocks = out[1..].as_chunks_mut::<LANES>().0;
        let (mut count, one) = (0, black_box(1.0));
        for (rho, products) in rho.as_chunks::<LANES>().0.iter().zip(&mut *blocks) {
            let rho = Block::<f64>::load(rho);
            if !tame(rho) {
                break;
            }
            *products = rho.cumulative_product(one).0;
            count += 1;
        }
        let (whole, mut done) = (count.min(steps / LANES), 0);
        for c in &mut blocks[..whole] {
            let next = c[LANES - 1] * self.mantissa;
            *c = (Block(*c) * Block::splat(self.mantissa)).0;
            self.mantissa = next;
            done += 1;
            if !self.in_range() {
                self.set(self.value());
                return done;
            }
        }
        if let Some(c) = blocks[..count].get_mut(whole) {
            *c = (Block(*c) * Block::splat(self.mantissa)).0;
            self.mantissa = c[steps % LANES - 1];
            done += 1;
            if !self.in_range() {
                self.set(self.value());
            }
        }
        done
    }

    #[inline(always)]
    fn in_range(self) -> bool {
        (exp2(-CARRY_EXPONENT)..=exp2(CARRY_EXPONENT)).contains(&self.mantissa) || self.mantissa == 0.0
    }

    /// The same for one block of any ratios, not scaled, of which the first `steps` exist.
    pub fn cumulate_scaled(&mut self, rho: Block<Scaled>, steps: usize) -> [Scaled; LANES + 1] {
        let start = self.value();
        let c = rho.cumulative_product(Scaled::ONE) * Block([start; LANES]);
        self.set(c.0[steps - 1]);
        std::array::from_fn(|j| if j == 0 { start } else { c.0[j - 1] })
    }

    /// Keeps exponent 0 for ordinary magnitudes: then tables and sums need no scaling.
    fn set(&mut self, c: Scaled) {
        let exponent = if c.is_zero() || c.exponent().abs() <= CARRY_EXPONENT { 0 } else { c.exponent() };
        *self = Self { mantissa: c.relative_to(exponent), exponent };
    }
}

#[inline(always)]
fn tame(rho: Block<f64>) -> bool {
    rho.0.iter().fold(true, |tame, &r| tame & ((r == 0.0) | (1.0 / RATIO..=RATIO).contains(&r)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scaled(rho: &[f64]) -> Vec<Scaled> {
        let mut carry = Carry::default();
        rho.chunks(LANES)
            .flat_map(|r| carry.cumulate_scaled(Block::load(r.try_into().unwrap()), LANES)[1..].to_vec())
            .collect()
    }

    fn vectorised(rho: &[f64]) -> Vec<Scaled> {
        let (mut carry, mut out, mut all) = (Carry::default(), vec![], vec![]);
        while all.len() < rho.len() {
            let e = carry.exponent();
            let rest = &rho[all.len()..];
            let done = carry.cumulate(rest, rest.len(), &mut out) * LANES;
            assert!(done > 0);
            all.extend(out[1..=done].iter().map(|&c| Scaled::new(c, e)));
        }
        all
    }

    proptest! {
        #[test]
        fn both_paths_give_the_same_bits(logs in prop::collection::vec(-22.0..22.0f64, 160..=160), drift in -9.0..9.0f64) {
            let rho: Vec<f64> = logs.iter().map(|l| (l + drift).clamp(-22.0, 22.0).exp()).collect();
            prop_assert_eq!(scaled(&rho), vectorised(&rho));
        }
    }

    #[test]
    fn a_zero_ratio_stays() {
        let mut rho = vec![2.0; 16];
        rho[3] = 0.0;
        assert_eq!(vectorised(&rho)[2].to_f64(), Some(8.0));
        assert!(vectorised(&rho)[3..].iter().all(|c| c.is_zero()));
    }
}
