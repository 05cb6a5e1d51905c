"""Mean of a model's residual stream over prompts."""

from functools import lru_cache

import numpy as np
import torch

from explorer.tracing.hooks import forward_hooks
from explorer.tracing.model_registry import find_model, get_identity
from explorer.tracing.request_budget import check_budget
from model.transformer_lm import TransformerLM

MAX_CACHED = 128  # each a vector


def mean_stream(lm: TransformerLM, layer: int, prompts: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """Return the mean stream after a layer, (D,) float64: over each prompt's tokens, then over the prompts.

    The model runs without interventions. The result is cached.
    """
    return _cached_mean(get_identity(lm), layer, prompts)


@lru_cache(MAX_CACHED)
def _cached_mean(identity, layer: int, prompts: tuple[tuple[int, ...], ...]) -> np.ndarray:
    lm, means = find_model(identity), []

    def store_mean(module, inputs, x):
        means.append(x[0].cpu().double().mean(0).numpy())

    for prompt in prompts:
        check_budget(tokens=len(prompt))
        with forward_hooks([lm.blocks[layer].resid_post], store_mean), torch.inference_mode():
            lm(torch.tensor([prompt], device=lm.device))
    mean = np.mean(means, axis=0)
    mean.flags.writeable = False
    return mean
