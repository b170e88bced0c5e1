"""Domains, fitters and generators, each with one fault, by the rule that must find it."""

from dataclasses import replace

import numpy as np
import offpolicy as op
import polars as pl
from offpolicy.folds import split
from offpolicy.logs.transitions import transitions
from offpolicy.policies import FromCallable, TabularPolicy, Uniform
from offpolicy.testing import Walk
from offpolicy.testing.walk import PLACES


def walk(**changes):
    """A walk with some of its members replaced."""
    return type("Changed", (Walk,), changes)()


def stepping(change):
    """A walk whose result of a step is changed."""

    def step(self, states, actions, rng):
        return change(*Walk.step(self, states, actions, rng))

    return walk(step=step)


def behaving(function):
    """A walk whose behaviour policy is a function of (policy, states, step)."""

    class Policy:
        def probabilities(self, states, step):
            return function(Uniform(3, Walk().legal), states, step)

    return walk(behavior=property(lambda self: Policy()))


def simulating(change):
    """A walk whose log is changed."""
    return walk(simulate=lambda self, policy, n, seed: change(Walk.simulate(self, policy, n, seed)))


def _mutating_step(self, states, actions, rng):
    result = Walk.step(self, states, actions, rng)
    states += 1
    return result


def _mutating_policy(policy, states, step):
    pi = policy.probabilities(states, step)
    states[:] = 0
    return pi


def _mutating_legal(self, states):
    allowed = Walk.legal(self, states)
    states[:] = 0
    return allowed


def _unseeded(self, states, actions, rng):
    return Walk.step(self, states, actions, np.random.default_rng())


def _shared(self, states, actions, rng):
    class One:
        def random(self, n):
            return np.full(n, rng.random())

    return Walk.step(self, states, actions, One())


def _mixing_rows(self, states, actions, rng):
    then, rewards, done = Walk.step(self, states, actions, rng)
    return then, rewards / len(states), done


def _one_of_two_noises(self, states, actions, rng):
    """Rewards are random, more so in the rows of the second half."""
    then, rewards, done = Walk.step(self, states, actions, rng)
    late = np.arange(len(states)) >= len(states) / 2
    return then, np.clip(rewards - rng.random(len(states)) * np.where(late, 0.2, 0.01), -0.05, 1.0), done


def _without(name):
    class Lacking:
        def __getattr__(self, asked):
            if asked == name:
                raise AttributeError(asked)
            return getattr(Walk(), asked)

    return Lacking()


class Restless:
    """Other probabilities at each call."""

    calls = 0

    def probabilities(self, states, step):
        Restless.calls += 1
        return np.tile([0.5, 0, 0.5] if Restless.calls % 2 else [0.4, 0, 0.6], (len(states), 1))


def _one_step_only(policy, states, step):
    if not np.isscalar(step):
        raise TypeError("one step at a time")
    return policy.probabilities(states, step)


def _refuses_nothing(policy, states, step):
    if not len(states):
        raise ValueError("no state")
    return policy.probabilities(states, step)


def _first_row_for_all(policy, states, step):
    pi = policy.probabilities(states, step)
    return np.tile([0.5, 0, 0.5], (len(pi), 1)) if len(pi) > 1 else np.tile([0.4, 0, 0.6], (len(pi), 1))


def _mutating_law(self, states, actions, next_states):
    found = Walk.transition_probability(self, states, actions, next_states)
    next_states += 1
    return found


LEGAL = Uniform(3, Walk().legal)

