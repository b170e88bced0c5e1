"""Files that overlap, miss a piece, are absent, cut or corrupt: a typed error that names the file."""

import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor

import offpolicy as op
import polars as pl
import pyarrow.parquet
import pytest
from corruption import CORRECT, REFUSED, outcome
from logs import file_pieces, random_log, speaking_log


@pytest.fixture
def log():
    return speaking_log()


def problems_of(log):
    with pytest.raises(op.BadLogError) as caught:
        op.evaluate(log)
    return caught.value.problems, str(caught.value)


def test_the_episodes_of_two_files_must_not_overlap(log, tmp_path):
    first, second = file_pieces(log, tmp_path, [6])
    overlap = pl.concat([log[5:6], pl.read_parquet(second)])
    overlap.write_parquet(second)
    for paths in ([first, second], [second, first]):
        problems, message = problems_of(paths)
        assert {p.episode for p in problems} == {202}
        assert {p.kind for p in problems} <= {"duplicate", "reappears"}
        assert "part-00" in message


def test_the_same_whole_episode_in_two_files_is_refused(log, tmp_path):
    first, second = file_pieces(log, tmp_path, [7])
    pl.concat([log[:4], pl.read_parquet(second)]).write_parquet(second)
    problems, _ = problems_of([first, second])
    assert {p.episode for p in problems} == {101}
    assert {p.kind for p in problems} <= {"duplicate", "reappears"}


def test_a_file_given_twice_is_refused(log, tmp_path):
    (path,) = file_pieces(log, tmp_path, [])
    with pytest.raises(op.OffPolicyError):
        op.evaluate([path, path])


def test_a_piece_missing_between_files_is_a_gap(log, tmp_path):
    first, _, third = file_pieces(log, tmp_path, [1, 2])
    for paths in ([first, third], [third, first]):
        problems, _ = problems_of(paths)
        assert {p.episode for p in problems} == {101}
        assert {p.kind for p in problems} == {"gap"}


def test_a_missing_first_file_leaves_an_episode_without_its_beginning(log, tmp_path):
    paths = file_pieces(log, tmp_path, [2, 8])
    problems, _ = problems_of(paths[1:])
    assert {p.kind for p in problems} == {"first-step"}
    assert {p.episode for p in problems} == {101}


@pytest.mark.parametrize("path", ["absent.parquet", "absent/*.parquet", "absent"])
def test_an_absent_file_is_named(tmp_path, path):
    for source in (tmp_path / path, str(tmp_path / path), [tmp_path / path]):
        with pytest.raises(op.BadFileError, match="absent") as caught:
            op.evaluate(source)
        assert "absent" in str(caught.value.file)


def test_an_absent_file_among_others_is_named(log, log_file, tmp_path):
    with pytest.raises(op.BadFileError, match=r"absent\.parquet"):
        op.evaluate([log_file, tmp_path / "absent.parquet"])


def test_a_folder_without_parquet_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing here")
    with pytest.raises(op.OffPolicyError, match=tmp_path.name):
        op.evaluate(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"episode,step,reward\n1,0,1.0\n", b"PAR1" * 500])
def test_a_file_that_is_no_parquet_is_named(tmp_path, content):
    path = tmp_path / "log.parquet"
    path.write_bytes(content)
    with pytest.raises(op.BadFileError, match=r"log\.parquet") as caught:
        op.evaluate(path)
    assert str(caught.value.file).endswith("log.parquet")


def test_a_missing_column_in_one_file_is_named_with_the_file(log, tmp_path):
    first, second = file_pieces(log, tmp_path, [7])
    pl.read_parquet(second).drop("reward").write_parquet(second)
    with pytest.raises(op.OffPolicyError, match="reward") as caught:
        op.evaluate([first, second])
    assert "part-001.parquet" in str(caught.value)


def test_ids_of_different_kinds_in_two_files_are_refused(log, tmp_path):
    first, second = file_pieces(log, tmp_path, [7])
    pl.read_parquet(second).with_columns(pl.col("episode").cast(pl.String)).write_parquet(second)
    with pytest.raises(op.OffPolicyError, match="episode") as caught:
        op.evaluate([first, second])
    assert "part-001.parquet" in str(caught.value)


@pytest.fixture(scope="module")
def pool():
    """Another process, so that a crash is a failed test and not the end of the run."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


@pytest.fixture(scope="module", params=["zstd", "snappy", "none"])
def parquet(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "log.parquet"
    table = random_log(91, episodes=30, horizon=8).to_arrow()
    pyarrow.parquet.write_table(table, path, row_group_size=40, compression=request.param)
    return path.read_bytes()


def written(folder, contents):
    paths = []
    for index, content in enumerate(contents):
        paths.append(folder / f"broken-{index}.parquet")
        paths[-1].write_bytes(content)
    return paths


def test_an_error_comes_back_from_another_process_as_it_was(pool, tmp_path):
    here = op.BadFileError("a.parquet", "no such file")
    with pytest.raises(op.BadFileError) as caught:
        pool.submit(op.evaluate, "a.parquet").result()
    assert (str(caught.value), caught.value.file) == (str(here), here.file)
    log = op.demo_log(episodes=5).with_columns(reward=pl.lit(None, pl.Float64))
    with pytest.raises(op.BadLogError, match="reward") as caught:
        pool.submit(op.evaluate, log).result()
    assert caught.value.problems[0].column == "reward"


def test_a_whole_file_is_read(pool, parquet, tmp_path):
    (path,) = written(tmp_path, [parquet])
    assert pool.submit(outcome, path).result() == CORRECT


def test_a_cut_file_is_refused(pool, parquet, tmp_path):
    lengths = [*range(0, len(parquet), len(parquet) // 40), len(parquet) - 1]
    paths = written(tmp_path, [parquet[:length] for length in lengths])
    assert list(pool.map(outcome, paths)) == [REFUSED] * len(paths)


def test_a_cut_file_spoils_the_others(parquet, tmp_path):
    whole, cut = written(tmp_path, [parquet, parquet[: len(parquet) // 2]])
    for paths in ([whole, cut], [cut, whole]):
        with pytest.raises(op.BadFileError, match=r"broken-1\.parquet"):
            op.evaluate(paths)


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_flipped_bytes_are_refused_or_harmless(pool, parquet, tmp_path, flip):
    """A flip in an unchecked page may make another valid number; else it is an error, and never a crash."""
    rng = random.Random(flip)
    footer = range(len(parquet) - 8 - int.from_bytes(parquet[-8:-4], "little"), len(parquet))
    offsets = rng.sample(range(len(parquet)), 120) + rng.sample(footer, 120)
    broken = []
    for offset in offsets:
        content = bytearray(parquet)
        content[offset] ^= flip
        broken.append(bytes(content))
    outcomes = list(pool.map(outcome, written(tmp_path, broken)))
    strange = {o: offset for o, offset in zip(outcomes, offsets, strict=True) if o not in (REFUSED, CORRECT)}
    assert strange == {}
    assert REFUSED in outcomes


@pytest.mark.slow
def test_zeroed_pages_are_refused_or_harmless(pool, parquet, tmp_path):
    size = len(parquet)
    starts = range(4, size - 64, size // 60)
    broken = [parquet[:start] + bytes(48) + parquet[start + 48 :] for start in starts]
    outcomes = set(pool.map(outcome, written(tmp_path, broken)))
    assert outcomes <= {REFUSED, CORRECT}
