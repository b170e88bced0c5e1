//! Records of one size in sorted runs, in memory or, beyond the limit of memory, in files.
//!
//! Records are collected in runs that are sorted when they are full and never move again. So memory does not double
//! when the list grows. It does not double either when equal records are searched: the runs are then read side by side,
//! in one order. Where memory ends, all runs are merged into a file without a name, which vanishes with the process,
//! however that ends. When there are many runs of one level in files, they are merged into one of the next level, so
//! that few runs are read side by side.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of records of the first run in memory. A later run holds an eighth of the records in memory, but never
/// fewer than this.
const FIRST: usize = 1 << 10;
/// The largest number of records of a run in memory.
const LAST: usize = 1 << 20;
/// The number of written runs of one level that are merged into one of the next level.
const MANY: usize = 16;
/// The number of bytes that are read or written at a time.
const BUFFER: usize = 1 << 15;

static FILES: AtomicU64 = AtomicU64::new(0);

/// A set of records of N bytes, which sort by their bytes.
#[derive(Clone, Debug)]
pub struct SortedRuns<const N: usize> {
    held: Vec<Vec<[u8; N]>>,
    open: Vec<[u8; N]>,
    /// The runs in files, by level.
    written: Vec<Vec<Written>>,
    in_memory: usize,
}

/// A sorted run in a file of its own.
#[derive(Clone, Debug)]
struct Written {
    file: Arc<File>,
    len: usize,
}

impl<const N: usize> Default for SortedRuns<N> {
    fn default() -> Self {
        Self { held: vec![], open: vec![], written: vec![], in_memory: 0 }
    }
}

impl<const N: usize> SortedRuns<N> {
    /// Adds a record.
    pub fn push(&mut self, record: [u8; N]) {
        if self.open.len() == self.open.capacity() {
            self.seal();
            self.open.reserve_exact((self.in_memory / 8).clamp(FIRST, LAST));
        }
        self.open.push(record);
        self.in_memory += 1;
    }

    /// Adds many records at once.
    pub fn push_run(&mut self, mut run: Vec<[u8; N]>) {
        sort(&mut run);
        self.in_memory += run.len();
        self.held.push(run);
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.in_memory + self.written.iter().flatten().map(|run| run.len).sum::<usize>()
    }

    /// Returns true if there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes of the records in memory.
    pub fn bytes(&self) -> u64 {
        (self.in_memory * N) as u64
    }

    /// Adds the records of another set.
    pub fn merge(&mut self, mut other: Self) {
        other.seal();
        self.in_memory += other.in_memory;
        self.held.append(&mut other.held);
        if self.written.len() < other.written.len() {
            self.written.resize(other.written.len(), vec![]);
        }
        for (ours, theirs) in self.written.iter_mut().zip(other.written) {
            ours.extend(theirs);
        }
    }

    /// Moves all records from memory to a file without a name in a folder.
    pub fn spill(&mut self, folder: &Path) -> io::Result<()> {
        if self.in_memory == 0 {
            return Ok(());
        }
        self.seal();
        let run = write(folder, self.held.iter().map(|run| Cursor::Held(run.iter())).collect())?;
        (self.held, self.in_memory) = (vec![], 0);
        self.add_written(0, run, folder)
    }

    fn add_written(&mut self, level: usize, run: Written, folder: &Path) -> io::Result<()> {
        if self.written.len() <= level {
            self.written.resize(level + 1, vec![]);
        }
        self.written[level].push(run);
        if self.written[level].len() < MANY {
            return Ok(());
        }
        let cursors = self.written[level].iter().map(Written::cursor).collect::<io::Result<_>>()?;
        let merged = write::<N>(folder, cursors)?;
        self.written[level].clear();
        self.add_written(level + 1, merged, folder)
    }

    /// Returns the records in memory, in any order. These are all records if none have been spilled to files.
    pub fn held(&self) -> impl Iterator<Item = &[u8; N]> {
        self.held.iter().flatten().chain(&self.open)
    }

