//! Smoothing on a grid of D coordinates by a kernel cut off beyond the neighbouring cells:
//!
//!     S(x)(c) = Σ_{c'} w_k(c, c') x(c'),    k = number of coordinates in which c and c' differ, each by 1 at most
//!
//! The exponential kernel exp(-‖c - c'‖ / b) has w_k = exp(-√k / b). There are 3^D neighbours, but with T_i, the sum of
//! the two neighbours along coordinate i, and e_k, the elementary symmetric polynomial of degree k,
//!
//!     S = Σ_k w_k e_k(T_1, …, T_D) = Σ_{i,j} w_{i+j} e_i(the last p coordinates) e_j(the other q coordinates)
//!
//! which takes p(p+1)/2 + q(q+1)/2 one-dimensional sums: 9 for the 243 neighbours of D = 5. In order:
//!
//!     E_0 = x;  for each of the last p coordinates:  E_k += T E_{k-1}, k descending
//!     C_j = Σ_i w_{i+j} E_i
//!     for each of the other q coordinates:  C_j += T C_{j+1}, j ascending;   S(x) = C_0
//!
//! Nothing is subtracted, so every cell is as accurate as its own sum of neighbours. A coordinate is finished inside a
//! block of cells before the next outer one is begun, and C_j is kept only as long as its block. So the work stays in
//! the processor's nearest caches.

use crate::models::aligned::Cells;

/// The neighbours that the cells of a coordinate have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Cells 0, 1, …, n-1 in a line, whose two ends have one neighbour each.
    Line,
    /// Cells in a circle: the last one is beside the first.
    Circle,
    /// Separate cells, along which nothing is smoothed.
    Apart,
}

/// The weights of a kernel on a grid whose last coordinate runs fastest.
#[derive(Clone, Debug)]
pub struct Kernel {
    axes: Vec<(usize, Axis)>,
    weights: Vec<f64>,
    /// The number of cells in a block of the coordinates from i on: `blocks[0]` is that of the grid, `blocks[D]` is 1.
    blocks: Vec<usize>,
}

/// The reason why there is no such kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAKernel(pub String);

impl Kernel {
    /// Makes the kernel exp(-‖c - c'‖ / bandwidth), cut off beyond the neighbouring cells.
    pub fn exponential(axes: Vec<(usize, Axis)>, bandwidth: f64) -> Result<Self, NotAKernel> {
        if !(bandwidth > 0.0 && bandwidth.is_finite()) {
            return Err(NotAKernel(format!("bandwidth must be above 0 and finite, not {bandwidth}")));
        }
        if axes.is_empty() || axes.iter().any(|&(size, _)| size == 0) {
            return Err(NotAKernel("a grid needs at least one coordinate, and one cell along each".into()));
        }
        let mut blocks = vec![1usize];
        for &(size, _) in axes.iter().rev() {
            let block = blocks[blocks.len() - 1].checked_mul(size).filter(|&cells| cells <= u32::MAX as usize);
            blocks.push(block.ok_or_else(|| NotAKernel("the grid has more than 2^32 cells".into()))?);
        }
        blocks.reverse();
        let weights = (0..=axes.len()).map(|k| (-(k as f64).sqrt() / bandwidth).exp()).collect();
        Ok(Self { axes, weights, blocks })
    }

    /// Returns the number of cells of the grid.
    pub fn cells(&self) -> usize {
        self.blocks[0]
    }

    /// Returns the number of cells in a leaf, the block that `Smoother::smooth` asks `fill` to write at a time.
    pub fn leaf(&self) -> usize {
        self.blocks[self.outer()]
    }

    /// Returns the number of cells in a row of the first coordinate, which `Smoother::smooth` hands over at a time.
    pub fn row(&self) -> usize {
        self.blocks[1]
    }

    /// Returns true if the first coordinate is a circle of three or more rows, whose last row is beside the first.
    fn wraps(&self) -> bool {
        matches!(self.axes[0], (3.., Axis::Circle))
    }

