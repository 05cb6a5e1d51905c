"""Small models, tokenizers and checkpoints that every test can use."""

import shutil
from pathlib import Path

import pytest
import torch

from model.checkpoint import save_checkpoint
from model.config import ModelConfig
from model.tokenizer import Tokenizer
from model.training.bpe import train_bpe
from model.transformer_lm import TransformerLM

torch.set_num_threads(1)  # the models are tiny: a second thread only waits, and for long where cores are shared

SENTENCES = [
    "Once upon a time there was a fox who wanted the moon.",
    "The fox asked the owl, and the owl asked the moon, and the moon said nothing.",
    "“Wait,” said the owl, “until the lake is still: then the moon comes down to you.”",
]


def pytest_collection_modifyitems(items):
    """Skip the browser tests, and say so, where there is no browser."""
    if shutil.which("chromium"):
        return
    browser_tests = Path(__file__).parent / "browser"
    for item in items:
        if browser_tests in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="needs chromium: apt-get install chromium"))


@pytest.fixture(scope="session")
def tiny_tokenizer() -> Tokenizer:
    """The 256 bytes, 43 merges and the end-of-text token."""
    return train_bpe(SENTENCES, vocab_size=300)


@pytest.fixture(scope="session")
def tiny_config(tiny_tokenizer) -> ModelConfig:
    """Every size different from every other, so that no two axes can be confused."""
    return ModelConfig.llama_style(
        vocab_size=tiny_tokenizer.vocab_size, context_length=32, d_model=24, num_layers=2, num_heads=3, d_ff=40
    )


@pytest.fixture
def tiny_lm(tiny_config) -> TransformerLM:
    """A fresh model with the same random weights every time, in eval mode."""
    torch.manual_seed(0)
    return TransformerLM(tiny_config).eval()


@pytest.fixture
def checkpoints_folder(tmp_path, monkeypatch) -> Path:
    """An empty folder in the place of `checkpoints/`."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    monkeypatch.setattr("model.checkpoint.CHECKPOINTS", folder)
    return folder


@pytest.fixture
def tiny_checkpoint(checkpoints_folder, tiny_lm, tiny_tokenizer) -> Path:
    """The folder of the only checkpoint, named "tiny"; its weights are exactly `tiny_lm`'s."""
    return save_checkpoint(tiny_lm, tiny_tokenizer, "tiny", dtype=torch.float32)
