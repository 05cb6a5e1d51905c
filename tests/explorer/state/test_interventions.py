"""An edit says what is changed, in text, in words and in limits."""

import math
from dataclasses import replace
from urllib.parse import quote

import pytest

from explorer.state.interventions import KINDS, MOST_EDITS, Edit, Positions, axis, in_order, parse_edit, parse_edits

WRITTEN = {
    "rope.angles*zero": Edit("rope.angles", "zero"),
    "rope.angles.3*zero": Edit("rope.angles", "zero", index=3),
    "rope.angles*base*500": Edit("rope.angles", "base", 500),
    "rope.angles*base*12345.678": Edit("rope.angles", "base", 12345.678),
    "position_embed*shift*4096": Edit("position_embed", "shift", 4096),
    "blocks.2.attn.z.1*zero": Edit("blocks.2.attn.z", "zero", index=1),
    "blocks.11.ffn.hidden.100*scale*-0.5": Edit("blocks.11.ffn.hidden", "scale", -0.5, 100),
    "embed*scale*1e-05": Edit("embed", "scale", 1e-5),
    "embed*scale*0.1": Edit("embed", "scale", 0.1),
}
# Kinds and places that came later; those above stay as they are, as addresses hold them.
ALSO_WRITTEN = {
    "blocks.1.attn.z.2*patch": Edit("blocks.1.attn.z", "patch", index=2),
    "blocks.1.resid_post@3*patch_mean": Edit("blocks.1.resid_post", "patch_mean", positions=3),
    "blocks.2.attn.z.1@3-5.9*zero": Edit("blocks.2.attn.z", "zero", index=1, positions="3-5.9"),
    "embed@4*scale*2": Edit("embed", "scale", 2, positions=4),
    "embed@4-6.11*zero": Edit("embed", "zero", positions=[11, 4, 5, 6, 5]),
    "rope.angles@1-*zero": Edit("rope.angles", "zero", positions="1-"),
    "blocks.1.attn.z.2*mean": Edit("blocks.1.attn.z", "mean", index=2),
    "blocks.2.attn.pattern.1@9*mask*3": Edit("blocks.2.attn.pattern", "mask", 3, 1, positions=9),
    "blocks.2.attn.pattern@9-*drop*0": Edit("blocks.2.attn.pattern", "drop", 0, positions="9-"),
    "blocks.1.ffn.gate.7*clamp*-0.5": Edit("blocks.1.ffn.gate", "clamp", -0.5, 7),
    "final_norm*norm*layernorm": Edit("final_norm", "norm", by="layernorm"),
    "blocks.1.resid_mid@3*add*unembed.17-20*0.5": Edit(
        "blocks.1.resid_mid", "add", 0.5, positions=3, by="unembed.17-20"
    ),
    "blocks.1.attn.out*add*ov.0.2.1*-1": Edit("blocks.1.attn.out", "add", -1, by="ov.0.2.1"),
    "embed*remove*neuron.0.9": Edit("embed", "remove", by="neuron.0.9"),
}
WRITTEN |= ALSO_WRITTEN


