"""What `cross_fit` gives and refuses: intervals for finite samples, words for people, errors, the command line."""

import json
import math

import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from crossing import Fixed
from logs import bits
from offpolicy.testing import Walk

WALK = Walk()
EAGER = WALK.policies["eager"]
BOUNDS = op.Bounds(reward=(-0.05, 1.0), ratio=3.0, q=(-0.6, 1.0))


@pytest.fixture(scope="module")
def walked():
    return WALK.simulate(WALK.behavior, 200, seed=0)


def cross(log, **options):
    return op.cross_fit(log, **({"policy": EAGER, "domain": WALK} | options))


def test_a_bound_for_finite_samples_is_the_average_of_the_folds_at_a_level_for_all(walked):
    cf = cross(walked, folds=3, interval="hoeffding", bounds=BOUNDS, confidence=0.9)
    found = cf["dr"].interval()
    lowest, highest = BOUNDS.range("dr", cf["dr"].terms)
    sizes = cf.folds.filter(pl.col("estimator") == "dr")["episodes"].to_list()
    halves = [(highest - lowest) * math.sqrt(math.log(2 * 3 / 0.1) / (2 * n)) for n in sizes]
    half = sum(n / 200 * h for n, h in zip(sizes, halves, strict=True))
    assert (found.kind, found.confidence, found.assumptions["folds"]) == ("finite-sample", 0.9, 3)
    assert found.high - cf["dr"].value == pytest.approx(half, rel=1e-9)
    assert cf["dr"].value - found.low == pytest.approx(half, rel=1e-9)
    row = cf.table.row(by_predicate=pl.col("estimator") == "dr", named=True)
    assert (row["low"], row["high"]) == (found.low, found.high)


def test_one_model_for_all_values_needs_no_correction(walked):
    plain = op.evaluate(
        op.annotate(walked, EAGER, columns=op.Columns(state=("place",))), discount=0.95, horizon=12, bounds=BOUNDS
    )
    cf = cross(walked, folds=3, bounds=BOUNDS)
    assert cf["step-is"].interval(method="hoeffding") == plain["step-is"].interval(method="hoeffding")
    single = cross(walked, train_fraction=0.5, bounds=BOUNDS)["dr"]
    lowest, highest = BOUNDS.range("dr", single.terms)
    half = (highest - lowest) * math.sqrt(math.log(2 / 0.05) / (2 * single.episodes))
    assert single.interval(method="hoeffding").high == pytest.approx(single.value + half, rel=1e-12)


def test_an_interval_that_says_nothing_says_so(walked):
    wide = cross(walked, folds=3, bounds=BOUNDS)["dr"].interval(method="hoeffding")
    assert "vacuous" in wide.reason
    small = WALK.simulate(WALK.behavior, 20, seed=0)
    tight = op.Bounds(reward=(-0.05, 1.0), ratio=1.0, q=(-1 / 3, 1 / 3))  # Q̂ is a cosine over 3
    same = cross(small, bounds=tight, fitter=Fixed(), policy=WALK.behavior)["dr"]
    assert same.interval(method="hoeffding", confidence=0.1).reason is None
    assert "only if its model" in cross(small, bounds=BOUNDS)["reg"].interval(method="hoeffding").reason
    assert "give ratio=" in cross(small)["dr"].interval(method="hoeffding").reason
    assert "ratio of sums" in cross(small, bounds=BOUNDS)["wdr"].interval(method="hoeffding").reason


def test_folds_that_have_no_interval_are_named_with_their_reasons(walked):
    few = walked.filter(pl.col("episode") < 100)
    cf = cross(few, folds=6, policy=WALK.behavior, bounds=BOUNDS)
    found = cf["dr"].interval(method="hcope", side="lower")
    assert found.low is None
    alone = {fold.number: fold.find("target", "dr").interval(0.99, "hcope", side="lower") for fold in cf.parts}
    assert {part.low is None for part in alone.values()} == {True, False}
    for number, part in alone.items():
        assert (f"fold {number}: {part.reason}" in found.reason) == (part.low is None)
    assert cf.folds["reason"].is_null().all()  # every fold has its standard errors
    assert not [note for note in cf.notes if "fold" in note]


