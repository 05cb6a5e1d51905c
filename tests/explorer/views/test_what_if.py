from dataclasses import replace

import pytest

from explorer.state.interventions import Edit, parse_edits
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.views import VIEWS
from explorer.views.what_if import (
    BASE,
    FEED_FORWARD,
    HEAD,
    HEADS,
    NEURON,
    ROTATION_OFF,
    ROTATION_SHIFT,
    VECTOR_SHIFT,
    offered,
)

ALL = [ROTATION_SHIFT, VECTOR_SHIFT, BASE, ROTATION_OFF]


def test_a_model_is_offered_what_it_has(trace):
    taps = {"rope": ["rope.angles"] * 3, "none": []}.get(trace.config.position, ["position_embed"])
    assert [what_if.tap for what_if, _ in offered(ALL, trace, Selection())] == taps


def test_nothing_is_changed_at_the_defaults(trace):
    for what_if, amount in offered(ALL, trace, Selection()):
        assert amount == what_if.default
        assert what_if.minimum <= amount <= what_if.maximum


def test_every_view_offers_amounts_that_can_be(trace_of, lms):
    what_ifs = [what_if for view in VIEWS for what_if in view.what_ifs]
    assert what_ifs
    for style in lms:
        for what_if, _ in offered(what_ifs, trace_of(style), Selection(layer=1, head=2, neuron=3, query=7, key=2)):
            assert what_if.title and "{" not in what_if.title
            for amount in (what_if.default, what_if.minimum, what_if.maximum):
                for here in (False, True)[: 1 + bool(what_if.here)]:
                    edits = (what_if.edit(amount, here),)
                    run = capture(lms[style], trace_of(style).token_ids, edits)
                    assert run.edits == edits == parse_edits(",".join(map(str, edits)).split(","))


def test_the_present_amounts_are_those_of_the_run(lms, rope_trace):
    edits = parse_edits("rope.angles*base*500~blocks.0.attn.z.1*zero~rope.angles*zero")
    run = capture(lms["rope"], rope_trace.token_ids, edits)
    assert [amount for _, amount in offered(ALL, run, Selection())] == [0, 500, 1]


def test_the_default_of_the_base_is_the_models(rope_trace):
    for theta in (5, 500_000.0, 1e8):
        run = replace(rope_trace, config=replace(rope_trace.config, rope_theta=theta))
        ((what_if, amount),) = offered([BASE], run, Selection())
        assert amount == what_if.default == theta
        assert what_if.minimum <= theta <= what_if.maximum


def test_learned_positions_are_shifted_only_as_far_as_they_go(trace_of):
    ((what_if, _),) = offered([VECTOR_SHIFT], trace_of("learned"), Selection())
    assert what_if.maximum == 32 - 12
    assert offered([VECTOR_SHIFT], trace_of("learned", 32), Selection()) == []


def test_a_slider_by_factors_has_the_powers_of_ten_evenly_apart():
    assert [BASE.place(amount) for amount in (10, 100, 1e6)] == pytest.approx([1, 2, 6])
    assert ROTATION_SHIFT.place(5) == 5


def test_parts_are_those_that_are_chosen(trace):
    parts = [HEAD, HEADS, FEED_FORWARD, NEURON]
    offers = [offer for offer, _ in offered(parts, trace, Selection(layer=1, head=2, neuron=7))]
    assert [Edit(offer.tap, "zero", index=offer.index) for offer in offers] == list(
        parse_edits("blocks.1.attn.z.2*zero~blocks.1.attn.z*zero~blocks.1.ffn.hidden*zero~blocks.1.ffn.hidden.7*zero")
    )
    assert [offer.title for offer in offers] == [
        "head 2 of layer 1 ×",
        "all heads of layer 1 ×",
        "feed-forward of layer 1 ×",
        "neuron 7 of layer 1 ×",
    ]


def test_another_head_has_an_amount_of_its_own(lms, trace, style):
    run = capture(lms[style], trace.token_ids, parse_edits("blocks.1.attn.z.2*scale*0~blocks.1.attn.z*scale*0.5"))
    for head, amount in ((1, 1), (2, 0)):
        assert [a for _, a in offered([HEAD, HEADS], run, Selection(layer=1, head=head))] == [amount, 0.5]
