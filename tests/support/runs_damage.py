"""Files of runs damaged by a few edits, each a kind with two parameters."""

import random
import re


def damaged(content, edits):
    """Return the content after all edits."""
    for kind, one, other in edits:
        lines = content.splitlines(keepends=True) or [b""]
        at = one % (len(content) + 1)
        row, second = one % len(lines), (other if isinstance(other, int) else 0) % len(lines)
        match kind:
            case "over":
                content = content[:at] + other + content[at + len(other) :]
            case "in":
                content = content[:at] + other + content[at:]
            case "out":
                content = content[:at] + content[at + other :]
            case "move":
                part = content[at : at + 40]
                rest = content[:at] + content[at + 40 :]
                content = rest[:other] + part + rest[other:]
            case "digit":  # a number that still is one
                places = [match.start() for match in re.finditer(rb"\d", content)] or [0]
                place = places[one % len(places)]
                content = content[:place] + str(other).encode() + content[place + 1 :]
            case "swap":
                lines[row], lines[second] = lines[second], lines[row]
                content = b"".join(lines)
            case "double":
                content = b"".join([*lines, lines[row]])
            case "drop":
                content = b"".join(lines[:row] + lines[row + 1 :])
    return content


def random_edits(rng: random.Random) -> list[tuple]:
    """Return a few edits: bytes written over, put in, taken out or moved, lines swapped, doubled or taken out."""
    made = []
    for _ in range(rng.choice((1, 1, 2, 4))):
        kind = rng.choice(("over", "in", "out", "move", "digit", "digit", "swap", "double", "drop"))
        at = rng.randrange(2000)
        other = {"over": rng.randbytes(rng.randrange(1, 9)), "in": rng.randbytes(rng.randrange(1, 9)), "move": at // 2}
        made.append((kind, at, other.get(kind, rng.randrange(60) if kind == "out" else rng.randrange(10))))
    return made
