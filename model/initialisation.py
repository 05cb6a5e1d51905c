"""Initialisation of a model's weights."""

import math

import torch
from torch import nn

from model.layers.basic_layers import Embedding, Linear
from model.transformer_lm import TransformerLM


def truncated_normal(weight: torch.Tensor) -> None:
    """Draw from N(0, 2 / (d_in + d_out)) cut at 3 standard deviations, as a new `Linear` does."""
    std = math.sqrt(2 / sum(weight.shape))
    nn.init.trunc_normal_(weight, std=std, a=-3 * std, b=3 * std)


def xavier(weight: torch.Tensor) -> None:
    """Draw uniformly within ± √(6 / (d_in + d_out)) (Glorot & Bengio 2010, eq. 16)."""
    nn.init.xavier_uniform_(weight)


def kaiming(weight: torch.Tensor) -> None:
    """Draw from N(0, 2 / d_in), which preserves the scale of signals through ReLUs (He et al. 2015, eq. 10)."""
    nn.init.kaiming_normal_(weight, nonlinearity="relu")


def small_normal(weight: torch.Tensor) -> None:
    """Draw from N(0, 0.02²) (Radford et al. 2018, §4.1)."""
    nn.init.normal_(weight, std=0.02)


INITIALISATIONS = {"truncated_normal": truncated_normal, "xavier": xavier, "kaiming": kaiming, "gpt2": small_normal}


@torch.no_grad()
def initialise(lm: TransformerLM, name: str) -> TransformerLM:
    """Redraw all weights in place: the blocks' matrices by the named rule, biases 0, gains unchanged.

    The embeddings and the unembedding keep their own rules, a normal distribution of standard deviation 1 and
    `truncated_normal`, so that a fresh model's loss is near ln V whatever the rule. Only "gpt2" draws them with
    standard deviation 0.02 as well, and divides the matrices that write to the residual stream by √(2 L), since
    the stream is the sum of their outputs (Radford et al. 2019, §2.3).

    Raises:
        ValueError: there is no rule of that name.
    """
    if name not in INITIALISATIONS:
        raise ValueError(f"the initialisation must be one of {', '.join(INITIALISATIONS)}, got {name!r}")
    draw, gpt2 = INITIALISATIONS[name], name == "gpt2"
    for module_name, module in lm.named_modules():
        if isinstance(module, Embedding):
            draw(module.weight) if gpt2 else nn.init.trunc_normal_(module.weight, std=1.0, a=-3.0, b=3.0)
        elif isinstance(module, Linear):
            # The unembedding comes after the embedding, so that a tied table ends as the smaller of the two.
            draw(module.weight) if gpt2 or module is not lm.lm_head else truncated_normal(module.weight)
            if module.bias is not None:
                module.bias.zero_()
            if gpt2 and module_name.endswith(("o_proj", "down_proj")):
                module.weight /= math.sqrt(2 * lm.config.num_layers)
    return lm
