"""Model fitters, one a file; `op.fitter(name)` finds them by name."""
