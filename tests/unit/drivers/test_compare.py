"""The comparison of estimators in a domain of one's own."""

import json
from dataclasses import replace

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from charts import Drawn
from offpolicy.testing import Walk

WALK = Walk()
EAGER = {"eager": WALK.policies["eager"]}


def truth_of_eager() -> float:
    return float(WALK.exact_values(EAGER["eager"])[1][0, 3])


def my_step_is(log: pl.DataFrame) -> float:
    """Step-wise importance sampling, by hand."""
    product = pl.col("ratio").cum_prod().over("episode")
    terms = log.select(product * pl.col("reward") * 0.95 ** pl.col("step")).to_series()
    return terms.sum() / log["episode"].n_unique()


def my_dr(log: pl.DataFrame) -> float:
    """DR in its forward form, by hand."""
    after = pl.col("ratio").cum_prod().over("episode")
    before = pl.col("ratio").shift(1, fill_value=1.0).over("episode").cum_prod().over("episode")
    inner = before * pl.col("v_hat") + after * (pl.col("reward") - pl.col("q_hat"))
    return log.select(inner * 0.95 ** pl.col("step")).to_series().sum() / log["episode"].n_unique()


@pytest.fixture(scope="module")
def found():
    return op.compare(
        WALK, EAGER, estimators=["step-is", "dr", my_step_is, my_dr], sizes=[20, 100], runs=30, truth_episodes=20_000
    )


def test_a_function_is_compared_like_an_estimator(found):
    table = {(row["estimator"], row["size"]): row for row in found.table.to_dicts()}
    assert found.table.height == 8
    for mine, theirs in (("my_step_is", "step-is"), ("my_dr", "dr")):
        for size in (20, 100):
            for number in ("rmse", "bias", "rmse_error", "bias_error"):
                assert table[mine, size][number] == pytest.approx(table[theirs, size][number], rel=1e-9)
    assert table["dr", 100]["rmse"] < table["step-is", 100]["rmse"]
    assert abs(table["dr", 100]["bias"]) < 4 * table["dr", 100]["bias_error"]


def test_the_truth_is_the_domains_own_simulated_or_given(found):
    assert found.truth.row(0) == ("eager", truth_of_eager(), 0.0)  # the domain's own value(policy)
    unknown = type("Unknown", (Walk,), {"value": None})()
    simulated = op.compare(unknown, EAGER, estimators=["step-is"], sizes=[20], runs=5)
    row = simulated.truth.row(0, named=True)
    assert 0 < abs(row["value"] - truth_of_eager()) < 4 * row["std_error"]
    given = op.compare(WALK, EAGER, estimators=["step-is"], sizes=[20], runs=5, truth={"eager": truth_of_eager()})
    assert given.truth.row(0) == ("eager", truth_of_eager(), 0.0)
    assert given.settings["fitter"] is None  # nothing here needs a model


def test_rmse_is_that_of_the_runs(tmp_path):
    truth = truth_of_eager()
    found = op.compare(WALK, EAGER, estimators=["step-is"], sizes=[20], runs=6, truth={"eager": truth}, out=tmp_path)
    runs = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()[1:]]
    errors = [run["estimates"][0]["eager"]["step-is"] - truth for run in runs]
    assert found.table["rmse"][0] == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-12)
    assert found.table["bias"][0] == pytest.approx(np.mean(errors), rel=1e-12)
    again = op.compare(
        WALK, EAGER, estimators=["step-is"], sizes=[20], runs=6, truth={"eager": truth}, out=tmp_path, resume=True
    )
    assert again.table.equals(found.table)


def test_models_see_other_episodes_only():
    seen = []

    class Recording:
        def fit(self, log, domain):
            seen.append(set(log["episode"].unique()))
            return op.fitter("tabular").fit(log, domain)

    op.compare(WALK, EAGER, estimators=["dr"], sizes=[9], folds=3, runs=1, fitter=Recording(), truth={"eager": 0.0})
    assert sorted(map(sorted, seen)) == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 6, 7, 8], [3, 4, 5, 6, 7, 8]]


def test_two_processes_find_what_one_finds():
    settings = {"estimators": ["step-wis", "dr"], "sizes": [20], "runs": 4, "truth": {"uniform": 0.0}}
    policies = {"uniform": op.policies.Uniform(3, WALK.legal)}
    alone, both = (op.compare(WALK, policies, workers=workers, **settings) for workers in (1, 2))
    assert alone.table.equals(both.table)


