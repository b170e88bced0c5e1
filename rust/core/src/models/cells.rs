//! Cells of a regular grid: the cell of a coordinate is floor(scale · x + ½), and the last coordinate runs fastest.

use super::split::{split, threads_for};

const BLOCK: usize = 256;
const MOST_CELLS: u64 = 1 << 52;

/// A regular grid. Coordinate i has the cells `low[i]`, `low[i] + 1`, …, `low[i] + size[i] - 1`.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    axes: Vec<Axis>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Axis {
    size: f64,
    low: f64,
    scale: f64,
}

/// The place of a coordinate that is in no cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outside {
    /// Index of the row.
    pub row: usize,
    /// Index of the coordinate.
    pub coordinate: usize,
}

impl Axis {
    /// Returns the cell of x, counted from 0: a whole number below `size` if x is inside.
    #[inline(always)]
    fn cell(&self, x: f64) -> f64 {
        (x * self.scale + 0.5).floor() - self.low
    }

    /// Returns true if the cell exists, and false for NaN.
    #[inline(always)]
    fn holds(&self, cell: f64) -> bool {
        cell >= 0.0 && cell < self.size
    }
}

impl Grid {
    /// Makes a grid from the number of cells, the first cell and the scale of each coordinate. Returns None if they do
    /// not fit.
    pub fn new(size: &[u32], low: &[i32], scale: &[f64]) -> Option<Self> {
        let same = size.len() == low.len() && low.len() == scale.len() && !size.is_empty();
        let cells = size.iter().try_fold(1u64, |cells, &n| cells.checked_mul(n.into()));
        let axes = size.iter().zip(low).zip(scale);
        let axes = axes.map(|((&size, &low), &scale)| Axis { size: size.into(), low: low.into(), scale }).collect();
        (same && cells.is_some_and(|cells| (1..MOST_CELLS).contains(&cells))).then_some(Self { axes })
    }

    /// Returns the number of coordinates.
    pub fn dimensions(&self) -> usize {
        self.axes.len()
    }

    /// Fills in the cell of every row, given one column for each coordinate, or returns the first row that is outside.
    pub fn index(&self, columns: &[&[f64]], cells: &mut [i64], threads: usize) -> Result<(), Outside> {
        let parts = split(cells, threads_for(cells.len(), threads));
        let found = std::thread::scope(|scope| {
            let work = |(start, cells): (usize, &mut [i64])| self.index_part(columns, start, cells).err();
            let mut parts = parts.into_iter();
            let mine = parts.next();
            let others: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
            let first = mine.and_then(work);
            let rest = others.into_iter().flat_map(|part| part.join().unwrap_or_else(|e| std::panic::resume_unwind(e)));
            rest.chain(first).min()
        });
        found.map_or(Ok(()), Err)
    }

    fn index_part(&self, columns: &[&[f64]], start: usize, cells: &mut [i64]) -> Result<(), Outside> {
        let arch = pulp::Arch::new();
        for (block, cells) in cells.chunks_mut(BLOCK).enumerate() {
            let start = start + block * BLOCK;
            if !arch.dispatch(IndexBlock { grid: self, columns, start, cells }) {
                return Err(self.first_outside(columns, start));
            }
        }
        Ok(())
    }

    /// Finds the first row from `start` on that is in no cell. The caller knows that there is one.
    #[cold]
    fn first_outside(&self, columns: &[&[f64]], start: usize) -> Outside {
        let rows = self.axes.iter().zip(columns).enumerate().filter_map(|(coordinate, (axis, column))| {
            let row = column[start..].iter().position(|&x| !axis.holds(axis.cell(x)))?;
            Some(Outside { row: start + row, coordinate })
        });
        rows.min().unwrap_or(Outside { row: start, coordinate: 0 })
    }
}

struct IndexBlock<'a> {
    grid: &'a Grid,
    columns: &'a [&'a [f64]],
    start: usize,
    cells: &'a mut [i64],
}

impl pulp::WithSimd for IndexBlock<'_> {
    type Output = bool;

    /// Keeps whole numbers below 2^52 as floats, of which every processor computes several at once.
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) -> bool {
        let mut index = [0.0; BLOCK];
        let index = &mut index[..self.cells.len()];
        let mut outside = 0u64;
        for (axis, column) in self.grid.axes.iter().zip(self.columns) {
            for (index, &x) in index.iter_mut().zip(&column[self.start..self.start + self.cells.len()]) {
                let cell = axis.cell(x);
                outside |= u64::from(!axis.holds(cell));
                *index = *index * axis.size + cell;
            }
        }
        for (cell, &index) in self.cells.iter_mut().zip(index.iter()) {
            // The last 52 bits of 2^52 + i are i.
            *cell = ((index + MOST_CELLS as f64).to_bits() & (MOST_CELLS - 1)).cast_signed();
        }
        outside == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mountain_car_has_its_corners() {
        let grid = Grid::new(&[116, 37], &[-77, -18], &[64.0, 256.0]).unwrap();
        let mut cells = [0; 2];
        grid.index(&[&[-1.2, 0.6], &[-0.07, 0.07]], &mut cells, 1).unwrap();
        assert_eq!(cells, [0, 4291]);
    }

    #[test]
    fn the_first_row_outside_is_named() {
        let grid = Grid::new(&[2, 2], &[0, 0], &[1.0, 1.0]).unwrap();
        let mut cells = [0; 3];
        let columns: [&[f64]; 2] = [&[0.0, 1.0, 7.0], &[0.0, f64::NAN, 0.0]];
        assert_eq!(grid.index(&columns, &mut cells, 2), Err(Outside { row: 1, coordinate: 1 }));
    }

    proptest! {
        #[test]
        fn cells_are_floors(x in -1000.0..1000.0f64, scale in 0.01..300.0f64, low in -500..500i32, size in 1..1000u32) {
            let grid = Grid::new(&[size], &[low], &[scale]).unwrap();
            let cell = (x * scale + 0.5).floor() - f64::from(low);
            let mut found = [0];
            let inside = cell >= 0.0 && cell < f64::from(size);
            prop_assert_eq!(grid.index(&[&[x]], &mut found, 1).is_ok(), inside);
            if inside {
                prop_assert_eq!(found[0] as f64, cell);
            }
        }
    }
}