def test_people_are_told_which_fold_has_no_standard_error_and_why(tmp_path):
    car = op.domain("mountain-car", horizon=12)
    path = tmp_path / "log.parquet"
    log = car.simulate(car.behavior, 40, seed=1).filter(pl.col("episode").is_in([1, 2, 4, 5, 0]))  # one in fold 1 of 2
    log.write_parquet(path)
    cf = car_cross(path, estimators=["dr"])
    assert cf.folds["episodes"].to_list() == [4, 1]
    assert cf.folds["reason"].to_list() == [None, "a single trajectory has no standard error"]
    assert "fold 1: a single trajectory has no standard error" in str(cf)
    run = offpolicy("cross-fit", path, *CAR, "--estimator", "dr")
    assert run.code == 0
    (row,) = (line for line in run.out.splitlines() if line.split()[:1] == ["1"])
    assert row.rstrip().endswith("a single trajectory has no standard error")
    assert "note: fold 1: a single trajectory has no standard error" in run.out
    document = offpolicy("cross-fit", path, *CAR, "--estimator", "dr", "--json").document
    assert [row["reason"] for row in document["folds"]] == cf.folds["reason"].to_list()
    assert document["notes"] == cf.notes


def test_the_document_holds_settings_estimates_and_folds(walked):
    document = json.loads(json.dumps(cross(walked, folds=4, seed=7, estimators=["dr"]).to_dict(), allow_nan=False))
    assert document["settings"]["cross_fit"] == {
        "folds": 4,
        "train_fraction": None,
        "seed": 7,
        "fitter": "tabular",
        "domain": "walk",
        "transition_ratio": True,
        "behavior": None,
        "smoothing": None,
    }
    assert [row["fold"] for row in document["folds"]] == [0, 1, 2, 3]
    assert document["estimates"][0]["estimator"] == "dr"


def test_people_read_the_evaluation_and_the_folds(walked):
    text = str(cross(walked, estimators=["dr"]))
    assert "effective sample size" in text
    assert "train_episodes" in text


def test_frames_have_it_in_their_namespace(walked):
    assert bits(walked.lazy().ope.cross_fit(policy=EAGER, domain=WALK)) == bits(cross(walked))


def test_progress_counts_folds(walked):
    told = []
    cross(walked, folds=3, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"folds": 2**32}, op.UsageError, "folds must be at most 2147483648, not 4294967296"),
        ({"folds": 1}, op.UsageError, "folds must be a whole number from 2 to the number of episodes, not 1"),
        ({"folds": 2.5}, op.UsageError, "not 2.5"),
        ({"folds": 201}, op.UsageError, "from 2 to the number of episodes, 200, not 201"),
        ({"folds": 2, "train_fraction": 0.5}, op.UsageError, "folds or train_fraction, not both"),
        ({"train_fraction": 1.0}, op.UsageError, "train_fraction must be between 0 and 1, not 1.0"),
        ({"train_fraction": math.nan}, op.UsageError, "between 0 and 1, not nan"),
        ({"train_fraction": "half"}, op.UsageError, "between 0 and 1, not 'half'"),
        ({"train_fraction": 1e-9}, op.OffPolicyError, "leaves none of 200 episodes to fit a model to"),
        ({"train_fraction": 1 - 1e-9}, op.OffPolicyError, "leaves none of 200 episodes to evaluate"),
        ({"policy": "eager"}, op.UsageError, "policy 'target' needs a method probabilities.* str has not"),
        ({"policy": [EAGER, EAGER]}, op.UsageError, "a mapping, with a name for each, and not a list"),
        ({"policy": [("a", EAGER), ("a", EAGER)]}, op.UsageError, "in which a name could be there twice"),
        ({"policy": {}}, op.UsageError, "names no policy"),
        ({"policy": {"behavior": EAGER}}, op.UsageError, "'behavior' is the name of the behaviour policy"),
        ({"policy": {7: EAGER}}, op.UsageError, "policies have names, and 7 is none"),
        ({"domain": "walkk"}, op.PluginError, "no domain 'walkk'"),
        ({"domain": 3}, op.UsageError, "int has no name"),
        ({"fitter": "tabula"}, op.PluginError, "no model fitter 'tabula'; did you mean 'tabular'"),
        ({"fitter": 3}, op.UsageError, "an object with fit"),
        ({"behavior": "count"}, op.UsageError, "behavior= takes 'counts', an op.Grid or a classifier"),
        ({"behavior": "counts", "smoothing": -1.0}, op.UsageError, "smoothing must be at least 0"),
        ({"estimators": ["drr"]}, op.UsageError, "no estimator 'drr'; did you mean 'dr'"),
        ({"estimators": ["dr-bsl"]}, op.UsageError, "'dr-bsl' needs baseline="),
        ({"discount": 1.5}, op.UsageError, "discount must be between 0 and 1, not 1.5"),
        ({"horizon": 2.5}, op.UsageError, "horizon must be a whole number of at least 1, not 2.5"),
        ({"horizon": 3}, op.BadLogError, "beyond the horizon|longer than"),
        ({"interval": "x"}, op.UsageError, "no interval 'x'"),
        ({"order": "some"}, op.UsageError, "order must be one of"),
        ({"threads": 0}, op.UsageError, "threads must be"),
        ({"columns": op.Columns(state=("place", "action"))}, op.UsageError, "has the state place, and not place, act"),
        ({"columns": op.Columns(reward="rewardd")}, op.MissingColumnError, "did you mean 'reward'"),
    ],
)
def test_what_makes_no_sense_is_refused(walked, options, kind, says):
    with pytest.raises(kind, match=says):
        cross(walked, **options)


