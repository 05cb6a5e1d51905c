from dataclasses import replace

import pytest

from explorer.interventions import make_intervention, parse_interventions
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.views import VIEWS
from explorer.views.intervention_controls import (
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
    PATCH_FEED_FORWARD,
    PATCH_HEAD,
    PATCH_HEADS,
    PATCH_MEAN,
    PATCH_NEURON,
    PATCH_PATTERN,
    PATCH_STREAM,
    REMOVE_TOKEN_DIRECTION,
    ROTATION_OFF,
    ROTATION_SHIFT,
    STEER_TO_TOKEN,
    VECTOR_SHIFT,
    available_controls,
)
from explorer.views.style import label
from tests import layouts
from tests.sample_models import tokenizer
from tests.subtest_loops import each_style

POSITION_CONTROLS = [ROTATION_SHIFT, VECTOR_SHIFT, BASE, ROTATION_OFF]


@each_style
def test_controls_match_position_kind(trace):
    taps = {"rope": ["rope.angles"] * 3, "none": []}.get(trace.config.position, ["position_embed"])
    assert [what_if.tap for what_if, _ in available_controls(POSITION_CONTROLS, trace, Selection())] == taps


@each_style
def test_current_amounts_default_without_interventions(trace):
    for what_if, amount in available_controls(POSITION_CONTROLS, trace, Selection()):
        assert amount == what_if.default
        assert what_if.minimum <= amount <= what_if.maximum


@pytest.mark.exhaustive
@each_style
def test_offered_amounts_are_valid_interventions(capture_trace, lms, style):
    what_ifs = [what_if for view in VIEWS for what_if in view.intervention_controls]
    assert what_ifs
    for what_if, _ in available_controls(
        what_ifs, capture_trace(style), Selection(layer=1, head=2, neuron=3, query=7, key=2)
    ):
        assert what_if.title and "{" not in what_if.title
        for amount, is_here in ((what_if.default, True), (what_if.minimum, False), (what_if.maximum, True)):
            edits = (what_if.make_intervention(amount, is_here and bool(what_if.here)),)
            run = capture(lms[style], capture_trace(style).token_ids, edits)
            assert run.edits == edits == parse_interventions(",".join(map(str, edits)).split(","))


def test_current_amounts_follow_run(lms, rope_trace):
    edits = parse_interventions("rope.angles*base*500~blocks.0.attn.z.1*zero~rope.angles*zero")
    run = capture(lms["rope"], rope_trace.token_ids, edits)
    assert [amount for _, amount in available_controls(POSITION_CONTROLS, run, Selection())] == [0, 500, 1]


def test_ablated_head_has_amount_zero(lms, rope_trace):
    ablated = capture(lms["rope"], rope_trace.token_ids, parse_interventions("blocks.1.attn.z.2*zero"))
    for head, amount in ((2, 0), (1, 1)):
        assert [amount for _, amount in available_controls([HEAD], ablated, Selection(layer=1, head=head))] == [amount]


def test_base_default_is_model_theta(rope_trace):
    for theta in (5, 500_000.0, 1e8):
        run = replace(rope_trace, config=replace(rope_trace.config, rope_theta=theta))
        ((what_if, amount),) = available_controls([BASE], run, Selection())
        assert amount == what_if.default == theta
        assert what_if.minimum <= theta <= what_if.maximum


def test_learned_position_shift_ends_with_table(capture_trace):
    ((what_if, _),) = available_controls([VECTOR_SHIFT], capture_trace("learned"), Selection())
    assert what_if.maximum == 32 - 12
    assert available_controls([VECTOR_SHIFT], capture_trace("learned", 32), Selection()) == []


def test_logarithmic_slider_spaces_powers_of_ten_evenly():
    assert [BASE.slider_position(amount) for amount in (10, 100, 1e6)] == pytest.approx([1, 2, 6])
    assert ROTATION_SHIFT.slider_position(5) == 5


@each_style
def test_component_controls_follow_selection(trace):
    parts = [HEAD, HEADS, FEED_FORWARD, NEURON]
    offers = [offer for offer, _ in available_controls(parts, trace, Selection(layer=1, head=2, neuron=7))]
    assert [make_intervention(offer.tap, "zero", index=offer.index) for offer in offers] == list(
        parse_interventions(
            "blocks.1.attn.z.2*zero~blocks.1.attn.z*zero~blocks.1.ffn.hidden*zero~blocks.1.ffn.hidden.7*zero"
        )
    )
    assert [offer.title for offer in offers] == [
        "Scale head 2 of layer 1 by",
        "Scale all heads of layer 1 by",
        "Scale the feed-forward of layer 1 by",
        "Scale neuron 7 of layer 1 by",
    ]


@each_style
def test_each_head_has_own_amount(lms, trace, style):
    run = capture(
        lms[style], trace.token_ids, parse_interventions("blocks.1.attn.z.2*scale*0~blocks.1.attn.z*scale*0.5")
    )
    for head, amount in ((1, 1), (2, 0)):
        assert [a for _, a in available_controls([HEAD, HEADS], run, Selection(layer=1, head=head))] == [amount, 0.5]


SELECTION = Selection(layer=1, head=2, query=7, key=3, neuron=5)


def texts(what_ifs, trace, selection=SELECTION, here=False) -> list[str]:
    return [offer.texts(here)[0] for offer, _ in available_controls(what_ifs, trace, selection)]


@each_style
def test_edge_controls_use_chosen_query_and_key(trace):
    edge = "blocks.1.attn.pattern.2@7"
    assert texts([MASK, DROP], trace) == [f"{edge}*mask*3", f"{edge}*drop*3"]
    assert texts([MASK, DROP], trace, Selection(layer=1, head=2, query=2, key=2)) == []  # to itself


