from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.views.prediction import logit_lens
from explorer.views.prediction.logit_lens import lens_map, visible_positions
from explorer.views.style import label, position_labels

TOKEN = 17


def test_long_prompts_are_shown_in_pages(rope_trace):
    def trace_with_length(length: int):
        return replace(rope_trace, token_ids=(rope_trace.token_ids * 22)[:length])

    assert visible_positions(trace_with_length(12), 0) == visible_positions(trace_with_length(12), 11) == range(12)
    assert visible_positions(trace_with_length(24), 23) == range(24)
    assert visible_positions(trace_with_length(100), 15) == range(16)
    assert visible_positions(trace_with_length(100), 99) == range(84, 100)
    assert visible_positions(trace_with_length(256), 70) == range(64, 80)
    repeated = {name: np.concatenate([value] * 9, axis=-2) for name, value in rope_trace.values.items()}
    long = replace(rope_trace, token_ids=rope_trace.token_ids * 9, values=repeated)
    figure = lens_map(long, 100, TOKEN)
    assert list(figure.data[0].x) == list(range(92, 108))
    assert list(figure.layout.xaxis.ticktext) == [label(token) for token in long.tokens[92:]]
    assert figure.data[0].hovertext[0][-1].startswith(f"after {position_labels(long.tokens)[107]}, ")
    assert "92 to 107 of 108" in figure.layout.xaxis.title.text
    assert_allclose(figure.data[0].z, lens_map(rope_trace, 0, TOKEN).data[0].z[:, np.arange(92, 108) % 12], rtol=1e-5)
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (99.5, 100.5)


@pytest.mark.parametrize(("times", "shown"), [(8, range(92, 100)), (15, range(92, 100)), (1, range(96, 100))])
def test_pages_of_a_large_model_are_shorter(rope_trace, monkeypatch, times, shown):
    long = replace(rope_trace, token_ids=(rope_trace.token_ids * 9)[:100])
    monkeypatch.setattr(logit_lens, "MAX_CLICK_MACS", times * logit_lens.lens_macs_per_position(long))
    assert visible_positions(long, 99) == shown
    assert visible_positions(long, 70) == range(70 // len(shown) * len(shown), (70 // len(shown) + 1) * len(shown))
