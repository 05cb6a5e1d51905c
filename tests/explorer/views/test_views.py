"""What holds for every panel of every view, of every kind of model."""

import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace

import pytest
import torch

from explorer.state.interventions import Edit
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views import FULL, VIEWS
from explorer.views import graph_objects as go
from explorer.views.choices import OPTIONS, TITLES
from explorer.views.overview.diagram import Diagram
from explorer.views.view import SmallMultiples, View
from explorer.web.answers.open_view import OpenView
from explorer.web.answers.view_contents import packed
from explorer.web.widgets.model_map import ModelMap
from model.config import CHOICES, ModelConfig
from model.transformer_lm import TransformerLM
from tests.drawn import Picture
from tests.panels import PANELS, each_panel_and_style, every_panel, fitting_run, shows, subject
from tests.specimens import RECORD, SCORES, STYLES, edited_trace_of, know_training, trace_of, training

TAPS_OF_EACH_SIZE = ["logits", "blocks.0.ffn.hidden", "blocks.0.attn.scores"]  # V, F and T numbers a row
LARGEST = 3_000_000  # bytes of JSON
FIELDS = {field.name: field.type for field in fields(Selection)}
CLICKED = {"figure": {"x", "y", "customdata"}, "head_grid": {"x", "y", "layer", "head"}, "model_map": set()}
HOSTILE = "\u202e\n<b>{}&lt;"  # turns the text, breaks the line, and is markup and an entity

every_view = pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
SEVERAL = {name: panel for name, (_, panel) in PANELS.items() if isinstance(panel.selects.get("customdata"), tuple)}
# What follows lists of its own and no place.
OF_LISTS = ("patching-agreement", "patching-agreement_positions", "patching-paths")
FIGURES = [name for name, (_, panel) in PANELS.items() if panel.kind == "figure"]


def unchanged(name: str, style: str, length: int = 12) -> Trace:
    return trace_of(style, length)


def changed(name: str, style: str, length: int = 12) -> Trace:
    return edited_trace_of(style, length)


