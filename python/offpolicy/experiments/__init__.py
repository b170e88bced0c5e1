"""Experiments that are run many times, with seeded and resumable runs, their errors, claims about them, and figures.

`op.compare` uses these modules, and so do packages that offer experiments through the hook `offpolicy_experiments`. The
experiments of the paper are such a package, `offpolicy-paper`.
"""
