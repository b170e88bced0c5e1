"""The estimators' ids and what each reads."""

from __future__ import annotations

from collections.abc import Iterable

from offpolicy._util.scalars import shown
from offpolicy.errors.hints import hint
from offpolicy.errors.kinds.of_arguments import at_least_one, unknown_name
from offpolicy.errors.kinds.of_evaluation import ids_in_one_text, not_an_id

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
        raise not_an_id(found=shown(ids), known=", ".join(ESTIMATORS))
    chosen = list(dict.fromkeys(given))
    for name in chosen:
        if name not in ESTIMATORS:
            if "," in str(name):
                raise ids_in_one_text(name=repr(name), ids=[part.strip() for part in name.split(",")])
            raise unknown_name(lack="no estimator", name=shown(name), hint=hint(name, ESTIMATORS))
    if not chosen:
        raise at_least_one(what="name", thing=f"estimator of {', '.join(ESTIMATORS)}")
    return chosen
