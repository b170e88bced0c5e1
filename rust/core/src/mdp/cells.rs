//! Cells of a regular grid: cell = floor(scale · x + ½) a coordinate, the last coordinate runs fastest.

use super::split::{split, threads_for};

/// A regular grid; coordinate i has the cells low[i], low[i] + 1, …, low[i] + size[i] − 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    axes: Vec<Axis>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Axis {
    size: i64,
    low: i64,
    scale: f64,
}

/// A coordinate that is in no cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outside {
    /// Which row.
    pub row: usize,
    /// Which coordinate.
    pub coordinate: usize,
}

impl Axis {
    /// The cell of x, from 0.
    #[inline(always)]
    fn cell(&self, x: f64) -> Option<i64> {
        let y = x * self.scale + 0.5;
        // y is compared before it is cut: NaN and whatever no integer holds are outside.
        let inside = y >= self.low as f64 && y < (self.low + self.size) as f64;
        let toward_zero = y as i64;
        let floor = toward_zero - i64::from(toward_zero as f64 > y);
        inside.then_some(floor - self.low)
    }
}

impl Grid {
    /// A grid from the number of cells, the first cell and the scale of each coordinate; None if they do not fit.
    pub fn new(size: &[u32], low: &[i32], scale: &[f64]) -> Option<Self> {
        let same = size.len() == low.len() && low.len() == scale.len() && !size.is_empty();
        let cells = size.iter().try_fold(1i64, |cells, &n| cells.checked_mul(n.into()));
        let axes = size.iter().zip(low).zip(scale);
        let axes = axes.map(|((&size, &low), &scale)| Axis { size: size.into(), low: low.into(), scale }).collect();
        (same && cells.is_some_and(|cells| cells > 0)).then_some(Self { axes })
    }

    /// How many coordinates it has.
    pub fn dimensions(&self) -> usize {
        self.axes.len()
    }

    /// Fills in the cell of every row, given a column for each coordinate; or the first row that is outside.
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
        cells.fill(0);
        let mut outside: Option<Outside> = None;
        for (coordinate, (axis, column)) in self.axes.iter().zip(columns).enumerate() {
            let column = &column[start..start + cells.len()];
            let mut all = true;
            for (cell, &x) in cells.iter_mut().zip(column) {
                let found = axis.cell(x);
                all &= found.is_some();
                *cell = *cell * axis.size + found.unwrap_or(0);
            }
            if !all {
                let row = column.iter().position(|&x| axis.cell(x).is_none()).map(|row| row + start);
                outside = outside.into_iter().chain(row.map(|row| Outside { row, coordinate })).min();
            }
        }
        outside.map_or(Ok(()), Err)
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
