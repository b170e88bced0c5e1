"""P̂/P for DR-v2: with it the estimator is unbiased for a wrong model, without it biased as Proposition 1 says."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import offpolicy as op
import polars as pl
import pytest
import reference
from enumerated import ALL, GAMMA, MODEL_Q, P_HAT, PI0, PI1, START, VALUE, H, P, r_hat, v_of
from logs import bits, file_pieces
from offpolicy.annotation import annotator
from offpolicy.folds import split
from offpolicy.models.fitters.kernel import Kernel
from offpolicy.models.fitters.tabular import Tabular
from offpolicy.policies import Mixture, TabularPolicy, Uniform
from offpolicy.protocols import LoggedDomain
from offpolicy.testing import Walk
from polars.testing import assert_frame_equal

WALK = Walk()
EAGER = WALK.policies["eager"]
GENTLE = Mixture(EAGER, WALK.behavior, 0.7)
GRID = op.Grid((3,))
TARGET = TabularPolicy(np.array(PI1, dtype=float), GRID)


class Process(LoggedDomain):
    """The MDP of the enumeration, which knows its P."""

    def transition_probability(self, states, actions, next_states):
        return np.array(P)[states[:, 0], actions, next_states[:, 0]] / 8


PROCESS = Process(("state",), actions=2, horizon=H, reward_range=(-2.0, 5.0), discount=GAMMA, name="process")


class WrongModel:
    """P̂ and R̂ of the enumeration, and the values of π1 that they imply."""

    def q_hat(self, states, actions, step):
        return self._of(lambda t, s, a: MODEL_Q(t, s, a), states[:, 0], actions, step)

    def v_hat(self, states, step):
        return self._of(lambda t, s, a: v_of(MODEL_Q, t, s), states[:, 0], states[:, 0], step)

    def r_hat(self, states, actions):
        return self._of(lambda t, s, a: r_hat(s, a), states[:, 0], actions, 0)

    def transition_probability(self, states, actions, next_states):
        return np.array(P_HAT)[states[:, 0], actions, next_states[:, 0]] / 8

    def _of(self, value, states, actions, step):
        rows = zip(np.broadcast_to(step, len(states)), states, actions, strict=True)
        return np.array([float(value(t + 1, s, a)) for t, s, a in rows], dtype=float)


def every_trajectory():
    """The log of all trajectories of the enumeration, each once; s' is in the next row."""
    return pl.DataFrame(
        [
            {
                "episode": episode,
                "step": t,
                "state": s,
                "action": a,
                "reward": float(reward),
                "behavior_prob": float(PI0[s][a]),
            }
            for episode, (_, steps) in enumerate(ALL)
            for t, (s, a, reward, _) in enumerate(steps)
        ]
    )


def mean_over_trajectories(log, estimator="dr-v2"):
    ev = op.evaluate(log, discount=GAMMA, horizon=H, estimators=[estimator])
    values = ev.values(estimator).sort("episode")["value"].to_list()
    return math.fsum(float(p) * x for (p, _), x in zip(ALL, values, strict=True))


def exact_mean(log):
    """E[dr-v2] in rational numbers, from the ratios of the log."""
    total = Fraction(0)
    for (p, steps), rows in zip(ALL, log.partition_by("episode", maintain_order=True), strict=True):
        episode = [
            {
                "reward": reward,
                "behavior_prob": Fraction(row["behavior_prob"]),
                "target_prob": PI1[s][a],
                "v_hat": v_of(MODEL_Q, t, s),
                "r_hat": r_hat(s, a),
                "transition_ratio": Fraction(row["transition_ratio"]).limit_denominator(8),
            }
            for t, ((s, a, reward, _), row) in enumerate(zip(steps, rows.iter_rows(named=True), strict=True), start=1)
        ]
        total += p * reference.evaluate([episode], "dr-v2", GAMMA, horizon=H).value
    return total


