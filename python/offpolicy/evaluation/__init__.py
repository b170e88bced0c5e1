"""One evaluation: the plan, the passes over the log, estimates, bounds and the verdict."""
