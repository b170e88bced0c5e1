//! Threads that read units of a log, while the calling thread watches for signals and reports progress.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use offpolicy_core::log::scan::{self, Join, Scan};
use offpolicy_core::pass::engine::Engine;
use offpolicy_core::pass::memory::Budget;
use offpolicy_core::pass::normalisers::{Normalisers, Tables};
use offpolicy_core::pass::plan::{Pass, Plan};
use offpolicy_core::pass::stamp::Stamp;
use offpolicy_core::pass::wire;
use pyo3::prelude::*;

use crate::columns::{Converter, Spec};
use crate::errors::{Failure, bad_state, caught};

/// How often signals are looked at.
const PULSE: Duration = Duration::from_millis(50);
/// More threads than this are not started.
const MOST_THREADS: usize = 1024;

/// What a worker has at hand.
pub struct Worker<'a> {
    /// Its own reader.
    pub scan: Scan,
    /// Its own scratch memory.
    pub converter: Converter,
    /// What to read.
    pub spec: &'a Spec,
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

    /// Counts rows for the progress; false if the work is to stop.
    pub fn go_on(&self, rows: usize) -> bool {
        self.shared.rows.fetch_add(rows as u64, Ordering::Relaxed);
        !self.shared.stop.load(Ordering::Relaxed)
    }
}

/// One pass of a plan.
#[derive(Clone)]
pub struct Job {
    /// What to read and compute.
    pub spec: Spec,
    /// What its states are made for.
    pub stamp: Stamp,
    /// Which pass.
    pub pass: Pass,
    /// The tables made of what the first pass found, which all readers share …
    tables: Tables,
    /// … as they share the limit of memory, …
    budget: Arc<Budget>,
    /// … and whether it saw only values of ordinary magnitude.
    tame: bool,
    /// Number of threads.
    pub threads: usize,
    /// Called with the rows read so far.
    pub progress: Option<Arc<Py<PyAny>>>,
}

/// Normalisers as they travel, where they can be those of a plan.
pub fn normalisers(bytes: &[u8], plan: &Plan) -> PyResult<Normalisers> {
    let (kind, normalisers): (String, Normalisers) = wire::decode(bytes).map_err(bad_state)?;
    if kind != Normalisers::KIND {
        return Err(Failure::State("these bytes are no normalisers".to_owned()).into());
    }
    normalisers.check(plan).map_err(|why| Failure::State(format!("the state belongs elsewhere: {why}")))?;
    Ok(normalisers)
}

impl Job {
    /// Reads the arguments that all scans share.
    pub fn new(
        spec: &str,
        pass: &str,
        normalisers: Option<&[u8]>,
        threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let pass = serde_json::from_str(&format!("{pass:?}")).map_err(|error| Failure::Internal(error.to_string()))?;
        let (stamp, spec) = (Stamp::new(&Spec::lasting(spec)?, pass, normalisers), Spec::parse(spec)?);
        let normalisers = normalisers.map(|bytes| self::normalisers(bytes, &spec.plan)).transpose()?;
        Ok(Self {
            tame: normalisers.as_ref().is_some_and(|normalisers| normalisers.tame),
            tables: Tables::new(&spec.plan, normalisers),
            budget: Arc::new(Budget::with_place(spec.plan.memory, std::env::temp_dir())),
            spec,
            stamp,
            pass,
            threads: threads.clamp(1, MOST_THREADS),
            progress: progress.map(Arc::new),
        })
    }

    /// A reader for this pass.
    pub fn scan(&self) -> Scan {
        let (tables, budget) = (self.tables.clone(), self.budget.clone());
        Scan::new(Engine::with_tables(self.spec.plan.clone(), self.pass, tables, budget), self.tame)
    }

    /// Runs `work` on every thread until each returns, and adds up what they read.
    pub fn run<F>(&self, py: Python<'_>, work: F) -> PyResult<scan::Partial>
    where
        F: Fn(&mut Worker) -> Result<(), Failure> + Sync,
    {
        let shared = Shared::default();
        let partials = py.detach(|| self.run_threads(&shared, &work))?;
        let mut join = shared.join.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut whole = self.scan();
        for partial in partials {
            whole.merge(&mut join, partial);
        }
        Ok(whole.into_partial(join))
    }

    fn run_threads<F>(&self, shared: &Shared, work: &F) -> Result<Vec<scan::Partial>, Failure>
    where
        F: Fn(&mut Worker) -> Result<(), Failure> + Sync,
    {
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            let mut waiting = 0;
            for _ in 0..self.threads {
                let sender = sender.clone();
                let worker = move || {
                    let result = caught(|| {
                        let (scan, converter) = (self.scan(), Converter::default());
                        let mut worker = Worker { scan, converter, spec: &self.spec, shared };
                        work(&mut worker)?;
                        Ok(worker.scan.into_partial(Join::default()))
                    });
                    // The receiver outlives the scope.
                    let _ = sender.send(result.unwrap_or_else(|why| Err(Failure::Internal(why))));
                };
                match thread::Builder::new().spawn_scoped(scope, worker) {
                    Ok(_) => waiting += 1,
                    Err(why) if waiting == 0 => {
                        return Err(Failure::Input(format!("no thread could be started to read the log: {why}")));
                    }
                    Err(_) => break, // fewer threads do the same work
                }
            }
            let (mut partials, mut failure) = (vec![], None);
            while waiting > 0 {
                match receiver.recv_timeout(PULSE) {
                    Ok(Ok(partial)) => partials.push(partial),
                    Ok(Err(why)) => failure = failure.or(Some(why)),
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(why) = self.pulse(shared) {
                            failure = failure.or(Some(why.into()));
                        }
                        if failure.is_some() {
                            shared.stop.store(true, Ordering::Relaxed);
                        }
                        continue;
                    }
                }
                waiting -= 1;
                if failure.is_some() {
                    shared.stop.store(true, Ordering::Relaxed);
                }
            }
            failure.map_or(Ok(partials), Err)
        })
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
