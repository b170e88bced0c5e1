"""What reads files through Polars refuses damaged ones by their name, with errors of ours, and never waits for ever."""

import multiprocessing
import os
import random
import signal
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import offpolicy as op
import polars as pl
import pytest
from corruption import CORRECT, REFUSED, WALK, driven, outcome
from logs import random_log
from offpolicy._util import polars_calls


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "log.parquet"
    random_log(91, episodes=30, horizon=8).write_parquet(path, row_group_size=40)
    return path.read_bytes()


def broken(parquet, folder, count):
    """Files with a few bits that are not as they were, half of them in the footer."""
    rng, paths = random.Random(7), []
    footer = len(parquet) - 8 - int.from_bytes(parquet[-8:-4], "little")
    for number in range(count):
        content = bytearray(parquet)
        for _ in range(3):
            content[rng.randrange(footer * (number % 2), len(content))] ^= 1 << rng.randrange(8)
        paths.append(folder / f"broken-{number}.parquet")
        paths[-1].write_bytes(content)
    return paths


@pytest.mark.parametrize("how", ["any", "query"])
def test_damaged_files_are_refused_by_name_whatever_reads_them(pool, parquet, tmp_path, how):
    paths = broken(parquet, tmp_path, 120)
    outcomes = list(pool.map(outcome, paths, [how] * len(paths)))
    strange = {path.name: each for path, each in zip(paths, outcomes, strict=True) if each not in (REFUSED, CORRECT)}
    assert strange == {}
    assert REFUSED in outcomes


def test_what_the_direct_reader_refuses_is_refused_in_any_order(pool, parquet, tmp_path):
    paths = broken(parquet, tmp_path, 80)
    direct, sorted_first = (list(pool.map(outcome, paths, [how] * len(paths))) for how in ("direct", "any"))
    assert [
        each for each, other in zip(sorted_first, direct, strict=True) if other == REFUSED and each != REFUSED
    ] == []


def test_an_error_of_polars_and_a_panic_of_it_name_the_file():
    errors = (pl.exceptions.ComputeError("broken\nin two lines"), pl.exceptions.PanicException("broken"))
    for error in (*errors, OSError("broken")):
        said = r"^a\.parquet: Polars cannot read it: broken$"
        with pytest.raises(op.BadFileError, match=said), polars_calls.reading("a.parquet"):
            raise error
    full = OSError(28, "no space left")
    with pytest.raises(OSError, match="no space left"), polars_calls.reading("a.parquet"):
        raise full


@pytest.mark.parametrize("call", [op.evaluate, op.check])
def test_an_absent_file_of_a_query_is_named(call, tmp_path):
    with pytest.raises(op.BadFileError, match=r"absent\.parquet"):
        call(pl.scan_parquet(tmp_path / "absent.parquet"))


def in_a_fork(work):
    """What a forked process says: the text of its error, or `done`; it is given a minute."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's and Polars' own, which say the same
        child = os.fork()
    if not child:
        try:
            work()
            said = "done"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    end = time.monotonic() + 60
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "waits for ever"
        time.sleep(0.05)
    with os.fdopen(reader) as found:
        return found.read()


@pytest.mark.parametrize("how", ["any", "query", "frame", "values"])
def test_a_forked_process_refuses_what_would_never_end(log, log_file, how):
    frame = log.sort("episode", "step")  # Polars has its threads now
    work = {
        "any": lambda: op.evaluate(log_file, order="any"),
        "query": lambda: op.evaluate(pl.scan_parquet(log_file)),
        "frame": lambda: op.evaluate(frame),
        "values": lambda: op.evaluate(log_file, estimators=["step-is"]).values("step-is"),
    }
    assert 'get_context("spawn") or "forkserver"' in in_a_fork(work[how])


def test_a_forked_process_evaluates_files_in_order(log, log_file):
    log.sort("episode", "step")
    assert in_a_fork(lambda: op.evaluate(log_file, estimators=["step-is"])["step-is"].value) == "done"


@pytest.mark.parametrize("name", ["*", "^reward$", "^.*$"])
@pytest.mark.parametrize("how", ["direct", "any", "query", "frame", "bootstrap"])
def test_a_column_whose_name_looks_like_a_pattern_is_that_column(log, tmp_path, name, how):
    path = tmp_path / "log.parquet"
    renamed = log.with_columns(other=pl.col("reward"), reward=pl.col("reward") + 7).rename({"other": name})
    renamed.write_parquet(path)
    given = {"query": pl.scan_parquet(path), "frame": renamed}.get(how, path)
    choice = {"any": {"order": "any"}, "bootstrap": {"interval": "bootstrap"}}.get(how, {})
    ids = ["mc", "step-is", "step-wis"]
    found = op.evaluate(given, columns=op.Columns(reward=name), estimators=ids, **choice).table
    assert found.equals(op.evaluate(log, estimators=ids, **choice).table)


@pytest.mark.parametrize("role", ["episode", "step"])
@pytest.mark.parametrize("how", [{"order": "any"}, {"dedupe": "identical"}, {"truncation": "as-terminal"}])
def test_keys_may_look_like_patterns(log, role, how):
    expected = op.evaluate(log, **how).table
    assert op.evaluate(log.rename({role: "^.*$"}), columns=op.Columns(**{role: "^.*$"}), **how).table.equals(expected)


def test_drivers_refuse_damaged_files_by_name(pool, tmp_path):
    path = tmp_path / "whole.parquet"
    WALK.simulate(WALK.behavior, 60, seed=1).write_parquet(path, row_group_size=100)
    paths = broken(path.read_bytes(), tmp_path, 60)
    for how in ("cross_fit", "improve", "behavior"):
        outcomes = list(pool.map(driven, paths, [how] * len(paths)))
        assert set(outcomes) <= {REFUSED, CORRECT}
        assert REFUSED in outcomes
