"""Exact coverage: every possible sample with its probability; misses above and below apart.

A bound for finite samples misses with δ/2 at most on each side; what asymptotic and heuristic intervals really do is
pinned.
"""

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import product

import coverage_table
import numpy as np
import offpolicy as op
import pytest
from offpolicy import intervals
from offpolicy.intervals.hcope import PRE_SAMPLE
from offpolicy.intervals.sketch import rounds_of
from places import ROOT
from small_problems import (
    BANDIT,
    COSTS,
    HALF,
    MIXED,
    MODELLED,
    PROBLEMS,
    RARE,
    SURVIVAL,
    Problem,
    ids_in,
    places_by_round,
)

LEVELS = (0.5, 0.8, 0.95)
NAMES = {"argvalues": PROBLEMS.values(), "ids": PROBLEMS}
#: What depends on a sample only through how often each trajectory is in it.
BY_MULTISET = ("hoeffding", "bernstein", "sequence", "anderson")


def misses(problem, samples, method, confidence, **options):
    """The probabilities that the low end is above the truth, and that the high end is below it."""
    above = below = Fraction(0)
    for chance, chosen in samples:
        found = problem.interval(chosen, method, confidence, **options)
        above += chance * (found.low is not None and found.low > problem.value)
        below += chance * (found.high is not None and found.high < problem.value)
    return above, below


def by_rounds(problem, n):
    """All samples with ids 0, …, n - 1, as far as betting tells them apart."""
    return problem.by_parts(places_by_round(range(n)))


def by_method(problem, method, n, before=None):
    """All samples of n trajectories, as far as the method tells them apart, with their ids.

    For hcope a third of them, or as many as are given, are in its pre-sample.
    """
    if method != "hcope":
        return list(by_rounds(problem, n) if method == "betting" else problem.multisets(n)), None
    first, k = rounds_of(range(1000)) < PRE_SAMPLE, before or n // 3
    ids = [*np.flatnonzero(first)[:k].tolist(), *np.flatnonzero(~first)[: n - k].tolist()]
    return list(problem.by_parts([range(k), range(k, n)])), ids


def tail(level):
    return (1 - Fraction(level)) / 2


def test_the_problems_are_whole():
    for problem in PROBLEMS.values():
        assert sum(p for p, _ in problem.law) == 1
        assert sum(p * c for (p, _), c in zip(problem.law, problem.weights, strict=True)) == 1
        for samples in (problem.multisets(5), problem.sequences(5), by_rounds(problem, 5)):
            assert sum(chance for chance, _ in samples) == 1


ASKED = [(name, problem, e, intervals.METHODS) for e in ("step-is", "is") for name, problem in PROBLEMS.items()]
ASKED += [(*other, coverage_table.OF_RATIOS) for other in coverage_table.others()]


@pytest.mark.parametrize(
    ("problem", "estimator", "methods"), [x[1:] for x in ASKED], ids=[f"{x[0]}-{x[2]}" for x in ASKED]
)
def test_samples_have_the_intervals_of_their_logs(problem, estimator, methods):
    """What stands in for the scan here is faithful to it."""
    for _, chosen in problem.multisets(3):
        if not any(problem.weights[k] for k in chosen):  # then every interval is withheld
            continue
        ev = op.evaluate(
            problem.log(chosen),
            discount=problem.discount,
            horizon=problem.horizon,
            estimators=[estimator],
            bounds=problem.bounds,
        )
        for method in methods:
            found = ev[estimator].interval(0.8, method, replicates=199)
            expected = problem.interval(chosen, method, 0.8, estimator=estimator, replicates=199)
            assert (found.reason, found.kind, found.side) == (expected.reason, expected.kind, expected.side)
            for end, wanted in ((found.low, expected.low), (found.high, expected.high)):
                assert end is wanted is None or end == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("method", BY_MULTISET)
@pytest.mark.parametrize("problem", **NAMES)
@pytest.mark.parametrize("n", [1, 3, 8])
def test_bounds_for_finite_samples_hold(problem, method, n):
    for level in LEVELS:
        assert max(misses(problem, problem.multisets(n), method, level)) <= tail(level)


@pytest.mark.parametrize("by_ratios", [True, False], ids=["ratios", "rewards"])
@pytest.mark.parametrize("problem", **NAMES)
def test_betting_holds(problem, by_ratios):
    """With a bound on ratios, and by bounds on rewards alone."""
    options = {"bounds": problem.bounds if by_ratios else op.Bounds(reward=problem.reward)}
    samples = list(by_rounds(problem, {2: 8, 3: 5, 4: 4}[len(problem.law)]))
    for level in LEVELS:
        assert max(misses(problem, samples, "betting", level, **options)) <= tail(level)


