"""The example in `docs/views.md` is a view that `--views` accepts."""

import re
from pathlib import Path

import numpy as np
import pytest

from explorer.state.selection import Selection
from explorer.views import USER_VIEWS, add_user_views
from tests.sample_models import STYLES, capture_style

GUIDE = Path(__file__).parents[3] / "docs" / "views.md"


@pytest.fixture(scope="module")
def example() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    return code


def test_example_view_draws_every_kind_of_model(example, tmp_path, user_views, subtests):
    (tmp_path / "my_view.py").write_text(example, encoding="utf-8")
    add_user_views([tmp_path / "my_view.py"])
    (view,) = USER_VIEWS
    (panel,) = view.panels
    for style in STYLES:
        trace = capture_style(style)
        with subtests.test(style=style):
            for vector in "zqkv":
                selection = Selection().replace(layer=1, vector=vector).clamp_to_trace(trace)
                ((heatmap,), layout) = panel.draw(trace, selection).traces_and_layout
                values = trace[f"blocks.1.attn.{vector}"]
                np.testing.assert_allclose(np.asarray(heatmap["z"]), np.sqrt((values**2).sum(-1)), rtol=1e-5)
                assert layout["meta"]["alt"] == panel.title


def test_example_view_has_at_most_30_lines(example):
    assert len(example.splitlines()) <= 30
