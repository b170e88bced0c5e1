"""Problems for measuring intervals of small samples: those of `hard_problems` that are not misleading, and three more.

heavy-tailed   one step, ρ = exp(1.2 Z − 0.72), an exponential reward that is twice as large where Z > 0
costs          five steps of costs, −1 or −3 and noise, of an action that π1 prefers
walk           sixteen steps with a reward of 1 for the action that π1 prefers, or avoids

Logs are arrays of many at once. Problems without a model get a poor one, the same share of the value for each step that
is left, so that `dr` and `wdr` are measured with good models and with poor ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import polars as pl
from hard_problems import Setting, _frame, settings

#: The number of trajectories in a block of logs.
AT_ONCE = 40_000
#: The share of the value that the poor model knows.
KNOWN = 0.7


@dataclass(frozen=True)
class Logs:
    """Logs of n trajectories as (logs, n, H) arrays. After the end of a trajectory c_t stays and the others are 0."""

    c: np.ndarray
    reward: np.ndarray
    q_hat: np.ndarray
    v_hat: np.ndarray
    running: np.ndarray

    def frame(self, log: int) -> pl.DataFrame:
        """Return one of the logs as a frame."""
        c = self.c[log]
        ratio = c / np.hstack([np.ones((len(c), 1)), c[:, :-1]])
        columns = {"ratio": ratio, "reward": self.reward[log], "q_hat": self.q_hat[log], "v_hat": self.v_hat[log]}
        return _frame(c.shape[1], **columns).filter(pl.Series(self.running[log].reshape(-1)))


def _heavy_tailed(sigma=1.2):
    def draw(rng, n):
        z = rng.normal(size=(n, 1))
        return _frame(1, ratio=np.exp(sigma * z - sigma**2 / 2), reward=rng.exponential(size=(n, 1)) * (1 + (z > 0)))

    return Setting("heavy-tailed bandit", 1 + NormalDist().cdf(sigma), 1.0, draw)


def _two_actions(name, steps, discount, before, after, reward, noise):
    """Make a problem in which π0 and π1 take action 0 with these chances; `reward` is that of each action."""

    def draw(rng, n):
        first = rng.random((n, steps)) < before
        ratio = np.where(first, after / before, (1 - after) / (1 - before))
        return _frame(steps, ratio=ratio, reward=np.where(first, *reward) + noise * rng.normal(size=(n, steps)))

    value = (after * reward[0] + (1 - after) * reward[1]) * sum(discount**t for t in range(steps))
    return Setting(name, value, discount, draw)


def problems() -> list[Setting]:
    """Return all problems."""
    return [
        *(setting for setting in settings() if setting.right and not setting.name.startswith("seldom")),
        _heavy_tailed(),
        _two_actions("costs, 5 steps", 5, 0.9, 0.5, 0.7, (-1.0, -3.0), 1.0),
        _two_actions("walk 0.6 to 0.4, 16 steps", 16, 1.0, 0.6, 0.4, (1.0, 0.0), 0.0),
        _two_actions("walk 0.5 to 0.6, 16 steps", 16, 1.0, 0.5, 0.6, (1.0, 0.0), 0.0),
    ]


def drawn(setting: Setting, rng: np.random.Generator, logs: int, n: int) -> Iterator[Logs]:
    """Yield `logs` logs, in blocks."""
    size = max(1, AT_ONCE // n)
    for start in range(0, logs, size):
        yield _padded(setting, setting.draw(rng, min(size, logs - start) * n), n)


def _padded(setting, frame, n):
    episodes, steps = frame["episode"].n_unique(), int(frame["step"].max()) + 1
    at = frame["episode"].to_numpy(), frame["step"].to_numpy()

    def spread(values, after):
        padded = np.full((episodes, steps), after)
        padded[at] = values
        return padded.reshape(-1, n, steps)

    c = spread(frame["ratio"].to_numpy(), 1.0).cumprod(axis=2)
    reward, running = spread(frame["reward"].to_numpy(), 0.0), spread(1.0, 0.0) == 1
    if "q_hat" in frame.columns:
        return Logs(c, reward, *(spread(frame[name].to_numpy(), 0.0) for name in ("q_hat", "v_hat")), running)
    model = running * (KNOWN * setting.value / steps * np.arange(steps, 0, -1))
    return Logs(c, reward, model, model, running)
