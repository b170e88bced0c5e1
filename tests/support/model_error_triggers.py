"""One way to bring about each kind of error of models, domains, drivers, theory, converters and plugins."""

import sys
from types import ModuleType, SimpleNamespace
from unittest import mock

import gymnasium
import lab
import numpy as np
import offpolicy as op
import polars as pl
import pytest
from error_triggers import EAGER, LOG, WALK
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit
from offpolicy import theory
from offpolicy.drivers.cross_fit import cross_fit
from offpolicy.experiments import reproduction
from offpolicy.extensions import plugins
from offpolicy.hookspecs import hookimpl
from offpolicy.mdp import SparseModel, TransitionCounts
from offpolicy.models import fitters
from offpolicy.models.fitters.factored import Factored
from offpolicy.models.fitters.kernel import Kernel
from offpolicy.models.fitters.tabular import Tabular
from offpolicy.models.smoothing import smooth
from offpolicy.policies import FromCallable, Mixture, Softmax, TabularPolicy, Uniform
from offpolicy.testing import Walk

WITHOUT_GRID = op.LoggedDomain(("place",), actions=3, horizon=12, reward_range=(-1.0, 1.0))
STATES = np.array([[3], [2]])
VALUES = op.fitter("tabular").fit(LOG, WALK).values(EAGER, WALK.horizon, WALK.discount)
P = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.25, 0.75]]])
R = np.array([[1.0, 2.0], [3.0, 4.0]])
FAIR = np.full((2, 2), 0.5)


class Shop(gymnasium.Env):
    """Rewards of 5 and 6; the last action ends the episode."""

    observation_space = spaces.MultiDiscrete([3, 4])
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.at = np.array([0, 0])
        return self.at.copy(), {}

    def step(self, action):
        self.at = np.minimum(self.at + 1, [2, 3])
        return self.at.copy(), 5.0 + float(action), action == 1, False, {}


class Talker(Shop):
    observation_space = spaces.Text(5)


class Table(Shop):
    """A table whose probabilities do not add to 1."""

    observation_space = spaces.Discrete(1)
    initial_state_distrib = np.ones(1)
    P = {0: {0: [(0.5, 0, 0.0, False)], 1: [(0.5, 0, 0.0, False)]}}  # noqa: RUF012


class Loud(Walk):
    def transition_probability(self, states, actions, next_states):
        return np.full(len(states), 1.5)


class Crooked(Walk):
    """Begins with whole numbers and goes on with fractions."""

    def step(self, states, actions, rng):
        following, rewards, ends = super().step(states, actions, rng)
        return following + 0.5, rewards, ends


class Failing(Walk):
    def reset(self, n, rng):
        raise IndexError("nowhere to begin")


class Broken:
    def fit(self, x, y, **_):
        return self

    def predict(self, x):
        return np.full(len(x), np.nan)


class Answerless:
    """A model whose look-up answers nothing."""

    def q_hat(self, states, actions, step):
        return np.zeros(len(states))

    def v_hat(self, states, step):
        return np.zeros(len(states))

    def r_hat(self, states, actions, step):
        return np.zeros(len(states))

    def lookup_many(self, *_):
        return []


class Fickle:
    """A fitter whose first model alone tells transitions."""

    fits = 0

    def fit(self, log, domain):
        self.fits += 1
        return (Tabular() if self.fits == 1 else Tabular(aggregate=lambda states: states[:, 0], cells=7)).fit(
            log, domain
        )


def shop(env=Shop, horizon=9, reward_range=(5.0, 6.0), **options):
    return op.from_gymnasium(env, horizon=horizon, reward_range=reward_range, **options)


def uncopied():
    env = Shop()
    env.handle = (number for number in range(3))
    return shop(env)


def mdp(**options):
    return theory.MDP(**{"transitions": P, "rewards": R, "initial": [0.5, 0.5], "horizon": 3, **options})


def episode(steps=2, id=0, **others):
    last = np.arange(steps) == steps - 1
    fields = {
        "observations": np.zeros((steps + 1, 2)),
        "actions": np.zeros(steps, dtype=int),
        "rewards": np.zeros(steps),
        "terminations": last,
        "truncations": np.zeros(steps, dtype=bool),
        "infos": {},
    }
    return SimpleNamespace(id=id, **{**fields, **others})


def scope_rl(**others):
    return op.from_scope_rl(
        {"action_type": "discrete", "n_trajectories": 0, "step_per_trajectory": 4, "state": np.zeros((0, 2)), **others}
    )


