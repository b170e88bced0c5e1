"""One way to bring about each kind of error of runs that are kept in files, of libraries and of processes."""

import json
import sys
from unittest import mock

import offpolicy as op
import polars as pl
from coin import Coin, Dying
from error_triggers import DEMO, LOG, WALK, ev
from offpolicy._util import forked
from offpolicy.errors.kinds import of_states
from offpolicy.experiments import reproduction
from offpolicy.experiments.runs import complete
from offpolicy.logs.sources import frame


def again(folder, change=lambda lines: lines, **options):
    """Two runs of an experiment, whose file is changed before it goes on."""
    complete(Coin(), 2, seed=5, folder=folder, workers=1)
    file = folder / "runs.jsonl"
    file.write_text("".join(change(file.read_text().splitlines(keepends=True))))
    return complete(**{"experiment": Coin(), "runs": 2, "seed": 5, "folder": folder, "resume": True, **options})


def of_version_0(lines):
    return [json.dumps({**json.loads(lines[0]), "version": 0}) + "\n", *lines[1:]]


def drawn_from_nothing(folder):
    (folder / "result.json").write_text("{}")
    return reproduction.redraw(folder)


class Local(Coin):
    """An experiment that other processes cannot import."""


Local.__qualname__ = "nowhere.Local"


def without(modules, call):
    with mock.patch.dict(sys.modules, dict.fromkeys(modules)):
        return call()


def forked_child():
    with mock.patch.object(forked, "_lost", new=True):
        return ev()


def without_pyarrow():
    with mock.patch.object(pl, "DataFrame", side_effect=ImportError):
        return frame._frame(DEMO)


def internal():
    """Make it as the core does: nothing should bring it about."""
    raise of_states.internal(why="index out of bounds")


HUGE = DEMO.with_columns(behavior_prob=1e-200, target_prob=1.0, reward=1.0)
TRIGGERS = {
    "resume-or-choose": lambda tmp: again(tmp, resume=False),
    "other-runs": lambda tmp: again(tmp, experiment=Coin(bias=1.0)),
    "damaged-line": lambda tmp: again(tmp, lambda lines: [lines[0], "{}\n", *lines[2:]]),
    "run-twice": lambda tmp: again(tmp, lambda lines: [*lines, lines[1]]),
    "runs-of-another-version": lambda tmp: again(tmp, of_version_0),
    "damaged-runs": drawn_from_nothing,
    "cannot-travel": lambda tmp: complete(Local(), 2, seed=0, folder=tmp, workers=2),
    "process-died": lambda tmp: complete(Dying(), 2, seed=0, folder=tmp, workers=2),
    "forked": lambda _: forked_child(),
    "missing-extra": lambda _: without(["gymnasium"], lambda: op.from_gymnasium("CartPole-v1")),
    "needs-pyarrow": lambda _: without_pyarrow(),
    "beyond-floats": lambda _: ev(HUGE).samples.values("target", "is"),
    "history-not-whole": lambda _: op.fitter("recurrent").fit(LOG[1:], WALK),
    "knows-no-other-policy": lambda _: (
        op.fitter("recurrent", epochs=1).fit(LOG, WALK).values(WALK.behavior, WALK.horizon, 1.0)
    ),
    "internal": lambda _: internal(),
}
