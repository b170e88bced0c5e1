"""A log that changes between two readings is refused, by name; a number is never made of two logs."""

import os
import shutil

import numpy as np
import offpolicy as op
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from logs import random_log
from offpolicy.errors import ChangedLogError
from offpolicy.evaluation.passes import Scanner
from offpolicy.logs.reading import Recount

WEIGHTED = {"discount": 0.9, "estimators": ["step-is", "step-wis", "wdr"]}


def log_of(seed, episodes, horizon=6):
    return random_log(seed=seed, episodes=episodes, horizon=horizon)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "log.parquet"
    log_of(1, 200).write_parquet(file)
    return file


@pytest.fixture
def after_first_pass(monkeypatch):
    """Does something once, after the log has been read for the first time."""

    def arrange(change):
        real, changes = Scanner.read, [change]

        def read(self, *arguments):
            whole = real(self, *arguments)
            if changes:
                changes.pop()()
            return whole

        monkeypatch.setattr(Scanner, "read", read)

    return arrange


def fewer(path):
    log_of(1, 20).write_parquet(path)


def other_rewards(path):
    log = pl.read_parquet(path)
    log.with_columns(reward=pl.col("reward").shuffle(3) * 2).write_parquet(path)


def another_file(path):
    """The same bytes under the same name."""
    copy = path.with_suffix(".copy")
    shutil.copy2(path, copy)
    copy.replace(path)


def a_byte(path):
    """In the middle, so that size and footer stay."""
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)


def later_time(path):
    os.utime(path, ns=(0, 10**18))


@pytest.mark.parametrize("change", [fewer, other_rewards, another_file, a_byte, later_time])
def test_a_file_that_changes_between_two_passes_is_refused_by_name(path, after_first_pass, change):
    after_first_pass(lambda: change(path))
    with pytest.raises(ChangedLogError, match=r"log\.parquet: the log changed while it was evaluated") as found:
        op.evaluate(path, **WEIGHTED)
    assert found.value.file == str(path)


def test_of_many_files_the_one_that_changed_is_named(tmp_path, after_first_pass):
    paths = [tmp_path / f"{number}.parquet" for number in range(3)]
    whole = log_of(1, 60)
    for number, file in enumerate(paths):
        whole.filter(pl.col("episode") % 3 == number).write_parquet(file)
    after_first_pass(lambda: later_time(paths[1]))
    with pytest.raises(ChangedLogError) as found:
        op.evaluate(paths, **WEIGHTED)
    assert found.value.file == str(paths[1])


LATER = {
    "values": lambda ev: ev.values("step-is"),
    "bootstrap of a mean": lambda ev: ev["step-is"].interval(method="bootstrap"),
    "likelihood": lambda ev: ev["step-is"].interval(method="likelihood", bounds=op.Bounds(reward=(-50, 50))),
    "betting": lambda ev: ev["step-is"].interval(method="betting", bounds=op.Bounds(reward=(-50, 50))),
}


@pytest.mark.parametrize("asked", LATER.values(), ids=LATER)
@pytest.mark.parametrize("change", [fewer, other_rewards])
def test_what_is_asked_for_later_is_refused_once_the_file_has_changed(path, asked, change):
    ev = op.evaluate(path, horizon=6, **WEIGHTED)
    change(path)
    with pytest.raises(ChangedLogError, match=r"log\.parquet"):
        asked(ev)


def query(path):
    return pl.scan_parquet(path)


def dataset(path):
    return pyarrow.dataset.dataset(path)


def relation(path):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.sql(f"select * from read_parquet('{path}')")


def globbed(path):
    return pl.scan_parquet(path.parent / "*.parquet")


def gains_a_file(path):
    more = log_of(2, 20).with_columns(pl.col("episode") + 10_000)
    more.write_parquet(path.with_name("more.parquet"))


STREAMS = [
    (query, fewer),
    (query, other_rewards),
    (dataset, fewer),
    (dataset, other_rewards),
    (relation, fewer),
    (relation, other_rewards),
]


