"""`cross_fit` and `improve` take the same arguments for the same things, in Python and in the shell."""

import inspect
import json

import click
import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from improving import EAGER, LOG, POLICIES, SMALL, WALK, by_policies
from logs import file_pieces
from offpolicy.cli import commands
from offpolicy.protocols import LoggedDomain

#: What only one of them has, and why: folds need a seed, can keep the episodes of a cluster together, several
#: estimators can share them, and their values may be those of a task that goes on, while candidates have splits of
#: their own, by episode, and one estimator decides.
CROSS_FIT, IMPROVE = (
    {"cluster", "continuing", "policy", "folds", "seed", "estimators"},
    {"generator", "estimator", "caution", "against", "require"},
)
#: `improve` has a split even if nobody asks for one, and V − Cσ unless an interval is asked for.
OTHER_DEFAULTS = {"train_fraction", "interval", "confidence"}


def test_arguments_are_the_same_where_both_make_sense():
    ours, theirs = (inspect.signature(driver).parameters for driver in (op.cross_fit, op.improve))
    assert (set(ours) - set(theirs), set(theirs) - set(ours)) == (CROSS_FIT, IMPROVE)
    shared = [name for name in ours if name in theirs]
    assert shared == [name for name in theirs if name in ours]
    assert {name for name in shared if ours[name].default != theirs[name].default} == OTHER_DEFAULTS
    assert all(ours[name].kind == theirs[name].kind for name in shared)
    frame = [inspect.signature(getattr(pl.DataFrame.ope, name)) for name in ("cross_fit", "improve")]
    assert frame[0].parameters == frame[1].parameters


def test_options_are_the_same_where_both_make_sense():
    ours, theirs = (
        {option.name: option for option in commands.commands[name].params} for name in ("cross-fit", "improve")
    )
    assert set(ours) - set(theirs) == CROSS_FIT - {"policy"}
    assert set(theirs) - set(ours) == IMPROVE
    for name in set(ours) & set(theirs) - {"policies", "out", *OTHER_DEFAULTS}:
        assert shown(ours[name]) == shown(theirs[name])


def shown(option):
    return option.opts, option.default, getattr(option, "help", None), isinstance(option, click.Argument)


class Told:
    """A fitter that is told the domain."""

    def __init__(self):
        self.seen = []

    def fit(self, log, domain):
        self.seen.append((domain.horizon, domain.discount, domain.name))
        return op.fitter("tabular").fit(log, domain)


def test_horizon_and_discount_are_the_domains_unless_given():
    told = Told()
    longer = {"discount": 0.5, "truncation": "as-terminal"}
    best = op.improve(LOG, WALK, generator="mixture", fitter=told, horizon=20, **longer)
    assert set(told.seen) == {(20, 0.5, "walk")}
    own = op.evaluate(LOG, horizon=20, estimators=["mc"], **longer)["mc"]
    assert (best.behavior.value, best.behavior.std_error) == (own.value, own.std_error)
    assert (best.settings["horizon"], best.settings["discount"]) == (20, 0.5)
    setting = LoggedDomain(("place",), 3, 20, WALK.reward_range, 0.5)
    assert by_policies(horizon=20, **longer).candidates.equals(
        op.improve(LOG, setting, generator=POLICIES, estimator="step-is", truncation="as-terminal").candidates
    )
    plain = by_policies()
    assert (plain.settings["horizon"], plain.settings["discount"]) == (WALK.horizon, WALK.discount)


NAMES = {"episode": "user", "step": "t", "reward": "gain", "action": "choice", "terminal": "over"}
STATES = {"place": "spot", "next_place": "next_spot"}


@pytest.mark.parametrize("lazy", [False, True])
def test_columns_of_the_state_may_have_other_names(lazy):
    log = LOG.rename(NAMES | STATES).with_columns(reward=pl.lit("not this"), place=pl.lit(None))
    columns = op.Columns(**NAMES, state=("spot",))
    found = op.improve(log.lazy() if lazy else log, WALK, generator=SMALL, columns=columns)
    assert found.candidates.equals(op.improve(LOG, WALK, generator=SMALL).candidates)
    with pytest.raises(op.UsageError, match="has the state place, and not spot, t"):
        op.improve(log, WALK, generator=SMALL, columns=op.Columns(**NAMES, state=("spot", "t")))


def test_a_log_in_no_order_is_sorted_on_request(tmp_path):
    log = LOG.drop("next_place").sample(fraction=1.0, shuffle=True, seed=1)
    path, *_ = file_pieces(log, tmp_path, [])
    with pytest.raises(op.BadLogError, match="order"):
        op.improve(log, WALK, generator=SMALL)
    expected = op.improve(LOG.drop("next_place"), WALK, generator=SMALL)
    for kind in (log, log.lazy(), path):
        found = op.improve(kind, WALK, generator=SMALL, order="any")
        assert found.candidates.equals(expected.candidates)
        assert found.behavior == expected.behavior
        assert "the rows were sorted by episode and step first" in found.notes
        assert found.settings["order"] == "any"
    assert [source["source"] for source in found.sources] == [str(path)]
    assert not any("sorted" in note for note in expected.notes)