#: Problems with ids that fill a few rounds with several trajectories each.
IN_ROUNDS = [(BANDIT, (5, 5, 5)), (RARE, (6, 6, 6)), (SURVIVAL, (3, 3, 2)), (MIXED, (3, 3, 2)), (COSTS, (2, 2, 2))]


@pytest.mark.parametrize(("problem", "sizes"), IN_ROUNDS, ids=["bandit", "rare", "survival", "mixed", "costs"])
def test_betting_holds_where_rounds_have_several_trajectories(problem, sizes):
    ids = ids_in(*sizes)
    samples = list(problem.by_parts(places_by_round(ids)))
    for level in LEVELS:
        assert max(misses(problem, samples, "betting", level, ids=ids)) <= tail(level)


def test_betting_comes_close_to_what_it_may_miss():
    """A bound that is never wrong would be a poor one: at n = 15 it misses half of what it may."""
    ids = ids_in(3, 3, 3, 3, 3)
    above, below = misses(BANDIT, BANDIT.by_parts(places_by_round(ids)), "betting", 0.5, ids=ids)
    assert min(above, below) > tail(0.5) * Fraction(2, 5)


@pytest.mark.parametrize("problem", **NAMES)
def test_hcope_holds(problem):
    samples, ids = by_method(problem, "hcope", 10)
    for level in LEVELS:
        above, below = misses(problem, samples, "hcope", level, ids=ids)
        assert (above <= 2 * tail(level), below) == (True, 0)


#: Samples so large that most bounds say something, where bernstein and hcope are at the floor in those above: misses
#: above and below, and the shares of bounds above the least and below the largest possible return.
TELLING = {
    ("bernstein", "bandit", 400, 0.5): ((0.0053409018, 0.0053409018), (1.0, 0.6368065424)),
    ("bernstein", "rare", 400, 0.5): ((0.0015278797, 0.0044927599), (1.0, 0.9999735571)),
    ("bernstein", "rare", 400, 0.8): ((7.98867e-05, 0.0008807207), (0.999999996, 0.9996255508)),
    ("hcope", "bandit", 210, 0.8): ((0.0018156991, 0.0), (0.9990234375, 0.0)),
    ("hcope", "rare", 210, 0.8): ((0.0001880803, 0.0), (0.7355138577, 0.0)),
}


@pytest.mark.parametrize(("method", "name", "n", "level"), TELLING)
def test_bounds_hold_where_they_say_something(method, name, n, level):
    problem = PROBLEMS[name]
    least, most = problem.bounds.returns(problem.terms)
    samples, ids = by_method(problem, method, n, before=10)
    wrong, telling = [Fraction(0), Fraction(0)], [Fraction(0), Fraction(0)]
    for chance, chosen in samples:
        found = problem.interval(chosen, method, level, ids=ids)
        low, high = found.low, math.inf if found.high is None else found.high
        wrong[0] += chance * (low > problem.value)
        wrong[1] += chance * (high < problem.value)
        telling[0] += chance * (low > least)
        telling[1] += chance * (high < most)
    sides = 1 if method == "hcope" else 2
    assert max(wrong) <= 2 * tail(level) / sides
    assert min(telling[:sides]) > HALF
    assert min(wrong[:sides]) > 0  # as a bound that said nothing would not
    for found, pinned in zip((wrong, telling), TELLING[method, name, n, level], strict=True):
        assert tuple(map(float, found)) == pytest.approx(pinned, abs=1e-9)


@pytest.mark.parametrize("method", [*BY_MULTISET, "betting"])
def test_bounds_for_finite_samples_of_dr_hold(method):
    values = MODELLED.exact("dr")
    assert sum(p * x for (p, _), x in zip(MODELLED.law, values, strict=True)) == MODELLED.value
    bounds = op.Bounds(reward=(0.0, 1.0), ratio=1.5, q=(0.5, 1.5))
    least, most = bounds.range("dr", MODELLED.terms)
    assert least <= min(values) <= max(values) <= most
    options = {"estimator": "dr", "bounds": bounds}
    for n in (3, 6):
        samples = list(by_rounds(MODELLED, n) if method == "betting" else MODELLED.multisets(n))
        assert all(MODELLED.interval(chosen, method, 0.5, **options).low is not None for _, chosen in samples)
        for level in LEVELS:
            assert max(misses(MODELLED, samples, method, level, **options)) <= tail(level)


