"""Several interventions in one run: as a list or one text, and the order in which they act."""

import pytest

from explorer.interventions import MAX_INTERVENTIONS, parse_interventions, sort_interventions
from tests.subtest_loops import subtest_each

from .intervention_texts import INTERVENTIONS_BY_TEXT


@pytest.mark.parametrize("nothing", ["", [], (), None])
def test_empty_input_gives_no_interventions(nothing):
    assert parse_interventions(nothing) == ()


def test_list_and_joined_text_are_equivalent():
    texts, interventions = list(INTERVENTIONS_BY_TEXT)[3:8], tuple(INTERVENTIONS_BY_TEXT.values())[3:8]
    assert (
        parse_interventions(texts)
        == parse_interventions(tuple(texts))
        == parse_interventions("~".join(texts))
        == interventions
    )


@subtest_each(
    ("edits", "message"),
    [
        (17, "edits are texts"),
        ({"embed*zero": 1}, "edits are texts"),
        ([None], "edits are texts"),
        ("~", "written tap"),
        (["embed.1*scale*2", "embed.1*scale*3"], "each intervention on an activation only once"),
        (["final_norm*norm*none", "final_norm*norm*rmsnorm"], "each intervention on an activation only once"),
        (["final_norm@3*norm*none", "final_norm@3*norm*rmsnorm"], "each intervention on an activation only once"),
        (["embed*add*unembed.1*1", "embed*add*unembed.1*2"], "each intervention on an activation only once"),
        (
            ["embed*scale*1"] * (MAX_INTERVENTIONS + 1),
            f"at most {MAX_INTERVENTIONS} changes, got {MAX_INTERVENTIONS + 1}",
        ),
    ],
)
def test_invalid_interventions_are_refused(edits, message):
    with pytest.raises(ValueError, match=message):
        parse_interventions(edits)


def test_maximum_number_of_interventions_is_accepted():
    texts = [f"embed.{i}*scale*2" for i in range(MAX_INTERVENTIONS - 1)] + ["embed.0*zero"]
    assert len(parse_interventions(texts)) == MAX_INTERVENTIONS


def test_several_edges_and_directions_are_accepted():
    texts = ["blocks.0.attn.pattern.1@5*mask*2", "blocks.0.attn.pattern.1@5*mask*3", "blocks.0.attn.pattern.1@5*drop*3"]
    texts += ["embed*add*unembed.1*1", "embed*add*unembed.2*1", "embed@2*add*unembed.1*1"]
    assert [str(intervention) for intervention in parse_interventions(texts)] == texts


def test_interventions_are_sorted_by_kind(tiny_config):
    texts = ["embed*add*unembed.1*1", "embed*zero", "embed*mean", "rope.angles*base*5", "rope.angles*shift*5"]
    assert [intervention.operation for intervention in sort_interventions(parse_interventions(texts), tiny_config)] == [
        "shift",
        "base",
        "mean",
        "zero",
        "add",
    ]


def test_all_layer_edge_acts_once_per_layer(tiny_config):
    texts = ["blocks.*.attn.pattern@9*drop*4", "blocks.1.attn.pattern@9*drop*4"]
    assert [str(intervention) for intervention in sort_interventions(parse_interventions(texts), tiny_config)] == [
        f"blocks.{layer}.attn.pattern@9*drop*4" for layer in range(tiny_config.num_layers)
    ]
