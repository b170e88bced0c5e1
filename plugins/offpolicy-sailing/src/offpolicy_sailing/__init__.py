"""Sailing: a boat on a lake in a turning wind, as in Jiang & Li (2016), after Vanderbei (1996)."""

from offpolicy_sailing.domain import Sailing

__all__ = ["Sailing"]