def bias_of_proposition_1():
    """Σ_t γ^t E_{π1}[Σ_s' (P̂ - P)(s'|s_t, a_t) V̂_{t+1}(s')], by enumeration of what π1 does."""
    gamma, bias = Fraction(GAMMA), Fraction(0)
    reached = dict(enumerate(START))
    for t in range(1, H):
        following = dict.fromkeys(range(3), Fraction(0))
        for (s, chance), a in product(reached.items(), (0, 1)):
            for then in range(3):
                wrong = Fraction(P_HAT[s][a][then] - P[s][a][then], 8)
                bias += gamma**t * chance * PI1[s][a] * wrong * v_of(MODEL_Q, t + 1, then)
                following[then] += chance * PI1[s][a] * Fraction(P[s][a][then], 8)
        reached = following
    return bias


def test_the_ratio_makes_dr_v2_unbiased_for_a_wrong_model_exactly():
    log = op.annotate(every_trajectory(), TARGET, WrongModel(), domain=PROCESS)
    for (_, steps), rows in zip(ALL, log.partition_by("episode", maintain_order=True), strict=True):
        going_on = [(s, a, then) for s, a, _, then in steps[:-1]]
        expected = [float(Fraction(P_HAT[s][a][then], P[s][a][then])) for s, a, then in going_on]
        assert rows["transition_ratio"].to_list() == [*expected, 1.0]
    assert exact_mean(log) == VALUE
    assert mean_over_trajectories(log) == pytest.approx(float(VALUE), rel=1e-12)


def test_without_the_ratio_the_bias_is_that_of_proposition_1():
    log = op.annotate(every_trajectory(), TARGET, WrongModel())
    assert "transition_ratio" not in log.columns
    bias = bias_of_proposition_1()
    assert exact_mean(log.with_columns(transition_ratio=1.0)) == VALUE + bias
    assert abs(bias) > Fraction(1, 25)
    assert mean_over_trajectories(log) == pytest.approx(float(VALUE + bias), rel=1e-12)


@pytest.mark.parametrize("training", [[0], [5, 17], [3, 40, 77, 100], list(range(0, 200, 3))])
def test_a_tabular_model_of_few_trajectories_is_unbiased_too(training):
    """Most pairs were never seen; the model leads them back to their state, where the MDP may never lead."""
    log = every_trajectory()
    seen = log.filter(pl.col("episode").is_in(training))
    values = Tabular(aggregate=GRID).fit(seen, PROCESS).values(TARGET, H, GAMMA)
    known = op.annotate(log, TARGET, values, domain=PROCESS)
    assert mean_over_trajectories(known) == pytest.approx(float(VALUE), rel=1e-12)
    taken = op.annotate(log, TARGET, values)
    assert abs(mean_over_trajectories(taken) - float(VALUE)) > 0.01
    pairs = set(seen.select("state", "action").iter_rows())
    unseen = pl.Series([pair not in pairs for pair in known.select("state", "action").iter_rows()])
    rows = known.filter(unseen)
    assert (rows["transition_ratio"] == 0).all()
    assert (rows["r_hat"] == rows["q_hat"]).all()


@pytest.fixture(scope="module")
def walked():
    return WALK.simulate(WALK.behavior, 300, seed=0)


@pytest.fixture(scope="module")
def values(walked):
    return op.fitter("tabular").fit(walked, WALK).values(EAGER, WALK.horizon, WALK.discount)


@pytest.mark.parametrize("logged", [True, False])
def test_every_cut_of_a_log_has_the_same_ratios(walked, values, logged, tmp_path, monkeypatch):
    monkeypatch.setattr(annotator, "BATCH_ROWS", 37)
    log = walked if logged else walked.drop("next_place", "terminal")
    whole = op.annotate(log, EAGER, values, domain=WALK)
    assert whole.columns == [*log.columns, "target_prob", "q_hat", "v_hat", "r_hat", "transition_ratio"]
    file_pieces(log, tmp_path, [7, 8, 211, 700, 1111], row_group_size=50)
    for other in (log.lazy(), tmp_path / "*.parquet", pl.scan_parquet(tmp_path / "*.parquet")):
        lazy = op.annotate(other, EAGER, values, domain=WALK)
        assert_frame_equal(lazy.collect(engine="streaming"), whole, check_exact=True)
        assert_frame_equal(lazy.head(50).collect(), whole.head(50), check_exact=True)
        assert_frame_equal(
            lazy.filter(pl.col("step") == 1).select("transition_ratio").collect(),
            whole.filter(pl.col("step") == 1).select("transition_ratio"),
            check_exact=True,
        )


