"""User views: a file adds a tab, and errors in the file are shown."""

import logging
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from explorer.cli_options import parse_arguments
from explorer.errors import PointNotFoundError, UserError
from explorer.state.selection import Selection, field_choices, registered_fields, view_names
from explorer.tracing.comparison import Comparison
from explorer.views import FULL, USER_VIEWS, Panel, View, add_user_views, numbers_views, unknown_view_message
from explorer.views.selection import make_selection_dropdowns
from explorer.views.two_run_figures import FigurePlaceholder
from explorer.views.user_views import RESERVED_NAMES
from explorer.web import request_validation
from explorer.web.actions.page_actions import invalid_query_fields
from explorer.web.browser_api.open_view import OpenView
from explorer.web.browser_api.page_contents import view_contents
from explorer.web.request_validation import ArgumentTypes
from explorer.web.shared_constants import js_constants

ROOT = Path(__file__).parents[3]
HEAD = "import plotly.graph_objects as go\nfrom explorer.views import Panel, SelectionField, View\n"
VALID_SOURCE = (
    HEAD
    + """
COUNT = SelectionField("count", 2, "bars", values=(2, 3))
WORD = SelectionField("word", "", "word", is_free=True, options=lambda trace, s: [("", "none"), ("moon", "moon")])


def draw(trace, selection):
    return go.Figure(go.Bar(y=trace.stack("blocks.*.attn.pattern")[0, 0, -1, : selection.option("count")]))


VIEW = View(name="mine", title="Mine", panels=(Panel("bars", "Bars", draw),), fields=(COUNT, WORD), controls=("layer",))
"""
)
ONE_PANEL = 'VIEW = View(name="mine", title="Mine", panels=(Panel("bars", "Bars", draw),), fields=FIELDS)\n'


def accept_state(state: request_validation.State):
    """Accept a state, like a server function."""


def open_view(view: View, trace, **selection) -> OpenView:
    return OpenView(view, trace, Selection().replace(view=view.name, **selection).clamp_to_trace(trace))


def test_file_adds_a_tab_and_its_fields(user_views, rope_trace):
    before = numbers_views(has_own_module=True)
    view = user_views("mine.py", VALID_SOURCE)
    assert numbers_views(has_own_module=True) == (*before, view) and js_constants()["FULL_TABS"][-1] == "mine"
    assert "Mine" in unknown_view_message("nowhere") and unknown_view_message("mine") == ""

    query = {"view": "mine", "count": "3", "word": "moon"}
    selection = Selection.parse(query)
    assert (selection.view, selection.option("count"), selection.option("word")) == ("mine", 3, "moon")
    assert query.items() <= {name: str(value) for name, value in selection.as_dict().items()}.items()
    assert field_choices()["count"] == (2, 3) and invalid_query_fields(query) == []
    assert invalid_query_fields({"count": "4"}) == invalid_query_fields({"count": "x"}) == ["count"]
    clamped = Selection.parse({"count": "4", "word": "x" * 99}).clamp_to_trace(rope_trace)
    assert (clamped.option("count"), clamped.option("word")) == (2, "x" * 40)

    types = ArgumentTypes(accept_state)
    types.check([{"count": 3, "word": "moon"}])
    for wrong in ({"count": "3"}, {"count": True}, {"count": -1}, {"count": 1.0}, {"word": 1}, {"word": None}):
        with pytest.raises(UserError, match=f"{next(iter(wrong))} is "):
            types.check([wrong])

    page = open_view(view, rope_trace, count=3)
    assert [(choice.field, choice.title) for choice in page.choices] == [
        ("layer", "layer"),
        ("count", "bars"),
        ("word", "word"),
    ]
    (count,) = make_selection_dropdowns(("count",), rope_trace, Selection())
    assert count.options == [(2, "2"), (3, "3")]
    contents = view_contents(page, newly=True, stage=0) | view_contents(page, newly=True, stage=2)
    bars = page.draw(view.panels[0]).traces_and_layout[0][0]["y"]
    np.testing.assert_array_equal(bars, rope_trace["blocks.0.attn.pattern"][0, -1, :3])
    assert '"bar"' in contents["mine-bars"][0] and contents["mine-bars-mark"] is None


