"""Problems that cannot be solved exactly: arrays that are not an MDP, policies without support, too many states."""

from __future__ import annotations

from offpolicy.errors import OffPolicyError, UsageError
from offpolicy.errors.kind import Kind

bad_array = Kind(
    "bad-array",
    UsageError,
    "{name} must {expected}",
    meaning="An array of transitions, rewards or probabilities has entries that are not numbers, or is ragged.",
    remedy="Give an array of finite numbers.",
    example={"name": "rewards", "expected": "hold numbers, not object"},
)
not_probabilities = Kind(
    "not-probabilities",
    UsageError,
    "{name}: the probabilities{at} {fault}",
    meaning="Probabilities that belong together are negative, above 1, or do not add to 1.",
    remedy="Make each of them from 0 to 1, and their sum 1.",
    example={"name": "initial", "at": "", "fault": "add to 0.9, not 1"},
)
beyond_range = Kind(
    "beyond-range",
    OffPolicyError,
    "the result is beyond the range of floats: shorten the horizon, or give the MDP in fractions.Fraction",
    meaning="An exact result is larger than any 64-bit float.",
    remedy="Shorten the horizon, or give the MDP in fractions.Fraction.",
)
not_a_tree = Kind(
    "not-a-tree",
    OffPolicyError,
    "the MDP is no {kind}: {why}; unroll=True gives the bound of unroll_{name}(mdp), which is one",
    meaning="A bound of Cramér and Rao holds for trees or for graphs without cycles, and this MDP is neither.",
    remedy="Ask with unroll=True, which unrolls the MDP first.",
    example={"kind": "tree", "why": "state 1 has two parents", "name": "tree"},
)
two_forms = Kind(
    "two-forms",
    UsageError,
    "rewards of {shape} may be {forms}: give them as (H, S, A, S)",
    meaning="The shape of the rewards can be read in two ways that mean different things.",
    remedy="Give the rewards as (H, S, A, S).",
    example={"shape": "(3, 3, 3)", "forms": "(H, S, A) or (S, A, S)"},
)
bad_model = Kind(
    "bad-model",
    UsageError,
    "the model: {error}",
    meaning="The model that is given with an MDP is not valid, for the reason that the message gives.",
    remedy="Give the model as the MDP is given.",
    example={"error": "transitions must be (2, 2, 2), not (3, 2, 3)"},
)
no_such_state = Kind(
    "no-such-state",
    UsageError,
    "{what} is not one of {states}",
    meaning="A named state does not exist in the MDP.",
    remedy="Name states by their numbers, from 0.",
    example={"what": "the terminal state 9", "states": "0 to 3"},
)
states_by_number = Kind(
    "states-by-number",
    UsageError,
    "terminal names states by their numbers, not by {found}",
    meaning="Terminal states are given by something other than their numbers.",
    remedy="Give the numbers of the terminal states, from 0.",
    example={"found": "bool"},
)
no_support = Kind(
    "no-support",
    OffPolicyError,
    "at step {step} in state {state} the target takes action {action} with probability {probability}, and the "
    "behaviour "
    "policy never: no log tells what follows, and no estimator is unbiased; step_is_bias tells how far step-wise "
    "importance sampling is off",
    meaning="The target policy takes an action that the behaviour policy never takes, so that no log can tell its "
    "value.",
    remedy="Take a behaviour policy that takes every action of the target policy; step_is_bias returns the bias.",
    example={"step": 0, "state": 1, "action": 0, "probability": "0.5"},
)
negative_variance = Kind(
    "negative-variance",
    UsageError,
    "a variance of rewards is {least}; none can be below 0",
    meaning="A variance of rewards is negative.",
    remedy="Give variances, which are at least 0.",
    example={"least": "-1"},
)
shapes_differ = Kind(
    "shapes-differ",
    UsageError,
    "{what} must have one {axis}, not {shapes}",
    meaning="Two arrays that belong together have different shapes.",
    remedy="Give arrays of the same shape.",
    example={"what": "mean and variance of rewards", "axis": "shape", "shapes": "(2,) and (3,)"},
)
no_broadcast = Kind(
    "no-broadcast",
    UsageError,
    "values {values} and probabilities {probabilities} do not broadcast",
    meaning="Values of rewards and their probabilities have shapes that cannot be broadcast together.",
    remedy="Give one probability for each value.",
    example={"values": "(2, 3)", "probabilities": "(4, 3)"},
)
too_many_states = Kind(
    "too-many-states",
    OffPolicyError,
    "the {kind} has more than max_states={limit} states; cramer_rao_{name}(..., unroll=True) gives its bound without "
    "building it",
    meaning="An MDP that is unrolled grows with every step, and here it exceeds the given limit of states.",
    remedy="Ask for the bound with unroll=True, or allow more states.",
    example={"kind": "tree", "limit": 1000, "name": "tree"},
)
