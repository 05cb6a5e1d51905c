"""The mean of a model's residual stream over prompts."""

from functools import lru_cache

import numpy as np
import torch

from explorer.tracing.hooks import hooked
from explorer.tracing.models import identity_of, living
from explorer.tracing.work import go_on
from model.transformer_lm import TransformerLM

MOST_KEPT = 128  # each a vector


def mean_stream(lm: TransformerLM, layer: int, prompts: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """(D,) float64: after a layer, the mean over each prompt's tokens, and of these the mean over the prompts; of the
    model as it is, whatever changes are made elsewhere. Worked out once."""
    return _kept(identity_of(lm), layer, prompts)


@lru_cache(MOST_KEPT)
def _kept(identity, layer: int, prompts: tuple[tuple[int, ...], ...]) -> np.ndarray:
    lm, means = living(identity), []

    def keep(module, inputs, x):
        means.append(x[0].cpu().double().mean(0).numpy())

    for prompt in prompts:
        go_on(tokens=len(prompt))
        with hooked([lm.blocks[layer].resid_post], keep), torch.inference_mode():
            lm(torch.tensor([prompt], device=lm.device))
    mean = np.mean(means, axis=0)
    mean.flags.writeable = False
    return mean
