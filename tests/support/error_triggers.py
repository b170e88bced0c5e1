"""One way to bring about each kind of error that has to do with logs, columns, files and evaluations."""

import os
from unittest import mock

import numpy as np
import offpolicy as op
import polars as pl
from offpolicy.intervals.replicates import Quanta, ReplicateSums
from offpolicy.intervals.sketch import _DIGEST, _MAGIC, Sketch, _checksum
from offpolicy.logs.sources import frame
from offpolicy.testing import Walk

WALK = Walk()
EAGER = WALK.policies["eager"]
LOG = WALK.simulate(WALK.behavior, 20, seed=0)
DEMO = op.demo_log(episodes=20)
BOTH = {"a": op.PolicyColumns(target_prob="target_prob"), "b": op.PolicyColumns(target_prob="behavior_prob")}
QUANTA = Quanta(10, np.ones(1))
DEAD = DEMO.with_columns(target_prob=0.0)


def ev(log=DEMO, **options):
    return op.evaluate(log, **options)


def written(folder, name, frame=DEMO):
    frame.write_parquet(folder / name)
    return folder / name


def pipe(folder):
    os.mkfifo(folder / "log.parquet")
    return ev(str(folder / "log.parquet"))


def cut(folder):
    path = written(folder, "log.parquet")
    path.write_bytes(path.read_bytes()[:200])
    return ev(path)


def many_ids(folder):
    """Evaluate a log whose ids memory does not hold, where no file can take them."""
    ids = pl.int_range(50_000, eager=True).shuffle(seed=1)
    log = pl.DataFrame({"episode": ids, "step": 0, "reward": 1.0, "behavior_prob": 0.5, "target_prob": 0.5})
    with mock.patch.dict(os.environ, TMPDIR=str(folder / "absent")):
        ev(log, memory="700kB")


class Failing:
    """A stream of Arrow batches that breaks off."""

    def __arrow_c_stream__(self, requested_schema=None):
        import pyarrow as pa

        def batches():
            yield DEMO.to_arrow().to_batches()[0]
            raise RuntimeError("connection lost")

        schema = DEMO.to_arrow().schema
        return pa.RecordBatchReader.from_batches(schema, batches()).__arrow_c_stream__(requested_schema)


class Changing:
    """A log that has fewer rows each time it is read."""

    height = DEMO.height

    def frame(self):
        self.height -= 5
        return DEMO.head(self.height)


def changing():
    log = Changing()
    return ev(pl.LazyFrame().map_batches(lambda _: log.frame(), schema=DEMO.schema, streamable=False))


def of_map(change):
    """An evaluation in pieces, whose states are changed on their way back."""
    return ev(pl.concat([DEMO] * 1), map=lambda work, parts: change([work(part) for part in parts]))