@pytest.mark.parametrize("method", ["betting", "sequence", "anderson", "hcope"])
@pytest.mark.parametrize("problem", **NAMES)
def test_bounds_of_is_hold_by_reward_bounds_alone(problem, method):
    values = problem.exact("is")
    assert sum(p * x for (p, _), x in zip(problem.law, values, strict=True)) == problem.value
    options = {"estimator": "is", "bounds": op.Bounds(reward=problem.reward)}
    samples, ids = by_method(problem, method, 5 if method == "betting" else 7)
    for level in LEVELS:
        allowed = tail(level) * (2 if method == "hcope" else 1)
        assert max(misses(problem, samples, method, level, ids=ids, **options)) <= allowed


@pytest.mark.parametrize("method", ["betting", "sequence", "anderson"])
def test_bounds_of_is_say_something_by_reward_bounds_alone(method):
    """Of early ends and costs too: within what is possible, on both sides, in most samples."""
    for problem, sizes in ((SURVIVAL, (3, 3, 3)), (COSTS, (2, 2, 2))):
        bounds = op.Bounds(reward=problem.reward)
        least, most = bounds.returns(problem.terms)
        inside, ids = [Fraction(0), Fraction(0)], ids_in(*sizes)
        for chance, chosen in problem.by_parts(places_by_round(ids)):
            found = problem.interval(chosen, method, 0.5, estimator="is", bounds=bounds, ids=ids)
            inside[0] += chance * (found.low > least)
            inside[1] += chance * (found.high < most)
        assert min(inside) > HALF


@pytest.mark.parametrize("estimator", ["is", "step-is"])
@pytest.mark.parametrize("method", ["betting", "sequence", "anderson"])
def test_bounds_by_rewards_hold_where_the_old_policy_never_does_what_the_new_one_does(method, estimator):
    """π1 does half of the time what no log shows; its reward may be 0 or 1."""
    step = {"reward": 0.5, "behavior_prob": 1.0, "target_prob": 0.5}
    seen = Problem(((Fraction(1), [step]),), 1.0, 1, (0.0, 1.0))
    for n in (1, 5, 40):
        found = seen.interval([0] * n, method, 0.5, estimator=estimator, bounds=op.Bounds(reward=(0.0, 1.0)))
        assert found.low <= 0.25
        assert found.high >= 0.75


@pytest.mark.parametrize("method", [*BY_MULTISET, "betting"])
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_bounds_from_one_side_hold(method, side):
    for problem, n in ((BANDIT, 8), (SURVIVAL, 4)):
        for level in (0.5, 0.9):
            samples = by_rounds(problem, n) if method == "betting" else problem.multisets(n)
            assert max(misses(problem, samples, method, level, side=side)) <= 2 * tail(level)


@pytest.mark.parametrize(("problem", "n"), [(BANDIT, 9), (SURVIVAL, 5)], ids=["bandit", "survival"])
def test_a_confidence_sequence_holds_at_all_looks_at_once(problem, n):
    for level in (0.5, 0.8):
        ever_above = ever_below = Fraction(0)
        known = {}
        for chance, chosen in problem.sequences(n):
            looks = [tuple(sorted(chosen[:k])) for k in range(1, n + 1)]
            for look in looks:
                if look not in known:
                    known[look] = problem.interval(look, "sequence", level)
            ever_above += chance * any(known[look].low > problem.value for look in looks)
            ever_below += chance * any(known[look].high < problem.value for look in looks)
        assert max(ever_above, ever_below) <= tail(level)


@pytest.mark.slow
@pytest.mark.parametrize("method", [*BY_MULTISET, "betting"])
@pytest.mark.parametrize(
    ("problem", "sizes"),
    [(BANDIT, (8, 8, 8, 8)), (MIXED, (4, 4, 4)), (SURVIVAL, (4, 4, 4))],
    ids=["bandit", "mixed", "survival"],
)
def test_bounds_hold_for_larger_samples_too(problem, method, sizes):
    ids = ids_in(*sizes)
    samples = list(problem.by_parts(places_by_round(ids)) if method == "betting" else problem.multisets(len(ids)))
    for level in LEVELS:
        assert max(misses(problem, samples, method, level, ids=ids)) <= tail(level)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["betting", "hcope", "bernstein"])
def test_bounds_hold_in_ten_thousand_random_samples(method):
    problem, n, level, rng = SURVIVAL, 100, 0.8, np.random.default_rng(1)
    law = [float(p) for p, _ in problem.law]
    wrong, runs = 0, 10_000
    for chosen in rng.choice(len(law), p=law, size=(runs, n)):
        wrong += problem.interval(chosen, method, level, side="lower").low > problem.value
    allowed = 0.2 * runs
    assert wrong <= allowed + 4 * math.sqrt(allowed)


