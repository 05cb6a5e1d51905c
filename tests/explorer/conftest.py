"""Small models of each kind that the explorer supports, and their captured runs."""

from collections.abc import Callable, Iterator
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
from tests.exhaustive import exhaustive
from tests.nasty_prompts import NASTY_PROMPTS
from tests.sample_models import CORE, STYLES


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


@pytest.fixture(params=[style if style in CORE else exhaustive(style) for style in STYLES])
def style(request) -> str:
    """Each kind of model, in the core suite those of bundled checkpoints.

    Function-scoped, as a wider scope would repeat the set-up of module fixtures.
    """
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
