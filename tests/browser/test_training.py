"""A model's training as somebody goes through it."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from explorer.views.style import LIGHT

from .checkpoints import STEPS
from .painted import cell_colours, on_scale, run_on_show

DOT = """(plot, step) => {
  const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
  const { x, y } = plot.calcdata.at(-1).find(({ x }) => x === step);
  return [box.left + xaxis._offset + xaxis.d2p(x), box.top + yaxis._offset + yaxis.d2p(y)];
}"""


def name(step: int) -> str:
    return f"fables/step-{step:06d}"


@pytest.fixture
def trained(visitor):
    """Somebody who looks at the model after its fourth step."""
    return visitor(checkpoint=name(4))


def at(person, step: int):
    """Waits until the model after that step is looked at."""
    person.wait_until("page.state.checkpoint === given", name(step))


def click_dot(person, plot, step: int):
    """On the uppermost line."""
    plot.scroll_into_view_if_needed()
    place = plot.evaluate(DOT, step)
    person.page.mouse.move(*place)
    person.page.mouse.click(*place)


def slider(person):
    return person.page.get_by_label("step of its training").get_by_role("slider")


def slider_of_b(person):
    return person.page.get_by_label("step of the training of B")


def play(person):
    return person.page.locator("#series .play")


@pytest.mark.exhaustive
def test_a_slider_goes_from_step_to_step_with_all_that_is_chosen(trained):
    trained.generate(3)
    trained.chips.nth(2).click()
    before, steps = trained.state, trained.page.evaluate("history.length")
    assert trained.picker.locator("option").all_text_contents().count("fables") == 1
    expect(trained.picker).to_have_value("fables")
    slider(trained).focus()
    for key, step in (("ArrowRight", 8), ("End", 32), ("Home", 0), ("ArrowRight", 1)):
        with trained.redrawn(trained.pattern):
            trained.page.keyboard.press(key)
        trained.at_rest()
        at(trained, step)
        expect(slider(trained)).to_have_attribute("aria-valuetext", f"step {step}")
        weights = run_on_show(trained)[f"blocks.{trained.state['layer']}.attn.pattern"][trained.state["head"]]
        painted = cell_colours(trained.pattern, weights.shape)
        assert np.abs(painted - on_scale(LIGHT.sequential, weights))[np.tri(len(weights), dtype=bool)].max() <= 2
    kept = ("prompt", "generated", "query", "key", "layer", "head", "view")
    assert {field: trained.state[field] for field in kept} == {field: before[field] for field in kept}
    assert trained.page.evaluate("history.length") == steps
    assert trained.page.evaluate("document.activeElement.type") == "range"


@pytest.mark.exhaustive
def test_play_goes_through_the_steps_to_the_end_and_waits_for_each_picture(trained):
    trained.page.evaluate("""() => {
      const seen = window.seen = [];
      const look = () => seen.push(document.querySelector("#series output").textContent);
      const plot = document.querySelector("#attention-pattern .plot");
      new MutationObserver(look).observe(plot, { attributeFilter: ["data-draws"] });
    }""")
    play(trained).click()
    expect(play(trained)).to_have_text("Pause")
    at(trained, 32)
    expect(play(trained)).to_have_text("Play")
    trained.at_rest()
    seen = trained.page.evaluate("window.seen")
    assert list(dict.fromkeys(seen)) == ["step 8", "step 16", "step 32"]
    play(trained).click()  # from the beginning
    trained.wait_until("window.seen.length > given", len(seen))
    trained.page.keyboard.press("Shift")
    expect(play(trained)).to_have_text("Play")
    assert trained.page.evaluate("window.seen")[len(seen)] == "step 0"
    assert trained.state["checkpoint"] != name(32)
    for press in ("Enter", "Space"):
        trained.page.keyboard.press(press)
        expect(play(trained)).to_have_text("Pause")
        trained.page.keyboard.press(press)
        expect(play(trained)).to_have_text("Play")


def test_the_training_tab_marks_the_step_and_a_click_goes_to_another(trained):
    trained.tab("Training")
    expect(trained.page.locator("#training-formula")).to_contain_text(
        "after step 4, one of 7 that it was kept at, 0 to 32"
    )
    expect(trained.page.locator("#training-scores .evidence-mark")).to_have_attribute("data-state", "recomputed")
    expect(trained.page.locator("#training-loss .evidence-mark")).to_have_attribute("data-state", "unchecked")
    for panel, step in (("scores", 16), ("loss", 8), ("text", 2)):
        plot = trained.page.locator(f"#training-{panel} .plot")
        trained.at_rest()
        with trained.redrawn(plot):
            click_dot(trained, plot, step)
        at(trained, step)
        marked = plot.evaluate("plot => plot.layout.shapes.at(-1).x0")
        assert marked == step


@pytest.mark.exhaustive
def test_before_and_after_a_training_step_is_one_click_away(trained):
    trained.page.get_by_role("button", name="another training step").click()
    trained.expect_selected(shown="difference")
    expect(slider_of_b(trained)).to_have_attribute("aria-valuetext", "step 2")
    steps = trained.page.evaluate("history.length")
    slider_of_b(trained).focus()
    with trained.redrawn(trained.pattern):
        trained.page.keyboard.press("End")
    trained.at_rest()
    assert (trained.state["checkpoint"], trained.state["b.checkpoint"]) == (name(4), name(32))
    with trained.redrawn(trained.pattern):
        slider(trained).focus()
        trained.page.keyboard.press("Home")
    trained.at_rest()
    assert (trained.state["checkpoint"], trained.state["b.checkpoint"]) == (name(0), name(32))
    assert trained.page.evaluate("history.length") == steps
    trained.tab("Compare")
    expect(trained.page.locator("#compare-words")).to_contain_text("A and B are steps of one training")


@pytest.mark.exhaustive
def test_a_click_in_pictures_of_b_moves_b(visitor):
    person = visitor("training", checkpoint=name(4), shown="b", **{"b.checkpoint": name(16)})
    plot = person.page.locator("#training-text .plot")
    expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
    person.at_rest()
    assert plot.evaluate("plot => plot.layout.shapes.at(-1).x0") == 16
    with person.redrawn(plot):
        click_dot(person, plot, 1)
    person.at_rest()
    assert (person.state["checkpoint"], person.state["b.checkpoint"]) == (name(4), name(1))


@pytest.mark.exhaustive
def test_other_models_have_no_slider_and_say_what_is_known_of_their_training(visitor):
    person = visitor("training")
    expect(person.page.locator("#training-formula")).to_contain_text("nothing is known here of how it came about")
    expect(person.page.locator("#series .series")).to_be_hidden()
    assert not person.page.locator(".panels .plot:visible").count()
    person.choose_model("fables")
    at(person, STEPS[-1])
    expect(slider(person)).to_be_visible()


@pytest.mark.exhaustive
def test_two_models_say_that_their_numbers_are_their_own(visitor):
    person = visitor("residual", checkpoint=name(4), shown="difference", **{"b.checkpoint": "tiny"})
    expect(person.page.locator("#residual-words")).to_contain_text("A and B are two models")
    person.page.locator("#runs .switch").get_by_role("button", name="A", exact=True).click()
    expect(person.page.locator("#residual-words")).not_to_contain_text("A and B are two models")


@pytest.mark.exhaustive
def test_what_is_above_the_tabs_is_compact_on_a_telephone(visitor):
    person = visitor(viewport={"width": 390, "height": 844}, checkpoint=name(4))
    height = "(id) => document.querySelector(id).getBoundingClientRect().height"
    expect(slider(person)).to_be_visible()
    assert person.page.evaluate(height, "#series") <= 48
    person.unfold("more-questions")
    assert person.page.evaluate(height, "#runs") <= 72
    person.page.get_by_role("button", name="another training step").click()
    expect(slider_of_b(person)).to_be_visible()
    assert person.page.evaluate(height, "#runs") <= 120
    together = person.page.get_by_role("button", name="put together")
    expect(together).to_be_hidden()
    person.page.get_by_role("button", name="more of the two runs").click()
    expect(together).to_be_visible()
    assert person.page.evaluate("document.documentElement.scrollWidth") <= 390
