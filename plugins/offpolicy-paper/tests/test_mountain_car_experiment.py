"""Fig. 1 of the paper at a small size: one run against plain loops, then the whole reproduction."""

import json
from dataclasses import replace

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from installed import install_studies
from offpolicy.cli import main
from offpolicy.experiments import reproduction
from offpolicy.policies import Mixture
from offpolicy_paper import mountain_car, studies
from offpolicy_paper.errors import TWO_FOLD, Errors
from offpolicy_paper.mountain_car import experiment, true_value
from offpolicy_paper.splits import ALPHAS

SIZES = (5, 50, 95)


def small_experiment(**options):
    return replace(experiment(**options), train=200, total=100, sizes=SIZES)


@pytest.fixture(scope="module")
def run():
    return small_experiment().run(np.random.SeedSequence(1))


def plain(log: pl.DataFrame, first: int, last: int, policy: Mixture, values, baseline: float):
    """IS, WIS, DR and DR-bsl on the episodes from first to last, one step after the other."""
    gamma, horizon = 0.99, 100
    episodes = [part for _, part in log.group_by("episode", maintain_order=True)][first:last]
    sums = {"step-is": 0.0, "dr": 0.0, "dr-bsl": 0.0}
    weights, weighted = np.zeros((horizon, len(episodes))), np.zeros((horizon, len(episodes)))
    for i, episode in enumerate(episodes):
        states = episode.select("x", "v").to_numpy()
        actions, rewards = episode["action"].to_numpy(), episode["reward"].to_numpy()
        steps = np.arange(len(actions))
        rho = policy.probabilities(states, steps)[steps, actions] * 3
        q, v = values.q_hat(states, actions, steps), values.v_hat(states, steps)
        constant = [baseline * (1 - gamma ** (horizon - t)) / (1 - gamma) for t in steps]
        total = dict.fromkeys(sums, 0.0)
        for t in reversed(steps):
            total["step-is"] = rho[t] * (rewards[t] + gamma * total["step-is"])
            total["dr"] = v[t] + rho[t] * (rewards[t] + gamma * total["dr"] - q[t])
            total["dr-bsl"] = constant[t] + rho[t] * (rewards[t] + gamma * total["dr-bsl"] - constant[t])
        for name, value in total.items():
            sums[name] += value / len(episodes)
        product = np.cumprod(rho)
        weights[:, i] = np.append(product, np.full(horizon - len(rho), product[-1]))
        weighted[: len(rho), i] = product * rewards
    mass = weights.mean(axis=1)
    terms = np.divide(weighted.mean(axis=1), mass, out=np.zeros(horizon), where=mass > 0)
    low = -(1 - gamma**horizon) / (1 - gamma)
    found = sums | {"step-wis": float((gamma ** np.arange(horizon) * terms).sum())}
    return {name: min(max(value, low), 0.0) for name, value in found.items()}


def test_a_run_is_what_plain_loops_find(run):
    small = small_experiment()
    seed = np.random.SeedSequence(1)
    trained, evaluated, _ = seed.spawn(3)
    best = small.fitter.fit(small._log(200, trained), small.domain).optimal_policy()
    log = small._log(100, evaluated)
    for k, alpha in enumerate(ALPHAS):
        policy = Mixture(best, small.domain.behavior, alpha)
        for s, size in enumerate(SIZES):
            rest = log.filter(pl.col("episode") >= size)
            values = small.fitter.fit(rest, small.domain).values(policy, 100, 0.99)
            found = plain(log, 0, size, policy, values, -1.0)
            for name, value in found.items():
                assert run["estimates"][name][s][k] == pytest.approx(value, rel=1e-9, abs=1e-12), (name, size, alpha)
            first = rest.filter(pl.col("step") == 0).select("x", "v").to_numpy()
            assert run["estimates"]["reg"][s][k] == pytest.approx(values.v_hat(first, 0).mean(), rel=1e-9)
        halves = []
        for (first, last), other in (((0, 50), (50, 100)), ((50, 100), (0, 50))):
            apart = log.filter(pl.col("episode").is_between(*other, closed="left"))
            values = small.fitter.fit(apart, small.domain).values(policy, 100, 0.99)
            halves.append(plain(log, first, last, policy, values, -1.0)["dr"])
        assert run["two_fold_dr"][k] == pytest.approx(np.mean(halves), rel=1e-9)
        on_all = plain(log, 0, 100, policy, values, -1.0)
        assert all(run["on_all"][name][k] == pytest.approx(on_all[name], rel=1e-9) for name in run["on_all"])


@pytest.mark.parametrize("options", [{}, {"start": "valley"}, {"substeps": 1, "stop": "after-step"}], ids=str)
def test_the_truth_by_spread_starts_is_that_of_plain_simulation(options):
    car = op.domain("mountain-car", **options)
    value, error = true_value(car, car.behavior, np.random.SeedSequence(2))
    plain = op.evaluate(car.simulate(car.behavior, 5000, seed=3), discount=0.99, estimators=["mc"])["mc"]
    assert abs(value - plain.value) < 4 * np.hypot(error, plain.std_error)
    assert error < 1.1 * plain.std_error


