//! Columns of whole numbers of 32 or 64 bits.

/// A column of whole numbers of either width.
#[derive(Clone, Copy, Debug)]
pub enum Integers<'a> {
    /// 32 bits.
    Short(&'a [i32]),
    /// 64 bits.
    Long(&'a [i64]),
}

impl Integers<'_> {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Short(values) => values.len(),
            Self::Long(values) => values.len(),
        }
    }

    /// Returns the value of a row.
    pub fn get(&self, row: usize) -> i64 {
        match self {
            Self::Short(values) => values[row].into(),
            Self::Long(values) => values[row],
        }
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the values from `start` on, less `offset`.
    #[inline(always)]
    pub(super) fn read(&self, start: usize, offset: i64, into: &mut [i64]) {
        match self {
            Self::Short(values) => {
                into.iter_mut().zip(&values[start..]).for_each(|(to, &value)| *to = i64::from(value) - offset);
            }
            Self::Long(values) => {
                into.iter_mut().zip(&values[start..]).for_each(|(to, &value)| *to = value.wrapping_sub(offset));
            }
        }
    }
}
