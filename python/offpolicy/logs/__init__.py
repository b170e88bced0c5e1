"""Logs: their sources and columns, the checks of their rows, and the ways to read, sort, pool and convert them."""
