"""Parquet larger than memory: what grows with a log, by how much, and what is refused before it is taken."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from offpolicy._core import Job, Pass
from offpolicy.evaluation import memory
from offpolicy.logs.sources import ParquetSource
from offpolicy.logs.tasks import run_task
from offpolicy.testing import Walk
from places import ROOT

BENCHES = ROOT / "benches"
#: 1.4 million rows, from where on memory stays as it is, and 5.5 million.
COPIES = (8, 32)
CHILD = """
import sys
import offpolicy as op
from offpolicy.testing import Walk
from peak_memory import peak_megabytes

walk, (driver, log, memory) = Walk(), sys.argv[1:]
if driver == "cross_fit":
    op.cross_fit(log, walk, policy=walk.policies["eager"], estimators=["dr"], threads=1)
elif driver == "improve":
    op.improve(log, walk, generator=walk.policies, threads=1)
else:
    op.evaluate(log, threads=1, memory=memory)
print(peak_megabytes())
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """The same episodes again and again under new ids, and the decoded megabytes by which the two logs differ."""
    walk, episodes = Walk(), 20_000
    piece = walk.simulate(walk.behavior, episodes, seed=1)
    paths = [tmp_path_factory.mktemp("memory") / f"{copies}.parquet" for copies in COPIES]
    for path, copies in zip(paths, COPIES, strict=True):
        again = [piece.lazy().with_columns(pl.col("episode") + episodes * i) for i in range(copies)]
        pl.concat(again).sink_parquet(path, row_group_size=10_000)
    return paths, (COPIES[1] - COPIES[0]) * piece.estimated_size() / 1e6


def peak(driver: str, log: Path, memory: str = "8GB") -> float:
    """Megabytes of a process of its own; Polars takes more of them for each thread, so it gets one."""
    path = os.pathsep.join([str(BENCHES), *sys.path])
    environment = os.environ | {"POLARS_MAX_THREADS": "1", "PYTHONPATH": path}
    command = [sys.executable, "-c", CHILD, driver, str(log), memory]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("driver", [op.cross_fit, op.improve])
def test_more_rows_take_no_more_memory(logs, driver):
    (few, many), added = logs
    grown = peak(driver.__name__, many) - peak(driver.__name__, few)
    assert grown < added / 4


