"""Decorators that turn a test of one case into a test of many, each of them a subtest that is reported by name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from inspect import Parameter, signature
from itertools import product
from typing import Any

import pytest

from tests.exhaustive import exhaustive, zip_cycled
from tests.sample_models import CORE, STYLES, capture_style

Case = Mapping[str, Any]  # arguments of a test, by name


def each_case(names: str, values: Iterable[Any]) -> Callable:
    """Run a test with each of the values, like `pytest.mark.parametrize`, but as one test."""
    names = names.replace(",", " ").split()
    cases = [dict(zip(names, value if len(names) > 1 else [value], strict=True)) for value in values]
    return lambda test: _in_subtests(test, names, cases)


def each_group(core: Mapping[str, Sequence[Case]], others: Mapping[str, Sequence[Case]]) -> Callable:
    """Run a test for each group of cases, named after the group; the other groups are exhaustive."""
    groups = [pytest.param(cases, id=name) for name, cases in core.items() if cases]
    groups += [exhaustive(pytest.param(cases, id=f"{name}-exhaustive")) for name, cases in others.items() if cases]
    names = [name for group in groups[:1] for name in group.values[0][0]]
    return lambda test: pytest.mark.parametrize("cases", groups)(_in_subtests(test, names))


def each_style(test: Callable | None = None, *, styles: Iterable[str] = STYLES, **axes: Sequence[Any]) -> Callable:
    """Run a test with each style of model: as `style`, and its run of 12 tokens as `trace`.

    The core suite has the styles of the bundled checkpoints. If there are axes, each combination of their values has
    one of the styles in turn, until each style and each combination had its turn.
    """
    if test is None:
        return partial(each_style, styles=styles, **axes)
    combinations = list(product(*axes.values()))
    core, all_styles = (
        [{"style": style, **dict(zip(axes, values, strict=True))} for style, values in zip_cycled(group, combinations)]
        for group in ([style for style in styles if style in CORE], list(styles))
    )
    others = [case for case in all_styles if case not in core]
    groups = [pytest.param(core, id="bundled"), exhaustive(pytest.param(others, id="others"))]

    def with_trace(style: str, **case: Any) -> Case:
        return {"style": style, "trace": capture_style(style), **case}

    run = _in_subtests(test, ["style", "trace", *axes], prepare=with_trace)
    return pytest.mark.parametrize("cases", groups)(run)


def _in_subtests(
    test: Callable, names: Sequence[str], cases: Sequence[Case] | None = None, prepare: Callable[..., Case] = dict
) -> Callable:
    """Return a test that calls `test` with each case as a subtest; its cases are a parameter if they are not given.

    Args:
        names: the arguments of the test that a prepared case has; pytest passes the others.
        prepare: returns the arguments of a case.
    """
    parameters = signature(test).parameters
    fixtures = ["subtests", *(name for name in parameters if name not in names)] + ["cases"] * (cases is None)

    @wraps(test)
    def run_cases(subtests, cases=cases, **fixtures):
        for case in cases:
            with subtests.test(**{name: _label(value) for name, value in case.items()}):
                arguments = {name: value for name, value in prepare(**case).items() if name in parameters}
                test(**arguments, **fixtures)

    run_cases.__signature__ = signature(test).replace(
        parameters=[Parameter(name, Parameter.KEYWORD_ONLY) for name in fixtures]
    )
    return run_cases


def _label(value: Any) -> Any:
    """Return the name of a view, class or function, and any other value itself."""
    return getattr(value, "name", getattr(value, "__name__", value))
