//! The content of a log as a pass has read it. It does not depend on order and partition, so two passes over the same
//! log find the same content.

use serde::{Deserialize, Serialize};

use crate::log::ids::Id;
use crate::number::fingerprint::{fingerprint, mix};

/// Sums over a log that differ if the log changes between two passes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The number of rows.
    pub rows: u64,
    /// The sum of the fingerprints of the episodes, each made of the episode's id and length.
    pub episodes: u64,
    /// For each slot of the plan, the sum of the bits of its values, where bits are added.
    pub columns: Vec<u64>,
}

impl Content {
    /// Adds the bits of the first rows of some columns.
    pub fn add_bits(&mut self, columns: &[&[f64]], rows: usize, arch: pulp::Arch) {
        self.columns.resize(columns.len(), 0);
        for (sum, column) in self.columns.iter_mut().zip(columns) {
            *sum = sum.wrapping_add(arch.dispatch(BitSum(&column[..rows])));
        }
    }

    /// Adds an episode with this id and number of steps.
    pub fn add_episode(&mut self, id: &Id, steps: u64) {
        let id = match id {
            Id::Int(i) => mix(*i as u64),
            Id::Text(text) => fingerprint(text.as_bytes()),
        };
        self.episodes = self.episodes.wrapping_add(mix(id ^ steps));
    }

    /// Adds the content of another part of the log.
    pub fn merge(&mut self, other: &Self) {
        self.rows = self.rows.wrapping_add(other.rows);
        self.episodes = self.episodes.wrapping_add(other.episodes);
        self.columns.resize(self.columns.len().max(other.columns.len()), 0);
        for (ours, theirs) in self.columns.iter_mut().zip(&other.columns) {
            *ours = ours.wrapping_add(*theirs);
        }
    }
}

/// The sum of the bits of floats, compiled for each instruction set; the processor's is chosen at run time.
struct BitSum<'a>(&'a [f64]);

impl pulp::WithSimd for BitSum<'_> {
    type Output = u64;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) -> u64 {
        self.0.iter().fold(0, |sum, x| sum.wrapping_add(x.to_bits()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole_in_any_order() {
        let (x, arch) = ([1.0, -2.5, 3.25, 0.1, 7.0], pulp::Arch::new());
        let part = |rows: std::ops::Range<usize>, id: i128| {
            let mut content = Content { rows: rows.len() as u64, ..Content::default() };
            content.add_bits(&[&x[rows.clone()]], rows.len(), arch);
            content.add_episode(&Id::Int(id), rows.len() as u64);
            content
        };
        let (mut there, mut back) = (part(0..2, 1), part(2..5, 2));
        there.merge(&part(2..5, 2));
        back.merge(&part(0..2, 1));
        assert_eq!(there, back);
        back.merge(&part(0..1, 3));
        assert_ne!(there, back);
        assert_ne!(part(0..2, 1).episodes, part(0..2, 2).episodes);
    }
}
