"""Rules of the verdict for episodes in clusters, which are added to those of `offpolicy.evaluation.verdict`.

    fragile    fewer than 30 clusters: their spread tells little of the error
               one cluster has more than a quarter of the variance

If all clusters follow the same normal law, the second rule applies to 12% of logs with 30 clusters, to 3% with 40 and
to 1% with 50.
"""

from __future__ import annotations

from offpolicy.evaluation import advice
from offpolicy.evaluation.estimate import Estimate
from offpolicy.evaluation.verdict import Verdict

FEW = 30
CONCENTRATED = 0.25


def judge_clusters(verdict: Verdict, estimate: Estimate) -> Verdict:
    """Return the verdict on an estimate, lowered to fragile if one of the rules for clusters applies."""
    clusters, share = estimate.clusters, estimate.cluster_share
    rule = None
    if clusters is not None and clusters < FEW:
        few = "1 cluster is" if clusters == 1 else f"{clusters} clusters are"
        rule = f"{few} few: below {FEW} their spread tells little of the error"
    elif share is not None and share > CONCENTRATED:
        rule = f"one cluster has {share:.0%} of the variance of {estimate.estimator}"
    if rule is None or verdict.level != "reliable":
        return verdict
    return Verdict("fragile", f"{rule} (policy {verdict.policy!r})", verdict.policy, advice.MORE_CLUSTERS)
