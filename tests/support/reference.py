"""Every estimator by its definition, slowly, in exact rational arithmetic.

An episode is a list of rows; a row is a dict of floats under the default column names. Floats become
`Fraction`s without rounding, so what comes out is the value that the formulas define for that very log.

The recursions run backwards from the end of the episode. The self-normalised estimators (`wis`, `step-wis`,
`wdr`) are literal sums over a rectangle of n episodes × H steps: an ended episode goes on with r=0, ρ=1 and
Q̂=V̂=0, and so keeps its weight in every later mean. `magic` blends such sums; see `reference_magic`.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

ESTIMATORS = ("mc", "is", "step-is", "wis", "step-wis", "reg", "dr", "dr-bsl", "dr-v2", "wdr", "magic")
#: All but the blend of `magic`, which is not unique where few trajectories leave several lengths without an error.
UNIQUE = tuple(estimator for estimator in ESTIMATORS if estimator != "magic")
UNWEIGHTED = ("mc", "reg")
SELF_NORMALISED = ("wis", "step-wis", "wdr")


@dataclass(frozen=True)
class Step:
    rho: Fraction = Fraction(1)
    reward: Fraction = Fraction(0)
    q_hat: Fraction = Fraction(0)
    v_hat: Fraction = Fraction(0)
    r_hat: Fraction = Fraction(0)
    transition_ratio: Fraction = Fraction(1)


@dataclass(frozen=True)
class Result:
    value: Fraction
    values: list[Fraction]
    std_error_squared: Fraction | None
    ess: Fraction | None

    @property
    def std_error(self) -> float | None:
        return None if self.std_error_squared is None else square_root(self.std_error_squared)


ABSORBED = Step()


def exact_steps(episode: list[dict], alpha: float = 0.0) -> list[Step]:
    return [exact_step(row, Fraction(alpha)) for row in episode]


def exact_step(row: dict, alpha: Fraction) -> Step:
    if "target_prob" in row:
        rho = Fraction(row["target_prob"]) / Fraction(row["behavior_prob"])
    else:
        rho = Fraction(row.get("ratio", 1.0))
    names = ("reward", "q_hat", "v_hat", "r_hat", "transition_ratio")
    return Step((1 - alpha) * rho + alpha, **{name: Fraction(row[name]) for name in names if name in row})


def evaluate(
    episodes: list[list[dict]],
    estimator: str,
    discount: float,
    *,
    horizon: int | None = None,
    baseline: float = 0.0,
    alpha: float = 0.0,
) -> Result:
    log = [exact_steps(episode, alpha) for episode in episodes]
    horizon = horizon or max(map(len, log))
    gamma = Fraction(discount)
    if estimator == "magic":
        from reference_magic import blend

        found = blend(absorbed(log, horizon), gamma)
        return Result(found.value, found.values, found.std_error_squared, effective_sample_size(log))
    if estimator in SELF_NORMALISED:
        log = absorbed(log, horizon)
        values = normalised_values(log, estimator, gamma)
        deviations = influence(log, estimator, gamma)
    else:
        values = [per_trajectory(steps, estimator, gamma, horizon, Fraction(baseline)) for steps in log]
        deviations = [value - mean(values) for value in values]
    n = len(log)
    squared = sum(psi * psi for psi in deviations) / (n * (n - 1)) if n > 1 else None
    ess = Fraction(n) if estimator in UNWEIGHTED else effective_sample_size(log)
    return Result(mean(values), values, squared, ess)


def per_trajectory(steps: list[Step], estimator: str, gamma: Fraction, horizon: int, c: Fraction) -> Fraction:
    match estimator:
        case "mc":
            return discounted_return(steps, gamma)
        case "is":
            return math.prod((s.rho for s in steps), start=Fraction(1)) * discounted_return(steps, gamma)
        case "step-is":
            return step_is(steps, gamma)
        case "reg":
            return steps[0].v_hat
        case "dr":
            return dr(steps, gamma)
        case "dr-bsl":
            return dr_bsl(steps, gamma, horizon, c)
        case "dr-v2":
            return dr_v2(steps, gamma)
    raise KeyError(estimator)


def discounted_return(steps: list[Step], gamma: Fraction) -> Fraction:
    return sum((gamma**t * s.reward for t, s in enumerate(steps)), start=Fraction(0))


def step_is(steps: list[Step], gamma: Fraction) -> Fraction:
    following = Fraction(0)
    for s in reversed(steps):
        following = s.rho * (s.reward + gamma * following)
    return following


def dr(steps: list[Step], gamma: Fraction) -> Fraction:
    following = Fraction(0)
    for s in reversed(steps):
        following = s.v_hat + s.rho * (s.reward + gamma * following - s.q_hat)
    return following


def dr_bsl(steps: list[Step], gamma: Fraction, horizon: int, c: Fraction) -> Fraction:
    following = Fraction(0)
    for t, s in reversed(list(enumerate(steps, start=1))):
        guess = c * sum(gamma**k for k in range(horizon - t + 1))
        following = guess + s.rho * (s.reward + gamma * following - guess)
    return following


def dr_v2(steps: list[Step], gamma: Fraction) -> Fraction:
    following = Fraction(0)
    next_v = Fraction(0)
    for s in reversed(steps):
        following = s.v_hat + s.rho * (s.reward + gamma * following - s.r_hat - gamma * next_v * s.transition_ratio)
        next_v = s.v_hat
    return following


def absorbed(log: list[list[Step]], horizon: int) -> list[list[Step]]:
    return [steps + [ABSORBED] * (horizon - len(steps)) for steps in log]


def cumulative_ratios(steps: list[Step]) -> list[Fraction]:
    """c_0=1, c_1, …, c_H."""
    c = [Fraction(1)]
    for s in steps:
        c.append(c[-1] * s.rho)
    return c


def normalised_values(log: list[list[Step]], estimator: str, gamma: Fraction) -> list[Fraction]:
    weights = [cumulative_ratios(steps) for steps in log]
    horizon = len(log[0])
    d = [mean([c[t] for c in weights]) for t in range(horizon + 1)]
    values = []
    for c, steps in zip(weights, log, strict=True):
        if estimator == "wis":
            values.append(c[horizon] / d[horizon] * discounted_return(steps, gamma))
        elif estimator == "step-wis":
            values.append(sum(gamma ** (t - 1) * c[t] / d[t] * s.reward for t, s in enumerate(steps, 1)))
        else:
            values.append(
                sum(
                    gamma ** (t - 1) * (c[t] / d[t] * (s.reward - s.q_hat) + c[t - 1] / d[t - 1] * s.v_hat)
                    for t, s in enumerate(steps, 1)
                )
            )
    return values


def influence(log: list[list[Step]], estimator: str, gamma: Fraction) -> list[Fraction]:
    """ψ_i, the derivative of the estimate by the weight of trajectory i, times n.

    `wis`, a ratio:   ψ_i = c_H,i (G_i - θ) / D_H
    `step-wis`:       ψ_i = Σ_t γ^{t-1} c_t,i (r_t,i - R_t) / D_t,           R_t = A_t / D_t
    `wdr`, Thomas & Brunskill (2016): θ = Σ_t γ^{t-1} [A_t/D_t + B_t/D_{t-1}], A_t = mean c_t (r_t - Q̂_t),
    B_t = mean c_{t-1} V̂_t, two ratios a step, each with the influence of a ratio:
                      ψ_i = Σ_t γ^{t-1} [c_t,i (r_t,i - Q̂_t,i - A_t/D_t) / D_t
                                         + c_{t-1},i (V̂_t,i - B_t/D_{t-1}) / D_{t-1}]
    """
    weights = [cumulative_ratios(steps) for steps in log]
    horizon = len(log[0])
    steps_of = range(1, horizon + 1)
    d = [mean([c[t] for c in weights]) for t in range(horizon + 1)]
    both = list(zip(weights, log, strict=True))
    if estimator == "wis":
        returns = [discounted_return(steps, gamma) for steps in log]
        theta = mean([c[horizon] * g for c, g in zip(weights, returns, strict=True)]) / d[horizon]
        return [c[horizon] * (g - theta) / d[horizon] for c, g in zip(weights, returns, strict=True)]
    if estimator == "step-wis":
        r = {t: mean([c[t] * steps[t - 1].reward for c, steps in both]) / d[t] for t in steps_of}
        return [
            sum(gamma ** (t - 1) * c[t] * (steps[t - 1].reward - r[t]) / d[t] for t in steps_of) for c, steps in both
        ]
    a = {t: mean([c[t] * (s[t - 1].reward - s[t - 1].q_hat) for c, s in both]) / d[t] for t in steps_of}
    b = {t: mean([c[t - 1] * s[t - 1].v_hat for c, s in both]) / d[t - 1] for t in steps_of}
    return [
        sum(
            gamma ** (t - 1)
            * (c[t] * (s[t - 1].reward - s[t - 1].q_hat - a[t]) / d[t] + c[t - 1] * (s[t - 1].v_hat - b[t]) / d[t - 1])
            for t in steps_of
        )
        for c, s in both
    ]


def effective_sample_size(log: list[list[Step]]) -> Fraction | None:
    last = [cumulative_ratios(steps)[-1] for steps in log]
    squares = sum(c * c for c in last)
    return sum(last) ** 2 / squares if squares else None


def mean(values: list[Fraction]) -> Fraction:
    return sum(values, start=Fraction(0)) / len(values)


def square_root(x: Fraction) -> float:
    """√x to the last bit or so, also where x itself is outside the range of a float."""
    shift = (x.numerator.bit_length() - x.denominator.bit_length()) // 2
    return math.ldexp(math.sqrt(x / Fraction(4) ** shift), shift)
