"""Fixtures for tests of sampling."""

import numpy as np
import pytest


@pytest.fixture
def logits() -> np.ndarray:
    """Random logits (200,), all different."""
    return np.random.default_rng(0).normal(scale=3, size=200).astype(np.float32)