    /// Returns the records by run. A run fits into memory if it did when it was written.
    pub fn runs(&self) -> impl Iterator<Item = io::Result<Vec<[u8; N]>>> {
        let held = self.held.iter().chain([&self.open]).map(|run| Ok(run.clone()));
        held.chain(self.written.iter().flatten().map(|run| InOrder::new(vec![run.cursor()?])?.collect()))
    }

    /// Returns true if a record begins with these bytes.
    pub fn contains(&self, beginning: &[u8]) -> io::Result<bool> {
        let inside =
            |run: &Vec<[u8; N]>| run.binary_search_by(|record| record[..beginning.len()].cmp(beginning)).is_ok();
        if self.open.iter().any(|record| record.starts_with(beginning)) || self.held.iter().any(inside) {
            return Ok(true);
        }
        for run in self.written.iter().flatten() {
            if run.contains::<N>(beginning)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns all records in order.
    pub fn in_order(&mut self) -> io::Result<InOrder<'_, N>> {
        self.seal();
        let held = self.held.iter().map(|run| Ok(Cursor::Held(run.iter())));
        InOrder::new(held.chain(self.written.iter().flatten().map(Written::cursor)).collect::<io::Result<_>>()?)
    }

    fn seal(&mut self) {
        if !self.open.is_empty() {
            let mut run = std::mem::take(&mut self.open);
            sort(&mut run);
            if run.len() < run.capacity() / 2 {
                run.shrink_to_fit();
            }
            self.held.push(run);
        }
    }
}

impl Written {
    fn cursor<const N: usize>(&self) -> io::Result<Cursor<'_, N>> {
        (&*self.file).rewind()?;
        Ok(Cursor::Written(BufReader::with_capacity(BUFFER, &self.file), self.len))
    }

    fn contains<const N: usize>(&self, beginning: &[u8]) -> io::Result<bool> {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut record = [0; N];
            (&*self.file).seek(SeekFrom::Start((middle * N) as u64))?;
            (&*self.file).read_exact(&mut record)?;
            match record[..beginning.len()].cmp(beginning) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(true),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(false)
    }
}

/// The rest of a run that is being read.
enum Cursor<'a, const N: usize> {
    Held(std::slice::Iter<'a, [u8; N]>),
    Written(BufReader<&'a File>, usize),
}

impl<const N: usize> Cursor<'_, N> {
    fn next(&mut self) -> io::Result<Option<[u8; N]>> {
        match self {
            Self::Held(records) => Ok(records.next().copied()),
            Self::Written(_, 0) => Ok(None),
            Self::Written(file, left) => {
                let mut record = [0; N];
                file.read_exact(&mut record)?;
                *left -= 1;
                Ok(Some(record))
            }
        }
    }
}

/// The records of many runs as one sorted sequence, which ends with the first error.
pub struct InOrder<'a, const N: usize> {
    cursors: Vec<Cursor<'a, N>>,
    next: BinaryHeap<Reverse<([u8; N], usize)>>,
}

impl<'a, const N: usize> InOrder<'a, N> {
    fn new(mut cursors: Vec<Cursor<'a, N>>) -> io::Result<Self> {
        let mut next = BinaryHeap::with_capacity(cursors.len());
        for (run, cursor) in cursors.iter_mut().enumerate() {
            next.extend(cursor.next()?.map(|record| Reverse((record, run))));
        }
        Ok(Self { cursors, next })
    }
}

impl<const N: usize> Iterator for InOrder<'_, N> {
    type Item = io::Result<[u8; N]>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut top = self.next.peek_mut()?;
        let Reverse((found, run)) = *top;
        match self.cursors[run].next() {
            Ok(Some(record)) => *top = Reverse((record, run)),
            Ok(None) => drop(PeekMut::pop(top)),
            Err(error) => {
                drop(top);
                self.next.clear();
                return Some(Err(error));
            }
        }
        Some(Ok(found))
    }
}

