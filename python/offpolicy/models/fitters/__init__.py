"""Ways to fit a model to a log, a file each; `offpolicy.extensions.builtin` registers them."""