DOMAINS = {
    "name": [replace(Walk(), name=""), replace(Walk(), name=3), _without("name")],
    "state_columns": [
        replace(Walk(), state_columns="place"),
        replace(Walk(), state_columns=()),
        replace(Walk(), state_columns=("reward",)),
        replace(Walk(), state_columns=("a", "a")),
        replace(Walk(), state_columns=("a", "next_a")),
        _without("state_columns"),
    ],
    "actions": [replace(Walk(), actions=0), replace(Walk(), actions=3.0), _without("actions")],
    "horizon": [replace(Walk(), horizon=0), replace(Walk(), horizon=True), _without("horizon")],
    "discount": [replace(Walk(), discount=1.5), replace(Walk(), discount=float("nan")), _without("discount")],
    "reward_range": [
        replace(Walk(), reward_range=(1.0, 0.0)),
        replace(Walk(), reward_range=(0.0, float("inf"))),
        replace(Walk(), reward_range=(0.0,)),
        _without("reward_range"),
    ],
    "reset": [
        _without("reset"),
        walk(reset=lambda self, n, rng: np.full(n, 3)),
        walk(reset=lambda self, n, rng: [[3]] * n),
        walk(reset=lambda self, n, rng: np.full((n, 1), np.nan)),
        walk(reset=lambda self, n, rng: np.full((n, 1), "3")),
        walk(reset=lambda self, n, rng: 1 / 0),
    ],
    "reset-single": [walk(reset=lambda self, n, rng: np.full((n, 1), 3) if n > 1 else np.array([3]))],
    "reset-repeat": [walk(reset=lambda self, n, rng: np.random.default_rng().integers(2, 5, (n, 1)))],
    "reset-shared": [walk(reset=lambda self, n, rng: np.full((n, 1), rng.uniform(2, 5)), grid=None)],
    "legal": [
        _without("legal"),
        walk(legal=lambda self, states: np.ones((len(states), 2), dtype=bool)),
        walk(legal=lambda self, states: np.ones((len(states), 3))),
        walk(legal=lambda self, states: 1 / 0),
    ],
    "legal-none": [walk(legal=lambda self, states: np.repeat(states != 1, 3, axis=1))],
    "legal-rows": [
        walk(legal=lambda self, states: Walk.legal(self, states) & ((np.arange(3) < 2) | (len(states) < 2)))
    ],
    "legal-mutates": [walk(legal=_mutating_legal)],
    "behavior": [_without("behavior"), walk(behavior=property(lambda self: 1 / 0))],
    "simulate": [_without("simulate")],
    "step": [
        _without("step"),
        stepping(lambda then, rewards, done: (then, rewards)),
        walk(step=lambda self, states, actions, rng: 1 / 0),
    ],
    "step-states": [
        stepping(lambda then, rewards, done: (then[:, 0], rewards, done)),
        stepping(lambda then, rewards, done: (then * np.nan, rewards, done)),
        stepping(lambda then, rewards, done: (then + 0.5, rewards, done)),
    ],
    "step-rewards": [
        stepping(lambda then, rewards, done: (then, 0.0, done)),
        stepping(lambda then, rewards, done: (then, rewards[:, None], done)),
        stepping(lambda then, rewards, done: (then, rewards * np.nan, done)),
    ],
    "step-done": [
        stepping(lambda then, rewards, done: (then, rewards, done.astype(int))),
        stepping(lambda then, rewards, done: (then, rewards, False)),
    ],
    "step-single-done": [
        stepping(lambda then, rewards, done: (then, rewards, done if len(done) > 1 else done.astype(int)))
    ],
    "step-mutates": [walk(step=_mutating_step)],
    "step-repeat": [walk(step=_unseeded)],
    "step-shared": [walk(step=_shared)],
    "step-rows": [
        walk(step=lambda self, states, actions, rng: _mixing_rows(self, states, actions, np.random.default_rng(0)))
    ],
    "step-row-number": [
        stepping(lambda then, rewards, done: (then, rewards - 1e-9 * np.arange(len(rewards)), done)),
        stepping(lambda then, rewards, done: (then, rewards - 1e-3 * (np.arange(len(rewards)) == 0), done)),
        stepping(lambda then, rewards, done: (then, np.where(np.arange(len(done)) % 2, rewards, 0.0), done)),
        stepping(lambda then, rewards, done: (then, rewards, done & (np.arange(len(done)) < 40))),
        walk(step=_one_of_two_noises),
    ],
    "value": [
        walk(value=lambda self, policy: Walk.value(self, policy) + 0.15),
        walk(value=lambda self, policy: Walk.value(replace(Walk(), discount=0.6), policy)),
        walk(value=lambda self, policy: float("nan")),
        walk(value=lambda self, policy: self.exact_values(policy)[1]),
        walk(value=lambda self, policy: 1 / 0),
    ],
    "transition-call": [walk(transition_probability=lambda self, states, actions, then: 1 / 0)],
    "transition-shape": [
        walk(transition_probability=lambda self, states, actions, then: np.ones((len(states), 1))),
        walk(transition_probability=lambda self, states, actions, then: np.full(len(states), np.nan)),
        walk(transition_probability=_mutating_law),
    ],
    "transition-step": [
        walk(transition_probability=lambda self, states, actions, then: np.full(len(states), 0.5)),
        walk(
            transition_probability=lambda self, states, actions, then: Walk.transition_probability(
                self, then, actions, states
            )
        ),
        stepping(lambda then, rewards, done: (then, rewards, np.zeros(len(done), dtype=bool))),
    ],
    "transition-sum": [walk(transition_probability=lambda self, states, actions, then: np.ones(len(states)))],
    "reward-range": [replace(Walk(), reward_range=(0.0, 1.0)), stepping(lambda then, r, done: (then, r * 2, done))],
    "policy-call": [
        walk(behavior=property(lambda self: 3)),
        behaving(lambda policy, states, step: 1 / 0),
        walk(policies={"odd": lambda: 3}),
    ],
    "policy-shape": [
        behaving(lambda policy, states, step: np.full(3, 1 / 3)),
        behaving(lambda policy, states, step: np.full((len(states), 2), 0.5)),
        behaving(lambda policy, states, step: [[0.5, 0, 0.5]] * len(states)),
    ],
    "policy-probabilities": [
        behaving(lambda policy, states, step: policy.probabilities(states, step) * 0.9),
        behaving(lambda policy, states, step: np.tile([1.5, 0, -0.5], (len(states), 1))),
        behaving(lambda policy, states, step: np.full((len(states), 3), np.nan)),
    ],
    "policy-legal": [
        walk(behavior=property(lambda self: Uniform(3))),
        walk(policies={"careless": lambda: Uniform(3)}),
        walk(policies={"careless": Uniform(3)}),
    ],
    "policy-mutates": [behaving(_mutating_policy)],
    "policy-repeat": [walk(behavior=property(lambda self: Restless()))],
    "policy-rows": [behaving(_first_row_for_all)],
    "policy-steps": [behaving(_one_step_only)],
    "policy-empty": [behaving(_refuses_nothing)],
    "action_names": [
        walk(action_names=("left", "right")),
        walk(action_names="abc"),
        walk(action_names=("a", "a", "b")),
    ],
    "policies": [walk(policies={"behavior": Uniform(3)}), walk(policies=[Uniform(3)]), walk(policies={"a": 3})],
    "plot": [walk(plot="picture")],
    "grid": [walk(grid=op.Grid((7, 7))), walk(grid=7)],
    "grid-covers": [walk(grid=op.Grid((PLACES - 1,)))],
    "log": [simulating(lambda log: 1 / 0)],
    "log-columns": [simulating(lambda log: log.drop("terminal")), simulating(lambda log: log.lazy())],
    "log-repeat": [
        walk(
            simulate=lambda self, policy, n, seed: Walk.simulate(
                self, policy, n, np.random.SeedSequence().entropy % 2**31
            )
        )
    ],
    "log-check": [simulating(lambda log: log.with_columns(behavior_prob=pl.lit(0.0)))],
    "log-episodes": [simulating(lambda log: log.filter(pl.col("episode") > 0))],
    "log-horizon": [replace(simulating(lambda log: Walk().simulate(LEGAL, 200, 0)), horizon=5)],
    "log-terminal": [simulating(lambda log: log.with_columns(terminal=pl.lit(False)))],
    "log-next": [simulating(lambda log: log.with_columns(next_place=pl.col("place")))],
    "log-evaluate": [simulating(lambda log: log.with_columns(pl.col("step") + 1))],
    "log-behavior": [simulating(lambda log: log.with_columns(pl.col("behavior_prob") / 2))],
}


