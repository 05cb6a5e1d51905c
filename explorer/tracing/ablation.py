"""Ablation: what becomes of a prediction when one part of the model is silent."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import numpy as np
import torch
from torch import Tensor, nn

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
    """(1 + L (H + 2),) ln of the probability of a token after a position, in runs in which one part is silent.

    The first is of a run in which nothing is. The parts of each layer follow: each head (`attn.z`), all heads, all
    neurons (`ffn.hidden`). Of a model with biases those of W_O and W_down stay, as they are the same whatever the
    tokens are. A run begins with the layer, on what enters that without it. Gives how many of `num_runs` are done.

    Args:
        edits: changes that all these runs follow.
    """
    # A mean is over all of its tokens; else what comes later has no say.
    edits = [edit if edit.least_tokens else edit.of_prompt(token_ids) for edit in edits]
    ids = list(token_ids[: max(position + 1, *(edit.least_tokens for edit in edits), 0)])
    at_once = max(1, tokens_at_once(lm.config) // len(ids))
    edited = Edited(lm, edits)
    edited.passes.ids = ids
    asked = slice(None) if edits else slice(position, position + 1)  # an edit may be of any place in the last block
    at, num_parts = position if edits else 0, lm.config.num_heads + 2

    def log_probabilities(x: Tensor) -> np.ndarray:
        """(N, T, D) -> (N,) after the last block."""
        logits = lm.logits(softcap(lm.lm_head(lm.final_norm(x[:, at : at + 1])), lm.config.logit_cap))[:, 0]
        return logits.cpu().double().log_softmax(-1)[:, token_id].numpy()

    go_on()
    with edited.passing(), torch.inference_mode():
        *entries, x = streams(lm, ids, asked)
        found = [log_probabilities(x)]
    yield 1
    for layer, entry in enumerate(entries):
        for parts in torch.arange(num_parts, device=lm.device).split(at_once):
            go_on()
            with edited.passing(), torch.inference_mode():
                found.append(log_probabilities(without_parts(lm, entry, layer, parts, asked)))
            yield sum(map(len, found))
    return np.concatenate(found)


def num_runs(lm: TransformerLM) -> int:
    return 1 + lm.config.num_layers * (lm.config.num_heads + 2)


def products_of(lm: TransformerLM, num_tokens: int) -> float:
    """Of reading so many tokens in all runs: the layers from the one on that lacks a part, half of them on average."""
    return num_runs(lm) * num_tokens * num_parameters(lm.config) / 2


def streams(lm: TransformerLM, ids: Sequence[int], asked: slice) -> list[Tensor]:
    """(1, T, D) that enters each block, and leaves the last one at the positions asked for."""
    positions = torch.arange(len(ids), device=lm.device)[None]
    found = [lm.embed_tokens(torch.tensor([ids], device=lm.device), positions)]
    for layer in range(lm.config.num_layers):
        found.append(through(lm, found[-1], layer, asked))
    return found


def through(lm: TransformerLM, x: Tensor, layer: int, asked: slice) -> Tensor:
    """(N, T, D) -> (N, T, D), a block; of the last one the positions asked for."""
    rope = lm.local_rope if lm.config.turns_locally(layer) else lm.rope
    rotation = rope(torch.arange(x.shape[1], device=lm.device)[None]) if rope else None
    block, is_last = lm.blocks[layer], layer == lm.config.num_layers - 1
    with cropped(block, asked) if is_last else nullcontext():
        return block(x, rotation, layer=layer)


@contextmanager
def cropped(block: nn.Module, asked: slice) -> Iterator[None]:
    """Has a block go on with some positions alone from where its attention has read the others' keys and values."""
    after_attention = getattr(block, "resid_mid", block.resid_post)
    with (
        hooked([block.attn.z], lambda module, inputs, z: z[:, :, asked]),  # (N, H, T, d)
        hooked([after_attention], lambda module, inputs, x: x[:, asked]),  # (N, T, D)
    ):
        yield


def without_parts(lm: TransformerLM, entry: Tensor, layer: int, parts: Tensor, asked: slice) -> Tensor:
    """(N, T, D), the stream after all blocks in N runs, each without a part of a layer, at the positions asked for.

    What comes before the heads of that layer give out theirs is the same in all of them, and worked out once.
    """
    block, num_heads = lm.blocks[layer], lm.config.num_heads
    of_one_head, heads = (parts < num_heads).nonzero()[:, 0], parts[parts < num_heads]

    def silence_heads(module, inputs, z: Tensor) -> Tensor:
        z = z.expand(len(parts), -1, -1, -1).clone()  # (1, H, T, d) -> (N, H, T, d)
        z[of_one_head, heads] = 0
        z[parts == num_heads] = 0
        return z

    def silence_neurons(module, inputs, hidden: Tensor) -> Tensor:
        hidden = hidden.expand(len(parts), -1, -1).clone()  # (N, T, F); (1, T, F) in a block that is parallel
        hidden[parts == num_heads + 1] = 0
        return hidden

    with hooked([block.attn.z], silence_heads), hooked([block.ffn.hidden], silence_neurons):
        x = through(lm, entry, layer, asked)
    for later in range(layer + 1, lm.config.num_layers):
        x = through(lm, x, later, asked)
    return x
