"""Any values that have `lookup_many`, and any policy that has `lookup`, are asked for all rows at once."""

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.policies import Mixture, TabularPolicy, Uniform
from offpolicy.testing import Walk

WALK = Walk()
LOG = WALK.simulate(WALK.behavior, 60, seed=3)
EAGER = WALK.policies["eager"]
COLUMNS = op.Columns.of(WALK)


class Asked:
    """Values with no more than the protocol."""

    def __init__(self, values):
        self.q_hat, self.v_hat, self.r_hat = values.q_hat, values.v_hat, values.r_hat


class Looked(Asked):
    """The same with a look-up that answers so many questions, with these roles, and notes what it was asked."""

    def __init__(self, values, answers=1, roles=("q_hat", "v_hat", "r_hat")):
        super().__init__(values)
        self.answers, self.roles, self.calls = answers, roles, []

    def lookup_many(self, questions, rows):
        self.calls.append(len(questions))
        answers = []
        for question in questions[: self.answers]:
            of, at = question.values, (rows.states, rows.actions, rows.steps)
            made = {"q_hat": of.q_hat(*at), "v_hat": of.v_hat(at[0], at[2]), "r_hat": of.r_hat(*at[:2])}
            answers.append({role: made[role] for role in self.roles})
        return answers


def values_of(count, kind=Asked, **options):
    model = op.fitter("tabular").fit(LOG, WALK)
    policies = [Mixture(EAGER, WALK.behavior, i / count) for i in range(count)]
    return [kind(model.values(policy, WALK.horizon, WALK.discount), **options) for policy in policies]


def annotated(log, values, **options):
    into = [op.PolicyColumns(q_hat=f"q{i}", v_hat=f"v{i}", r_hat=f"r{i}") for i in range(len(values))]
    return op.annotate(log, model=values, columns=COLUMNS, into=into, **options).lazy().collect()


@pytest.mark.parametrize("first_step", [0, 1])
@pytest.mark.parametrize("roles", [("q_hat", "v_hat", "r_hat"), ("v_hat",), ()])
@pytest.mark.parametrize("answers", [1, 2, 5])
def test_a_look_up_gives_the_numbers_of_asking(answers, roles, first_step):
    log = LOG.with_columns(pl.col("step") + first_step)
    values = values_of(5, Looked, answers=answers, roles=roles)
    assert annotated(log, values).equals(annotated(log, values_of(5)))
    expected = {1: [[5], [4], [3], [2], [1]], 2: [[5], [], [3], [], [1]], 5: [[5], [], [], [], []]}
    assert [each.calls for each in values] == expected[answers]


@pytest.mark.parametrize("lazy", [False, True])
def test_a_policy_is_looked_up_where_it_can_be(lazy, monkeypatch):
    table = TabularPolicy(np.random.default_rng(1).dirichlet(np.ones(3), size=WALK.grid.cells), WALK.grid)
    right = table.probabilities(LOG.select("place").to_numpy(), 0)[np.arange(LOG.height), LOG["action"].to_numpy()]

    def refused(*_):
        raise AssertionError("asked for rows of probabilities")

    monkeypatch.setattr(TabularPolicy, "probabilities", refused)
    for model in (None, values_of(1)[0]):
        made = op.annotate(LOG.lazy() if lazy else LOG, table, model, COLUMNS).lazy().collect()
        assert made["target_prob"].to_list() == right.tolist()


def wrong(look_up):
    return [type("Wrong", (Asked,), {"lookup_many": look_up})(values_of(1)[0])]


def test_answers_that_are_none_are_refused():
    for answers in ([], [{}, {}], None, {}):
        with pytest.raises(op.OffPolicyError, match="lookup_many must give a list of answers, one at least and 1"):
            annotated(LOG, wrong(lambda self, questions, rows, answers=answers: answers))
    with pytest.raises(op.OffPolicyError, match=r"q_hat must give \d+ numbers, not an array of shape \(1,\)"):
        annotated(LOG, wrong(lambda self, questions, rows: [{"q_hat": np.zeros(1)}]))


def test_what_nobody_asked_for_is_left_out():
    values = wrong(lambda self, questions, rows: [{"target_prob": np.zeros(len(rows.steps)), "more": 3}])
    assert annotated(LOG, values).equals(annotated(LOG, values_of(1)))


class Cells:
    """An aggregation of one's own, with no more than the protocol."""

    cells = WALK.grid.cells

    def index(self, states):
        return WALK.grid.index(states)


def test_tables_over_cells_of_ones_own():
    cells, table = Cells(), np.tile([0.25, 0.25, 0.5], (WALK.grid.cells, 1))
    ours, theirs = TabularPolicy(table, cells), TabularPolicy(table, WALK.grid)
    assert op.annotate(LOG, ours, columns=COLUMNS).equals(op.annotate(LOG, theirs, columns=COLUMNS))


def test_mixtures_deeper_than_the_stack_have_a_table():
    deep = Uniform(3)
    for _ in range(3000):
        deep = Mixture(deep, Uniform(3), 0.5)
    assert deep.is_stationary
    assert np.allclose(deep.tabulated(WALK.grid, 3).probabilities, 1 / 3)
    assert Mixture(Uniform(3), EAGER, 0.5).tabulated(WALK.grid, 4) is None
