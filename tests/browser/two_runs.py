"""Comparison of two runs on the page, and the expected pixels of the attention pattern."""

import numpy as np
from playwright.sync_api import expect

from explorer.interventions import parse_interventions
from explorer.state.token_alignment import align_tokens
from explorer.tracing.capture import capture
from explorer.views.style import LIGHT

from .pixels import cell_colours, model, scale_colours

OTHER_PROMPT = "Once upon a time there was an old owl who wanted the sun."


def compare(person, text: str = OTHER_PROMPT):
    """Compare with another prompt, and wait until the difference is drawn."""
    person.open_menu("#runs .menu").get_by_role("button", name="another prompt").click()
    person.page.get_by_label("the other prompt").fill(text)
    with person.wait_for_redraw(person.pattern):
        person.page.keyboard.press("Enter")
    expect(find_switch(person, "A − B")).to_have_attribute("aria-pressed", "true")
    person.wait_until_idle()
    assert person.evaluate("scrollY") == 0


def open_more(person):
    """Open the menu of rare comparison actions."""
    more = person.page.get_by_role("button", name="more of the two runs")
    if more.get_attribute("aria-expanded") == "false":
        more.click()


def find_switch(person, name: str):
    return person.page.locator("#runs .switch").get_by_role("button", name=name, exact=True)


def show_run(person, name: str):
    with person.wait_for_redraw(person.pattern):
        find_switch(person, name).click()
    person.wait_until_idle()


def find_tokens_b(person):
    return person.page.locator("#strip-b .chip")


def expect_painted(person):
    """Expect the pattern's pixels to be those of A, B or A − B, computed from two runs of the models.

    A difference is computed at aligned tokens and must have positive and negative values.
    """
    state = person.state
    run_a, run_b = (
        capture(lm, state[f"{prefix}prompt"], parse_interventions(state[f"{prefix}edits"]), tokenizer=tokenizer)
        for prefix in ("", "b.")
        for lm, tokenizer in (model(state[f"{prefix}checkpoint"]),)
    )
    partners = align_tokens(run_a.tokens, run_b.tokens).partners
    first, second = (run[f"blocks.{state['layer']}.attn.pattern"][state["head"]] for run in (run_a, run_b))
    if state["shown"] != "difference":
        values = first if state["shown"] == "a" else second
        painted = cell_colours(person.pattern, values.shape)
        assert np.abs(painted - scale_colours(LIGHT.sequential, values))[np.tri(len(values), dtype=bool)].max() <= 2
        return
    difference = np.full_like(first, np.nan)
    for query, query_b in enumerate(partners):
        for key, key_b in enumerate(partners[: query + 1]):
            if None not in (query_b, key_b):
                difference[query, key] = first[query, key] - second[query_b, key_b]
    has_value = ~np.isnan(difference)
    largest = np.abs(difference[has_value]).max()
    assert largest > 0.01 and has_value.sum() > len(difference)
    painted = cell_colours(person.pattern, difference.shape)
    expected = scale_colours(LIGHT.diverging, (np.nan_to_num(difference) / largest + 1) / 2)
    assert np.abs(painted - expected)[has_value].max() <= 2
