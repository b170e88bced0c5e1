"""Folds by a hash of the episode's id: the same in every form of the log, fair, and never both sides."""

import duckdb
import numpy as np
import offpolicy as op
import polars as pl
import pyarrow.dataset
import pytest
from hypothesis import given
from hypothesis import strategies as st
from offpolicy import folds
from offpolicy.folds import fold_of, hash_of, share_of, split

MASK = 2**64 - 1


def splitmix64(key, seed=0):
    """Vigna's splitmix64.c, in whole numbers: output key + 1 of the generator that starts at mix(seed)."""

    def mix(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    return mix((mix(seed & MASK) + (key + 1) * 0x9E3779B97F4A7C15) & MASK)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers(0, 2**64 - 1))
def test_hashes_are_those_of_splitmix64(ids, seed):
    assert hash_of(pl.Series(ids, dtype=pl.Int64), seed).tolist() == [splitmix64(i, seed) for i in ids]


def test_golden_values():
    """A log that was split today is split alike by every later version."""
    assert [f"{h:016x}" for h in hash_of([0, 1, 2, 3, 4])] == [
        "e220a8397b1dcdaf",
        "6e789e6aa1b965f4",
        "06c45d188009454f",
        "f88bb8a8724c81ec",
        "1b39896a51a8749b",
    ]  # the published outputs of SplitMix64 started at 0
    assert [f"{h:016x}" for h in hash_of(["0", "a", "ä", ""])] == [
        "8b7c8f00e86c8cdf",
        "34591e17d7337f88",
        "397006d0676989f0",
        "8458aa99603994e0",
    ]
    assert fold_of(range(12), 5, seed=3).tolist() == [4, 2, 2, 4, 3, 3, 2, 3, 1, 4, 4, 3]


SMALL = [0, 1, 7, 100, 127]
WIDTHS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]


@pytest.mark.parametrize("dtype", WIDTHS)
def test_the_width_of_an_id_does_not_matter(dtype):
    assert np.array_equal(hash_of(pl.Series(SMALL, dtype=dtype)), hash_of(SMALL))


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int16, pl.Int32, pl.Int64])
def test_negative_ids(dtype):
    assert hash_of(pl.Series([-1, -7], dtype=dtype)).tolist() == [splitmix64(-1), splitmix64(-7)]


def test_the_largest_ids():
    assert hash_of(pl.Series([2**64 - 2], dtype=pl.UInt64)).tolist() == [splitmix64(2**64 - 2)]


def test_text_may_be_categories():
    ids = ["b", "a", "b", "b", "c"]
    plain = hash_of(ids)
    assert np.array_equal(hash_of(pl.Series(ids, dtype=pl.Categorical)), plain)
    assert np.array_equal(hash_of(pl.Series(ids, dtype=pl.Enum(["c", "b", "a"]))), plain)
    assert plain[0] == plain[2] == plain[3]
    assert len(set(plain.tolist())) == 3


@given(st.permutations(range(50)), st.integers(1, 49))
def test_order_and_cuts_do_not_matter(order, cut):
    ids, whole = np.array(order), share_of(range(50))
    assert np.array_equal(share_of(ids), whole[ids])
    assert np.array_equal(np.concatenate([share_of(ids[:cut]), share_of(ids[cut:])]), whole[ids])


@pytest.mark.parametrize("ids", [range(60_000), [f"user-{i}" for i in range(60_000)], range(0, 60_000 << 20, 1 << 20)])
@pytest.mark.parametrize("seed", [0, 1])
def test_folds_are_balanced_and_shares_are_even(ids, seed):
    n, k = len(ids), 5
    counts = np.bincount(fold_of(ids, k, seed), minlength=k)
    assert counts.size == k
    assert np.abs(counts - n / k).max() < 5 * np.sqrt(n / k)
    shares = share_of(ids, seed)
    assert 0 <= shares.min() <= shares.max() < 1
    assert abs(shares.mean() - 0.5) < 5 / np.sqrt(12 * n)
    assert np.array_equal(np.floor(shares * k), fold_of(ids, k, seed))


def test_seeds_give_independent_folds():
    both = fold_of(range(40_000), 2, 0) * 2 + fold_of(range(40_000), 2, 1)
    assert np.abs(np.bincount(both) - 10_000).max() < 500


def test_a_larger_fraction_holds_the_smaller_one():
    log = op.demo_log(episodes=300)
    small, large = (set(split(log, fraction)[0]["episode"]) for fraction in (0.2, 0.6))
    assert small < large


@pytest.fixture
def path(tmp_path):
    log = op.demo_log(episodes=300)
    log.write_parquet(tmp_path / "log.parquet", row_group_size=97)
    return tmp_path / "log.parquet"


KINDS = {
    "lazy frame": lambda path: pl.scan_parquet(path),
    "path": lambda path: path,
    "list": lambda path: [str(path)],
    "glob": lambda path: str(path.parent / "*.parquet"),
    "arrow table": lambda path: pl.read_parquet(path).to_arrow(),
    "dataset": lambda path: pyarrow.dataset.dataset(path),
    "relation": lambda path: duckdb.sql(f"select * from '{path}'"),
    "reader": lambda path: pyarrow.dataset.dataset(path).scanner().to_reader(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_log_is_split_alike(kind, path):
    expected = split(pl.read_parquet(path), 0.3)
    sides = split(KINDS[kind](path), 0.3)
    frames = [side if isinstance(side, pl.DataFrame) else side.collect(engine="streaming") for side in sides]
    for frame, side in zip(frames, expected, strict=True):
        assert frame.sort("episode", "step").equals(side)
    results = [op.evaluate(side, estimators=["dr"], discount=0.9)["dr"].value for side in (sides[1], expected[1])]
    assert results[0] == results[1]


def test_no_episode_is_on_both_sides_and_none_is_lost(path):
    train, test = split(pl.read_parquet(path), 0.3)
    assert not set(train["episode"]) & set(test["episode"])
    assert set(train["episode"]) | set(test["episode"]) == set(range(300))
    assert train.height + test.height == pl.read_parquet(path).height


def test_all_and_nothing_are_fractions():
    log = op.demo_log(episodes=20)
    assert split(log, 0)[0].is_empty()
    assert split(log, 1)[1].is_empty()
    assert split(log, 1)[0].equals(log)


def test_the_episode_column_may_have_another_name():
    log = op.demo_log(episodes=100)
    renamed = split(log.rename({"episode": "user"}), 0.3, columns=op.Columns(episode="user"))
    assert renamed[0].rename({"user": "episode"}).equals(split(log, 0.3)[0])


def test_folds_as_an_expression_work_lazily(path):
    lazy = pl.scan_parquet(path).with_columns(fold=folds.fold(4)).collect(engine="streaming")
    assert np.array_equal(lazy["fold"], fold_of(lazy["episode"], 4))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fold_of([1], 0), "folds must be a whole number of at least 1, not 0"),
        (lambda: split(op.demo_log(episodes=2), 1.5), "fraction must be from 0 to 1, not 1.5"),
        (lambda: split(op.demo_log(episodes=2), float("nan")), "fraction must be from 0 to 1, not nan"),
        (lambda: hash_of([1, None]), "column 'episode' has no value in row 1"),
        (lambda: hash_of([1.5]), "must hold whole numbers or text, not Float64"),
        (lambda: split(op.demo_log(episodes=2).drop("episode"), 0.5), "the log has no column 'episode'"),
    ],
)
def test_what_makes_no_sense_is_refused(make, says):
    with pytest.raises(op.OffPolicyError, match=says):
        make()
