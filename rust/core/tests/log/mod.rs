//! Small logs for the property tests, and their evaluation in any cut and any order of merging.

pub mod definition;

use offpolicy_core::diagnostics::numbers::diagnose;
use offpolicy_core::estimators::Estimator;
use offpolicy_core::log::checks::Check;
use offpolicy_core::log::ids::Id;
use offpolicy_core::log::problem::Place;
use offpolicy_core::log::scan::{Batch, EpisodeRun, Join, Partial, Scan};
use offpolicy_core::log::steps::Steps;
use offpolicy_core::pass::engine::Engine;
use offpolicy_core::pass::normalisers::Normalisers;
use offpolicy_core::pass::outcome::Outcome;
use offpolicy_core::pass::plan::{Pass, Plan, Policy, Ratio, Slot};

/// One logged step: r, π0, π1, Q̂, V̂, R̂, P̂/P.
pub type Row = [f64; 7];
/// The slots of a row.
pub const R: usize = 0;
pub const PI_0: usize = 1;
pub const PI_1: usize = 2;
pub const Q: usize = 3;
pub const V: usize = 4;
pub const R_HAT: usize = 5;
pub const P: usize = 6;
/// The constant c of `dr-bsl`.
pub const BASELINE: f64 = 0.5;

/// Episodes of any lengths, in the order of the log, with their ids.
#[derive(Clone, Debug)]
pub struct Log {
    pub ids: Vec<i128>,
    pub episodes: Vec<Vec<Row>>,
}

/// What is computed, and whether short episodes are folded in groups or each alone.
#[derive(Clone, Debug)]
pub struct Reading {
    pub plan: Plan,
    pub in_groups: bool,
}

/// The order in which the units of a log are merged.
#[derive(Clone, Debug)]
pub enum Tree {
    Unit(usize),
    Both(Box<Tree>, Box<Tree>),
}

impl Log {
    /// Makes a log of episodes 0, 1, 2, …
    pub fn new(episodes: Vec<Vec<Row>>) -> Self {
        Self { ids: (0..).take(episodes.len()).collect(), episodes }
    }

    /// Returns the same log with other rows.
    pub fn map(&self, change: impl Fn(usize, Row) -> Row) -> Self {
        let episode = |rows: &Vec<Row>| rows.iter().enumerate().map(|(t, &row)| change(t, row)).collect();
        Self { ids: self.ids.clone(), episodes: self.episodes.iter().map(episode).collect() }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.episodes.iter().map(Vec::len).sum()
    }

    /// Returns H.
    pub fn horizon(&self) -> usize {
        self.episodes.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Reads the rows from..to as a unit of their own.
    fn unit(&self, scan: &mut Scan, join: &mut Join, from: usize, to: usize) {
        let all =
            self.ids.iter().zip(&self.episodes).flat_map(|(&id, rows)| (0..).zip(rows).map(move |(t, r)| (id, t, r)));
        let chosen: Vec<(i128, i64, &Row)> = all.skip(from).take(to - from).collect();
        let columns: Vec<Vec<f64>> = (0..7).map(|slot| chosen.iter().map(|row| row.2[slot]).collect()).collect();
        let columns: Vec<&[f64]> = columns.iter().map(|column| &column[..]).collect();
        let steps: Vec<i64> = chosen.iter().map(|row| row.1).collect();
        let mut runs: Vec<EpisodeRun> = vec![];
        for (start, row) in chosen.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.id == Id::Int(row.0) => run.len += 1,
                _ => runs.push(EpisodeRun { start, len: 1, id: Id::Int(row.0) }),
            }
        }
        let place = Place { source: 0, row: from as u64 };
        let steps = Steps::Int64(&steps);
        let (columns, runs) = (&columns[..], &runs[..]);
        scan.push(&Batch { place, runs, complete: false, steps, columns, terminal: None, truncated: None, flaws: &[] });
        scan.end_unit(join);
    }

    /// Runs one pass over the log, which is cut before the rows `cuts` and whose units are merged as `tree` says.
    fn pass(&self, read: &Reading, pass: Pass, of: Option<&Normalisers>, cuts: &[usize], tree: &Tree) -> Partial {
        let tame = of.is_some_and(|normalisers| normalisers.tame);
        let scan = || {
            let mut engine = Engine::new(read.plan.clone(), pass, of);
            engine.takes_shorts &= read.in_groups;
            Scan::new(engine, tame)
        };
        let mut edges: Vec<usize> = cuts.iter().copied().chain([0, self.rows()]).collect();
        edges.sort_unstable();
        let (mut whole, mut join) = (scan(), Join::default());
        whole.merge(&mut join, self.part(&scan, &edges, tree));
        whole.finish(join)
    }

    fn part(&self, scan: &impl Fn() -> Scan, edges: &[usize], tree: &Tree) -> Partial {
        let (mut part, mut join) = (scan(), Join::default());
        match tree {
            Tree::Unit(unit) => self.unit(&mut part, &mut join, edges[*unit], edges[unit + 1]),
            Tree::Both(left, right) => {
                part.merge(&mut join, self.part(scan, edges, left));
                part.merge(&mut join, self.part(scan, edges, right));
            }
        }
        part.into_partial(join)
    }

    /// Computes all estimators of the policy of the columns, and of the mixtures (1−α)π1 + απ0 for each α.
    pub fn evaluate_in_parts(&self, discount: f64, alphas: &[f64], cuts: &[usize], tree: &Tree) -> Outcome {
        self.read(&Reading { plan: plan(discount, alphas), in_groups: true }, cuts, tree)
    }

    /// What a reading finds, the log cut before the rows `cuts`.
    pub fn read(&self, read: &Reading, cuts: &[usize], tree: &Tree) -> Outcome {
        let plan = &read.plan;
        let mut first = self.pass(read, Pass::First, None, cuts, tree);
        assert!(first.problems.is_empty(), "{:?}", first.problems);
        let diagnoses = diagnose(plan, &mut first.sums);
        let normalisers = Normalisers::new(plan, &mut first.sums, !first.wild).expect("the first episode has weight");
        let second = self.pass(read, Pass::Second, Some(&normalisers), cuts, tree);
        Outcome::new(plan, &first.sums, diagnoses, &normalisers, Some(&second.sums))
    }

    /// Computes all estimators from a log in one part.
    pub fn evaluate(&self, discount: f64) -> Outcome {
        self.evaluate_in_parts(discount, &[], &[], &Tree::Unit(0))
    }
}

