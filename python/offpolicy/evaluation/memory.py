"""The limit on the memory of an evaluation: how a user writes it, and its default.

Memory that grows with the log is counted before it is taken: some hundred bytes for each step of the longest episode
and each policy, and 28 bytes for each episode whose id does not follow the one before. Once half of the limit is used,
such ids are written to unnamed files in the system's folder for temporary files (`TMPDIR`), which vanish with the
process however it ends. A state that travels through `map=` holds all of its ids. The default limit is half of the
memory that the machine, the control group of a container and `ulimit -v` still allow.
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

#: The bytes that an episode takes if its id does not follow the one before.
ID_BYTES = 28
#: The default limit is the available memory divided by this number.
SHARE = 2
_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{letter}b": 1000**power for power, letter in enumerate("kmgt", start=1)}
_UNITS |= {f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", start=1)}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def limit(memory: Any) -> int:
    """Return a limit in bytes from a number, a text such as "2GB", or None for half of what is available.

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
    """Yield what the machine has left, and what its control group and process limits allow, where these are known."""
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
    """Return the error for a log that needs more memory than the limit, for its steps or for its episodes."""
    sizes = {"needed": _size(needed), "limit": _size(limit)}
    if 2 * ID_BYTES * episodes > needed:
        error = memory_for_episodes(**sizes, episodes=f"{episodes:,}")
    else:
        error = memory_for_steps(**sizes, steps=f"{steps:,}")
    error.needed, error.limit, error.steps, error.episodes = needed, limit, steps, episodes
    return error


def _size(number: int) -> str:
    """Return a number of bytes as text in a unit that is easy to read.

    >>> _size(999), _size(12_345_678)
    ('999 B', '12.3 MB')
    """
    size, units = float(number), ["B", "kB", "MB", "GB", "TB", "PB"]
    while size >= 999.5 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.3g} {units[0]}"
