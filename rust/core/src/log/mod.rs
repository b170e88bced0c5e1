//! Logs: ids, runs, checks of columns, problems, episodes, and the scan that reads them.

pub mod checks;
pub mod content;
pub mod ending;
pub mod entries;
pub mod episode;
pub mod ids;
pub mod problem;
pub mod ranges;
pub mod runs;
pub mod scan;
pub mod sorted_runs;
pub mod steps;
