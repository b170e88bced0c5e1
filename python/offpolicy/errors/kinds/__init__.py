"""The catalogue of errors: one object for each kind, in modules by topic.

To raise an error, import its kind and call it: `raise bad_value(name="discount", expected="between 0 and 1", found=2)`.
tools/error_index.py makes the page docs/reference/errors.md from this catalogue.
"""

from __future__ import annotations

from typing import Any

from offpolicy.errors.kind import Kind, declared
from offpolicy.errors.kinds import (
    of_arguments,
    of_columns,
    of_converters,
    of_drivers,
    of_evaluation,
    of_files,
    of_logs,
    of_models,
    of_plugins,
    of_simulation,
    of_states,
    of_theory,
)

#: The modules of the catalogue, in the order of the error index.
ROOMS = (
    of_arguments,
    of_columns,
    of_files,
    of_logs,
    of_evaluation,
    of_models,
    of_drivers,
    of_simulation,
    of_theory,
    of_converters,
    of_plugins,
    of_states,
)
#: Every kind of error by its id.
KINDS: dict[str, Kind[Any]] = {kind.id: kind for room in ROOMS for kind in declared(vars(room))}
