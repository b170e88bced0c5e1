"""Where candidates come from, who of them and of their models sees which episodes, and logs of every kind."""

import json

import offpolicy as op
import polars as pl
import pytest
from faulty import Recording
from improving import EAGER, LOG, POLICIES, SMALL, WALK, Proposing, by_policies
from logs import file_pieces
from offpolicy.drivers import score
from offpolicy.drivers.mixtures import Mixtures
from offpolicy.folds import split
from offpolicy.policies import Mixture as Mixed
from offpolicy.protocols import LoggedDomain


class Silent:
    def candidates(self, log, domain):
        return None


def bits(result):
    """Every number as its exact hexadecimal."""
    document = result.to_dict() | {"sources": None}
    return json.dumps(document, default=str, sort_keys=True), [
        [cell.hex() if isinstance(cell, float) else cell for cell in row] for row in result.candidates.rows()
    ]


def test_a_model_of_the_mixtures_split_serves_as_q_hat_too():
    fitter = Recording()
    op.improve(LOG, WALK, generator=Mixtures(fitter, (0.2, 0.7), (0.0, 0.5)), fitter=fitter)
    assert fitter.fits == [set(split(LOG, fraction)[0]["episode"]) for fraction in (0.2, 0.7)]


def test_a_model_is_fitted_once_a_split_and_never_to_what_is_evaluated():
    fitter = Recording()
    found = [op.Candidate(f"{fraction} {i}", EAGER, fraction) for i in range(2) for fraction in (0.6, 0.25, 0.0)]
    best = op.improve(LOG, WALK, generator=Proposing(found), fitter=fitter, train_fraction=0.4)
    assert best.candidates["candidate"].to_list() == [candidate.name for candidate in found]
    assert best.candidates["train_fraction"].to_list() == [0.6, 0.25, 0.4] * 2
    assert fitter.fits == [set(split(LOG, fraction)[0]["episode"]) for fraction in (0.25, 0.4, 0.6)]
    for row in best.candidates.iter_rows(named=True):
        assert row["episodes"] == split(LOG, row["train_fraction"])[1]["episode"].n_unique()


def test_no_model_is_fitted_where_none_is_needed():
    fitter = Recording()
    op.improve(LOG, WALK, generator=POLICIES, fitter=fitter, estimator="step-is")
    assert fitter.fits == []


def test_the_candidates_of_a_split_share_one_scan_and_their_policies_are_asked_once(monkeypatch):
    asked, scans = [], []

    class Asked:
        def __init__(self, policy):
            self.policy = policy

        def probabilities(self, states, step):
            asked.append(len(states))
            return self.policy.probabilities(states, step)

    def counting(log, **options):
        scans.append(len(options["policies"]))
        return evaluate(log, **options)

    evaluate = score.evaluate
    monkeypatch.setattr(score, "evaluate", counting)
    base, own = Asked(EAGER), Asked(WALK.behavior)
    mixed = {f"alpha {alpha}": Mixed(base, own, alpha) for alpha in (0.0, 0.25, 0.5, 1.0)}
    best = op.improve(LOG, WALK, generator=mixed, estimator="step-is")
    assert scans == [4]
    assert asked == [LOG.height] * 2
    alone = [op.improve(LOG, WALK, generator={name: mixed[name]}, estimator="step-is") for name in mixed]
    assert best.candidates["value"].to_list() == [one.candidates["value"].item() for one in alone]


def test_generators_of_other_packages_are_found_by_name():
    machine = op.domain("machine")
    log = machine.simulate(machine.behavior, 200, seed=1)
    best = op.improve(log, "machine", generator="thresholds", estimator="step-is")
    assert best.candidates["candidate"].to_list() == [f"repair from {wear}" for wear in range(1, 6)]
    assert best.candidates["episodes"].to_list() == [200] * 5
    assert best.winner.startswith("repair from")


def test_a_generator_that_is_named_gets_the_fitter():
    fitter = Recording()
    best = op.improve(LOG, WALK, generator="mixture", fitter=fitter)
    assert len(fitter.fits) == 4
    assert best.number_of_candidates == 40


