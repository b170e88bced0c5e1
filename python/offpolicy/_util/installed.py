"""A place where a room asks for what plugins bring, without importing the plugins, which import the room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class Installed(Generic[T]):
    """What plugins bring through one hook; `offpolicy.extensions.plugins` fills the functions in when it is imported.

    `find` returns what has a name, or None; `names` lists all of them, and loads every plugin for that; `broken` says
    which plugins cannot be asked.
    """

    find: Callable[[str], T | None] = lambda _: None
    names: Callable[[], list[str]] = list
    broken: Callable[[], str] = str
