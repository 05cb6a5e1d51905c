"""Figures of two runs: on one scale, and their difference."""
