"""Parsing and formatting of interventions, and their limits."""

import math
from dataclasses import replace
from urllib.parse import quote

import pytest

from explorer.interventions import KINDS, make_intervention, parse_intervention
from tests.subtest_loops import subtest_each

from .intervention_texts import INTERVENTIONS_BY_TEXT


@subtest_each(("text", "edit"), INTERVENTIONS_BY_TEXT.items(), ids=INTERVENTIONS_BY_TEXT)
def test_text_round_trip(text, edit):
    assert str(edit) == text
    assert parse_intervention(text) == edit
    assert len({parse_intervention(text), edit}) == 1


@subtest_each(
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
        ("rope.angles@3*shift*5", "'shift' always acts at all positions: remove @3"),
        (
            "blocks.0.attn.pattern*mean",
            "'mean' changes embed, final_norm and what a layer computes but for attn.scores",
        ),
        ("logits*mean", "'mean' changes embed"),
        ("blocks.0.attn.z*mask*1", "'mask' changes the pattern of a layer, such as .* got blocks.0.attn.z"),
        ("blocks.*.attn.z*mask*1", r"'mask' changes .* or of all layers, blocks\.\*\.attn\.pattern, got blocks\.\*\."),
        ("blocks.*.attn.z*mean", "'mean' changes embed"),
        ("blocks.*zero", "written tap"),
        ("blocks.*.*zero", "a value with a name such as"),
        (
            "blocks.0.attn.pattern*mask*0",
            "query 0 would have no key left to attend to: name other queries .* such as @1-",
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
def test_invalid_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_intervention(text)


@pytest.mark.parametrize("text", ["x" * 10**6, "embed*" + "x" * 10**6, "embed*scale*" + "x" * 10**6])
def test_long_text_gives_short_error(text):
    with pytest.raises(ValueError) as error:
        parse_intervention(text)
    assert len(str(error.value)) < 200


@subtest_each("operation", KINDS)
def test_every_operation_accepts_its_limits(operation):
    rule = KINDS[operation]
    tap = next(edit.tap for edit in INTERVENTIONS_BY_TEXT.values() if edit.operation == operation)
    for amount in (rule.min_amount, rule.max_amount):
        positions = f"{int(amount) or 1}-" if operation == "mask" else None
        edit = make_intervention(tap, operation, amount, positions=positions, by=rule.argument_example)
        assert parse_intervention(str(edit)) == edit
    for amount in (rule.min_amount - 1, rule.max_amount + 1, math.nan):
        with pytest.raises(ValueError, match="the amount of"):
            replace(edit, amount=amount)


def test_texts_need_no_url_encoding():
    """Texts need no percent encoding, except "@" and the "~" between texts, which browsers encode."""
    for text in INTERVENTIONS_BY_TEXT:
        assert quote(text, safe="*.-_@") == text
