"""What-if controls change the run at what is chosen, everywhere or at the chosen token alone."""

import pytest
from playwright.sync_api import Locator, expect

from .person import Person

LOOK = {"text": "Once upon a time", "layer": 1, "head": 1, "query": 3, "key": 1, "neuron": 2}


def control(person: Person, words: str) -> Locator:
    return person.page.locator(".what-ifs label:visible", has_text=words).locator("input")


def expect_changes(person: Person, *texts: str):
    person.page.wait_for_function(
        "texts => (new URL(location.href).searchParams.get('edits') || '') === texts", arg="~".join(texts)
    )


def test_an_edge_is_forbidden_and_allowed_again(person):
    person.open("experiments", **LOOK)
    edge = control(person, "position 3 does not see position 1 with head 1 of layer 1; other weights make up")
    edge.check()
    expect_changes(person, "blocks.1.attn.pattern.1@3*mask*1")
    person.page.locator("#changes button", has_text="no query at position 3 sees position 1").click()
    expect_changes(person, "")
    expect(edge).not_to_be_checked()


@pytest.mark.exhaustive
def test_controls_change_the_chosen_token_alone_where_that_is_asked(person):
    person.open("experiments", **LOOK)
    mean, only = control(person, "at its mean over the prompt"), control(person, "only at the chosen token")
    mean.check()
    expect_changes(person, "blocks.1.attn.z.1*mean")
    only.check()
    expect(mean).not_to_be_checked()
    mean.check()
    expect_changes(person, "blocks.1.attn.z.1*mean", "blocks.1.attn.z.1@3*mean")
    only.uncheck()
    expect(mean).to_be_checked()
    mean.uncheck()
    expect_changes(person, "blocks.1.attn.z.1@3*mean")


def test_one_kind_of_norm_takes_the_place_of_another(person):
    person.open("residual", **LOOK)
    as_layer_norm = control(person, "attn_norm of layer 1 as a LayerNorm")
    as_layer_norm.check()
    expect_changes(person, "blocks.1.attn_norm*norm*layernorm")
    control(person, "attn_norm of layer 1 off").check()
    expect_changes(person, "blocks.1.attn_norm*norm*none")
    expect(as_layer_norm).not_to_be_checked()


@pytest.mark.exhaustive
def test_a_link_to_a_change_at_the_chosen_token_shows_it(person):
    person.open("experiments", **LOOK, edits="blocks.1.attn.z.1@3*scale*0.5")
    expect(control(person, "only at the chosen token")).to_be_checked()
    expect(control(person, "head 1 of layer 1 ×")).to_have_value("0.5")