@pytest.mark.parametrize(
    ("source", "line", "mistake"),
    [
        ("x = 1\ny = 1 / 0\n", 2, "ZeroDivisionError: division by zero"),
        ("x = 1\nVIEW = View(\n", 2, "SyntaxError: '(' was never closed"),
        ("import no_such_module\n", 1, "ModuleNotFoundError: No module named 'no_such_module'"),
        ("\nimport sys\nsys.exit('<b>out</b>')\n", 3, "SystemExit: <b>out</b>"),
        ("x = 1\n", 1, "there is no VIEW"),
        ("\nVIEW = {'name': 'mine'}\n", 2, "VIEW is a View, got dict"),
        (VALID_SOURCE.replace('name="mine"', 'name="attention"'), 12, "the name 'attention' is taken"),
        (VALID_SOURCE.replace('name="mine"', 'name="rope"'), 12, "the name 'rope' is taken"),
        (VALID_SOURCE.replace('name="mine"', 'name="My view"'), 12, "a name has lower-case letters"),
        (VALID_SOURCE.replace('"count", 2', '"metric", 2'), 12, "the name 'metric' is taken"),
        (VALID_SOURCE.replace('"word", "", ', '"count", "", '), 12, "the name 'count' is taken"),
        (VALID_SOURCE.replace('"count", 2', '"temperature", 2'), 12, "the name 'temperature' is taken"),
        (VALID_SOURCE.replace('"count", 2', '"count", 7'), 4, "ValueError: the default of count is one of its values"),
        (
            VALID_SOURCE.replace('"count", 2', '"count", 0.5'),
            4,
            "ValueError: count is text or a whole number from 0, got 0.5",
        ),
        (VALID_SOURCE.replace('("layer",)', '("layers",)'), 12, "'layers' is no control; there are "),
        (VALID_SOURCE.replace('"Bars", draw', '"Bars", None'), 12, "draw of bars is a function"),
        (
            VALID_SOURCE.replace('"Bars", draw', '"Bars", draw, click_selects={"x": "quer"}'),
            12,
            "a click on bars selects 'quer'",
        ),
        (VALID_SOURCE.replace('(Panel("bars", "Bars", draw),)', "()"), 12, "a view has one panel or more"),
        (VALID_SOURCE.replace('(Panel("bars", "Bars", draw),)', "None"), 12, "panels is a tuple, got None"),
        (VALID_SOURCE.replace('("layer",)', '("layer")'), 12, "controls is a tuple, got 'layer'"),
        (VALID_SOURCE.replace('title="Mine"', "title=3"), 12, "titles and descriptions are texts, got 3"),
    ],
)
def test_error_in_a_file_is_shown_and_logged(user_views, rope_trace, caplog, source, line, mistake):
    before = registered_fields(), view_names()
    view = user_views("<i>.py", source)
    assert view.description.startswith(f"<i>.py, line {line}: {mistake}")
    assert view.title == "⚠ <i>.py" and numbers_views(has_own_module=False) == (*FULL, view)
    assert [view.description in record.getMessage() for record in caplog.records] == [True]
    contents = view_contents(open_view(view, rope_trace), newly=True, stage=0)
    assert contents[f"{view.name}-words"] == view.description
    assert (registered_fields(), view_names()) == (before[0], (*before[1], view.name))
    assert user_views("mine.py", VALID_SOURCE).title == "Mine"  # other files still work


def test_error_in_a_package_names_its_file(user_views, tmp_path):
    (tmp_path / "bars").mkdir()
    (tmp_path / "bars" / "drawing.py").write_text("\n\nx = [][0]\n")
    view = user_views("bars/__init__.py", "from . import drawing\n")
    add_user_views([tmp_path / "bars"])
    assert USER_VIEWS[-1].description == "bars/drawing.py, line 3: IndexError: list index out of range"
    assert view.title == "⚠ __init__.py"


@pytest.mark.parametrize(
    ("body", "line", "mistake"),
    [
        ("    return trace['blocks.9.attn.z']", 4, "KeyError: "),
        ("    return selection.option('nothing')", 4, "KeyError: \"no view declares a field 'nothing'"),
        ("    pass", 3, "TypeError: draw returned NoneType, not a figure"),
        ("    return {'data': []}", 3, "TypeError: draw returned dict, not a figure"),
        (
            "    return helper(trace)\n\n\ndef helper(trace):\n    raise ValueError('<img src=x>')",
            8,
            "ValueError: <img",
        ),
        ("    return go.Figure(go.Bar(y=[{1, 2}]))", 3, "TypeError: "),
        ("    from explorer.errors import UserError\n    raise UserError('no')", 5, "UserError: no"),
    ],
)
def test_failing_figure_shows_its_error(user_views, rope_trace, capture_edited_trace, caplog, body, line, mistake):
    view = user_views("mine.py", f"{HEAD}def draw(trace, selection):\n{body}\n\n\nFIELDS = ()\n{ONE_PANEL}")
    page = open_view(view, rope_trace)
    (panel,) = view.panels
    drawing = page.draw(panel)
    assert isinstance(drawing, FigurePlaceholder) and drawing.message.startswith(f"mine.py, line {line}: {mistake}")
    assert drawing.message in caplog.records[-1].getMessage() and caplog.records[-1].levelno == logging.ERROR
    assert view_contents(page, newly=True, stage=0)["mine-bars"] == {"instead": drawing.message}
    edited = capture_edited_trace("rope")
    for visible_run in ("a", "b", "difference"):
        comparison = Comparison.from_traces(rope_trace, edited)
        both = OpenView(
            view, rope_trace, Selection(shown=visible_run).clamp_to_trace(rope_trace), None, comparison, True
        )
        assert both.draw(panel).message == drawing.message


