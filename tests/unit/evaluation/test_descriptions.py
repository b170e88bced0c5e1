"""What estimators say of themselves, and what other modules make of it."""

import offpolicy as op
import pytest
from offpolicy import _core
from offpolicy.evaluation.estimators import Description, averaged, describe, estimators, named, usual

#: Of the paper and of Thomas & Brunskill, in the order of tables.
USUAL = ("mc", "is", "step-is", "wis", "step-wis", "reg", "dr", "dr-bsl", "dr-v2", "wdr", "magic")
MODEL = {"dr": ["q_hat", "v_hat"], "wdr": ["q_hat", "v_hat"], "magic": ["q_hat", "v_hat"], "dr-v2": ["r_hat", "v_hat"]}


def with_trait(trait):
    return set(named(lambda about: getattr(about, trait))) & set(USUAL)


def test_what_is_computed_where_none_is_named():
    assert usual() == USUAL
    log = op.demo_log().with_columns(r_hat=0.0)
    assert set(op.evaluate(log, discount=0.9, baseline=0.1).table["estimator"]) == set(USUAL)


@pytest.mark.parametrize("estimator", named())
def test_every_description_has_all_traits(estimator):
    about = describe(estimator)
    traits = [name for name, member in vars(Description).items() if isinstance(member, property)]
    assert len(traits) > 20
    for trait in traits:
        assert getattr(about, trait) is not NotImplemented
    assert about.id == estimator
    assert all((about.name, about.equation, about.reference))


def test_the_columns_that_estimators_need():
    for estimator in USUAL:
        ratio = [] if estimator in ("mc", "reg") else ["ratio"]
        model = ["v_hat"] if estimator == "reg" else MODEL.get(estimator, [])
        assert describe(estimator).needs == ratio + model


@pytest.mark.parametrize(
    ("trait", "ids"),
    [
        ("weighted", {"wis", "step-wis", "wdr", "magic"}),
        ("blended", {"magic"}),
        ("weights_returns", {"is", "wis"}),
        ("of_behavior", {"mc"}),
        ("needs_baseline", {"dr-bsl"}),
        ("corrects_first_value", {"dr", "dr-v2"}),
        ("without_control", {"dr", "wdr"}),
        ("with_baseline", {"step-is"}),
        ("shrinks", set()),
    ],
)
def test_which_estimators_have_a_trait(trait, ids):
    assert with_trait(trait) == ids


def test_what_estimators_take_from_a_model():
    found = {name: describe(name).model for name in USUAL if describe(name).model != "none"}
    control = {"dr": "control-variate", "wdr": "control-variate"}
    assert found == {"reg": "value", "dr-v2": "transitions", "magic": "blend"} | control


def test_when_estimators_are_unbiased():
    found = {name: describe(name).unbiased for name in USUAL if describe(name).unbiased != "always"}
    weighted = dict.fromkeys(("wis", "step-wis", "wdr", "magic"), "in-the-limit")
    assert found == {"reg": "with-right-model", "dr-v2": "with-transition-ratio"} | weighted


def test_how_often_the_log_is_read():
    assert {name: describe(name).passes for name in USUAL if describe(name).passes > 1} == {
        "step-wis": 2,
        "wdr": 2,
        "magic": 2,
    }
    assert [name for name in USUAL if describe(name).value_pass == 2] == ["magic"]


def test_means_of_weighted_values():
    assert set(averaged()) & set(USUAL) == {"is", "step-is", "dr", "dr-bsl", "dr-v2"}


def test_descriptions_are_those_of_the_core_and_do_not_change():
    assert list(estimators()) == [about.id for about in _core.estimators()]
    with pytest.raises(AttributeError):
        describe("dr").weighted = True
    assert repr(describe("dr")) == 'EstimatorInfo("dr", "doubly robust")'
