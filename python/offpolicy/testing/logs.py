"""Checks of the log that a domain simulates."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from offpolicy._util.probabilities import ROUNDING
from offpolicy.evaluation.evaluate import evaluate
from offpolicy.logs.check import check
from offpolicy.logs.columns import Columns
from offpolicy.protocols import Policy
from offpolicy.testing.attributes import RESERVED
from offpolicy.testing.faults import Faults

INHERIT = "name offpolicy.protocols.Domain as base and inherit its simulate"


#: `terminal` is left out here, because a separate rule checks it.
UNMARKED = Columns(terminal=None)


def check_log(faults: Faults, domain: Any, policy: Policy, episodes: int, seed: int) -> None:
    """Note faults of a simulated log."""
    with faults.calling("log", f"simulate(behavior, {episodes}, seed={seed})"):
        log = domain.simulate(policy, episodes, seed)
        if not _has_columns(faults, domain, log):
            return
        faults.expect(
            log.equals(domain.simulate(policy, episodes, seed)),
            "log-repeat",
            f"two simulations with the seed {seed} differ",
            "the same seed gives the same log",
            "take all randomness from the rng that is given, and keep nothing between calls",
        )
        report = check(log, columns=UNMARKED)
        if not faults.expect(
            report.ok,
            "log-check",
            f"op.check(log): {report.problems[:1]}",
            "the log passes op.check",
            "mend what it names",
        ):
            return
        _episodes(faults, domain, log, episodes)
        _states_go_on(faults, domain, log)
        _probabilities(faults, domain, policy, log)
        value, by_hand = _value(log, domain), _mc(log, domain)
        faults.expect(
            value is not None and abs(value - by_hand) <= 1e-9 * max(1.0, abs(by_hand)),
            "log-evaluate",
            f"op.evaluate gives {value} for mc, and the mean of the discounted rewards is {by_hand}",
            "steps count from 0, and evaluate reads rewards and steps as they are meant",
            INHERIT,
        )


def _value(log: pl.DataFrame, domain: Any) -> float | None:
    return evaluate(log, estimators=["mc"], discount=domain.discount, columns=UNMARKED)["mc"].value


def _has_columns(faults: Faults, domain: Any, log: Any) -> bool:
    names = {*RESERVED, *domain.state_columns, *(f"next_{name}" for name in domain.state_columns)}
    found = set(log.columns) if isinstance(log, pl.DataFrame) else set()
    return faults.expect(
        names <= found,
        "log-columns",
        f"simulate gave a {type(log).__name__} without {', '.join(sorted(names - found))}",
        "the log is a Polars frame with episode, step, the state, action, reward, behavior_prob, terminal, next_…",
        INHERIT,
    )


def _episodes(faults: Faults, domain: Any, log: pl.DataFrame, episodes: int) -> None:
    each = log.group_by("episode", maintain_order=True).agg(
        rows=pl.len(), early=pl.col("terminal").slice(0, pl.len() - 1).any(), ended=pl.col("terminal").last()
    )
    faults.expect(
        each.height == episodes,
        "log-episodes",
        f"{each.height} episodes for n={episodes}",
        "simulate(policy, n, seed) gives n episodes",
        INHERIT,
    )
    longest = int(each["rows"].max() or 0)  # type: ignore[arg-type]
    faults.expect(
        longest <= domain.horizon,
        "log-horizon",
        f"an episode has {longest} steps",
        f"episodes end by the horizon, {domain.horizon}",
        INHERIT,
    )
    wrong = each.filter(pl.col("early") | ((pl.col("rows") < domain.horizon) & ~pl.col("ended")))
    faults.expect(
        wrong.is_empty(),
        "log-terminal",
        f"episode {wrong['episode'].first()!r} goes on after terminal, or stops before the horizon without it",
        "terminal is True in the last row of an episode that the domain ended, and False everywhere else",
        INHERIT,
    )


def _states_go_on(faults: Faults, domain: Any, log: pl.DataFrame) -> None:
    inside = pl.col("episode") == pl.col("episode").shift(-1)
    for name in domain.state_columns:
        torn = log.with_columns(then=pl.col(name).shift(-1)).filter(inside & (pl.col("then") != pl.col(f"next_{name}")))
        faults.expect(
            torn.is_empty(),
            "log-next",
            f"episode {torn['episode'].first()!r}: next_{name} is not {name} of the next row",
            "next_… is the state of the following step",
            INHERIT,
        )


def _probabilities(faults: Faults, domain: Any, policy: Policy, log: pl.DataFrame) -> None:
    states = log.select(domain.state_columns).to_numpy()
    pi = policy.probabilities(states, log["step"].to_numpy())
    said = pi[np.arange(log.height), log["action"].to_numpy()]
    wrong = np.abs(said - log["behavior_prob"].to_numpy()) > ROUNDING
    row = int(np.argmax(wrong))
    faults.expect(
        not wrong.any(),
        "log-behavior",
        f"row {row}: behavior_prob is {log['behavior_prob'][row]}, and the policy says {said[row]}",
        "behavior_prob is π(a|s) of the action that was taken, by the policy that was given",
        INHERIT,
    )


def _mc(log: pl.DataFrame, domain: Any) -> float:
    returns = log["reward"].to_numpy() * float(domain.discount) ** log["step"].to_numpy()
    return float(returns.sum() / log["episode"].n_unique())
