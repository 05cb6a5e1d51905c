from dataclasses import replace

import pytest

from explorer.state.interventions import Edit, parse_edits
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.views import VIEWS
from explorer.views.style import label
from explorer.views.what_if import offered
from explorer.views.what_ifs import (
    BASE,
    DROP,
    FEED_FORWARD,
    GATE,
    HEAD,
    HEADS,
    HIDDEN,
    MASK,
    MEAN,
    NEURON,
    NORMS,
    ROTATION_OFF,
    ROTATION_SHIFT,
    TAKEN_FEED_FORWARD,
    TAKEN_HEAD,
    TAKEN_HEADS,
    TAKEN_MEAN,
    TAKEN_NEURON,
    TAKEN_PATTERN,
    TAKEN_STREAM,
    TOWARDS,
    VECTOR_SHIFT,
    WITHOUT,
)
from tests import layouts
from tests.exhaustive import first_of
from tests.specimens import STYLES, tokenizer

ALL = [ROTATION_SHIFT, VECTOR_SHIFT, BASE, ROTATION_OFF]


def test_a_model_is_offered_what_it_has(trace):
    taps = {"rope": ["rope.angles"] * 3, "none": []}.get(trace.config.position, ["position_embed"])
    assert [what_if.tap for what_if, _ in offered(ALL, trace, Selection())] == taps


def test_nothing_is_changed_at_the_defaults(trace):
    for what_if, amount in offered(ALL, trace, Selection()):
        assert amount == what_if.default
        assert what_if.minimum <= amount <= what_if.maximum


@pytest.mark.parametrize("style", first_of(list(STYLES)))
@pytest.mark.exhaustive
def test_every_view_offers_amounts_that_can_be(trace_of, lms, style):
    what_ifs = [what_if for view in VIEWS for what_if in view.what_ifs]
    assert what_ifs
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


LOOK = Selection(layer=1, head=2, query=7, key=3, neuron=5)


def texts(what_ifs, trace, selection=LOOK, here=False) -> list[str]:
    return [offer.texts(here)[0] for offer, _ in offered(what_ifs, trace, selection)]


def test_an_edge_is_that_of_the_chosen_query_and_key(trace):
    edge = "blocks.1.attn.pattern.2@7"
    assert texts([MASK, DROP], trace) == [f"{edge}*mask*3", f"{edge}*drop*3"]
    assert texts([MASK, DROP], trace, Selection(layer=1, head=2)) == ["blocks.1.attn.pattern.2@0*drop*0"]


def test_an_edge_goes_in_one_head_in_its_layer_or_in_all_layers(lms, trace, style):
    scopes = ["blocks.1.attn.pattern.2@7", "blocks.1.attn.pattern@7", "blocks.*.attn.pattern@7"]
    for kind, (offer, amount) in zip(("mask", "drop"), offered([MASK, DROP], trace, LOOK), strict=True):
        assert offer.texts_of_scopes() == [f"{scope}*{kind}*3" for scope in scopes]
        assert [scope.title for scope in offer.scopes] == [
            "with head 2 of layer 1",
            "with any head of layer 1",
            "with any head of any layer",
        ]
        assert amount == 0
        for number, text in enumerate(offer.texts_of_scopes(), 1):
            run = capture(lms[style], trace.token_ids, parse_edits(text))
            assert [amount for _, amount in offered([MASK, DROP], run, LOOK)] == [
                number * (each == kind) for each in ("mask", "drop")
            ]
    both = capture(lms[style], trace.token_ids, parse_edits(f"{scopes[2]}*mask*3~{scopes[0]}*mask*3"))
    assert offered([MASK], both, LOOK)[0][1] == 3  # the widest


def test_a_gate_is_held_where_there_is_one_and_begins_as_it_is(trace):
    ((offer, amount),) = offered([GATE, HIDDEN], trace, LOOK)
    name = "blocks.1.ffn." + ("gate" if trace.config.is_gated else "hidden")
    assert offer.texts() == (f"{name}.5*clamp",) * 2
    assert amount == offer.default == pytest.approx(trace[name][7, 5], rel=0.01)


