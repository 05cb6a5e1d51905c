"""Training steps of a model on the page."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from explorer.views.style import LIGHT

from .checkpoints import STEPS
from .pixels import capture_visible_run, cell_colours, scale_colours

DOT = """(plot, step) => {
  const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
  const { x, y } = plot.calcdata.at(-1).find(({ x }) => x === step);
  return [box.left + xaxis._offset + xaxis.d2p(x), box.top + yaxis._offset + yaxis.d2p(y)];
}"""


def make_checkpoint_name(step: int) -> str:
    return f"fables/step-{step:06d}"


@pytest.fixture
def trained_page(open_page, open_figures):
    """Person at the model after its fourth training step."""
    unfolded = open_figures or "training-loss~training-text~training-scores"
    return open_page(checkpoint=make_checkpoint_name(4), unfolded=unfolded)


def expect_step(person, step: int):
    """Wait until the model after a step is selected."""
    person.wait_until("page.state.checkpoint === given", make_checkpoint_name(step))


def click_dot(person, plot, step: int):
    """Click the uppermost line's dot at a step."""
    plot.scroll_into_view_if_needed()
    point = plot.evaluate(DOT, step)
    person.page.mouse.move(*point)
    person.page.mouse.click(*point)


def find_slider(person):
    return person.page.get_by_label("step of its training").get_by_role("slider")


def find_slider_b(person):
    return person.page.get_by_label("step of the training of B")


def find_play_button(person):
    return person.page.locator("#series .play")


def test_slider_moves_between_steps_and_keeps_selection(trained_page):
    trained_page.generate(3)
    trained_page.chips.nth(2).click()
    before, steps = trained_page.state, trained_page.page.evaluate("history.length")
    assert trained_page.picker.locator("option").all_text_contents().count("fables") == 1
    expect(trained_page.picker).to_have_value("fables")
    find_slider(trained_page).focus()
    for key, step in (("ArrowRight", 8), ("End", 32), ("Home", 0), ("ArrowRight", 1)):
        with trained_page.wait_for_redraw(trained_page.pattern):
            trained_page.page.keyboard.press(key)
        trained_page.wait_until_idle()
        expect_step(trained_page, step)
        expect(find_slider(trained_page)).to_have_attribute("aria-valuetext", f"step {step}")
        weights = capture_visible_run(trained_page)[f"blocks.{trained_page.state['layer']}.attn.pattern"][
            trained_page.state["head"]
        ]
        painted = cell_colours(trained_page.pattern, weights.shape)
        assert np.abs(painted - scale_colours(LIGHT.sequential, weights))[np.tri(len(weights), dtype=bool)].max() <= 2
    unchanged_fields = ("prompt", "generated", "query", "key", "layer", "head", "view")
    assert {field: trained_page.state[field] for field in unchanged_fields} == {
        field: before[field] for field in unchanged_fields
    }
    assert trained_page.page.evaluate("history.length") == steps
    assert trained_page.page.evaluate("document.activeElement.type") == "range"


@pytest.mark.exhaustive
def test_play_visits_every_step_and_waits_for_figures(trained_page):
    trained_page.page.evaluate("""() => {
      const seen = window.seen = [];
      const look = () => seen.push(document.querySelector("#series output").textContent);
      const plot = document.querySelector("#attention-pattern .plot");
      new MutationObserver(look).observe(plot, { attributeFilter: ["data-draws"] });
    }""")
    find_play_button(trained_page).click()
    expect(find_play_button(trained_page)).to_have_text("Pause")
    expect_step(trained_page, 32)
    expect(find_play_button(trained_page)).to_have_text("Play")
    trained_page.wait_until_idle()
    observed = trained_page.page.evaluate("window.seen")
    assert list(dict.fromkeys(observed)) == ["step 8", "step 16", "step 32"]
    find_play_button(trained_page).click()  # from the start
    trained_page.wait_until("window.seen.length > given", len(observed))
    trained_page.page.keyboard.press("Shift")
    expect(find_play_button(trained_page)).to_have_text("Play")
    assert trained_page.page.evaluate("window.seen")[len(observed)] == "step 0"
    assert trained_page.state["checkpoint"] != make_checkpoint_name(32)
    for press in ("Enter", "Space"):
        trained_page.page.keyboard.press(press)
        expect(find_play_button(trained_page)).to_have_text("Pause")
        trained_page.page.keyboard.press(press)
        expect(find_play_button(trained_page)).to_have_text("Play")


