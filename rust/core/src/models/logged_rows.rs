//! Rows of a log at which a kernel-based model is asked for Q, in the order in which its values become known: by the steps
//! that remain, then by the part of the grid.

use crate::models::kernel::Kernel;

/// Rows of a log, found by how many steps remain and by the slab, or row of the grid's first coordinate, of their pair.
#[derive(Debug)]
pub struct RowsByRemaining<'a> {
    pairs: &'a [u32],
    /// Pairs in a slab.
    slab: usize,
    /// All rows, by remaining steps, then by slab,
    order: Vec<usize>,
    /// and where those with 0, 1, … steps to go begin, and the end.
    starts: Vec<usize>,
}

impl<'a> RowsByRemaining<'a> {
    /// Rows of pairs of the kernel's grid, each with so many steps to go, up to the horizon.
    pub fn new(pairs: &'a [u32], remaining: &[u32], horizon: usize, kernel: &Kernel) -> Self {
        let (slab, slabs) = (kernel.row(), kernel.cells() / kernel.row());
        let (by_slab, _) = ordered(0..pairs.len(), slabs, |row| pairs[row] as usize / slab);
        let (order, starts) = ordered(by_slab.into_iter(), horizon + 1, |row| remaining[row] as usize);
        Self { pairs, slab, order, starts }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The most steps that a row may have to go.
    pub fn horizon(&self) -> usize {
        self.starts.len() - 2
    }

    /// Those with h steps to go.
    pub fn with(&self, h: usize) -> &[usize] {
        &self.order[self.starts[h]..self.starts[h + 1]]
    }

    /// Each of these whose pair is in the slab from `first` on, and that pair.
    pub fn within(&self, h: usize, first: usize) -> impl Iterator<Item = (usize, usize)> {
        let (rows, pair) = (self.with(h), |row: usize| self.pairs[row] as usize);
        let start = rows.partition_point(|&row| pair(row) < first);
        let here = move |&row: &usize| pair(row) < first + self.slab;
        rows[start..].iter().copied().take_while(here).map(move |row| (row, pair(row)))
    }
}

/// Items by a key below `keys`, and where those of each key begin, and the end; items of the same key stay in order.
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