def test_a_logged_next_state_and_the_next_row_give_the_same_estimate(walked, values):
    bare = walked.drop("next_place", "terminal")
    both = [op.annotate(log, EAGER, values, domain=WALK) for log in (walked, bare)]
    goes_on = pl.col("episode") == pl.col("episode").shift(-1)
    ratios = [log.filter(goes_on)["transition_ratio"].to_list() for log in both]
    assert ratios[0] == ratios[1]
    assert len(set(ratios[0])) > 5
    found = [op.evaluate(log, discount=WALK.discount, estimators=["dr-v2"]) for log in both]
    assert bits(found[0]) == bits(found[1])


def test_the_last_row_of_an_episode_has_ratio_one(walked, values):
    log = op.annotate(walked, EAGER, values, domain=WALK)
    assert (log.filter("terminal")["transition_ratio"] == 1).all()


class Elsewhere(Walk):
    """A walk on which nobody goes from place 3 to place 4."""

    def transition_probability(self, states, actions, next_states):
        found = super().transition_probability(states, actions, next_states)
        return np.where((states[:, 0] == 3) & (next_states[:, 0] == 4), 0.0, found)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("logged", [False, True])
def test_a_transition_that_the_domain_excludes_is_named(walked, values, logged, lazy):
    log = walked if logged else walked.drop("next_place", "terminal")
    first = walked.filter((pl.col("place") == 3) & (pl.col("next_place") == 4)).row(0, named=True)
    where = f"episode {first['episode']}, step {first['step']}: next_place = 4"
    why = "cannot follow the state 3 and action .: domain 'walk' gives it probability 0"
    with pytest.raises(op.OffPolicyError, match=rf"(?s){why}.*{where}"):
        op.annotate(log.lazy() if lazy else log, EAGER, values, domain=Elsewhere()).lazy().collect()


def test_rows_in_no_order_need_columns_of_the_next_state(walked, values):
    shuffled = walked.sample(fraction=1.0, shuffle=True, seed=1)
    with pytest.raises(op.BadLogError, match="must come one after the other"):
        op.annotate(shuffled.drop("next_place"), EAGER, values, domain=WALK, first_step=0)
    found = op.annotate(shuffled, EAGER, values, domain=WALK, first_step=0)
    expected = op.annotate(walked, EAGER, values, domain=WALK)
    assert_frame_equal(found.sort("episode", "step"), expected, check_exact=True)


@pytest.mark.parametrize(
    ("fitter", "why"),
    [
        (Tabular(aggregate=op.Grid((4,), scale=(0.5,))), "several states may share a cell"),
        (Tabular(aggregate=lambda states: states[:, 0], cells=7), "several states may share a cell"),
        (Kernel(), "KernelValues has no transition_probability"),
    ],
)
def test_a_model_of_cells_has_no_ratio_and_the_notes_say_why(walked, fitter, why):
    values = fitter.fit(walked, WALK).values(EAGER, WALK.horizon, WALK.discount)
    assert "transition_ratio" not in op.annotate(walked, EAGER, values, op.Columns.of(WALK), domain=WALK).columns
    into = op.PolicyColumns(r_hat="r", transition_ratio="p")
    with pytest.raises(op.UsageError, match=why):
        op.annotate(walked, EAGER, values, op.Columns.of(WALK), into, domain=WALK)
    options = {"policy": GENTLE, "fitter": fitter, "estimators": ["dr", "dr-v2"]}
    cf = op.cross_fit(walked, WALK, **options)
    (note,) = (note for note in cf.notes if "P̂/P" in note)
    assert note.startswith("dr-v2 takes P̂/P = 1: ")
    assert why in note
    assert bits(cf) == bits(op.cross_fit(walked, WALK, transition_ratio=False, **options))
    assert "takes the model's transitions" in cf.evaluation.verdict_on(cf["dr-v2"]).rule