def test_the_stream_is_pushed_towards_the_explained_token(trace):
    token = int(trace["logits"][7].argmax())
    stream = "blocks.1.resid_post"
    assert texts([TOWARDS, WITHOUT], trace) == [f"{stream}*add*unembed.{token}", f"{stream}*remove*unembed.{token}"]
    shown = label(trace.vocabulary[token]).strip("\u2068\u2069")
    assert shown.replace("·", "") in offered([TOWARDS], trace, LOOK)[0][0].title.replace("·", "")


def test_a_norm_can_be_what_it_is_not(trace):
    kinds = [kind for kind in ("rmsnorm", "layernorm", "none") if kind != trace.config.norm]
    norms = [f"blocks.1.{name}" for name in layouts.NORMS[trace.config.norm_placement]]
    places = [*norms, *["final_norm"] * (trace.config.norm_placement != "post")]
    assert texts(NORMS, trace) == [f"{place}*norm*{kind}" for place in places for kind in kinds]
    for (offer, _), place in zip(offered(NORMS, trace, LOOK)[::2], places, strict=True):
        assert offer.texts()[1] == f"{place}*norm"  # the other kind takes its place


def test_all_but_edges_can_be_done_at_the_chosen_token_alone(lms, trace, style):
    offers = [HEAD, NEURON, MEAN, GATE, HIDDEN, TOWARDS, WITHOUT, *NORMS]
    assert all("@7*" in text for text in texts(offers, trace, here=True))
    assert not any("@" in text for text in texts(offers, trace))
    run = capture(lms[style], trace.token_ids, parse_edits("blocks.1.attn.z.2@7*scale*0.5~blocks.1.attn.z.2*mean"))
    (head, amount), (mean, is_on) = offered([HEAD, MEAN], run, LOOK)
    assert (amount, head.amount_here, is_on, mean.amount_here) == (1, 0.5, 1, 0)


OTHERS = [TAKEN_HEAD, TAKEN_HEADS, TAKEN_PATTERN, TAKEN_FEED_FORWARD, TAKEN_NEURON, TAKEN_STREAM, TAKEN_MEAN]


def test_values_of_another_run_are_offered_where_there_is_one(lms, trace_of, style):
    trace = trace_of(style)
    ids = (*trace.token_ids[:5], 70, *trace.token_ids[6:])
    other = capture(lms[style], ids, tokenizer=tokenizer())
    selection = Selection(layer=1, head=2, neuron=3, query=7)
    assert offered(OTHERS, trace, selection) == []
    offers = offered(OTHERS, trace, selection, Comparison.of(trace, other))
    assert len(offers) == len(OTHERS)
    for what_if, amount in offers:
        assert amount == 0 and what_if.here == "7" and "other run" in what_if.title
        for here in (False, True):
            edit = replace(what_if.edit(1, here), source=other)
            assert str(edit) == what_if.texts(here)[0] == str(parse_edits(str(edit))[0])
            changed = capture(lms[style], trace.token_ids, [edit], tokenizer=tokenizer())
            assert what_if.present(changed, here) == 1 and what_if.present(changed, not here) == 0


def test_a_token_without_a_partner_takes_nothing_here(lms, trace_of):
    trace = trace_of("rope")
    other = capture(lms["rope"], (*trace.token_ids[:3], *trace.token_ids[4:]), tokenizer=tokenizer())
    two = Comparison.of(trace, other)
    offers = {what_if.tap: what_if for what_if, _amount in offered(OTHERS, trace, Selection(query=3), two)}
    assert "blocks.0.attn.pattern" not in offers  # which goes over between as many tokens alone
    assert offers["blocks.0.resid_post"].here is None
    ((stream, _amount),) = offered([TAKEN_STREAM], trace, Selection(query=4), two)
    assert stream.here == "4"