def ids(kind: str, episodes: int) -> pl.Series:
    """Ids of so many episodes that do not follow each other, or by two only."""
    some = pl.Series(np.random.default_rng(0).permutation(episodes))
    if kind == "pairs":
        return pl.Series(np.repeat(some[: episodes // 2] * 3, 2) + np.tile([0, 1], episodes // 2))
    return some if kind == "permuted" else some.cast(pl.String).str.zfill(36)


def write(path: Path, episode: pl.Series, steps: int = 1) -> Path:
    """A log with so many steps in each episode."""
    rows = len(episode) * steps
    log = pl.select(
        episode=episode.repeat_by(steps).explode() if steps > 1 else episode,
        step=pl.int_range(rows) % steps,
        reward=pl.lit(1.0),
        behavior_prob=pl.lit(0.5),
        target_prob=pl.lit(0.5),
        q_hat=pl.lit(1.0),
        v_hat=pl.lit(1.0),
    )
    log.write_parquet(path, row_group_size=50_000)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["permuted", "texts"])
def test_an_episode_takes_less_than_40_bytes_whatever_its_id(tmp_path, kind):
    few, many = (write(tmp_path / f"{n}.parquet", ids(kind, n)) for n in (300_000, 1_800_000))
    assert (peak("evaluate", many) - peak("evaluate", few)) * 1e6 / 1_500_000 < 40


@pytest.mark.parametrize("kind", ["permuted", "texts"])
def test_an_episode_takes_less_than_40_bytes_of_a_state(tmp_path, kind):
    sizes = []
    for n in (1000, 11_000):
        source = ParquetSource([str(write(tmp_path / f"{n}.parquet", ids(kind, n)))])
        plan = op.evaluate(pl.read_parquet(source.paths[0])).samples.plan
        (tasks,) = source.rounds(plan.names())
        sizes.append(sum(len(run_task(Job(plan.spec(), Pass.FIRST), task)) for task in tasks))
    assert (sizes[1] - sizes[0]) / 10_000 < 40


@pytest.mark.slow
def test_a_step_of_the_longest_episode_takes_a_few_hundred_bytes(tmp_path):
    few, many = (write(tmp_path / f"{n}.parquet", pl.Series([0]), n) for n in (50_000, 250_000))
    assert (peak("evaluate", many) - peak("evaluate", few)) * 1e6 / 200_000 < 600


def test_a_log_that_needs_more_than_its_limit_is_refused_with_the_number(tmp_path):
    log = write(tmp_path / "log.parquet", pl.Series([0]), 100_000)
    with pytest.raises(op.MemoryLimitError, match=r"40.\d MB of memory are needed, and memory= allows 5 MB") as refusal:
        op.evaluate(log, memory="5MB", threads=1)
    error = refusal.value
    assert (error.steps, error.episodes, error.limit) == (100_000, 1, 5_000_000)
    assert op.evaluate(log, memory=error.needed, threads=1, estimators=["step-is"]).steps == 100_000


def test_what_is_needed_is_enough_and_fewer_estimators_need_less():
    log = op.demo_log(episodes=50)
    with pytest.raises(op.MemoryLimitError) as refusal:
        op.evaluate(log, memory=1)
    found = op.evaluate(log, memory=refusal.value.needed, threads=1)
    assert found.table.equals(op.evaluate(log).table)
    with pytest.raises(op.MemoryLimitError) as smaller:
        op.evaluate(log, memory=1, estimators=["is"], diagnostics=False)
    assert smaller.value.needed < refusal.value.needed


@pytest.mark.parametrize("kind", ["permuted", "texts", "pairs"])
@pytest.mark.parametrize("threads", [1, 4])
def test_ids_that_memory_does_not_hold_go_to_files_and_change_no_number(tmp_path, monkeypatch, kind, threads):
    log = write(tmp_path / "log.parquet", ids(kind, 50_000))
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    found = op.evaluate(log, memory="700kB", threads=threads)
    assert found.table.equals(op.evaluate(log, threads=threads).table)
    assert list(place.iterdir()) == []
    monkeypatch.setenv("TMPDIR", str(place / "absent"))
    with pytest.raises(op.MemoryLimitError, match=r"(1\.4 M|\d{3} k)B .* has 50,000 episodes, .* number the episodes"):
        op.evaluate(log, memory="700kB", threads=threads)
    assert op.evaluate(log, memory="1.5MB", threads=threads).episodes == 50_000


def test_consecutive_ids_cost_nothing(tmp_path):
    in_order = write(tmp_path / "in_order.parquet", pl.Series(range(50_000)))
    assert op.evaluate(in_order, memory="50kB", threads=1).episodes == 50_000


@pytest.mark.parametrize("kind", ["permuted", "texts", "pairs"])
def test_an_id_that_comes_again_is_told_in_the_same_words_from_files(tmp_path, kind):
    some = ids(kind, 50_000)
    paths = [write(tmp_path / "a.parquet", some), write(tmp_path / "b.parquet", some[[49_000, 17, 30_001, 18]])]
    said = []
    for memory_limit in ("700kB", "1GB"):
        with pytest.raises(op.BadLogError) as refusal:
            op.evaluate(paths, memory=memory_limit, threads=1)
        said.append((str(refusal.value), refusal.value.problems))
    assert said[0] == said[1]
    assert {problem.kind for problem in said[0][1]} == {"reappears"}


@pytest.mark.slow
def test_many_ids_take_no_more_memory_than_their_limit(tmp_path):
    few, many = (write(tmp_path / f"{n}.parquet", ids("texts", n)) for n in (300_000, 2_500_000))
    assert peak("evaluate", many, memory="20MB") - peak("evaluate", few, memory="20MB") < 20
    assert peak("evaluate", many) - peak("evaluate", few) > 50


def test_the_advice_is_about_what_takes_the_memory():
    with pytest.raises(op.MemoryLimitError, match=r"10 steps of the longest episode.*cut episodes short"):
        op.evaluate(op.demo_log(episodes=50), memory="1kB")  # its ids follow each other, and take nothing


def test_rows_that_wait_for_the_beginning_of_their_episode_are_counted(tmp_path):
    log = pl.read_parquet(write(tmp_path / "log.parquet", pl.Series([0]), 40_000))
    parts = [tmp_path / f"{part}.parquet" for part in "ba"]
    for part, rows in zip(parts, (log[20_000:], log[:20_000]), strict=True):
        rows.write_parquet(part)
    with pytest.raises(op.MemoryLimitError) as refusal:
        op.evaluate(parts, memory="500kB", threads=1, estimators=["is"], diagnostics=False)
    assert refusal.value.steps == 40_000
    assert op.evaluate(parts, memory="5MB", threads=1, estimators=["is"], diagnostics=False).steps == 40_000


def test_through_map_the_limit_is_that_of_each_task(tmp_path):
    log = write(tmp_path / "log.parquet", pl.Series([0]), 20_000)
    with pytest.raises(op.MemoryLimitError):
        op.evaluate(log, memory="1MB", map=map)


@pytest.mark.slow
def test_under_a_limit_of_the_system_a_log_is_refused_instead_of_an_abort(tmp_path):
    log = write(tmp_path / "log.parquet", pl.Series([0]), 3_000_000)
    child = (
        "import resource, sys, offpolicy as op\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))\n"
        "op.evaluate(sys.argv[1], threads=1)"
    )
    environment = os.environ | {"POLARS_MAX_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", child, log], env=environment, capture_output=True, text=True)
    assert found.returncode == 1
    assert re.search(r"offpolicy\.errors\.MemoryLimitError: about 1\.2\d? GB of memory are needed", found.stderr)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "", "2 XB", "1e3", "-1MB", b"2GB"])
def test_what_is_no_size_of_memory_is_refused(wrong):
    with pytest.raises(op.UsageError, match="memory= takes"):
        op.evaluate(op.demo_log(episodes=3), memory=wrong)


def test_the_default_is_half_of_what_is_available():
    assert 0.8 < memory.limit(None) / (memory.available() / 2) < 1.25


def test_the_command_line_has_the_limit_too(tmp_path):
    log = write(tmp_path / "log.parquet", pl.Series(range(10)))
    assert offpolicy("evaluate", log, "--memory", "1GB", "--json").code == 0
    refused = offpolicy("evaluate", log, "--memory", "1kB")
    assert refused.code == 1
    assert "--memory allows 1 kB" in " ".join(refused.err.split())


def test_bytes_may_be_a_number_of_any_library_and_no_truth_value():
    assert memory.limit(np.int64(1000)) == 1000
    for nonsense in (True, np.bool_(True), 1000.0):
        with pytest.raises(op.UsageError, match="memory= takes a number of bytes"):
            memory.limit(nonsense)