class Counting:
    """A small right fitter: counts of the walk, dynamic programming, unseen pairs stay and earn nothing."""

    def fit(self, log, domain):
        counts, rewards = np.zeros((PLACES, 3, PLACES)), np.zeros((PLACES, 3))
        for part in transitions(log, domain):
            known = part.known
            s, a, then = part.states[known, 0].astype(int), part.actions[known], part.next_states[known, 0].astype(int)
            np.add.at(counts, (s, a, then), 1)
            np.add.at(rewards, (s, a), part.rewards[known])
        seen = np.maximum(counts.sum(axis=2), 1)
        return self.model(counts / seen[:, :, None], rewards / seen, domain)

    def model(self, moves, rewards, domain):
        return Table(moves, rewards, domain)


class Recording(Counting):
    """Remembers the episodes of each fit."""

    def __init__(self):
        self.fits = []

    def fit(self, log, domain):
        self.fits.append(set(log.lazy().collect()["episode"]))
        return super().fit(log, domain)


class Table:
    """The model of `Counting`."""

    def __init__(self, moves, rewards, domain):
        self.moves, self.rewards, self.domain = moves, rewards, domain
        self.ends = np.isin(np.arange(PLACES), (0, PLACES - 1))

    def values(self, policy, horizon, discount):
        return self.table(policy, horizon, discount)

    def table(self, policy, horizon, discount):
        places = np.arange(PLACES)[:, None]
        q, v = np.zeros((horizon, PLACES, 3)), np.zeros((horizon + 1, PLACES))
        for t in reversed(range(horizon)):
            q[t] = self.rewards + discount * self.moves @ v[t + 1]
            v[t] = np.where(self.ends, 0, (policy.probabilities(places, t) * q[t]).sum(axis=1))
        return Values(q, policy, self.rewards)

    def optimal_policy(self, maximize=True):
        return Uniform(3, self.domain.legal)


