"""Where one estimator is another, or the truth, for every log (STATISTICS 6.4); `test_properties.py` lists them all."""

from fractions import Fraction

import offpolicy as op
import polars as pl
import reference
from generated import BASELINE, DISCOUNTS, NUMBERS, logs, magnitude, near, positive, terms
from hypothesis import given
from hypothesis import strategies as st
from logs import episodes_of, skeleton

IMPORTANCE = ("is", "step-is", "wis", "step-wis")


@given(logs(), DISCOUNTS)
def test_dr_without_a_model_is_step_is(log, discount):
    zero = log.with_columns(q_hat=0.0, v_hat=0.0, r_hat=0.0)
    ev = op.evaluate(zero, discount=discount, baseline=0.0)
    for estimator in ("dr", "dr-v2", "dr-bsl"):
        assert ev[estimator].value == ev["step-is"].value
        assert ev[estimator].std_error == ev["step-is"].std_error
    assert ev["wdr"].value == ev["step-wis"].value
    assert ev["wdr"].std_error == ev["step-wis"].std_error
    assert ev["reg"].value == 0.0


@given(logs(), DISCOUNTS)
def test_a_ratio_of_one_is_the_behaviour_policy(log, discount):
    ev = op.evaluate(log.with_columns(target_prob="behavior_prob"), discount=discount)
    scale = terms(log.with_columns(target_prob="behavior_prob"), discount)["mc"]
    for estimator in IMPORTANCE:
        assert ev[estimator].value == near(ev["mc"].value, scale)
        assert ev[estimator].std_error == near(ev["mc"].std_error, scale)
        assert ev[estimator].ess == ev["mc"].ess == ev.episodes
    for estimator in ("is", "step-is"):
        assert (ev[estimator].value, ev[estimator].std_error) == (ev["mc"].value, ev["mc"].std_error)


@given(logs(max_length=1), DISCOUNTS)
def test_one_step_is_the_bandit_dr(log, discount):
    """Eq. (8): V̂(s) + ρ (r - Q̂(s, a))."""
    ev = op.evaluate(log, discount=discount)
    values = ev.values("dr")["value"].to_list()
    for row, value in zip(log.iter_rows(named=True), values, strict=True):
        v_hat, r, q_hat = (Fraction(row[name]) for name in ("v_hat", "reward", "q_hat"))
        rho = Fraction(row["target_prob"]) / Fraction(row["behavior_prob"])
        assert value == near(v_hat + rho * (r - q_hat), float(abs(v_hat) + rho * (abs(r) + abs(q_hat))))
    for one, other in (("is", "step-is"), ("wis", "step-wis")):
        scale = terms(log, discount)[one]
        assert ev[one].value == near(ev[other].value, scale)
        assert ev[one].std_error == near(ev[other].std_error, scale)


@given(logs(max_episodes=3), DISCOUNTS, st.floats(0.0, 1.0))
def test_mixtures_with_the_behaviour_policy(log, discount, alpha):
    """α = 1 has ρ = 1, α = 0 is the policy itself, and between them ρ is (1 - α) ρ + α."""
    models = {role: role for role in ("q_hat", "v_hat", "r_hat", "transition_ratio")}
    policies = {
        "a": op.PolicyColumns(target_prob="target_prob", **models),
        "pi0": op.PolicyColumns(mixture_of="a", alpha=1.0),
        "same": op.PolicyColumns(mixture_of="a", alpha=0.0, **models),
        "mixed": op.PolicyColumns(mixture_of="a", alpha=alpha, **models),
    }
    ev = op.evaluate(log, discount=discount, policies=policies)
    scales, unweighted = terms(log, discount), terms(log.with_columns(target_prob="behavior_prob"), discount)
    for estimator in IMPORTANCE:
        assert ev["pi0", estimator].value == near(ev["behavior", "mc"].value, scales["mc"])
        assert ev["pi0", estimator].std_error == near(ev["behavior", "mc"].std_error, scales["mc"])
    episodes = episodes_of(log)
    for estimator in (*IMPORTANCE, "dr", "dr-v2", "wdr"):
        assert ev["same", estimator].value == near(ev["a", estimator].value, scales[estimator])
        expected = reference.evaluate(episodes, estimator, discount, alpha=alpha)
        assert ev["mixed", estimator].value == near(expected.value, scales[estimator] + unweighted[estimator])


@given(logs(), NUMBERS)
def test_a_constant_return_is_exact_for_wis(log, reward):
    """However long the episodes are: all of it comes with the first step."""
    first = pl.col("step") == log["step"].min()
    ev = op.evaluate(log.with_columns(reward=pl.when(first).then(reward).otherwise(0.0)), estimators=["wis"])
    assert (ev["wis"].value, ev["wis"].std_error) == (reward, 0.0)


@given(logs(), NUMBERS, DISCOUNTS)
def test_a_constant_reward_and_length_leave_no_error(log, reward, discount):
    length = log.group_by("episode").len()["len"].min()
    fixed = log.filter(pl.col("step") < log["step"].min() + length).with_columns(reward=reward)
    ev = op.evaluate(fixed, discount=discount, estimators=["mc", "wis", "step-wis"])
    for estimator in ("wis", "step-wis"):
        assert ev[estimator].value == near(ev["mc"].value)
        assert ev[estimator].std_error <= 1e-13 * abs(ev["mc"].value)


STATES, ACTIONS, END = 3, 4, 3


