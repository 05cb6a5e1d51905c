"""A user's own module, and the app on it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.cli_options import parse_arguments
from explorer.diagnosis.command_line import register_user_module
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.open_view import OpenView, make_open_view
from tests import course

MINE = """
from course import *

RUN = []

class Turned(RotaryPositionalEmbedding):
    def forward(self, x, positions):
        cos, sin = self.cos[positions], self.sin[positions]
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

class Mine(TransformerLM):
    def __init__(self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff, rope_theta=10000.0):
        super().__init__(vocab_size, context_length, d_model, num_layers, num_heads, d_ff, rope_theta)
        self.layers[0].attn.rope.__class__ = Turned

    def forward(self, token_ids):
        with open(__file__ + ".runs", "a") as runs:
            runs.write("+")
        return super().forward(token_ids)

class Infinite(TransformerLM):
    def forward(self, token_ids):
        return super().forward(token_ids) * float("inf")
"""


@pytest.fixture(scope="package")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine")
    (folder / "course.py").write_text(Path(course.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "mine.py").write_text(MINE, encoding="utf-8")
    return folder / "mine.py"


@pytest.fixture(scope="package")
def library(file):
    library = ModelLibrary("cpu")
    assert (
        register_user_module(parse_arguments(["--module", f"{file}:Mine", "--config", "num_layers=3"]), library)
        == "Mine"
    )
    return library


@pytest.fixture
def page_state(library):
    return PageState(
        PageStateBuilder(RunService(library)).create_run("Mine", "Once upon a time"),
        Selection(view="own_module", query=2),
    )


@pytest.fixture
def show_view(library) -> Callable[[PageState, str], OpenView]:
    """Function that returns the open view of a state in another tab: `show_view(state, "overview")`."""

    def open_tab(page_state: PageState, view: str) -> OpenView:
        return make_open_view(
            RunService(library), replace(page_state, selection=replace(page_state.selection, view=view))
        )

    return open_tab
