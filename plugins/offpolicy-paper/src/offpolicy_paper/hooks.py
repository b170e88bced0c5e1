"""The hooks of this package."""

from collections.abc import Callable, Mapping

from offpolicy.experiments.experiment import Study
from offpolicy.hookspecs import hookimpl


@hookimpl
def offpolicy_experiments() -> Mapping[str, Callable[..., Study]]:
    """Return the experiments of the paper, in the order of its figures."""
    from offpolicy_paper import studies

    return {
        "mountain-car": studies.mountain_car_study,
        "sailing": studies.sailing_study,
        "kdd98": studies.kdd98_study,
        "safe-improvement": studies.safe_improvement_study,
    }
