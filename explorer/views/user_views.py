"""Views of the user's own, from files outside this package.

A mistake in such a file never stops the app: it is logged, and the page says it in place of the view, the figure or the
text, with the file and the line.
"""

import ast
import itertools
import logging
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import NoneType
from typing import Any

import plotly.graph_objects
from plotly.io.json import to_json_plotly

from explorer.errors import PointNotFoundError
from explorer.explain.derivation import Derivation
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import RunRequest
from explorer.state.selection import FIELD_NAME, GROUPS, OWN_FIELDS, Selection, SelectionField, registered_fields
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import BudgetExceededError, RequestCancelledError, ResultNotReadyError
from explorer.tracing.model_registry import ModelUnloadedError
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.selection import OPTIONS
from explorer.views.style import LIGHT, TOKEN_AXIS_KEY, plotly_template
from explorer.views.two_run_figures import NoDifferenceError, share_scale, subtract_figures
from explorer.views.verification import Verification
from explorer.views.view import HeadHeatmaps, HeadTable, Panel, TwoRunRenderer, View

LOG = logging.getLogger(__name__)
# Names of the page's state besides the fields of the selection, which are parts of one URL.
RESERVED_NAMES = {
    *OWN_FIELDS,
    *(field.name for field in (*fields(GenerationSettings), *fields(RunRequest))),
    *("branches", "began", "chat", "lang", "room", "text", "turn", "version"),
}
# Exceptions that say why there is no figure now, or that nobody waits for it.
NO_MISTAKES = (
    ResultNotReadyError,
    ModelUnloadedError,
    NoDifferenceError,
    PointNotFoundError,
    BudgetExceededError,
    RequestCancelledError,
)
_numbers = itertools.count(1)  # of the files, for their modules' names


class UserViewError(Exception):
    """A mistake in a user's view; the message says what and where."""


def view_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the file or the package of each view: the paths themselves, or what is in a folder of views."""
    for path in paths:
        if not path.is_dir() or (path / "__init__.py").exists():
            yield path
            continue
        for entry in sorted(path.iterdir()):
            is_package = (entry / "__init__.py").exists()
            if (is_package or entry.suffix == ".py") and not entry.name.startswith(("_", ".")):
                yield entry


def load_view(path: Path, add: Callable[[View], None]) -> View:
    """Run a user's file and add its `VIEW`, with functions that report their errors.

    Raises:
        ViewError: the file fails, or has no valid `VIEW`, or `add` refuses it.
    """
    source = UserViewFile(path)
    try:
        module = source.import_module()
    except (Exception, SystemExit) as error:
        raise UserViewError(source.report(error)) from error
    try:
        view = getattr(module, "VIEW", None)
        check_view(view)
        view = report_user_view_errors(view, source)
        add(view)
    except (AttributeError, TypeError, ValueError) as error:
        message = f"{source.view_location}: {error}"
        LOG.error("View of your own: %s", message)
        raise UserViewError(message) from error
    return view


def make_error_view(path: Path, message: str, number: int) -> View:
    """Return a view that says what is wrong with a file; no file's own view has such a name."""
    return View(name=f"_own_view_{number}", title=f"⚠ {path.name}", description=message, panels=())


class UserViewFile:
    """A user's file, or the package of that name with all its files."""

    def __init__(self, path: Path):
        self.path = path.resolve()

    @property
    def file(self) -> Path:
        return self.path / "__init__.py" if self.path.is_dir() else self.path

    def import_module(self) -> Any:
        """Import the user's file or folder as a module of its own name."""
        name = f"user_view_{next(_numbers)}_{self.path.stem}"
        folders = [str(self.path)] if self.path.is_dir() else None
        spec = spec_from_file_location(name, self.file, submodule_search_locations=folders)
        if spec is None or spec.loader is None:
            raise ImportError("this is no Python file")
        module = sys.modules[name] = module_from_spec(spec)  # where its submodules and dataclasses look for it
        spec.loader.exec_module(module)
        return module

    @property
    def view_location(self) -> str:
        """The line that assigns `VIEW`, or else the first one."""
        statements = ast.parse(self.file.read_text(encoding="utf-8")).body
        lines = [
            statement.lineno
            for statement in statements
            if isinstance(statement, ast.Assign | ast.AnnAssign)
            for target in ast.walk(statement)
            if isinstance(target, ast.Name) and target.id == "VIEW" and isinstance(target.ctx, ast.Store)
        ]
        return self.locate(self.file, lines[-1] if lines else 1)

    def locate(self, file: Path, line: int | None) -> str:
        """Return a file and line as text, relative to the source's folder."""
        return _("{file}, line {line}", file=file.relative_to(self.path.parent), line=line or 1)

    def contains(self, file: str) -> bool:
        """Return whether a file is the source or within it."""
        return Path(file) == self.path or self.path in Path(file).parents

    def report(self, error: BaseException, function: Callable | None = None) -> str:
        """Log an error, and return where in the user's files it was raised and what it says.

        Args:
            function: of the user's, which is named if the error was raised elsewhere.
        """
        lines = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
        if isinstance(error, SyntaxError) and error.filename:
            lines.append((error.filename, error.lineno))
        if code := getattr(function, "__code__", None):
            lines.insert(0, (code.co_filename, code.co_firstlineno))
        own = [(Path(file), line) for file, line in lines if self.contains(file)]
        location = self.locate(*own[-1]) if own else self.locate(self.file, 1)
        message = f"{location}: {type(error).__name__}: {error}"
        LOG.error("View of your own: %s", message, exc_info=error)
        return message


