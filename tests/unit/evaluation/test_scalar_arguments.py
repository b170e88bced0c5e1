"""Arguments that make no sense: each public function refuses them in our words, before the core or Polars sees them."""

import decimal
import math
from collections.abc import Hashable

import numpy as np
import offpolicy as op
import pytest
from logs import random_log
from offpolicy.testing import Walk

WALK = Walk()
EAGER = WALK.policies["eager"]
LOG = random_log(seed=11, episodes=8, horizon=6)
WALKS = WALK.simulate(WALK.behavior, 20, seed=1)
EV = op.evaluate(LOG, discount=0.9, paired=True)

HOSTILE = {
    "true": True,
    "numpy true": np.True_,
    "none": None,
    "nan": math.nan,
    "infinite": math.inf,
    "minus infinite": -math.inf,
    "numpy nan": np.float64("nan"),
    "float32": np.float32(0.5),
    "int8": np.int8(1),
    "minus one": -1,
    "zero": 0,
    "half": 0.5,
    "huge": 2**70,
    "minus huge": -(2**70),
    "beyond a float": 10**400,
    "decimal": decimal.Decimal("0.5"),
    "complex": 0.5 + 0j,
    "text": "x",
    "surrogate": "\udcff",
    "empty text": "",
    "nul": "a\x00b",
    "bytes": b"x",
    "list": [1],
    "dictionary": {"x": 1},
    "array": np.arange(3),
    "object": object(),
}

EVALUATE = (
    "discount estimators columns policies horizon confidence interval baseline cluster threads bounds density order "
    "dedupe truncation batch_rows passes diagnostics paired continuing"
)
DRIVERS = (
    "fitter train_fraction transition_ratio behavior smoothing discount horizon columns baseline confidence interval "
    "threads order truncation bounds"
)
CROSS_FIT = f"{DRIVERS} folds estimators cluster seed continuing"
IMPROVE = f"{DRIVERS} generator estimator caution against require"


MOVES, PAYS = [[[1.0], [1.0]]], [[0.0, 1.0]]
COIN = op.theory.MDP(MOVES, PAYS, initial=[1.0], horizon=2, terminal=[0])
SETTING = {"state_columns": ("place",), "actions": 2, "horizon": 3, "reward_range": (0.0, 1.0)}
FITTERS = {
    "fqe": ("actions", "stationary", "iterations"),
    "kernel": ("bandwidth", "unseen_reward"),
    "tabular": ("cells", "unseen_reward", "batch_rows"),
    "factored": ("particles", "width", "unseen", "seed"),
    "recurrent": ("hidden", "epochs", "batch", "learning_rate", "seed"),
}


def mdp(make, **given):
    """A coin that is thrown again and again, as an MDP or as a domain."""
    return make(MOVES, PAYS, initial=[1.0], **({"horizon": 2} | given))


def named(name, policy):
    """A mapping with this name, if it can be a key at all."""
    return {name: policy} if isinstance(name, Hashable) else {}


