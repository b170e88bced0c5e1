"""Domains that can be simulated: rollouts, Gymnasium environments, domains from arrays."""
