"""Experiments that are run many times: seeded and resumable runs, their errors, claims about them, figures.

`op.compare` is made of these, and so is what a package brings through the hook `offpolicy_experiments`. The experiments
of the paper are such a package, `offpolicy-paper`.
"""