@pytest.mark.parametrize(("opened", "change"), STREAMS)
def test_a_stream_that_changes_between_two_passes_is_refused(path, after_first_pass, opened, change):
    after_first_pass(lambda: change(path))
    with pytest.raises(ChangedLogError, match="changed while it was evaluated"):
        op.evaluate(opened(path), **WEIGHTED)


@pytest.mark.parametrize("asked", LATER.values(), ids=LATER)
@pytest.mark.parametrize("change", [fewer, other_rewards])
def test_what_is_asked_for_later_of_a_query_is_refused_once_it_has_changed(path, asked, change):
    ev = op.evaluate(pl.scan_parquet(path), horizon=6, **WEIGHTED)
    change(path)
    with pytest.raises(ChangedLogError, match="query: the log changed"):
        asked(ev)


@pytest.mark.parametrize("query", [lambda log: log, lambda log: log.filter(pl.col("reward") < 100)])
def test_a_file_that_is_cut_behind_a_query_that_knows_its_footer_is_refused(path, query):
    """Threads of Polars panic then, and its stream ends as if it were complete."""
    log_of(1, 2000).write_parquet(path, row_group_size=1000)
    log = query(pl.scan_parquet(path))
    log.collect_schema()
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(op.BadFileError, match=r"log\.parquet"):
        op.evaluate(log, estimators=["step-is"])


def test_ids_that_change_after_both_passes_are_refused_where_rows_are_read_again():
    log = log_of(1, 200)
    logs = [log]
    ev = op.evaluate(pl.defer(lambda: logs[-1], schema=log.schema), **WEIGHTED)
    middle = pl.int_range(pl.len()) == log.height // 2
    logs.append(log.with_columns(episode=pl.when(middle).then(10**6).otherwise("episode")))
    with pytest.raises(ChangedLogError, match=r"it had 200 episodes when it was read first, and 20[12] when"):
        ev["step-wis"].interval(method="bootstrap")
    logs.append(log.clear())
    with pytest.raises(ChangedLogError, match=r"it had 200 episodes when it was read first, and 0 when"):
        ev["step-wis"].interval(method="bootstrap")


def test_longer_episodes_in_the_second_pass_are_a_changed_log(path, after_first_pass):
    after_first_pass(lambda: log_of(1, 200, horizon=40).write_parquet(path))
    with pytest.raises(ChangedLogError):
        op.evaluate(pl.scan_parquet(path), **WEIGHTED)


@pytest.mark.parametrize("opened", [lambda path: str(path.parent / "*.parquet"), globbed])
def test_a_glob_is_looked_up_when_the_log_is_opened(path, after_first_pass, opened):
    expected = op.evaluate(path, **WEIGHTED)
    log = opened(path)
    after_first_pass(lambda: gains_a_file(path))
    ev = op.evaluate(log, **WEIGHTED)
    assert ev.table.equals(expected.table)
    assert ev.values("step-is").equals(expected.values("step-is"))


def test_a_frame_that_is_changed_in_place_stays_what_it_was(after_first_pass):
    log = log_of(1, 50)
    expected = op.evaluate(log, **WEIGHTED)

    def change():
        log[0, "reward"] = 1e6
        log.extend(log_of(2, 5).with_columns(pl.col("episode") + 10_000))

    after_first_pass(change)
    found = op.evaluate(log, **WEIGHTED)
    assert log.height > expected.steps
    assert found.table.equals(expected.table)
    assert found.values("step-is").equals(expected.values("step-is"))


def test_memory_that_is_overwritten_under_a_table_is_a_changed_log(after_first_pass):
    log = log_of(1, 50)
    reward = log["reward"].to_numpy().copy()
    table = log.drop("reward").to_arrow().append_column("reward", pa.array(reward))

    def change():
        reward[7] += 1.0

    after_first_pass(change)
    with pytest.raises(ChangedLogError, match="column 'reward' had other values"):
        op.evaluate(table, **WEIGHTED)


