"""Small models, tokenizers and checkpoints that every test can use."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest
import torch

from model.checkpoint import save_checkpoint
from model.config import ModelConfig
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM
from tests import sample_models

# pytest attaches handlers to every non-propagating logger, six times a test; torch has dozens of them.
for logger in logging.root.manager.loggerDict.values():
    if isinstance(logger, logging.Logger):
        logger.propagate = True


@pytest.fixture(scope="session")
def tiny_tokenizer() -> Tokenizer:
    return sample_models.tokenizer()


@pytest.fixture(scope="session")
def tiny_config() -> ModelConfig:
    return sample_models.config()


@pytest.fixture
def tiny_lm(tiny_config) -> TransformerLM:
    """New model with the same random weights every time, in eval mode."""
    torch.default_generator.manual_seed(0)
    return TransformerLM(tiny_config).eval()


@pytest.fixture
def checkpoints_folder(tmp_path, monkeypatch) -> Path:
    """Empty folder, in place of `checkpoints/`."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    monkeypatch.setattr("model.checkpoint.CHECKPOINTS", folder)
    return folder


@pytest.fixture
def tiny_checkpoint(checkpoints_folder, tiny_lm, tiny_tokenizer) -> Path:
    """Folder of the only checkpoint, named "tiny"; its weights are exactly `tiny_lm`'s."""
    return save_checkpoint(tiny_lm, tiny_tokenizer, "tiny", dtype=torch.float32)


@pytest.fixture
def user_views(tmp_path, monkeypatch) -> Iterator[Callable]:
    """Function that adds a user view from a file name and source, until the test ends.

    It returns the added view.
    """
    from explorer import views
    from explorer.state import selection

    for table in ("_groups", "_names", "_fields"):
        monkeypatch.setattr(selection, table, dict(getattr(selection, table)))
    before = dict(views.VIEW_BY_NAME)

    def add(name: str, source: str):
        (tmp_path / name).write_text(dedent(source), encoding="utf-8")
        views.add_user_views([tmp_path / name])
        return views.USER_VIEWS[-1]

    yield add
    views.VIEW_BY_NAME.clear()
    views.VIEW_BY_NAME.update(before)
    views.USER_VIEWS.clear()
