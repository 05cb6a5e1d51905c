"""Code that a view shows: lines of this repository, of the parts that the model has."""

import re
from pathlib import Path

from explorer.explain.source_code import code_text
from explorer.views import FULL
from tests import sample_models
from tests.sample_models import STYLES

ROOT = Path(__file__).parents[3]


def test_every_view_shows_lines_of_the_parts_that_the_model_has():
    without_code = {"experiments", "directions", "patching", "compare", "training", "own_module"}
    for style in STYLES:
        lm = sample_models.models()[style]
        for view in FULL:
            text = code_text(lm, 7, 1, view.code)
            assert f"T = 7, D = {lm.config.d_model}, H = {lm.config.num_heads}" in text
            headings = re.findall(r"^(model/[\w/]+\.py):(\d+)  ([\w.]+)$", text, re.MULTILINE)
            assert bool(headings) == (view.name not in without_code), (style, view.name)
            for path, line, name in headings:
                lines = (ROOT / path).read_text("utf-8").splitlines()[int(line) - 1 :]
                assert any(f"def {name.rpartition('.')[2]}(" in text for text in lines[:3])


def test_the_code_is_whole_but_for_its_docstring():
    text = code_text(
        sample_models.models()["rope"], 3, 0, ("blocks.{layer}.ffn", "model.layers.attention:attention_scores")
    )
    assert "class" not in text and '"""' not in text
    assert "model/layers/feed_forward.py" in text and "return (q / divisor) @ k.transpose" in text