/// All estimators with diagnostics and differences.
pub fn plan(discount: f64, alphas: &[f64]) -> Plan {
    use Estimator::*;
    let checks = [
        ("reward", Check::Finite),
        ("behavior_prob", Check::PositiveProbability),
        ("target_prob", Check::Probability),
        ("q_hat", Check::Finite),
        ("v_hat", Check::Finite),
        ("r_hat", Check::Finite),
        ("transition_ratio", Check::NonNegative),
    ];
    let policy = |name: &str, ratio, estimators: &[Estimator]| Policy {
        name: name.into(),
        ratio,
        q_hat: Some(Q),
        v_hat: Some(V),
        r_hat: Some(R_HAT),
        transition_ratio: Some(P),
        estimators: estimators.to_vec(),
    };
    let all = [Is, StepIs, Wis, StepWis, Reg, Dr, DrBsl, DrV2, Wdr, Magic];
    let mut policies = vec![policy("behavior", Ratio::One, &[Mc])];
    policies.push(policy("target", Ratio::Probabilities { behavior: PI_0, target: PI_1 }, &all));
    policies.extend(alphas.iter().map(|&alpha| policy("mixture", Ratio::Mixture { of: 1, alpha }, &all)));
    Plan {
        discount,
        horizon: None,
        baseline: Some(BASELINE),
        slots: checks.map(|(name, check)| Slot { name: name.into(), check }).to_vec(),
        reward: R,
        policies,
        terminal: None,
        truncated: None,
        truncated_as_terminal: false,
        problem_limit: 10,
        check_only: false,
        diagnostics: true,
        paired: true,
        crossing: vec![],
        first_step: None,
        memory: None,
    }
}

/// Returns the value and the standard error of one estimate.
pub fn find(outcome: &Outcome, policy: usize, estimator: Estimator) -> (f64, f64) {
    let found = outcome.estimates.iter().find(|e| (e.policy, e.estimator) == (policy, estimator)).unwrap();
    (found.value.value.unwrap(), found.std_error.map_or(f64::NAN, |error| error.value.unwrap_or(0.0)))
}

/// Returns the bytes of a whole outcome.
pub fn bits(outcome: &Outcome) -> Vec<u8> {
    offpolicy_core::pass::wire::encode(outcome).unwrap()
}

/// Returns the bytes of an outcome without the ids of the leading episodes.
pub fn nameless_bits(outcome: &Outcome) -> Vec<u8> {
    let mut outcome = outcome.clone();
    outcome.weights.iter_mut().filter_map(|weights| weights.diagnosis.as_mut()).for_each(|found| found.leaders.clear());
    bits(&outcome)
}
