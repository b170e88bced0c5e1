"""States that travel through map=: one that is damaged, or belongs elsewhere, is refused; none ends in a panic."""

import random

import numpy as np
import offpolicy as op
import pytest
from forgery import OPENING, sealed
from hypothesis import settings
from logs import random_log
from offpolicy.errors import StateError
from offpolicy.intervals import sketch
from offpolicy.intervals.sketch import Sketch
from state_attack import ASKED, LOG, TASK_ROWS, Carrier, attack

OTHER = random_log(seed=6, episodes=14, horizon=11, ragged=False)


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    monkeypatch.setattr("offpolicy.logs.tasks.TASK_ROWS", TASK_ROWS)


def states_of(log, values=None, **asked):
    """The states of each pass of an evaluation."""
    carrier = Carrier()
    ev = op.evaluate(log, map=carrier, **(ASKED | asked))
    if values is not None:
        ev.values(values)
    return carrier.passes


def exchanged(at, new, position=0):
    """Evaluates the log with another state in the place of one."""

    def exchange(states):
        return [*states[:position], new, *states[position + 1 :]]

    return op.evaluate(LOG, map=Carrier(at, exchange), **ASKED)


def test_states_in_any_order_give_the_same_numbers():
    expected = op.evaluate(LOG, **ASKED).table
    for at in (0, 1):
        assert op.evaluate(LOG, map=Carrier(at, lambda states: states[::-1]), **ASKED).table.equals(expected)


@pytest.mark.parametrize(
    ("elsewhere", "why"),
    [
        (lambda: states_of(LOG, discount=0.8)[0][0], "of another plan"),
        (lambda: states_of(LOG, estimators=["step-is"])[0][0], "of another plan"),
        (lambda: states_of(LOG)[1][0], "it is of the second pass, and this is the first pass"),
        (lambda: states_of(LOG, values="dr")[2][0], "it is of the values pass, and this is the first pass"),
        (lambda: states_of(OTHER)[0][0], "not among those that were asked for"),
        (lambda: states_of(LOG)[0][0], "not among those that were asked for"),
    ],
    ids=["discount", "estimators", "pass", "values", "log", "another evaluation of an equal frame"],
)
def test_a_state_that_belongs_elsewhere_is_refused_in_the_first_pass(elsewhere, why):
    with pytest.raises(StateError, match=why):
        exchanged(0, elsewhere())


def test_a_state_that_belongs_elsewhere_is_refused_in_the_second_pass(tmp_path):
    with pytest.raises(StateError, match="of the first pass, and this is the second"):
        exchanged(1, states_of(LOG)[0][0])
    with pytest.raises(StateError, match="the normalisers of another first pass"):
        exchanged(1, states_of(OTHER)[1][0])


def test_a_state_of_another_file_is_refused(tmp_path):
    for name, log in (("mine", LOG), ("other", OTHER)):
        log.write_parquet(tmp_path / f"{name}.parquet", row_group_size=30)
    other = states_of(tmp_path / "other.parquet")
    with pytest.raises(StateError, match="is not among those that were asked for"):
        op.evaluate(tmp_path / "mine.parquet", map=Carrier(0, lambda states: [other[0][0], *states[1:]]), **ASKED)


def test_a_state_of_the_same_file_is_the_right_one_whoever_made_it(tmp_path):
    path = tmp_path / "log.parquet"
    LOG.write_parquet(path, row_group_size=30)
    before = states_of(path)
    ev = op.evaluate(path, map=Carrier(0, lambda states: before[0]), **ASKED)
    assert ev.table.equals(op.evaluate(path, **ASKED).table)


@pytest.mark.parametrize("at", [0, 1])
def test_parts_that_are_missing_or_come_twice_are_refused(at):
    with pytest.raises(
        StateError, match=r"results for \d+ parts of the log: the part of \d+ rows from row \d+ on of f"
    ):
        op.evaluate(LOG, map=Carrier(at, lambda states: states[:-1]), **ASKED)
    with pytest.raises(StateError, match="the part of 30 rows from row 30 on of frame came twice"):
        op.evaluate(LOG, map=Carrier(at, lambda states: [states[1], *states[1:]]), **ASKED)


def test_what_is_no_state_is_refused():
    for wrong, why in [
        ("text", "map= gave str"),
        (None, "map= gave NoneType"),
        (b"", "no state"),
        (b"x" * 99, "no state"),
    ]:
        with pytest.raises(StateError, match=why):
            exchanged(0, wrong)


def test_another_version_is_named():
    state = states_of(LOG)[0][0]
    with pytest.raises(StateError, match="has the form of version 9, and this version reads 4"):
        exchanged(0, state[:7] + b"\x09" + state[8:])
    version = op.__version__.encode()
    content = state[OPENING:].replace(version, b"9.9.9"[: len(version)], 1)
    with pytest.raises(StateError, match=r"made by version 9\.9\.9, and this is version"):
        exchanged(0, sealed(state, content))


def test_damage_on_the_way_is_found_by_the_checksum():
    rng, state = random.Random(1), states_of(LOG)[0][0]
    for _ in range(200):
        damaged = bytearray(state)
        damaged[rng.randrange(len(state))] ^= 1 << rng.randrange(8)
        with pytest.raises(StateError):
            exchanged(0, bytes(damaged))


def test_forged_states_end_in_an_error_or_a_number():
    """2,000 cases; 100,000 with --hypothesis-profile=thorough. A PanicException is no Exception, and would end this."""
    rng, others = random.Random(17), []
    found = [attack(rng, others) for _ in range(max(2_000, settings().max_examples))]
    assert found.count("StateError") > 0.6 * len(found)


def damaged_sketch(content: bytes, rng: random.Random) -> bytes:
    """Damaged in one way or another, with a checksum that matches again."""
    body = bytearray(content[:-16])
    kind = rng.randrange(3)
    if kind == 0:
        body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del body[rng.randrange(len(body)) :]
    else:
        body += rng.randbytes(rng.randrange(1, 30))
    return bytes(body) + sketch._checksum(bytes(body))


def test_damaged_sketches_are_refused_or_are_sketches():
    content = Sketch.of(range(50), np.linspace(-1.0, 3.0, 50), floor=-1.0).to_bytes()
    rng, refused = random.Random(3), 0
    cases = max(2_000, settings().max_examples)
    for _ in range(cases):
        try:
            made = Sketch.from_bytes(damaged_sketch(content, rng))
        except op.OffPolicyError:
            refused += 1
            continue
        assert made.counts.min() >= 0
        assert np.isfinite(made.x).all()
        assert made.merge(made).episodes == 2 * made.episodes
    assert refused > cases / 2
