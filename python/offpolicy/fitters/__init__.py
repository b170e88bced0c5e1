"""The ways to fit a model to a log that come with the package."""
