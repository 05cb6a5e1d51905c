"""An edit says what is changed, in text, in words and in limits."""

import math
from dataclasses import replace

import pytest

from explorer.state.interventions import KINDS, MOST_EDITS, Edit, axis, parse_edit, parse_edits

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
        ("embed*square", "one of shift, base, scale, zero, got 'square'"),
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
    for amount in (rule.least, rule.most):
        edit = Edit((rule.taps or ["embed"])[0], operation, amount)
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
    ],
)
def test_an_edit_in_plain_words(text, words, tiny_config):
    assert parse_edit(text).words(tiny_config) == words


@pytest.mark.parametrize("nothing", ["", [], (), None])
def test_nothing_is_no_edits(nothing):
    assert parse_edits(nothing) == ()


def test_edits_come_as_a_list_or_as_one_text():
    texts, edits = list(WRITTEN)[3:-1], tuple(WRITTEN.values())[3:-1]
    assert parse_edits(texts) == parse_edits(tuple(texts)) == parse_edits("~".join(texts)) == edits


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (17, "edits are texts"),
        ({"embed*zero": 1}, "edits are texts"),
        ([None], "edits are texts"),
        ("~", "written tap"),
        (["embed.1*scale*2", "embed.1*scale*3"], "each edit of a value once"),
        (["embed*scale*1"] * (MOST_EDITS + 1), f"at most {MOST_EDITS} edits, got {MOST_EDITS + 1}"),
    ],
)
def test_what_are_no_edits_is_refused_in_a_sentence(edits, message):
    with pytest.raises(ValueError, match=message):
        parse_edits(edits)


def test_as_many_edits_as_are_allowed_and_several_of_one_value():
    texts = [f"embed.{i}*scale*2" for i in range(MOST_EDITS - 1)] + ["embed.0*zero"]
    assert len(parse_edits(texts)) == MOST_EDITS
