"""The memory that an evaluation may take: how it is written, and what there is.

What grows with a log is counted before it is taken: some hundred bytes for each step of the longest episode and each
policy, and 28 bytes for each episode whose id does not follow the one before. From half of the limit on such ids are
written to files without a name in the system's place for temporary ones (`TMPDIR`), which go with the process however
it ends; a state that travels through `map=` holds its ids whole. The default limit is half of what the system can still
give, whatever limits it: the machine, the control group of a container, or `ulimit -v`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from offpolicy._util import words
from offpolicy._util.scalars import as_whole
from offpolicy.errors import MemoryLimitError
from offpolicy.errors.kinds.of_arguments import wrong_object
from offpolicy.errors.kinds.of_evaluation import memory_for_episodes, memory_for_steps

#: Memory of an episode whose id does not follow the one before.
ID_BYTES = 28
#: Of the memory that is available, the default takes one part in so many.
SHARE = 2
_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{letter}b": 1000**power for power, letter in enumerate("kmgt", start=1)}
_UNITS |= {f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", start=1)}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def limit(memory: Any) -> int:
    """Return bytes: of a number of them, of a text such as "2GB", or of None for half of what is available.

    >>> limit("2GB"), limit("1.5 MiB"), limit(1000), limit(None) > 0
    (2000000000, 1572864, 1000, True)
    """
    if memory is None:
        return available() // SHARE
    if isinstance(memory, str) and (found := _SIZE.fullmatch(memory)) and found[2].lower() in _UNITS:
        size = int(float(found[1]) * _UNITS[found[2].lower()])
    elif (whole := as_whole(memory)) is not None:
        size = whole
    else:
        raise wrong_object(
            argument=words.argument("memory"),
            expected='a number of bytes, or a text such as "2GB" or "512MB"',
            found=repr(memory),
        )
    if not 1 <= size < 2**63:
        raise wrong_object(argument=words.argument("memory"), expected="a positive number of bytes", found=repr(memory))
    return size


def available() -> int:
    """Return the bytes that this process can still take.

    >>> available() > 0
    True
    """
    return max(1, min(_limits(), default=2**40))


def _limits() -> Iterator[int]:
    """What the machine has, and what control group and process are allowed, as far as the system tells."""
    status = _numbers("/proc/meminfo")
    if "MemAvailable" in status:
        yield status["MemAvailable"] * 1024
    elif hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for group in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        most = _text(group).strip()
        if most.isdecimal():
            yield int(most) - _numbers("/proc/self/status").get("VmRSS", 0) * 1024
    try:
        import resource
    except ImportError:  # not on Windows
        return
    most_address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most_address_space != resource.RLIM_INFINITY:
        yield most_address_space - _numbers("/proc/self/status").get("VmSize", 0) * 1024


def _numbers(path: str) -> dict[str, int]:
    return {name: int(number) for name, number in re.findall(r"^(\w+):\s+(\d+)", _text(path), re.MULTILINE)}


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def memory_limit(needed: int, limit: int, steps: int, episodes: int) -> MemoryLimitError:
    """Return the error of a log that needs more memory than may be taken, for its steps or for its episodes."""
    sizes = {"needed": _size(needed), "limit": _size(limit)}
    if 2 * ID_BYTES * episodes > needed:
        error = memory_for_episodes(**sizes, episodes=f"{episodes:,}")
    else:
        error = memory_for_steps(**sizes, steps=f"{steps:,}")
    error.needed, error.limit, error.steps, error.episodes = needed, limit, steps, episodes
    return error


def _size(number: int) -> str:
    """Return bytes in a unit that is easy to read.

    >>> _size(999), _size(12_345_678)
    ('999 B', '12.3 MB')
    """
    size, units = float(number), ["B", "kB", "MB", "GB", "TB", "PB"]
    while size >= 999.5 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.3g} {units[0]}"
