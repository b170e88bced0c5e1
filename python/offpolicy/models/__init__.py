"""Models of the environment and of the behaviour policy, fitted to a log."""