@pytest.mark.parametrize(("text", "edit"), WRITTEN.items(), ids=WRITTEN)
def test_an_edit_is_read_back_as_it_was_written(text, edit):
    assert str(edit) == text
    assert parse_edit(text) == edit
    assert len({parse_edit(text), edit}) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"written tap\*operation or tap\*operation\*amount, got ''"),
        ("embed", "written tap"),
        ("embed*scale*1*2", "written tap"),
        ("*zero", "a value with a name such as"),
        ("<b>*zero", "a value with a name such as"),
        ("embed~*zero", "a value with a name such as"),
        ("embed.1.1*zero", "a value with a name such as"),
        (
            "embed*square",
            "mask, drop, mean, patch, patch_mean, scale, zero, clamp, remove, add, got 'square'",
        ),
        ("embed@*zero", "positions are written like 3-5.9 or 1- after the @, got ''"),
        ("embed@5-3*zero", "positions are written like"),
        ("embed@-3*zero", "positions are written like"),
        ("embed@3.*zero", "positions are written like"),
        ("embed@" + "1." * 64 + "1*zero", "positions are written like"),
        ("rope.angles@3*shift*5", "'shift' holds at all positions, leave out @3"),
        ("final_norm@3*norm*none", "'norm' holds at all positions, leave out @3"),
        (
            "blocks.0.attn.pattern*mean",
            "'mean' changes embed, final_norm and what a layer computes but for attn.scores",
        ),
        ("logits*mean", "'mean' changes embed"),
        ("blocks.0.attn.z*mask*1", "'mask' changes the pattern of a layer, such as .* got blocks.0.attn.z"),
        (
            "blocks.0.attn.pattern*mask*0",
            "query 0 would have no key left to look at: name other queries .* such as @1-",
        ),
        ("blocks.0.attn.pattern@0-2*mask*0", "query 0 would have no key left"),
        ("blocks.0.attn.pattern@4*drop*6", "position 4 does not see position 6, which comes later"),
        ("blocks.0.attn.pattern@4*drop*1.5", "a whole number from 0 to 1,000,000, got 1.5"),
        ("blocks.0.attn.z*clamp*1", r"'clamp' changes ffn\.gate_pre, ffn\.gate, ffn\.up or ffn\.hidden"),
        ("blocks.0.ffn.gate.1*clamp*101", "from -100 to 100, got 101"),
        (
            "blocks.0.attn.out*norm*none",
            "'norm' changes the whole of final_norm, or of attn_norm, ffn_norm, attn_out_norm or",
        ),
        ("final_norm.3*norm*none", "'norm' changes the whole of final_norm.* got final_norm.3"),
        ("final_norm*norm", "'norm' needs a name after it, such as layernorm"),
        ("final_norm*norm*batchnorm", "a norm is one of rmsnorm, layernorm, none, got 'batchnorm'"),
        ("embed*add", "'add' needs a name after it, such as unembed.17"),
        ("embed*add*up*1", "a direction is unembed.ID, .* got 'up'"),
        ("embed*add*unembed.1*much", "a number, got 'much'"),
        ("embed.3*add*unembed.1*1", "'add' changes the whole of embed"),
        ("blocks.0.attn.z*remove*unembed.1", "'remove' changes the whole of embed"),
        ("embed*scale*much", "a number, got 'much'"),
        ("embed*scale*101", "from -100 to 100, got 101.0"),
        ("embed*scale*nan", "from -100 to 100, got nan"),
        ("embed*scale*inf", "from -100 to 100, got inf"),
        ("embed*zero*1", "from 0 to 0, got 1.0"),
        ("rope.angles*base", "from 1 to 1,000,000,000, got 0.0"),
        ("rope.angles*base*-500", "from 1 to 1,000,000,000, got -500.0"),
        ("rope.angles*shift*4097", "a whole number from 0 to 4,096, got 4097.0"),
        ("rope.angles*shift*1.5", "a whole number from 0 to 4,096, got 1.5"),
        ("rope.angles.1*shift*1", "the whole of rope.angles or position_embed, got rope.angles.1"),
        ("embed*base*500", "the whole of rope.angles, got embed"),
    ],
)
def test_what_is_no_edit_is_refused_in_a_sentence(text, message):
    with pytest.raises(ValueError, match=message):
        parse_edit(text)


@pytest.mark.parametrize("text", ["x" * 10**6, "embed*" + "x" * 10**6, "embed*scale*" + "x" * 10**6])
def test_a_long_text_has_a_short_answer(text):
    with pytest.raises(ValueError) as error:
        parse_edit(text)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("operation", KINDS)
def test_every_operation_can_be_written_at_its_limits(operation):
    rule = KINDS[operation]
    tap = next(edit.tap for edit in WRITTEN.values() if edit.operation == operation)
    for amount in (rule.least, rule.most):
        positions = f"{int(amount) or 1}-" if operation == "mask" else None
        edit = Edit(tap, operation, amount, positions=positions, by=rule.names)
        assert parse_edit(str(edit)) == edit
    for amount in (rule.least - 1, rule.most + 1, math.nan):
        with pytest.raises(ValueError, match="the amount of"):
            replace(edit, amount=amount)


