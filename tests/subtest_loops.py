"""Loops over a test's parameters: subtests of one case, where `pytest.mark.parametrize` makes a case of each."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
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
    """Arguments of a test, their name, and the names of their marks."""

    arguments: dict[str, Any]
    name: str = ""
    marks: tuple[str, ...] = ()

    def __or__(self, other: "Subtest") -> "Subtest":
        name = ", ".join(filter(None, (self.name, other.name)))
        return Subtest(self.arguments | other.arguments, name, tuple(dict.fromkeys(self.marks + other.marks)))


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
        name = ", ".join(f"{name}={value!r:.100}" for name, value in arguments.items())
    return Subtest(arguments, name, tuple(mark.name for mark in value.marks) if is_param else ())


def _subtests(test: Callable) -> list[Subtest]:
    return getattr(test, "subtests", [Subtest({})])


def _loop(test: Callable, subtests: list[Subtest], per_case: int = sys.maxsize) -> Callable:
    """Return a test that runs another in a loop, in a case for each set of marks."""
    function = getattr(test, "function", test)
    parameters = signature(function).parameters
    arguments = set(subtests[0].arguments)
    looped = (arguments | {"trace"} if "style" in arguments else arguments) & set(parameters)
    groups = defaultdict(list)
    for subtest in subtests:
        groups[subtest.marks].append(subtest)

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
            group[i : i + per_case], id=_case_id(names, i), marks=[getattr(pytest.mark, name) for name in names]
        )
        for names, group in groups.items()
        for i in range(0, len(group), per_case)
    ]
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.args[:1] != ("group",)]
    run.pytestmark = [*marks, pytest.mark.parametrize("group", cases).mark]
    return run


def _case_id(marks: tuple[str, ...], start: int) -> Any:
    """Return the id of a case from its marks and the number of its first subtest; the first core case needs none."""
    return "-".join([*marks, *([f"from {start}"] if start else [])]) or pytest.HIDDEN_PARAM
