"""Helpers that know nothing of off-policy evaluation: arguments, text, files, pictures, optional packages."""