class Never:
    """A fitter that must not be asked."""

    def fit(self, log, domain):
        raise AssertionError("a model was fitted to a log that cannot be evaluated")


def test_a_log_that_cannot_be_evaluated_is_refused_before_a_model_is_fitted(walked, tmp_path):
    bad = walked.with_columns(behavior_prob=pl.when(pl.col("episode") == 150).then(0.0).otherwise("behavior_prob"))
    path = tmp_path / "bad.parquet"
    bad.write_parquet(path)
    with pytest.raises(op.BadLogError, match="behavior_prob") as refused:
        cross(path, fitter=Never())
    first = bad.with_row_index().filter(pl.col("episode") == 150)["index"][0]
    assert (refused.value.problems[0].file, refused.value.problems[0].row) == (str(path), first)
    with pytest.raises(op.BadLogError, match="gap"):
        cross(walked.filter((pl.col("episode") != 9) | (pl.col("step") != 1)), fitter=Never())
    with pytest.raises(
        op.MissingColumnError, match=r"'dr' .* needs behavior_prob, .* estimate it, behavior=\"counts\""
    ):
        cross(walked.drop("behavior_prob"), fitter=Never(), estimators=["dr"])
    with pytest.raises(op.BadLogError, match="no row"):
        cross(walked.clear(), fitter=Never())


@pytest.mark.parametrize("episode", [150, 151])  # of the first fold and of the second
@pytest.mark.parametrize("lazy", [False, True])
def test_a_bad_state_is_named_by_episode_and_step_alone(walked, episode, lazy):
    here = (pl.col("episode") == episode) & (pl.col("step") == 1)
    bad = walked.with_columns(place=pl.when(here).then(None).otherwise("place"))
    with pytest.raises(op.OffPolicyError, match=f"\n  episode {episode}, step 1: place = None: must be there"):
        cross(bad.lazy() if lazy else bad)


def test_episodes_that_all_share_a_fold_leave_nothing_to_fit_to(walked):
    together = walked.filter(pl.col("episode").is_in([1, 2, 4]))  # all in fold 0 of 2
    with pytest.raises(op.OffPolicyError, match="all 3 episodes fall into one of 2 folds"):
        cross(together)
    assert cross(together, seed=2)["dr"].episodes == 3


def test_truncated_episodes_are_refused_unless_taken_as_ended(walked):
    last = pl.col("step").max().over("episode")
    cut = walked.filter((pl.col("episode") != 3) | (pl.col("step") < last))
    cut = cut.with_columns(truncated=(pl.col("episode") == 3) & (pl.col("step") == last))
    with pytest.raises(op.BadLogError, match="truncated"):
        cross(cut)
    found = cross(cut, truncation="as-terminal")
    assert found.evaluation.repairs["truncated_as_terminal"] == 1
    with pytest.raises(op.UsageError, match="where models are fitted"):
        cross(cut, truncation="bootstrap")


CAR = ("--domain", "mountain-car", "--set", "horizon=12", "--policy", "mix:along-velocity:0.5")


@pytest.fixture(scope="module")
def car_log(tmp_path_factory):
    car = op.domain("mountain-car", horizon=12)
    path = tmp_path_factory.mktemp("car") / "log.parquet"
    car.simulate(car.behavior, 60, seed=1).write_parquet(path)
    return path


