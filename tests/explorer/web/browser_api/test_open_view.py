import re
from dataclasses import replace

import pytest

from explorer.analysis.next_token import ranking_without_interventions
from explorer.explain.derivation import ClickedPoint
from explorer.explain.notation import quote_token
from explorer.interventions import parse_interventions
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.views import VIEWS
from explorer.web.browser_api.open_view import OpenView, make_open_view, point_derivation_text
from tests.exhaustive import zip_cycled
from tests.nasty_prompts import NASTY_PROMPTS
from tests.sample_models import models, tokenizer
from tests.subtest_loops import each_style, subtest_each

VIEW = {view.name: view for view in VIEWS}

every_view = subtest_each("view", VIEWS, ids=lambda view: view.name)


@every_view
def test_open_view_has_text_formula_choices_and_panels(rope_trace, view):
    selection = Selection(query=2, key=1).clamp_to_trace(rope_trace)
    open_view = OpenView(view, rope_trace, selection)
    sentence = view.sentence and not view.is_comparison and view.sentence(rope_trace, selection)
    alone = view.single_run_message if view.is_comparison else ""  # shown where the view is otherwise empty
    assert open_view.description == (alone or sentence or view.description)
    assert open_view.formula == (view.single_run_message if view.is_comparison else view.formula(rope_trace, selection))
    assert [choice.field for choice in open_view.choices] == ([] if view.is_comparison else list(view.select_controls))
    assert open_view.panels(newly=True) == list(view.panels)
    assert open_view.panels(newly=False) == [panel for panel in view.panels if not panel.is_selection_independent]


def test_list_of_lens_offers_what_difference_draws(capture_edited_trace):
    """A − B of the likeliest tokens' probabilities, and of ranks, is drawn of the explained token's probability."""
    trace = capture_edited_trace("rope")
    comparison = Comparison.with_unchanged(trace)

    def options(lens: str, run: str) -> list:
        selection = Selection(shown=run).replace(lens=lens).clamp_to_trace(trace)
        view = OpenView(VIEW["prediction"], trace, selection, comparison=comparison, has_other=True)
        return next(list(choice.options) for choice in view.choices if choice.field == "lens")

    explained, entropy = "probability (explained)", ("entropy", "entropy in bits")
    assert len(options("probability", "a")) == 4
    assert options("probability", "difference") == [("probability", explained), entropy]
    assert options("rank", "difference") == [("rank", explained), entropy]
    assert options("target", "difference") == [("target", explained), entropy]


def test_difference_lists_answers_beside_typed_one():
    """An answer of patching may be any token, also one that its list does not offer."""
    texts = "the fox asked the owl", "the fox and then the owl asked the owl"
    runs = [capture(models()["rope"], tuple(tokenizer().encode(text)), tokenizer=tokenizer()) for text in texts]
    trace, comparison = runs[0], Comparison.from_traces(*runs)

    def offered(**options) -> list:
        selection = Selection(shown="difference").replace(**options).clamp_to_trace(trace)
        view = OpenView(VIEW["patching"], trace, selection, comparison=comparison, has_other=True)
        return next([value for value, _text in choice.options] for choice in view.choices if choice.field == "answer")

    offers = offered()
    assert offers and " cat" not in offers
    assert offered(answer=" cat") == offers


def test_headings_name_selection(capture_edited_trace):
    edited_trace = capture_edited_trace("rope")
    selection = Selection(layer=1, head=2, query=9, key=4, neuron=7).clamp_to_trace(edited_trace)
    comparison = Comparison.with_unchanged(edited_trace)
    headings = {}
    for view in VIEWS:
        if not view.requires_own_module:
            open_view = OpenView(view, edited_trace, selection, comparison=comparison)
            panels = [panel for panel in view.panels if open_view.has(panel)]
            headings |= {f"{view.name}-{panel.name}": open_view.heading(panel) for panel in panels}
    assert not [text for text in headings.values() if re.search(r"[{}]|\bchosen\b", text)]
    query, key = (quote_token(edited_trace.tokens[i]) for i in (9, 4))
    assert headings["attention-pattern"] == f"Layer 1 head {selection.head}: who looks at whom"
    assert headings["attention-dimensions"] == f"Layer 1 head {selection.head}: the score of {query} → {key}"
    token = edited_trace.vocabulary[ranking_without_interventions(edited_trace, 9)[0]]
    assert headings["prediction-path"] == f"The probability of {quote_token(token)}, depth by depth"


@each_style
@every_view
def test_every_drawn_panel_has_badge(trace, view):
    """In every kind of model."""
    open_view = OpenView(view, trace, Selection().clamp_to_trace(trace))
    for panel in view.panels:
        assert bool(open_view.draw(panel)) is bool(open_view.verify(panel)) is open_view.has(panel)


