"""What several tests draw from."""

import numpy as np
import pytest


@pytest.fixture
def logits() -> np.ndarray:
    """(200,), no two equal."""
    return np.random.default_rng(0).normal(scale=3, size=200).astype(np.float32)
