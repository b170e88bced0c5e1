"""Claims of Jiang & Li (2016), 6.1, about errors over |D_test|, for Fig. 1 and, where it is similar, Fig. 2."""

from __future__ import annotations

from collections.abc import Iterable

from offpolicy.experiments.claims import Claim, better, every

from offpolicy_paper.errors import Errors
from offpolicy_paper.splits import ALPHAS

#: The estimators with which DR and DR-bsl are compared.
RIVALS = ("step-is", "step-wis")


def ends(errors: Errors) -> list[Claim]:
    """Claim whether each curve falls, rises, or falls and rises again as |D_test| grows."""
    return [
        every("IS and WIS get better as |D_test| increases", [_grows(errors, name) for name in RIVALS]),
        every("REG gets worse as D_reg shrinks, for every α", [_regression(errors, alpha) for alpha in ALPHAS]),
        every("DR is best at an intermediate |D_test|, for every α", [_between(errors, alpha) for alpha in ALPHAS]),
    ]


def best_split(text: str, errors: Errors, rivals: Iterable[tuple[float, str]]) -> Claim:
    """Claim that DR at its best split beats a rival with all the data, for all these α and rivals."""
    return every(text, [_best_split(errors, alpha, rival) for alpha, rival in rivals])


def baseline(errors: Errors) -> list[Claim]:
    """Compare DR-bsl with IS and WIS at every |D_test| and α."""
    found = []
    for rival in RIVALS:
        parts = [
            better("", errors("dr-bsl", size, alpha), errors(rival, size, alpha), ("DR-bsl", rival))
            for size in errors.sizes
            for alpha in ALPHAS
        ]
        held = sum(part.verdict == "held" for part in parts)
        lost = sum(part.verdict == "not held" for part in parts)
        verdict = "held" if 2 * held > len(parts) else "not held" if 2 * lost >= len(parts) else "undecided"
        evidence = f"better in {held} of {len(parts)} settings, worse in {lost}"
        found.append(Claim(f"DR-bsl outperforms {rival} most of the time", verdict, evidence))
    return found


def _grows(errors: Errors, name: str) -> Claim:
    few, names = errors.sizes[0], ("on all", f"on {errors.sizes[0]}")
    parts = [
        better(f"α={alpha}", errors(name, errors.total, alpha), errors(name, few, alpha), names) for alpha in ALPHAS
    ]
    return every(name, parts)


def _regression(errors: Errors, alpha: float) -> Claim:
    few, many = errors.sizes[0], errors.sizes[-1]
    names = (f"REG at |D_test|={few}", f"at {many}")
    return better(f"α={alpha}", errors("reg", few, alpha), errors("reg", many, alpha), names)


def _between(errors: Errors, alpha: float) -> Claim:
    """Compare the best size between the ends with both ends, either of which may win."""
    size = errors.best_size("dr", alpha, errors.sizes[1:-1])
    ends = [
        better(str(end), errors.rest("dr", size, alpha), errors.rest("dr", end, alpha), (f"DR at {size}", f"at {end}"))
        for end in (errors.sizes[0], errors.sizes[-1])
    ]
    return every(f"α={alpha}", ends)


def _best_split(errors: Errors, alpha: float, rival: str) -> Claim:
    size = errors.best_size("dr", alpha)
    names = (f"DR at {size}", f"{rival} on all")
    return better(f"α={alpha}", errors.rest("dr", size, alpha), errors.rest(rival, errors.total, alpha), names)
