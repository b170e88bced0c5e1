"""Generators of candidate policies, one a file."""