def check_view(view: Any) -> None:
    """Check a `VIEW`.

    Raises:
        ValueError: it is none, or lacks something, or names what does not exist.
    """
    if view is None:
        raise ValueError("there is no VIEW")
    if not isinstance(view, View):
        raise ValueError(f"VIEW is a View, got {type(view).__name__}")
    for name in ("panels", "controls", "fields", "required_taps", "required_any_tap"):
        if not isinstance(getattr(view, name), tuple | list):
            raise ValueError(f"{name} is a tuple, got {getattr(view, name)!r:.60}")
    for panel in view.panels:
        if not isinstance(panel, Panel):
            raise ValueError(f"panels is a tuple of Panels, got {type(panel).__name__}")
    names = [panel.name for panel in view.panels]
    for name in (view.name, *names):
        if not isinstance(name, str) or not FIELD_NAME.fullmatch(name):
            raise ValueError(f"a name has lower-case letters, digits and underscores, got {name!r:.60}")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"a view has one panel or more, each with its own name, got {', '.join(names) or 'none'}")
    for text in (view.title, view.description, *(panel.title for panel in view.panels)):
        if not isinstance(text, str):
            raise ValueError(f"titles and descriptions are texts, got {text!r:.60}")
    if view.group not in GROUPS or view.group == "story":
        raise ValueError(f"group is one of {', '.join(GROUPS[1:])}, got {view.group!r:.60}")
    for field in view.fields:
        if not isinstance(field, SelectionField):
            raise ValueError(f"fields is a tuple of SelectionFields, got {type(field).__name__}")
        if field.name in RESERVED_NAMES:
            raise ValueError(f"the name {field.name!r} is taken")
    declared = {field.name for field in (*view.fields, *registered_fields())}
    for name in view.controls:
        if name not in declared | OPTIONS.keys():
            raise ValueError(f"{name!r} is no control; there are {', '.join(sorted(declared | OPTIONS.keys()))}")
    for panel in view.panels:
        if not callable(panel.draw) or panel.kind not in USER_FIGURES:
            raise ValueError(f"draw of {panel.name} is a function, and its kind is one of {', '.join(USER_FIGURES)}")
        for names in panel.click_selects.values():
            for name in (names,) if isinstance(names, str) else names:
                if name not in declared | {*OWN_FIELDS}:
                    raise ValueError(f"a click on {panel.name} selects {name!r}, which is no field")