def plugin(**hooks):
    """What the hooks of a plugin bring."""
    module = ModuleType("pond")
    for name, function in hooks.items():
        function.__name__ = name
        setattr(module, name, hookimpl(function))
    return plugins._ask(module)


def made(maker, **options):
    """What a plugin's maker makes."""
    registry = SimpleNamespace(find=lambda hook, name: maker)
    with mock.patch.object(plugins, "registry", return_value=registry):
        return op.domain("pond", **options)


def estimated(values, **members):
    """An evaluation by an estimator of a plugin."""
    with pytest.MonkeyPatch.context() as patch:
        lab.lab(patch, {"odd": lab.giving(values, **members)})
        return op.evaluate(op.demo_log(episodes=20), estimators=["odd"])


def without_jax():
    hidden = {"jax": None, "offpolicy.models.fitters.gru": None}
    with mock.patch.dict(sys.modules, hidden), mock.patch.dict(vars(fitters)):
        vars(fitters).pop("gru", None)
        return op.fitter("recurrent").fit(LOG, WALK)


def compare(**options):
    return op.compare(WALK, **{"policies": {"eager": EAGER}, "estimators": ["is"], "sizes": [10], "runs": 1, **options})


def improve(**options):
    return op.improve(LOG, WALK, **{"generator": {"eager": EAGER}, **options})


def policy_of(array):
    return FromCallable(lambda states, step: np.tile(array, (len(states), 1)))


