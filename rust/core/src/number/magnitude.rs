//! Ordinary magnitudes: those on which plain f64 arithmetic gives the same bits as wide floats, because nothing leaves
//! the range of normal numbers, 2^−1022 to 2^1023, on the way.
//!
//! Step t adds to an estimate a product of three factors, g · c · x:
//!
//! | factor | ordinary | why it can be smaller or larger in a block of eight steps |
//! |---|---|---|
//! | g, an entry of a table such as γ^{t−1} | 2^±128 | entries of a block differ by up to 2^128: 2^−256 to 2^128 |
//! | c = ρ_{1:t} | 2^±128 | eight ratios within 2^±32 follow: 2^±384 |
//! | x, a number of the log | 2^−300 to 2^200, or 0 | |
//!
//! So a product is from 2^−940 to 2^712, and 2^300 of them can be added. Numbers that are not ordinary are computed as
//! [`Scaled`](crate::number::scaled::Scaled).

/// The exponent limit of plain numbers: products before a block, and the largest entry of a block of a table, are kept
/// as plain f64 within 2^±128.
pub const PLAIN: i64 = 128;
/// The entries of a block of a table share a power of two while none is smaller than 2^−128 times the largest.
pub const SPREAD: i64 = 128;
/// Eight ratios within 2^±32 cannot move a product out of the range of f64.
pub const RATIO: i64 = 32;
/// The smallest and the largest ordinary number of a log other than 0, as powers of two.
const LOGGED: (i64, i64) = (-300, 200);
/// 2^−300
pub const TINY: f64 = power(LOGGED.0);
/// 2^200
pub const HUGE: f64 = power(LOGGED.1);
/// Any two numbers within 2^±250 can be multiplied, and a few such products added, without leaving the range of f64.
pub const TWO_FACTORS: i64 = 250;

/// Returns 2^k as a normal number.
const fn power(k: i64) -> f64 {
    f64::from_bits((k + 1023).cast_unsigned() << 52)
}

const _: () = {
    let (weight, block) = (PLAIN + 8 * RATIO, PLAIN + SPREAD);
    assert!(weight + block - LOGGED.0 < 1022 && weight + PLAIN + LOGGED.1 + 300 < 1023);
    assert!(2 * (TWO_FACTORS + 1) < 1022);
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::scaled::exp2;

    #[test]
    fn the_numbers_of_a_log_are_powers_of_two() {
        assert!(TINY == exp2(-300) && HUGE == exp2(200));
    }
}
