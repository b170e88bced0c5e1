//! Cumulative products of eight ratios, in the same three rounds for every instruction set and hence with the same
//! bits.

use std::any::Any;
use std::hint::black_box;

use pulp::Simd;

use crate::number::block::Block;

/// Computes ρ_1, ρ_1ρ_2, …, ρ_1⋯ρ_8 like [`Block::cumulative_product`].
#[inline(always)]
pub fn cumulative_product<S: Simd>(simd: S, rho: Block<f64>) -> Block<f64> {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = (&simd as &dyn Any).downcast_ref::<pulp::x86::V4>() {
        return in_masked_lanes(*simd, rho);
    }
    let _ = simd;
    // The compiler must not know that this is 1: it would leave out products by 1, and with them the vector
    // instructions.
    rho.cumulative_product(black_box(1.0))
}

/// Computes each round with AVX-512 as a permutation and a masked product, which the compiler does not find from the
/// plain code.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn in_masked_lanes(simd: pulp::x86::V4, rho: Block<f64>) -> Block<f64> {
    let round = |x, from: [i64; 8], lanes| {
        let factor = simd.avx512f._mm512_permutexvar_pd(pulp::cast(from), x);
        simd.avx512f._mm512_mask_mul_pd(x, lanes, x, factor)
    };
    let pairs = round(pulp::cast(rho.0), [0, 0, 2, 2, 4, 4, 6, 6], 0b1010_1010);
    let fours = round(pairs, [1, 1, 1, 1, 5, 5, 5, 5], 0b1100_1100);
    Block(pulp::cast(round(fours, [3; 8], 0b1111_0000)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::WithSimd;

    struct Product(Block<f64>);

    impl WithSimd for Product {
        type Output = Block<f64>;
        fn with_simd<S: Simd>(self, simd: S) -> Block<f64> {
            cumulative_product(simd, self.0)
        }
    }

    #[test]
    fn all_instructions_give_the_same_bits() {
        for shift in 0..100 {
            let rho = Block(std::array::from_fn(|j| 1.0 / f64::from(shift * 8 + j as i32 + 3)));
            assert_eq!(pulp::Arch::new().dispatch(Product(rho)).0, rho.cumulative_product(1.0).0);
            assert_eq!(pulp::Arch::Scalar.dispatch(Product(rho)).0, rho.cumulative_product(1.0).0);
        }
    }
}
