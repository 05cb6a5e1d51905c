"""Small models, tokenizers and checkpoints that every test can use."""

import logging
from pathlib import Path

import pytest
import torch

from model.checkpoint import save_checkpoint
from model.config import ModelConfig
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM
from tests import sample_models

# pytest listens to every logger that passes nothing on to the root, six times a test; torch has dozens of them.
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
