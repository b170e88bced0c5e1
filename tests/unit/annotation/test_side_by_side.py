"""Values of several policies, found and looked up together, are those of each policy alone."""

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.policies import Mixture, TabularPolicy, Uniform

HORIZON, DISCOUNT, CELLS, ACTIONS = 7, 0.9, 6, 3
GRID = op.Grid((CELLS,))
DOMAIN = op.LoggedDomain(state_columns=("state",), actions=ACTIONS, horizon=HORIZON, reward_range=(-2.0, 2.0))


def some_log(rows: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "episode": np.arange(rows) // HORIZON,
            "step": (np.arange(rows) % HORIZON).astype(np.int32),
            "state": rng.integers(CELLS, size=rows),
            "action": rng.integers(ACTIONS, size=rows),
            "reward": rng.normal(size=rows).clip(-2, 2),
        }
    )


def some_policies(count: int) -> list:
    table = np.random.default_rng(5).dirichlet(np.ones(ACTIONS), size=CELLS)
    return [Mixture(TabularPolicy(table, GRID), Uniform(ACTIONS), i / count) for i in range(count)]


FITTERS = [op.fitter("tabular", aggregate=GRID), op.fitter("kernel", grid=GRID)]


@pytest.mark.parametrize("fitter", FITTERS, ids=["tabular", "kernel"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9])
def test_side_by_side_is_as_each_alone(fitter, count):
    model, log, policies = fitter.fit(some_log(300, 1), DOMAIN), some_log(140, 2), some_policies(count)
    columns = op.Columns(state=("state",))
    into = [op.PolicyColumns(q_hat=f"q{i}", v_hat=f"v{i}") for i in range(count)]
    together = op.annotate(
        log, model=model.values_of(policies, HORIZON, DISCOUNT), columns=columns, into=into, first_step=0
    )
    for i, policy in enumerate(policies):
        values = model.values(policy, HORIZON, DISCOUNT)
        alone = op.annotate(log, model=values, columns=columns, first_step=0)
        assert together[f"q{i}"].to_list() == alone["q_hat"].to_list()
        assert together[f"v{i}"].to_list() == alone["v_hat"].to_list()
        asked = values.q_hat(log.select("state").to_numpy(), log["action"].to_numpy(), log["step"].to_numpy())
        assert together[f"q{i}"].to_list() == asked.tolist()


@pytest.mark.parametrize("fitter", FITTERS, ids=["tabular", "kernel"])
def test_asked_again_the_values_are_the_same(fitter):
    model, log = fitter.fit(some_log(300, 1), DOMAIN), some_log(140, 2)
    values = model.values_of(some_policies(3), HORIZON, DISCOUNT)
    into = [op.PolicyColumns(q_hat=f"q{i}", v_hat=f"v{i}") for i in range(3)]
    first, second = (op.annotate(log, model=values, columns=op.Columns(state=("state",)), into=into) for _ in range(2))
    assert first.equals(second)


def test_lists_must_have_one_entry_a_policy():
    values = FITTERS[0].fit(some_log(30, 1), DOMAIN).values_of(some_policies(2), HORIZON, DISCOUNT)
    with pytest.raises(op.UsageError, match="into= has 1 entries, policy= 1 and model= 2"):
        op.annotate(some_log(14, 2), model=values, into=[op.PolicyColumns(q_hat="q")])
    with pytest.raises(op.UsageError, match="a column twice: q, q"):
        op.annotate(some_log(14, 2), model=values, into=[op.PolicyColumns(q_hat="q")] * 2)
