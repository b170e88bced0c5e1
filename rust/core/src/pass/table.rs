//! Tables with one number per step that all trajectories share, such as γ^{t−1}. They are kept in blocks of eight with
//! a power of two per block.

use std::collections::BTreeMap;

use crate::number::block::{Block, Eight, LANES};
use crate::number::magnitude::{PLAIN, SPREAD};
use crate::number::scaled::Scaled;

/// The form in which the entries of a block of steps are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Form {
    /// The power of two of the block, which is 0 for ordinary magnitudes.
    exponent: i64,
    /// False if the entries of a block are too unequal for one exponent.
    tame: bool,
}

/// Consecutive blocks that share an exponent.
pub struct Stretch<'a> {
    /// The entries divided by 2^exponent.
    pub values: &'a [Eight],
    /// The power of two of the entries.
    pub exponent: i64,
    /// False if the entries of a block are too unequal for one exponent.
    pub tame: bool,
}

/// A table over steps t = 1, 2, … that is zero after its end.
#[derive(Clone, Debug, Default)]
pub struct StepTable {
    values: Vec<Eight>,
    forms: Vec<Form>,
    /// For each block, the first one after it that has another form.
    ends: Vec<usize>,
    /// The entries of the blocks that are too unequal for one exponent.
    unequal: BTreeMap<usize, [Scaled; LANES]>,
    len: usize,
}

impl StepTable {
    /// The number of bytes per step.
    pub const BYTES: u64 = ((size_of::<Eight>() + size_of::<Form>() + size_of::<usize>()) / LANES) as u64;

    /// Makes a table of the given entries.
    pub fn new(entries: impl ExactSizeIterator<Item = Scaled>) -> Self {
        let (len, mut entries) = (entries.len(), entries);
        let blocks = len.div_ceil(LANES);
        let mut table =
            Self { values: Vec::with_capacity(blocks), forms: Vec::with_capacity(blocks), len, ..Self::default() };
        for b in 0..blocks {
            let entries = std::array::from_fn(|_| entries.next().unwrap_or(Scaled::ZERO));
            let (values, form) = block(&entries);
            table.values.push(values);
            table.forms.push(form);
            if !form.tame {
                table.unequal.insert(b, entries);
            }
        }
        table.ends = vec![blocks; blocks];
        for b in (1..blocks).rev() {
            table.ends[b - 1] = if table.forms[b - 1] == table.forms[b] { table.ends[b] } else { b };
        }
        table
    }

    /// Makes the table of γ^{t−1} for t = 1, …, steps. Each power is rounded only once, since products are computed
    /// with twice the digits.
    pub fn discounts(discount: f64, steps: usize) -> Self {
        let (mut power, mut error) = (Scaled::ONE, Scaled::ZERO);
        let gamma = Scaled::from(discount);
        Self::new((0..steps.next_multiple_of(LANES)).map(|_| {
            let entry = power + error;
            let [high, low] = crate::number::sum::product(power, gamma);
            let (rounded, rest) = (high + low, low + error * gamma);
            error = (high - rounded) + rest;
            power = rounded;
            entry
        }))
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the entries of at most `count` blocks from block b on, which starts with step 8b+1.
    #[inline(always)]
    pub fn stretch(&self, b: usize, count: usize) -> Stretch<'_> {
        let Form { exponent, tame } = self.forms[b];
        Stretch { values: &self.values[b..self.ends[b].min(b + count)], exponent, tame }
    }

    /// Returns the entries of block b as wide floats.
    pub fn scaled_block(&self, b: usize) -> Block<Scaled> {
        Block(std::array::from_fn(|j| self.get(b * LANES + j)))
    }

    /// Returns the entry of step t, where `index` is t−1.
    pub fn get(&self, index: usize) -> Scaled {
        let (b, j) = (index / LANES, index % LANES);
        match (self.forms.get(b), self.unequal.get(&b)) {
            (Some(_), Some(entries)) => entries[j],
            (Some(form), None) => Scaled::new(self.values[b][j], form.exponent),
            (None, _) => Scaled::ZERO,
        }
    }
}

fn block(entries: &[Scaled; LANES]) -> (Eight, Form) {
    let exponents = || entries.iter().filter(|x| !x.is_zero()).map(|x| x.exponent());
    let largest = exponents().max().unwrap_or(0);
    let exponent = if largest.abs() <= PLAIN { 0 } else { largest };
    let tame = exponents().all(|e| e >= largest - SPREAD);
    (entries.map(|x| x.relative_to(exponent)), Form { exponent, tame })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discounts_are_powers_to_the_last_digit() {
        let table = StepTable::discounts(0.5, 2000);
        assert_eq!(table.get(1999).log10(), Scaled::new(1.0, -1999).log10());
        let table = StepTable::discounts(0.99999, 100_000);
        let exact = (99_999.0 * (-0.00001f64).ln_1p()).exp();
        assert!((table.get(99_999).lossy_f64() / exact - 1.0).abs() < 1e-11);
    }

    #[test]
    fn stretches_hold_the_entries_in_order() {
        for discount in [1.0, 0.99, 0.5, 0.001, 1e-30, 0.0] {
            let (table, mut b) = (StepTable::discounts(discount, 1000), 0);
            assert_eq!((table.len(), table.is_empty()), (1000, false));
            while b < 125 {
                assert_eq!(table.stretch(b, 1).values.len(), 1);
                let Stretch { values, exponent, tame } = table.stretch(b, 1000);
                for value in values {
                    for (j, &x) in value.iter().enumerate() {
                        let entry = table.get(b * LANES + j);
                        assert_eq!(table.scaled_block(b).0[j], entry);
                        assert!(!tame || Scaled::new(x, exponent) == entry, "{discount}, step {}", b * LANES + j);
                    }
                    // The exponent is 0 while magnitudes are ordinary, and one exponent is used only if it fits all
                    // eight.
                    let (first, last) = (table.get(b * LANES), table.get(b * LANES + 7));
                    let spread = if last.is_zero() { 0 } else { first.exponent() - last.exponent() };
                    assert_eq!(tame, first.is_zero() || spread <= SPREAD);
                    assert_eq!(exponent == 0, first.is_zero() || first.exponent() >= -PLAIN);
                    b += 1;
                }
            }
            assert_eq!(b, 125);
            assert!(table.get(1000).is_zero());
        }
        assert!(StepTable::default().is_empty());
    }

    #[test]
    fn no_discount_and_full_discount() {
        assert_eq!(StepTable::discounts(1.0, 3).get(2), Scaled::ONE);
        let zero = StepTable::discounts(0.0, 9);
        assert_eq!((zero.get(0), zero.get(1), zero.get(8)), (Scaled::ONE, Scaled::ZERO, Scaled::ZERO));
    }
}
