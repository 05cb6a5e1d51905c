"""Small models of each kind that the explorer supports, and their captured runs."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
import torch

from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.trace import Trace
from explorer.views.style import plotly_template
from model.checkpoint import save_checkpoint
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM
from tests import sample_models
from tests.nasty_prompts import NASTY_PROMPTS
from tests.sample_models import CORE, ROTATING, STYLES


def in_turn(styles: Iterable[str]) -> list:
    """Return a fixture's parameters: styles of bundled checkpoints are in the core suite, others exhaustive."""
    return [pytest.param(style, marks=() if style in CORE else pytest.mark.exhaustive) for style in styles]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]):
    """Reduce the tests that run over other parameters besides the fixture `style`.

    The styles take turns, like the axes of `exhaustive.pairwise_params`: the first value with the first style, the next
    with the next; in the core suite the bundled styles alone, in the exhaustive one all of them, until each style and
    each value had its turn.
    """
    tests = defaultdict(lambda: defaultdict(dict))  # items of a test by their other parameters, and by their style
    for item in items:
        if uses_style_fixture(item):
            parameters = item.callspec.params
            key = tuple(id(value) for name, value in parameters.items() if name != "style")
            tests[item.nodeid.partition("[")[0]][key][parameters["style"]] = item
    superfluous = set()
    for test in tests.values():
        for index, items_by_style in enumerate(test.values() if len(test) > 1 else ()):
            core = [item for item in items_by_style.values() if not item.get_closest_marker("exhaustive")]
            for item in core:
                if item is not core[index % len(core)]:
                    item.add_marker(pytest.mark.exhaustive)
            for number, item in enumerate(items_by_style.values()):
                turns = {number % len(test) == index, index % len(items_by_style) == number}
                if item.get_closest_marker("exhaustive") and True not in turns:
                    superfluous.add(item)
    if superfluous:
        config.hook.pytest_deselected(items=list(superfluous))
        items[:] = [item for item in items if item not in superfluous]


def uses_style_fixture(item: pytest.Item) -> bool:
    """Return whether a test takes its style from the fixture, and not from its own parameters."""
    of_its_own = any("style" in mark.args[0] for mark in item.iter_markers("parametrize"))
    return "style" in getattr(getattr(item, "callspec", None), "params", ()) and not of_its_own


@pytest.fixture(scope="session", autouse=True)
def no_plotly_template() -> Iterator[None]:
    """Draw figures without a Plotly template, which Plotly would validate for each figure.

    Validation takes longer than the rest of drawing. `test_style` validates the template.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("explorer.views.style.plotly_template", lambda theme: {})
        yield


@pytest.fixture
def plotly_template_enabled(no_plotly_template, monkeypatch):
    """Draw figures with their template, as outside of tests."""
    monkeypatch.setattr("explorer.views.style.plotly_template", plotly_template)


@pytest.fixture(params=in_turn(STYLES))
def style(request) -> str:
    """Each kind of model; function-scoped, as a wider scope would repeat the set-up of module fixtures."""
    return request.param


@pytest.fixture(scope="session")
def lms() -> dict[str, TransformerLM]:
    """Models of each style, shared by all tests: not to be changed."""
    return sample_models.models()


@pytest.fixture(scope="session")
def capture_trace() -> Callable[..., Trace]:
    return sample_models.capture_style


@pytest.fixture(scope="session")
def capture_edited_trace() -> Callable[..., Trace]:
    return sample_models.capture_edited_style


@pytest.fixture
def trace(capture_trace, style) -> Trace:
    """Run of 12 tokens through each kind of model."""
    return capture_trace(style)


@pytest.fixture
def rope_trace(capture_trace) -> Trace:
    return capture_trace("rope")


@pytest.fixture(params=in_turn(ROTATING))
def rotating_trace(capture_trace, request) -> Trace:
    """Run of 12 tokens through each kind of model with rotary positions."""
    return capture_trace(request.param)


@pytest.fixture(params=NASTY_PROMPTS, ids=ascii)
def nasty_prompt(request) -> str:
    return request.param


@pytest.fixture(scope="session")
def style_checkpoint_folder(lms, tiny_tokenizer: Tokenizer, tmp_path_factory) -> Path:
    """Folder of one checkpoint per style, named after it; its weights are exactly those of `lms`."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for style, lm in lms.items():
        save_checkpoint(lm, tiny_tokenizer, folder / style, dtype=torch.float32)
    return folder


@pytest.fixture(scope="module")
def style_checkpoints(style_checkpoint_folder) -> Iterator[Path]:
    """Folder of `style_checkpoint_folder`, in place of `checkpoints/`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.checkpoint.CHECKPOINTS", style_checkpoint_folder)
        yield style_checkpoint_folder


@pytest.fixture(scope="module")
def library(style_checkpoints) -> ModelLibrary:
    return ModelLibrary("cpu")
