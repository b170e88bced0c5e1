"""Ways to fit a model to a log, a file each; `offpolicy.builtin` registers them."""