    /// Returns how many cells of C_j are kept: of C_0 and C_1 only the latest rows, unless the first rows are needed
    /// again.
    fn room(&self, j: usize) -> usize {
        match j {
            0 | 1 if self.wraps() => self.blocks[0],
            0 | 1 => self.blocks[0].min((j + 2) * self.blocks[1]),
            _ => self.blocks[j - 1],
        }
    }

    /// Returns the number of outer coordinates, the first ones, which C_j handles.
    fn outer(&self) -> usize {
        self.axes.len().div_ceil(2)
    }
}

/// Returns S(x) of one function.
pub fn smoothed(kernel: &Kernel, x: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; x.len()];
    let mut smoother = Smoother::<1>::new(kernel);
    pulp::Arch::new().dispatch(|| {
        smoother.smooth(
            |first, block| {
                let x = &x[first..first + block.len()];
                block.as_flattened_mut().copy_from_slice(x);
            },
            |first, block| out[first..first + block.len()].copy_from_slice(block.as_flattened()),
        )
    });
    out
}

/// A kernel with its working memory, for L functions on the grid at once.
pub struct Smoother<'k, const L: usize> {
    kernel: &'k Kernel,
    /// E_0, …, E_p on a block of the inner coordinates.
    e: Vec<Cells<L>>,
    /// C_0, …, C_q, where C_j is kept on a block of the coordinates from j-1 on.
    c: Vec<Cells<L>>,
}

impl<'k, const L: usize> Smoother<'k, L> {
    /// Allocates the working memory of a kernel.
    pub fn new(kernel: &'k Kernel) -> Self {
        let outer = kernel.outer();
        let inner = kernel.axes.len() - outer;
        Self {
            kernel,
            e: (0..=inner).map(|_| Cells::zeros(kernel.leaf())).collect(),
            c: (0..=outer).map(|j| Cells::zeros(kernel.room(j))).collect(),
        }
    }

    /// Computes S(x). `fill(first, block)` writes the values of x from cell `first` on into a block of [`Kernel::leaf`]
    /// cells, and `take(first, block)` receives the values of S(x) as soon as they are known, one row of the first
    /// coordinate at a time.
    ///
    /// It is inlined, so that it runs with the vector instructions of the caller.
    #[inline(always)]
    pub fn smooth(&mut self, mut fill: impl FnMut(usize, &mut [[f64; L]]), mut take: impl FnMut(usize, &[[f64; L]])) {
        let blocks = &self.kernel.blocks;
        let (outer, leaf, row) = (self.kernel.outer(), self.kernel.leaf(), blocks[1]);
        for first in (0..blocks[0]).step_by(leaf) {
            fill(first, &mut self.e[0]);
            self.expand();
            self.combine(first);
            let end = first + leaf;
            for depth in (1..outer).rev().take_while(|&depth| end.is_multiple_of(blocks[depth])) {
                self.contract(depth, end - blocks[depth]);
            }
            if end.is_multiple_of(row) {
                self.finish(end / row, &mut take);
            }
        }
    }

    /// Computes C_0 += T C_1 along the first coordinate, for the rows whose neighbours are complete once `known` rows
    /// are there.
    #[inline(always)]
    fn finish(&mut self, known: usize, take: &mut impl FnMut(usize, &[[f64; L]])) {
        let (row, (size, axis), wraps) = (self.kernel.blocks[1], self.kernel.axes[0], self.kernel.wraps());
        let surrounded = if known < size {
            [known.checked_sub(2).filter(|&i| i > 0 || !wraps), None, None]
        } else {
            [size.checked_sub(2), wraps.then_some(0), Some(size - 1)]
        };
        for i in surrounded.into_iter().flatten() {
            let left = if i > 0 { Some(i - 1) } else { wraps.then_some(size - 1) };
            let right = if i + 1 < size { Some(i + 1) } else { wraps.then_some(0) };
            let (into, from) = self.c.split_at_mut(1);
            let (start, from) = (i * row % into[0].len(), &from[0]);
            let into = &mut into[0][start..start + row];
            let row_of = |i: usize| from[i * row % from.len()..][..row].as_flattened();
            match (left, right) {
                _ if axis == Axis::Apart => {}
                (Some(left), Some(right)) => add_both(into.as_flattened_mut(), row_of(left), row_of(right)),
                (Some(one), None) | (None, Some(one)) => add(into.as_flattened_mut(), row_of(one)),
                (None, None) => {}
            }
            take(i * row, into);
        }
    }

