"""Ways to fit a model to a log, one file per fitter; `offpolicy.extensions.builtin` registers them."""
