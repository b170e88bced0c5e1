//! The cumulative importance ratios ρ_{1:t} = Π_{t' ≤ t} ρ_{t'} of one trajectory, as f64 times a power of two.

use pulp::Simd;
use serde::{Deserialize, Serialize};

use crate::number::block::{Block, LANES};
use crate::number::magnitude::{PLAIN, RATIO};
use crate::number::prefix::cumulative_product;
use crate::number::scaled::{EXPONENT_LIMIT, Scaled, exp2};
use crate::pass::ratios::Ratios;

/// The product ρ_{1:t} of the blocks so far, which is carried to the next block.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(try_from = "(f64, i64)")]
pub struct Carry {
    mantissa: f64,
    exponent: i64,
}

impl Default for Carry {
    fn default() -> Self {
        Self { mantissa: 1.0, exponent: 0 }
    }
}

/// Accepts the numbers of a decoded state if they can be a product of ratios.
impl TryFrom<(f64, i64)> for Carry {
    type Error = &'static str;
    fn try_from((mantissa, exponent): (f64, i64)) -> Result<Self, Self::Error> {
        let near = exponent.unsigned_abs() <= EXPONENT_LIMIT.unsigned_abs();
        let fits = near && (0.0..=f64::MAX).contains(&mantissa);
        if fits { Ok(Self { mantissa, exponent }) } else { Err("not a product of ratios") }
    }
}

impl Carry {
    /// Returns the product so far.
    pub fn value(self) -> Scaled {
        Scaled::new(self.mantissa, self.exponent)
    }

    /// Returns the power of two by which `cumulate` divides.
    pub fn exponent(self) -> i64 {
        self.exponent
    }

    /// Returns true once a ratio was zero.
    pub fn is_zero(self) -> bool {
        self.mantissa == 0.0
    }

    /// Writes ρ_{1:t} / 2^exponent to `out`, preceded by the value before the first step, and returns the number of
    /// blocks done. Stops after the block in which the product leaves its range, or before one whose ratios are
    /// extreme. The product that is carried on has only the first `steps` ratios; the rest is padding.
    #[inline(always)]
    pub fn cumulate<S: Simd>(&mut self, simd: S, rho: &impl Ratios, steps: usize, out: &mut Weights) -> usize {
        let blocks = rho.blocks();
        let out = out.room(blocks);
        out[0] = self.mantissa;
        let (mut carry, mut done) = (self.mantissa, 0);
        let lines = &mut out[1..].as_chunks_mut::<LANES>().0[..blocks];
        for (b, c) in lines.iter_mut().enumerate() {
            let rho = rho.block(b);
            let products = cumulative_product(simd, rho);
            let all = products * Block::splat(carry);
            // This product is the only dependency between one block and the next.
            let next = products.0[LANES - 1] * carry;
            if ordinary(all) {
                (*c, carry, done) = (all.0, next, b + 1);
            } else if tame(rho) {
                (*c, carry, done) = (all.0, next, b + 1);
                if !in_range(carry) {
                    break;
                }
            } else {
                break;
            }
        }
        self.mantissa = out[steps.min(done * LANES)];
        if !in_range(self.mantissa) {
            self.set(self.value());
        }
        done
    }

    /// Returns ρ_{1:t} of one block of ratios of any magnitude, preceded by the value before it. Ratios after the first
    /// `steps` are padding.
    pub fn cumulate_scaled(&mut self, rho: Block<Scaled>, steps: usize) -> [Scaled; LANES + 1] {
        let start = self.value();
        let c = rho.cumulative_product(Scaled::ONE) * Block([start; LANES]);
        self.set(c.0[steps - 1]);
        std::array::from_fn(|j| if j == 0 { start } else { c.0[j - 1] })
    }

    /// Sets the product. Its exponent is 0 for ordinary magnitudes, so that tables and sums need no scaling.
    fn set(&mut self, c: Scaled) {
        let exponent = if c.is_zero() || c.exponent().abs() <= PLAIN { 0 } else { c.exponent() };
        *self = Self { mantissa: c.relative_to(exponent), exponent };
    }
}

/// Memory for ρ_{1:t} of a piece of a trajectory, preceded by the value before its first step.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    values: Vec<f64>,
    front: usize,
}

impl Weights {
    /// Returns the weights of this number of blocks.
    #[inline(always)]
    pub fn get(&self, blocks: usize) -> &[f64] {
        &self.values[self.front..][..=blocks * LANES]
    }

    /// Returns memory for this number of blocks, in which each block has a cache line of its own.
    #[inline(always)]
    pub fn room(&mut self, blocks: usize) -> &mut [f64] {
        if self.values.len() < (blocks + 2) * LANES {
            self.values.resize((blocks + 2) * LANES, 0.0);
            self.front = self.values.as_ptr().align_offset(LANES * size_of::<f64>()).min(LANES) + LANES - 1;
        }
        &mut self.values[self.front..][..=blocks * LANES]
    }
}

#[inline(always)]
fn in_range(carry: f64) -> bool {
    (exp2(-PLAIN)..=exp2(PLAIN)).contains(&carry) || carry == 0.0
}

/// Returns true if all products are in range and none is zero. Every product of ratios of the block is then a quotient
/// of two of these, so none left the range of f64. The comparison of bits works because positive floats are ordered as
/// their bits are.
#[inline(always)]
fn ordinary(c: Block<f64>) -> bool {
    let (low, high) = (exp2(-PLAIN).to_bits(), exp2(PLAIN).to_bits());
    c.0.iter().fold(true, |ordinary, c| ordinary & (c.to_bits().wrapping_sub(low) <= high - low))
}

/// Returns true if no product of these ratios can leave the range of f64.
#[inline(always)]
fn tame(rho: Block<f64>) -> bool {
    rho.0.iter().fold(true, |tame, &r| tame & ((r == 0.0) | (exp2(-RATIO)..=exp2(RATIO)).contains(&r)))
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
        let (mut carry, mut out, mut all) = (Carry::default(), Weights::default(), vec![]);
        while all.len() < rho.len() {
            let e = carry.exponent();
            let rest = &rho[all.len()..];
            let done = carry.cumulate(pulp::Scalar::new(), &rest.as_chunks().0, rest.len(), &mut out);
            assert!(done > 0);
            all.extend(out.get(done)[1..].iter().map(|&c| Scaled::new(c, e)));
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
