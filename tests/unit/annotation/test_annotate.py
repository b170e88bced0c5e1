"""`op.annotate`: the same numbers for a frame, a query and Parquet files, by tables or by asking."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.annotation import annotator
from offpolicy.models.fitters.tabular import Tabular
from offpolicy.policies import FromCallable, Mixture, TabularPolicy, Uniform
from polars.testing import assert_frame_equal
from tiny_mdp import STATES, TinyDomain, tiny_log, value_by_paths

GRID = op.Grid((STATES,))
DOMAIN = TinyDomain()
TABLE = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
TARGET = TabularPolicy(TABLE, GRID)
MIXED = Mixture(TARGET, Uniform(2), 0.3)
ASKED = FromCallable(lambda states, step: TABLE[states[:, 0]])
BY_STEP = FromCallable(lambda states, step: np.where((step % 2 == 0)[:, None], [[0.25, 0.75]], TABLE[states[:, 0]]))


@dataclass(frozen=True)
class Wrapped:
    """The same values, but no table that the core could see."""

    values: object

    def q_hat(self, states, actions, step):
        return self.values.q_hat(states, actions, step)

    def v_hat(self, states, step):
        return self.values.v_hat(states, step)

    def r_hat(self, states, actions):
        return self.values.r_hat(states, actions)


@pytest.fixture(scope="module")
def log():
    return tiny_log(episodes=500)


@pytest.fixture(scope="module")
def values(log):
    return Tabular(aggregate=GRID).fit(log, DOMAIN).values(TARGET, 5, 0.9)


def test_columns_are_what_policy_and_model_say(log, values):
    found = op.annotate(log, TARGET, values)
    s, a, t = (log[name].to_numpy() for name in ("state", "action", "step"))
    states = s[:, None]
    assert (found["target_prob"].to_numpy() == TABLE[s, a]).all()
    assert (found["q_hat"].to_numpy() == values.q_hat(states, a, t)).all()
    assert (found["v_hat"].to_numpy() == values.v_hat(states, t)).all()
    assert (found["r_hat"].to_numpy() == values.r_hat(states, a)).all()
    assert found.columns == [*log.columns, "target_prob", "q_hat", "v_hat", "r_hat"]
    assert_frame_equal(found.select(log.columns), log)


@pytest.mark.parametrize("policy", [TARGET, MIXED, ASKED, BY_STEP])
@pytest.mark.parametrize("wrapped", [False, True])
def test_frame_query_and_files_agree_bit_for_bit(log, values, policy, wrapped, tmp_path, monkeypatch):
    monkeypatch.setattr(annotator, "BATCH_ROWS", 97)
    model = Wrapped(values) if wrapped else values
    columns = op.Columns(state=("state",))
    frame = op.annotate(log, policy, model, columns)
    half = log.height // 2
    log[:half].write_parquet(tmp_path / "a.parquet", row_group_size=50)
    log[half:].write_parquet(tmp_path / "b.parquet", row_group_size=333)
    for other in (log.lazy(), tmp_path / "*.parquet", pl.scan_parquet(tmp_path / "*.parquet")):
        lazy = op.annotate(other, policy, model, columns)
        assert isinstance(lazy, pl.LazyFrame)
        assert_frame_equal(lazy.collect(), frame, check_exact=True)
        assert_frame_equal(lazy.collect(engine="streaming"), frame, check_exact=True)
    assert_frame_equal(op.annotate(log.to_arrow(), policy, model, columns), frame, check_exact=True)


def test_tables_and_asking_agree_bit_for_bit(log, values):
    columns = op.Columns(state=("state",))
    assert_frame_equal(
        op.annotate(log, TARGET, values), op.annotate(log, ASKED, Wrapped(values), columns), check_exact=True
    )


def test_threads_change_nothing(values):
    long = pl.concat([tiny_log(episodes=20_000)] * 3)
    one, many = (op.annotate(long, TARGET, values, threads=n) for n in (1, 4))
    assert_frame_equal(one, many, check_exact=True)


def test_a_policy_or_a_model_alone(log, values):
    assert op.annotate(log, TARGET, columns=op.Columns(state=("state",))).columns == [*log.columns, "target_prob"]
    assert op.annotate(log, model=values).columns == [*log.columns, "q_hat", "v_hat", "r_hat"]
    with pytest.raises(op.UsageError, match="a policy=, a model= or both"):
        op.annotate(log)


def test_columns_that_are_there_are_replaced(log, values, tmp_path):
    fresh = op.annotate(log, TARGET, values)
    stale = fresh.with_columns(pl.lit(7).alias("q_hat"), pl.lit("old").alias("target_prob"))
    assert_frame_equal(op.annotate(stale, TARGET, values), fresh, check_exact=True)
    assert_frame_equal(op.annotate(stale.lazy(), TARGET, values).collect(), fresh, check_exact=True)


@pytest.mark.parametrize("policy", [TARGET, BY_STEP])
def test_steps_may_count_from_one(log, values, policy):
    shifted = log.with_columns(pl.col("step") + 1)
    frame = op.annotate(log, policy, values)
    for other in (shifted, shifted.lazy()):
        found = op.annotate(other, policy, values).lazy().collect()
        assert_frame_equal(found.drop("step"), frame.drop("step"), check_exact=True)
    assert_frame_equal(
        op.annotate(shifted.lazy(), policy, values, first_step=1).collect().drop("step"), frame.drop("step")
    )


def test_a_lazy_log_reads_only_what_is_asked(log, values):
    def no(column):
        raise AssertionError("read")

    query = log.lazy().with_columns(unused=pl.col("reward").map_batches(no, return_dtype=pl.Float64))
    assert op.annotate(query, TARGET, values).select("q_hat").collect().height == log.height


def test_several_policies_in_one_scan(log, values):
    careful = op.PolicyColumns.named("careful", "target_prob", "q_hat", "v_hat")
    bold = op.PolicyColumns(target_prob="p_bold")
    both = (
        log.lazy()
        .ope.annotate(policy=MIXED, model=values, into=careful)
        .ope.annotate(policy=TARGET, into=bold, columns=op.Columns(state=("state",)))
    )
    assert {"target_prob_careful", "q_hat_careful", "v_hat_careful", "p_bold"} <= set(both.collect_schema().names())
    ev = op.evaluate(both, discount=0.9, policies={"careful": careful, "bold": bold})
    alone = op.evaluate(op.annotate(log, MIXED, values), discount=0.9)
    assert ev["careful", "dr"].value == alone["dr"].value
    assert ev["bold", "step-is"].value == op.evaluate(op.annotate(log, TARGET, values), discount=0.9)["step-is"].value


@pytest.mark.parametrize(
    ("into", "message"),
    [
        (op.PolicyColumns.named("x"), "q_hat, which needs a model="),
        (op.PolicyColumns(ratio="rho"), "no column to write"),
    ],
)
def test_into_names_only_what_can_be_written(log, into, message):
    with pytest.raises(op.UsageError, match=message):
        op.annotate(log, TARGET, into=into)


def at(log, column, row, value):
    return log.with_columns(pl.when(pl.int_range(pl.len()) == row).then(value).otherwise(column).alias(column))


@pytest.mark.parametrize("kind", ["tables", "asked"])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("action", 2, "action = 2: must be an action from 0 to 1"),
        ("action", -1, "action = -1: must be an action from 0 to 1"),
        ("step", -1, "step = -1: steps count from 0 here"),
        ("state", None, "state = None: must be there and finite"),
    ],
)
def test_bad_rows_are_named(log, values, kind, lazy, column, value, message):
    policy, model = (TARGET, values) if kind == "tables" else (ASKED, None)
    bad = at(log, column, 40, value)
    where = f"episode {log['episode'][40]}, step {bad['step'][40]}: {message}"
    with pytest.raises(op.OffPolicyError, match=where):
        op.annotate(bad.lazy() if lazy else bad, policy, model, op.Columns(state=("state",))).lazy().collect()


def test_steps_beyond_the_horizon_and_states_outside_are_named(log, values):
    with pytest.raises(op.BadLogError, match=r"episode \d+, step 5: step = 5: is beyond the horizon of 5 steps"):
        op.annotate(at(log, "step", 3, 5), TARGET, values)
    with pytest.raises(op.BadLogError, match=r"episode 0, step 3: state = 9: is in no cell"):
        op.annotate(at(log, "state", 3, 9) if log["episode"][3] == 0 else log, TARGET, values)


def test_columns_of_the_wrong_type_are_refused(log, values):
    with pytest.raises(op.WrongTypeError, match="'action' must hold whole numbers"):
        op.annotate(log.with_columns(pl.col("action").cast(float)), TARGET, values)
    with pytest.raises(op.MissingColumnError, match="no column 'state'"):
        op.annotate(log.drop("state"), TARGET, values)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt32, pl.Int64])
def test_any_width_of_whole_numbers(log, values, dtype):
    other = log.with_columns(pl.col("action", "step").cast(dtype))
    assert_frame_equal(
        op.annotate(other, TARGET, values)[:, -4:], op.annotate(log, TARGET, values)[:, -4:], check_exact=True
    )


def test_models_of_the_wrong_shape_are_refused(log):
    class Wrong(Wrapped):
        def q_hat(self, states, actions, step):
            return np.zeros((len(states), 2))

    with pytest.raises(op.OffPolicyError, match="the model's q_hat must give"):
        op.annotate(log, model=Wrong(None), columns=op.Columns(state=("state",)), into=op.PolicyColumns(q_hat="q"))


def test_an_empty_log_stays_empty(log, values):
    assert op.annotate(log[:0], ASKED, values).columns == op.annotate(log[:0].lazy(), ASKED, values).collect().columns


def test_simulate_fit_annotate_evaluate():
    """DR of a fitted model, on other episodes, finds the exact value of the target policy."""
    fit, rest = tiny_log(seed=0, episodes=2000), DOMAIN.simulate(DOMAIN.behavior, 4000, 1)
    model = op.fitter("tabular", aggregate=GRID).fit(fit, DOMAIN)
    annotated = op.annotate(rest.lazy(), TARGET, model.values(TARGET, DOMAIN.horizon, DOMAIN.discount))
    ev = op.evaluate(annotated, discount=DOMAIN.discount, horizon=DOMAIN.horizon)
    table = [[Fraction(p) for p in row] for row in TABLE.tolist()]
    exact = float(
        value_by_paths(DOMAIN.rewards, DOMAIN.transitions, lambda t: table, 0, 0, DOMAIN.horizon, Fraction(9, 10))
    )
    for estimator in ("dr", "step-is"):
        assert abs(ev[estimator].value - exact) < 4 * ev[estimator].std_error
    assert ev["dr"].std_error < 0.8 * ev["step-is"].std_error


def test_v_hat_is_the_policys_mean_of_q_hat_at_the_state_and_not_at_its_cell():
    grid = op.Grid((2,), scale=(0.1,))  # ten states a cell
    rng = np.random.default_rng(5)
    n = 400
    log = pl.DataFrame(
        {
            "episode": np.arange(n),
            "step": np.zeros(n, dtype=np.int32),
            "state": rng.uniform(0, 14, n),
            "action": rng.integers(0, 2, n),
            "reward": rng.normal(size=n),
        }
    )
    domain = op.LoggedDomain(state_columns=("state",), actions=2, horizon=1, reward_range=(-9.0, 9.0))
    fine = op.policies.FromCallable(lambda states, step: np.stack([states[:, 0], 14 - states[:, 0]], axis=1) / 14)
    values = op.fitter("tabular", aggregate=grid).fit(log, domain).values(fine, horizon=1, discount=1.0)
    states = log[["state"]].to_numpy()
    q = np.stack([values.q_hat(states, np.full(n, a), 0) for a in range(2)], axis=1)
    expected = (fine.probabilities(states, 0) * q).sum(axis=1)
    assert values.v_hat(states, 0) == pytest.approx(expected, rel=1e-12)
    assert op.annotate(log, fine, values)["v_hat"].to_numpy() == pytest.approx(expected, rel=1e-12)
    assert np.unique(expected).size > 100
