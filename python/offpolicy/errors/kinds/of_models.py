"""Models that cannot be fitted or queried, grids that are too fine, annotations that do not fit."""

from __future__ import annotations

from offpolicy._util.words import TRAIN_FRACTION
from offpolicy.errors import OffPolicyError, UnknownTransitionsError, UsageError
from offpolicy.errors.kind import Kind

nothing_to_annotate = Kind(
    "nothing-to-annotate",
    UsageError,
    "annotate needs a policy=, a model= or both",
    meaning="Neither a policy nor a model was given to annotate the log with.",
    remedy="Give a policy, a model or both.",
)
into_does_not_fit = Kind(
    "into-does-not-fit",
    UsageError,
    "into= {fault}",
    meaning="The columns to be written do not match the policies and models that are given.",
    remedy="Give one PolicyColumns for each policy, with names of the columns that this policy and its model can fill.",
    example={"fault": "names a column twice: q_hat, q_hat"},
)
ratio_of_some_folds = Kind(
    "ratio-of-some-folds",
    OffPolicyError,
    "only some folds have P̂/P: {why}; leave it out with transition_ratio=False",
    meaning="The models of some folds know transition probabilities, and others do not.",
    remedy="Leave the ratio out with transition_ratio=False.",
    example={"why": "the tabular model was fitted to states that are not stored as whole numbers"},
)
no_probability = Kind(
    "no-probability",
    OffPolicyError,
    "the {what}'s transition_probability of the state {next_state} after {state} and action {action} is {found}, which "
    "is no probability",
    meaning="A domain or a model returned a transition probability that is negative, above 1 or not finite.",
    remedy="Mend transition_probability of the {what}.",
    example={"what": "model", "next_state": "(1,)", "state": "(0,)", "action": 2, "found": "1.5"},
)
transitions_not_told = Kind(
    "transitions-not-told",
    UnknownTransitionsError,
    "{why}",
    meaning="A domain or a model does not know P(s'|s, a), for the reason that the message gives.",
    remedy="Leave the transition ratio out, or take a domain and a model that know transition probabilities.",
    example={"why": "several states may share a cell of the tabular model, whose P̂ is of cells"},
)
cells_without_probabilities = Kind(
    "cells-without-probabilities",
    OffPolicyError,
    "the tabular model knows P̂ of whole numbers, and was asked for other states",
    meaning="A tabular model that was fitted to states of whole numbers was asked for other states.",
    remedy="Ask for states as they are in the log that the model was fitted to.",
)
domain_has_other_state = Kind(
    "domain-has-other-state",
    UsageError,
    "domain {name} has the state {state}, and not {found}",
    meaning="The columns of the state that were named are not those of the domain.",
    remedy="Name the columns of the state as the domain does.",
    example={"name": "'walk'", "state": "place", "found": "x, y"},
)
no_grid = Kind(
    "no-grid",
    UsageError,
    "domain {name} has no grid{why}: give {how}",
    meaning="A model counts in cells, and the domain does not say how its states are put into cells.",
    remedy="Give {how}.",
    example={
        "name": "'walk'",
        "why": "",
        "how": "aggregate= (an op.Grid, op.Categories.of(log, ...) for texts, or a function with cells=)",
    },
)
wrong_answers = Kind(
    "wrong-answers",
    OffPolicyError,
    "the model's lookup_many must give a list of answers, one at least and {most} at most",
    meaning="The method lookup_many of a model returned no answer, or more answers than there were questions.",
    remedy="Let lookup_many return one answer for each question that it takes, in their order.",
    example={"most": 3},
)
cells_not_counted = Kind(
    "cells-not-counted",
    UsageError,
    "a function for aggregate= needs cells=, the number of its cells",
    meaning="A function that puts states into cells does not say how many cells there are.",
    remedy="Give cells= too.",
)
cell_outside = Kind(
    "cell-outside",
    OffPolicyError,
    "row {row}: {fault}",
    meaning="A cell, an action or a step lies outside those of the model.",
    remedy="Mend the row that the message names, or the function that puts states into cells.",
    example={"row": 3, "fault": "the cell of state [2] is 9, not 0 to 8"},
)
state_outside_grid = Kind(
    "state-outside-grid",
    OffPolicyError,
    "row {row}: coordinate {coordinate} of the state is {value}, outside the grid, which goes {goes}",
    meaning="A state lies in no cell of the grid.",
    remedy="Choose a grid that holds every state, or mend the state of this row.",
    example={"row": 1, "coordinate": 0, "value": 9, "goes": "from -0.5 up to 6.5"},
)
bad_grid = Kind(
    "bad-grid",
    UsageError,
    "a grid {fault}",
    meaning="The coordinates, sizes and limits of a grid do not fit each other.",
    remedy="Give one size, one lower and one upper limit for each coordinate.",
    example={"fault": "needs at least one cell a coordinate, not (0, 3)"},
)
grid_too_fine = Kind(
    "grid-too-fine",
    UsageError,
    "{what}, {limit}: {coarser}",
    meaning="A grid has more cells than can be numbered or held in memory.",
    remedy="Choose fewer cells for each coordinate, or a model without a grid, such as 'fqe'.",
    example={
        "what": "a grid of 12 coordinates has about 1e12 cells",
        "limit": "and no more than 9.2e18 can be numbered",
        "coarser": "choose a coarser grid",
    },
)
one_fold_has_all = Kind(
    "one-fold-has-all",
    OffPolicyError,
    "all {what} one of {folds} folds, and none is left to {do}: {how}",
    meaning="Episodes are put into folds by their ids, and here all fell into the same one.",
    remedy="Choose another number of folds or another seed, or log more episodes.",
    example={
        "what": "2 episodes fall into",
        "folds": 2,
        "do": "fit a model to",
        "how": "choose more folds, or another seed",
    },
)
fraction_leaves_none = Kind(
    "fraction-leaves-none",
    OffPolicyError,
    "a {train_fraction} of {fraction} leaves none of {total} episodes to {what}: choose another one, or another seed",
    meaning="Episodes are put into two parts by their ids, and here one part is empty.",
    remedy="Choose another fraction or another seed, or log more episodes.",
    example={"fraction": "0.5", "total": 2, "what": "evaluate"},
    words={"train_fraction": TRAIN_FRACTION},
)
too_few_episodes = Kind(
    "too-few-episodes",
    UsageError,
    "a log of {episodes} episodes cannot be cut into {folds} folds",
    meaning="There are more folds than episodes.",
    remedy="Choose fewer folds or larger logs.",
    example={"episodes": 3, "folds": 5},
)
illegal_action = Kind(
    "illegal-action",
    OffPolicyError,
    "{where}: action {action} is not legal in the state {state}; mend the log, or legal() of the domain",
    meaning="The log holds an action that the domain forbids in that state.",
    remedy="Mend the log, or legal() of the domain.",
    example={"where": "episode 3, step 2", "action": 1, "state": "[0]"},
)
classifier_failed = Kind(
    "classifier-failed",
    OffPolicyError,
    "the classifier cannot be fitted to {steps} steps: {error}",
    meaning="The classifier that estimates the behaviour policy raised an error of its own.",
    remedy="Mend the classifier's settings, or log more episodes.",
    example={"steps": 12, "error": "needs samples of at least 2 classes"},
)
bad_categories = Kind(
    "bad-categories",
    UsageError,
    "categories are tuples of one length, one text for each column of the state",
    meaning="The categories of a state do not have one text for each of its columns.",
    remedy="Give each combination as a tuple with one text for each column of the state.",
)
category_twice = Kind(
    "category-twice",
    UsageError,
    "a combination of categories is there twice",
    meaning="The categories of a state repeat a combination.",
    remedy="Give each combination once.",
)
episode_ends = Kind(
    "episode-ends",
    OffPolicyError,
    "episode {episode} ends at step {step}: a factored model has no states that end an episode; use 'tabular', "
    "'kernel' "
    "or 'fqe', or a column of the state that says so and earns no reward",
    meaning="A factored model follows each column of the state on its own and knows no end of an episode.",
    remedy="Use 'tabular', 'kernel' or 'fqe', or add a column to the state that says that the episode has ended.",
    example={"episode": 3, "step": 4},
)
no_such_feature = Kind(
    "no-such-feature",
    UsageError,
    "{name}: there is no {feature} among the state columns {columns}",
    meaning="A named feature is not a column of the state.",
    remedy="Name columns of the state.",
    example={"name": "reward_features", "feature": "'wind'", "columns": "('x', 'y')"},
)
wrong_number_of_actions = Kind(
    "wrong-number-of-actions",
    OffPolicyError,
    "a policy of this model must give {actions} probabilities a state",
    meaning="A policy has another number of actions than the domain that the model was fitted to.",
    remedy="Give a policy with {actions} actions.",
    example={"actions": 3},
)
not_a_regressor = Kind(
    "not-a-regressor",
    UsageError,
    "a regressor has fit and predict, and this {found} has not",
    meaning="An object that was given as a regressor lacks the method fit or predict.",
    remedy="Give an object with fit(X, y) and predict(X), such as a regressor of scikit-learn.",
    example={"found": "dict"},
)
unknown_layout = Kind(
    "unknown-layout",
    UsageError,
    "actions must lie in one of {known}, not {found}",
    meaning="A kernel smooths over neighbouring actions, and the given layout of the actions is not known.",
    remedy="Choose one of {known}.",
    example={"known": "line, circle, apart", "found": "'heap'"},
)
values_do_not_settle = Kind(
    "values-do-not-settle",
    OffPolicyError,
    "values with discount {discount} do not settle: a policy may never end; use less than 1",
    meaning="The value of a policy that goes on for ever has no limit without a discount.",
    remedy="Use a discount below 1.",
    example={"discount": 1},
)
bad_predictions = Kind(
    "bad-predictions",
    OffPolicyError,
    "{regressor} predicted {found} values for {rows} rows, or values that are not finite",
    meaning="A regressor gave too few values, too many, or NaN.",
    remedy="Mend the regressor, or scale its features.",
    example={"regressor": "Ridge", "found": 3, "rows": 4},
)
knows_no_other_policy = Kind(
    "knows-no-other-policy",
    OffPolicyError,
    "a recurrent model knows the behaviour policy's returns along whole histories, not the values of another policy; "
    "take "
    "its optimal_policy(), and evaluate that with a model such as 'factored', 'tabular' or 'fqe'",
    meaning="A recurrent model was asked for the values of a target policy.",
    remedy="Take its optimal_policy(), and evaluate that with another model.",
)
needs_jax = Kind(
    "needs-jax",
    OffPolicyError,
    "the fitter 'recurrent' needs JAX ({error}): pip install 'offpolicy[recurrent]'",
    meaning="JAX, which the recurrent model is written in, cannot be imported.",
    remedy="Install it: pip install 'offpolicy[recurrent]'.",
    example={"error": "No module named 'jax'"},
)
smoothing_dimensions = Kind(
    "smoothing-dimensions",
    UsageError,
    "an array of {dimensions} coordinates cannot be smoothed along {asked} of them",
    meaning="A table was to be smoothed along more coordinates than it has.",
    remedy="Name at most as many coordinates as the table has.",
    example={"dimensions": 2, "asked": 3},
)
core_refused = Kind(
    "core-refused",
    UsageError,
    "{error}",
    meaning="The compiled core refused arrays of a model, for the reason that the message gives.",
    remedy="Give arrays as the message expects them.",
    example={"error": "a model needs at least one state and one action"},
)
does_not_fit = Kind(
    "does-not-fit",
    UsageError,
    "rewards (S, A) and transitions (S, A, S) do not fit: {rewards} and {transitions}",
    meaning="The rewards and transitions of a model have different numbers of states or actions.",
    remedy="Give rewards of shape (S, A) and transitions of shape (S, A, S).",
    example={"rewards": "(2, 2)", "transitions": "(3, 2, 3)"},
)