/// Sorts records by their bytes. Most differ in the first sixteen bytes, which are compared as one number.
fn sort<const N: usize>(records: &mut [[u8; N]]) {
    records.sort_unstable_by(|a, b| match (a.split_first_chunk::<16>(), b.split_first_chunk::<16>()) {
        (Some((x, rest)), Some((y, other))) => {
            u128::from_be_bytes(*x).cmp(&u128::from_be_bytes(*y)).then(rest.cmp(other))
        }
        _ => a.cmp(b),
    });
}

/// Merges runs into a new file.
fn write<const N: usize>(folder: &Path, runs: Vec<Cursor<'_, N>>) -> io::Result<Written> {
    let file = nameless(folder)?;
    let (mut sink, mut len) = (BufWriter::with_capacity(BUFFER, &file), 0);
    for record in InOrder::new(runs)? {
        sink.write_all(&record?)?;
        len += 1;
    }
    sink.flush()?;
    drop(sink);
    Ok(Written { file: Arc::new(file), len })
}

/// Opens a file and removes its name at once, so that nothing is left of it when it is closed or the process ends.
fn nameless(folder: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    loop {
        let name = format!(".offpolicy-ids-{}-{}", process::id(), FILES.fetch_add(1, Ordering::Relaxed));
        let path = folder.join(name);
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {} // a process of another machine has this number
            Err(error) => return Err(error),
            Ok(file) => return fs::remove_file(&path).map(|()| file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Runs = SortedRuns<2>;

    fn filled(records: &[[u8; 2]], spill_every: usize) -> Runs {
        let mut runs = Runs::default();
        for (index, record) in records.iter().enumerate() {
            runs.push(*record);
            if index % spill_every == 0 {
                runs.spill(&std::env::temp_dir()).unwrap();
            }
        }
        runs
    }

    proptest! {
        #[test]
        fn spilled_or_not_the_records_are_the_same(
            mut records in prop::collection::vec(any::<[u8; 2]>(), 0..2000), spill_every in 1..3000usize, cut in 0..2000usize
        ) {
            let cut = cut.min(records.len());
            let mut runs = filled(&records[..cut], spill_every);
            runs.merge(filled(&records[cut..], spill_every * 7));
            prop_assert_eq!(runs.len(), records.len());
            for probe in [[0, 0], [7, 200], records.first().copied().unwrap_or([1, 1])] {
                prop_assert_eq!(runs.contains(&probe).unwrap(), records.contains(&probe));
                prop_assert_eq!(runs.contains(&probe[..1]).unwrap(), records.iter().any(|r| r[0] == probe[0]));
            }
            let mut by_run: Vec<_> = runs.runs().flat_map(Result::unwrap).collect();
            by_run.sort_unstable();
            records.sort_unstable();
            prop_assert_eq!(&by_run, &records);
            let found: Vec<_> = runs.in_order().unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(found, records);
        }
    }

    #[test]
    fn many_spills_leave_few_runs_and_no_file() {
        let folder = std::env::temp_dir().join(format!("offpolicy-test-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut runs = Runs::default();
        for number in 0..1000u16 {
            runs.push((number * 7 % 1000).to_be_bytes());
            runs.spill(&folder).unwrap();
            assert_eq!(runs.bytes(), 0);
        }
        assert!(runs.written.iter().map(Vec::len).sum::<usize>() < 3 * MANY);
        assert!(runs.in_order().unwrap().map(Result::unwrap).eq((0..1000u16).map(u16::to_be_bytes)));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn where_nothing_can_be_written_the_records_stay() {
        let mut runs = filled(&[[3, 4], [1, 2]], 9);
        assert!(runs.spill(Path::new("/nowhere/at/all")).is_err());
        runs.push([2, 2]);
        let found: Vec<_> = runs.in_order().unwrap().map(Result::unwrap).collect();
        assert_eq!(found, [[1, 2], [2, 2], [3, 4]]);
    }

    #[test]
    fn a_file_that_was_cut_short_is_an_error_and_not_an_end() {
        let mut runs = filled(&[[3, 4], [1, 2], [5, 6]], 1);
        runs.written[0][1].file.set_len(1).unwrap();
        assert!(runs.in_order().is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof));
    }
}
