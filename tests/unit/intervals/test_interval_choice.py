"""Which interval fits, what it is known to cover, and that it does: `interval="auto"`, cautions, and their tables."""

import json
from itertools import pairwise

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from crossing import Fixed
from improving import WALK, by_policies
from logs import bounded_log
from offpolicy import intervals
from offpolicy.intervals import auto, shortfalls
from offpolicy.intervals.normal import student_quantile
from places import ROOT

DOCS = ROOT / "docs" / "results" / "intervals"
BOUNDS = op.Bounds(reward=(0.0, 1.0), ratio=30.0)


def lognormal(seed, n, sigma, steps=1, reward=None):
    """Ratios exp(σZ - σ²/2), and standard normal rewards that do not depend on them: the value is 0."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, steps))
    rewards = rng.normal(size=(n, steps)) if reward is None else np.full((n, steps), reward)
    return pl.DataFrame(
        {
            "episode": np.repeat(np.arange(n), steps),
            "step": np.tile(np.arange(steps), n),
            "ratio": np.exp(sigma * z - sigma**2 / 2).reshape(-1),
            "reward": rewards.reshape(-1),
        }
    )


def estimate(log, estimator="step-is", **options):
    return op.evaluate(log, estimators=[estimator], horizon=log["step"].max() + 1, threads=1, **options)[estimator]


def ess_of(log):
    return estimate(log).ess


#: Logs by their effective sample size.
MANY, SOME, FEW = lognormal(1, 1500, 0.3), lognormal(2, 300, 0.5), lognormal(3, 40, 1.0)
UNIT = {"reward": pl.col("reward").clip(0, 1), "ratio": pl.col("ratio").clip(0, 30)}


def test_the_logs_are_what_they_are_called():
    assert ess_of(MANY) >= auto.MANY > ess_of(SOME) >= auto.FEW > ess_of(FEW)


@pytest.mark.parametrize(
    ("log", "estimator", "bounds", "method", "why"),
    [
        (MANY, "step-is", None, "t", "1000 or more"),
        (MANY, "step-wis", BOUNDS, "t", "1000 or more"),
        (SOME, "step-is", None, "t-skew", "below 1000"),
        (SOME, "step-is", BOUNDS, "t-skew", "below 1000"),
        (SOME, "wis", None, "t-skew", "below 1000"),
        (FEW, "step-is", None, "t-skew", "below 1000"),
        (FEW, "step-is", BOUNDS, "betting", "below 30"),
        (FEW, "wis", BOUNDS, "t-skew", "no other interval"),
    ],
)
def test_auto_takes_the_narrowest_kind_whose_assumptions_hold(log, estimator, bounds, method, why):
    found = estimate(log.with_columns(**UNIT), estimator, interval="auto", bounds=bounds)
    taken, named = found.interval(0.9), found.interval(0.9, method)
    assert (taken.method, taken.kind) == (method, intervals.METHODS[method].kind)
    assert (taken.low, taken.high, taken.caution) == (named.low, named.high, named.caution)
    assert taken.assumptions["chosen"].startswith(f"{method}: ")
    assert why in taken.assumptions["chosen"]


def test_auto_looks_at_no_reward():
    """The choice is the same whatever the rewards are, and so it does not favour narrow intervals."""
    for log in (MANY, SOME, FEW):
        methods = set()
        for reward in (0.0, 0.5, 1.0):
            some = pl.when(pl.col("episode") % 3 == 0).then(reward).otherwise(0.25)
            mixed = log.with_columns(reward=some, ratio=UNIT["ratio"])
            methods.add(estimate(mixed, bounds=BOUNDS).interval(method="auto").method)
        assert len(methods) == 1


def test_a_single_trajectory_has_a_bound_for_finite_samples_or_none():
    one = lognormal(4, 1, 0.1, reward=0.5)
    assert estimate(one, bounds=BOUNDS).interval(method="auto").method == "betting"
    none = estimate(one).interval(method="auto")
    assert (none.low, none.method) == (None, "t-skew")
    assert "single trajectory" in none.reason


def test_auto_is_to_be_had_everywhere(tmp_path):
    log = bounded_log(21, 120, 6, model=(0.0, 1.0)).drop("transition_ratio")
    path = tmp_path / "log.parquet"
    log.write_parquet(path)
    words = ["evaluate", path, "--horizon", 6, "--estimator", "step-is", "--interval", "auto"]
    document = json.loads(offpolicy(*words, "--json").out)
    (row,) = document["estimates"]
    ev = op.evaluate(log, estimators=["step-is"], horizon=6, interval="auto")
    assert (row["low"], row["interval"]["method"]) == (ev["step-is"].low, ev["step-is"].interval().method)
    assert row["interval"]["assumptions"]["chosen"] in offpolicy(*words).out
    assert by_policies(interval="auto", confidence=0.8).candidates["score"].null_count() == 0
    cf = op.cross_fit(WALK.simulate(WALK.behavior, 80, seed=0), policy=WALK.behavior, domain=WALK, fitter=Fixed())
    assert cf["dr"].interval(method="auto").low == cf["dr"].interval(method="t-skew").low
    with pytest.raises(op.UsageError, match="did you mean 'auto'"):
        op.evaluate(log, interval="atuo")


def test_an_interval_says_what_it_was_measured_to_cover():
    heavy = lognormal(5, 1000, 1.5)
    assert 30 <= ess_of(heavy) < 300
    found = estimate(heavy)
    likelihood = found.interval(method="likelihood")
    assert likelihood.caution.startswith(f"{covered('likelihood', 'averages', 'two', found.ess)}% of 95% likelihood")
    assert "docs/results/intervals/small-samples.md" in likelihood.caution
    assert "upper bounds held" in found.interval(method="t", side="upper").caution
    assert found.interval(method="t", side="lower").caution is None
    assert estimate(MANY).interval(method="t").caution is None
    assert estimate(heavy, "mc").interval(method="t").caution is None  # without weights
    document = op.evaluate(heavy, estimators=["step-is"], interval="likelihood").to_dict()
    assert document["estimates"][0]["interval"]["caution"] == likelihood.caution


def test_the_command_line_tells_cautions(tmp_path):
    path = tmp_path / "log.parquet"
    lognormal(5, 1000, 1.5).write_parquet(path)
    assert "of 95% likelihood intervals held the truth" in offpolicy("evaluate", path, "--interval", "likelihood").out


def test_a_t_interval_that_was_not_corrected_is_told_apart():
    log = lognormal(6, 60, 1.0)
    group = ("weighted", "two", estimate(log, "wis").ess)
    for passes, measured in ((1, "t, influence"), (2, "t")):
        found = estimate(log, "wis", passes=passes).interval()
        assert found.caution.startswith(f"{covered(measured, *group)}% of 95% t intervals")


def covered(method, group, side, ess):
    """Percent, from the measurement."""
    rows = json.loads((DOCS / "small-samples.json").read_text())["by_ess"]
    found = {row["least_ess"]: row[side] for row in rows if (row["method"], row["group"]) == (method, group)}
    return round(100 * found[max(size for size in found if size <= ess)])


def test_the_cautions_are_those_of_the_measurement():
    rows = json.loads((DOCS / "small-samples.json").read_text())["by_ess"]
    measured = {}
    for row in sorted(rows, key=lambda row: row["least_ess"]):
        for side in ("two", "lower", "upper"):
            if row[side] is not None:
                measured.setdefault((row["method"], row["group"], side), []).append(round(100 * row[side]))
    told = {key: tuple(each) for key, each in measured.items() if key[0] != "auto" and min(each) < 93}
    told = {key: each for key, each in told.items() if key[:2] != ("t, influence", "averages")}  # which is t
    assert told == shortfalls.COVERAGE
    assert {row["least_ess"] for row in rows} == set(shortfalls.SIZES)


def test_the_corrections_are_measured_to_help():
    """Two-sided intervals and upper bounds come nearer to 95%; over all cells `auto` holds more often than `t`."""
    rows = json.loads((DOCS / "small-samples.json").read_text())["by_size"]
    found = {(row["group"], row["n"], row["method"]): row for row in rows}
    for (group, n, method), row in found.items():
        if method == "t, influence":
            after, skew, auto_row = (found[group, n, name] for name in ("t", "t-skew", "auto"))
            assert row["two"] <= after["two"] <= skew["two"] <= 0.96
            assert row["upper"] <= after["upper"] <= skew["upper"] <= 0.96
            assert auto_row["two"] >= after["two"]
    for n in (50, 100, 300, 1000):
        assert abs(found["weighted", n, "t-skew"]["two"] - 0.95) < 0.02
    cells = [json.loads(line) for line in (DOCS / "small-samples-cells.jsonl").read_text().splitlines()]
    known = [cell for cell in cells if cell["auto"]["two"] is not None]
    assert len(known) > 900
    assert sum(cell["auto"]["two"] - cell["t"]["two"] for cell in known) > 0


def test_effective_sample_sizes_have_a_range_each():
    named = [shortfalls._named(*ends) for ends in pairwise((*shortfalls.SIZES, None))]
    assert (named[0], named[1], named[-1]) == ("below 10", "of 10 to 30", "of 1000 or more")


def share_that_holds(logs, estimator, value, method, side="two"):
    """How often an interval holds the value, and how often x̄ ∓ q·SE with n - 1 degrees does."""
    after = before = 0
    for log in logs:
        found = estimate(log, estimator)
        interval = found.interval(0.95, method, side=side)
        half = student_quantile(0.975 if side == "two" else 0.95, found.episodes - 1) * found.std_error
        after += (side == "upper" or interval.low <= value) and (side == "lower" or value <= interval.high)
        before += (side == "upper" or found.value - half <= value) and (side == "lower" or value <= found.value + half)
    return before / len(logs), after / len(logs)


@pytest.mark.parametrize(
    ("estimator", "sigma", "was"), [("wis", 0.6, 0.9), ("step-wis", 0.6, 0.93), ("wdr", 0.6, 0.93)]
)
def test_t_skew_of_weighted_estimators_holds_at_50_trajectories(estimator, sigma, was):
    model = {"q_hat": pl.lit(0.3), "v_hat": pl.lit(0.3)} if estimator == "wdr" else {}
    logs = [lognormal([7, seed], 50, sigma, steps=5).with_columns(**model) for seed in range(400)]
    before, after = share_that_holds(logs, estimator, 0.0, "t-skew")
    assert before < was
    assert after == pytest.approx(0.95, abs=0.03)


def test_upper_bounds_of_skewed_weights_hold_without_their_skewness():
    logs = [lognormal([8, seed], 50, 1.2, reward=1.0) for seed in range(400)]
    before, after = share_that_holds(logs, "is", 1.0, "t-skew", "upper")
    assert 0.75 < before < 0.85
    assert after >= 0.9
