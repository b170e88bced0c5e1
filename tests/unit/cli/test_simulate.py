"""`offpolicy simulate`: a log that is there whole or not at all, and what is said of it."""

import json
import signal
import subprocess
import sys
from types import ModuleType

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from offpolicy.extensions import plugins
from offpolicy.hookspecs import hookimpl
from offpolicy.policies import Mixture, Uniform
from offpolicy.protocols import Domain
from offpolicy.simulation import rollouts

CAR = ("simulate", "mountain-car", "--set", "horizon=12")


class Coin(Domain):
    """A step or two, then it ends; heads pays 1."""

    name = "coin"
    state_columns = ("side",)
    actions = 2
    horizon = 3
    discount = 0.5
    reward_range = (0.0, 1.0)
    behavior = Uniform(2)
    policies = {"fair": Uniform(2), "made": lambda: Uniform(2)}  # noqa: RUF012
    notice = "a coin of ours"

    def reset(self, n, rng):
        return np.zeros((n, 1), dtype=np.int64)

    def step(self, states, actions, rng):
        return states + 1, actions.astype(float), rng.random(len(states)) < 0.5


@pytest.fixture
def coin(monkeypatch):
    module = ModuleType("coin_plugin")
    module.offpolicy_domains = hookimpl(lambda: {"coin": Coin}, specname="offpolicy_domains")
    found = plugins.Registry()
    found.plugins.append(plugins.Plugin("coin", "offpolicy-coin", "1", module=module))
    monkeypatch.setattr(plugins, "_registry", found)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "log.parquet"


def test_the_file_holds_what_the_python_api_simulates(out):
    run = offpolicy(*CAR, "--episodes", 50, "--seed", 3, "--out", out)
    assert (run.code, run.err) == (0, "")
    car = op.domain("mountain-car", horizon=12)
    assert pl.read_parquet(out).equals(car.simulate(car.behavior, 50, seed=3))


@pytest.mark.parametrize("policy", ["along-velocity", "mix:along-velocity:0.3"])
def test_policies_are_those_of_the_domain_and_their_mixtures(policy, out):
    assert offpolicy(*CAR, "--policy", policy, "--episodes", 40, "--out", out).code == 0
    car = op.domain("mountain-car", horizon=12)
    along = car.policies["along-velocity"]
    actor = along if policy == "along-velocity" else Mixture(along, car.behavior, 0.3)
    assert pl.read_parquet(out).equals(car.simulate(actor, 40, seed=0))


def test_a_log_of_several_blocks_is_the_same_in_one_file(out, monkeypatch):
    monkeypatch.setattr(rollouts, "BLOCK", 7)
    assert offpolicy(*CAR, "--episodes", 50, "--out", out).code == 0
    car = op.domain("mountain-car", horizon=12)
    log = pl.read_parquet(out)
    assert log.equals(car.simulate(car.behavior, 50, seed=0))
    assert log["episode"].unique().to_list() == list(range(50))


def test_blocks_are_small_where_episodes_are_long(monkeypatch):
    monkeypatch.setattr(rollouts, "BLOCK_ROWS", 100)
    car = op.domain("mountain-car", horizon=40)
    parts = list(rollouts.blocks(car, car.behavior, 7, seed=0))
    assert [part["episode"].n_unique() for part in parts] == [2, 2, 2, 1]


def test_people_read_size_mean_return_and_file(out):
    run = offpolicy(*CAR, "--episodes", 200, "--seed", 5, "--out", out)
    log = pl.read_parquet(out)
    mc = op.evaluate(log, discount=0.99, horizon=12)["mc"]
    first, second, third = run.out.splitlines()
    size = f"200 episodes, {log.height:,} steps ({log.height / 200:.1f} an episode), seed 5"
    assert first == f"mountain-car under behavior: {size}"
    assert second == (f"mean return {mc.value:.2f}, standard error {mc.std_error:.2f}, discount 0.99, horizon 12")
    assert third == f"written to {out}"


def test_json_and_the_file_say_how_it_was_made(out):
    run = offpolicy(*CAR, "--episodes", 20, "--seed", 5, "--set", "start=valley", "--out", out, "--json")
    assert (run.code, run.err) == (0, "")
    made = run.document
    log = pl.read_parquet(out)
    about = {
        "domain": "mountain-car",
        "parameters": {"horizon": 12, "start": "valley"},
        "policy": "behavior",
        "seed": 5,
        "version": op.__version__,
        "notice": None,
    }
    assert json.loads(pl.read_parquet_metadata(out)["offpolicy"]) == about
    mc = op.evaluate(log, discount=0.99, horizon=12)["mc"]
    assert made == about | {
        "episodes": 20,
        "steps": log.height,
        "horizon": 12,
        "discount": 0.99,
        "mean_return": mc.value,
        "std_error": mc.std_error,
        "out": str(out),
        "bytes": out.stat().st_size,
        "plot": None,
    }


def test_a_domain_says_where_its_data_come_from(coin, out):
    run = offpolicy("simulate", "coin", "--policy", "made", "--episodes", 9, "--out", out)
    assert run.code == 0
    assert "notice: a coin of ours" in run.out
    assert json.loads(pl.read_parquet_metadata(out)["offpolicy"])["notice"] == "a coin of ours"
    assert offpolicy("simulate", "coin", "--out", out, "--force", "--json").document["notice"] == "a coin of ours"