def test_training_tab_marks_step_and_click_opens_another(trained_page):
    trained_page.tab("Training")
    expect(trained_page.page.locator("#training-formula")).to_contain_text(
        "after step 4, one of 7 that it was kept at, 0 to 32"
    )
    expect(trained_page.page.locator("#training-scores .evidence-mark")).to_have_attribute("data-state", "recomputed")
    expect(trained_page.page.locator("#training-loss .evidence-mark")).to_have_attribute("data-state", "unchecked")
    for panel, step in (("scores", 16), ("loss", 8), ("text", 2)):
        plot = trained_page.page.locator(f"#training-{panel} .plot")
        trained_page.wait_until_idle()
        with trained_page.wait_for_redraw(plot):
            click_dot(trained_page, plot, step)
        expect_step(trained_page, step)
        marked = plot.evaluate("plot => plot.layout.shapes.at(-1).x0")
        assert marked == step


@pytest.mark.exhaustive
def test_neighbouring_training_step_is_compared_with_one_click(trained_page):
    trained_page.open_menu("#runs .menu").get_by_role("button", name="another training step").click()
    trained_page.expect_selected(shown="difference")
    expect(find_slider_b(trained_page)).to_have_attribute("aria-valuetext", "step 2")
    assert find_slider(trained_page).bounding_box()["y"] < find_slider_b(trained_page).bounding_box()["y"]
    steps = trained_page.page.evaluate("history.length")
    find_slider_b(trained_page).focus()
    with trained_page.wait_for_redraw(trained_page.pattern):
        trained_page.page.keyboard.press("End")
    trained_page.wait_until_idle()
    assert (trained_page.state["checkpoint"], trained_page.state["b.checkpoint"]) == (
        make_checkpoint_name(4),
        make_checkpoint_name(32),
    )
    with trained_page.wait_for_redraw(trained_page.pattern):
        find_slider(trained_page).focus()
        trained_page.page.keyboard.press("Home")
    trained_page.wait_until_idle()
    assert (trained_page.state["checkpoint"], trained_page.state["b.checkpoint"]) == (
        make_checkpoint_name(0),
        make_checkpoint_name(32),
    )
    assert trained_page.page.evaluate("history.length") == steps
    trained_page.tab("Compare")
    expect(trained_page.page.locator("#compare-words")).to_contain_text("A and B are steps of one training")


@pytest.mark.exhaustive
def test_click_in_figure_of_b_moves_b(open_page):
    person = open_page(
        "training", checkpoint=make_checkpoint_name(4), shown="b", **{"b.checkpoint": make_checkpoint_name(16)}
    )
    plot = person.page.locator("#training-text .plot")
    expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
    person.wait_until_idle()
    assert plot.evaluate("plot => plot.layout.shapes.at(-1).x0") == 16
    with person.wait_for_redraw(plot):
        click_dot(person, plot, 1)
    person.wait_until_idle()
    assert (person.state["checkpoint"], person.state["b.checkpoint"]) == (
        make_checkpoint_name(4),
        make_checkpoint_name(1),
    )


@pytest.mark.exhaustive
def test_models_without_steps_have_no_slider(open_page):
    person = open_page("training")
    expect(person.page.locator("#training-formula")).to_contain_text("without a record of its training")
    expect(person.page.locator("#series")).to_contain_text("This model kept no steps.")
    assert not person.page.locator(".panels .plot:visible").count()
    person.choose_model("fables")
    expect_step(person, STEPS[-1])
    expect(find_slider(person)).to_be_visible()


@pytest.mark.exhaustive
def test_comparison_of_two_models_says_their_bases_differ(open_page):
    person = open_page("residual", checkpoint=make_checkpoint_name(4), shown="difference", **{"b.checkpoint": "tiny"})
    expect(person.page.locator("#residual-words")).to_contain_text("A and B are two models")
    person.page.locator("#runs .switch").get_by_role("button", name="A", exact=True).click()
    expect(person.page.locator("#residual-words")).not_to_contain_text("A and B are two models")


@pytest.mark.exhaustive
def test_controls_above_tabs_are_compact_on_phone(open_page):
    telephone = {"viewport": {"width": 390, "height": 844}, "checkpoint": make_checkpoint_name(4)}
    person = open_page(**telephone, **{"b.checkpoint": make_checkpoint_name(2)})
    height = "(id) => document.querySelector(id).getBoundingClientRect().height"
    expect(find_slider(person)).to_be_visible()
    expect(find_slider_b(person)).to_be_visible()
    assert person.page.evaluate(height, "#series") <= 96
    assert person.page.evaluate(height, "#runs") <= 120
    together = person.page.get_by_role("button", name="pair two tokens by hand")
    expect(together).to_be_hidden()
    person.page.get_by_role("button", name="more of the two runs").click()
    expect(together).to_be_visible()
    assert person.page.evaluate("document.documentElement.scrollWidth") <= 390
