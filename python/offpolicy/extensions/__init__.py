"""What other packages add, and what the package itself adds through the same hooks."""