ARGUMENTS = {
    "bad-value": lambda _: ev(discount=2),
    "wrong-object": lambda _: ev(cluster=7),
    "not-utf8": lambda _: op.Columns(reward="\ud800"),
    "unknown-name": lambda _: ev(estimators=["drr"]),
    "give-one": lambda _: op.cross_fit(LOG, WALK, policy=EAGER, fitter="tabular", folds=2, train_fraction=0.5),
    "given-twice": lambda _: ev(
        DEMO.with_columns(p=pl.col("behavior_prob"), lp=pl.col("behavior_prob").log()),
        columns=op.Columns(behavior_prob="p", behavior_logprob="lp"),
    ),
    "nothing-given": lambda _: ev(policies={}),
    "at-least-one": lambda _: ev(estimators=[]),
    "mixture-half-given": lambda _: op.PolicyColumns(mixture_of="new"),
    "mixture-before-its-policy": lambda _: ev(policies={"a": op.PolicyColumns(mixture_of="new", alpha=0.5)}),
    "name-of-behavior": lambda _: ev(policies={"behavior": op.PolicyColumns(target_prob="target_prob")}),
    "policies-need-names": lambda _: op.cross_fit(LOG, WALK, policy=[EAGER], fitter="tabular"),
    "not-a-name": lambda _: op.cross_fit(LOG, WALK, policy={7: EAGER}, fitter="tabular"),
    "not-a-policy": lambda _: op.cross_fit(LOG, WALK, policy={"new": 7}, fitter="tabular"),
    "lacks-member": lambda _: op.cross_fit(LOG, {}, policy=EAGER, fitter="tabular"),
    "not-together": lambda _: ev(DEMO.with_columns(user="episode"), paired=True, cluster="user"),
    "unknown-ending": lambda _: op.improve(LOG, WALK, generator=WALK.policies, estimator="step-is").save("a.pdf"),
    "interval-not-named": lambda _: op.improve(LOG, WALK, generator=WALK.policies, estimator="step-is", confidence=0.9),
    "needs-argument": lambda _: ev(estimators=["dr-bsl"]),
    "needs-two-passes": lambda _: ev(DEMO.with_columns(user="episode"), cluster="user", passes=1),
}
COLUMNS = {
    "missing-column": lambda _: ev(columns=op.Columns(reward="gain")),
    "unnamed-column": lambda _: ev(DEMO.drop("reward")),
    "estimator-lacks-column": lambda _: ev(DEMO.drop("q_hat"), estimators=["dr"]),
    "no-behavior-probability": lambda _: ev(
        DEMO.drop("behavior_prob", "target_prob").with_columns(lp=-1.0),
        policies={"a": op.PolicyColumns(target_logprob="lp")},
    ),
    "no-end-of-episodes": lambda _: op.fitter("tabular").fit(LOG.drop("terminal"), WALK),
    "column-of-some": lambda _: op.pool({"a": DEMO.with_columns(x=1), "b": DEMO}),
    "column-twice": lambda _: frame._frame(_twice()),
    "column-there-already": lambda _: op.pool({"a": DEMO.with_columns(logger=1)}),
    "no-common-type": lambda _: op.pool({"a": DEMO, "b": DEMO.with_columns(reward=pl.lit("x"))}),
    "no-id-of-episode": lambda _: op.folds.fold_of(pl.Series("episode", [1, None]), 2, 0),
    "wrong-type": lambda _: op.fitter("tabular").fit(LOG.with_columns(pl.col("action").cast(str)), WALK),
}
FILES = {
    "no-file": lambda _: ev("no-such-file.parquet"),
    "unreadable-file": cut,
    "missing-in-file": lambda tmp: ev([written(tmp, "a.parquet"), written(tmp, "b.parquet", DEMO.drop("reward"))]),
    "types-of-files": lambda tmp: ev(
        [written(tmp, "a.parquet"), written(tmp, "b.parquet", DEMO.with_columns(reward=pl.lit("x")))], order="any"
    ),
    "not-parquet": lambda tmp: ev(str(tmp / "log.csv")),
    "not-regular": pipe,
    "out-of-reach": lambda _: ev("nowhere://bucket/log.parquet"),
    "refused-by-polars": lambda _: ev(DEMO.lazy().with_columns(reward=pl.lit("x").cast(pl.Float64, strict=True))),
    "broken-stream": lambda _: ev(Failing()),
    "changed-log": lambda _: changing(),
    "not-a-log": lambda _: ev({}),
    "not-paths": lambda _: ev([DEMO]),
    "no-paths": lambda _: ev([]),
    "unreadable-frame": lambda _: frame._frame({"a": [1, object()], "b": [1]}),
}
LOGS = {
    "bad-log": lambda _: ev(DEMO.with_columns(behavior_prob=0.0)),
    "bad-input": lambda _: ev(DEMO.with_columns(reward=pl.lit("x"))),
    "empty-log": lambda _: op.from_episodes([]),
    "steps-begin-elsewhere": lambda _: op.annotate(
        LOG.with_columns(pl.col("step") + 5), EAGER, columns=op.Columns.of(WALK)
    ),
    "steps-counted-from": lambda _: op.annotate(LOG, EAGER, columns=op.Columns.of(WALK), first_step=5),
    "names-of-logs": lambda _: op.pool({}),
    "name-of-a-log": lambda _: op.pool({"a/b": DEMO}),
    "one-policy-at-a-time": lambda _: ev(CUT, policies=BOTH, truncation="bootstrap", horizon=99),
    "truncation-needs-column": lambda _: ev(CUT.drop("r_hat"), truncation="bootstrap", horizon=99),
    "truncation-needs-rewards": lambda _: ev(
        CUT.with_columns(transition_ratio=0.0), truncation="bootstrap", horizon=99, estimators=["dr"]
    ),
    "no-values-of-trajectories": lambda _: ev(estimators=["magic"]).samples.influence("target", "magic"),
    "no-f64-holds-it": lambda _: ev(
        DEMO.with_columns(behavior_prob=1e-200, target_prob=1.0), estimators=["is"], discount=1.0
    ),
}
CUT = DEMO.with_columns(truncated=pl.col("step") == pl.col("step").max().over("episode"), terminal=pl.lit(False))
EVALUATION = {
    "bad-bound": lambda _: op.Bounds(reward=(1, 0)),
    "ends-of-bounds": lambda _: op.Bounds(reward=(0, 1), q=([0, 0], [1, 1, 1])),
    "bounds-too-short": lambda _: ev(horizon=50)["step-is"].interval(
        0.9, "hoeffding", op.Bounds(reward=(0, 1), ratio=[1.0, 2.0])
    ),
    "not-an-id": lambda _: ev(estimators=7),
    "ids-in-one-text": lambda _: ev(estimators="is,dr"),
    "no-value-after-one-pass": lambda _: ev(estimators=["magic"], passes=1),
    "missing-bound": lambda _: op.Bounds(reward=(0, 1)).range("is", ev(horizon=50)["is"].terms),
    "range-not-known": lambda _: op.Bounds(reward=(0, 1)).range("dr-v2", ev(horizon=50)["is"].terms),
    "no-weight": lambda _: ev(DEAD, estimators=["wis"]),
    "continuing-discount": lambda _: ev(continuing=True, discount=1.0, bounds=op.Bounds(reward=(0, 1))),
    "continuing-bounds": lambda _: ev(continuing=True, discount=0.9),
    "ask-for-an-estimate": lambda _: ev()[3],
    "several-policies": lambda _: ev(policies=BOTH)["is"],
    "no-estimate": lambda _: ev(estimators=["is"])["dr"],
    "compared-with-the-log": lambda _: ev(paired=True).difference("target", "target", estimator="is"),
    "logged-policy-itself": lambda _: ev(paired=True).difference("behavior", estimator="is"),
    "not-paired": lambda _: ev().difference("target", estimator="is"),
    "several-models": lambda _: op.cross_fit(LOG, WALK, policy=EAGER, fitter="tabular")["dr"].sketch(),
    "other-resamples": lambda _: ReplicateSums(10, 0, QUANTA).merge(ReplicateSums(10, 1, QUANTA)),
    "other-sketches": lambda _: _sketch(0.0).merge(_sketch(-1.0)),
    "below-floor": lambda _: _sketch(2.0),
    "memory-for-steps": lambda _: ev(DEMO.filter(pl.col("episode") == 0), memory="100B"),
    "memory-for-episodes": many_ids,
}
STATES = {
    "foreign-state": lambda _: of_map(lambda states: [state[:-1] + b"x" for state in states]),
    "map-lost-parts": lambda _: of_map(lambda states: states[:-1]),
    "map-gave-no-bytes": lambda _: of_map(lambda states: [None for _ in states]),
    "map-does-not-add-up": lambda _: of_map(lambda states: [*states, states[0]]),
    "damaged-sketch": lambda _: Sketch.from_bytes(b"no sketch"),
    "sketch-of-another-version": lambda _: Sketch.from_bytes(_other_version(_sketch(0.0).to_bytes())),
}


def _sketch(floor):
    return Sketch.of(np.arange(2), np.ones(2), floor)


def _other_version(content):
    body = bytearray(content[:-_DIGEST])
    body[len(_MAGIC)] += 1
    return bytes(body) + _checksum(bytes(body))


def _twice():
    import pyarrow as pa

    return pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])


TRIGGERS = {**ARGUMENTS, **COLUMNS, **FILES, **LOGS, **EVALUATION, **STATES}