def report_user_view_errors(view: View, source: UserViewFile) -> View:
    """Return the view with functions that report their errors, and with answers that are not cached."""

    def guard(
        function: Callable,
        on_error: Callable[[str], Any],
        result: type | tuple[type, ...] = object,
        author: Callable | None = None,  # the user's function that it calls
    ) -> Callable:
        def call(*arguments: Any) -> Any:
            try:
                value = function(*arguments)
                if not isinstance(value, result):
                    raise TypeError(f"this returned {type(value).__name__}")
                return value
            except NO_MISTAKES:
                raise
            except Exception as error:
                return on_error(source.report(error, author or function))

        return call

    def guard_functions(owner: Any, guards: Mapping[str, tuple]) -> Any:
        functions = {name: getattr(owner, name) for name in guards if callable(getattr(owner, name))}
        return replace(owner, **{name: guard(function, *guards[name]) for name, function in functions.items()})

    def guard_panel(panel: Panel) -> Panel:
        def draw(trace: Trace | Comparison, selection: Selection) -> go.Figure | HeadHeatmaps | HeadTable:
            if isinstance(trace, Trace):  # a condition that fails is reported here
                view.condition(trace)
                panel.condition(trace)
            return check_figure(panel.draw(trace, selection), panel)

        return replace(
            guard_functions(panel, PANEL_GUARDS),
            draw=guard(draw, raise_view_error, author=panel.draw),
            two_run_renderer=panel.two_run_renderer or USER_FIGURES[panel.kind],
        )

    def guard_field(field: SelectionField) -> SelectionField:
        if field.options is None or id(field) in map(id, registered_fields()):
            return field

        def options(trace: Trace, selection: Selection) -> list[tuple[Any, str]]:
            return [(value, str(text)) for value, text in field.options(trace, selection)]

        return replace(field, options=guard(options, lambda message: [(field.default, message)], author=field.options))

    return replace(
        guard_functions(view, VIEW_GUARDS),
        panels=tuple(map(guard_panel, view.panels)),
        fields=tuple(map(guard_field, view.fields)),
        reads_other_files=True,
    )


def raise_view_error(message: str) -> None:
    """Raise UserViewError."""
    raise UserViewError(message)


def raise_point_not_found(message: str) -> None:
    """Raise PointNotFoundError."""
    raise PointNotFoundError(message)


TEXT = (lambda message: message, str)  # the message stands for a text
# function -> what stands for its result if it fails, by the message, and the types of a result
VIEW_GUARDS = {
    **dict.fromkeys(("formula", "sentence", "comparison_sentence", "unavailable_message", "continuation_text"), TEXT),
    "condition": (lambda message: True,),
    "direction_spec": (lambda message: None,),
}
PANEL_GUARDS = {
    "condition": (lambda message: True,),
    "heading": TEXT,
    "verify": (lambda message: Verification("off", message), Verification),
    "inspect": (raise_point_not_found, (Derivation, tuple, NoneType)),
}


def check_figure(drawing: Any, panel: Panel) -> go.Figure | HeadHeatmaps | HeadTable:
    """Return what a panel drew as the page takes it.

    Raises:
        TypeError, ValueError: it is no figure of the panel's kind.
    """
    if panel.kind == "head_grid":
        if not isinstance(drawing, HeadHeatmaps):
            raise TypeError(f"draw returned {type(drawing).__name__}, a head_grid needs SmallMultiples")
        if len(drawing.values.shape) != 4:
            raise ValueError(f"SmallMultiples need values (L, H, T, T), got the shape {drawing.values.shape}")
        return drawing
    if panel.kind == "head_table":
        if not isinstance(drawing, HeadTable):
            raise TypeError(f"draw returned {type(drawing).__name__}, a head_table needs HeadTable")
        if len({column.values.shape for column in drawing.columns}) != 1 or drawing.columns[0].values.ndim != 2:
            raise ValueError("the columns of a HeadTable need values (L, H)")
        return drawing
    if isinstance(drawing, plotly.graph_objects.Figure):
        traces, layout = [trace.to_plotly_json() for trace in drawing.data], drawing.layout.to_plotly_json()
        layout.pop("template", None)  # the page has its own
    elif isinstance(drawing, go.Figure):
        traces, layout = drawing.traces_and_layout
    else:
        raise TypeError(f"draw returned {type(drawing).__name__}, not a figure")
    meta = layout.get("meta") if isinstance(layout.get("meta"), dict) else {}
    layout = {**layout, "meta": {"alt": panel.title, TOKEN_AXIS_KEY: [], **meta}}
    figure = go.Figure(traces, layout, plotly_template(LIGHT))
    to_json_plotly(figure.to_plotly_json())  # what cannot be sent is found here
    return figure


def share_user_scale(figure: Any, other: Any) -> Any:
    """Return the figure with the ranges of both, or with its own if these cannot be told."""
    try:
        return share_scale(figure, other)
    except (KeyError, TypeError, ValueError):
        return figure


def subtract_user_figures(first: Any, second: Any, comparison: Comparison, title: str) -> Any:
    """Return the figure of A − B.

    Raises:
        NoDifferenceError: there is none.
    """
    try:
        return subtract_figures(first, second, comparison, title)
    except (KeyError, IndexError, TypeError, ValueError):
        raise NoDifferenceError(_("A and B are drawn in different ways here: look at them in turn.")) from None


USER_FIGURES = {
    "figure": TwoRunRenderer(share_user_scale, subtract_user_figures),
    "head_grid": None,
    "head_table": None,
}
