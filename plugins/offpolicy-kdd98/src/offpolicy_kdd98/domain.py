"""The donation domain of Jiang & Li (2016), section 6.1.3: a simulator fitted to donors' trajectories.

    P(s'|s, a) = Π_i P_i(s'_i | s_i, a) by counts, pooled over time;    R(s, a) = θ_a · (1, s), all five features

The model of `offpolicy.models.fitters.factored` is taken as the truth, with 12 actions, 22 steps, no discount, a
uniform behaviour policy, and all features 0 at the start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from offpolicy._util import scalars
from offpolicy.models.fitters.factored import Factored, FactoredModel
from offpolicy.models.fitters.recurrent import Recurrent
from offpolicy.policies import Uniform
from offpolicy.protocols import Actions, Domain, Floats, LoggedDomain, Policy, States

from offpolicy_kdd98.builder import trajectories
from offpolicy_kdd98.campaigns import ACTIONS, FEATURES, MAIL_TYPES, Campaigns
from offpolicy_kdd98.reader import VARIABLE, read
from offpolicy_kdd98.synthetic import synthetic_donors


@dataclass(frozen=True)
class Kdd98(Domain):
    """Donations by mail, from the file at `path` or in the variable OFFPOLICY_KDD98, or else of synthetic donors.

    The simulator is fitted to `donors` of them, chosen by `seed`. The reward is the gift, less the mailing's $0.68 if
    `net`. With `noise="residual"` a residual of the fit is added, drawn from those of the same action. Each mail type
    was used in only one to three campaigns, so that many values of features were never seen with it: they move as under
    all actions together (`unseen="pool"`) or "stay".

    >>> domain = Kdd98(path="", donors=200)
    >>> domain.notice
    'synthetic donors, not the KDD Cup 1998 file'
    >>> domain.simulate(domain.behavior, n=2, seed=0).height
    44
    """

    name = "kdd98"
    state_columns = FEATURES
    actions = len(ACTIONS)
    action_names = ACTIONS
    horizon = len(MAIL_TYPES)
    discount = 1.0

    path: str | Path | None = None
    donors: int = 3754
    seed: int = 1998
    net: bool = False
    noise: str = "none"
    unseen: str = "pool"

    def __post_init__(self) -> None:
        """Raise an error for invalid options."""
        object.__setattr__(self, "donors", scalars.whole("donors", self.donors, 1))
        object.__setattr__(self, "seed", scalars.whole("seed", self.seed, 0))
        scalars.choice("noise", self.noise, ("none", "residual"))

    def __getstate__(self) -> dict[str, Any]:
        """Return only the options for other processes, in which the simulator is fitted again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def file(self) -> Path | None:
        """The file that is read; an empty path means synthetic donors, even if the variable is set."""
        found = os.environ.get(VARIABLE) if self.path is None else self.path
        return Path(found) if found else None

    @cached_property
    def campaigns(self) -> Campaigns:
        """The donors to which the simulator is fitted."""
        if self.file is None:
            return synthetic_donors(self.donors, self.seed)
        return read(self.file).sample(self.donors, np.random.default_rng(self.seed))

    @property
    def notice(self) -> str:
        """The origin of the gifts, which every output shows first."""
        if self.file is None:
            return "synthetic donors, not the KDD Cup 1998 file"
        return f"simulated from {self.file.name}, donors of a national veterans organization"

    @cached_property
    def trajectories(self) -> pl.DataFrame:
        """The original trajectories, one per donor."""
        return trajectories(self.campaigns, self.net)

    @cached_property
    def model(self) -> FactoredModel:
        """The simulator: transitions by counts, and a reward linear in all five features."""
        return Factored(unseen=self.unseen).fit(self.trajectories, self._setting)

    @cached_property
    def residuals(self) -> list[Floats]:
        """The residuals of the linear reward by action, or 0 for an action that was never taken."""
        states = self.trajectories.select(FEATURES).to_numpy()
        actions = self.trajectories["action"].to_numpy()
        left = self.trajectories["reward"].to_numpy() - self.model.reward(states, actions)
        return [left[actions == a] if (actions == a).any() else np.zeros(1) for a in range(self.actions)]

    @cached_property
    def reward_range(self) -> tuple[float, float]:  # type: ignore[override]
        """The lowest and highest reward over all values that the features ever had."""
        theta = self.model.reward.theta
        ends = np.array([[values[0], values[-1]] for values in self.model.marginals.values])
        corners = theta[:, 1:, None] * ends
        low, high = theta[:, 0] + corners.min(axis=2).sum(axis=1), theta[:, 0] + corners.max(axis=2).sum(axis=1)
        if self.noise == "residual":
            low, high = low + [r.min() for r in self.residuals], high + [r.max() for r in self.residuals]
        return float(low.min()), float(high.max())

    @property
    def behavior(self) -> Policy:
        """The behaviour policy π0, which takes every mail type, and none, with equal probability."""
        return Uniform(self.actions)

    @property
    def evaluation_fitter(self) -> Factored:
        """The paper's model of the simulated logs, with a reward of the first three features and five particles."""
        return Factored(reward_features=FEATURES[:3], particles=5)

    @property
    def policies(self) -> Mapping[str, Callable[[], Policy]]:
        """The policy π_train, which is made on demand."""
        return {"trained": lambda: self.trained}

    @cached_property
    def trained(self) -> Policy:
        """The policy π_train, greedy by a recurrent Q-function of the original trajectories (extra `recurrent`)."""
        return Recurrent().fit(self.trajectories, self._setting).optimal_policy()

    def reset(self, n: int, rng: np.random.Generator) -> States:
        """Return n donors who have neither been mailed nor given."""
        return np.zeros((n, len(FEATURES)), dtype=np.int64)

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator
    ) -> tuple[States, Floats, NDArray[np.bool_]]:
        """Run one campaign; only the horizon ends an episode."""
        next_states, rewards = self.model.sample(states, actions, rng)
        if self.noise == "residual":
            place = rng.random(len(states))
            for a, residuals in enumerate(self.residuals):
                rows = actions == a
                rewards[rows] += residuals[(place[rows] * len(residuals)).astype(int)]
        return next_states.astype(np.int64), rewards, np.zeros(len(states), dtype=bool)

    def transition_probability(self, states: States, actions: Actions, next_states: States) -> Floats:
        """Return P(s'|s, a) = Π_i P_i(s'_i | s_i, a), n values."""
        return self.model.marginals.move_probability(states, actions, next_states)

    def plot(self, log: pl.DataFrame, episode: int) -> Any:
        """Draw the features of a donor over the campaigns, with mailings and gifts, as an Altair chart."""
        from offpolicy_kdd98.picture import picture

        return picture(log, episode, self.notice)

    @property
    def _setting(self) -> LoggedDomain:
        gifts = self.campaigns.gifts
        return LoggedDomain(FEATURES, self.actions, self.horizon, (float(gifts.min()), float(gifts.max())))
