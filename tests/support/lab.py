"""A plugin `lab` without a package: estimators and intervals that tests bring, some right and some wrong."""

from types import ModuleType

import numpy as np
from offpolicy.extensions import plugins
from offpolicy.extensions.plugins import Plugin, Registry
from offpolicy.hookspecs import hookimpl


class StepIs:
    """The core's `step-is`, as a plugin would write it."""

    name, needs, unbiased = "step-wise importance sampling", ("ratio",), True
    equation = "Σ_t γ^{t−1} ρ_{1:t} r_t"

    def values(self, block):
        return block.by_trajectory_sum(block.discounts * block.cumulative_ratio() * block["reward"])

    def range(self, bounds, terms):
        return bounds.range("step-is", terms)


class Dr:
    """The core's `dr`."""

    name, needs, unbiased = "doubly robust", ("ratio", "q_hat", "v_hat"), True

    def values(self, block):
        c = block.cumulative_ratio()
        before = np.where(block.step == 0, 1.0, np.roll(c, 1))
        terms = before * block["v_hat"] + c * (block["reward"] - block["q_hat"])
        return block.by_trajectory_sum(block.discounts * terms)


class Reg:
    """The core's `reg`, which uses no weights."""

    name, needs, unbiased = "the model's own value", ("v_hat",), False

    def values(self, block):
        return block["v_hat"][block.starts]


class Own:
    """An estimator with a ratio of its own, which the log has as `marginal`."""

    name, needs, unbiased = "marginal importance sampling", ("marginal",), True

    def values(self, block):
        return block.by_trajectory_sum(block.discounts * block["marginal"] * block["reward"])


def giving(values, **members):
    """An estimator that gives something."""
    about = {"name": "any", "needs": ("ratio",), "unbiased": False, "values": lambda self, block: values(block)}
    return type("Giving", (), about | members)


ESTIMATORS = {"lab-step-is": StepIs, "lab-dr": Dr, "lab-reg": Reg, "lab-own": Own}


def lab(monkeypatch, estimators=ESTIMATORS, intervals=None):
    """Let `offpolicy` find these by name for the rest of a test."""
    module = ModuleType("offpolicy_lab")
    module.offpolicy_estimators = hookimpl(_named("offpolicy_estimators", estimators))
    module.offpolicy_intervals = hookimpl(_named("offpolicy_intervals", intervals or {}))
    registry = Registry()
    registry.plugins.append(Plugin("lab", "offpolicy-lab", "1.0", module=module))
    monkeypatch.setattr(plugins, "_registry", registry)


def _named(name, answer):
    def hook():
        return answer

    hook.__name__ = name
    return hook