#: Misses above and below of 80% intervals.
PINNED = {
    ("normal", "bandit", 5): (0.15625, 0.15625),
    ("normal", "bandit", 10): (0.1708984375, 0.1708984375),
    ("normal", "mixed", 5): (0.15625, 0.078125),
    ("normal", "mixed", 10): (0.1328125, 0.0780887604),
    ("normal", "survival", 5): (0.13671875, 0.078125),
    ("normal", "survival", 10): (0.1131076813, 0.1251220703),
    ("t", "bandit", 5): (0.0, 0.0),
    ("t", "bandit", 10): (0.0537109375, 0.0537109375),
    ("t", "mixed", 5): (0.078125, 0.078125),
    ("t", "mixed", 10): (0.1218261719, 0.0748844147),
    ("t", "survival", 5): (0.078125, 0.078125),
    ("t", "survival", 10): (0.0810642242, 0.1251220703),
    ("likelihood", "bandit", 5): (0.0, 0.0),
    ("likelihood", "bandit", 10): (0.0, 0.0),
    ("likelihood", "mixed", 5): (0.0, 0.0),
    ("likelihood", "mixed", 10): (0.1098632812, 0.0505828857),
    ("likelihood", "survival", 5): (0.0, 0.0),
    ("likelihood", "survival", 10): (0.0726127625, 0.0952148438),
    ("bootstrap", "bandit", 5): (0.0, 0.15625),
    ("bootstrap", "bandit", 10): (0.0537109375, 0.0537109375),
    ("bootstrap", "mixed", 5): (0.078125, 0.13671875),
    ("bootstrap", "mixed", 10): (0.1218261719, 0.0748653412),
    ("bootstrap", "survival", 5): (0.17578125, 0.078125),
    ("bootstrap", "survival", 10): (0.1117343903, 0.068359375),
    ("bootstrap-bca", "bandit", 5): (0.0, 0.0),
    ("bootstrap-bca", "bandit", 10): (0.0537109375, 0.009765625),
    ("bootstrap-bca", "mixed", 5): (0.0, 0.0390625),
    ("bootstrap-bca", "mixed", 10): (0.0433349609, 0.0748653412),
    ("bootstrap-bca", "survival", 5): (0.029296875, 0.078125),
    ("bootstrap-bca", "survival", 10): (0.0586719513, 0.0573730469),
}


@pytest.mark.parametrize(("method", "name", "n"), PINNED)
def test_what_promises_nothing_for_finite_samples_misses_as_it_did(method, name, n):
    problem = PROBLEMS[name]
    options = {"replicates": 199} if "bootstrap" in method else {}
    found = misses(problem, problem.multisets(n), method, 0.8, **options)
    assert tuple(map(float, found)) == pytest.approx(PINNED[method, name, n], abs=1e-9)


#: Misses above and below of `step-wis` by t on survival.
PINNED_STEP_WIS = {
    (3, 0.8): ("0", "0"),
    (5, 0.5): ("95/512", "5/32"),
    (8, 0.8): ("225/2048", "11/256"),
    (12, 0.95): ("3275/65536", "25/2048"),
}


@pytest.mark.parametrize(("n", "level"), PINNED_STEP_WIS)
def test_t_of_step_wis_misses_as_it_did(n, level):
    found = misses(SURVIVAL, SURVIVAL.multisets(n), "t", level, estimator="step-wis")
    assert found == tuple(map(Fraction, PINNED_STEP_WIS[n, level]))


def test_a_sample_without_weight_has_no_interval_of_a_ratio():
    """One in four trajectories of `mixed` has none."""
    found = coverage_table.exact_of("wis", MIXED, 3)
    alone = [chance for chance, chosen in MIXED.multisets(3) if not any(MIXED.weights[k] for k in chosen)]
    assert sum(alone) == Fraction(1, 64)
    assert found["withheld"]["t 0.8"] == found["withheld"]["normal 0.95"] > 1 / 64
    assert MIXED.interval((1, 1, 1), "t", 0.8, estimator="wis").reason == "no trajectory has weight"


def test_a_sample_in_which_no_trajectory_moves_a_ratio_has_no_interval():
    """In the rest of what is withheld every trajectory with weight has the same return."""
    found, alike = coverage_table.exact_of("wis", MIXED, 3), Fraction(0)
    for chance, chosen in MIXED.multisets(3):
        returns = {MIXED.exact("is")[k] / MIXED.weights[k] for k in chosen if MIXED.weights[k]}
        alike += chance * (len(returns) <= 1)
    assert found["withheld"]["t 0.8"] == float(alike)