def selections(trace: Trace) -> list[Selection]:
    """The corners of what can be chosen."""
    most = 10**8
    corners = [
        Selection(),
        Selection(layer=most, head=most, query=most, key=most, tap="logits", dim=most),
        Selection(layer=most, query=most, key=0, tap="blocks.1.attn.pattern", dim=most),
        Selection(head=most, query=len(trace) // 2, key=len(trace) // 2, tap="blocks.0.ffn.hidden", dim=3),
    ]
    return list(dict.fromkeys(selection.within(trace) for selection in corners))


def texts(value) -> list[str]:
    """All strings in a JSON value but the text alternative, which is plain text and no plotly text."""
    if isinstance(value, dict):
        return [text for name, part in value.items() if name not in ("alt", "bdata") for text in texts(part)]
    if isinstance(value, list):
        return [text for part in value for text in texts(part)]
    return [value] if isinstance(value, str) else []


def check(drawn, panel):
    """What is drawn can be sent, says what it shows, and is no other than plotly knows."""
    if panel.kind == "head_grid":
        assert isinstance(drawn, SmallMultiples)
        assert drawn.alt.strip()
        assert ((drawn.values >= 0) & (drawn.values <= 1)).all()
    elif panel.kind == "model_map":
        assert isinstance(drawn, Diagram)
        assert drawn.alt.strip()
        assert json.dumps(ModelMap.pack(drawn), allow_nan=False)
    else:
        assert isinstance(drawn, go.Figure)
        assert json.loads(drawn.to_json())["layout"]["meta"]["alt"].strip()


def sent(drawn) -> str:
    """What the browser gets to draw, as JSON; faster than plotly's own, which checks all that it is given."""
    return json.dumps(list(map(json.loads, packed(drawn))) if isinstance(drawn, go.Figure) else packed(drawn))


def test_names_are_unique_and_fit_into_a_url():
    names = [view.name for view in VIEWS]
    assert len(set(names)) == len(names)
    for view in VIEWS:
        panels = [panel.name for panel in view.panels]
        assert panels and len(set(panels)) == len(panels)
        assert all(re.fullmatch("[a-z_]+", name) for name in [view.name, *panels])
    assert len({f"{view.name}-{panel.name}" for view in VIEWS for panel in view.panels}) == len(PANELS)


@every_view
def test_a_view_speaks_in_sentences(view, tiny_config):
    assert view.title.strip()
    instead = [view.otherwise(replace(tiny_config, position=position)) for position in CHOICES["position"]]
    for text in (view.words, *instead):
        assert text[0].isupper() and text.endswith(".")
    assert 2 <= len(re.findall(r"\.(?= |$)", view.words)) <= 4
    assert all(panel.title.strip() for panel in view.panels)


@every_view
def test_every_control_is_a_field_that_can_be_chosen(view):
    assert set(view.controls) <= set(OPTIONS) & set(TITLES) & set(FIELDS)
    assert len(set(view.controls)) == len(view.controls)


@every_panel
def test_a_click_selects_what_there_is(name):
    _, panel = PANELS[name]
    assert set(panel.selects) <= CLICKED[panel.kind]
    for source, names in panel.selects.items():
        several = isinstance(names, tuple)
        assert not several or (source == "customdata" and len(set(names)) == len(names))
        assert all(FIELDS.get(name) is int or (several and name == "view") for name in (names if several else [names]))


@each_panel_and_style(run=unchanged, where=lambda view, panel: panel in SEVERAL.values())
def test_a_click_that_selects_several_things_knows_them_all(name, style, length):
    trace, panel = trace_of(style, length), SEVERAL[name]
    for selection in selections(trace):
        rows = [
            row
            for part in Picture(panel.draw(subject(panel, trace), selection)).parts
            for row in part.get("customdata") or ()
        ]
        assert rows
        for row in rows:
            clicked = replace(selection, **dict(zip(panel.selects["customdata"], row, strict=True)))
            assert clicked == clicked.within(trace)
            assert clicked.view in {view.name for view in VIEWS}


@each_panel_and_style(lengths=[1, 12, 32], run=unchanged)
def test_every_panel_can_be_drawn(name, style, length):
    trace, panel = trace_of(style, length), PANELS[name][1]
    assert len(trace) == length
    for selection in selections(trace):
        check(panel.draw(subject(panel, trace), selection), panel)


@each_panel_and_style(lengths=[1, 12], run=changed)
def test_every_panel_can_be_drawn_of_a_changed_run(name, style, length):
    trace, panel = edited_trace_of(style, length), PANELS[name][1]
    check(panel.draw(subject(panel, trace), selections(trace)[-1]), panel)


@every_panel
def test_a_panel_that_compares_has_a_place_only_in_a_changed_run(name):
    view, panel = PANELS[name]
    for style in STYLES:
        runs = trace_of(style), edited_trace_of(style)
        plain, changed = (open_view(view, run) for run in runs)
        assert plain.has(panel) is (not panel.compares and changed.has(panel))


def open_view(view: View, run: Trace) -> OpenView:
    compared = Comparison.with_unchanged(run) if run.baseline else None
    return OpenView(view, run, Selection().within(run), comparison=compared)


@every_view
@pytest.mark.parametrize("length", [1, 12, pytest.param(32, marks=pytest.mark.exhaustive)], ids="{} tokens".format)
def test_every_formula_has_numbers_in_it(view, length):
    runs = [run_of(style, length) for style in STYLES for run_of in (trace_of, edited_trace_of)]
    fitting = [run for run in runs if view.applies_to(run)]
    assert fitting
    for trace in fitting:
        for selection in selections(trace):
            if view.compares and not trace.baseline:
                continue
            formula = view.formula(subject(view, trace), selection)
            assert re.search(r"= −?\d" if view in FULL else r"\d|first token", formula)
            assert not re.search(r"\b(nan|inf|None)\b", formula)


def test_a_view_applies_if_all_it_needs_was_captured(trace_of, style):
    trace = trace_of(style)
    for view in VIEWS:
        missing = [name for name in view.needs if not trace.has(name)]
        if view.needs_one_of and not any(map(trace.has, view.needs_one_of)):
            missing.append(" or ".join(view.needs_one_of))
        assert view.applies_to(trace) is not bool(missing)
        for needed in view.needs:
            pattern = re.compile(re.escape(needed).replace(r"\*", r"\d+"))
            rest = {name: value for name, value in trace.values.items() if not pattern.fullmatch(name)}
            assert not view.applies_to(replace(trace, values=rest))


def test_only_a_model_that_knows_positions_has_some_to_show(trace):
    knows = trace.config.position != "none"
    names = [view.name for view in VIEWS if view.applies_to(trace)]
    assert names == [view.name for view in VIEWS if knows or view.name != "positions"]


@every_panel
def test_a_panel_has_no_place_where_what_it_needs_was_not_captured(name):
    trace, (_, panel) = fitting_run(name), PANELS[name]
    for needed in panel.needs:
        rest = {tap: value for tap, value in trace.values.items() if tap != needed}
        assert not panel.applies_to(replace(trace, values=rest))


@pytest.mark.parametrize("name", FIGURES)
def test_no_token_is_read_as_markup(name):
    for text in hostile_texts(name):
        assert not re.search(r"<(?!br>|/?extra>)", text), text
        assert not re.search(r"&(?!lt;(b&gt;|b?…)|gt;|amp;)", text), text
        assert not re.search(r"[\n\u202e]", text), text


def test_no_token_turns_or_breaks_the_words_on_the_map():
    """Markup is none there: the page makes it no more than text."""
    found = [token for text in hostile_texts("overview-map") for token in re.findall("\u2068(.*?)\u2069", text, re.S)]
    assert any(token.startswith("⟨202E⟩↵<b>") for token in found)
    assert all(token.startswith("⟨202E⟩") and "\n" not in token for token in found)
    assert not re.search("\u202e", "".join(hostile_texts("overview-map")))


def with_vocabulary(trace: Trace, vocabulary: tuple[str, ...]) -> Trace:
    baseline = trace.baseline and replace(trace.baseline, vocabulary=vocabulary)
    return replace(trace, vocabulary=vocabulary, baseline=baseline)


def hostile_texts(name: str) -> list[str]:
    """All that a panel writes where every token does its worst."""
    trace, (_, panel) = fitting_run(name), PANELS[name]
    hostile = with_vocabulary(trace, tuple(HOSTILE.format(i) for i in range(len(trace.vocabulary))))
    drawn = [panel.draw(subject(panel, hostile), selection) for selection in selections(hostile)]
    return [text for one in drawn for text in texts(json.loads(sent(one)))]


@pytest.mark.parametrize("name", FIGURES)
def test_what_cells_say_stands_where_their_values_do(name):
    """Along categories plotly moves the values of a heatmap to theirs, and leaves the texts where they stand."""
    trace, (_, panel) = fitting_run(name, 32), PANELS[name]
    for selection in selections(trace):
        picture = Picture(panel.draw(subject(panel, trace), selection))
        for part in picture.parts:
            if part["type"] != "heatmap" or not part.keys() & {"text", "hovertext", "customdata"}:
                continue
            for letter in "xy":
                axis = picture.axis(letter, part)
                if axis.get("type") == "category" and "categoryarray" in axis:
                    assert part[letter] == axis["categoryarray"], letter


@pytest.mark.parametrize("name", FIGURES)
def test_no_token_is_part_of_a_template(name):
    """Plotly fills in what stands in %{braces}, in a token too."""
    trace, (_, panel) = fitting_run(name), PANELS[name]
    hostile = with_vocabulary(trace, ("%{x}",) * len(trace.vocabulary))
    for selection in selections(hostile):
        plain, filled = (Picture(panel.draw(subject(panel, run), selection)).parts for run in (trace, hostile))
        for template in ("hovertemplate", "texttemplate"):
            assert [part.get(template) for part in plain] == [part.get(template) for part in filled]


@every_panel
def test_the_same_question_draws_the_same_picture(name):
    trace, (_, panel) = fitting_run(name), PANELS[name]
    first, second = (sent(panel.draw(subject(panel, trace), selections(trace)[-1])) for _ in range(2))
    assert first == second


@every_panel
def test_what_is_drawn_once_is_the_same_whatever_is_selected(name):
    trace, (_, panel) = fitting_run(name), PANELS[name]
    drawn = {sent(panel.draw(subject(panel, trace), selection)) for selection in selections(trace)}
    assert panel.once is (len(drawn) == 1) or name in OF_LISTS


@pytest.fixture(scope="module")
def long_traces() -> Iterator[list[Trace]]:
    """256 tokens through models with every kind of value as wide as in the largest models we ship or wider, changed."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 6000, "context_length": 256, "d_model": 512, "num_layers": 1, "num_heads": 8, "d_ff": 2048}
    configs = ModelConfig.llama_style(**sizes), ModelConfig.gpt_style(**sizes)
    ids = torch.randint(6000, (256,)).tolist()
    runs, lms = [], [TransformerLM(config).eval() for config in configs]
    for lm in lms:
        known = training("long/step-000001", range(3), **RECORD, **SCORES)
        know_training(lm, known, lambda name, ids, edits, lm=lm: (lm, capture(lm, ids, edits)))
        changed = capture(lm, ids, (Edit("blocks.0.attn.z", "zero", index=1),))
        runs.append(replace(changed, baseline=capture(lm, ids)))
    yield runs
    del lms  # which lived so long, for their weights


def drawn_at_length(long_traces: list[Trace], name: str) -> Iterator[go.Figure]:
    long_trace = next(run for run in long_traces if shows(name, run))
    for tap in TAPS_OF_EACH_SIZE if name.startswith("activations") else ["logits"]:
        yield PANELS[name][1].draw(
            subject(PANELS[name][1], long_trace), Selection(query=255, key=100, tap=tap, dim=5999).within(long_trace)
        )


# Jobs would take minutes at that length, and what they find is small: a number a layer and token, or 20.
AT_LENGTH = [name for name in FIGURES if not name.startswith("patching")]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", AT_LENGTH)
def test_a_picture_of_many_numbers_is_small_enough_to_send(long_traces, name):
    for drawn in drawn_at_length(long_traces, name):
        assert len(sent(drawn)) < LARGEST


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", AT_LENGTH)
def test_a_picture_of_many_numbers_is_drawn_like_others(long_traces, name):
    for drawn in drawn_at_length(long_traces, name):
        check(drawn, PANELS[name][1])
