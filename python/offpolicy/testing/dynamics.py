"""Checks of first states and steps: shapes, types, ranges, and rows that do not affect each other."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy.protocols import Actions, States
from offpolicy.simulation.rollouts import draw
from offpolicy.testing.faults import Faults
from offpolicy.testing.row_numbers import check_row_numbers

ROWS = 32
#: The largest number of steps of the walks through the domain, and of their states that are checked.
STEPS, KEPT = 64, 256
#: The number of seeds with which a row is stepped alone, the number of copies of a row in a batch, and how often
#: outcomes other than the most frequent one must occur for a row to count as random.
SEEDS, COPIES, SEEN = 8, 64, 4
RANGE_TOLERANCE = 1e-9


def check_reset(faults: Faults, domain: Any, seed: int) -> bool:
    """Note faults of first states; return whether these can be used."""
    with faults.calling("reset", f"reset({ROWS}, rng)"):
        first = domain.reset(ROWS, np.random.default_rng(seed))
        if not _are_states(faults, "reset", first, ROWS, domain):
            return False
        _are_states(faults, "reset-single", domain.reset(1, np.random.default_rng(seed)), 1, domain)
        faults.expect(
            np.array_equal(first, domain.reset(ROWS, np.random.default_rng(seed))),
            "reset-repeat",
            "reset gave other states for the same seed",
            "all randomness comes from the rng that is given",
            "replace np.random and random by rng, and keep nothing between calls",
        )
        alone = {domain.reset(1, np.random.default_rng(seed + i)).tobytes() for i in range(SEEDS)}
        faults.expect(
            len(alone) < SEEDS // 2 or len({row.tobytes() for row in first}) > 1,
            "reset-shared",
            f"all {ROWS} rows of a reset are the same, and another seed gives another state",
            "every row is an episode of its own",
            "draw n numbers, rng.random(n), and not one for all",
        )
        return True
    return False


def visited(domain: Any, seed: int) -> tuple[States, States]:
    """Return states on walks of random legal actions, and those in which walks ended; a fault cuts the walks short."""
    rng = np.random.default_rng(seed)
    states = domain.reset(ROWS, rng)
    alive, ended = [states], [states[:0]]
    with suppress(Exception):  # check_dynamics and check_legal make the same calls and note faults
        for _ in range(min(domain.horizon, STEPS)):
            legal = domain.legal(states.copy())
            if not legal.any(axis=1).all():
                break
            then, _, done = domain.step(states.copy(), any_legal(legal, rng), rng)
            over = np.asarray(done, dtype=bool)
            ended.append(then[over].reshape(-1, states.shape[1]))
            states = then[~over].reshape(-1, states.shape[1])
            if not len(states):
                break
            alive.append(states)
    found = np.concatenate(alive)
    return found[np.sort(rng.permutation(len(found))[:KEPT])], np.concatenate(ended)


def any_legal(legal: NDArray[np.bool_], rng: np.random.Generator) -> Actions:
    """Draw one legal action per row; all are equally likely."""
    return draw(legal / legal.sum(axis=1, keepdims=True), rng)


def check_dynamics(faults: Faults, domain: Any, states: States, legal: NDArray[np.bool_], seed: int) -> bool:
    """Note faults of steps from these states; return whether a log can be simulated."""
    before = len(faults.found)
    actions = any_legal(legal, np.random.default_rng(seed))
    given, chosen = states.copy(), actions.copy()
    with faults.calling("step", "step(states, actions, rng)"):
        result = domain.step(given, chosen, np.random.default_rng(seed))
        faults.expect(
            np.array_equal(given, states) and np.array_equal(chosen, actions),
            "step-mutates",
            "step changed the arrays that it was given",
            "arguments are never changed: they go into the log",
            "begin with states = states.copy()",
        )
        if not _is_result(faults, "step", result, states, domain):
            return False
        _rewards(faults, domain, result[1])
        again = domain.step(states.copy(), actions.copy(), np.random.default_rng(seed))
        faults.expect(
            all(np.array_equal(a, b) for a, b in zip(result, again, strict=True)),
            "step-repeat",
            "step gave another result for the same states, actions and seed",
            "all randomness comes from the rng that is given",
            "replace np.random and random by rng, and keep nothing between calls",
        )
        alone = domain.step(states[:1].copy(), actions[:1].copy(), np.random.default_rng(seed))
        if _is_result(faults, "step-single", alone, states[:1], domain):
            _row_by_row(faults, domain, states[:ROWS], actions[:ROWS], seed)
            _own_randomness(faults, domain, states, actions, seed)
            check_row_numbers(faults, domain, states, actions, seed)
    return len(faults.found) == before


def _are_states(faults: Faults, rule: str, states: Any, n: int, domain: Any) -> bool:
    shape = (n, len(domain.state_columns))
    array = isinstance(states, np.ndarray)
    return faults.expect(
        array and states.shape == shape and states.dtype.kind in "iufb" and bool(np.isfinite(states).all()),
        rule,
        f"the states are {_described(states)}",
        f"states are a finite array of numbers of shape (n, state_columns) = {shape}",
        "build them with np.stack([x, y], axis=1); one column is still (n, 1): x[:, None]",
    )


def _is_result(faults: Faults, rule: str, result: Any, states: States, domain: Any) -> bool:
    if not faults.expect(
        isinstance(result, tuple) and len(result) == 3,
        rule,
        f"step returned {_described(result)}",
        "step returns three arrays: next states, rewards, done",
        "end it with `return next_states, rewards, done`",
    ):
        return False
    then, rewards, done = result
    n, first = len(states), domain.reset(1, np.random.default_rng(0)).dtype
    return all(
        [
            _are_states(faults, f"{rule}-states", then, n, domain)
            and faults.expect(
                np.can_cast(then.dtype, first, "same_kind"),
                f"{rule}-states",
                f"step gives states of {then.dtype}, and reset gives {first}",
                "all states of a domain have one type",
                "make the first states with dtype=float",
            ),
            faults.expect(
                isinstance(rewards, np.ndarray)
                and rewards.shape == (n,)
                and rewards.dtype.kind in "iuf"
                and bool(np.isfinite(rewards).all()),
                f"{rule}-rewards",
                f"the rewards are {_described(rewards)}",
                f"rewards are a finite array of shape (n,) = ({n},)",
                "np.full(len(states), reward) where all are the same; no NaN for what is missing",
            ),
            faults.expect(
                isinstance(done, np.ndarray) and done.shape == (n,) and done.dtype == bool,
                f"{rule}-done",
                f"done is {_described(done)}",
                f"done is an array of bool of shape (n,) = ({n},)",
                "np.zeros(len(states), dtype=bool) where no step ends an episode; the horizon is not your business",
            ),
        ]
    )


def _rewards(faults: Faults, domain: Any, rewards: NDArray[np.floating]) -> None:
    low, high = domain.reward_range
    outside = (rewards < low - RANGE_TOLERANCE) | (rewards > high + RANGE_TOLERANCE)
    faults.expect(
        not outside.any(),
        "reward-range",
        f"step gave a reward of {rewards[np.argmax(outside)]}",
        f"rewards lie in reward_range = {tuple(domain.reward_range)}",
        "widen reward_range to what can happen, or mend the reward",
    )


def _row_by_row(faults: Faults, domain: Any, states: States, actions: Actions, seed: int) -> None:
    """Note a row with different outcomes alone and in a batch, where neither depends on the seed."""
    seeds = range(seed, seed + SEEDS)
    together = [_outcomes(domain, states, actions, s) for s in seeds]
    for i in range(len(states)):
        batch = {outcomes[i] for outcomes in together}
        alone = {_outcomes(domain, states[i : i + 1], actions[i : i + 1], s)[0] for s in seeds}
        if not faults.expect(
            len(batch) > 1 or len(alone) > 1 or batch == alone,
            "step-rows",
            f"action {actions[i]} in the state {states[i]} leads elsewhere alone than among other rows",
            "a row of the result depends on its own state and action alone",
            "look for a mean, maximum, `if` or index that mixes the rows",
        ):
            return


def _own_randomness(faults: Faults, domain: Any, states: States, actions: Actions, seed: int) -> None:
    """Note a row that is random alone, but all copies of which have the same outcome in one batch."""
    for i in range(0, len(states), max(1, len(states) // SEEDS)):
        state, action = states[i : i + 1], actions[i : i + 1]
        alone = Counter(_outcomes(domain, state, action, seed + s)[0] for s in range(COPIES))
        if COPIES - max(alone.values()) < SEEN:
            continue
        copies = (np.repeat(state, COPIES, axis=0), np.repeat(action, COPIES))
        if not faults.expect(
            any(len(set(_outcomes(domain, *copies, seed + s))) > 1 for s in range(SEEDS)),
            "step-shared",
            f"action {action[0]} in the state {state[0]} is random, and {COPIES} rows of it all did the same",
            "every row draws its own random numbers",
            "draw n numbers, rng.random(len(states)), and not one for all",
        ):
            return


def _outcomes(domain: Any, states: States, actions: Actions, seed: int) -> list[tuple[bytes, float, bool]]:
    then, rewards, done = domain.step(states.copy(), actions.copy(), np.random.default_rng(seed))
    rows = zip(then, rewards, done, strict=True)
    return [(row.tobytes(), float(reward), bool(end)) for row, reward, end in rows]


def _described(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return f"a {type(value).__name__}" + (f" of {len(value)}" if isinstance(value, tuple) else "")
    about = f"an array of {value.dtype}, shape {value.shape}"
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        about += f", with {value[~np.isfinite(value)][0]} in it"
    return about