def test_inapplicable_panel_is_not_drawn(capture_trace):
    (positions,) = [panel for panel in VIEW["tokens"].panels if panel.name == "positions"]
    for style, applies in (("rope", False), ("gpt", True), ("learned", True)):
        trace = capture_trace(style)
        open_view = OpenView(VIEW["tokens"], trace, Selection(view="tokens").clamp_to_trace(trace))
        assert (open_view.draw(positions) is not None) is bool(open_view.verify(positions)) is applies


def test_inapplicable_view_explains_why_and_is_empty(capture_trace):
    trace, view = capture_trace("none"), VIEW["kv_cache"]
    trace = replace(trace, values={name: value for name, value in trace.values.items() if not name.endswith("attn.k")})
    open_view = OpenView(view, trace, Selection().clamp_to_trace(trace))
    assert open_view.description == view.unavailable_message(trace.config)
    assert (open_view.formula, open_view.choices) == ("", [])
    assert [open_view.draw(panel) for panel in view.panels] == [None] * len(view.panels)


def test_view_independent_of_selection_has_no_lists(capture_trace):
    trace = capture_trace("learned")  # has a training log, but no steps
    open_view = OpenView(VIEW["training"], trace, Selection(view="training").clamp_to_trace(trace))
    assert open_view.has(VIEW["training"].panels[0]) and open_view.choices == []


def test_clicked_number_is_derived(rope_trace):
    open_view = OpenView(
        VIEW["attention"], rope_trace, Selection(layer=1, head=2, query=5, depth="code").clamp_to_trace(rope_trace)
    )
    weight = rope_trace["blocks.1.attn.pattern"][2, 5, 3]
    text = point_derivation_text(open_view, "pattern", ClickedPoint(x=3, y=5))
    assert f"{weight:.3g}" in text and "off by" in text and "model/layers/" in text
    with pytest.raises(IndexError):
        point_derivation_text(open_view, "pattern", ClickedPoint(x=3, y=99))
    with_words = {
        depth: point_derivation_text(
            replace(open_view, selection=open_view.selection.replace(depth=depth)), "pattern", ClickedPoint(x=3, y=5)
        )
        for depth in ("numbers", "formula")
    }
    score = float(rope_trace["blocks.1.attn.scores"][2, 5, 3])
    words = f"looks at “e” with {weight:.3g}: q·k {score * 8**0.5:.3g} ÷ √8 = {score:.3g}, then softmax\n"
    assert words in with_words["numbers"] and not re.search(r"blocks\.|\.py", with_words["numbers"])
    assert "blocks." in with_words["formula"] and ".py" not in with_words["formula"]
    assert point_derivation_text(open_view, "missing", ClickedPoint(x=0, y=0)) == ""


def test_selection_is_clamped_to_run(builder, page_state):
    far = Selection(layer=99, head=99, query=99, key=99, tap="nothing", dim=10**8)
    open_view = make_open_view(builder.runs, PageState(page_state.run, far))
    assert open_view.selection == far.clamp_to_trace(open_view.trace) != far


@subtest_each(
    ("text", "view"), zip_cycled(NASTY_PROMPTS, VIEWS), ids=lambda value: getattr(value, "name", ascii(value))
)
def test_tokens_of_hostile_text_are_drawn(builder, text, view):
    page_state = builder.state_from_query({"checkpoint": "rope", "text": text})
    open_view = make_open_view(
        builder.runs, replace(page_state, selection=replace(page_state.selection, view=view.name))
    )
    assert all(bool(open_view.draw(panel)) is open_view.has(panel) for panel in view.panels)


@pytest.mark.parametrize(
    ("style", "changes", "words"),
    [
        ("rope", {"edits": parse_interventions("blocks.0.attn.z.1*zero")}, "Choose a pair"),
        ("rope", {"other": ""}, "Choose a pair"),
        ("gpt", {"other": "the moon asked the owl"}, "A and B are read by different models"),
    ],
    ids=["changed", "same prompt", "other model"],
)
def test_message_about_all_figures_is_shown_once_above_them(builder, page_state, style, changes, words):
    other = changes.get("other")
    compared = None if other is None else builder.create_run(style, other or "the fox asked the owl")
    selection = replace(page_state.selection, view="patching")
    page_state = PageState(replace(page_state.run, edits=changes.get("edits", ())), selection, other=compared)
    open_view = make_open_view(builder.runs, page_state)
    assert words in open_view.formula
    assert [open_view.draw(panel) for panel in open_view.view.panels] == [None] * len(open_view.view.panels)
    assert not any(open_view.verify(panel) for panel in open_view.view.panels)


def test_message_about_one_figure_is_shown_in_its_place(builder, page_state):
    selection = page_state.selection.replace(view="patching", patch_head="attn.pattern")
    page_state = PageState(page_state.run, selection, other=builder.create_run("rope", "the moon asked"))
    open_view = make_open_view(builder.runs, page_state)
    figures = {panel.name: open_view.draw(panel) for panel in open_view.view.panels}
    assert None not in figures.values()
    assert "pattern" in figures["heads_denoise"].message and not hasattr(figures["positions_denoise"], "words")