def test_states_that_are_not_stored_as_whole_numbers_have_no_ratio(walked):
    log = walked.with_columns(pl.col("place", "next_place").cast(float))
    cf = op.cross_fit(log, WALK, policy=EAGER, estimators=["dr-v2"])
    assert any("not stored as whole numbers" in note for note in cf.notes)
    values = op.fitter("tabular").fit(walked, WALK).values(EAGER, WALK.horizon, WALK.discount)
    with pytest.raises(op.OffPolicyError, match="was asked for other states"):
        op.annotate(log.with_columns(pl.col("place") + 0.25), EAGER, values, domain=WALK)


def test_into_names_the_ratio_with_its_r_hat_or_not_at_all(walked, values):
    with pytest.raises(op.UsageError, match="without r_hat"):
        op.annotate(walked, EAGER, values, into=op.PolicyColumns(transition_ratio="p"), domain=WALK)
    with pytest.raises(op.UsageError, match="no domain was given"):
        op.annotate(walked, EAGER, values, into=op.PolicyColumns(r_hat="r", transition_ratio="p"))
    into = op.PolicyColumns.named("eager", "target_prob", "v_hat", "r_hat", "transition_ratio")
    found = op.annotate(walked, EAGER, values, into=into, domain=WALK)
    whole = op.annotate(walked, EAGER, values, domain=WALK)
    assert found["transition_ratio_eager"].to_list() == whole["transition_ratio"].to_list()
    assert found["r_hat_eager"].to_list() == whole["r_hat"].to_list()


@pytest.mark.parametrize("told", [np.full, lambda n, p: np.full((n, 1), p)])
def test_what_is_no_probability_is_refused(walked, values, told):
    class Loud(Walk):
        def transition_probability(self, states, actions, next_states):
            return told(len(states), 1.5)

    with pytest.raises(op.OffPolicyError, match="transition_probability"):
        op.annotate(walked, EAGER, values, domain=Loud())


COIN_TABLE = np.array([[[0.25, 0.75], [1.0, 0.0]], [[0.5, 0.25], [0.0, 1.0]]])
TOSS = TabularPolicy(np.array([[0.25, 0.75], [0.75, 0.25]]), op.Grid((2,)))


class Coin(LoggedDomain):
    """Two states and two steps, with chances to end."""

    def transition_probability(self, states, actions, next_states):
        return COIN_TABLE[states[:, 0], actions, next_states[:, 0]]


COIN = Coin(("state",), actions=2, horizon=2, reward_range=(0.0, 4.0), discount=0.5, name="coin")


def tosses():
    """All trajectories from state 0 under the uniform policy: probability and (state, action, reward)."""
    for a in (0, 1):
        ends = 1 - COIN_TABLE[0, a].sum()
        if ends:
            yield 0.5 * ends, [(0, a, 1.0 + a)]
        for then, b in product((0, 1), (0, 1)):
            if chance := 0.25 * COIN_TABLE[0, a, then]:
                yield chance, [(0, a, 1.0 + a), (then, b, 4.0 * then + b)]


def coin_log(trajectories):
    return pl.DataFrame(
        [
            {"episode": e, "step": t, "state": s, "action": a, "reward": r, "behavior_prob": 0.5}
            for e, steps in enumerate(trajectories)
            for t, (s, a, r) in enumerate(steps)
        ]
    )


