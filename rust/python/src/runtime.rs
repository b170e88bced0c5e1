//! Threads that read units of a log, while the calling thread watches for signals and reports progress.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use offpolicy_core::log::scan::{self, Join, Scan};
use offpolicy_core::pass::engine::Engine;
use offpolicy_core::pass::memory::Budget;
use pyo3::prelude::*;

use crate::columns::Converter;
use crate::errors::{Failure, caught};
use crate::job::Job;
use crate::spec::Content;

/// The interval at which signals are checked.
const PULSE: Duration = Duration::from_millis(50);
/// The largest number of threads.
const MOST_THREADS: usize = 1024;

/// The tools of one worker.
pub struct Worker<'a> {
    /// The reader of this worker.
    pub scan: Scan,
    /// The scratch memory of this worker.
    pub converter: Converter,
    /// The columns to read and the plan.
    pub spec: &'a Content,
    shared: &'a Shared,
}

#[derive(Default)]
struct Shared {
    join: Mutex<Join>,
    rows: AtomicU64,
    stop: AtomicBool,
}

impl Worker<'_> {
    /// Ends a unit.
    pub fn end_unit(&mut self) {
        let mut join = self.shared.join.lock().unwrap_or_else(PoisonError::into_inner);
        self.scan.end_unit(&mut join);
    }

    /// Counts rows for the progress. Returns false if the work must stop.
    pub fn go_on(&self, rows: usize) -> bool {
        self.shared.rows.fetch_add(rows as u64, Ordering::Relaxed);
        !self.shared.stop.load(Ordering::Relaxed)
    }
}

/// The result of one thread, or the reason why it failed.
type Answer = Result<scan::Partial, Failure>;

/// The readers of one pass, which share a limit of memory.
pub struct Readers<'a> {
    /// The pass to run.
    pub job: &'a Job,
    budget: Arc<Budget>,
    /// The number of threads.
    pub threads: usize,
    /// A function that is called with the number of rows read so far.
    progress: Option<Py<PyAny>>,
}

impl Job {
    /// Makes a reader for this pass, within a limit of memory.
    pub fn scan(&self, budget: &Arc<Budget>) -> Scan {
        let (tables, budget) = (self.tables.clone(), budget.clone());
        Scan::new(Engine::with_tables(self.plan().clone(), self.pass, tables, budget), self.tame)
    }

    /// Returns the limit of memory, of which nothing has been taken. Ids beyond it go to temporary files.
    pub fn budget(&self) -> Arc<Budget> {
        Arc::new(Budget::with_place(self.plan().memory, std::env::temp_dir()))
    }
}

impl<'a> Readers<'a> {
    /// Makes readers on up to `threads` threads.
    pub fn new(job: &'a Job, threads: usize, progress: Option<Py<PyAny>>) -> Self {
        Self { job, budget: job.budget(), threads: threads.clamp(1, MOST_THREADS), progress }
    }

    /// Runs `work` on every thread until each returns, and adds up their results.
    pub fn run<F>(&self, py: Python<'_>, work: F) -> PyResult<scan::Partial>
    where
        F: Fn(&mut Worker) -> Result<(), Failure> + Sync,
    {
        let shared = Shared::default();
        let read = |sender: Sender<Answer>| {
            let result = caught(|| {
                let (scan, converter) = (self.job.scan(&self.budget), Converter::default());
                let mut worker = Worker { scan, converter, spec: self.job.spec(), shared: &shared };
                work(&mut worker)?;
                Ok(worker.scan.into_partial(Join::default()))
            });
            // Sending cannot fail, because the receiver outlives the scope.
            let _ = sender.send(result.unwrap_or_else(|why| Err(Failure::Internal(why))));
        };
        let partials = py.detach(|| {
            let (sender, receiver) = channel();
            thread::scope(|scope| {
                let mut started = 0;
                for _ in 0..self.threads {
                    let (sender, read) = (sender.clone(), &read);
                    match thread::Builder::new().spawn_scoped(scope, move || read(sender)) {
                        Ok(_) => started += 1,
                        Err(why) if started == 0 => {
                            return Err(Failure::Input(format!("no thread could be started to read the log: {why}")));
                        }
                        Err(_) => break, // fewer threads do the same work
                    }
                }
                self.wait(&shared, &receiver, started)
            })
        })?;
        let mut join = shared.join.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut whole = self.job.scan(&self.budget);
        for partial in partials {
            whole.merge(&mut join, partial);
        }
        Ok(whole.into_partial(join))
    }

    /// Waits for the answers of all threads, and stops them if one fails or the user interrupts.
    fn wait(&self, shared: &Shared, answers: &Receiver<Answer>, started: usize) -> Result<Vec<scan::Partial>, Failure> {
        let (mut partials, mut failure, mut waiting) = (vec![], None, started);
        while waiting > 0 {
            match answers.recv_timeout(PULSE) {
                Ok(answer) => {
                    waiting -= 1;
                    match answer {
                        Ok(partial) => partials.push(partial),
                        Err(why) => failure = failure.or(Some(why)),
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(why) = self.pulse(shared) {
                        failure = failure.or(Some(why.into()));
                    }
                }
            }
            if failure.is_some() {
                shared.stop.store(true, Ordering::Relaxed);
            }
        }
        failure.map_or(Ok(partials), Err)
    }

    fn pulse(&self, shared: &Shared) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            if let Some(progress) = &self.progress {
                progress.call1(py, (shared.rows.load(Ordering::Relaxed),))?;
            }
            Ok(())
        })
    }
}
