"""States damaged in many ways, with a checksum that matches again, so that only their content can give them away."""

import random
import zlib

HEADER = 8
OPENING = HEADER + 4


def sealed(state: bytes, content: bytes) -> bytes:
    """The content with the opening of a state, and the checksum that belongs to it."""
    return state[:HEADER] + zlib.crc32(content).to_bytes(4, "little") + content


def _flip(content, other, rng):
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        at = rng.randrange(len(content))
        content[at] ^= 1 << rng.randrange(8)
    return content


def _overwrite(content, other, rng):
    at = rng.randrange(len(content))
    content[at : at + rng.choice([1, 2, 8])] = rng.choice([b"\x00", b"\xff", b"\x7f", b"\x80", b"\x01"])
    return content


def _large_number(content, other, rng):
    """Ten bytes that are the largest whole number, or one near it, in the place of a small one."""
    at = rng.randrange(len(content))
    number = b"\xff" * rng.choice([1, 4, 8, 9, 18]) + bytes([rng.choice([0, 1, 3, 0x7F])])
    content[at : at + rng.choice([0, 1])] = number
    return content


def _cut(content, other, rng):
    return content[: rng.randrange(len(content))]


def _extend(content, other, rng):
    return content + rng.randbytes(rng.randrange(1, 40))


def _remove(content, other, rng):
    at = rng.randrange(len(content))
    del content[at : at + rng.randrange(1, 60)]
    return content


def _repeat(content, other, rng):
    at, length = rng.randrange(len(content)), rng.randrange(1, 60)
    content[at:at] = content[at : at + length]
    return content


def _splice(content, other, rng):
    """The beginning of one state and the end of another."""
    other = other[OPENING:]
    at = rng.randrange(min(len(content), len(other)))
    return content[:at] + other[at:]


def _transplant(content, other, rng):
    """Some bytes of another state in the same place."""
    other = other[OPENING:]
    at = rng.randrange(min(len(content), len(other)))
    length = rng.randrange(1, 200)
    content[at : at + length] = other[at : at + length]
    return content


KINDS = (_flip, _flip, _flip, _overwrite, _large_number, _cut, _extend, _remove, _repeat, _splice, _transplant)


def forged(state: bytes, other: bytes, rng: random.Random) -> bytes:
    """The state damaged in one way or another."""
    content = rng.choice(KINDS)(bytearray(state[OPENING:]), other, rng)
    return sealed(state, bytes(content))
