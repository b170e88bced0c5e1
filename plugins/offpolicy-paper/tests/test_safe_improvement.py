"""Fig. 4 of the paper at a small size: one run against plain loops, and its claims."""

from dataclasses import replace

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.drivers.mixtures import ALPHAS, SPLITS
from offpolicy.policies import Mixture
from offpolicy_paper import safe_improvement
from offpolicy_paper.safe_improvement import CAUTIONS, ESTIMATORS, PANELS, RULES, Gains

SIZES = (20, 40)


@pytest.fixture(scope="module")
def small():
    return replace(safe_improvement.experiment(), sizes=SIZES)


def trajectory_values(log: pl.DataFrame, policy: Mixture, values) -> dict[str, list[float]]:
    """IS, DR-bsl and DR of every episode, from its last step to its first; IS is None where no weight is left."""
    found: dict[str, list[float]] = {"step-is": [], "dr-bsl": [], "dr": []}
    for _, episode in log.group_by("episode", maintain_order=True):
        states, actions = episode.select("x", "v").to_numpy(), episode["action"].to_numpy()
        steps = np.arange(len(actions))
        rho = policy.probabilities(states, steps)[steps, actions] * 3
        q, v = values.q_hat(states, actions, steps), values.v_hat(states, steps)
        step_is = dr = bsl = 0.0
        for t in reversed(steps):
            step_is = rho[t] * (-1 + 0.99 * step_is)
            dr = v[t] + rho[t] * (-1 + 0.99 * dr - q[t])
            guess = -(1 - 0.99 ** (100 - t)) / 0.01
            bsl = guess + rho[t] * (-1 + 0.99 * bsl - guess)
        for name, value in (("step-is", step_is), ("dr-bsl", bsl), ("dr", dr)):
            found[name].append(value)
    return found


def has_weight_throughout(log: pl.DataFrame, policy: Mixture) -> bool:
    """True if at every step of the log's longest episode some trajectory has weight, as ended ones keep theirs."""
    alive = np.zeros(100, dtype=bool)
    for _, episode in log.group_by("episode", maintain_order=True):
        states, actions = episode.select("x", "v").to_numpy(), episode["action"].to_numpy()
        steps = np.arange(len(actions))
        weight = np.cumprod(policy.probabilities(states, steps)[steps, actions]) > 0
        alive |= np.append(weight, np.full(100 - len(weight), weight[-1]))
    return bool(alive.all())


def test_a_run_recommends_what_plain_loops_recommend(small):
    run = small.run(np.random.SeedSequence(3))
    assert run == small.run(np.random.SeedSequence(3))
    logged = np.random.SeedSequence(3).spawn(2)[0]
    behavior = small.domain.behavior
    log = small.domain.simulate(behavior, SIZES[-1], int(logged.generate_state(1, np.uint64)[0]))
    for s, size in enumerate(SIZES):
        data = log.filter(pl.col("episode") < size)
        own = np.mean([-sum(0.99**t for t in range(len(part))) for _, part in data.group_by("episode")])
        for panel, maximize in PANELS.items():
            scored: dict[tuple[str, str], list[tuple[float, float, list[float]]]] = {
                (rule, name): [] for rule in RULES for name in ESTIMATORS
            }
            for split in SPLITS:
                model = small.fitter.fit(data.filter(pl.col("episode") < split * size), small.domain)
                rest = data.filter(pl.col("episode") >= split * size)
                returns = [
                    -sum(0.99**t for t in range(len(e))) for _, e in rest.group_by("episode", maintain_order=True)
                ]
                for alpha in ALPHAS:
                    policy = Mixture(model.optimal_policy(maximize=maximize), behavior, alpha)
                    if not has_weight_throughout(rest, policy):
                        continue
                    for name, values in trajectory_values(rest, policy, model.values(policy, 100, 0.99)).items():
                        for rule, x in (("value", np.array(values)), ("difference", np.subtract(values, returns))):
                            error = np.std(x, ddof=1) / np.sqrt(len(x))
                            scored[rule, name].append((np.mean(x), error, [split, alpha]))
            for rule, name in scored:
                for c, caution in enumerate(CAUTIONS):
                    value, error, which = max(scored[rule, name], key=lambda one: one[0] - caution * one[1])
                    least = own if rule == "value" else 1e-9  # of equal numbers rounding makes no gain
                    expected = which if value - caution * error > least else None
                    assert run["chosen"][rule][panel][name][c][s] == expected, (rule, panel, name, caution, size)
                    assert (run["gains"][rule][panel][name][c][s] == 0) == (expected is None)


