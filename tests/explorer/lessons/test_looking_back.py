"""Where heads look back at most."""

import numpy as np

from explorer.lessons.looking_back import furthest_look


def test_it_is_the_largest_weight_but_those_left_out(trace):
    query = len(trace) - 1
    look = furthest_look(trace, query)
    weights = {
        (layer, head, key): trace[f"blocks.{layer}.attn.pattern"][head, query, key]
        for layer in range(trace.config.num_layers)
        for head in range(trace.config.num_heads)
        for key in range(1, query - 1)
    }
    assert (look.layer, look.head, look.key) == max(weights, key=weights.get)
    assert np.isclose(look.weight, max(weights.values()))


def test_a_short_text_has_none(trace):
    assert furthest_look(trace, 2) is None
    assert furthest_look(trace, 3).key == 1