def made_up_runs(dr: float, wis: float, count: int = 400) -> list[dict]:
    """Runs whose truth is -10, with errors of a given size; REG gets worse as |D_test| grows, DR at both ends."""
    rng = np.random.default_rng(8)

    def noisy(scale: float) -> list[float]:
        return (-10 + scale * rng.normal(size=4)).tolist()

    scales = {"step-is": 3.0, "step-wis": wis, "dr": dr, "dr-bsl": 2.0}
    return [
        {
            "estimates": {name: [noisy(scale * (3 - s)) for s in range(3)] for name, scale in scales.items()}
            | {"reg": [noisy(s + 1.0) for s in range(3)], "dr": [noisy(scale * dr) for scale in (3, 1, 2)]},
            "on_all": {name: noisy(scales[name]) for name in ("step-is", "step-wis", "dr-bsl")},
            "two_fold_dr": noisy(dr / 2),
            "truth": [-10.0] * 4,
            "truth_error": [0.0] * 4,
        }
        for _ in range(count)
    ]


def test_the_numbers_are_the_errors_of_the_runs():
    runs = made_up_runs(dr=0.5, wis=1.0)
    numbers = Errors(small_experiment(), runs).numbers()
    row = numbers.row(by_predicate=(pl.col("estimator") == TWO_FOLD) & (pl.col("alpha") == 0.5), named=True)
    errors = [(run["two_fold_dr"][2] + 10) / -10 for run in runs]
    assert row["size"] == 100
    assert row["relative_rmse"] == pytest.approx((sum(e * e for e in errors) / len(errors)) ** 0.5)
    assert row["relative_bias"] == pytest.approx(sum(errors) / len(errors))
    assert row["relative_rmse_error"] == pytest.approx(0.025 / (2 * len(runs)) ** 0.5, rel=0.1)  # normal errors
    assert numbers.height == 4 * (5 * 3 + 3 + 1)


def test_claims_follow_the_runs():
    verdicts = [claim.verdict for claim in mountain_car.claims(Errors(small_experiment(), made_up_runs(0.5, 1.0)))]
    assert verdicts == ["held", "held", "held", "held", "held", "not held"]
    verdicts = [claim.verdict for claim in mountain_car.claims(Errors(small_experiment(), made_up_runs(2.0, 1.0)))]
    assert verdicts[3] == "not held"


@pytest.fixture
def small_paper(monkeypatch):
    small = replace(studies.mountain_car_study(), make=small_experiment, quick=3)
    install_studies(monkeypatch, {"mountain-car": small})


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "time.json"}


def test_an_interrupted_reproduction_ends_with_the_same_files(small_paper, tmp_path):
    whole = reproduction.reproduce("mountain-car", runs=4, out=tmp_path / "whole", workers=2)
    assert whole.numbers.height
    assert len(whole.claims) == 6

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduction.reproduce("mountain-car", runs=4, out=tmp_path / "cut", workers=1, progress=stop)
    assert not (tmp_path / "cut" / "result.json").exists()
    reproduction.reproduce("mountain-car", runs=4, out=tmp_path / "cut", workers=1, resume=True)
    assert files_of(tmp_path / "cut") == files_of(tmp_path / "whole")
    assert set(files_of(tmp_path / "cut")) == {"runs.jsonl", "result.json", "figure.svg", "figure.png"}
    times = json.loads((tmp_path / "cut" / "time.json").read_text())
    assert [call["runs"] for call in times] == [2, 2]


def test_the_command_shows_claims_and_prints_json(small_paper, tmp_path, capsys):
    assert main(["reproduce", "mountain-car", "--quick", "--workers", "1", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "mountain-car: 3 runs, seed 0" in shown
    assert "DR at its best split beats IS and WIS on all the data" in shown
    assert main(["reproduce", "all", "--runs", "3", "--resume", "--json", "--out", str(tmp_path)]) == 0
    (document,) = json.loads(capsys.readouterr().out)["experiments"]
    assert document["runs"] == 3
    assert document["paper"] == "Jiang & Li (2016), Fig. 1"
    assert {claim["verdict"] for claim in document["claims"]} <= {"held", "not held", "undecided"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mountain-carr"], "did you mean 'mountain-car'?"),
        (["mountain-car", "--runs", "2", "--quick"], "give --runs or --quick, not both"),
        (["all", "--set", "substeps=1"], "--set belongs to one experiment"),
        (["mountain-car", "--set", "substep=1"], "no parameter 'substep'"),
    ],
)
def test_wrong_usage_is_refused(arguments, message, tmp_path, capsys):
    assert main(["reproduce", *arguments, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"workers": 0}, {"runs": 0}, {"runs": 1.5}])
def test_numbers_that_are_none_are_refused(wrong, tmp_path):
    (name,) = wrong
    with pytest.raises(op.UsageError, match=name):
        reproduction.reproduce("mountain-car", out=tmp_path, **wrong)
    assert not list(tmp_path.iterdir())


def test_runs_that_are_there_are_not_lost(small_paper, tmp_path, capsys):
    arguments = ["reproduce", "mountain-car", "--runs", "2", "--workers", "1", "--out", str(tmp_path)]
    assert main(arguments) == 0
    before = files_of(tmp_path / "mountain-car")
    assert main(arguments) == 2
    assert "go on with --resume" in capsys.readouterr().err
    assert files_of(tmp_path / "mountain-car") == before
