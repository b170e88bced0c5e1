"""The conformance suite: what is right passes, and every rule finds its fault."""

import re
from pathlib import Path

import numpy as np
import offpolicy as op
import pytest
from faulty import DOMAINS, FITTERS, GENERATORS, Counting, Learning, Table, Values, modelled, right_lookup, valued, walk
from faulty_estimators import ESTIMATORS, INTERVALS
from lab import Dr, Own, StepIs
from offpolicy.intervals import METHODS
from offpolicy.policies import Uniform
from offpolicy.testing import (
    ConformanceError,
    Walk,
    check_domain,
    check_estimator,
    check_fitter,
    check_generator,
    check_interval,
)
from offpolicy.testing.enumeration import enumeration

SOURCES = Path(op.testing.__file__).parent


def cases(table):
    return [pytest.param(rule, item, id=f"{rule}-{i}") for rule, items in table.items() for i, item in enumerate(items)]


def rules_in(*files):
    """The rules that stand in the source."""
    text = "".join((SOURCES / file).read_text() for file in files)
    direct = re.findall(r'expect\(\s*(?:[^"]|"(?![a-z_-]+",))*?"([a-z_-]+)",\s*\n?\s*f?"', text)
    return set(direct) | set(re.findall(r'calling\("([a-z-]+)"', text))


@pytest.mark.parametrize(
    "domain", [Walk(), Walk(horizon=3), walk(grid=None), walk(policies={"any": lambda: Uniform(3, Walk().legal)})]
)
def test_a_right_domain_passes(domain):
    check_domain(domain)


def test_a_right_fitter_passes():
    check_fitter(Counting())


def test_a_right_fitter_with_a_fast_look_up_passes():
    check_fitter(valued(lookup_many=right_lookup))
    check_fitter(valued(lookup_many=lambda self, questions, rows: [{}]))


def test_a_right_fitter_that_tells_its_transitions_passes():
    class Telling(Values):
        def transition_probability(self, states, actions, next_states):
            return self.moves[states[:, 0], actions, next_states[:, 0]]

    class Model(Table):
        def values(self, policy, horizon, discount):
            right = self.table(policy, horizon, discount)
            right.__class__, right.moves = Telling, self.moves
            return right

    check_fitter(modelled(Model))


def test_a_right_generator_passes():
    check_generator(Learning())


@pytest.mark.parametrize("estimator", [StepIs(), Dr(), Own()])
def test_a_right_estimator_passes(estimator):
    check_estimator(estimator)


@pytest.mark.parametrize("name", ["normal", "t", "t-skew", "hoeffding", "bernstein", "hcope", "anderson", "bootstrap"])
def test_an_interval_of_ours_passes(name):
    check_interval(METHODS[name])


@pytest.mark.parametrize(("rule", "estimator"), cases(ESTIMATORS))
def test_a_fault_of_an_estimator_is_found(rule, estimator):
    with pytest.raises(ConformanceError) as caught:
        check_estimator(estimator)
    assert rule in caught.value.rules


@pytest.mark.parametrize(("rule", "method"), cases(INTERVALS))
def test_a_fault_of_an_interval_is_found(rule, method):
    with pytest.raises(ConformanceError) as caught:
        check_interval(method)
    assert rule in caught.value.rules


def test_the_enumerated_mdp_has_the_value_that_ours_estimate():
    every = enumeration()
    assert abs(every.probabilities.sum() - 1) < 1e-15
    log = every.log(np.arange(len(every.lengths)))
    ev = op.evaluate(log.drop("ratio"), discount=0.75, horizon=3, estimators=["is", "step-is", "dr", "dr-v2"])
    for estimate in ev.estimates:
        values = ev.values(estimate.estimator)["value"].to_numpy()
        assert abs(every.probabilities @ values - every.value) < 1e-14, estimate.estimator


@pytest.mark.parametrize(("rule", "domain"), cases(DOMAINS))
def test_a_fault_of_a_domain_is_found(rule, domain):
    with pytest.raises(ConformanceError) as caught:
        check_domain(domain)
    assert rule in caught.value.rules


@pytest.mark.parametrize(("rule", "fitter"), cases(FITTERS))
def test_a_fault_of_a_fitter_is_found(rule, fitter):
    with pytest.raises(ConformanceError) as caught:
        check_fitter(fitter)
    assert rule in caught.value.rules


@pytest.mark.parametrize(("rule", "generator"), cases(GENERATORS))
def test_a_fault_of_a_generator_is_found(rule, generator):
    with pytest.raises(ConformanceError) as caught:
        check_generator(generator)
    assert rule in caught.value.rules


def test_all_faults_come_in_one_error():
    def step(self, states, actions, rng):
        then, rewards, done = Walk.step(self, states, actions, rng)
        return then, rewards[:, None], done.astype(int)

    domain = walk(step=step, behavior=property(lambda self: Uniform(3)), action_names=None)
    with pytest.raises(ConformanceError) as caught:
        check_domain(domain)
    assert caught.value.rules == {"step-rewards", "step-done", "policy-legal"}
    assert issubclass(ConformanceError, op.OffPolicyError)
    text = str(caught.value)
    assert text.startswith("domain 'walk' breaks the protocol in 3 ways\n")
    assert text.count("the protocol: ") == text.count("to mend it: ") == 3


def test_every_rule_has_a_faulty_example():
    shared = rules_in("policies.py")
    of_domains = (
        rules_in("attributes.py", "dynamics.py", "row_numbers.py", "spaces.py", "logs.py", "exact_values.py") | shared
    )
    assert of_domains <= set(DOMAINS)
    assert rules_in("transition_laws.py") <= set(DOMAINS) | set(FITTERS)
    assert rules_in("fitters.py", "values.py", "lookups.py") <= set(FITTERS)
    assert rules_in("generators.py") <= set(GENERATORS)
    assert rules_in("estimators.py") <= set(ESTIMATORS)
    assert rules_in("interval_methods.py") <= set(INTERVALS)
    assert len(of_domains) > 30


def test_the_values_of_the_walk_are_those_of_enumeration():
    """All paths of a short walk, with their probabilities."""
    walk = Walk(horizon=4)
    policy = walk.policies["eager"]

    def value(place, t):
        if t == walk.horizon:
            return 0.0
        total = 0.0
        for action, p in enumerate(policy.probabilities(np.array([[place]]), t)[0]):
            for sign, chance in ((1, 0.9), (-1, 0.1)):
                then = place + sign * (action - 1)
                reward = 1.0 if then == 6 else 0.0 if action == 1 else -0.05
                total += p * chance * (reward + (0 if then in (0, 6) else walk.discount * value(then, t + 1)))
        return total

    q, v = walk.exact_values(policy)
    assert np.allclose(v[0, 1:-1], [value(place, 0) for place in range(1, 6)], rtol=0, atol=1e-12)
    assert q.shape == (4, 7, 3)