def test_table_and_figure_are_saved(found, tmp_path):
    found.save(tmp_path)
    document = json.loads((tmp_path / "comparison.json").read_text())
    assert document["table"] == found.table.to_dicts()
    assert "my_dr" in (tmp_path / "figure.svg").read_text()
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_the_figure_has_a_panel_a_policy_and_a_series_an_estimator(found):
    both = replace(found, table=pl.concat([found.table, found.table.with_columns(policy=pl.lit("lazy"))]))
    drawn = Drawn(both.figure())
    assert drawn.spec["title"] == "30 runs"
    assert (drawn.facet["field"], drawn.panels()) == ("policy", ["eager", "lazy"])
    names = ["step-is", "dr", "my_step_is", "my_dr"]  # by their ids: "is" is another estimator than "step-is"
    assert drawn.legend("line", "color") == drawn.legend("point", "shape") == names
    assert drawn.fields("line", "x", "y", "color") == ["size", "y", "estimator"]
    assert drawn.fields("rule", "x", "y", "y2") == ["size", "low", "high"]
    axes = drawn.layers["line"]
    assert (axes["x"]["title"], axes["y"]["title"]) == ("|D|", "log10 of RMSE")
    table = {(row["policy"], row["estimator"], row["size"]): row for row in both.table.to_dicts()}
    assert len(drawn.rows) == len(table) == 16
    for row in drawn.rows:
        given = table[row["policy"], row["estimator"], row["size"]]
        half = 2 * given["rmse_error"] / given["rmse"] / np.log(10)
        height = np.log10(given["rmse"])
        assert (row["y"], row["low"], row["high"]) == pytest.approx((height, height - half, height + half), rel=1e-9)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"estimators": ["drr"]}, "drr"),
        ({"estimators": []}, "at least one"),
        ({"estimators": ["dr", "dr"]}, "a name of its own"),
        ({"estimators": [3]}, "an id or a function"),
        ({"estimators": 3}, "an id or a function of a frame, not 3"),
        ({"estimators": ["step-is", "mc"]}, "'mc' is the value of the behaviour policy, whatever the target"),
        ({"runs": 0}, "runs must be a whole number of at least 1, not 0"),
        ({"runs": 2.5}, "runs must be a whole number"),
        ({"workers": 0}, "workers must be a whole number of at least 1"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"sizes": [10.5]}, "a size must be a whole number"),
        ({"sizes": 2.5}, "a size must be a whole number of at least 1, not 2.5"),
        ({"truth": 3}, "truth= must have the policies eager, not 3"),
        ({"truth": {"eager": float("nan")}}, "must be a finite number, not nan"),
        ({"fitter": 3}, "fitter= takes a name or an object"),
        ({"sizes": [1]}, "cannot be cut into 2 folds"),
        ({"truth": {"lazy": 1.0}}, "must have the policies eager"),
    ],
)
def test_wrong_usage_is_refused(changed, message):
    with pytest.raises(op.OffPolicyError, match=message):
        op.compare(WALK, EAGER, **({"runs": 1, "truth": {"eager": 0.0}} | changed))


@pytest.mark.parametrize("value", [float("nan"), None, "1"])
def test_a_function_must_give_a_number(value):
    def broken(log):
        return value

    with pytest.raises(op.OffPolicyError, match=f"'broken' gave {value!r}"):
        op.compare(WALK, EAGER, estimators=[broken], sizes=[10], runs=1, truth={"eager": 0.0})


def test_what_is_no_policy_or_domain_is_refused():
    with pytest.raises(op.UsageError, match="policy 'new' needs a method probabilities"):
        op.compare(WALK, {"new": 3})
    with pytest.raises(op.UsageError, match="takes a name or a domain"):
        op.compare(3, EAGER)
    with pytest.raises(op.UsageError, match="policies= names no policy"):
        op.compare(WALK, {})


class Unsimulated(Walk):
    simulate = None


LOGGED = op.LoggedDomain(("place",), 3, WALK.horizon, WALK.reward_range)


@pytest.mark.parametrize(
    ("domain", "says"),
    [(LOGGED, "LoggedDomain has no behavior"), (Unsimulated(), "Unsimulated has no simulate")],
)
def test_what_cannot_be_simulated_is_refused(domain, says):
    with pytest.raises(op.UsageError, match=f"compare makes its logs with a simulator, and {says}"):
        op.compare(domain, EAGER)


def test_a_size_may_be_smaller_than_folds_that_nobody_needs():
    found = op.compare(WALK, EAGER, estimators="step-is", sizes=np.array([1, 1]), runs=1, truth={"eager": 0.0})
    assert found.table.height == 1
    assert found.table["rmse_error"][0] is None


def test_a_single_size_needs_no_list():
    settings = {"estimators": "step-is", "runs": 2, "truth": {"eager": 0.0}}
    one, listed = (op.compare(WALK, EAGER, sizes=sizes, **settings) for sizes in (20, [20]))
    assert one.table.equals(listed.table)


def test_the_error_of_a_shared_truth_counts():
    """With a truth from few episodes, biases of many seeds must be as far from 0 as their errors say."""
    ratios = []
    for seed in range(25):
        found = op.compare(WALK, EAGER, estimators=["dr"], sizes=[100], runs=20, truth_episodes=200, seed=seed)
        ratios.append(found.table["bias"][0] / found.table["bias_error"][0])
    assert np.std(ratios) < 1.3  # 1.8 without it
