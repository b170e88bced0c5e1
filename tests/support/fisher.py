"""A constrained Cramér-Rao bound from the Fisher information matrix, in rational numbers, by enumeration.

The parameters θ are the probabilities of outcomes, in blocks that add to 1. A trajectory has each at most once. With g
the indicators of those that it has, and G its return,

    I = E_{π0}[(g/θ)(g/θ)ᵀ],    K = ∂v/∂θ = E_{π1}[G g/θ],    bound = K U (Uᵀ I U)⁻¹ Uᵀ Kᵀ

for any basis U of the directions in which every block still adds to 1 (Moore 2010). Here it is that of e_i - e_last in
each block: orthonormal or not, the bound is the same.
"""

from fractions import Fraction

from linear_equations import solve


def by_step(steps):
    """Outcomes of a DAG: blocks are (t, s, a), and the empty one for the first state."""
    return [first(steps)] + [((x.t, x.state, x.action), (x.following, x.reward)) for x in steps]


def by_history(steps):
    """Outcomes of a tree: a block is all that came before, rewards included."""
    found = [first(steps)]
    history = (found[0][1],)
    for x in steps:
        found.append(((*history, x.action), (x.reward, x.following)))
        history = (*history, x.action, x.reward, x.following)
    return found


def first(steps):
    return (), steps[0].state if steps else "ended"


def constrained_bound(process, behavior, target, outcomes):
    under0, under1 = list(process.paths(behavior)), list(process.paths(target))
    index = {}
    for _, steps in under0:
        for key in outcomes(steps):
            index.setdefault(key, len(index))
    theta = probabilities(under0, outcomes, index)
    n = len(index)
    fisher = [[Fraction(0)] * n for _ in range(n)]
    for p, steps in under0:
        has = [index[key] for key in outcomes(steps)]
        for i in has:
            for j in has:
                fisher[i][j] += p / (theta[i] * theta[j])
    k = [Fraction(0)] * n
    for p, steps in under1:
        for i in (index[key] for key in outcomes(steps)):
            k[i] += p * process.discounted(steps) / theta[i]
    u = directions(index)
    ku = [k[i] - k[last] for i, last in u]
    information = [[fisher[i][j] - fisher[i][y] - fisher[x][j] + fisher[x][y] for j, y in u] for i, x in u]
    return sum(a * b for a, b in zip(ku, solve(information, ku), strict=True))


def probabilities(paths, outcomes, index):
    """θ, as the share of each outcome in the probability of its block."""
    joint, block = [Fraction(0)] * len(index), {}
    for p, steps in paths:
        for key in outcomes(steps):
            joint[index[key]] += p
            block[key[0]] = block.get(key[0], 0) + p
    return [joint[i] / block[key[0]] for key, i in index.items()]


def directions(index):
    """Pairs (i, last): the direction e_i - e_last of a block."""
    blocks = {}
    for (block, _), i in index.items():
        blocks.setdefault(block, []).append(i)
    return [(i, last) for *others, last in blocks.values() for i in others]
