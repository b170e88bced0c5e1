//! Memory for L numbers per cell that begins on a cache line, so that no vector of numbers lies across two lines.

use std::ops::{Deref, DerefMut, Range};

/// The number of f64 in a cache line.
const LINE: usize = 8;

/// L numbers for each of some cells.
pub struct Cells<const L: usize> {
    room: Vec<f64>,
    /// The aligned part of `room`.
    used: Range<usize>,
}

impl<const L: usize> Cells<L> {
    /// Makes cells that are all 0.
    pub fn zeros(cells: usize) -> Self {
        let room = vec![0.0; LINE + cells * L];
        let start = room.as_ptr().align_offset(LINE * size_of::<f64>()).min(LINE);
        Self { room, used: start..start + cells * L }
    }
}

impl<const L: usize> Deref for Cells<L> {
    type Target = [[f64; L]];

    #[inline(always)]
    fn deref(&self) -> &[[f64; L]] {
        self.room[self.used.clone()].as_chunks().0
    }
}

impl<const L: usize> DerefMut for Cells<L> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [[f64; L]] {
        self.room[self.used.clone()].as_chunks_mut().0
    }
}
