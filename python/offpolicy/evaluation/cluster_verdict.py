"""The verdict on an estimate of episodes in clusters, beside what `offpolicy.evaluation.verdict` says of its weights.

    fragile    fewer than 30 clusters: their spread tells little of the error
               one cluster has more than a quarter of the variance

Of clusters that are all of the same normal law the largest has more than that in 12% of logs with 30 clusters, in 3%
with 40 and in 1% with 50.
"""

from __future__ import annotations

from offpolicy.evaluation import advice
from offpolicy.evaluation.estimate import Estimate
from offpolicy.evaluation.verdict import Verdict

FEW = 30
CONCENTRATED = 0.25


def judge_clusters(verdict: Verdict, estimate: Estimate) -> Verdict:
    """Return the verdict on an estimate, or what its clusters say if that is worse."""
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
