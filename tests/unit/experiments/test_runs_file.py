"""A damaged file of runs goes on with the same numbers, or is refused with its name and line; never with others."""

import json

import offpolicy as op
import pytest
from coin import Coin
from hypothesis import given
from hypothesis import strategies as st
from offpolicy.experiments.runs import complete
from offpolicy.experiments.runs_file import FILE, RunsFile
from runs_damage import damaged

RUNS, SEED = 6, 5
ABOUT = {"experiment": "coin", "seed": SEED, "settings": {"bias": 0.0}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The numbers of all runs, and the bytes of their file."""
    folder = tmp_path_factory.mktemp("whole")
    runs = complete(Coin(), RUNS, seed=SEED, folder=folder, workers=1)
    return runs, (folder / FILE).read_bytes()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / FILE


def survives(whole, path, content):
    """True where what is left of the runs is right, False where the file is refused by its name."""
    runs, _ = whole
    path.write_bytes(content)
    try:
        found = RunsFile(path, ABOUT).read()
    except op.OffPolicyError as error:
        said = str(error)
    else:
        said = None
    if said is not None:
        assert str(path) in said
        assert path.read_bytes() == content
        return False
    assert all(run == runs[index] for index, run in found.items() if index < RUNS)
    assert set(found) <= set(range(RUNS))
    return True


def test_every_byte_that_is_changed_lost_or_doubled_is_found(whole, path):
    _, content = whole
    for at in range(len(content)):
        before, byte, after = content[:at], content[at], content[at + 1 :]
        for changed in (bytes([byte ^ 1]), bytes([byte ^ 128]), b"\n", b"", bytes([byte, byte])):
            damaged = before + changed + after
            cut = after.find(b"\n") < 0  # in the last line, or its end: which is then dropped, if its end is lost
            assert not survives(whole, path, damaged) or damaged == content or (cut and not damaged.endswith(b"\n"))


def test_every_cut_goes_on(whole, path):
    _, content = whole
    for end in range(len(content)):
        assert survives(whole, path, content[:end])
        assert path.read_bytes() in (b"", content[: content.rfind(b"\n", 0, end) + 1])


@st.composite
def damages(draw):
    """A few edits: bytes written over, put in, taken out or moved, lines swapped, doubled or taken out."""
    at, size = st.integers(0, 2000), st.integers(0, 60)
    edit = st.one_of(
        st.tuples(st.just("over"), at, st.binary(min_size=1, max_size=8)),
        st.tuples(st.just("in"), at, st.binary(min_size=1, max_size=8)),
        st.tuples(st.just("out"), at, size),
        st.tuples(st.just("move"), at, at),
        st.tuples(st.sampled_from(["swap", "double", "drop"]), st.integers(0, RUNS), st.integers(0, RUNS)),
        st.tuples(st.just("digit"), at, st.integers(0, 9)),
    )
    return draw(st.lists(edit, min_size=1, max_size=4))


@given(edits=damages())
def test_damage_of_any_kind_gives_no_other_numbers(whole, path, edits):
    survives(whole, path, damaged(whole[1], edits))


def test_a_run_that_is_there_twice_is_refused_with_both_lines(whole, path):
    _, content = whole
    lines = content.splitlines(keepends=True)
    path.write_bytes(content + lines[3])
    with pytest.raises(op.BadFileError, match=r"runs\.jsonl: run 2 is there twice, in lines 4 and 8: delete one"):
        RunsFile(path, ABOUT).read()


def test_a_run_of_another_experiment_is_refused(whole, path, tmp_path):
    complete(Coin(), RUNS, seed=SEED + 1, folder=tmp_path, workers=1)
    theirs = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    ours = whole[1].splitlines(keepends=True)
    path.write_bytes(b"".join([*ours[:2], theirs[2], *ours[3:]]))
    with pytest.raises(op.BadFileError, match=r"line 3 is damaged .* delete it, and its run is done again"):
        RunsFile(path, ABOUT).read()


def test_what_the_message_tells_to_do_works(whole, path):
    runs, content = whole
    lines = content.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], lines[3].replace(b"run", b"ran"), *lines[4:]]))
    with pytest.raises(op.BadFileError, match="line 4 is damaged"):
        complete(Coin(), RUNS, seed=SEED, folder=path.parent, resume=True, workers=1)
    path.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    assert complete(Coin(), RUNS, seed=SEED, folder=path.parent, resume=True, workers=1) == runs
    assert path.read_bytes() == content


@pytest.mark.parametrize("run", [-1, True, 1.0, "1", None])
def test_a_number_of_a_run_that_is_none_is_refused(whole, path, run):
    file = RunsFile(path, ABOUT)
    path.write_bytes(whole[1].splitlines(keepends=True)[0] + file.line(run, {"x": 1.0}))
    with pytest.raises(op.BadFileError, match=rf"line 2 is damaged \({run!r} is no number of a run\)"):
        file.read()


def test_a_line_is_json(whole):
    assert [json.loads(line).get("run") for line in whole[1].splitlines()] == [None, *range(RUNS)]