def test_problems_of_a_log_that_was_sorted_are_those_of_the_users_file(tmp_path):
    spoiled = LOG.with_columns(behavior_prob=pl.when(pl.row_index() == 17).then(0.0).otherwise("behavior_prob"))
    path, *_ = file_pieces(spoiled, tmp_path, [])
    with pytest.raises(op.BadLogError, match="behavior_prob = 0") as refused:
        by_policies(path, order="any")
    problem = refused.value.problems[0]
    assert (problem.file, problem.row, problem.episode) == (str(path), None, spoiled["episode"][17])


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("estimator", ["step-is", "dr"])
def test_the_behaviour_policy_may_be_estimated(lazy, estimator):
    options = {"generator": SMALL, "estimator": estimator}
    expected = op.improve(op.estimate_behavior(LOG.drop("behavior_prob"), WALK, smoothing=0.5), WALK, **options)
    log = LOG.lazy() if lazy else LOG
    for given in (log, log.drop("behavior_prob")):
        found = op.improve(given, WALK, behavior="counts", smoothing=0.5, **options)
        assert found.candidates.equals(expected.candidates)
        assert found.behavior == expected.behavior
        assert any("were estimated" in note for note in found.notes)
        assert (found.settings["behavior"], found.settings["smoothing"]) == ("counts", 0.5)
    logged = op.improve(LOG, WALK, **options)
    assert not logged.candidates.equals(expected.candidates)
    assert (logged.settings["behavior"], logged.settings["smoothing"]) == (None, None)


def test_the_behaviour_policy_may_be_estimated_by_a_grid_or_a_classifier():
    from sklearn.tree import DecisionTreeClassifier

    bare = LOG.drop("behavior_prob")
    counted = by_policies(bare, behavior="counts").candidates
    assert by_policies(bare, behavior=WALK.grid).candidates.equals(counted)
    tree = by_policies(bare, behavior=DecisionTreeClassifier(random_state=0))
    known = op.estimate_behavior(bare, WALK, classifier=DecisionTreeClassifier(random_state=0))
    assert tree.candidates.equals(by_policies(known).candidates)
    assert tree.settings["behavior"].startswith("DecisionTreeClassifier")


def test_what_cannot_be_evaluated_is_refused_before_anything_is_estimated(tmp_path):
    bad = LOG.with_columns(reward=pl.when(pl.row_index() == 5).then(None).otherwise("reward"))
    path, *_ = file_pieces(bad, tmp_path, [])
    with pytest.raises(op.BadLogError, match="reward") as refused:
        by_policies(path, behavior="counts")
    assert (refused.value.problems[0].file, refused.value.problems[0].row) == (str(path), 5)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"domain": 3}, "takes a name or a domain, and int has no name"),
        ({"fitter": 3}, "an object with fit"),
        ({"train_fraction": "half"}, "train_fraction must be between 0 and 1, not 'half'"),
        ({"train_fraction": 1.0}, "train_fraction must be between 0 and 1, not 1.0"),
        ({"behavior": "count"}, "behavior= takes 'counts', an op.Grid or a classifier"),
        ({"behavior": "counts", "smoothing": -1.0}, "smoothing must be at least 0"),
        ({"behavior": "counts", "smoothing": "x"}, "smoothing must be at least 0 and finite, not 'x'"),
        ({"discount": 1.5}, "discount must be between 0 and 1, not 1.5"),
        ({"horizon": 2.5}, "horizon must be a whole number of at least 1, not 2.5"),
        ({"order": "some"}, "order must be one of"),
        ({"threads": 0}, "threads must be"),
    ],
)
def test_both_refuse_the_same_in_the_same_words(options, says):
    domain = options.pop("domain", WALK)
    with pytest.raises(op.UsageError, match=says):
        op.improve(LOG, domain, generator=POLICIES, **options)
    with pytest.raises(op.UsageError, match=says):
        op.cross_fit(LOG, domain, policy=EAGER, **options)


def test_fitters_and_generators_are_called_by_their_own_words():
    tabular = op.fitter("tabular", unseen_reward=-0.5)
    assert op.improve(LOG, WALK, generator=POLICIES, fitter=tabular).settings["fitter"] == repr(tabular)
    assert op.improve(LOG, WALK, generator=SMALL, fitter=Told()).settings["fitter"] == "Told"
    assert op.cross_fit(LOG, WALK, policy=EAGER, fitter=Told()).to_dict()["settings"]["cross_fit"]["fitter"] == "Told"
    found = op.improve(LOG, WALK, generator=SMALL, estimator="step-is").settings
    assert (found["generator"], found["fitter"]) == (repr(SMALL), "tabular")


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--behavior", "counts", "--smoothing", 0.5], {"behavior": "counts", "smoothing": 0.5}),
        (
            ["--discount", 0.5, "--horizon", 30, "--truncation", "as-terminal"],
            {"discount": 0.5, "horizon": 30, "truncation": "as-terminal"},
        ),
        (["--order", "any"], {"order": "any"}),
        (["--fitter-set", "unseen-reward=-0.5"], {"fitter": op.fitter("tabular", unseen_reward=-0.5)}),
        (["--column", "state=worn"], {"columns": op.Columns(state=("worn",))}),
    ],
)
def test_the_shell_has_them_too(tmp_path, arguments, options):
    machine = op.domain("machine")
    log = machine.simulate(machine.behavior, 60, seed=2)
    if "columns" in options:
        log = log.rename({name: name.replace("wear", "worn") for name in log.columns})
    path, *_ = file_pieces(log, tmp_path, [])
    given = ("--domain", "machine", "--policy", "careful", *arguments, "--json")
    run = offpolicy("improve", path, *given)
    assert (run.code, run.err) == (0, "")
    best = op.improve([str(path)], machine, generator={"careful": machine.policies["careful"]}, **options)
    assert run.document == json.loads(json.dumps(best.to_dict()))
    assert offpolicy("cross-fit", path, *given).code == 0
