"""Marks for parametrised tests: which cases are in the core suite, and which run only with the exhaustive one."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

_Case = type(pytest.param())


def exhaustive(value: Any) -> Any:
    """Return a parameter (or `pytest.param`) marked as exhaustive."""
    case = value if isinstance(value, _Case) else pytest.param(value)
    return case._replace(marks=(*case.marks, pytest.mark.exhaustive))


def first_in_core(values: Sequence[Any]) -> list:
    """Return parameters of which the first is in the core suite and all others are exhaustive."""
    return [*values[:1], *map(exhaustive, values[1:])]


def every_nth_in_core(n: int, values: Sequence[Any]) -> list:
    """Return parameters of which every nth is in the core suite and all others are exhaustive."""
    return [exhaustive(value) if i % n else value for i, value in enumerate(values)]


def in_turn(*axes: Sequence[Any]) -> list:
    """Return parameters of a test over the product of some axes.

    The core suite has every value of each axis, but not with every value of the others: the first of all axes
    together, then the second, and so on; shorter axes start over. All other combinations are exhaustive.
    """
    core = {tuple(i % len(axis) for axis in axes) for i in range(max(map(len, axes)))}
    return [
        pytest.param(*values, marks=() if indices in core else pytest.mark.exhaustive)
        for indices, values in zip(product(*(range(len(axis)) for axis in axes)), product(*axes), strict=True)
    ]