def test_step_wis_is_wis_where_there_is_one_step():
    for problem in (MIXED, BANDIT):
        assert coverage_table.exact_of("step-wis", problem, 3) == coverage_table.exact_of("wis", problem, 3)


TABLE = ROOT / "docs" / "results" / "coverage" / "cells.jsonl"
CELLS = [json.loads(line) for line in TABLE.read_text().splitlines()]
PROMISING = [name for name, method in intervals.METHODS.items() if method.kind in coverage_table.PROMISES]


def test_the_table_has_every_interval_on_every_problem_at_five_sizes_and_three_levels():
    ways = {"multisets": coverage_table.by_multiset(), "rounds": ["betting"], "parts": ["hcope"]}
    for way, methods in ways.items():
        for name in PROBLEMS:
            rows = [row for row in CELLS if coverage_table.key(row)[:3] == (name, "step-is", way)]
            assert len({row["n"] for row in rows}) == len(rows) == 5
            assert all(set(row["misses"]) == {f"{m} {level}" for m in methods for level in LEVELS} for row in rows)


def test_the_table_has_ratios_and_models_at_five_sizes_and_three_levels():
    every = {f"{method} {level}" for method in coverage_table.OF_RATIOS for level in LEVELS}
    for name, _, estimator in coverage_table.others():
        rows = [row for row in CELLS if coverage_table.key(row)[:3] == (name, estimator, "multisets")]
        assert sorted(row["n"] for row in rows) == [*coverage_table.EXACT_SIZES]
        assert all(row["misses"].keys() == row["withheld"].keys() == every for row in rows)


def test_the_table_has_every_interval_on_every_problem_in_random_samples_of_all_sizes():
    random = [row for row in CELLS if row["way"] == "random"]
    cells = Counter((row["problem"], row["n"]) for row in random)
    assert cells == Counter(product(PROBLEMS, coverage_table.SIZES))
    every = {f"{method} {level}" for method in intervals.METHODS for level in LEVELS}
    assert all(set(row["misses"]) == every for row in random)


def test_the_page_shows_the_cells():
    assert (TABLE.parent / "README.md").read_text() == coverage_table.page(CELLS)


@pytest.mark.parametrize("method", PROMISING)
def test_what_promises_something_for_finite_samples_keeps_it_in_the_table(method):
    assert not [row for row in CELLS if method in coverage_table.worse(row)]


def test_the_docstring_of_likelihood_has_its_worst_cells():
    said = " ".join(intervals.likelihood.__doc__.split())

    def covers(method, level, n):
        wanted = {("noisy", "step-is", way, n) for way in ("multisets", "random")}
        rows = [row for row in CELLS if coverage_table.key(row) in wanted]
        (found,) = (row["misses"][f"{method} {level}"] for row in rows if f"{method} {level}" in row["misses"])
        return f"{100 * (1 - sum(found)):.1f}"

    sizes = (5, 8, 12, 20, 50)
    for method in ("likelihood", "t"):
        assert " ".join([method, *(covers(method, 0.95, n) for n in sizes)]) in said
    eight, twelve, half = ([covers(m, *cell) for m in ("likelihood", "t")] for cell in ((0.8, 8), (0.8, 12), (0.5, 8)))
    assert f"{eight[0]} for n = 8 and {twelve[0]} for n = 12 (`t`: {eight[1]} and {twelve[1]})" in said
    assert f"{half[0]} for n = 8 ({half[1]})" in said
    for level in LEVELS:  # and no exact cell is worse than those of this problem
        key = f"likelihood {level}"
        cells = [
            (sum(row["misses"][key]), row["problem"])
            for row in CELLS
            if key in row["misses"] and row["way"] != "random"
        ]
        assert max(cells)[1] == "noisy"


MEASURED = [cell for cell in coverage_table.cells(runs=0) if cell.row["way"] != "random" and cell.row["n"] <= 4]


@pytest.mark.parametrize("name", [*PROBLEMS, "modelled"])
def test_small_cells_of_the_table_come_out_again(name):
    table = {coverage_table.key(row): row for row in CELLS}
    for cell in MEASURED:
        if cell.row["problem"] == name:
            expected, found = table[coverage_table.key(cell.row)], cell.found()
            assert cell.row.keys() | found.keys() == expected.keys()
            for part in found:
                assert found[part].keys() == expected[part].keys()
                for key, each in expected[part].items():
                    assert found[part][key] == pytest.approx(each, abs=1e-12)
