"""The lines of the map: how thick they are, and where they lead."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.views.overview.diagram import Line
from explorer.views.overview.tall import Tall
from explorer.views.overview.wide import Wide
from tests import layouts


@pytest.mark.parametrize("kind", [Wide, Tall])
def test_lines_are_as_thick_as_vectors_are_long(trace, found, diagram, kind):
    """Where they lead says whose they are."""
    plan, sheet = kind(trace.config), diagram.sheets[[Wide, Tall].index(kind)]
    longest = max(found.stream.max(), found.writes.max(), found.token, found.positions)

    def widths(lengths) -> np.ndarray:
        return np.maximum(1, plan.thickest * np.asarray(lengths) / longest)

    flows = [line for line in sheet.lines if not line.arrow]
    layers = range(plan.config.num_layers)
    for name, sublayer, column in (("attention", "attn", 0), ("feed_forward", "ffn", 1)):
        lines = [line for line in flows if line.kind == name]
        assert [ends(line, kind)[1] for line in lines] == [
            (plan.place(layer, f"add_{sublayer}"), plan.stream) for layer in layers
        ]
        assert_allclose([line.width for line in lines], widths(found.writes[:, column]))
    stream = [line for line in flows if line.kind == "residual"]
    assert_allclose([line.width for line in stream], widths(found.stream))
    assert all(ends(a, kind)[1] == ends(b, kind)[0] for a, b in pairwise(stream))
    assert [ends(line, kind)[0][0] for line in stream[1:]] == plan.changes()
    added = plan.position_added, plan.stream
    first = [line for line in flows if line.kind == "embedding" and ends(line, kind)[1] == added]
    assert_allclose([line.width for line in first], widths([found.positions, found.token] if found.positions else []))


def ends(line: Line, kind: type) -> tuple[tuple[float, float], tuple[float, float]]:
    """How far along and across."""
    first, last = line.corners[:2], line.corners[-2:]
    return (first, last) if kind is Wide else (first[::-1], last[::-1])


@pytest.mark.parametrize("kind", [Wide, Tall])
def test_arrows_say_what_is_read(trace, diagram, post, kind):
    """Heads and feed-forward of the stream, o_proj of the heads, and the angles by the heads."""
    plan = kind(trace.config)
    read = {ends(line, kind) for line in diagram.sheets[[Wide, Tall].index(kind)].lines if line.arrow}
    for layer in range(plan.config.num_layers):
        begins = {name: (plan.place(layer, name), plan.stream) for name in ("read_attn", "read_ffn")}
        if plan.config.norm_placement == "shared":  # both read what the norm beside the stream gives out
            norm = plan.norm(layer, "attn_norm")
            read.remove(((norm[0], plan.stream), norm))
            begins = dict.fromkeys(begins, norm)
        begins["add_attn"] = plan.place(layer, "add_attn"), plan.heads[1]
        for name, end in (
            ("read_attn", plan.heads[1]),
            ("add_attn", plan.o_proj[0]),
            ("read_ffn", plan.feed_forward[0]),
        ):
            read.remove((begins[name], (plan.place(layer, name), end)))
        for sublayer, end in (("attn", plan.o_proj[1]), ("ffn", plan.feed_forward[0])):
            if name := layouts.output_norm(plan.config, sublayer):
                read.remove(((plan.place(layer, f"add_{sublayer}"), end), plan.norm(layer, name)))
        if plan.config.rotates(layer):
            read.remove(((plan.middle(layer), plan.rotary), (plan.middle(layer), plan.heads[0])))
    assert {end[0] for _, end in read} == {plan.after("list") - 3, *([] if post else [plan.after("lm_head")])}