    /// Computes E_k += T E_{k-1} along the inner coordinates. Each coordinate adds one new E_k.
    #[inline(always)]
    fn expand(&mut self) {
        let Kernel { axes, blocks, .. } = self.kernel;
        for (done, depth) in (self.kernel.outer()..axes.len()).rev().enumerate() {
            for k in (1..=done + 1).rev() {
                let (lower, upper) = self.e.split_at_mut(k);
                let (from, into) = (&lower[k - 1], &mut upper[0]);
                if done == 0 {
                    set_neighbours_of_cells(into, from, axes[depth]);
                    continue;
                }
                if k == done + 1 {
                    into.fill([0.0; L]);
                }
                for (into, from) in into.chunks_exact_mut(blocks[depth]).zip(from.chunks_exact(blocks[depth])) {
                    add_neighbours(into.as_flattened_mut(), from.as_flattened(), axes[depth]);
                }
            }
        }
    }

    /// Computes C_j = Σ_i w_{i+j} E_i on the block that begins with cell `first`.
    #[inline(always)]
    fn combine(&mut self, first: usize) {
        let weights = &self.kernel.weights;
        for (j, c) in self.c.iter_mut().enumerate() {
            let start = first % c.len();
            let into = c[start..start + self.e[0].len()].as_flattened_mut();
            match (&self.e[..], &weights[j..]) {
                ([e0, e1, e2], w) => weighted_sum(into, [e0, e1, e2].map(|e| e.as_flattened()), [w[0], w[1], w[2]]),
                (e, w) => {
                    into.fill(0.0);
                    for (e, w) in e.iter().zip(w) {
                        for (into, e) in into.iter_mut().zip(e.as_flattened()) {
                            *into += w * e;
                        }
                    }
                }
            }
        }
    }

    /// Computes C_j += T C_{j+1} along an outer coordinate, on the block that begins with cell `first`.
    #[inline(always)]
    fn contract(&mut self, depth: usize, first: usize) {
        let block = self.kernel.blocks[depth];
        for j in 0..=depth {
            let (lower, upper) = self.c.split_at_mut(j + 1);
            let (into, from) = (&mut lower[j], &upper[0]);
            let (start_into, start_from) = (first % into.len(), first % from.len());
            add_neighbours(
                into[start_into..start_into + block].as_flattened_mut(),
                from[start_from..start_from + block].as_flattened(),
                self.kernel.axes[depth],
            );
        }
    }
}

/// Computes into += T from, along the slowest coordinate of these blocks.
#[inline(always)]
fn add_neighbours(into: &mut [f64], from: &[f64], (size, axis): (usize, Axis)) {
    if size == 1 || axis == Axis::Apart {
        return;
    }
    let stride = into.len() / size;
    let (head, rest) = into.split_at_mut(stride);
    let (body, tail) = rest.split_at_mut(stride * (size - 2));
    let (first, last) = (&from[..stride], &from[stride * (size - 1)..]);
    let (second, last_but_one) = (&from[stride..2 * stride], &from[stride * (size - 2)..stride * (size - 1)]);
    // With two cells on a circle, the neighbours on both sides are the same cell.
    if axis == Axis::Circle && size > 2 {
        add_both(head, last, second);
        add_both(tail, last_but_one, first);
    } else {
        add(head, second);
        add(tail, last_but_one);
    }
    add_both(body, from, &from[2 * stride..]);
}

