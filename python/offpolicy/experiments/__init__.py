"""The paper's experiments, a file each, and what they share: seeded runs, claims, figures."""
