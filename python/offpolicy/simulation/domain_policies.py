"""The policies of a domain by name: `behavior`, those in its `policies`, and mixtures of these with `behavior`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from offpolicy.errors.hints import suggestion
from offpolicy.errors.kinds.of_arguments import unknown_name
from offpolicy.evaluation.plan import BEHAVIOR
from offpolicy.policies import Mixture
from offpolicy.protocols import Domain, Policy


def domain_policy(domain: Domain, name: str, alpha: float | None = None) -> Policy:
    """Return the policy of that name; with `alpha`, mix (1-α) of it with α of the behaviour policy.

    >>> from types import SimpleNamespace as Namespace
    >>> from offpolicy.policies import Uniform
    >>> domain = Namespace(name="coin", behavior=Uniform(2), policies={"careful": lambda: Uniform(3)})
    >>> domain_policy(domain, "careful")
    Uniform(actions=3, legal=None)
    >>> domain_policy(domain, "carefull")
    Traceback (most recent call last):
        ...
    offpolicy.errors.UsageError: domain 'coin' has no policy 'carefull'; did you mean 'careful'?
    """
    offered: Mapping[str, Policy | Callable[[], Policy]] = getattr(domain, "policies", {})
    if name == BEHAVIOR:
        policy = domain.behavior
    elif name in offered:
        found = offered[name]
        policy = found() if isinstance(found, type) or not isinstance(found, Policy) else found
    else:
        known = [BEHAVIOR, *offered]
        hint = suggestion(name, known) or f"; there are {', '.join(known)}"
        raise unknown_name(lack=f"domain {domain.name!r} has no policy", name=repr(name), hint=hint)
    return policy if alpha is None else Mixture(policy, domain.behavior, alpha)
