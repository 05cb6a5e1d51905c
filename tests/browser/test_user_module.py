"""Diagnosis of a user's own module on the page."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from explorer.cli_options import parse_arguments
from explorer.diagnosis.command_line import register_user_module
from explorer.tracing.model_library import ModelLibrary
from explorer.web.page import Page
from tests import course

MODULE_SOURCE = """
from course import *

class Plain(RMSNorm):
    def forward(self, x):
        return x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + self.eps)

class Mine(TransformerLM):
    def __init__(self, vocab_size, context_length=64, d_model=32, num_layers=2, num_heads=2, d_ff=48):
        super().__init__(vocab_size, context_length, d_model, num_layers, num_heads, d_ff)
        self.layers[1].ln2.__class__ = Plain
"""
FIRST_DIFFERENCE = "blocks.1.ffn_norm"


@pytest.fixture
def module_url(checkpoints, tmp_path):
    """URL of an app that was started with a user's module."""
    (tmp_path / "course.py").write_text(Path(course.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "mine.py").write_text(MODULE_SOURCE, encoding="utf-8")
    library = ModelLibrary("cpu")
    name = register_user_module(
        parse_arguments(["--module", f"{tmp_path}/mine.py:Mine", "--checkpoint", "tiny"]), library
    )
    blocks = Page(library, name).launch(prevent_thread_lock=True, quiet=True)
    yield blocks.local_url
    blocks.close(verbose=False)


# Name of the tallest bar, and a point near its top: on a log scale bars continue below the figure.
TALLEST = """(plot) => {
  const bars = plot.calcdata[0], tallest = bars.reduce((most, bar) => (bar.s > most.s ? bar : most));
  const box = plot.querySelectorAll(".bars .point path")[bars.indexOf(tallest)].getBoundingClientRect();
  return [plot.data[0].x[bars.indexOf(tallest)], box.x + box.width / 2, box.y + 5];
}"""


@pytest.mark.exhaustive
def test_first_difference_is_reported_drawn_and_on_map(open_new_page, module_url):
    person = open_new_page(module_url).open(view="own_module", text="Once upon a time")
    report = person.page.locator("#own_module-formula")
    expect(report).to_contain_text(f"Mine parts from the reference at {FIRST_DIFFERENCE}")
    expect(report).to_contain_text("the gain is left out")
    bars = person.page.locator("#own_module-values .plot")
    expect(bars).to_be_visible()
    person.wait_until_idle()
    bars.scroll_into_view_if_needed()
    name, x, y = bars.evaluate(TALLEST)
    assert name == FIRST_DIFFERENCE
    person.page.mouse.click(x, y)
    person.expect_selected(view="activations", tap=FIRST_DIFFERENCE)
    person.visit("overview", "Whole model")
    differs = person.page.locator("#overview-map .part[aria-label*='≠']")
    expect(differs).to_have_count(1)
    expect(differs).to_have_attribute(
        "aria-label", re.compile(f"parts from the reference here, at {re.escape(FIRST_DIFFERENCE)}")
    )
