"""What of a product is tested always, and what only by those who ask for all."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

_Case = type(pytest.param())


def exhaustive(value: Any) -> Any:
    """A parameter, or what `pytest.param` makes of several, that is exhaustive."""
    case = value if isinstance(value, _Case) else pytest.param(value)
    return case._replace(marks=(*case.marks, pytest.mark.exhaustive))


def first_of(values: Sequence[Any]) -> list:
    """Parameters of a test: the first is in the core suite, all others are exhaustive."""
    return [*values[:1], *map(exhaustive, values[1:])]


def one_of(many: int, values: Sequence[Any]) -> list:
    """Parameters of a test: one of so many is in the core suite, all others are exhaustive."""
    return [exhaustive(value) if i % many else value for i, value in enumerate(values)]


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
