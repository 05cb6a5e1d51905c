"""Number of threads that a matrix product uses."""

import threading
from dataclasses import replace

import pytest
import torch

from explorer.tracing import model_library
from explorer.tracing.model_library import set_num_threads
from model.config import ModelConfig


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setattr(model_library, "CORES", 4)
    yield
    torch.set_num_threads(before)


def count_threads_in_new_thread() -> int:
    counts = []
    thread = threading.Thread(target=lambda: counts.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return counts[0]


def test_only_large_models_use_all_cores():
    small = ModelConfig.llama_style(vocab_size=100, context_length=32, d_model=32, d_ff=64, num_layers=2, num_heads=2)
    set_num_threads(small)
    assert count_threads_in_new_thread() == 1
    set_num_threads(replace(small, vocab_size=4_000_000))
    assert count_threads_in_new_thread() == 4
