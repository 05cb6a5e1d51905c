"""Loops over a test's parameters: subtests of one case, where `pytest.mark.parametrize` makes a case of each."""

import sys
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
    """Arguments of a test, their name, the names of their marks, and the group that makes a case."""

    arguments: dict[str, Any]
    name: str = ""
    marks: tuple[str, ...] = ()
    group: str = ""

    def __or__(self, other: "Subtest") -> "Subtest":
        name = ", ".join(filter(None, (self.name, other.name)))
        marks = tuple(dict.fromkeys(self.marks + other.marks))
        return Subtest(self.arguments | other.arguments, name, marks, self.group or other.group)


def subtest_each(
    names: str | Sequence[str], values: Iterable[Any], ids: Any = None, per_case: int = sys.maxsize
) -> Callable[[Callable], Callable]:
    """Run a test once per value, as subtests of one case; arguments are those of `pytest.mark.parametrize`.

    Several of these decorators loop over the product. Exhaustive values have a case of their own. `per_case` is the
    largest number of subtests in a case.
    """
    names = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
    ids = ids if callable(ids) or ids is None else list(ids)
    axis = [_make_subtest(names, value, ids, i) for i, value in enumerate(values)]
    return lambda test: _loop(test, [one | other for one, other in product(axis, _subtests(test))], per_case)


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
    return each_of_styles([*STYLES])(test)


def each_of_styles(styles: Sequence[str]) -> Callable[[Callable], Callable]:
    """Return `each_style` for some of the styles."""

    def decorate(test: Callable) -> Callable:
        others = _subtests(test)
        core = zip_cycled([style for style in styles if style in CORE], range(len(others)))
        turns = dict.fromkeys(core, ()) | {
            turn: ("exhaustive",) for turn in zip_cycled(styles, range(len(others))) if turn not in core
        }
        return _loop(test, [Subtest({"style": style}, style, marks) | others[i] for (style, i), marks in turns.items()])

    return decorate


def each_rotating_style(test: Callable) -> Callable:
    """`each_style` of the styles with rotary positions."""
    return each_of_styles(ROTATING)(test)


def _make_subtest(names: list[str], value: Any, ids: Any, index: int) -> Subtest:
    """Return the subtest of a value, a tuple of values, or a `pytest.param`."""
    is_param = hasattr(value, "marks") and hasattr(value, "values")
    values = value.values if is_param else (value,) if len(names) == 1 else value
    arguments = dict(zip(names, values, strict=True))
    if is_param and value.id:
        name = value.id
    elif ids:
        name = ", ".join(str(ids(value)) for value in values) if callable(ids) else str(ids[index])
    else:
        name = _describe(arguments)
    return Subtest(arguments, name, tuple(mark.name for mark in value.marks) if is_param else ())


def _describe(arguments: Mapping[str, Any]) -> str:
    """Return arguments as text; views, classes and functions by their names."""
    names = {name: getattr(value, "name", getattr(value, "__name__", value)) for name, value in arguments.items()}
    return ", ".join(f"{name}={value!r:.100}" for name, value in names.items())


def _subtests(test: Callable) -> list[Subtest]:
    return getattr(test, "subtests", [Subtest({})])


def _loop(test: Callable, subtests: list[Subtest], per_case: int = sys.maxsize) -> Callable:
    """Return a test that runs another in a loop, in a case for each group and set of marks."""
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
        for number, subtest in enumerate(group):
            with subtests.test(subtest.name), pytest.MonkeyPatch.context() as patch:
                torch.default_generator.manual_seed(0)
                values = fixtures | subtest.arguments
                if "trace" in looped:
                    values["trace"] = capture_style(values["style"])
                if "monkeypatch" in values:
                    values["monkeypatch"] = patch
                if "tmp_path" in values:
                    values["tmp_path"] = values["tmp_path"] / str(number)
                    values["tmp_path"].mkdir()
                function(**{name: values[name] for name in parameters})

    others = [parameter for name, parameter in parameters.items() if name not in looped]
    added = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("subtests", "group")]
    run.__signature__ = signature(function).replace(parameters=added + others)
    run.function, run.subtests = function, subtests
    cases = [
        pytest.param(
            subtests[i : i + per_case],
            id=_case_id(group, names, i),
            marks=[getattr(pytest.mark, name) for name in names],
        )
        for (group, names), subtests in groups.items()
        for i in range(0, len(subtests), per_case)
    ]
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.args[:1] != ("group",)]
    run.pytestmark = [*marks, pytest.mark.parametrize("group", cases).mark]
    return run


def _case_id(group: str, marks: tuple[str, ...], start: int) -> Any:
    """Return the id of a case from its group, its marks and the number of its first subtest, if not 0."""
    return "-".join([*filter(None, [group]), *marks, *([f"from {start}"] if start else [])]) or pytest.HIDDEN_PARAM