class Values:
    """The values of `Table`."""

    def __init__(self, q, policy, rewards):
        self.q, self.policy, self.rewards = q, policy, rewards

    def q_hat(self, states, actions, step):
        return self.q[step, states[:, 0], actions]

    def v_hat(self, states, step):
        pi = self.policy.probabilities(states, step)
        return (pi * self.q[step, states[:, 0]]).sum(axis=1)

    def r_hat(self, states, actions):
        return self.rewards[states[:, 0], actions]


def valued(**changes):
    """The right fitter with other values."""
    values = type("OddValues", (Values,), changes)

    class Model(Table):
        def values(self, policy, horizon, discount):
            right = self.table(policy, horizon, discount)
            return values(right.q, right.policy, right.rewards)

    return modelled(Model)


def modelled(model):
    """The right fitter with another model."""

    class Fitter(Counting):
        def model(self, moves, rewards, domain):
            return model(moves, rewards, domain)

    return Fitter()


def optimal(policy):
    """The right fitter with that optimal policy."""
    return modelled(type("Model", (Table,), {"optimal_policy": lambda self, maximize=True: policy}))


class OnlyFrames(Counting):
    def fit(self, log, domain):
        return super().fit(log.filter(pl.col("episode") >= 0), domain)


class OnlyHalf(Counting):
    def fit(self, log, domain):
        return super().fit(log if isinstance(log, pl.DataFrame) else split(log, 0.5)[0], domain)


class Noisy(Counting):
    def model(self, moves, rewards, domain):
        return Table(moves, rewards + np.random.default_rng().normal(size=rewards.shape) * 1e-3, domain)