def test_cross_fitted_dr_v2_is_unbiased_over_all_possible_logs():
    truth = math.fsum(
        p * 0.5**t * math.prod(TOSS.table[s, a] / 0.5 for s, a, _ in steps[: t + 1]) * r
        for p, steps in tosses()
        for t, (_, _, r) in enumerate(steps)
    )
    means = {}
    for known in (True, False):
        options = {"fitter": Tabular(aggregate=op.Grid((2,))), "estimators": ["dr-v2"], "transition_ratio": known}
        means[known] = math.fsum(
            p * q * op.cross_fit(coin_log([one, two]), COIN, policy=TOSS, **options)["dr-v2"].value
            for (p, one), (q, two) in product(tosses(), tosses())
        )
    assert means[True] == pytest.approx(truth, rel=1e-12)
    assert abs(means[False] - truth) > 0.02


def test_cross_fit_fills_the_ratio_says_so_and_drops_the_reproach(walked):
    cf = op.cross_fit(walked, WALK, policy=GENTLE, interval="hoeffding")
    plain = op.cross_fit(walked, WALK, policy=GENTLE, interval="hoeffding", transition_ratio=False)
    law = "dr-v2 has P̂/P of every transition, with P of domain 'walk' and P̂ of the model"
    assert law in cf.notes
    assert not any("P̂/P" in note for note in plain.notes)
    assert "takes the model's transitions" in plain.evaluation.verdict_on(plain["dr-v2"]).rule
    assert "takes the model's transitions" not in cf.evaluation.verdict_on(cf["dr-v2"]).rule
    assert "only if its model is right" in plain["dr-v2"].interval().reason
    assert "no range of dr-v2 is known" in cf["dr-v2"].interval().reason
    assert cf.to_dict()["settings"]["cross_fit"]["transition_ratio"] is True
    assert plain.to_dict()["settings"]["cross_fit"]["transition_ratio"] is False
    assert cf["dr-v2"].value != plain["dr-v2"].value
    others = ("is", "step-is", "dr", "wdr", "reg")
    assert [cf[name].value for name in others] == [plain[name].value for name in others]
    assert not any("P̂/P" in note for note in op.cross_fit(walked, WALK, policy=EAGER, estimators=["dr"]).notes)


@pytest.mark.parametrize("logged", [True, False])
def test_cross_fit_has_the_same_bits_however_the_log_is_cut(walked, logged, tmp_path):
    log = walked if logged else walked.drop("next_place", "terminal")
    policies = {"eager": EAGER, "any": Uniform(3, WALK.legal)}
    options = {"policy": policies, "estimators": ["dr", "dr-v2"], "folds": 3, "behavior": "counts"}
    expected = op.cross_fit(log, WALK, **options)
    assert any("dr-v2 has P̂/P" in note for note in expected.notes)
    files = file_pieces(log, tmp_path, [7, 8, 211, 700, 1111], row_group_size=50)
    for other in (log.lazy(), files, files[::-1] if logged else files):
        assert bits(op.cross_fit(other, WALK, **options)) == bits(expected)


def test_a_domain_with_another_horizon_keeps_its_transitions(walked):
    cf = op.cross_fit(walked, WALK, policy=EAGER, horizon=20, estimators=["dr-v2"], truncation="as-terminal")
    assert any("dr-v2 has P̂/P" in note for note in cf.notes)


def test_folds_of_which_only_some_know_their_transitions_are_refused(walked):
    class Fickle:
        fits = 0

        def fit(self, log, domain):
            self.fits += 1
            fitter = Tabular() if self.fits == 1 else Tabular(aggregate=lambda states: states[:, 0], cells=7)
            return fitter.fit(log, domain)

    with pytest.raises(op.OffPolicyError, match="only some folds have P̂/P"):
        op.cross_fit(walked, WALK, policy=EAGER, fitter=Fickle())
    with pytest.raises(op.UsageError, match="transition_ratio"):
        op.cross_fit(walked, WALK, policy=EAGER, transition_ratio="no")


