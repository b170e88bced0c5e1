"""Columns that a policy and a model imply for the rows of a log."""