class Spoiling(Counting):
    def fit(self, log, domain):
        model = super().fit(log, domain)
        if isinstance(log, pl.DataFrame):
            log.insert_column(0, pl.Series("new", np.zeros(log.height)))
        return model


class Several(Table):
    def values_of(self, policies, horizon, discount):
        return [self.values(policies[0], horizon, discount) for _ in policies]


class Stationary(Table):
    def values(self, policy, horizon, discount):
        right = self.table(policy, horizon, discount)
        return Values(np.broadcast_to(right.q[:1], right.q.shape), policy, right.rewards)


def _mutating_q(self, states, actions, step):
    found = Values.q_hat(self, states, actions, step)
    states[:] = 3
    return found


def _no_empty_v(self, states, step):
    if not len(states):
        raise ValueError("no state")
    return Values.v_hat(self, states, step)


def _one_for_none(self, states, actions, step):
    return Values.q_hat(self, states, actions, step) if len(states) else np.zeros(1)


def right_lookup(self, questions, rows):
    """All questions at once, each by the values that it is about."""
    return [
        {
            "q_hat": question.values.q_hat(rows.states, rows.actions, rows.steps),
            "v_hat": question.values.v_hat(rows.states, rows.steps),
            "r_hat": question.values.r_hat(rows.states, rows.actions),
        }
        for question in questions
    ]


def _of_the_first(self, questions, rows):
    return [{"v_hat": self.v_hat(rows.states, rows.steps)} for _ in questions]


def _steps_as_logged(self, questions, rows):
    steps = np.minimum(rows.step_column, len(self.q) - 1)
    return [{"v_hat": self.v_hat(rows.states, steps)}]


def _other_policy(self, questions, rows):
    return [{"target_prob": np.full(len(rows.steps), 0.5)}]


def _spoiling_lookup(self, questions, rows):
    rows.action_column[:] = 0
    return [{}]


FITTERS = {
    "lookup": [
        valued(lookup_many=lambda self, questions, rows: []),
        valued(lookup_many=lambda self, questions, rows: {}),
        valued(lookup_many=lambda self, questions, rows: None),
        valued(lookup_many=lambda self, questions, rows: [{}] * (len(questions) + 1)),
        valued(lookup_many=lambda self, questions, rows: [{"q_hat": np.zeros(1)}]),
        valued(lookup_many=lambda self, questions, rows: 1 / 0),
    ],
    "lookup-values": [
        valued(lookup_many=_of_the_first),
        valued(lookup_many=_steps_as_logged),
        valued(lookup_many=_other_policy),
    ],
    "lookup-mutates": [valued(lookup_many=_spoiling_lookup)],
    "fit": [object(), type("Broken", (), {"fit": lambda self, log, domain: 1 / 0})()],
    "model": [type("NoModel", (), {"fit": lambda self, log, domain: 3})()],
    "fit-logs": [OnlyFrames(), OnlyHalf()],
    "fit-repeat": [Noisy()],
    "fit-mutates": [Spoiling()],
    "optimal-policy": [modelled(type("Model", (Table,), {"optimal_policy": lambda self, maximize=True: 1 / 0}))],
    "policy-call": [optimal(3)],
    "policy-legal": [optimal(Uniform(3))],
    "values": [modelled(type("Model", (Table,), {"values": lambda self, policy, horizon, discount: 3}))],
    "values-shape": [
        valued(q_hat=lambda self, states, actions, step: Values.q_hat(self, states, actions, step)[:, None]),
        valued(r_hat=lambda self, states, actions: np.full(len(states), np.nan)),
        valued(v_hat=lambda self, states, step: Values.v_hat(self, states, step).tolist()),
    ],
    "values-v": [valued(v_hat=lambda self, states, step: Values.v_hat(self, states, step) + 1e-8)],
    "values-mutates": [valued(q_hat=_mutating_q)],
    "values-rows": [
        valued(
            q_hat=lambda self, states, actions, step: Values.q_hat(self, states, actions, step) + (len(states) == 1),
            v_hat=lambda self, states, step: Values.v_hat(self, states, step) + (len(states) == 1),
        )
    ],
    "values-empty": [valued(v_hat=_no_empty_v), valued(q_hat=_one_for_none)],
    "values-steps": [modelled(Stationary)],
    "values-policy": [
        modelled(type("Deaf", (Table,), {"values": lambda self, policy, h, g: self.table(self.domain.behavior, h, g)}))
    ],
    "values-of": [modelled(Several)],
    "p-hat-call": [valued(transition_probability=lambda self, states, actions, then: 1 / 0)],
    "p-hat-shape": [
        valued(transition_probability=lambda self, states, actions, then: [0.5] * len(states)),
        valued(transition_probability=lambda self, states, actions, then: np.full(len(states), 1.5)),
    ],
    "p-hat-pairs": [
        valued(transition_probability=lambda self, states, actions, then: np.where(then == states, np.nan, 0.5)[:, 0])
    ],
    "p-hat-values": [valued(transition_probability=lambda self, *rows: Walk().transition_probability(*rows))],
    "accuracy": [
        type("Bold", (Counting,), {"model": lambda self, moves, rewards, domain: Table(moves, rewards + 0.1, domain)})()
    ],
}


