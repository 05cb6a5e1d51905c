"""Ablation: what becomes of a prediction when one part of the model is silent."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from explorer.state.interventions import Intervention
from explorer.tracing.hooks import hooked
from explorer.tracing.intervening import Edited
from explorer.tracing.jobs import Pieces
from explorer.tracing.work import go_on, tokens_at_once
from model.counting import num_parameters
from model.layers.softcap import softcap
from model.transformer_lm import TransformerLM


def ablate(
    lm: TransformerLM, token_ids: Sequence[int], edits: Sequence[Intervention], position: int, token_id: int
) -> Pieces:
    """(L, H + 3) ln of the probability of a token after a position, in runs in which one part of a layer is silent.

    Of each layer these are: each head (`attn.z`), all heads, all neurons (`ffn.hidden`), and nothing. Of a model with
    biases those of W_O and W_down stay, as they are the same whatever the tokens are. A run begins with the layer, on
    what enters that without it. Gives how many of `num_runs` runs are done.

    Args:
        edits: changes that all these runs follow.
    """
    # A mean is over all of its tokens; else what comes later has no say.
    edits = [edit if edit.least_tokens else edit.of_prompt(token_ids) for edit in edits]
    ids = list(token_ids[: max(position + 1, *(edit.least_tokens for edit in edits), 0)])
    at_once = max(1, tokens_at_once(lm.config) // len(ids))
    edited = Edited(lm, edits)
    edited.passes.ids = ids
    found, done = np.empty((lm.config.num_layers, lm.config.num_heads + 3)), 0
    go_on()
    with edited.passing(), torch.inference_mode():
        entries = entering(lm, ids)
    for layer, entry in enumerate(entries):
        for runs in torch.arange(found.shape[1]).split(at_once):
            go_on()
            with edited.passing(), torch.inference_mode():
                x = without_parts(lm, entry, layer, runs.to(lm.device))[:, position : position + 1]
                logits = lm.logits(softcap(lm.lm_head(lm.final_norm(x)), lm.config.logit_cap))[:, 0]
                found[layer, runs] = logits.cpu().double().log_softmax(-1)[:, token_id]
            done += len(runs)
            yield done
    return found


def num_runs(lm: TransformerLM) -> int:
    return lm.config.num_layers * (lm.config.num_heads + 3)


def products_of(lm: TransformerLM, num_tokens: int) -> float:
    """Of reading so many tokens in all runs: the layers from the one on that lacks a part, half of them on average."""
    return num_runs(lm) * num_tokens * num_parameters(lm.config) / 2


def entering(lm: TransformerLM, ids: Sequence[int]) -> list[Tensor]:
    """(1, T, D) for each block."""
    positions = torch.arange(len(ids), device=lm.device)[None]
    x, found = lm.embed_tokens(torch.tensor([ids], device=lm.device), positions), []
    for layer in range(lm.config.num_layers):
        found.append(x)
        x = through(lm, x, layer)
    return found


def through(lm: TransformerLM, x: Tensor, layer: int) -> Tensor:
    """(N, T, D) -> (N, T, D), a block."""
    rope = lm.local_rope if lm.config.turns_locally(layer) else lm.rope
    rotation = rope(torch.arange(x.shape[1], device=lm.device)[None]) if rope else None
    return lm.blocks[layer](x, rotation, layer=layer)


def without_parts(lm: TransformerLM, entry: Tensor, layer: int, runs: Tensor) -> Tensor:
    """(N, T, D), the stream after all blocks of N of a layer's runs, by their places among those."""
    block, num_heads = lm.blocks[layer], lm.config.num_heads
    of_one_head, heads = (runs < num_heads).nonzero()[:, 0], runs[runs < num_heads]

    def silence_heads(module, inputs, z: Tensor) -> Tensor:
        z = z.clone()  # (N, H, T, d)
        z[of_one_head, heads] = 0
        z[runs == num_heads] = 0
        return z

    def silence_neurons(module, inputs, hidden: Tensor) -> Tensor:
        hidden = hidden.clone()  # (N, T, F)
        hidden[runs == num_heads + 1] = 0
        return hidden

    with hooked([block.attn.z], silence_heads), hooked([block.ffn.hidden], silence_neurons):
        x = through(lm, entry.expand(len(runs), -1, -1), layer)
    for later in range(layer + 1, lm.config.num_layers):
        x = through(lm, x, later)
    return x
