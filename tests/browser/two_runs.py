"""How a person compares two runs, and what is to be painted then."""

import numpy as np
from playwright.sync_api import expect

from explorer.state.alignment import aligned
from explorer.state.interventions import parse_edits
from explorer.tracing.capture import capture
from explorer.views.style import LIGHT

from .painted import cell_colours, model, on_scale

OTHER = "Once upon a time there was an old owl who wanted the sun."


def compare(person, text: str = OTHER):
    """With another prompt; the difference is shown then."""
    person.page.locator("#runs").get_by_role("button", name="another prompt").click()
    person.page.get_by_label("the other prompt").fill(text)
    with person.redrawn(person.pattern):
        person.page.locator("#runs").get_by_role("button", name="Compare", exact=True).click()
    expect(switch(person, "A − B")).to_have_attribute("aria-pressed", "true")
    person.at_rest()


def switch(person, name: str):
    return person.page.locator("#runs .switch").get_by_role("button", name=name, exact=True)


def shown(person, name: str):
    with person.redrawn(person.pattern):
        switch(person, name).click()
    person.at_rest()


def chips_of_b(person):
    return person.page.locator("#strip-b .chip")


def expect_painted(person):
    """Of the large pattern what the switch says, worked out from two runs of the models, in its colours: a difference
    at tokens that stand beside each other, and on either side of zero."""
    state = person.state
    mine, theirs = (
        capture(lm, state[f"{of}prompt"], parse_edits(state[f"{of}edits"]), tokenizer=tokenizer)
        for of in ("", "b.")
        for lm, tokenizer in (model(state[f"{of}checkpoint"]),)
    )
    partners = aligned(mine.tokens, theirs.tokens).partners
    first, second = (run[f"blocks.{state['layer']}.attn.pattern"][state["head"]] for run in (mine, theirs))
    if state["shown"] != "difference":
        shown = first if state["shown"] == "a" else second
        painted = cell_colours(person.pattern, shown.shape)
        assert np.abs(painted - on_scale(LIGHT.sequential, shown))[np.tri(len(shown), dtype=bool)].max() <= 2
        return
    less = np.full_like(first, np.nan)
    for query, there in enumerate(partners):
        for key, beside in enumerate(partners[: query + 1]):
            if None not in (there, beside):
                less[query, key] = first[query, key] - second[there, beside]
    seen = ~np.isnan(less)
    largest = np.abs(less[seen]).max()
    assert largest > 0.01 and seen.sum() > len(less)
    painted = cell_colours(person.pattern, less.shape)
    expected = on_scale(LIGHT.diverging, (np.nan_to_num(less) / largest + 1) / 2)
    assert np.abs(painted - expected)[seen].max() <= 2
