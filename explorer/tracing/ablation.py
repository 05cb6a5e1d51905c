"""Ablation: what becomes of a prediction when one part of the model is silent."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from explorer.state.interventions import Intervention
from explorer.tracing.hooks import hooked
from explorer.tracing.intervening import edited
from model.transformer_lm import TransformerLM


def ablate(
    lm: TransformerLM, token_ids: Sequence[int], edits: Sequence[Intervention], position: int, token_id: int
) -> np.ndarray:
    """(L, H + 3) ln of the probability of a token after a position, in runs in which one part of a layer is silent.

    Of each layer these are: each head (`attn.z`), all heads, all neurons (`ffn.hidden`), and nothing. Of a model with
    biases those of W_O and W_down stay, as they are the same whatever the tokens are.

    Args:
        edits: changes that all these runs follow.
    """
    # A mean is over all of its tokens; else what comes later has no say.
    edits = [edit if edit.least_tokens else edit.of_prompt(token_ids) for edit in edits]
    length = max(position + 1, *(edit.least_tokens for edit in edits), 0)
    ids = torch.tensor([token_ids[:length]], device=lm.device)

    def asked(module, inputs, x: Tensor) -> Tensor:
        return last_position(module, inputs, x[:, : position + 1])

    with edited(lm, edits), hooked([lm.final_norm], asked), torch.inference_mode():
        found = [ablate_layer(lm, ids, layer)[:, token_id] for layer in range(lm.config.num_layers)]
    return torch.stack(found).numpy()


def ablate_layer(lm: TransformerLM, ids: Tensor, layer: int) -> Tensor:
    """(H + 3, V) ln of the next token's probabilities: one pass, which is a batch of that many from the layer on."""
    block, heads = lm.blocks[layer], torch.arange(lm.config.num_heads)
    all_heads, all_neurons, runs = len(heads), len(heads) + 1, len(heads) + 3

    def part(module, inputs, x: Tensor) -> Tensor:
        return x.expand(runs, -1, -1)  # (1, T, D) -> (N, T, D)

    def silence_heads(module, inputs, z: Tensor) -> Tensor:
        z = z.clone()  # (N, H, T, d)
        z[heads, heads] = 0
        z[all_heads] = 0
        return z

    def silence_neurons(module, inputs, hidden: Tensor) -> Tensor:
        hidden = hidden.clone()  # (N, T, F)
        hidden[all_neurons] = 0
        return hidden

    hooks = hooked([block.resid_pre], part), hooked([block.attn.z], silence_heads)
    with hooks[0], hooks[1], hooked([block.ffn.hidden], silence_neurons):
        return lm(ids)[:, -1].cpu().double().log_softmax(-1)


def last_position(module, inputs, x: Tensor) -> Tensor:
    """Most of a small model's work is the unembedding, and only one position's is asked for."""
    return x[:, -1:]
