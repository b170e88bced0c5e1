//! Work on the rows of a batch, divided among threads in contiguous parts.

/// The number of rows below which a thread is not worth its start.
const WORTH_A_THREAD: usize = 1 << 15;

/// Returns how many of the allowed threads are worth starting for this many rows.
pub fn threads_for(rows: usize, allowed: usize) -> usize {
    (rows / WORTH_A_THREAD).clamp(1, allowed.max(1))
}

/// Cuts rows into `parts` parts of nearly equal size, each with the index of its first row.
pub fn split<T>(mut rows: &mut [T], parts: usize) -> Vec<(usize, &mut [T])> {
    let (total, mut start) = (rows.len(), 0);
    (1..=parts)
        .map(|part| {
            let end = total * part / parts;
            let (head, tail) = std::mem::take(&mut rows).split_at_mut(end - start);
            rows = tail;
            (std::mem::replace(&mut start, end), head)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_rows_once() {
        for (n, parts) in [(0, 1), (5, 2), (7, 3), (2, 4)] {
            let mut rows: Vec<usize> = (0..n).collect();
            let cut = split(&mut rows, parts);
            assert_eq!(cut.len(), parts);
            for (start, part) in cut {
                part.iter_mut().enumerate().for_each(|(i, row)| *row -= start + i);
            }
            assert!(rows.iter().all(|&row| row == 0));
        }
    }
}
