"""Models by wear know the values of policies, and are looked up for all policies and rows at once."""

import offpolicy as op
import pytest
from offpolicy_template import ByWear, Machine, Thresholds
from offpolicy_template.by_wear import WearValues

MACHINE = Machine()
POLICIES = [candidate.policy for candidate in Thresholds().candidates(None, MACHINE)]
INTO = [op.PolicyColumns(q_hat=f"q{i}", v_hat=f"v{i}", r_hat=f"r{i}") for i in range(len(POLICIES))]


@pytest.fixture(scope="module")
def log():
    return MACHINE.simulate(MACHINE.behavior, 3000, seed=1)


@pytest.fixture(scope="module")
def values(log):
    return ByWear().fit(log, MACHINE).values_of(POLICIES, MACHINE.horizon, MACHINE.discount)


class Asked:
    """The same values without `lookup_many`."""

    def __init__(self, values):
        self.q_hat, self.v_hat, self.r_hat = values.q_hat, values.v_hat, values.r_hat


def annotated(log, values):
    return op.annotate(log, model=values, columns=op.Columns(state=("wear",)), into=INTO)


def earned(policy):
    return op.evaluate(MACHINE.simulate(policy, 5000, seed=2), discount=MACHINE.discount, estimators=["mc"])["mc"]


@pytest.mark.parametrize("number", range(len(POLICIES)))
def test_values_are_near_what_policies_earn(values, number):
    new, truth = MACHINE.reset(1, None), earned(POLICIES[number])
    assert abs(values[number].v_hat(new, 0)[0] - truth.value) < 0.1 + 4 * truth.std_error


def test_both_ways_give_the_same_numbers(log, values):
    assert annotated(log, values).equals(annotated(log, [Asked(each) for each in values]))


def test_all_policies_are_looked_up_at_once(log, values, monkeypatch):
    calls = []
    look_up = WearValues.lookup_many

    def counted(self, questions, rows):
        calls.append(len(questions))
        return look_up(self, questions, rows)

    def refused(*_):
        raise AssertionError("asked row by row")

    monkeypatch.setattr(WearValues, "lookup_many", counted)
    for method in ("q_hat", "v_hat", "r_hat"):
        monkeypatch.setattr(WearValues, method, refused)
    annotated(log, values)
    assert calls == [len(POLICIES)]


def test_it_is_found_by_its_name(log):
    careful = MACHINE.policies["careful"]
    found, truth = (
        op.cross_fit(log, MACHINE, policy=careful, fitter="by-wear", estimators=["dr"])["dr"],
        earned(careful),
    )
    assert abs(found.value - truth.value) < 4 * (found.std_error + truth.std_error)
