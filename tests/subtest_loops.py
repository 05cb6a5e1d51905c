"""Loops over a test's parameters: subtests of one case, where `pytest.mark.parametrize` makes a case of each."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from itertools import product
from typing import Any

import pytest
import torch

from tests.exhaustive import zip_cycled
from tests.sample_models import CORE, ROTATING, STYLES, capture_style


@dataclass
class Subtest:
    """Arguments of a test, their name, the names of their marks, and the group that is a case."""

    arguments: dict[str, Any]
    name: str = ""
    marks: tuple[str, ...] = ()
    group: str = ""

    def __or__(self, other: "Subtest") -> "Subtest":
        name = ", ".join(filter(None, (self.name, other.name)))
        marks = tuple(dict.fromkeys(self.marks + other.marks))
        return Subtest(self.arguments | other.arguments, name, marks, self.group or other.group)


def subtest_each(names: str | Sequence[str], values: Iterable[Any], ids: Any = None) -> Callable[[Callable], Callable]:
    """Run a test once per value, as subtests of one case; arguments are those of `pytest.mark.parametrize`.

    Several of these decorators loop over the product. Exhaustive values have a case of their own.
    """
    names = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
    axis = [_make_subtest(names, value, ids, i) for i, value in enumerate(values)]
    return lambda test: _loop(test, [one | other for one, other in product(axis, _subtests(test))])


def subtest_groups(core: Mapping[str, list[dict]], others: Mapping[str, list[dict]]) -> Callable[[Callable], Callable]:
    """Run a test once per set of arguments, as subtests of one case for each group; the other groups are exhaustive."""
    subtests = [
        Subtest(arguments, _describe(arguments), marks, group)
        for groups, marks in ((core, ()), (others, ("exhaustive",)))
        for group, cases in groups.items()
        for arguments in cases
    ]
    return lambda test: _loop(test, subtests)


def each_style(test: Callable) -> Callable:
    """Run a test for each style, given as `style`, and its run, as `trace`; bundled styles are in the core suite.

    The values of decorators below this one take turns with the styles.
    """
    return each_of_styles(STYLES)(test)


def each_of_styles(styles: Iterable[str]) -> Callable[[Callable], Callable]:
    """Return `each_style` for some of the styles."""

    def decorate(test: Callable) -> Callable:
        core = _in_turn([style for style in styles if style in CORE], test)
        names = [subtest.name for subtest in core]
        rest = [subtest for subtest in _in_turn(styles, test) if subtest.name not in names]
        return _loop(test, core + [Subtest({}, marks=("exhaustive",)) | subtest for subtest in rest])

    return decorate


def each_rotating_style(test: Callable) -> Callable:
    """`each_style` of the styles with rotary positions."""
    return each_of_styles(ROTATING)(test)


def _in_turn(styles: Iterable[str], test: Callable) -> list[Subtest]:
    """Zip styles with the subtests of a test."""
    axis = [Subtest({"style": style}, style) for style in styles]
    return [one | other for one, other in zip_cycled(axis, _subtests(test))]


def _make_subtest(names: list[str], value: Any, ids: Any, index: int) -> Subtest:
    """Return the subtest of a value, a tuple of values, or a `pytest.param`."""
    is_param = hasattr(value, "marks") and hasattr(value, "values")
    values = value.values if is_param else (value,) if len(names) == 1 else value
    arguments = dict(zip(names, values, strict=True))
    if is_param and value.id:
        name = value.id
    elif ids:
        name = ", ".join(str(ids(value)) for value in values) if callable(ids) else ids[index]
    else:
        name = _describe(arguments)
    return Subtest(arguments, name, tuple(mark.name for mark in value.marks) if is_param else ())


def _describe(arguments: Mapping[str, Any]) -> str:
    """Return arguments as text; views, classes and functions by their names."""
    names = {name: getattr(value, "name", getattr(value, "__name__", value)) for name, value in arguments.items()}
    return ", ".join(f"{name}={value!r:.100}" for name, value in names.items())


def _subtests(test: Callable) -> list[Subtest]:
    return getattr(test, "subtests", [Subtest({})])


def _loop(test: Callable, subtests: list[Subtest]) -> Callable:
    """Return a test that runs another in a loop, in one case for each set of marks."""
    function = getattr(test, "function", test)
    parameters = signature(function).parameters
    arguments = set(subtests[0].arguments)
    looped = (arguments | {"trace"} if "style" in arguments else arguments) & set(parameters)
    groups = defaultdict(list)
    for subtest in subtests:
        groups[subtest.group, subtest.marks].append(subtest)

    @wraps(function)
    def run(subtests: pytest.Subtests, group: list[Subtest], **fixtures: Any):
        __tracebackhide__ = True
        for subtest in group:
            with subtests.test(subtest.name), pytest.MonkeyPatch.context() as patch:
                torch.default_generator.manual_seed(0)
                fixtures |= {"monkeypatch": patch} if "monkeypatch" in fixtures else {}
                values = dict(subtest.arguments)
                if "trace" in looped:
                    values["trace"] = capture_style(values["style"])
                function(**{name: values[name] for name in looped}, **fixtures)

    others = [parameter for name, parameter in parameters.items() if name not in looped]
    added = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("subtests", "group")]
    run.__signature__ = signature(function).replace(parameters=added + others)
    run.function, run.subtests = function, subtests
    cases = [
        pytest.param(
            subtests,
            id=" ".join(filter(None, (group, *marks))) or pytest.HIDDEN_PARAM,
            marks=[getattr(pytest.mark, mark) for mark in marks],
        )
        for (group, marks), subtests in groups.items()
    ]
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.args[:1] != ("group",)]
    run.pytestmark = [*marks, pytest.mark.parametrize("group", cases).mark]
    return run
