"""A person's own module, and the app on it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.options import parse_arguments
from explorer.own_module.serving import opened
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.web.answers.open_view import OpenView, open_view_of
from explorer.web.events.opening import Opening
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
    library = Library("cpu")
    assert opened(parse_arguments(["--module", f"{file}:Mine", "--config", "num_layers=3"]), library) == "Mine"
    return library


@pytest.fixture
def asked(library):
    return PageState(Opening(Runs(library)).run_of("Mine", "Once upon a time"), Selection(view="own_module", query=2))


@pytest.fixture
def shown(library) -> Callable[[PageState, str], OpenView]:
    """The state in one of its tabs."""

    def show(asked: PageState, view: str) -> OpenView:
        return open_view_of(Runs(library), replace(asked, selection=replace(asked.selection, view=view)))

    return show
