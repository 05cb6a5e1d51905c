"""Parameters of tests: cases of the core suite, and cases that only the exhaustive suite runs."""

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest

_Case = type(pytest.param())


def exhaustive(value: Any) -> Any:
    """Return a parameter (or `pytest.param`) marked as exhaustive."""
    case = value if isinstance(value, _Case) else pytest.param(value)
    return case._replace(marks=(*case.marks, pytest.mark.exhaustive))


def first_in_core(values: Sequence[Any]) -> list:
    """Return parameters: the first is in the core suite, all others are exhaustive."""
    return [*values[:1], *map(exhaustive, values[1:])]


def every_nth_in_core(n: int, values: Sequence[Any]) -> list:
    """Return parameters: every nth is in the core suite, all others are exhaustive."""
    return [exhaustive(value) if i % n else value for i, value in enumerate(values)]


def zip_cycled(*axes: Sequence[Any]) -> list[tuple]:
    """Zip the axes to the length of the longest one; shorter axes start over."""
    return [tuple(axis[i % len(axis)] for axis in axes) for i in range(max(map(len, axes)))]


def pairwise_params(*axes: Sequence[Any]) -> list:
    """Return parameters of a test over the product of some axes.

    The core suite has every value of each axis, side by side. Exhaustive are others, until every value met every value
    of every other axis.
    """
    core = zip_cycled(*(range(len(axis)) for axis in axes))
    met = set().union(*map(_pairs, core))
    others = list(product(*(range(len(axis)) for axis in axes)))
    cases = dict.fromkeys(core, ())
    while others := [case for case in others if not _pairs(case) <= met]:
        case = max(others, key=lambda case: len(_pairs(case) - met))
        met |= _pairs(case)
        cases[case] = pytest.mark.exhaustive
    return [
        pytest.param(*(axis[i] for axis, i in zip(axes, case, strict=True)), marks=marks)
        for case, marks in sorted(cases.items())
    ]


def _pairs(case: Sequence[int]) -> set[tuple]:
    """Return the pairs of values in a case, each as (axis, index)."""
    return set(combinations(enumerate(case), 2))
