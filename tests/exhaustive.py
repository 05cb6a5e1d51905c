"""What of a product is tested always, and what only by those who ask for all."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest


def first_of(values: Sequence[Any]) -> list:
    """Parameters of a test: the first is in the core suite, all others are exhaustive."""
    return [*values[:1], *(pytest.param(value, marks=pytest.mark.exhaustive) for value in values[1:])]


def one_of(many: int, values: Sequence[Any]) -> list:
    """Parameters of a test: one of so many is in the core suite, all others are exhaustive."""
    return [pytest.param(value, marks=pytest.mark.exhaustive) if i % many else value for i, value in enumerate(values)]


def in_turn(*axes: Sequence[Any]) -> list:
    """Parameters of a test over the product of some axes.

    In the core suite is every value of each of them, but not with every value of the others: the first of all together,
    then the second, and so on, where shorter axes begin anew. All other combinations are exhaustive.
    """
    core = {tuple(i % len(axis) for axis in axes) for i in range(max(map(len, axes)))}
    return [
        pytest.param(*values, marks=() if places in core else pytest.mark.exhaustive)
        for places, values in zip(product(*(range(len(axis)) for axis in axes)), product(*axes), strict=True)
    ]
