"""Several edits of one run: as a list or as one text, and in which order they act."""

import pytest

from explorer.state.interventions import MOST_EDITS, in_order, parse_edits

from .written import WRITTEN


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
        (["final_norm@3*norm*none", "final_norm@3*norm*rmsnorm"], "each edit of a value once"),
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


def test_edits_act_in_an_order_of_their_own(tiny_config):
    texts = ["embed*add*unembed.1*1", "embed*zero", "embed*mean", "rope.angles*base*5", "rope.angles*shift*5"]
    assert [edit.operation for edit in in_order(parse_edits(texts), tiny_config)] == [
        "shift",
        "base",
        "mean",
        "zero",
        "add",
    ]


def test_an_edge_of_all_layers_acts_in_each_once(tiny_config):
    texts = ["blocks.*.attn.pattern@9*drop*4", "blocks.1.attn.pattern@9*drop*4"]
    assert [str(edit) for edit in in_order(parse_edits(texts), tiny_config)] == [
        f"blocks.{layer}.attn.pattern@9*drop*4" for layer in range(tiny_config.num_layers)
    ]