def car_cross(path, **options):
    car = op.domain("mountain-car", horizon=12)
    policy = op.policies.Mixture(car.policies["along-velocity"], car.behavior, 0.5)
    return op.cross_fit([str(path)], policy={"mix:along-velocity:0.5": policy}, domain=car, **options)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {}),
        (["--folds", 5, "--seed", 3, "--estimator", "dr", "--estimator", "wdr"],
         {"folds": 5, "seed": 3, "estimators": ["dr", "wdr"]}),
        (["--train-fraction", 0.4, "--estimator", "dr"], {"train_fraction": 0.4, "estimators": ["dr"]}),
        (["--behavior", "counts", "--smoothing", 0.5, "--discount", 0.9],
         {"behavior": "counts", "smoothing": 0.5, "discount": 0.9}),
        (["--fitter-set", "unseen-reward=-0.5"], {"fitter": op.fitter("tabular", unseen_reward=-0.5)}),
        (["--horizon", 20, "--truncation", "as-terminal"], {"horizon": 20, "truncation": "as-terminal"}),
        (["--confidence", 0.9, "--interval", "hoeffding", "--reward-range=-1,0", "--ratio-bound", 2],
         {"confidence": 0.9, "interval": "hoeffding", "bounds": op.Bounds(reward=(-1.0, 0.0), ratio=2.0)}),
    ],
)  # fmt: skip
def test_json_is_what_python_gives(car_log, arguments, options):
    run = offpolicy("cross-fit", car_log, *CAR, *arguments, "--json")
    assert (run.code, run.err) == (0, "")
    assert run.document == json.loads(json.dumps(car_cross(car_log, **options).to_dict()))


def test_people_see_verdict_estimates_folds_and_the_file(car_log, tmp_path):
    out = tmp_path / "result.json"
    run = offpolicy("cross-fit", car_log, *CAR, "--folds", 3, "--estimator", "dr", "--out", out)
    assert (run.code, run.err) == (0, "")
    cf = car_cross(car_log, folds=3, estimators=["dr"])
    assert cf.verdict.rule in run.out
    rows = [line.split() for line in run.out.splitlines() if "mix:along-velocity:0.5" in line and " dr " in line]
    pooled, *folds = rows
    assert float(pooled[2]) == pytest.approx(cf["dr"].value, abs=0.01)
    assert [int(row[0]) for row in folds] == [0, 1, 2]
    assert [int(row[-1]) for row in folds] == cf.folds["train_episodes"].to_list()
    assert run.out.endswith(f"written to {out}\n")
    assert json.loads(out.read_text()) == json.loads(json.dumps(cf.to_dict()))


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--domain", "mountain-carr"], 2, "did you mean 'mountain-car'"),
        (["--fitter", "tabula"], 2, "did you mean 'tabular'"),
        (["--fitter-set", "cellss=3"], 2, "has no parameter 'cellss'; did you mean 'cells'"),
        (["--policy", "along"], 2, "has no policy 'along'"),
        (["--policy", "behavior"], 2, "'behavior' is the name of the behaviour policy"),
        (["--policy", CAR[-1]], 2, "policy 'mix:along-velocity:0.5' is there twice"),
        (["--folds", 1], 2, "folds"),
        (["--folds", 61], 2, "from 2 to the number of episodes, 60, not 61"),
        (["--folds", 2, "--train-fraction", 0.5], 2, "give --folds or --train-fraction, not both"),
        (["--train-fraction", 1.5], 2, "--train-fraction must be between 0 and 1, not 1.5"),
        (["--train-fraction", 1e-9], 1, "leaves none of 60 episodes to fit a model to"),
        (["--estimator", "drr"], 2, "did you mean 'dr'"),
        (["--column", "reward=gain"], 1, "no column 'gain'"),
    ],
)
def test_the_command_line_refuses_with_a_message_and_a_code(car_log, arguments, code, says):
    run = offpolicy("cross-fit", car_log, *CAR, *arguments)
    assert (run.code, run.out) == (code, "")
    assert says in run.err


def test_what_is_needed_must_be_given(car_log, tmp_path):
    assert offpolicy("cross-fit", car_log, "--domain", "mountain-car").code == 2
    assert offpolicy("cross-fit", car_log, "--policy", "along-velocity").code == 2
    assert offpolicy("cross-fit", *CAR).code == 2
    assert offpolicy("cross-fit", tmp_path / "none.parquet", *CAR).code == 1
    assert "overwrite" in offpolicy("cross-fit", car_log, *CAR, "--out", car_log).err