@each_style
def test_edge_scope_is_a_head_a_layer_or_all_layers(lms, trace, style):
    scopes = ["blocks.1.attn.pattern.2@7", "blocks.1.attn.pattern@7", "blocks.*.attn.pattern@7"]
    for kind, (offer, amount) in zip(("mask", "drop"), available_controls([MASK, DROP], trace, SELECTION), strict=True):
        assert offer.scope_texts() == [f"{scope}*{kind}*3" for scope in scopes]
        assert [scope.title for scope in offer.scopes] == [
            "in head 2 of layer 1",
            "in all heads of layer 1",
            "in all heads of all layers",
        ]
        assert amount == 0
        for number, text in enumerate(offer.scope_texts(), 1):
            run = capture(lms[style], trace.token_ids, parse_interventions(text))
            assert [amount for _, amount in available_controls([MASK, DROP], run, SELECTION)] == [
                number * (operation == kind) for operation in ("mask", "drop")
            ]
    both = capture(lms[style], trace.token_ids, parse_interventions(f"{scopes[2]}*mask*3~{scopes[0]}*mask*3"))
    assert available_controls([MASK], both, SELECTION)[0][1] == 3  # the widest


@each_style
def test_clamp_control_starts_at_captured_value(trace):
    ((offer, amount),) = available_controls([GATE, HIDDEN], trace, SELECTION)
    name = "blocks.1.ffn." + ("gate" if trace.config.is_gated else "hidden")
    assert offer.texts() == (f"{name}.5*clamp",) * 2
    assert amount == offer.default == pytest.approx(trace[name][7, 5], rel=0.01)


@each_style
def test_stream_is_steered_to_target_token(trace):
    token = int(trace["logits"][7].argmax())
    stream = "blocks.1.resid_post"
    assert texts([STEER_TO_TOKEN, REMOVE_TOKEN_DIRECTION], trace) == [
        f"{stream}*add*unembed.{token}",
        f"{stream}*remove*unembed.{token}",
    ]
    token_text = label(trace.vocabulary[token]).strip("\u2068\u2069")
    assert token_text.replace("·", "") in available_controls([STEER_TO_TOKEN], trace, SELECTION)[0][0].title.replace(
        "·", ""
    )


@each_style
def test_norm_controls_offer_other_kinds(trace):
    kinds = [kind for kind in ("rmsnorm", "layernorm", "none") if kind != trace.config.norm]
    norms = [f"blocks.1.{name}" for name in layouts.NORMS[trace.config.norm_placement]]
    taps = [*norms, *["final_norm"] * (trace.config.norm_placement != "post")]
    assert texts(NORMS, trace) == [f"{tap}*norm*{kind}" for tap in taps for kind in kinds]
    for (offer, _), tap in zip(available_controls(NORMS, trace, SELECTION)[::2], taps, strict=True):
        assert offer.texts()[1] == f"{tap}*norm"  # the other kind replaces it


@each_style
def test_controls_can_be_limited_to_chosen_token(lms, trace, style):
    offers = [HEAD, NEURON, MEAN, GATE, HIDDEN, STEER_TO_TOKEN, REMOVE_TOKEN_DIRECTION, *NORMS]
    assert all("@7*" in text for text in texts(offers, trace, here=True))
    assert not any("@" in text for text in texts(offers, trace))
    run = capture(
        lms[style], trace.token_ids, parse_interventions("blocks.1.attn.z.2@7*scale*0.5~blocks.1.attn.z.2*mean")
    )
    (head, amount), (mean, is_on) = available_controls([HEAD, MEAN], run, SELECTION)
    assert (amount, head.amount_here, is_on, mean.amount_here) == (1, 0.5, 1, 0)


PATCH_CONTROLS = [PATCH_HEAD, PATCH_HEADS, PATCH_PATTERN, PATCH_FEED_FORWARD, PATCH_NEURON, PATCH_STREAM, PATCH_MEAN]


@each_style
def test_patch_controls_need_another_run(lms, capture_trace, style):
    trace = capture_trace(style)
    ids = (*trace.token_ids[:5], 70, *trace.token_ids[6:])
    other = capture(lms[style], ids, tokenizer=tokenizer())
    selection = Selection(layer=1, head=2, neuron=3, query=7)
    assert available_controls(PATCH_CONTROLS, trace, selection) == []
    offers = available_controls(PATCH_CONTROLS, trace, selection, Comparison.from_traces(trace, other))
    assert len(offers) == len(PATCH_CONTROLS)
    for what_if, amount in offers:
        assert amount == 0 and what_if.here == "7" and "other run" in what_if.title
        for here in (False, True):
            edit = replace(what_if.make_intervention(1, here), source=other)
            assert str(edit) == what_if.texts(here)[0] == str(parse_interventions(str(edit))[0])
            changed = capture(lms[style], trace.token_ids, [edit], tokenizer=tokenizer())
            assert what_if.current_amount(changed, here) == 1 and what_if.current_amount(changed, not here) == 0


def test_unaligned_token_cannot_be_patched(lms, capture_trace):
    trace = capture_trace("rope")
    other = capture(lms["rope"], (*trace.token_ids[:3], *trace.token_ids[4:]), tokenizer=tokenizer())
    comparison = Comparison.from_traces(trace, other)
    offers = {
        what_if.tap: what_if
        for what_if, _amount in available_controls(PATCH_CONTROLS, trace, Selection(query=3), comparison)
    }
    assert "blocks.0.attn.pattern" not in offers  # can be patched between prompts of equal length only
    assert offers["blocks.0.resid_post"].here is None
    ((stream, _amount),) = available_controls([PATCH_STREAM], trace, Selection(query=4), comparison)
    assert stream.here == "4"
