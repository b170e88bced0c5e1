"""States and sketches from other processes or versions that cannot be used, and faults of the package itself."""

from __future__ import annotations

from offpolicy.errors import InternalError, OffPolicyError, StateError
from offpolicy.errors.kind import Kind

foreign_state = Kind(
    "foreign-state",
    StateError,
    "{why}",
    meaning="A state of a part of the log came back from another process damaged, or belongs to another version, plan, "
    "pass or log.",
    remedy="Use the same version of offpolicy in all processes, and let map= return what each task gave, unchanged.",
    example={"why": "the state is damaged"},
)
map_lost_parts = Kind(
    "map-lost-parts",
    StateError,
    "map= gave {count} results for {tasks} parts of the log: {part} is missing",
    meaning="The function that was given as map= did not return one result for each part of the log.",
    remedy="Let map= call the function with every part and return all that it gives.",
    example={"count": 3, "tasks": 4, "part": "a.parquet, rows 0 to 999"},
)
map_gave_no_bytes = Kind(
    "map-gave-no-bytes",
    StateError,
    "map= gave {found} for a part of the log, and not the bytes of its state",
    meaning="The function that was given as map= returned something other than what the task gave.",
    remedy="Let map= return what the function gives, unchanged.",
    example={"found": "NoneType"},
)
map_does_not_add_up = Kind(
    "map-does-not-add-up",
    StateError,
    "map= gave states that do not add up: {part} {why}",
    meaning="The states that map= returned are not those of the parts that were handed out.",
    remedy="Let map= return one result for each part, from the same log and the same call.",
    example={"part": "a.parquet, rows 0 to 999", "why": "is there twice"},
)
damaged_sketch = Kind(
    "damaged-sketch",
    OffPolicyError,
    "{what}",
    meaning="Bytes that were given as a sketch, or as counts of a model, are damaged or are not such bytes.",
    remedy="Read them again from where they were stored, or make them anew from the log.",
    example={"what": "these bytes are no sketch, or were damaged"},
)
sketch_of_another_version = Kind(
    "sketch-of-another-version",
    OffPolicyError,
    "a sketch of version {version} with {bits} bits cannot be read by this version, which reads version {ours} with "
    "{our_bits} bits: make the sketch again from its log",
    meaning="A sketch was written by a version of offpolicy that uses another format.",
    remedy="Make the sketch again from its log.",
    example={"version": 9, "bits": 8, "ours": 1, "our_bits": 8},
)
internal = Kind(
    "internal",
    InternalError,
    "{why}",
    meaning="A fault of this package, which no log or argument should be able to cause.",
    remedy="Please report it with the message and, if you can, a small log that causes it.",
    example={"why": "the core failed: index out of bounds"},
)