def test_both_rules_know_the_same_gain_of_the_same_policy(small):
    run = small.run(np.random.SeedSequence(3))
    places = [(panel, name, c, s) for panel in PANELS for name in ESTIMATORS for c in range(3) for s in range(2)]
    chosen, gains = (
        {rule: {(p, n, c, s): run[what][rule][p][n][c][s] for p, n, c, s in places} for rule in RULES}
        for what in ("chosen", "gains")
    )
    same = [place for place in places if chosen["value"][place] == chosen["difference"][place] is not None]
    assert same
    assert [gains["value"][place] for place in same] == [gains["difference"][place] for place in same]


def test_the_truths_found_together_are_those_of_simulation(small):
    behavior = small.domain.behavior
    model = small.fitter.fit(small.domain.simulate(behavior, 300, seed=1), small.domain)
    policies = [behavior, Mixture(model.optimal_policy(), behavior, 0.25)]
    found = safe_improvement.true_values(small.domain, [*policies, behavior], np.random.SeedSequence(4))
    assert set(found) == set(map(id, policies))
    for policy in policies:
        log = small.domain.simulate(policy, 4000, seed=2)
        mc = op.evaluate(log, discount=0.99, horizon=100, estimators=["mc"])["mc"]
        assert abs(found[id(policy)] - mc.value) < 4 * 1.7 * mc.std_error  # these are of 1600 episodes


def made_up_runs(count: int = 300) -> list[dict]:
    """Runs in which everything that the paper says is so."""
    rng = np.random.default_rng(2)

    def noisy(mean: float) -> list[float]:
        return (mean + rng.normal(size=len(SIZES))).tolist()

    good = {"step-is": [4.0, 3.0, 2.0], "dr-bsl": [4.0, 3.0, 2.0], "dr": [9.0, 8.0, 7.0]}
    bad = {"step-is": [-9.0, -5.0, -3.0], "dr-bsl": [-9.0, -5.0, -3.0], "dr": [-6.0, -3.0, -1.0]}
    lead = {"value": 0.0, "difference": 1.0}
    return [
        {
            "gains": {
                rule: {
                    panel: {name: [noisy(mean + lead[rule]) for mean in means] for name, means in which.items()}
                    for panel, which in (("maximize", good), ("minimize", bad))
                }
                for rule in RULES
            },
            "chosen": {
                rule: {
                    panel: {name: [[None, [0.2, 0.0 if name == "dr" else 0.4]]] * 3 for name in good}
                    for panel in PANELS
                }
                for rule in RULES
            },
        }
        for _ in range(count)
    ]


def test_claims_follow_the_runs(small):
    runs = made_up_runs()
    assert [claim.verdict for claim in safe_improvement.claims(Gains(small, runs))] == ["held"] * 15
    for run in runs:
        gains, chosen = run["gains"]["value"], run["chosen"]["value"]["maximize"]
        chosen["step-is"] = [[[0.2, 0.0], [0.2, 0.9]]] * 3  # nearer to π0 at one size, not on average
        good = gains["maximize"]
        gains["maximize"] = {"step-is": good["dr"], "dr-bsl": good["dr"], "dr": good["step-is"]}
        gains["minimize"] = {name: means[::-1] for name, means in gains["minimize"].items()}
        gains["minimize"]["dr"] = [[x - 20 for x in means] for means in gains["minimize"]["dr"]]
    verdicts = [claim.verdict for claim in safe_improvement.claims(Gains(small, runs))]
    assert verdicts == [
        *("not held", "not held", "held", "not held", "not held"),
        *("not held", "held", "held", "not held", "not held"),
        *("not held", "held", "not held", "held", "not held"),  # of the paired rule, with dr-bsl and with dr
    ]


def test_the_numbers_are_means_over_runs(small):
    runs = made_up_runs()
    numbers = Gains(small, runs).numbers()
    row = numbers.row(
        by_predicate=(pl.col("rule") == "difference")
        & (pl.col("panel") == "minimize")
        & (pl.col("estimator") == "dr")
        & (pl.col("size") == 40)
        & (pl.col("caution") == 1.0),
        named=True,
    )
    gains = [run["gains"]["difference"]["minimize"]["dr"][1][1] for run in runs]
    assert row["gain"] == pytest.approx(sum(gains) / len(gains))
    assert row["kept_behavior"] == 0.0
    assert numbers.filter(pl.col("size") == 20)["kept_behavior"].to_list() == [1.0] * 36
    assert row["gain_error"] == pytest.approx(1 / len(gains) ** 0.5, rel=0.15)
