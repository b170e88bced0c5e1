"""The paper's Fig. 3 at a small size, against plain sums over trajectories."""

import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from installed import install_studies
from offpolicy.cli import main
from offpolicy.experiments import runs
from offpolicy.models.fitters.factored import Factored
from offpolicy.models.fitters.recurrent import Recurrent
from offpolicy.policies import Mixture
from offpolicy_kdd98 import FEATURES, Kdd98
from offpolicy_paper import kdd98, studies

SEED = 7
H = 22


@pytest.fixture(scope="module")
def small():
    """π_train and all else as in the paper, but few donors, episodes and roll-outs."""
    made = kdd98.experiment(path="", donors=300)
    return replace(made, episodes=40, alphas=(0.0, 0.5), rollouts=500)


def stream(index=0):
    return np.random.SeedSequence(SEED, spawn_key=(index,))


@pytest.fixture
def witnessed(small, monkeypatch):
    """A run, the log that it simulated, and what each of its models was fitted to."""
    logs, fits = [], []
    simulate, fit = Kdd98.simulate, Factored.fit

    def simulated(domain, *arguments):
        logs.append(simulate(domain, *arguments))
        return logs[-1]

    def fitted(fitter, log, domain):
        fits.append((set(log["episode"]), fit(fitter, log, domain)))
        return fits[-1][1]

    assert small.truth  # not part of a run
    monkeypatch.setattr(Kdd98, "simulate", simulated)
    monkeypatch.setattr(Factored, "fit", fitted)
    run = small.run(stream())
    assert len(logs) == 1
    return run, logs[0], fits


def test_a_run_is_what_plain_sums_over_trajectories_give(small, witnessed):
    run, log, fits = witnessed
    episodes = [part.to_dicts() for part in log.partition_by("episode", maintain_order=True)]
    assert len(episodes) == 40
    targets = [Mixture(small.trained, small.domain.behavior, alpha) for alpha in small.alphas]
    values = [(seen, model, model.values_of(targets, H, 1.0)) for seen, model in fits]
    for i, target in enumerate(targets):
        rho = [[ratio(target, row) for row in rows] for rows in episodes]
        unseen = [
            next((model, of[i]) for seen, model, of in values if rows[0]["episode"] not in seen) for rows in episodes
        ]
        (whole,) = (of[i] for seen, _, of in values if len(seen) == 40)
        expected = {
            "step-is": mean(step_is(*pair) for pair in zip(episodes, rho, strict=True)),
            "step-wis": step_wis(episodes, rho),
            "reg": whole.v_hat(np.zeros((1, 5)), 0)[0],
            "dr-bsl": mean(dr_bsl(*pair, small.baseline) for pair in zip(episodes, rho, strict=True)),
            "dr-v2": mean(dr_v2(*triple) for triple in zip(episodes, rho, unseen, strict=True)),
        }
        found = {name: estimates[i] for name, estimates in run["estimates"].items()}
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert found[name] == pytest.approx(float(value), rel=1e-10), name


def ratio(target, row):
    pi = target.probabilities(np.array([[row[name] for name in FEATURES]]), row["step"])[0, row["action"]]
    return Fraction(float(pi)) * 12


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def step_is(rows, rho):
    total, weight = Fraction(0), Fraction(1)
    for row, now in zip(rows, rho, strict=True):
        weight *= now
        total += weight * Fraction(row["reward"])
    return total


def step_wis(episodes, rho):
    """Steps at which no trajectory has weight are left out, with all that follow."""
    total, weights = Fraction(0), [Fraction(1)] * len(episodes)
    for t in range(H):
        weights = [weight * ratios[t] for weight, ratios in zip(weights, rho, strict=True)]
        if not any(weights):
            return total
        rewards = [Fraction(rows[t]["reward"]) for rows in episodes]
        total += sum(w * r for w, r in zip(weights, rewards, strict=True)) / sum(weights)
    return total


def dr_bsl(rows, rho, c):
    """Eq. (10) with the same guess c for every step that remains."""
    value = Fraction(0)
    for t in reversed(range(H)):
        guess = Fraction(c) * (H - t)
        value = guess + rho[t] * (Fraction(rows[t]["reward"]) + value - guess)
    return value


