"""Procedures on top of evaluations: k-fold cross-fitting, safe improvement, comparison of estimators."""
