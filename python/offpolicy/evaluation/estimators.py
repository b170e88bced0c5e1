"""The estimators' ids and what each reads."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from offpolicy._util.scalars import shown
from offpolicy.errors import UsageError

ESTIMATORS = ("mc", "is", "step-is", "wis", "step-wis", "reg", "dr", "dr-bsl", "dr-v2", "wdr", "magic")

#: Columns of the policy that an estimator reads besides the reward; "ratio" stands for either form of it.
NEEDS: dict[str, tuple[str, ...]] = {
    "mc": (),
    "is": ("ratio",),
    "step-is": ("ratio",),
    "wis": ("ratio",),
    "step-wis": ("ratio",),
    "reg": ("v_hat",),
    "dr": ("ratio", "q_hat", "v_hat"),
    "dr-bsl": ("ratio",),
    "dr-v2": ("ratio", "r_hat", "v_hat"),
    "wdr": ("ratio", "q_hat", "v_hat"),
    "magic": ("ratio", "q_hat", "v_hat"),
}

#: Ratios of sums, or blends of such: biased but consistent, no finite-sample interval.
WEIGHTED = frozenset({"wis", "step-wis", "wdr", "magic"})

#: Part log, part model, by shares that are known when the log has been read twice.
BLENDED = frozenset({"magic"})

#: Without importance weights.
UNWEIGHTED = frozenset({"mc", "reg"})

#: Unbiased with P̂/P alone: without it, as far as the model's transitions are right (Proposition 1).
TRUSTING = frozenset({"dr-v2"})

#: Means of values of single trajectories with weights.
AVERAGED = tuple(name for name in ESTIMATORS if name not in WEIGHTED | UNWEIGHTED)


def check_ids(ids: str | Iterable[str]) -> list[str]:
    """The ids in their order, without repeats; an unknown one is refused with a suggestion."""
    given = [ids] if isinstance(ids, str) else list(ids) if isinstance(ids, Iterable) else None
    if given is None or not all(isinstance(name, str) for name in given):
        raise UsageError(f"estimators are ids such as 'dr', not {shown(ids)}; there are {', '.join(ESTIMATORS)}")
    chosen = list(dict.fromkeys(given))
    for name in chosen:
        if name not in ESTIMATORS:
            if "," in str(name):
                raise UsageError(
                    f"no estimator {name!r}; several are a list: {[part.strip() for part in name.split(',')]}"
                )
            close = get_close_matches(name, ESTIMATORS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(ESTIMATORS)}"
            raise UsageError(f"no estimator {shown(name)}; {hint}")
    if not chosen:
        raise UsageError(f"name at least one estimator of {', '.join(ESTIMATORS)}")
    return chosen
