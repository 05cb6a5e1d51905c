"""Derivations: the formula, the inputs and a recomputation of every number on the page."""
