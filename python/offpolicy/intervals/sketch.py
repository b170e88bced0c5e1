"""Sketches: small mergeable histograms of per-trajectory values by their distance from the least possible value.

    x_i = v_i − floor ≥ 0        either v_i or x_i is rounded down to 15 significant bits, whichever is finer

Every value is thus rounded down by less than 2⁻¹⁴ of the smaller of |v| and x (half of that on average), and x = 0
stays 0. The rounded values are independent too, and their mean is at most the true one, so that a lower bound on it
also holds for the true mean. An upper bound is a lower one for −v with the floor −ceiling, and is rounded up in the
same way.

Trajectories are counted in 40 rounds of equal shares, assigned by a hash of the episode's id: some methods choose a
number in one round and use it in the next. Counts are integers, so that a sketch has the same bits for any order and
partition.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy.errors import OffPolicyError
from offpolicy.errors.kinds.of_evaluation import below_floor, other_sketches
from offpolicy.errors.kinds.of_states import damaged_sketch, sketch_of_another_version
from offpolicy.folds import share_of
from offpolicy.protocols import Floats

#: How many bits after the first one rounding keeps.
BITS = 14
#: The number of rounds; each has the same share of the hashes.
ROUNDS = 40
#: The seed of the hash. Folds and splits of a log use seed 0, and a round must not coincide with one of them.
SEED = 0x5EED_0F_B0D5
#: How far rounding may move a value below the floor, relative to the floor.
SLACK = 2.0**-40

_MAGIC, _VERSION = b"opsketch", 2
_OPENING, _HEADER = struct.Struct("<8sHH"), struct.Struct("<8sHHdQQ")
_DIGEST = 16

Integers = NDArray[np.int64]


class BelowFloorError(OffPolicyError):
    """A value below the least possible one."""

    kind = below_floor.id
    remedy = below_floor.remedy

    def __init__(self, value: float, floor: float) -> None:
        """Keep the value and the floor."""
        self.value, self.floor = value, floor
        super().__init__(below_floor(value=f"{value:g}", floor=f"{floor:g}").message)


@dataclass(frozen=True, eq=False)
class Sketch:
    """Counts of trajectories by round and distance x from the floor; `x` is sorted.

    >>> import numpy as np
    >>> from offpolicy.intervals.sketch import Sketch
    >>> week = Sketch.of(range(0, 500), np.linspace(-1.0, 3.0, 500), floor=-1.0)
    >>> more = Sketch.of(range(500, 900), np.linspace(-1.0, 3.0, 400), floor=-1.0)
    >>> both = week.merge(Sketch.from_bytes(more.to_bytes()))
    >>> both.episodes, both.counts.sum(axis=1)[:4], bool(0.9999 < both.floor + both.mean <= 1.0)
    (900, array([19, 21, 20, 22]), True)
    """

    floor: float
    x: Floats  # (k,)
    counts: Integers  # (rounds, k)

    @classmethod
    def of(cls, episodes: Any, values: Floats, floor: float) -> Sketch:
        """Return the sketch of trajectories with these ids and values."""
        every, place = np.unique(rounded(np.asarray(values, dtype=np.float64), floor), return_inverse=True)
        counts = np.bincount(rounds_of(episodes) * len(every) + place, minlength=ROUNDS * len(every))
        return cls(floor, every, counts.reshape(ROUNDS, len(every)))

    def merge(self, other: Sketch) -> Sketch:
        """Return the sketch of both together; no trajectory may be in both."""
        if self.floor != other.floor:
            raise other_sketches(ours=f"{self.floor:g}", theirs=f"{other.floor:g}")
        x = np.union1d(self.x, other.x)
        counts = np.zeros((ROUNDS, len(x)), dtype=np.int64)
        for part in (self, other):
            counts[:, np.searchsorted(x, part.x)] += part.counts
        return Sketch(self.floor, x, counts)

    @property
    def all(self) -> Integers:
        """The counts over all rounds."""
        total: Integers = self.counts.sum(axis=0)
        return total

    @property
    def episodes(self) -> int:
        """The number of trajectories."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """The mean of x."""
        return float((self.x * self.all).sum() / self.episodes)

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes with a version and a checksum; only counts above 0 are written."""
        counts = self.counts.ravel()
        places = np.flatnonzero(counts)
        header = _HEADER.pack(_MAGIC, _VERSION, BITS, self.floor, len(self.x), len(places))
        numbers = (self.x.astype("<f8"), places.astype("<i8"), counts[places].astype("<i8"))
        content = header + b"".join(each.tobytes() for each in numbers)
        return content + _checksum(content)

    @classmethod
    def from_bytes(cls, content: bytes) -> Sketch:
        """Return the sketch that `to_bytes` wrote, and refuse other or damaged bytes."""
        body = content[:-_DIGEST]
        if len(body) < _OPENING.size or _checksum(body) != content[-_DIGEST:]:
            raise damaged_sketch(what="these bytes are no sketch, or were damaged")
        magic, version, bits = _OPENING.unpack_from(body)
        if magic != _MAGIC:
            raise damaged_sketch(what="these bytes are no sketch, or were damaged")
        if (version, bits) != (_VERSION, BITS):
            raise sketch_of_another_version(version=version, bits=bits, ours=_VERSION, our_bits=BITS)
        if len(body) < _HEADER.size:
            raise damaged_sketch(what="these bytes are no sketch, or were damaged")
        *_, floor, k, filled = _HEADER.unpack_from(body)
        if len(body) != _HEADER.size + 8 * (k + 2 * filled):
            raise damaged_sketch(what="the sketch is damaged: it is not as long as it says")
        x = np.frombuffer(body, "<f8", k, _HEADER.size).astype(np.float64)
        places, found = np.frombuffer(body, "<i8", 2 * filled, _HEADER.size + 8 * k).reshape(2, filled)
        ordered = np.isfinite(x).all() and (x >= 0).all() and (np.diff(x) > 0).all() and bool(np.isfinite(floor))
        counted = (np.diff(places) > 0).all() and (found > 0).all() and float(found.sum(dtype=np.float64)) < 2.0**62
        if not (ordered and counted and (places >= 0).all() and (places < ROUNDS * k).all()):
            raise damaged_sketch(what="the sketch is damaged: its values or counts are not those of a sketch")
        counts = np.zeros(ROUNDS * k, dtype=np.int64)
        counts[places] = found
        return cls(floor, x, counts.reshape(ROUNDS, k))


def rounds_of(episodes: Any) -> Integers:
    """Return the round of each trajectory, counted from 0, by the hash of its id."""
    found: Integers = (ROUNDS * share_of(episodes, SEED)).astype(np.int64)
    return found


def rounded(values: Floats, floor: float) -> Floats:
    """Return x of each value, rounded down, and refuse a value below the floor."""
    x = values - floor
    slack = SLACK * abs(floor)
    if len(x) and x.min() < -slack:
        raise BelowFloorError(float(values[x.argmin()]), floor)
    x[x <= slack] = 0.0
    near = np.abs(values) < x  # closer to 0 than to the floor

    def down(number: Floats) -> Floats:
        unit = np.ldexp(1.0, np.maximum(np.frexp(number)[1] - 1 - BITS, -1000))
        floored: Floats = np.floor(number / unit) * unit
        return floored

    found: Floats = np.where(near, (down(values) - floor).clip(0), down(x)) + 0.0  # turns −0 into 0
    return found


def _checksum(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST).digest()
