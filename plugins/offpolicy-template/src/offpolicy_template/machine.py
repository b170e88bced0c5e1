"""A machine that wears out.

Its wear is 0 (new) to 5. Running it earns 1 - wear/5 and increases the wear by one with probability ½. A machine of
wear 5 that runs breaks with probability ½, which costs 2 and ends the episode. Repairing it costs ½ and makes it new.
A new machine cannot be repaired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import offpolicy as op
from numpy.typing import NDArray
from offpolicy.policies import FromCallable, Uniform
from offpolicy.protocols import Actions, Domain, Floats, Policy, States, Step

RUN, REPAIR = 0, 1
WORN_OUT = 5


@dataclass(frozen=True)
class Machine(Domain):
    """The machine as a domain; every field can be set, as in `op.domain("machine", horizon=50)`.

    >>> from offpolicy_template import Machine
    >>> Machine().simulate(Machine().behavior, 1, seed=0).head(1)["wear"].item()
    0
    """

    name: str = "machine"
    state_columns: tuple[str, ...] = ("wear",)
    actions: int = 2
    horizon: int = 20
    discount: float = 0.95
    reward_range: tuple[float, float] = (-2.0, 1.0)

    action_names: ClassVar[tuple[str, ...]] = ("run", "repair")
    grid: ClassVar[op.Grid] = op.Grid((WORN_OUT + 1,))

    @property
    def behavior(self) -> Policy:
        """The behaviour policy, which takes all legal actions with equal probability."""
        return Uniform(self.actions, self.legal)

    @property
    def policies(self) -> Mapping[str, Policy]:
        """Further policies, by the names that the command line takes."""
        return {"careful": repair_from(3, share=0.7)}

    def legal(self, states: States) -> NDArray[np.bool_]:
        """Return which actions are legal: all but the repair of a new machine."""
        allowed = np.ones((len(states), self.actions), dtype=bool)
        allowed[:, REPAIR] = states[:, 0] > 0
        return allowed

    def reset(self, n: int, rng: np.random.Generator) -> States:
        """Return n new machines."""
        return np.zeros((n, 1), dtype=np.int64)

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator
    ) -> tuple[States, Floats, NDArray[np.bool_]]:
        """Run or repair each machine; each row has its own random number."""
        wear, runs = states[:, 0], actions == RUN
        worse = runs & (rng.random(len(states)) < 0.5)
        broken = worse & (wear == WORN_OUT)
        next_wear = np.where(runs, np.minimum(wear + worse, WORN_OUT), 0)
        rewards = np.where(runs, np.where(broken, -2.0, 1 - wear / WORN_OUT), -0.5)
        return next_wear[:, None], rewards, broken


def repair_from(wear: int, share: float) -> Policy:
    """Return a policy that repairs with probability `share` from some wear on, and with 1 - share below it.

    It never repairs a new machine.
    """

    def probabilities(states: States, step: Step) -> Floats:
        repairs = np.where(states[:, 0] >= wear, share, 1 - share) * (states[:, 0] > 0)
        pi: Floats = np.stack([1 - repairs, repairs], axis=1)
        return pi

    return FromCallable(probabilities)