#: How each argument of a public function is given.
CALLS = {
    **{f"evaluate({name}=)": lambda x, name=name: op.evaluate(LOG, **{name: x}).table for name in EVALUATE.split()},
    **{
        f"check({name}=)": lambda x, name=name: op.check(LOG, **{name: x})
        for name in ("columns", "policies", "horizon", "density", "order", "limit", "threads")
    },
    **{
        f"interval({name}=)": lambda x, name=name: EV["dr"].interval(**{name: x})
        for name in ("confidence", "method", "bounds", "side")
    },
    **{
        f"interval(bootstrap, {name}=)": lambda x, name=name: EV["dr"].interval(method="bootstrap", **{name: x})
        for name in ("replicates", "seed")
    },
    **{f"sketch({name}=)": lambda x, name=name: EV["dr"].sketch(**{name: x}) for name in ("bounds", "side", "by")},
    **{
        f"Columns({role}=)": lambda x, role=role: op.evaluate(LOG, columns=op.Columns(**{role: x})).table
        for role in ("episode", "step", "reward", "behavior_prob", "ratio", "q_hat", "terminal", "action")
    },
    **{
        f"PolicyColumns({role}=)": lambda x, role=role: op.evaluate(LOG, policies={"a": op.PolicyColumns(**{role: x})})
        for role in ("target_prob", "ratio", "q_hat", "mixture_of", "alpha")
    },
    "PolicyColumns(mixture_of=, alpha=)": lambda x: op.PolicyColumns(mixture_of="a", alpha=x),
    "a policy's name": lambda x: op.evaluate(LOG, policies=named(x, op.PolicyColumns(target_prob="target_prob"))).table,
    "a policy": lambda x: op.evaluate(LOG, policies={"a": x}).table,
    "an estimator": lambda x: op.evaluate(LOG, estimators=[x]).table,
    "a log": lambda x: op.evaluate(x),
    "a log in a list": lambda x: op.evaluate([x]),
    "ev[x]": lambda x: EV[x],
    "values()": lambda x: EV.values(x),
    "values(policy=)": lambda x: EV.values("dr", policy=x),
    "difference()": lambda x: EV.difference(x, estimator="dr"),
    "difference(estimator=)": lambda x: EV.difference("target", estimator=x),
    "Bounds(reward=)": lambda x: op.Bounds(reward=x),
    "Bounds(reward=(0, x))": lambda x: op.Bounds(reward=(0, x)),
    "Bounds(ratio=)": lambda x: op.Bounds(reward=(0, 1), ratio=x),
    "Bounds(q=)": lambda x: op.Bounds(reward=(0, 1), q=x),
    "domain()": lambda x: op.domain(x),
    "fitter()": lambda x: op.fitter(x),
    "generator()": lambda x: op.generator(x),
    "Grid()": lambda x: op.Grid(x),
    "Grid((x,))": lambda x: op.Grid((x,)),
    "Mixture(alpha=)": lambda x: op.policies.Mixture(EAGER, WALK.behavior, x),
    "EpsilonGreedy(epsilon=)": lambda x: op.policies.EpsilonGreedy(lambda states, step: states, x),
    **{
        f"cross_fit({name}=)": lambda x, name=name: op.cross_fit(WALKS, WALK, policy=EAGER, **{name: x}).table
        for name in CROSS_FIT.split()
    },
    "cross_fit(policy=)": lambda x: op.cross_fit(WALKS, WALK, policy=x),
    "cross_fit, a policy's name": lambda x: op.cross_fit(WALKS, WALK, policy=named(x, EAGER)).table,
    "cross_fit(domain)": lambda x: op.cross_fit(WALKS, x, policy=EAGER),
    **{
        f"improve({name}=)": lambda x, name=name: op.improve(WALKS, WALK, **{name: x}).winner
        for name in IMPROVE.split()
    },
    "improve, a candidate's name": lambda x: op.improve(WALKS, WALK, generator=named(x, EAGER)).winner,
    **{
        f"estimate_behavior({name}=)": lambda x, name=name: op.estimate_behavior(WALKS, WALK, **{name: x})
        for name in ("classifier", "aggregate", "folds", "smoothing", "seed", "columns")
    },
    **{
        f"annotate({name}=)": lambda x, name=name: op.annotate(WALKS, EAGER, domain=WALK, **{name: x})
        for name in ("columns", "into", "first_step", "threads")
    },
    **{
        f"compare({name}=)": lambda x, name=name: op.compare(
            WALK, {"eager": EAGER}, **({"runs": 1, "sizes": [5], "truth": {"eager": 0.0}} | {name: x})
        )
        for name in ("estimators", "fitter", "folds", "baseline", "truth", "seed", "workers")
    },
    **{
        f"{make.__name__}({name}=)": lambda x, make=make, name=name: mdp(make, **{name: x})
        for make in (op.theory.MDP, op.from_mdp)
        for name in ("horizon", "discount")
    },
    "dr_bsl_variance(baseline=)": lambda x: op.theory.dr_bsl_variance(COIN, [[0.5, 0.5]], [[0.5, 0.5]], x),
    "unroll_dag(max_states=)": lambda x: op.theory.unroll_dag(COIN, x),
    "simulate(n=)": lambda x: WALK.simulate(WALK.behavior, x, seed=1),
    "simulate(seed=)": lambda x: WALK.simulate(WALK.behavior, 1, seed=x),
    "demo_log(episodes=)": lambda x: op.demo_log(episodes=x),
    "demo_log(seed=)": lambda x: op.demo_log(episodes=2, seed=x),
    "Uniform(actions=)": lambda x: op.policies.Uniform(x).probabilities(np.zeros((1, 1)), 0),
    "Softmax(temperature=)": lambda x: op.policies.Softmax(lambda states, step: states, x),
    **{
        f"LoggedDomain({name}=)": lambda x, name=name: op.LoggedDomain(**(SETTING | {name: x}))
        for name in ("actions", "horizon", "reward_range", "discount")
    },
    "LoggedDomain(reward_range=(0, x))": lambda x: op.LoggedDomain(**(SETTING | {"reward_range": (0, x)})),
    **{
        f"fitter({fitter}, {name}=)": lambda x, fitter=fitter, name=name: op.fitter(fitter, **{name: x})
        for fitter, names in FITTERS.items()
        for name in names
    },
    **{
        f"split({name}=)": lambda x, name=name: op.folds.split(LOG, **({"fraction": 0.5} | {name: x}))
        for name in ("fraction", "seed")
    },
    **{
        f"fold_of({name}=)": lambda x, name=name: op.folds.fold_of([1, 2], **({"folds": 2} | {name: x}))
        for name in ("folds", "seed")
    },
    **{
        f"from_gymnasium({name}=)": lambda x, name=name: op.from_gymnasium(
            "FrozenLake-v1", **({"horizon": 5} | {name: x})
        )
        for name in ("horizon", "discount", "reward_range", "copies")
    },
}