def dr_v2(rows, rho, unseen):
    """Eq. (12) with P̂/P = 1 as it stands, V̂ at every state."""
    model, values = unseen
    states = np.array([[row[name] for name in FEATURES] for row in rows])
    v_hat = [Fraction(float(v)) for v in values.v_hat(states, np.arange(H))] + [Fraction(0)]
    theta = model.reward.theta
    assert not theta[:, 4:].any()
    value = Fraction(0)
    for t in reversed(range(H)):
        a = rows[t]["action"]
        r_hat = Fraction(float(theta[a, 0] + sum(theta[a, 1 + k] * states[t, k] for k in range(3))))
        value = v_hat[t] + rho[t] * (Fraction(rows[t]["reward"]) + value - r_hat - v_hat[t + 1])
    return value


def test_no_fold_is_evaluated_with_a_model_that_saw_it(small, monkeypatch):
    fits, uses = {}, []
    fit, annotate = Factored.fit, kdd98.annotate

    def fitted(fitter, log, domain):
        model = fit(fitter, log, domain)
        fits[id(model.reward)] = model, set(log["episode"])
        return model

    def annotated(log, policy=None, model=None, **options):
        if model is not None:
            uses.append((id(model.reward), set(log["episode"])))
        return annotate(log, policy, model, **options)

    assert small.truth
    monkeypatch.setattr(Factored, "fit", fitted)
    monkeypatch.setattr(kdd98, "annotate", annotated)
    small.run(stream())
    assert len(uses) == 2
    assert sorted(len(seen) for _, seen in fits.values()) == [20, 20, 40]
    assert uses[0][1] | uses[1][1] == set(range(40))
    for model, evaluated in uses:
        assert not fits[model][1] & evaluated


def test_the_same_seed_gives_the_same_run(small):
    run = small.run(stream())
    assert run == small.run(stream())
    assert run["estimates"] != small.run(stream(1))["estimates"]
    assert (run["truth"], run["truth_error"]) == (small.truth.values, small.truth.errors)


def test_the_truth_is_that_of_plain_simulation(small):
    truth = replace(small, rollouts=4000).truth
    for target, value, error in zip(small.targets, truth.values, truth.errors, strict=True):
        log = small.domain.simulate(target, 4000, seed=1)
        plain = op.evaluate(log, estimators=["mc"], threads=1)["mc"]
        assert abs(value - plain.value) < 4 * math.hypot(error, plain.std_error)
        assert 0 < error < plain.std_error / 2


def test_the_truth_of_a_target_that_ignores_the_state_is_exact(small):
    truth = replace(small, alphas=(1.0,), rollouts=3).truth
    log = small.domain.simulate(small.domain.behavior, 20_000, seed=2)
    plain = op.evaluate(log, estimators=["mc"], threads=1)["mc"]
    assert truth.errors[0] < 1e-10
    assert abs(truth.values[0] - plain.value) < 4 * plain.std_error


def test_what_takes_long_travels_and_is_not_done_again(small, monkeypatch):
    run, parcel = small.run(stream()), pickle.dumps(small)

    def again(*arguments):
        raise AssertionError("done again")

    monkeypatch.setattr(Recurrent, "fit", again)
    monkeypatch.setattr(kdd98, "true_value", again)
    assert pickle.loads(parcel).run(stream()) == run


@pytest.mark.slow
def test_other_processes_give_the_same_runs(small, tmp_path):
    here = [small.run(stream(index)) for index in range(3)]
    assert runs.complete(small, 3, seed=SEED, folder=tmp_path, workers=2) == here


def test_every_output_says_whose_gifts_these_are(small):
    made_up = [run_of(0.1, 0.2), run_of(0.2, 0.1)]
    notice = "synthetic donors"
    assert notice in small.notice
    assert notice in small.settings()["donors"]
    assert kdd98.numbers(small, made_up)["donors"].str.contains(notice).all()
    assert all(notice in claim.text for claim in kdd98.claims(small, made_up))


def test_settings_tell_experiments_apart(small):
    settings = small.settings()
    assert settings == replace(small).settings()
    worse = replace(small, trained=Mixture(small.trained, small.domain.behavior, 0.5))
    others = [worse, replace(small, episodes=60), replace(small, alphas=(0.0, 0.75)), replace(small, baseline=3.0)]
    assert all(other.settings() != settings for other in others)


def test_it_is_at_the_size_of_the_paper(small):
    assert (kdd98.RUNS, kdd98.EPISODES, kdd98.ALPHAS) == (5000, 3754, (0, 0.25, 0.5, 0.75))
    gifts = small.domain.trajectories["reward"]
    assert small.baseline == pytest.approx(sum(gifts) / len(gifts))
    assert small.domain.evaluation_fitter.particles == 5


@pytest.fixture
def epochs(monkeypatch):
    """How long each network was fitted."""
    seen, fit = [], Recurrent.fit

    def fitted(fitter, log, domain):
        seen.append(fitter.epochs)
        return fit(fitter, log, domain)

    monkeypatch.setattr(Recurrent, "fit", fitted)
    return seen


