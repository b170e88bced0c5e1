"""Fig. 3 of Jiang & Li (2016): errors of IS, WIS, REG, DR-bsl and DR-v2 on the donations, over α.

A run simulates 3754 donors under π0 and estimates the values of (1-α) π_train + α π0 from them. DR-v2 uses two folds,
each with the model of the other, and P̂/P = 1, so that it needs only R̂ and V̂ of the first state:

    V̂(s_1) + Σ_t ρ_{1:t} (r_t - R̂(s_t, a_t)),    without a discount

The others use the whole log; REG is V̂(s_1) of its model. Estimates are not cropped, which the paper does in the other
domains only.

The truth is a mean of roll-outs. With any functions L_t, and L = 0 after the last step,

    V(π) = L_1(s_1) + E_π Σ_t [ Σ_a π(a|s_t) (R(s_t, a) + Σ_s' P(s'|s_t, a) L_{t+1}(s')) - L_t(s_t) ]

The nearer L is to V, the smaller is the variance of the sum. L is the additive part of V in
`offpolicy.models.fitters.particles`, whose expectations are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import polars as pl
from offpolicy.annotation.annotate import annotate
from offpolicy.experiments.claims import Claim, better, every
from offpolicy.experiments.errors import relative_summary
from offpolicy.experiments.estimates import estimated
from offpolicy.experiments.runs_file import Run
from offpolicy.extensions import plugins
from offpolicy.logs.columns import Columns, PolicyColumns
from offpolicy.models.fitters.factored import Factored, FactoredModel
from offpolicy.models.fitters.particles import Additive, ParticleValues
from offpolicy.models.fitters.recurrent import Recurrent
from offpolicy.policies import Mixture
from offpolicy.protocols import Domain, Policy
from offpolicy.simulation.domain_policies import domain_policy
from offpolicy.simulation.rollouts import draw

from offpolicy_paper import splits

RUNS = 5000
#: The values of the paper's other figures; its section 6.1 names them once for all domains.
ALPHAS = splits.ALPHAS
EPISODES = 3754
#: The number of roll-outs for the truth of a target, and their seed.
ROLLOUTS, SEED = 50_000, 1998
#: The numbers of roll-outs and of epochs of π_train in a quick reproduction.
QUICK_ROLLOUTS, QUICK_EPOCHS = 5000, 3
#: The estimators and their names in the paper.
NAMES = {"step-is": "IS", "step-wis": "WIS", "reg": "REG", "dr-bsl": "DR-bsl", "dr-v2": "DR-v2"}
ESTIMATORS = tuple(NAMES)


class Donors(Domain, Protocol):
    """A domain that is itself a factored model, fitted to trajectories."""

    @property
    def notice(self) -> str:
        """The origin of the gifts."""
        ...

    @property
    def trajectories(self) -> pl.DataFrame:
        """The trajectories to which the simulator was fitted."""
        ...

    @property
    def model(self) -> FactoredModel:
        """The simulator."""
        ...

    @property
    def evaluation_fitter(self) -> Factored:
        """The fitter of models to simulated logs."""
        ...


class Truth(NamedTuple):
    """The value V of each target, and its standard error."""

    values: list[float]
    errors: list[float]


@dataclass(frozen=True)
class Donations:
    """The experiment; `baseline` is c of DR-bsl. Its slow parts, π_train and the truth, are sent to other processes.

    `quick` describes what is less precise than at the paper's size.
    """

    domain: Donors
    trained: Policy
    baseline: float
    alphas: Sequence[float] = ALPHAS
    episodes: int = EPISODES
    rollouts: int = ROLLOUTS
    name: str = "kdd98"
    quick: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Include the truth, so that no other process computes it again."""
        return {**self.__dict__, "truth": self.truth}

    @property
    def notice(self) -> str:
        """The origin of the gifts, which every output shows first."""
        return self.domain.notice

    @property
    def targets(self) -> list[Mixture]:
        """The target policies (1-α) π_train + α π0."""
        behavior = self.domain.behavior
        return [Mixture(self.trained, behavior, alpha) for alpha in self.alphas]

    @cached_property
    def truth(self) -> Truth:
        """The value V of each target in the simulator."""
        domain, targets = self.domain, self.targets
        values = domain.model.values_of(targets, domain.horizon, discount=1.0)
        streams = np.random.SeedSequence(SEED).spawn(len(targets))
        found = [
            true_value(domain, target, value.additive, self.rollouts, np.random.default_rng(stream))
            for target, value, stream in zip(targets, values, streams, strict=True)
        ]
        return Truth([value for value, _ in found], [error for _, error in found])

    def settings(self) -> dict[str, Any]:
        """Return everything that the numbers depend on except the seed; the true values identify π_train."""
        return {
            "donors": self.notice,
            "domain": repr(self.domain),
            "fitter": repr(self.domain.evaluation_fitter),
            "episodes": self.episodes,
            "alphas": list(self.alphas),
            "baseline": self.baseline,
            "rollouts": self.rollouts,
            "truth": [round(value, 6) for value in self.truth.values],
            **({} if self.quick is None else {"quick": self.quick}),
        }

    def run(self, seed: np.random.SeedSequence) -> Run:
        """Return estimates by estimator and α, and the truth by α."""
        simulated, *cached = (int(n) for n in seed.generate_state(4, np.uint64))
        log = self._log(simulated)
        half = pl.col("episode") < self.episodes // 2
        first, second = log.filter(half), log.filter(~half)
        of_first, of_second, of_all = map(self._values, (first, second, log), cached)
        scored = pl.concat([self._scored(first, of_second), self._scored(second, of_first)])
        found = self._estimates(scored) | {"reg": [value.start_value for value in of_all]}
        values, errors = self.truth
        return {"estimates": {name: found[name] for name in ESTIMATORS}, "truth": values, "truth_error": errors}

    def _log(self, seed: int) -> pl.DataFrame:
        """Simulate a log of π0, with the ratios of each target."""
        log = self.domain.simulate(self.domain.behavior, self.episodes, seed)
        log = annotate(log, self.trained, columns=Columns.of(self.domain), threads=1)
        return splits.with_ratios(log, self.alphas, "ratio ")

    def _values(self, log: pl.DataFrame, seed: int) -> list[ParticleValues]:
        """Return the values of each target by a model of this log; `seed` draws the particles."""
        model = replace(self.domain.evaluation_fitter, seed=seed).fit(log, self.domain)
        return model.values_of(self.targets, self.domain.horizon, discount=1.0)

    def _scored(self, log: pl.DataFrame, values: Sequence[ParticleValues]) -> pl.DataFrame:
        """Add R̂, which is the same for all targets, and in every row V̂(s_1), which is the same for all episodes."""
        log = annotate(
            log, model=values[0], columns=Columns.of(self.domain), into=PolicyColumns(r_hat="r_hat"), threads=1
        )
        by_alpha = zip(values, self.alphas, strict=True)
        return log.with_columns(pl.lit(value.start_value).alias(f"v_hat {alpha}") for value, alpha in by_alpha)

    def _estimates(self, log: pl.DataFrame) -> dict[str, list[float]]:
        targets = [
            PolicyColumns(ratio=f"ratio {alpha}", r_hat="r_hat", v_hat=f"v_hat {alpha}") for alpha in self.alphas
        ]
        settings = {"baseline": self.baseline, "horizon": self.domain.horizon, "threads": 1, "passes": 1}
        names = [name for name in ESTIMATORS if name != "reg"]
        found = estimated(log, {str(i): target for i, target in enumerate(targets)}, names, settings)
        return {name: [found[str(i), name] for i in range(len(targets))] for name in names}


