//! Rows of a log at which a kernel-based model computes Q, in the order in which its values become known: by the number
//! of remaining steps, then by the part of the grid.

use crate::models::kernel::Kernel;

/// Rows of a log, sorted by the number of remaining steps and by the slab (row of the grid's first coordinate) of their
/// pair.
#[derive(Debug)]
pub struct RowsByRemaining<'a> {
    pairs: &'a [u32],
    /// The number of pairs in a slab.
    slab: usize,
    /// All rows, sorted by the number of remaining steps, then by slab.
    order: Vec<usize>,
    /// Where the rows with 0, 1, … remaining steps begin in `order`, and where the last ones end.
    starts: Vec<usize>,
}

impl<'a> RowsByRemaining<'a> {
    /// Sorts rows, given the pair of the kernel's grid and the number of remaining steps of each, up to the horizon.
    pub fn new(pairs: &'a [u32], remaining: &[u32], horizon: usize, kernel: &Kernel) -> Self {
        let (slab, slabs) = (kernel.row(), kernel.cells() / kernel.row());
        let (by_slab, _) = ordered(0..pairs.len(), slabs, |row| pairs[row] as usize / slab);
        let (order, starts) = ordered(by_slab.into_iter(), horizon + 1, |row| remaining[row] as usize);
        Self { pairs, slab, order, starts }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Returns the largest number of remaining steps that a row may have.
    pub fn horizon(&self) -> usize {
        self.starts.len() - 2
    }

    /// Returns the rows with h remaining steps.
    pub fn with(&self, h: usize) -> &[usize] {
        &self.order[self.starts[h]..self.starts[h + 1]]
    }

    /// Returns the rows with h remaining steps whose pair is in the slab that begins with `first`, each with its pair.
    pub fn within(&self, h: usize, first: usize) -> impl Iterator<Item = (usize, usize)> {
        let (rows, pair) = (self.with(h), |row: usize| self.pairs[row] as usize);
        let start = rows.partition_point(|&row| pair(row) < first);
        let here = move |&row: &usize| pair(row) < first + self.slab;
        rows[start..].iter().copied().take_while(here).map(move |row| (row, pair(row)))
    }
}

/// Sorts items by a key below `keys`, keeping items of the same key in order. Returns them, where each key begins, and
/// the end.
fn ordered(
    items: impl Iterator<Item = usize> + Clone,
    keys: usize,
    key: impl Fn(usize) -> usize,
) -> (Vec<usize>, Vec<usize>) {
    let mut starts = vec![0; keys + 1];
    for item in items.clone() {
        starts[key(item) + 1] += 1;
    }
    for key in 0..keys {
        starts[key + 1] += starts[key];
    }
    let (mut free, mut order) = (starts.clone(), vec![0; starts[keys]]);
    for item in items {
        let free = &mut free[key(item)];
        order[*free] = item;
        *free += 1;
    }
    (order, starts)
}
