"""Tokens with hostile texts: drawn as plain text, without markup or templates, each on its own line."""

import json
import re
from dataclasses import replace

import pytest

from explorer.tracing.trace import Trace
from tests.panels import PANELS, capture_first_applicable_run, subject
from tests.rendered_figures import RenderedFigure
from tests.subtest_loops import subtest_each

from .figure_checks import FIGURES, extreme_selections, figure_json, texts

HOSTILE = "\u202e\n<b>{}&lt;"  # reverses the text, breaks the line, and contains markup and an entity


def test_tokens_are_escaped_in_figures():
    for name in FIGURES:
        for text in hostile_texts(name):
            assert not re.search(r'<(?!br>|/?extra>|span style="color:#\w{6}">■|/span>)', text), (name, text)
            assert not re.search(r"&(?!lt;(b&gt;|b?…|1%)|gt;|amp;)", text), (name, text)
            assert not re.search(r"[\n\u202e]", text), (name, text)


def test_tokens_are_escaped_on_map():
    """The page inserts these as text, so markup has no effect."""
    tokens = [token for text in hostile_texts("overview-map") for token in re.findall("\u2068(.*?)\u2069", text, re.S)]
    assert any(token.startswith("⟨202E⟩↵<b>") for token in tokens)
    assert all(token.startswith("⟨202E⟩") and "\n" not in token for token in tokens)
    assert not re.search("\u202e", "".join(hostile_texts("overview-map")))


def with_vocabulary(trace: Trace, vocabulary: tuple[str, ...]) -> Trace:
    baseline = trace.baseline and replace(trace.baseline, vocabulary=vocabulary)
    return replace(trace, vocabulary=vocabulary, baseline=baseline)


def hostile_texts(name: str) -> list[str]:
    """Return all texts that a panel draws when every token is hostile."""
    trace, (_, panel) = capture_first_applicable_run(name), PANELS[name]
    hostile = with_vocabulary(trace, tuple(HOSTILE.format(i) for i in range(len(trace.vocabulary))))
    figures = [panel.draw(subject(panel, hostile), selection) for selection in extreme_selections(hostile)]
    return [text for figure in figures for text in texts(json.loads(figure_json(figure)))]


@pytest.mark.exhaustive
@subtest_each("name", FIGURES)
def test_tokens_are_not_part_of_templates(name):
    """Plotly substitutes %{braces} in texts, also inside tokens."""
    trace, (_, panel) = capture_first_applicable_run(name), PANELS[name]
    hostile = with_vocabulary(trace, ("%{x}",) * len(trace.vocabulary))
    for selection in extreme_selections(hostile):
        plain, filled = (RenderedFigure(panel.draw(subject(panel, run), selection)).parts for run in (trace, hostile))
        for template in ("hovertemplate", "texttemplate"):
            assert [part.get(template) for part in plain] == [part.get(template) for part in filled]