def experiment(**options: Any) -> Donations:
    """Make the experiment at the paper's size; options are those of the domain, such as `path`.

    The paper gives no c for DR-bsl. Here it is the mean gift per campaign of the original trajectories, which is as
    rough a guess of the reward per step as the paper's own for Sailing.
    """
    domain = cast(Donors, plugins.domain("kdd98", **options))
    return Donations(domain, domain_policy(domain, "trained"), _mean_gift(domain))


def quick_experiment(**options: Any) -> Donations:
    """Make the experiment without its long preparation, with a shorter fit of π_train and a less precise truth."""
    domain = cast(Donors, plugins.domain("kdd98", **options))
    trained = Recurrent(epochs=QUICK_EPOCHS).fit(domain.trajectories, domain).optimal_policy()
    less = (
        f"π_train of {QUICK_EPOCHS} epochs instead of {Recurrent.epochs}, its truth by {QUICK_ROLLOUTS:,} roll-outs "
        f"instead of {ROLLOUTS:,}"
    )
    return Donations(domain, trained, _mean_gift(domain), rollouts=QUICK_ROLLOUTS, quick=less)


def _mean_gift(domain: Donors) -> float:
    return cast(float, domain.trajectories["reward"].mean())


def true_value(
    domain: Donors, policy: Policy, additive: Sequence[Additive], rollouts: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return V(π) and its standard error; `additive` is L of steps 0, 1, …, and 0 after the last."""
    model, states = domain.model, domain.reset(rollouts, rng)
    total = additive[0].of(model.marginals.numbers(states))
    for t in range(domain.horizon):
        numbers, pi = model.marginals.numbers(states), policy.probabilities(states, t)
        q = model.reward.every_action(states) + additive[t + 1].expected_of_every_action(numbers)
        total += (pi * q).sum(axis=1) - additive[t].of(numbers)
        states, _, _ = domain.step(states, draw(pi, rng), rng)
    return float(total.mean()), float(total.std(ddof=1)) / math.sqrt(rollouts)


def numbers(experiment: Donations, runs: Sequence[Run]) -> pl.DataFrame:
    """Return the summary of the relative errors by estimator and α."""
    truths, truth_errors = (np.array([run[key] for run in runs]) for key in ("truth", "truth_error"))
    rows = []
    for name in ESTIMATORS:
        relative = (np.array([run["estimates"][name] for run in runs]) - truths) / truths
        for i, alpha in enumerate(experiment.alphas):
            found = relative_summary(relative[:, i], truth_errors[:, i] / np.abs(truths[:, i]), shared=True)
            rows.append({"estimator": name, "alpha": alpha, "donors": experiment.notice} | found)
    return pl.DataFrame(rows)


def claims(experiment: Donations, runs: Sequence[Run]) -> list[Claim]:
    """Return the paper's claims about Fig. 3."""
    truths = np.array([run["truth"] for run in runs])
    errors = {name: np.array([run["estimates"][name] for run in runs]) - truths for name in ESTIMATORS}

    def beats(text: str, i: int, rival: str) -> Claim:
        return better(text, errors["dr-v2"][:, i], errors[rival][:, i], (NAMES["dr-v2"], NAMES[rival]))

    order = sorted(range(len(experiment.alphas)), key=lambda i: experiment.alphas[i])
    far, close = order[0], order[-1]
    alphas, donors = experiment.alphas, experiment.notice
    rivals = [name for name in ESTIMATORS if name != "dr-v2"]
    best = [beats(f"α = {alphas[i]}, {NAMES[rival]}", i, rival) for i in order for rival in rivals]
    return [
        every(f"DR-v2 is the best estimator at every α ({donors})", best),
        beats(f"DR-v2 beats WIS where π1 is far from π0, α = {alphas[far]} ({donors})", far, "step-wis"),
        beats(f"DR-v2 beats REG where π1 is close to π0, α = {alphas[close]} ({donors})", close, "reg"),
    ]
