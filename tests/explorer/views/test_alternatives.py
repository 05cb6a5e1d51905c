"""What is told in the place of a picture is what is drawn."""

import re

import numpy as np
import pytest

from explorer import capture
from explorer.analysis.lens import readings
from explorer.explain.notation import number, quoted
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.views import patching
from explorer.views.attention.detail import ladder
from explorer.views.compare import apart
from explorer.views.experiments.ablation_map import heads as silenced
from explorer.views.kv_cache.savings import size, work
from explorer.views.prediction.logit_lens import lens, path
from explorer.views.prediction.logit_parts import heads
from explorer.views.residual.stream import lengths
from model.counting import kv_cache_bytes_per_token
from tests.specimens import tokenizer

QUERY, TOKEN = 9, 17


def told(figure) -> str:
    return figure.layout.meta["alt"]


@pytest.fixture
def runs(lms, rope_trace):
    """`runs(at)`: one, and another with another token there."""

    def runs(at: int) -> Comparison:
        ids = (*rope_trace.token_ids[:at], 70, *rope_trace.token_ids[at + 1 :])
        return Comparison.of(rope_trace, capture(lms["rope"], ids, tokenizer=tokenizer()))

    return runs


def patched(name: str):
    (panel,) = (panel for panel in patching.VIEW.panels if panel.name == name)
    return lambda runs, query: panel.draw(runs, Selection(query=query).within(runs.trace))


@pytest.mark.parametrize(
    "draw",
    [
        lambda runs, query: heads(runs.trace, query, TOKEN),
        lambda runs, query: silenced(runs.trace, query, TOKEN),
        lambda runs, query: apart.heads(runs, 0, 0),
        patched("heads_denoise"),
        patched("positions_noise"),
    ],
    ids=["adds", "silenced", "apart", "patched-heads", "patched-positions"],
)
def test_of_a_map_the_largest_cell_by_its_row_and_column(runs, draw):
    places = set()
    for query in range(5, 12):
        drawn = draw(runs(query - 3), query)
        values = np.abs(np.asarray(drawn.data[0].z, float))
        layer, column = map(int, re.search(r"layer (\d+),? (?:head|column) (\d+)", told(drawn)).groups())
        assert (layer, column) == np.unravel_index(np.nanargmax(values), values.shape)
        places.add((layer, column))
    assert any(layer != column for layer, column in places)


def test_of_the_stages_the_chosen_keys_score_and_weight(rope_trace):
    score, weight = (rope_trace[f"blocks.1.attn.{tap}"][0, QUERY, 4] for tap in ("scores", "pattern"))
    assert f"a score of {number(score)} and a weight of {number(weight)}." in told(ladder(rope_trace, 1, 0, QUERY, 4))


def test_of_lengths_the_token_that_is_longest_in_the_end(rope_trace):
    drawn = lengths(rope_trace)
    assert told(drawn).endswith(f"longest at {quoted(rope_trace.tokens[int(np.argmax(drawn.data[0].z[-1]))])}.")


def test_of_the_lens_what_is_likeliest_in_the_end_and_of_a_path_its_ends(rope_trace):
    token_id = int(readings(rope_trace, range(len(rope_trace))).top[-1, QUERY, 0])
    assert told(lens(rope_trace, QUERY, TOKEN)).endswith(
        f"After {quoted(rope_trace.tokens[QUERY])} it is {quoted(rope_trace.vocabulary[token_id])} in the end."
    )
    drawn = path(rope_trace, QUERY, TOKEN)
    first, *_, last = drawn.data[0].y
    assert f"{number(first)} at the embedding, {number(last)} at the end" in told(drawn)


def test_of_the_cache_what_it_takes_after_the_step(rope_trace):
    each = kv_cache_bytes_per_token(rope_trace.config)
    assert f"{(QUERY + 1) * each:,} bytes after this step" in told(size(rope_trace, QUERY))
    drawn = work(rope_trace, QUERY)
    cached, uncached = (list(line.y)[QUERY] for line in drawn.data)
    assert f"By step {QUERY + 1}, {cached:,} positions" in told(drawn) and f"without it {uncached:,}" in told(drawn)