@pytest.mark.parametrize(
    ("generator", "says"),
    [
        ({}, "no candidate"),
        ({"three": 3}, "policy 'three' is a int without probabilities"),
        ({"behavior": EAGER}, "name of the behaviour policy"),
        (Proposing([]), "generator Proposing has no candidate"),
        (Proposing([EAGER]), "FromCallable where an offpolicy.Candidate is due"),
        (Proposing([op.Candidate("a", EAGER)] * 2), "generator Proposing gives the name 'a' twice$"),
        (Proposing([op.Candidate("", EAGER)]), "generator Proposing gives an empty name$"),
        (Proposing([op.Candidate(3, EAGER)]), "generator Proposing gives the name 3, which is no text$"),
        (Proposing([op.Candidate("a", 3)]), "generator Proposing: policy 'a' is a int without probabilities"),
        (Proposing([op.Candidate("a", EAGER, 1.0)]), "train_fraction of 'a' .* not 1.0"),
        (Proposing([op.Candidate("a", EAGER, "x")]), "train_fraction of 'a' .* not 'x'"),
        (Proposing([op.Candidate("a", EAGER, 0.5, 3)]), "model of 'a' is a int without values"),
        (Silent(), "generator Silent gives a NoneType where candidates are due"),
        (3, "generator= takes a name"),
        ("mixtures", "did you mean 'mixture'"),
    ],
)
def test_what_is_no_candidate_is_refused(generator, says):
    with pytest.raises(op.OffPolicyError, match=says):
        op.improve(LOG, WALK, generator=generator, estimator="step-is")


def test_every_kind_of_log_gives_the_same_bits(tmp_path):
    frame = op.improve(LOG, WALK, generator=SMALL, caution=1.0)
    cuts = file_pieces(LOG, tmp_path / "parts", [100, 333])
    reader = LOG.to_arrow().to_reader(max_chunksize=50)
    for log in (LOG.lazy(), cuts, reader, LOG.to_arrow()):
        assert bits(op.improve(log, WALK, generator=SMALL, caution=1.0)) == bits(frame)
    assert bits(LOG.ope.improve(WALK, generator=SMALL, caution=1.0, threads=1)) == bits(frame)


def test_columns_may_have_other_names(tmp_path):
    names = {"episode": "id", "step": "t", "reward": "gain", "action": "move", "terminal": "end", "behavior_prob": "p"}
    columns = op.Columns(**names)
    renamed = LOG.rename(names).with_columns(reward=pl.lit(9.0))
    renamed.write_parquet(tmp_path / "log.parquet")
    plain = op.improve(LOG, WALK, generator=SMALL)
    for log in (renamed, tmp_path / "log.parquet"):
        assert op.improve(log, WALK, generator=SMALL, columns=columns).candidates.equals(plain.candidates)


def test_steps_may_count_from_one():
    later = LOG.with_columns(pl.col("step") + 1)
    assert op.improve(later, WALK, generator=SMALL).candidates.equals(op.improve(LOG, WALK, generator=SMALL).candidates)


def test_a_log_without_a_simulator_keeps_what_it_has():
    setting = LoggedDomain(("place",), 3, WALK.horizon, WALK.reward_range, WALK.discount)
    best = op.improve(LOG, setting, generator=POLICIES, estimator="step-is", caution=100.0)
    assert (best.winner, best.policy) == ("behavior", None)


def test_bad_probabilities_are_found_where_they_are(tmp_path):
    spoiled = LOG.with_columns(behavior_prob=pl.when(pl.row_index() == 17).then(0.0).otherwise("behavior_prob"))
    spoiled.write_parquet(tmp_path / "log.parquet")
    with pytest.raises(op.BadLogError, match=r"log\.parquet, row 17, .*behavior_prob = 0"):
        by_policies(tmp_path / "log.parquet")
    with pytest.raises(op.MissingColumnError, match="behavior_prob"):
        by_policies(LOG.drop("behavior_prob"))


def test_estimated_probabilities_are_told():
    found = op.estimate_behavior(LOG.drop("behavior_prob"), WALK)
    assert any("were estimated" in note for note in by_policies(found).notes)