def test_the_index_counts_what_the_captured_values_have(trace):
    for tap, value in trace.values.items():
        size = axis(tap).size(trace.config)
        assert size == (len(value) if value.ndim == 3 else value.shape[-1]), tap
        Edit(tap, "zero", index=size - 1).check(trace.config, trace.values)
        for index in (size, -1):
            with pytest.raises(ValueError, match=f"{tap} has [a-z ]+s 0 to {size - 1}, got {index}"):
                Edit(tap, "zero", index=index).check(trace.config, trace.values)


def test_a_model_is_asked_for_what_it_has(trace):
    for tap in ("rope.angles", "position_embed", "blocks.2.attn.z"):
        edit = Edit(tap, "zero")
        if tap in trace:
            edit.check(trace.config, trace.values)
        else:
            with pytest.raises(ValueError, match=f"no value {tap} that could be changed"):
                edit.check(trace.config, trace.values)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rope.angles*shift*1200", "positions shifted by 1,200"),
        ("position_embed*shift*5", "positions shifted by 5"),
        ("rope.angles*base*500", "θ = 500 instead of 10,000"),
        ("rope.angles*base*1000000", "θ = 1,000,000 instead of 10,000"),
        ("rope.angles*zero", "rotation off"),
        ("rope.angles.3*zero", "pair 3 of rope.angles set to 0"),
        ("blocks.2.attn.z.1*zero", "head 1 of layer 2 silenced"),
        ("blocks.2.attn.z*zero", "all heads of layer 2 silenced"),
        ("blocks.2.attn.z.1*scale*-0.5", "head 1 of layer 2 × −0.5"),
        ("blocks.2.ffn.hidden.7*zero", "neuron 7 of layer 2 silenced"),
        ("blocks.2.attn.v.1*zero", "kv head 1 of attn.v of layer 2 set to 0"),
        ("blocks.0.attn.out*zero", "attn.out of layer 0 set to 0"),
        ("embed.4*scale*2", "dimension 4 of embed × 2"),
        ("rope.angles@3-*zero", "rotation off, from position 3 on"),
        ("blocks.2.attn.z.1@3-5.9*zero", "head 1 of layer 2 silenced, at positions 3–5, 9"),
        ("blocks.2.attn.z.1@3*mean", "head 1 of attn.z of layer 2 at its mean over the prompt, at position 3"),
        ("embed*mean", "embed at its mean over the prompt"),
        ("blocks.2.attn.z.1*patch", "head 1 of layer 2 as in the other run"),
        ("blocks.2.attn.z@1-*patch", "all heads of layer 2 as in the other run, from position 1 on"),
        ("blocks.2.attn.k.1@3*patch", "kv head 1 of attn.k of layer 2 as in the other run, at position 3"),
        ("embed*patch_mean", "embed at its mean over the other run"),
        (
            "blocks.2.attn.pattern.1@9*mask*3",
            "no query at position 9 sees position 3 with head 1 of layer 2; the other weights make up for it",
        ),
        ("blocks.2.attn.pattern*drop*3", "no token sees position 3 with all heads of layer 2; the other weights stay"),
        ("blocks.1.ffn.gate.7*clamp*-0.5", "ffn.gate of neuron 7 of layer 1 held at −0.5"),
        ("blocks.1.ffn.gate*clamp*2", "ffn.gate of all neurons of layer 1 held at 2"),
        ("final_norm*norm*none", "final_norm does not normalise"),
        ("blocks.1.ffn_norm*norm*layernorm", "ffn_norm of layer 1 is a LayerNorm"),
        (
            "blocks.1.resid_mid@3*add*unembed.17-20*-0.5",
            "−0.5 of its length added to resid_mid of layer 1, along the unembedding of token 17 less that of token "
            "20, at position 3",
        ),
        ("embed*remove*neuron.0.9", "what neuron 9 of layer 0 writes taken out of embed"),
        (
            "blocks.0.attn.out*add*ov.1.2.0*1",
            "1 of its length added to attn.out of layer 0, along direction 0 of what head 2 of layer 1 writes",
        ),
    ],
)
def test_an_edit_in_plain_words(text, words, tiny_config):
    assert parse_edit(text).words(tiny_config) == words


