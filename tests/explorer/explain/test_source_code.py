"""Code that a view shows, and source lines of the project, located by their text."""

import re
from pathlib import Path

import pytest

from explorer.explain.source_code import SourceLine, code_text, mark_line
from explorer.views import FULL
from tests import sample_models
from tests.sample_models import STYLES
from tests.subtest_loops import subtest_each

ROOT = Path(__file__).parents[3]


def test_views_show_code_of_existing_components():
    without_code = {"experiments", "directions", "compare", "training", "own_module"}
    for style in STYLES:
        lm = sample_models.models()[style]
        for view in FULL:
            text = code_text(lm, 7, 1, view.code)
            assert f"T = 7, D = {lm.config.d_model}, H = {lm.config.num_heads}" in text
            headings = re.findall(r"^((?:model|explorer)/[\w/]+\.py):(\d+)  ([\w.]+)$", text, re.MULTILINE)
            assert bool(headings) == (view.name not in without_code), (style, view.name)
            for path, line, name in headings:
                lines = (ROOT / path).read_text("utf-8").splitlines()[int(line) - 1 :]
                assert any(f"def {name.rpartition('.')[2]}(" in text for text in lines[:3])
            marked = [line for line in mark_line(text, view.code_lines).splitlines() if line.startswith("→   ")]
            assert len(marked) == bool(headings), (style, view.name)
            assert not marked or (f" {marked[0][1:]}" in text and any(part in marked[0] for part in view.code_lines))


@subtest_each("layout, other", [("adjacent", "half_split"), ("half_split", "adjacent")])
def test_rotation_that_the_model_runs_is_quoted(layout, other):
    lm = sample_models.models()["rope" if layout == "adjacent" else "grouped"]
    view = next(view for view in FULL if view.name == "positions")
    text = mark_line(code_text(lm, 7, 1, view.code), view.code_lines)
    assert f"  rotate_{layout}\n" in text and f"rotate_{other}" not in text
    assert re.search(r"^→ .*\(a \* cos - b \* sin, a \* sin \+ b \* cos\)", text, re.MULTILINE)


def test_code_has_no_docstrings():
    text = code_text(
        sample_models.models()["rope"], 3, 0, ("blocks.{layer}.ffn", "model.layers.attention:attention_scores")
    )
    assert "class" not in text and '"""' not in text
    assert "model/layers/feed_forward.py" in text and "return (q / divisor) @ k.transpose" in text


@subtest_each("fragment, hits", [("no such text", 0), ("import", 8)])
def test_ambiguous_or_missing_fragment_is_refused(fragment, hits):
    with pytest.raises(ValueError, match=f"but {hits} do"):
        _ = SourceLine("model/layers/attention.py", fragment).line


def test_line_is_found_within_its_definition():
    lines = [
        SourceLine("model/layers/feed_forward.py", "return self.out(", name).line for name in ("FeedForward", "SwiGLU")
    ]
    assert lines[0] < lines[1]


def test_derivation_quotes_code_line_instead_of_itself():
    line = SourceLine("explorer/analysis/residual.py", "return (units @ units.T)")
    text = (ROOT / line.path).read_text("utf-8")
    assert text.count(line.fragment) == 2  # the line, and the derivation that quotes it
    assert line.text.startswith("return") and line.line < text[: text.index(f'"{line.fragment}"')].count("\n")
