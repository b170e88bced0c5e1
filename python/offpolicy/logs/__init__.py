"""Logs: what a log can be, its columns, what is wrong with it, and ways to read, sort, pool and convert it."""