class Learning:
    """A right generator: prefers what earned more in its share of the log."""

    fraction, share = 0.5, 0.5

    def candidates(self, log, domain):
        train = split(log, self.share)[0].lazy().collect()
        means = [train.filter(pl.col("action") == a)["reward"].mean() for a in range(3)]
        pi = np.array([0.5, 0.0, 0.5]) + 0.1 * np.array([1, 0, -1]) * np.tanh(means[0] - means[2])
        table = np.tile(pi, (PLACES, 1))
        yield op.Candidate("learned", TabularPolicy(table, domain.grid), self.fraction)
        yield op.Candidate("any", Uniform(3, domain.legal))


class Leaking(Learning):
    share = 0.9


def yielding(*found):
    """A generator of these."""
    return type("Fixed", (), {"candidates": lambda self, log, domain: list(found)})()


RIGHT = FromCallable(lambda states, step: np.tile([0.0, 0.0, 1.0], (len(states), 1)))


class Moody:
    calls = 0

    def candidates(self, log, domain):
        Moody.calls += 1
        yield op.Candidate(f"number {Moody.calls}", LEGAL)


class OnlyInMemory:
    def candidates(self, log, domain):
        log["episode"]
        yield op.Candidate("any", LEGAL)


class InsertingColumn:
    def candidates(self, log, domain):
        if isinstance(log, pl.DataFrame) and "new" not in log.columns:
            log.insert_column(0, pl.Series("new", np.zeros(log.height)))
        yield op.Candidate("any", LEGAL)


GENERATORS = {
    "candidates": [
        object(),
        yielding(),
        yielding(LEGAL),
        type("Broken", (), {"candidates": lambda self, log, domain: 1 / 0})(),
    ],
    "candidate-names": [
        yielding(op.Candidate("a", LEGAL), op.Candidate("a", RIGHT)),
        yielding(op.Candidate("", LEGAL)),
        yielding(op.Candidate(3, LEGAL)),
    ],
    "candidate-model": [yielding(op.Candidate("a", LEGAL, model=3))],
    "train-fraction": [yielding(op.Candidate("a", LEGAL, 1.0)), yielding(op.Candidate("a", LEGAL, -0.1))],
    "policy-call": [yielding(op.Candidate("a", 3))],
    "policy-legal": [yielding(op.Candidate("a", Uniform(3)))],
    "candidates-repeat": [Moody()],
    "candidates-logs": [OnlyInMemory()],
    "candidates-mutates": [InsertingColumn()],
    "leak": [Leaking()],
}
