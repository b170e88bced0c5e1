"""The reference is tested too: against derivatives, laws and identities that share no code with it."""

import random
from dataclasses import dataclass
from fractions import Fraction

import pytest
import reference
import reference_magic
from logs import episodes_of, random_log

DISCOUNTS = [0.0, 0.5, 0.9, 1.0]


@dataclass(frozen=True)
class Dual:
    """a + bε with ε²=0: arithmetic that carries an exact derivative."""

    a: Fraction
    b: Fraction = Fraction(0)

    def __add__(self, other):
        return Dual(self.a + other.a, self.b + other.b)

    def __mul__(self, other):
        return Dual(self.a * other.a, self.a * other.b + self.b * other.a)

    def __truediv__(self, other):
        return Dual(self.a / other.a, (self.b * other.a - self.a * other.b) / other.a**2)


def weighted_mean(weights, values):
    top = bottom = Dual(Fraction(0))
    for w, x in zip(weights, values, strict=True):
        top += w * Dual(x)
        bottom += w
    return top / bottom


def weighted_estimate(log, estimator, gamma, weights):
    """The self-normalised estimators of a log in which trajectory i counts w_i times."""
    horizon = len(log[0])
    c = [reference.cumulative_ratios(steps) for steps in log]
    indices = range(len(log))

    def mean(f):
        return weighted_mean(weights, [f(i) for i in indices])

    def d(t):
        return mean(lambda i: c[i][t])

    if estimator == "wis":
        returns = [reference.discounted_return(steps, gamma) for steps in log]
        return mean(lambda i: c[i][horizon] * returns[i]) / d(horizon)
    total = Dual(Fraction(0))
    for t in range(horizon):
        power = Dual(gamma**t)
        if estimator == "step-wis":
            total += power * (mean(lambda i, t=t: c[i][t + 1] * log[i][t].reward) / d(t + 1))
        else:
            error = mean(lambda i, t=t: c[i][t + 1] * (log[i][t].reward - log[i][t].q_hat))
            guess = mean(lambda i, t=t: c[i][t] * log[i][t].v_hat)
            total += power * (error / d(t + 1) + guess / d(t))
    return total


@pytest.mark.parametrize("discount", [0.5, 1.0])
@pytest.mark.parametrize("estimator", reference.SELF_NORMALISED)
def test_influence_is_the_derivative_by_the_weight_of_a_trajectory(estimator, discount):
    episodes = episodes_of(random_log(1, episodes=4, horizon=3))
    gamma = Fraction(discount)
    log = reference.absorbed([reference.exact_steps(e) for e in episodes], 3)
    n = len(log)
    derivatives = []
    for i in range(n):
        weights = [Dual(Fraction(1), Fraction(int(i == j))) for j in range(n)]
        estimate = weighted_estimate(log, estimator, gamma, weights)
        derivatives.append(n * estimate.b)
    assert estimate.a == reference.evaluate(episodes, estimator, discount).value
    assert derivatives == reference.influence(log, estimator, gamma)
    assert sum(derivatives) == 0


def weighted_return(log, gamma, j, weights):
    """g_j of a log in which trajectory i counts w_i times, from the paper's formula."""
    c = [reference.cumulative_ratios(steps) for steps in log]
    horizon, indices = len(log[0]), range(len(log))

    def mean(t, f):
        """Σ_i w_t f of the paper."""
        top = weighted_mean(weights, [c[i][t] * f(log[i]) for i in indices])
        return top / weighted_mean(weights, [c[i][t] for i in indices])

    total = Dual(Fraction(0))
    for t in range(j):
        gain = mean(t + 1, lambda steps, t=t: steps[t].reward)
        control = mean(t + 1, lambda steps, t=t: -steps[t].q_hat) + mean(t, lambda steps, t=t: steps[t].v_hat)
        total += Dual(gamma**t) * (gain + control)
    return total + (Dual(gamma**j) * mean(j, lambda steps: steps[j].v_hat) if j < horizon else Dual(Fraction(0)))


@pytest.mark.parametrize("discount", [0.5, 1.0])
def test_influence_of_each_return_is_the_derivative_by_the_weight_of_a_trajectory(discount):
    episodes = episodes_of(random_log(1, episodes=4, horizon=3))
    gamma = Fraction(discount)
    log = reference.absorbed([reference.exact_steps(e) for e in episodes], 3)
    n = len(log)
    for j in range(4):
        derivatives = []
        for i in range(n):
            weights = [Dual(Fraction(1), Fraction(int(i == k))) for k in range(n)]
            found = weighted_return(log, gamma, j, weights)
            derivatives.append(n * found.b)
        assert found.a == reference.mean(reference_magic.returns(log, gamma, j))
        assert derivatives == reference_magic.influence(log, gamma, j)
    assert reference_magic.influence(log, gamma, 3) == reference.influence(log, "wdr", gamma)
    assert reference_magic.returns(log, gamma, 3) == reference.evaluate(episodes, "wdr", discount).values
    assert reference_magic.returns(log, gamma, 0) == reference.evaluate(episodes, "reg", discount).values


