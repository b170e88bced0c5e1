"""Helpers that are independent of off-policy evaluation: arguments, text, files, pictures, optional packages."""
