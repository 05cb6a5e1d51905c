"""Derivations of single numbers that the analysis computes from captured values."""
