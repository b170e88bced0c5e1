//! Properties of every log, tested on logs that proptest makes up: ragged, with more steps than one block, and with
//! some weights that are zero. `PROPTEST_CASES=100000 cargo test --release --package offpolicy-core` tries many of
//! them.
//!
//!     permutation, ids renamed            the_order_and_names_of_episodes_do_not_matter
//!     any cut, merge in any bracketing    any_cut_and_bracketing_gives_the_same_bits
//!     forward form = backward recursion   forward_sums_are_the_backward_recursions, weighted_estimators_are_…
//!     r → ar                              rewards_scale
//!     Q̂ = 0                               without_a_model_dr_is_step_is
//!     ρ = 1, mixture with α = 1           ratios_of_one_are_monte_carlo
//!     H = 1                               one_step_is_the_bandit_dr
//!     constant reward                     a_constant_return_is_exact_for_wis
//!     absorbing steps                     absorbing_steps_change_nothing
//!     data doubled                        a_doubled_log_has_the_value_and_less_error
//!     γ = 0                               without_a_future_only_the_first_step_counts
//!     eight episodes at once              short_episodes_in_groups_have_the_bits_of_each_alone

mod log;

use log::definition::{self, Expected};
use log::{Log, P, PI_0, PI_1, Q, R, R_HAT, Reading, Row, Tree, V, bits, find, nameless_bits};
use offpolicy_core::estimators::Estimator::{self, *};
use proptest::prelude::*;

const TARGET: usize = 1;
const MODEL: [usize; 4] = [R, Q, V, R_HAT];
const ALL: [Estimator; 9] = [Is, StepIs, Wis, StepWis, Reg, Dr, DrBsl, DrV2, Wdr];
/// Estimators whose sums over single steps drop what is below 2^-80 of the largest addend.
const BY_STEP: [Estimator; 2] = [StepWis, Wdr];

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -1e3..1e3f64, 1 => Just(0.0), 1 => (-8..8i32).prop_map(|k| 2f64.powi(k))]
}

fn row(number: impl Strategy<Value = f64> + Clone) -> impl Strategy<Value = Row> {
    let target = prop_oneof![8 => 0.01..1.0f64, 1 => Just(0.0), 1 => Just(1.0)];
    let n = || number.clone();
    (n(), 0.01..1.0f64, target, n(), n(), n(), 0.25..4.0f64)
        .prop_map(|(r, pi_0, pi_1, q, v, r_hat, p)| [r, pi_0, pi_1, q, v, r_hat, p])
}

/// Makes logs of two or more episodes, of which the first keeps a positive weight.
fn logs_of(number: impl Strategy<Value = f64> + Clone, steps: usize) -> impl Strategy<Value = Log> {
    let episode = prop::collection::vec(row(number), 1..=steps);
    prop::collection::vec(episode, 2..6).prop_map(|mut episodes| {
        episodes[0].iter_mut().for_each(|row| row[PI_1] = row[PI_1].max(0.01));
        Log::new(episodes)
    })
}

fn logs() -> impl Strategy<Value = Log> {
    logs_of(number().boxed(), 18)
}

/// Makes logs whose numbers span 280 decades.
fn wild_logs() -> impl Strategy<Value = Log> {
    let wide = (-10.0..10.0f64, -140..140i32).prop_map(|(x, k)| x * 10f64.powi(k));
    logs_of(prop_oneof![number(), wide].boxed(), 18)
}

/// Many episodes, most of them of one block at most, with ratios that now and then leave the ordinary range.
fn short_logs() -> impl Strategy<Value = Log> {
    let wide = (-10.0..10.0f64, -140..140i32).prop_map(|(x, k)| x * 10f64.powi(k));
    let number = prop_oneof![60 => number(), 1 => wide].boxed();
    let shrink =
        prop_oneof![40 => Just([1.0, 1.0]), 1 => Just([1e-7, 1.0]), 1 => Just([1.0, 1e-7]), 1 => Just([1.0, 1e-90])];
    let row = (row(number), shrink).prop_map(|(mut row, [pi_0, pi_1])| {
        (row[PI_0], row[PI_1]) = (row[PI_0] * pi_0, row[PI_1] * pi_1);
        row
    });
    let row = row.boxed();
    let length = prop_oneof![4 => 1..=8usize, 2 => Just(1), 1 => 9..=20usize];
    let episode = length.prop_flat_map(move |length| prop::collection::vec(row.clone(), length));
    prop::collection::vec(episode.boxed(), 2..60).prop_map(|mut episodes| {
        episodes[0].iter_mut().for_each(|row| row[PI_1] = row[PI_1].max(0.01));
        Log::new(episodes)
    })
}

fn discounts() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(0.9), Just(1.0), 0.01..1.0f64]
}

/// Merges units in any order and bracketing.
fn tree(units: usize, choices: &[prop::sample::Index]) -> Tree {
    let mut rest: Vec<Tree> = (0..units).map(Tree::Unit).collect();
    for pair in choices.chunks(2).cycle() {
        if rest.len() == 1 {
            break;
        }
        let left = rest.swap_remove(pair[0].index(rest.len()));
        let right = rest.swap_remove(pair[1].index(rest.len()));
        rest.push(Tree::Both(Box::new(left), Box::new(right)));
    }
    rest.remove(0)
}