ENDLESS = op.LoggedDomain(WALK.state_columns, 3, 6, (1.0, 1.0), discount=1.0)
ENDLESS_LOG = LOG.with_columns(reward=pl.lit(1.0), terminal=pl.lit(False))
FORBIDDEN = LOG.with_columns(action=pl.lit(1, LOG["action"].dtype))
MODELS = {
    "nothing-to-annotate": lambda _: op.annotate(LOG),
    "into-does-not-fit": lambda _: op.annotate(LOG, EAGER, into=op.PolicyColumns(ratio="rho")),
    "ratio-of-some-folds": lambda _: cross_fit(LOG, WALK, policy=EAGER, fitter=Fickle(), estimators=["dr-v2"]),
    "no-probability": lambda _: op.annotate(LOG, EAGER, VALUES, op.Columns.of(WALK), domain=Loud()),
    "transitions-not-told": lambda _: (
        Tabular(aggregate=lambda states: states[:, 0], cells=7)
        .fit(LOG, WALK)
        .values(EAGER, 12, 0.9)
        .transition_probability(STATES, np.array([0, 0]), STATES)
    ),
    "cells-without-probabilities": lambda _: VALUES.transition_probability(
        STATES + 0.25, np.array([0, 0]), STATES + 0.25
    ),
    "domain-has-other-state": lambda _: cross_fit(
        LOG, WALK, policy=EAGER, fitter="tabular", columns=op.Columns(state=("step", "place"))
    ),
    "no-grid": lambda _: op.fitter("tabular").fit(LOG, WITHOUT_GRID),
    "wrong-answers": lambda _: op.annotate(LOG, EAGER, Answerless(), op.Columns.of(WALK)),
    "cells-not-counted": lambda _: Tabular(aggregate=lambda states: states[:, 0]).fit(LOG, WALK),
    "cell-outside": lambda _: TransitionCounts(2, 2).add([5], [0], [0.0], [0]),
    "state-outside-grid": lambda _: op.Grid((3,)).index(np.array([[9]])),
    "bad-grid": lambda _: op.Grid((0, 3)),
    "grid-too-fine": lambda _: op.Grid((10,) * 100),
    "one-fold-has-all": lambda _: op.estimate_behavior(LOG.filter(pl.col("episode") == 0), WALK),
    "fraction-leaves-none": lambda _: cross_fit(
        LOG.filter(pl.col("episode") == 0), WALK, policy=EAGER, fitter="tabular", train_fraction=0.5
    ),
    "too-few-episodes": lambda _: compare(sizes=[1], estimators=["dr"], fitter="tabular"),
    "illegal-action": lambda _: op.estimate_behavior(FORBIDDEN, WALK),
    "classifier-failed": lambda _: op.estimate_behavior(
        LOG.with_columns(action=pl.lit(0, LOG["action"].dtype)), WALK, classifier=_one_class()
    ),
    "bad-categories": lambda _: op.Categories((("a",), ("a", "b"))),
    "category-twice": lambda _: op.Categories((("a",), ("a",))),
    "episode-ends": lambda _: Factored().fit(LOG, WALK),
    "no-such-feature": lambda _: Factored(reward_features=["wind"]).fit(LOG, WALK),
    "wrong-number-of-actions": lambda _: op.fitter("kernel").fit(LOG, WALK).values(Uniform(2), 12, 0.9),
    "not-a-regressor": lambda _: op.fitter("fqe", regressor=3),
    "unknown-layout": lambda _: Kernel(actions="heap").fit(LOG, WALK),
    "values-do-not-settle": lambda _: Kernel(grid=WALK.grid).fit(ENDLESS_LOG, ENDLESS).optimal_policy(),
    "bad-predictions": lambda _: op.fitter("fqe", regressor=Broken()).fit(LOG, WALK).values(EAGER, 3, 0.9),
    "needs-jax": lambda _: without_jax(),
    "smoothing-dimensions": lambda _: smooth(np.zeros(3), (False, False), 0.25),
    "core-refused": lambda _: TransitionCounts(0, 2),
    "does-not-fit": lambda _: SparseModel.from_dense(np.ones((2, 1)), np.ones((2, 1))),
}
DRIVERS = {
    "given-candidates": lambda _: improve(generator={}, estimator="step-is"),
    "generated-candidates": lambda _: improve(
        generator=SimpleNamespace(candidates=lambda log, domain: [7]), estimator="step-is"
    ),
    "wrong-candidates": lambda _: improve(
        generator=SimpleNamespace(candidates=lambda log, domain: None), estimator="step-is"
    ),
    "other-policies-in-truth": lambda _: compare(truth={"lazy": 1.0}),
    "value-of-behavior": lambda _: compare(estimators=["mc"]),
    "not-an-estimator": lambda _: compare(estimators=[3]),
    "names-of-estimators": lambda _: compare(estimators=["is", "is"]),
    "not-a-simulator": lambda _: op.compare(
        WITHOUT_GRID, policies={"eager": EAGER}, estimators=["is"], sizes=[10], runs=1
    ),
    "made-of-ratios": lambda _: improve(estimator="wis"),
    "bounds-nothing": lambda _: improve(estimator="reg"),
    "things-missing": lambda _: op.improve(
        LOG.drop("behavior_prob"), WITHOUT_GRID, generator="mixture", fitter="tabular", estimator="dr"
    ),
    "estimate-not-finite": lambda _: compare(estimators=[lambda frame: float("nan")]),
}
SIMULATION = {
    "gym-cannot-make": lambda _: op.from_gymnasium("NoSuch-v0"),
    "no-time-limit": lambda _: op.from_gymnasium("CliffWalking-v1"),
    "no-reward-range": lambda _: op.from_gymnasium("CartPole-v1"),
    "more-arguments-than-taken": lambda _: shop(ice=3),
    "not-a-range": lambda _: op.domain("gymnasium", id="FrozenLake-v1", reward_range="high"),
    "cannot-be-copied": lambda _: uncopied(),
    "state-kept-to-itself": lambda _: shop().reset(3, np.random.default_rng(0)),
    "cut-off-early": lambda _: shop(lambda: TimeLimit(Shop(), 4)).simulate(policy_of([1.0, 0.0]), 2, seed=0),
    "reward-outside-range": lambda _: shop(reward_range=(0.0, 1.0)).simulate(policy_of([1.0, 0.0]), 2, seed=0),
    "no-columns-of-numbers": lambda _: shop(Talker),
    "no-transition-table": lambda _: op.from_gymnasium("CartPole-v1", table=True),
    "table-does-not-add": lambda _: shop(Table, table=True),
    "not-simulated": lambda _: op.from_mdp(np.tile(P, (3, 1, 1, 1)), R, [0.5, 0.5], horizon=3),
    "terminal-first-state": lambda _: op.from_mdp(P, R, [0.5, 0.5], horizon=3, terminal=[0]),
    "nothing-legal": lambda _: op.from_mdp(P, R, [0.5, 0.5], horizon=3, legal=np.zeros((2, 2), dtype=bool)),
    "no-legal-action": lambda _: Uniform(2, lambda states: np.zeros((len(states), 2), bool)).probabilities(STATES, 0),
    "wrong-array": lambda _: Softmax(lambda states, step: np.zeros(2), 1.0).probabilities(STATES, 0),
    "values-not-finite": lambda _: smooth(np.array([np.nan]), (False,), 0.25),
    "wrong-probability": lambda _: FromCallable(lambda s, t: [[0.9, 0.5]] * len(s)).probabilities(STATES, 0),
    "steps-outside-table": lambda _: TabularPolicy(np.full((2, 7, 3), 1 / 3), op.Grid((7,))).probabilities(STATES, 5),
    "not-to-be-mixed": lambda _: Mixture(Uniform(2), Uniform(3), 0.5).probabilities(STATES, 0),
    "outside-range": lambda _: op.fitter("kernel").fit(LOG, WALK).values(EAGER, 12, 0.9).q_hat(STATES, [7, 0], 0),
    "wrong-probabilities": lambda _: WALK.simulate(policy_of([0.5, 0.5]), 3, seed=0),
    "wrong-domain": lambda _: Crooked().simulate(WALK.behavior, 3, seed=0),
    "simulation-failed": lambda _: Failing().simulate(WALK.behavior, 3, seed=0),
}
THEORY = {
    "bad-array": lambda _: mdp(rewards=[["a", "b"]] * 2),
    "not-probabilities": lambda _: mdp(initial=[0.5, 0.4]),
    "beyond-range": lambda _: theory.is_variance(
        mdp(horizon=2000), np.array([[1e-9, 1 - 1e-9]] * 2), np.array([[1.0, 0.0]] * 2)
    ),
    "not-a-tree": lambda _: theory.cramer_rao_tree(mdp(), FAIR, FAIR),
    "two-forms": lambda _: mdp(rewards=np.zeros((2, 2, 2)), horizon=2),
    "bad-model": lambda _: theory.dr_v2_bias(mdp(), FAIR, [[[1.0]]], [[1.0]]),
    "no-such-state": lambda _: mdp(terminal=[2]),
    "states-by-number": lambda _: mdp(terminal=[True, False]),
    "no-support": lambda _: theory.is_variance(mdp(), [[1.0, 0.0], [1.0, 0.0]], FAIR),
    "negative-variance": lambda _: theory.Rewards(np.zeros((1, 1)), -np.ones((1, 1))),
    "shapes-differ": lambda _: theory.Rewards(np.zeros((1, 1)), np.zeros(1)),
    "no-broadcast": lambda _: theory.Rewards.from_distribution(np.zeros((3, 2)), np.full((1, 2, 2), 0.5)),
    "too-many-states": lambda _: theory.unroll_tree(mdp(horizon=20), max_states=50),
}
CONVERTERS = {
    "wrong-data": lambda _: op.from_d3rlpy(17),
    "episode-without-steps": lambda _: op.from_episodes([episode(rewards=[])]),
    "id-of-several": lambda _: op.from_episodes([episode(), episode()]),
    "goes-on-after-its-end": lambda _: op.from_episodes([episode(terminations=[True, True])]),
    "continuous-actions": lambda _: op.from_episodes([episode(actions=np.array([0.5, 1.0]))]),
    "no-trajectories": lambda _: scope_rl(),
    "longer-than-horizon": lambda _: op.from_episodes([episode(4)], horizon=3),
    "different-columns": lambda _: op.from_episodes([episode(), episode(id=1, observations=np.arange(3))]),
    "names-of-the-state": lambda _: op.from_episodes([episode()], state_columns=["x"]),
    "wrong-entries": lambda _: op.from_episodes([episode(actions=np.zeros(3))]),
    "key-missing": lambda _: op.from_episodes([episode(observations=None)]),
}
PLUGINS = {
    "unknown-plugin": lambda _: op.domain("no-such-domain"),
    "no-experiment": lambda _: _without_experiments(),
    "no-hook": lambda _: plugins._ask(ModuleType("pond")),
    "wrong-answer-of-hook": lambda _: plugin(offpolicy_domains=lambda: [Walk]),
    "incomplete-plugin": lambda _: made(lambda: 3),
    "maker-failed": lambda _: made(lambda: 1 / 0),
    "refused-by-maker": lambda _: made(lambda *, size: size),
    "number-expected": lambda _: made(Walk, horizon="many"),
    "undeclared-column": lambda _: estimated(lambda block: block["q_hat"]),
    "wrong-description": lambda _: estimated(lambda block: block["reward"], needs="ratio"),
    "wrong-numbers": lambda _: estimated(lambda block: block["reward"]),
}


def _without_experiments():
    registry = SimpleNamespace(names=lambda hook: [], plugins=[])
    with mock.patch.object(plugins, "registry", return_value=registry):
        return reproduction.names()


def _one_class():
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression()


TRIGGERS = {**MODELS, **DRIVERS, **SIMULATION, **THEORY, **CONVERTERS, **PLUGINS}