@pytest.mark.parametrize("suffix", ["svg", "png", "html", "json"])
def test_plot_draws_the_episode_asked_for(suffix, out, tmp_path):
    picture = tmp_path / f"car.{suffix}"
    run = offpolicy(*CAR, "--episodes", 5, "--out", out, "--plot", picture, "--plot-episode", 4)
    assert run.code == 0
    assert run.out.splitlines()[-1] == f"written to {picture}"
    content = picture.read_bytes()
    begins = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE html>", "json": b"{"}[suffix]
    assert content.lstrip().startswith(begins)
    if suffix != "png":
        assert b"episode 4" in content
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([picture.name, out.name])


def test_a_page_loads_nothing(out, tmp_path):
    picture = tmp_path / "car.html"
    offpolicy(*CAR, "--episodes", 1, "--out", out, "--plot", picture)
    page = picture.read_text()
    assert "<script src=" not in page
    assert "<link" not in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["montain-car"], "no domain 'montain-car'; did you mean 'mountain-car'?"),
        (["mountain-car", "--policy", "behaviour"], "no policy 'behaviour'; did you mean 'behavior'?"),
        (["mountain-car", "--policy", "best"], "there are behavior, along-velocity"),
        (["mountain-car", "--policy", "mix:along-velocity:half"], "a mixture is mix:BASE:ALPHA"),
        (["mountain-car", "--policy", "mix:along-velocity:1.5"], "alpha must be between 0 and 1, not 1.5"),
        (["mountain-car", "--set", "substep=1"], "no parameter 'substep'; did you mean 'substeps'?"),
        (["mountain-car", "--set", "substeps=many"], "substeps must be a whole number of at least 1, not 'many'"),
        (["mountain-car", "--set", "horizon"], "expected NAME=VALUE, not 'horizon'"),
        (["mountain-car", "--set", "horizon=1", "--set", "horizon=2"], "horizon is set twice"),
        (["mountain-car", "--episodes", "0"], "0 is not in the range x>=1"),
        (["mountain-car", "--plot", "car.bmp"], "a picture is a file .svg, .png, .html or .json, not 'car.bmp'"),
        (["mountain-car", "--plot", "no/car.svg"], "--plot: there is no folder 'no'"),
        (["mountain-car", "--episodes", "5", "--plot", "car.svg", "--plot-episode", "5"], "episodes 0 to 4, and no 5"),
        (["coin", "--plot", "coin.svg"], "--plot: domain 'coin' has no picture of itself"),
    ],
)
def test_wrong_usage_ends_with_2_before_anything_is_done(coin, arguments, message, out):
    run = offpolicy("simulate", *arguments, "--out", out)
    assert run.code == 2
    assert message in run.err
    assert not list(out.parent.iterdir())


def test_a_file_is_overwritten_only_with_force(out):
    out.write_text("mine")
    run = offpolicy(*CAR, "--episodes", 3, "--out", out)
    assert (run.code, out.read_text()) == (2, "mine")
    assert "is there already; --force overwrites it" in run.err
    assert offpolicy(*CAR, "--episodes", 3, "--out", out, "--force").code == 0
    assert pl.read_parquet(out)["episode"].n_unique() == 3


def test_a_domain_that_fails_halfway_leaves_nothing(coin, out, monkeypatch):
    monkeypatch.setattr(rollouts, "BLOCK", 4)
    calls = iter(range(100))

    def step(self, states, actions, rng):
        if next(calls) == 9:
            raise op.PluginError("the coin is lost")
        return states + 1, actions.astype(float), np.zeros(len(states), dtype=bool)

    monkeypatch.setattr(Coin, "step", step)
    out.write_text("mine")
    run = offpolicy("simulate", "coin", "--episodes", 20, "--out", out, "--force")
    assert run.code == 1
    assert "the coin is lost" in run.err
    assert [(path.name, path.read_text()) for path in out.parent.iterdir()] == [(out.name, "mine")]


def test_a_picture_that_fails_leaves_no_log(coin, out, monkeypatch):
    def plot(self, log, episode):
        raise op.PluginError("no pencil")

    monkeypatch.setattr(Coin, "plot", plot, raising=False)
    run = offpolicy("simulate", "coin", "--out", out, "--plot", out.with_suffix(".svg"))
    assert run.code == 1
    assert "no pencil" in run.err
    assert not list(out.parent.iterdir())


INTERRUPTED = """
import sys
from offpolicy.simulation import rollouts
from offpolicy.cli import main

rollouts.BLOCK = 64
blocks = rollouts.blocks

def speaking(*arguments):
    for i, block in enumerate(blocks(*arguments)):
        yield block
        if i == 2:
            print("running", file=sys.stderr, flush=True)

rollouts.blocks = speaking
sys.exit(main(sys.argv[1:]))
"""


def test_ctrl_c_leaves_nothing(out):
    arguments = [*CAR, "--episodes", "1000000000", "--out", str(out)]
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr.readline() == "running\n"
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert (output, errors.strip()) == ("", "interrupted: nothing was written")
    assert not list(out.parent.iterdir())