#: The arguments among them that take a number, or a pair of numbers, and nothing else.
NUMBERS = [
    call
    for call in CALLS
    if call.startswith(("MDP(", "from_mdp(", "dr_bsl", "unroll_dag", "simulate(", "demo_log(", "Uniform(", "Softmax("))
    or call.startswith(("LoggedDomain(", "fitter(", "split(", "fold_of(", "from_gymnasium("))
    if call != "fitter()" and not call.endswith((" actions=)", "stationary=)", "unseen=)"))
]


def outcome(call, value):
    """`taken`, `refused` in words that any terminal can show, or what else came of it."""
    try:
        call(value)
    except op.OffPolicyError as error:
        said = str(error)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    else:
        return "taken"
    plain = all(len(line) < 1000 and line.isprintable() for line in said.split("\n"))
    return "refused" if plain else f"refused in these words: {said!r}"


@pytest.mark.parametrize("call", CALLS)
def test_an_argument_that_makes_no_sense_is_refused_in_our_words(call):
    found = {kind: outcome(CALLS[call], value) for kind, value in HOSTILE.items()}
    assert {kind: each for kind, each in found.items() if each not in ("taken", "refused")} == {}


@pytest.mark.parametrize("name", ["discount", "baseline", "horizon", "threads", "batch_rows", "passes", "confidence"])
def test_true_is_no_number(name):
    with pytest.raises(op.UsageError, match=rf"{name} must be .*, not True"):
        op.evaluate(LOG, **{name: True})


@pytest.mark.parametrize("call", NUMBERS)
@pytest.mark.parametrize("value", [True, np.True_, "1", "x", math.nan, [1], object()], ids=str)
def test_no_argument_takes_what_is_not_a_number(call, value):
    with pytest.raises(op.UsageError, match="must be "):
        CALLS[call](value)


@pytest.mark.parametrize("call", [call for call in NUMBERS if "reward_range=)" not in call])
def test_every_such_argument_takes_a_number_of_numpy(call):
    CALLS[call](np.int8(1))


def test_a_number_of_numpy_is_kept_as_a_plain_one():
    pi = op.policies.Uniform(np.int8(3)).probabilities(np.zeros((1, 1)), 0)
    assert (pi.dtype, pi[0, 0]) == (np.float64, 1 / 3)
    setting = op.LoggedDomain(("x",), np.int8(2), np.uint16(3), np.array([0, 1]), np.float32(0.5))
    assert repr(setting) == repr(op.LoggedDomain(("x",), 2, 3, (0.0, 1.0), 0.5))
    assert mdp(op.from_mdp, horizon=np.int8(100)).simulate(op.policies.Uniform(2), np.int8(3), np.int8(1)).height == 300
    assert op.demo_log(np.int8(3), np.int8(1)).equals(op.demo_log(3, 1))


def test_numbers_of_numpy_are_numbers():
    given = {"discount": np.float32(0.5), "baseline": np.int8(1), "horizon": np.uint16(6), "threads": np.int64(2)}
    plain = {"discount": 0.5, "baseline": 1, "horizon": 6, "threads": 2}
    assert op.evaluate(LOG, **given).to_dict() == op.evaluate(LOG, **plain).to_dict()
    seeds = [EV["dr"].interval(method="bootstrap", seed=seed) for seed in (3, np.int8(3))]
    assert seeds[0] == seeds[1]
    folds = [op.cross_fit(WALKS, WALK, policy=EAGER, seed=seed, folds=2).table for seed in (1, np.int8(1))]
    assert folds[0].equals(folds[1])