def test_the_least_quadratic_form_leaves_no_length_that_would_lower_it():
    rng = random.Random(3)
    for _ in range(20):
        points = [[Fraction(rng.randint(-4, 4)) for _ in range(3)] for _ in range(5)]
        matrix = [[sum(a * b for a, b in zip(p, q, strict=True)) for q in points] for p in points]
        x = reference_magic.least(matrix)
        assert sum(x) == 1
        assert min(x) >= 0
        slopes = [sum(m * share for m, share in zip(row, x, strict=True)) for row in matrix]
        assert min(slopes) == reference_magic.quadratic(matrix, x)


def test_influence_of_step_wis_is_the_printed_formula_with_ended_episodes():
    episodes = episodes_of(random_log(2, episodes=4, horizon=4))
    gamma = Fraction(0.9)
    short = [reference.exact_steps(e) for e in episodes]
    log = reference.absorbed(short, 4)
    c = [reference.cumulative_ratios(steps) for steps in log]
    n = len(log)
    d = {t: sum(c[i][t] for i in range(n)) / n for t in range(1, 5)}
    r = {t: sum(c[i][t] * log[i][t - 1].reward for i in range(n)) / sum(c[i][t] for i in range(n)) for t in range(1, 5)}
    psi = []
    for i in range(n):
        end = len(short[i])
        running = sum(gamma ** (t - 1) * c[i][t] / d[t] * (log[i][t - 1].reward - r[t]) for t in range(1, end + 1))
        ended = c[i][end] * sum(gamma ** (t - 1) * r[t] / d[t] for t in range(end + 1, 5))
        psi.append(running - ended)
    assert min(map(len, short)) < 4
    assert psi == reference.influence(log, "step-wis", gamma)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_recursions_unroll_forwards(discount):
    gamma = Fraction(discount)
    for episode in episodes_of(random_log(3)):
        steps = reference.exact_steps(episode)
        c = reference.cumulative_ratios(steps)
        forward_is = sum(gamma**t * c[t + 1] * s.reward for t, s in enumerate(steps))
        forward_dr = sum(gamma**t * (c[t] * s.v_hat + c[t + 1] * (s.reward - s.q_hat)) for t, s in enumerate(steps))
        assert reference.step_is(steps, gamma) == forward_is
        assert reference.dr(steps, gamma) == forward_dr


def test_dr_v2_telescopes_without_transition_ratios():
    gamma = Fraction(0.9)
    for episode in episodes_of(random_log(4).drop("transition_ratio")):
        steps = reference.exact_steps(episode)
        c = reference.cumulative_ratios(steps)
        telescoped = steps[0].v_hat + sum(gamma**t * c[t + 1] * (s.reward - s.r_hat) for t, s in enumerate(steps))
        assert reference.dr_v2(steps, gamma) == telescoped


@pytest.mark.parametrize("estimator", reference.ESTIMATORS)
def test_estimate_is_the_mean_of_the_values(estimator):
    result = reference.evaluate(episodes_of(random_log(5)), estimator, 0.9, baseline=0.5)
    assert result.value == sum(result.values) / len(result.values)


@pytest.mark.parametrize("estimator", reference.UNIQUE)
def test_a_doubled_log_shrinks_the_squared_error_exactly(estimator):
    episodes = episodes_of(random_log(6, episodes=4, horizon=3))
    n = len(episodes)
    once = reference.evaluate(episodes, estimator, 0.9, baseline=0.5)
    twice = reference.evaluate(episodes * 2, estimator, 0.9, baseline=0.5)
    assert twice.value == once.value
    assert twice.std_error_squared == once.std_error_squared * Fraction(n - 1, 2 * n - 1)


def test_wis_has_no_error_on_a_constant_return():
    episodes = [[{"reward": 2.0, "ratio": ratio}] * 3 for ratio in (0.1, 0.7, 1.9)]
    for estimator in ("wis", "step-wis"):
        result = reference.evaluate(episodes, estimator, 0.5)
        assert result.value == Fraction(7, 2)
        assert result.std_error_squared == 0


def test_square_root_reaches_beyond_floats():
    assert reference.square_root(Fraction(10) ** 400) == 1e200
    assert reference.square_root(Fraction(1, 10**400)) == 1e-200
    assert reference.square_root(Fraction(2)) == 2**0.5
    assert reference.square_root(Fraction(0)) == 0.0
    for x in (Fraction(2), Fraction(10) ** 400 / 3, Fraction(1, 10**400)):
        assert abs(reference_magic.square_root(x) ** 2 / x - 1) < Fraction(1, 10**80)