@st.composite
def worlds(draw):
    """Logs of a deterministic MDP from one state, with the true Q and V of a target policy; every number is dyadic.

    π0 takes all four actions alike, so that ρ = 4 π1.
    """
    horizon, gamma = draw(st.integers(1, 9)), draw(st.sampled_from([0.0, 0.5, 1.0]))
    tables = st.lists(
        st.lists(st.integers(0, END), min_size=ACTIONS, max_size=ACTIONS), min_size=STATES, max_size=STATES
    )
    follow, gain = draw(tables), draw(tables)
    target = [draw(st.permutations([0.0, 0.25, 0.25, 0.5])) for _ in range(STATES)]
    v = [[0.0] * (STATES + 1)]  # with k steps to go
    q = [[]]
    for _ in range(horizon):
        q.append([[gain[s][a] + gamma * v[-1][follow[s][a]] for a in range(ACTIONS)] for s in range(STATES)])
        v.append([sum(p * x for p, x in zip(target[s], q[-1][s], strict=True)) for s in range(STATES)] + [0.0])
    actions = st.lists(st.integers(0, ACTIONS - 1), min_size=horizon, max_size=horizon)
    episodes = []
    for chosen in draw(st.lists(actions, min_size=2, max_size=6)):
        rows, s = [], 0
        for left, a in zip(range(horizon, 0, -1), chosen, strict=True):
            rows.append((gain[s][a], 4 * target[s][a], q[left][s][a], v[left][s]))
            s = follow[s][a]
            if s == END:
                break
        episodes.append(rows)
    columns = pl.DataFrame(
        [row for rows in episodes for row in rows], schema=["reward", "ratio", "q_hat", "v_hat"], orient="row"
    )
    log = pl.concat([skeleton([len(rows) for rows in episodes]), columns.cast(pl.Float64)], how="horizontal")
    return log, gamma, v[horizon][0]


@given(worlds())
def test_the_true_values_of_a_deterministic_world_leave_no_variance(world):
    log, gamma, value = world
    ev = op.evaluate(log, discount=gamma)
    assert set(ev.values("dr")["value"]) == {value}
    assert (ev["dr"].value, ev["dr"].std_error) == (value, 0.0)
    if "wdr" in ev.table["estimator"]:
        assert ev["wdr"].value == near(value)
        assert ev["wdr"].std_error <= 1e-12 * abs(value)


HORIZON = 12


def guess(t, gamma):
    """b_t of dr-bsl, c (1 + γ + … + γ^{H-t}), t from 0."""
    return Fraction(BASELINE) * sum(gamma**k for k in range(HORIZON - t))


#: γ^{1-t} times the term of step t in the forward form, from c_{t-1}, c_t, the step, P̂/P of the one before, and b_t.
FORWARD = {
    "mc": lambda before, after, s, p, b: s.reward,
    "step-is": lambda before, after, s, p, b: after * s.reward,
    "dr": lambda before, after, s, p, b: before * s.v_hat + after * (s.reward - s.q_hat),
    "dr-bsl": lambda before, after, s, p, b: before * b + after * (s.reward - b),
    "dr-v2": lambda before, after, s, p, b: before * s.v_hat * (1 - p) + after * (s.reward - s.r_hat),
}


@given(logs(min_episodes=1, max_episodes=3), DISCOUNTS)
def test_forward_forms_are_the_backward_recursions(log, discount):
    """Exactly in rational arithmetic, trajectory by trajectory, and nearly in ours."""
    ev = op.evaluate(log, discount=discount, baseline=BASELINE, horizon=HORIZON)
    gamma = Fraction(discount)
    for estimator, term in FORWARD.items():
        for rows, value in zip(episodes_of(log), ev.values(estimator)["value"], strict=True):
            steps = reference.exact_steps(rows)
            c, p = reference.cumulative_ratios(steps), [Fraction(0), *(s.transition_ratio for s in steps)]
            forward = sum(gamma**t * term(c[t], c[t + 1], s, p[t], guess(t, gamma)) for t, s in enumerate(steps))
            assert forward == reference.per_trajectory(steps, estimator, gamma, HORIZON, Fraction(BASELINE))
            assert value == near(forward, magnitude(positive(rows), estimator, discount, HORIZON))


@given(logs(), DISCOUNTS)
def test_the_estimate_is_the_mean_of_the_values(log, discount):
    ev = op.evaluate(log, discount=discount, baseline=BASELINE)
    for estimator in reference.UNIQUE:
        values = ev.values(estimator)["value"]
        assert ev[estimator].value == near(sum(values) / len(values), values.abs().max())


@given(logs(min_episodes=3))
def test_a_target_that_never_acts_has_weight_zero(log):
    """From the step on where π1 is 0: what is earned later has no part in any estimate."""
    c = (pl.col("target_prob") / pl.col("behavior_prob")).cum_prod().over("episode")
    last = log.with_columns(c=c).group_by("episode", maintain_order=True).agg(pl.col("c").last())
    dead = last.filter(pl.col("c") == 0.0)["episode"].to_list()
    ev = op.evaluate(log)
    for estimator in ("is", "wis"):
        values = ev.values(estimator)
        assert set(values.filter(pl.col("episode").is_in(dead))["value"]) <= {0.0}
    other = log.with_columns(reward=pl.when(c == 0.0).then(1e6).otherwise("reward"))
    again = op.evaluate(other)
    for estimator in IMPORTANCE:
        assert again[estimator].value == ev[estimator].value
        assert again[estimator].std_error == ev[estimator].std_error