def test_a_file_that_changes_while_tasks_read_it_is_refused(path):
    def run(function, tasks):
        results = [function(task) for task in tasks]
        later_time(path)
        return results

    with pytest.raises(ChangedLogError, match=r"log\.parquet"):
        op.evaluate(path, map=run, **WEIGHTED)


def test_a_task_refuses_a_file_with_another_content(path):
    def run(function, tasks):
        tasks = list(tasks)
        fewer(path)
        return [function(task) for task in tasks]

    with pytest.raises(ChangedLogError, match=r"log\.parquet"):
        op.evaluate(path, map=run, **WEIGHTED)


def test_a_copy_of_the_file_on_another_machine_will_do(path):
    """Its time and inode are others: what is in it is the same."""

    def run(function, tasks):
        stat = path.stat()
        kept = path.with_suffix(".kept")
        path.rename(kept)
        shutil.copyfile(kept, path)
        results = [function(task) for task in tasks]
        kept.replace(path)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        return results

    assert op.evaluate(path, map=run, **WEIGHTED).table.equals(op.evaluate(path, **WEIGHTED).table)


@pytest.mark.parametrize("truncation", ["bootstrap", "reduce-horizon"])
@pytest.mark.parametrize("opened", [str, query])
def test_a_log_that_changes_before_it_is_mended_is_refused(path, after_first_pass, truncation, opened):
    log = log_of(1, 200)
    last = pl.col("step") == pl.col("step").max().over("episode")
    log.with_columns(truncated=last & (pl.col("step") >= 2)).filter(
        pl.col("step").max().over("episode") >= 2
    ).write_parquet(path)
    after_first_pass(lambda: pl.read_parquet(path).filter(pl.col("episode") < 50).write_parquet(path))
    with pytest.raises(op.BadFileError):
        op.evaluate(opened(path), discount=0.9, truncation=truncation, estimators=["step-is", "dr"])


@pytest.mark.parametrize("opened", [str, query])
def test_clusters_of_a_log_that_has_changed_are_refused(path, after_first_pass, opened):
    log_of(1, 200).with_columns(user=pl.col("episode") // 3).write_parquet(path)
    shorter = pl.read_parquet(path).filter(pl.col("episode") < 50)
    after_first_pass(lambda: shorter.write_parquet(path))
    with pytest.raises(ChangedLogError):
        op.evaluate(opened(path), cluster="user", **WEIGHTED)


class Meddling:
    """Fits as `tabular` does, and changes the log before."""

    def __init__(self, change):
        self.change = change

    def fit(self, log, domain):
        fitted = op.fitter("tabular").fit(log, domain)
        self.change()
        return fitted


def cross_fitted(log, domain, fitter):
    op.cross_fit(log, policy=domain.behavior, fitter=fitter, domain=domain, estimators=["dr"])


def improved(log, domain, fitter):
    generator = {"same": domain.behavior}
    op.improve(log, generator=generator, fitter=fitter, domain=domain, estimator="dr", caution=1)


@pytest.mark.parametrize("opened", [str, query])
@pytest.mark.parametrize("driver", [cross_fitted, improved])
def test_a_log_that_changes_under_a_driver_is_refused(tmp_path, opened, driver):
    domain = op.domain("mountain-car")
    log = domain.simulate(domain.behavior, 40, seed=1)
    path = tmp_path / "log.parquet"
    log.write_parquet(path)
    fitter = Meddling(lambda: log.filter(pl.col("episode") < 30).write_parquet(path))
    with pytest.raises(ChangedLogError):
        driver(opened(path), domain, fitter)


def test_numbers_are_summed_by_their_bits():
    rewards = np.array([0.5, -0.25])
    recount = Recount()
    recount.add(pl.DataFrame({"reward": rewards}))
    assert recount.columns == {"reward": int(rewards.view(np.uint64).astype(object).sum() % 2**64)}