def test_other_failing_functions_show_their_errors(user_views, rope_trace):
    source = (
        HEAD
        + """
def fail(*arguments):
    raise ValueError("on purpose")

FIELDS = (SelectionField("word", "", "word", options=fail),)
PANEL = Panel("bars", "Bars", lambda trace, s: go.Figure(), condition=fail, heading=fail, verify=fail, inspect=fail)
VIEW = View(name="mine", title="Mine", panels=(PANEL,), fields=FIELDS, formula=fail, sentence=fail, condition=fail)
"""
    )
    view, message = user_views("mine.py", source), "mine.py, line 5: ValueError: on purpose"
    page = open_view(view, rope_trace)
    assert page.formula == page.sentence == page.draw(view.panels[0]).message == message
    assert view.panels[0].heading(rope_trace, page.selection) == message
    assert (page.verify(view.panels[0]).state, page.verify(view.panels[0]).words) == ("off", message)
    assert page.choices[0].options == [("", message)]
    with pytest.raises(PointNotFoundError, match=message):
        view.panels[0].inspect(rope_trace, page.selection, None)


def test_plain_figures_of_two_runs_have_a_difference(user_views, rope_trace, capture_edited_trace):
    view, other = user_views("mine.py", VALID_SOURCE), capture_edited_trace("rope")
    comparison = Comparison.from_traces(rope_trace, other)
    selection = Selection(shown="difference").clamp_to_trace(rope_trace)
    figure = OpenView(view, rope_trace, selection, None, comparison, True).draw(view.panels[0])
    weights = [run["blocks.0.attn.pattern"][0, -1, :2] for run in (rope_trace, other)]
    np.testing.assert_allclose(figure.traces_and_layout[0][0]["y"], weights[0] - weights[1], atol=1e-7)


def test_folder_adds_all_its_views(user_views, tmp_path):
    folder = tmp_path / "views"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "__init__.py").write_text("from .figures import VIEW")
    (folder / "package" / "figures.py").write_text(VALID_SOURCE)
    (folder / "other.py").write_text(
        VALID_SOURCE.replace('"mine"', '"other"').replace("count", "number").replace("word", "wort")
    )
    (folder / "_helper.py").write_text("1 / 0")
    (folder / "notes.txt").write_text("no view")
    add_user_views(parse_arguments(["--views", str(folder)]).views)
    assert [view.name for view in USER_VIEWS] == ["other", "mine"]


def test_missing_file_is_refused_before_start(capsys):
    with pytest.raises(SystemExit):
        parse_arguments(["--views", "no_such_file.py"])
    assert "there is no file or folder no_such_file.py" in capsys.readouterr().err


def test_views_and_panels_have_three_required_fields():
    required = {cls: [f.name for f in fields(cls) if f.default is f.default_factory] for cls in (View, Panel)}
    assert required == {View: ["name", "title", "panels"], Panel: ["name", "title", "draw"]}


def test_fields_use_no_reserved_names():
    declared = {field.name for field in registered_fields()}
    page_names = {name for name in request_validation._STATE.__annotations__ if "." not in name}
    assert page_names - declared == RESERVED_NAMES - {"room"} and not declared & RESERVED_NAMES


PLANTED = (
    HEAD
    + """
FIELD = SelectionField("planted_field", "a", "planted", values=("a", "b"))
VIEW = View(
    name="planted", title="Planted", group="components", order=25, fields=(FIELD,),
    panels=(Panel("bars", "Bars", lambda trace, selection: go.Figure()),),
)
"""
)
PLANTED_SCORE = """
        HeadScore("planted_score", "planted", "looks nowhere", "planted score", "score = 0",
            targets=lambda token_ids: np.zeros((len(token_ids), len(token_ids)), bool)),
"""
CHECK_PLANTED = """
from explorer.lessons.quantities import ARGUMENT_CHOICES
from explorer.state.selection import Selection, field_choices
from explorer.views import FULL
from explorer.web.shared_constants import js_constants
from explorer.web.request_validation import _STATE

names = js_constants()["FULL_TABS"]
assert [view.name for view in FULL] == names[: len(FULL)] and names[1:4] == ["tokens", "planted", "attention"], names
assert Selection.parse({"planted_field": "b"}).as_dict()["planted_field"] == "b"
assert "planted_field" in _STATE.__annotations__ and field_choices()["planted_field"] == ("a", "b")
assert field_choices()["head_score"][:2] == ("previous_token", "planted_score") == ARGUMENT_CHOICES["score"][:2]
"""


@pytest.mark.exhaustive
def test_new_view_and_head_score_need_one_entry_each(tmp_path):
    for name in ("model", "explorer"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "explorer" / "views" / "planted.py").write_text(PLANTED)
    head_scores = tmp_path / "explorer" / "analysis" / "head_scores.py"
    first, end_of_entry, others = head_scores.read_text().partition(
        "targets=lambda token_ids: np.eye(len(token_ids), k=-1, dtype=bool),\n        ),\n"
    )
    head_scores.write_text(first + end_of_entry + PLANTED_SCORE + others)
    lint = "import sys; from importlinter.cli import lint_imports_command as lint; sys.exit(lint(['--no-cache']))"
    for check in (CHECK_PLANTED, lint):
        result = subprocess.run([sys.executable, "-c", check], cwd=tmp_path, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