/// Computes into = T from along the last coordinate: first as if all cells were one line, then the ends of each block.
#[inline(always)]
fn set_neighbours_of_cells<const L: usize>(into: &mut [[f64; L]], from: &[[f64; L]], (size, axis): (usize, Axis)) {
    if size == 1 || axis == Axis::Apart {
        into.fill([0.0; L]);
        return;
    }
    let (values, left, right) = (into.as_flattened_mut(), from.as_flattened(), from.as_flattened().get(2 * L..));
    for (into, (left, right)) in values[L..].iter_mut().zip(left.iter().zip(right.unwrap_or_default())) {
        *into = left + right;
    }
    for (into, from) in into.chunks_exact_mut(size).zip(from.chunks_exact(size)) {
        (into[0], into[size - 1]) = (from[1], from[size - 2]);
        if axis == Axis::Circle && size > 2 {
            add(&mut into[0], &from[size - 1]);
            add(&mut into[size - 1], &from[0]);
        }
    }
}

#[inline(always)]
fn add(into: &mut [f64], from: &[f64]) {
    for (into, x) in into.iter_mut().zip(from) {
        *into += x;
    }
}

#[inline(always)]
fn add_both(into: &mut [f64], left: &[f64], right: &[f64]) {
    for (into, (left, right)) in into.iter_mut().zip(left.iter().zip(right)) {
        *into += left + right;
    }
}

/// Computes into = Σ_i w_i from_i.
#[inline(always)]
fn weighted_sum(into: &mut [f64], [x, y, z]: [&[f64]; 3], w: [f64; 3]) {
    for (into, ((x, y), z)) in into.iter_mut().zip(x.iter().zip(y).zip(z)) {
        *into = w[0] * x + w[1] * y + w[2] * z;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns in how many coordinates two cells differ, or None if one differs by more than the kernel reaches.
    fn differing(axes: &[(usize, Axis)], mut a: usize, mut b: usize) -> Option<usize> {
        let mut k = 0;
        for &(size, axis) in axes.iter().rev() {
            let d = (a % size).abs_diff(b % size);
            let d = if axis == Axis::Circle { d.min(size - d) } else { d };
            if d > 1 || (d == 1 && axis == Axis::Apart) {
                return None;
            }
            k += d;
            (a, b) = (a / size, b / size);
        }
        Some(k)
    }

    #[test]
    fn smoothing_is_the_sum_over_neighbours() {
        use Axis::{Apart, Circle, Line};
        let grids: [&[(usize, Axis)]; 6] = [
            &[(1, Circle)],
            &[(2, Circle), (2, Line), (3, Circle)],
            &[(5, Apart), (4, Circle)],
            &[(4, Circle), (3, Apart), (5, Line)],
            &[(3, Line), (4, Line), (5, Circle), (3, Circle), (4, Apart)],
            &[(3, Circle), (2, Line), (3, Line), (2, Circle), (3, Circle), (4, Circle)],
        ];
        for axes in grids {
            let kernel = Kernel::exponential(axes.to_vec(), 0.7).unwrap();
            let x: Vec<f64> = (0..kernel.cells()).map(|cell| ((cell * 7919) % 101) as f64 - 50.0).collect();
            for (cell, found) in smoothed(&kernel, &x).into_iter().enumerate() {
                let weight = |other| differing(axes, cell, other).map_or(0.0, |k| (-(k as f64).sqrt() / 0.7).exp());
                let (sum, mass) = x.iter().enumerate().fold((0.0, 0.0), |(sum, mass), (other, x)| {
                    (sum + weight(other) * x, mass + weight(other) * x.abs())
                });
                assert!((found - sum).abs() <= 1e-13 * mass, "{axes:?}, cell {cell}: {found} instead of {sum}");
            }
        }
    }

    #[test]
    fn what_is_no_kernel() {
        assert!(Kernel::exponential(vec![(3, Axis::Line)], 0.0).is_err());
        assert!(Kernel::exponential(vec![(3, Axis::Line)], f64::NAN).is_err());
        assert!(Kernel::exponential(vec![], 1.0).is_err());
        assert!(Kernel::exponential(vec![(0, Axis::Line)], 1.0).is_err());
        assert!(Kernel::exponential(vec![(1 << 20, Axis::Line), (1 << 20, Axis::Line)], 1.0).is_err());
    }
}