/// Compares to 1e-12 of the number itself, or 1e-13 of the size of its terms.
fn near(found: (f64, f64), expected: (f64, f64), scale: f64) -> bool {
    let close = |found: f64, expected: f64| (found - expected).abs() <= 1e-12 * expected.abs() + 1e-13 * scale;
    close(found.0, expected.0) && close(found.1, expected.1)
}

proptest! {
    #[test]
    fn short_episodes_in_groups_have_the_bits_of_each_alone(
        log in short_logs(), discount in prop_oneof![8 => discounts(), 1 => Just(1e-60)],
        chosen in prop::collection::vec(prop::sample::subsequence(vec![Is, StepIs, Wis, StepWis, Reg, Dr, DrBsl, Wdr, IsTruncated], 1..9), 3),
        alphas in prop::collection::vec(0.0..1.0f64, 0..3), options in any::<[bool; 4]>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        order in prop::collection::vec(any::<prop::sample::Index>(), 6)
    ) {
        let [diagnostics, paired, mc, known_horizon] = options;
        let mut plan = log::plan(discount, &alphas);
        (plan.diagnostics, plan.paired, plan.truncated_as_terminal) = (diagnostics, paired && mc, diagnostics && mc);
        plan.horizon = known_horizon.then_some(log.horizon() as u64 + 1);
        plan.policies[0].estimators.retain(|_| mc || paired || chosen.iter().flatten().any(|e| e.about().weights_returns));
        plan.policies.iter_mut().skip(1).zip(&chosen).for_each(|(policy, chosen)| policy.estimators = chosen.clone());
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(log.rows())).collect();
        let tree = tree(cuts.len() + 1, &order);
        let read = |in_groups: bool| bits(&log.read(&Reading { plan: plan.clone(), in_groups }, &cuts, &tree));
        prop_assert_eq!(read(true), read(false));
    }

    #[test]
    fn the_order_and_names_of_episodes_do_not_matter(
        log in wild_logs(), discount in discounts(), by in prop::collection::vec(any::<i64>(), 6)
    ) {
        let expected = nameless_bits(&log.evaluate(discount));
        let mut order: Vec<usize> = (0..log.ids.len()).collect();
        order.sort_by_key(|&i| by[i]);
        let episodes = order.iter().map(|&i| log.episodes[i].clone()).collect();
        prop_assert_eq!(&nameless_bits(&Log { ids: log.ids.clone(), episodes }.evaluate(discount)), &expected);
        let ids = (0..).zip(&log.ids).map(|(i, _)| i128::from(by[i]) * 8 + i as i128).collect();
        prop_assert_eq!(&nameless_bits(&Log { ids, ..log }.evaluate(discount)), &expected);
    }

    #[test]
    fn any_cut_and_bracketing_gives_the_same_bits(
        log in wild_logs(), discount in discounts(), alpha in 0.0..1.0f64,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 12)
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(log.rows())).filter(|&cut| cut > 0).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let expected = log.evaluate_in_parts(discount, &[alpha], &[], &Tree::Unit(0));
        let found = log.evaluate_in_parts(discount, &[alpha], &cuts, &tree(cuts.len() + 1, &choices));
        prop_assert_eq!(bits(&found), bits(&expected));
    }

    #[test]
    fn forward_sums_are_the_backward_recursions(log in logs(), discount in discounts()) {
        let outcome = log.evaluate(discount);
        for estimator in [Mc, StepIs, Dr, DrBsl, DrV2] {
            let Expected { value, error, scale } = definition::average(&log, estimator, discount);
            let found = find(&outcome, usize::from(estimator != Mc), estimator);
            prop_assert!(near(found, (value, error), scale), "{estimator:?}: {found:?} for {value}, {error}");
        }
    }

    #[test]
    fn weighted_estimators_are_their_definitions(log in logs(), discount in discounts()) {
        let outcome = log.evaluate(discount);
        for estimator in [Wis, StepWis, Wdr] {
            let Expected { value, error, scale } = definition::weighted(&log, estimator, discount);
            let found = find(&outcome, TARGET, estimator);
            prop_assert!(near(found, (value, error), scale), "{estimator:?}: {found:?} for {value}, {error}");
        }
    }

    #[test]
    fn rewards_scale(log in logs(), discount in discounts(), k in -9..=9i32, sign in prop::bool::ANY) {
        // The exponent is a multiple of the 40 bits of a bin, so that the sums of steps are cut in the same places. It
        // is large enough to need scaled numbers too.
        let factor = 2f64.powi(40 * k) * if sign { 1.0 } else { -1.0 };
        let scaled = log.map(|_, mut row| {
            MODEL.iter().for_each(|&slot| row[slot] *= factor);
            row
        });
        let (before, after) = (log.evaluate(discount), scaled.evaluate(discount));
        for estimator in ALL.into_iter().filter(|&estimator| estimator != DrBsl) {
            let ((old, error), new) = (find(&before, TARGET, estimator), find(&after, TARGET, estimator));
            prop_assert_eq!(new, (factor * old, factor.abs() * error), "{:?}", estimator);
        }
    }

    #[test]
    fn without_a_model_dr_is_step_is(log in logs(), discount in discounts()) {
        let outcome = log.map(|_, row| [row[R], row[PI_0], row[PI_1], 0.0, 0.0, 0.0, row[P]]).evaluate(discount);
        for estimator in [Dr, DrV2] {
            prop_assert_eq!(find(&outcome, TARGET, estimator), find(&outcome, TARGET, StepIs));
        }
        prop_assert_eq!(find(&outcome, TARGET, Wdr), find(&outcome, TARGET, StepWis));
        prop_assert_eq!(find(&outcome, TARGET, Reg), (0.0, 0.0));
    }

    #[test]
    fn ratios_of_one_are_monte_carlo(log in logs(), discount in discounts()) {
        let same = log.map(|_, mut row| {
            row[PI_1] = row[PI_0];
            row
        });
        let mixed = log.evaluate_in_parts(discount, &[1.0], &[], &Tree::Unit(0));
        for (outcome, policy) in [(same.evaluate(discount), TARGET), (mixed, TARGET + 1)] {
            let expected = find(&outcome, 0, Mc);
            let scale = definition::weighted(&same, StepWis, discount).scale;
            for estimator in [Wis, StepWis] {
                prop_assert!(near(find(&outcome, policy, estimator), expected, scale), "{estimator:?}");
            }
            prop_assert_eq!(find(&outcome, policy, StepIs), expected);
            prop_assert_eq!(find(&outcome, policy, Is), expected);
            prop_assert_eq!(outcome.weights[policy].ess, outcome.episodes as f64);
        }
    }

    #[test]
    fn one_step_is_the_bandit_dr(log in logs_of(number().boxed(), 1), discount in discounts()) {
        let (outcome, n) = (log.evaluate(discount), log.episodes.len() as f64);
        let value = |rows: &Vec<Row>| rows[0][V] + rows[0][PI_1] / rows[0][PI_0] * (rows[0][R] - rows[0][Q]);
        let mean = log.episodes.iter().map(value).sum::<f64>() / n;
        let Expected { error, scale, .. } = definition::average(&log, Dr, discount);
        prop_assert!(near(find(&outcome, TARGET, Dr), (mean, error), scale));
    }

    #[test]
    fn a_constant_return_is_exact_for_wis(log in logs(), discount in discounts(), reward in number()) {
        let constant = log.map(|t, mut row| {
            row[R] = if t == 0 { reward } else { 0.0 };
            row
        });
        prop_assert_eq!(find(&constant.evaluate(discount), TARGET, Wis), (reward, 0.0));
    }

    #[test]
    fn absorbing_steps_change_nothing(log in logs(), discount in discounts(), more in 0..10usize) {
        let horizon = log.episodes.iter().map(Vec::len).max().unwrap() + more;
        let mut padded = log.clone();
        let absorbed = [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        padded.episodes.iter_mut().for_each(|rows| rows.resize(horizon, absorbed));
        let (before, after) = (log.evaluate(discount), padded.evaluate(discount));
        for estimator in ALL.into_iter().filter(|&estimator| estimator != DrBsl) {
            let (old, new) = (find(&before, TARGET, estimator), find(&after, TARGET, estimator));
            if BY_STEP.contains(&estimator) {
                prop_assert!(near(new, old, definition::weighted(&log, estimator, discount).scale), "{estimator:?}");
            } else {
                prop_assert_eq!(new, old, "{:?}", estimator);
            }
        }
        prop_assert_eq!(after.weights[TARGET].ess, before.weights[TARGET].ess);
    }

    #[test]
    fn a_doubled_log_has_the_value_and_less_error(log in logs(), discount in discounts()) {
        let twice = Log::new([&log.episodes[..], &log.episodes[..]].concat());
        let (before, after, n) = (log.evaluate(discount), twice.evaluate(discount), log.episodes.len() as f64);
        for estimator in [StepIs, Wis, StepWis, Dr, DrBsl, DrV2, Wdr] {
            let (value, error) = find(&before, TARGET, estimator);
            let less = error * ((n - 1.0) / (2.0 * n - 1.0)).sqrt();
            let scale = definition::by_definition(&log, estimator, discount).scale;
            prop_assert!(near(find(&after, TARGET, estimator), (value, less), scale), "{estimator:?}");
        }
    }

    #[test]
    fn without_a_future_only_the_first_step_counts(log in logs()) {
        let first = Log::new(log.episodes.iter().map(|rows| vec![rows[0]]).collect());
        let (whole, part) = (log.evaluate(0.0), first.evaluate(0.0));
        for estimator in [StepIs, StepWis, Reg, Dr, DrBsl, DrV2, Wdr] {
            prop_assert_eq!(find(&whole, TARGET, estimator), find(&part, TARGET, estimator), "{:?}", estimator);
        }
    }
}
