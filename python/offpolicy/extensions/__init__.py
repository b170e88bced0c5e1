"""Plugins of other packages, and the built-in ones, which use the same hooks."""
