"""Ablation: a prediction without each component of the model in turn."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import numpy as np
import torch
from torch import Tensor, nn

from explorer.interventions import Intervention
from explorer.tracing.forward_hooks import InterventionSession, forward_hooks
from explorer.tracing.jobs import JobSteps
from explorer.tracing.request_budget import check_budget, chunk_tokens
from model.layers.attention import softcap
from model.parameter_and_flop_counts import num_parameters
from model.transformer_lm import TransformerLM


def ablate(
    lm: TransformerLM,
    token_ids: Sequence[int],
    interventions: Sequence[Intervention],
    position: int,
    token_id: int,
    operation: str = "zero",
) -> JobSteps:
    """Compute ln of a token's probability after a position with each component ablated, (1 + L (H + 2),).

    The first run has nothing ablated. The components of each layer follow: each head (`attn.z`), all heads, all
    neurons (`ffn.hidden`), each set to 0 or to its mean over all tokens. Biases of W_O and W_down remain, since they
    do not depend on the tokens. Each run starts at the layer of its component, from the stream that enters this
    layer. Yields how many of `num_runs` are done.

    Args:
        interventions: those that all these runs have.
        operation: "zero" or "mean".
    """
    # A mean needs all its tokens; otherwise later tokens have no influence.
    interventions = [
        intervention if intervention.min_tokens else intervention.for_prompt(token_ids)
        for intervention in interventions
    ]
    needs_all = operation == "mean"
    min_tokens = [intervention.min_tokens for intervention in interventions]
    ids = list(token_ids if needs_all else token_ids[: max(position + 1, *min_tokens, 0)])
    batch_size = max(1, chunk_tokens(lm.config) // len(ids))
    session = InterventionSession(lm, interventions)
    session.pass_context.ids = ids
    needs_all = needs_all or bool(interventions)  # which may need any position of the last block
    output_positions = slice(None) if needs_all else slice(position, position + 1)
    output_index, num_components = position if needs_all else 0, lm.config.num_heads + 2

    def log_probabilities(x: Tensor) -> np.ndarray:
        """Return ln of the token's probability from the stream after the last block, (N, T, D) -> (N,)."""
        logits = lm.logits(
            softcap(lm.lm_head(lm.final_norm(x[:, output_index : output_index + 1])), lm.config.logit_cap)
        )[:, 0]
        return logits.cpu().double().log_softmax(-1)[:, token_id].numpy()

    check_budget()
    with session.active(), torch.inference_mode():
        *entries, x = block_inputs(lm, ids, output_positions)
        log_probs = [log_probabilities(x)]
    yield 1
    for layer, entry in enumerate(entries):
        for components in torch.arange(num_components, device=lm.device).split(batch_size):
            check_budget()
            with session.active(), torch.inference_mode():
                x = ablate_components(lm, entry, layer, components, output_positions, operation)
                log_probs.append(log_probabilities(x))
            yield sum(map(len, log_probs))
    return np.concatenate(log_probs)


def num_ablation_runs(lm: TransformerLM) -> int:
    """Return the number of runs for ablating every head and sublayer, and none."""
    return 1 + lm.config.num_layers * (lm.config.num_heads + 2)


def estimate_macs(lm: TransformerLM, num_tokens: int) -> float:
    """Estimate the multiply-accumulates of all runs over this many tokens.

    A run computes the layers from that of its component on, half of all layers on average.
    """
    return num_ablation_runs(lm) * num_tokens * num_parameters(lm.config) / 2


def block_inputs(lm: TransformerLM, ids: Sequence[int], output_positions: slice) -> list[Tensor]:
    """Return the stream before each block, (1, T, D), and after the last block at the output positions."""
    positions = torch.arange(len(ids), device=lm.device)[None]
    inputs = [lm.embed_tokens(torch.tensor([ids], device=lm.device), positions)]
    for layer in range(lm.config.num_layers):
        inputs.append(run_block(lm, inputs[-1], layer, output_positions))
    return inputs


def run_block(lm: TransformerLM, x: Tensor, layer: int, output_positions: slice) -> Tensor:
    """Run one block, (N, T, D) -> (N, T, D); the last block only at the output positions."""
    rope = lm.local_rope if lm.config.uses_local_rope(layer) else lm.rope
    rotation = rope(torch.arange(x.shape[1], device=lm.device)[None]) if rope else None
    block, is_last = lm.blocks[layer], layer == lm.config.num_layers - 1
    with restrict_block_positions(block, output_positions) if is_last else nullcontext():
        return block(x, rotation, layer=layer)


@contextmanager
def restrict_block_positions(block: nn.Module, output_positions: slice) -> Iterator[None]:
    """Make a transformer block compute only some positions, after its attention has read all keys and values."""
    after_attention = getattr(block, "resid_mid", block.resid_post)
    with (
        forward_hooks([block.attn.z], lambda module, inputs, z: z[:, :, output_positions]),  # (N, H, T, d)
        forward_hooks([after_attention], lambda module, inputs, x: x[:, output_positions]),  # (N, T, D)
    ):
        yield


def ablate_components(
    lm: TransformerLM, entry: Tensor, layer: int, components: Tensor, output_positions: slice, operation: str
) -> Tensor:
    """Return the stream after all blocks, (N, T, D), in N runs with one component of a layer ablated each.

    The last block computes the output positions only. What the layer computes before the outputs of its heads is
    the same in all runs, and computed once.
    """
    block, num_heads = lm.blocks[layer], lm.config.num_heads
    head_rows, heads = (components < num_heads).nonzero()[:, 0], components[components < num_heads]

    def make_replacement(x: Tensor) -> Tensor:
        """Return what replaces a value, (…, T, d) -> (…, 1, d)."""
        mean = x.mean(-2, keepdim=True)
        return mean if operation == "mean" else torch.zeros_like(mean)

    def ablate_heads(module, inputs, z: Tensor) -> Tensor:
        replacement = make_replacement(z)[0]
        z = z.expand(len(components), -1, -1, -1).clone()  # (1, H, T, d) -> (N, H, T, d)
        z[head_rows, heads] = replacement[heads]
        z[components == num_heads] = replacement
        return z

    def ablate_neurons(module, inputs, hidden: Tensor) -> Tensor:
        replacement = make_replacement(hidden)
        hidden = hidden.expand(len(components), -1, -1).clone()  # (N, T, F); (1, T, F) in a block that is parallel
        rows = components == num_heads + 1
        hidden[rows] = replacement.expand_as(hidden)[rows]
        return hidden

    with forward_hooks([block.attn.z], ablate_heads), forward_hooks([block.ffn.hidden], ablate_neurons):
        x = run_block(lm, entry, layer, output_positions)
    for later in range(layer + 1, lm.config.num_layers):
        x = run_block(lm, x, later, output_positions)
    return x