def test_quick_spares_the_preparation_and_says_so(small, epochs, monkeypatch, tmp_path, capsys):
    whole = studies.kdd98_study()
    assert (whole.make, whole.make_quick) == (kdd98.experiment, kdd98.quick_experiment)

    def few(**options):
        made = kdd98.quick_experiment(path="", donors=60, **options)
        assert made.rollouts == kdd98.QUICK_ROLLOUTS < kdd98.ROLLOUTS
        return replace(made, episodes=20, rollouts=50)

    install_studies(monkeypatch, {"kdd98": replace(whole, make_quick=few, quick=2)})
    assert main(["reproduce", "kdd98", "--quick", "--workers", "1", "--out", str(tmp_path)]) == 0
    assert epochs == [kdd98.QUICK_EPOCHS]
    said = "π_train of 3 epochs instead of 30, its truth by 5,000 roll-outs instead of 50,000"
    assert f"quick: {said}" in " ".join(capsys.readouterr().out.split())
    assert json.loads((tmp_path / "kdd98" / "result.json").read_text())["settings"]["quick"] == said
    assert "kdd98: 2 runs, quick, synthetic donors" in (tmp_path / "kdd98" / "figure.svg").read_text()
    assert "quick" not in small.settings()


def run_of(ours, theirs, truth=20.0, truth_error=0.0):
    """A made-up run: DR-v2 is `ours` off the truth at both α, all others are `theirs` off."""
    off = dict.fromkeys(kdd98.ESTIMATORS, theirs) | {"dr-v2": ours}
    estimates = {name: [truth + error, truth - error] for name, error in off.items()}
    return {"estimates": estimates, "truth": [truth, truth], "truth_error": [truth_error, truth_error]}


def test_numbers_by_hand(small):
    made_up = [run_of(1.0, 3.0, truth_error=0.5), run_of(2.0, 3.0, truth_error=0.5)]
    table = kdd98.numbers(small, made_up)
    assert table.height == 10
    first, second = table.filter(pl.col("estimator") == "dr-v2").to_dicts()
    # squares 1 and 4, less 0.25 for the error of the truth: 0.75 and 3.75 of 400, with a mean of 2.25
    rmse = math.sqrt(2.25) / 20
    assert first["relative_rmse"] == second["relative_rmse"] == pytest.approx(rmse)
    # Both squares are 1.5 off their mean; the truth that all share moves the RMSE by its error times bias / RMSE, 1.
    assert first["relative_rmse_error"] == pytest.approx(math.hypot(1.5 / 400 / (2 * rmse), 0.5 / 20))
    assert (first["alpha"], second["alpha"]) == (0.0, 0.5)
    assert (first["relative_bias"], second["relative_bias"]) == (pytest.approx(1.5 / 20), pytest.approx(-1.5 / 20))
    assert first["relative_bias_error"] == pytest.approx(math.hypot(0.5 / 20, 0.5 / 20))
    reg = table.filter(pl.col("estimator") == "reg").row(0, named=True)
    assert reg["relative_rmse_error"] == pytest.approx(0.5 / 20 * 3 / math.sqrt(9 - 0.25))
    assert reg["relative_bias_error"] == pytest.approx(0.5 / 20)


def test_claims_are_held_not_held_or_undecided(small):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300))
    worlds = {
        "held": [run_of(x, 3 * y) for x, y in zip(a, b, strict=True)],
        "not held": [run_of(3 * x, y) for x, y in zip(a, b, strict=True)],
        "undecided": [run_of(x, y) for x, y in zip(a, b, strict=True)],
    }
    for verdict, made_up in worlds.items():
        assert [claim.verdict for claim in kdd98.claims(small, made_up)] == [verdict] * 3


def test_one_better_rival_at_one_alpha_refutes_the_best(small):
    rng = np.random.default_rng(1)
    made_up = [run_of(x, 3 * y) for x, y in rng.normal(size=(300, 2))]
    for run, error in zip(made_up, rng.normal(size=300), strict=True):
        run["estimates"]["dr-bsl"][1] = run["truth"][1] + 0.1 * error
    best, wis, reg = kdd98.claims(small, made_up)
    assert best.verdict == "not held"
    assert best.evidence.count("not held") == 1
    assert "α = 0.5, DR-bsl: not held (RMSE DR-v2" in best.evidence
    assert (wis.verdict, reg.verdict) == ("held", "held")
    assert "α = 0.0" in wis.text
    assert "α = 0.5" in reg.text