@pytest.mark.parametrize("nothing", ["", [], (), None])
def test_nothing_is_no_edits(nothing):
    assert parse_edits(nothing) == ()


def test_edits_come_as_a_list_or_as_one_text():
    texts, edits = list(WRITTEN)[3:8], tuple(WRITTEN.values())[3:8]
    assert parse_edits(texts) == parse_edits(tuple(texts)) == parse_edits("~".join(texts)) == edits


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (17, "edits are texts"),
        ({"embed*zero": 1}, "edits are texts"),
        ([None], "edits are texts"),
        ("~", "written tap"),
        (["embed.1*scale*2", "embed.1*scale*3"], "each edit of a value once"),
        (["final_norm*norm*none", "final_norm*norm*rmsnorm"], "each edit of a value once"),
        (["embed*add*unembed.1*1", "embed*add*unembed.1*2"], "each edit of a value once"),
        (["embed*scale*1"] * (MOST_EDITS + 1), f"at most {MOST_EDITS} edits, got {MOST_EDITS + 1}"),
    ],
)
def test_what_are_no_edits_is_refused_in_a_sentence(edits, message):
    with pytest.raises(ValueError, match=message):
        parse_edits(edits)


def test_as_many_edits_as_are_allowed_and_several_of_one_value():
    texts = [f"embed.{i}*scale*2" for i in range(MOST_EDITS - 1)] + ["embed.0*zero"]
    assert len(parse_edits(texts)) == MOST_EDITS


def test_several_edges_of_one_query_and_directions_at_one_place():
    texts = ["blocks.0.attn.pattern.1@5*mask*2", "blocks.0.attn.pattern.1@5*mask*3", "blocks.0.attn.pattern.1@5*drop*3"]
    texts += ["embed*add*unembed.1*1", "embed*add*unembed.2*1", "embed@2*add*unembed.1*1"]
    assert [str(edit) for edit in parse_edits(texts)] == texts


def test_texts_stay_readable_in_an_address():
    """But for the @, which browsers write otherwise, as they do the ~ between edits."""
    for text in WRITTEN:
        assert quote(text, safe="*.-_@") == text


def test_positions_are_those_that_are_written():
    positions = Positions.of("3-5.9.20-")
    assert [place for place in range(25) if place in positions] == [3, 4, 5, 9, *range(20, 25)]
    assert str(Positions.of("9.3.4.5-6.4-5")) == "3-6.9"
    assert str(Positions.of("7-.3-9")) == "3-"
    assert Positions.of(None) is None and str(Positions.of(7)) == "7"


@pytest.mark.parametrize("text", ["embed@32*zero", "embed@3-40*zero", "blocks.0.attn.pattern@31-*mask*32"])
def test_positions_that_no_text_of_the_model_has_are_told(tiny_config, text):
    with pytest.raises(ValueError, match=f"this model sees positions 0 to 31, got {text[-2:]}|got 32|got 40"):
        parse_edit(text).check(tiny_config, [parse_edit(text).tap])


def test_what_a_direction_names_must_be_there(trace):
    for by, message in (("unembed.300", "token ids run from 0 to 299, got 300"), ("ov.0.9.0", "heads run from 0 to")):
        with pytest.raises(ValueError, match=message):
            Edit("embed", "add", 1, by=by).check(trace.config, trace.values)


def test_edits_act_in_an_order_of_their_own():
    texts = ["embed*add*unembed.1*1", "embed*zero", "embed*mean", "rope.angles*base*5", "rope.angles*shift*5"]
    assert [edit.operation for edit in in_order(parse_edits(texts))] == ["shift", "base", "mean", "zero", "add"]