def test_many_logs_are_right_on_average(walked):
    truth = WALK.exact_values(EAGER)[1][0, 3]
    found = [
        op.cross_fit(WALK.simulate(WALK.behavior, 60, seed), WALK, policy=EAGER, estimators=["dr-v2"])["dr-v2"].value
        for seed in range(100)
    ]
    assert abs(np.mean(found) - truth) < 3.5 * np.std(found, ddof=1) / np.sqrt(len(found))


def test_candidates_are_scored_with_the_ratio_too(walked):
    best = op.improve(walked, WALK, generator={"eager": EAGER}, estimator="dr-v2", train_fraction=0.4)
    train, test = split(walked, 0.4)
    values = op.fitter("tabular").fit(train, WALK).values(EAGER, WALK.horizon, WALK.discount)
    log = op.annotate(test, EAGER, values, domain=WALK)
    by_hand = op.evaluate(log, discount=WALK.discount, horizon=WALK.horizon, estimators=["dr-v2"])["dr-v2"]
    assert best.candidates["value"][0] == by_hand.value
    assert best.candidates["std_error"][0] == by_hand.std_error
    plain = op.improve(
        walked, WALK, generator={"eager": EAGER}, estimator="dr-v2", train_fraction=0.4, transition_ratio=False
    )
    taken = op.evaluate(log.drop("transition_ratio", "r_hat").pipe(op.annotate, EAGER, values), discount=WALK.discount)
    assert plain.candidates["value"][0] == taken["dr-v2"].value != by_hand.value
    assert [found.settings["transition_ratio"] for found in (best, plain)] == [True, False]


def test_the_ratios_of_a_gymnasium_table_are_those_of_its_table_and_of_counts():
    import gymnasium

    lake = op.from_gymnasium("FrozenLake-v1", horizon=20, discount=0.9)
    log, other = (lake.simulate(lake.behavior, n, seed) for n, seed in ((400, 1), (200, 2)))
    table = gymnasium.make("FrozenLake-v1").unwrapped.P
    counts, pairs = {}, {}
    for s, a, then, ended in log.select("state", "action", "next_state", "terminal").iter_rows():
        pairs[s, a] = pairs.get((s, a), 0) + 1
        counts[s, a, then] = counts.get((s, a, then), 0) + (not ended)
    values = op.fitter("tabular").fit(log, lake).values(lake.behavior, lake.horizon, lake.discount)
    annotated = op.annotate(other, lake.behavior, values, domain=lake)
    compared = 0
    rows = annotated.filter(~pl.col("terminal")).select("state", "action", "next_state", "transition_ratio")
    for s, a, then, ratio in rows.iter_rows():
        p = math.fsum(chance for chance, following, _, ended in table[s][a] if following == then and not ended)
        known = counts.get((s, a, s)) != pairs.get((s, a))  # neither unseen nor always back to where it was
        expected = counts.get((s, a, then), 0) / pairs[s, a] / p if known and (s, a) in pairs else 0.0
        assert ratio == pytest.approx(expected, rel=1e-12)
        compared += known
    assert compared > 1000
    for s, a in product(range(16), range(4)):
        states, actions = np.full((16, 1), s), np.full(16, a)
        p = lake.transition_probability(states, actions, np.arange(16)[:, None])
        ends = math.fsum(chance for chance, _, _, ended in table[s][a] if ended)
        assert p.sum() == pytest.approx(1 - ends, abs=1e-12)


def test_dr_v2_of_a_gymnasium_table_is_right():
    lake = op.from_gymnasium("FrozenLake-v1", horizon=15, discount=0.9)
    target = TabularPolicy(np.tile([0.2, 0.3, 0.3, 0.2], (16, 1)), lake.grid)
    cf = op.cross_fit(lake.simulate(lake.behavior, 4000, 3), lake, policy=target, estimators=["dr", "dr-v2"])
    assert any("dr-v2 has P̂/P" in note for note in cf.notes)
    assert abs(cf["dr-v2"].value - lake.value(target)) < 4 * cf["dr-v2"].std_error
