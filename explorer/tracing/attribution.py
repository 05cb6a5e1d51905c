"""Attribution: a prediction without each component (ablation), and contributions of tokens by gradients."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import numpy as np
import torch
from torch import Tensor, nn

from explorer.interventions import Intervention, make_intervention
from explorer.tracing.forward_hooks import (
    InterventionSession,
    apply_interventions,
    forward_hooks,
    needs_only_last_logits,
    next_token_logits,
)
from explorer.tracing.jobs import JobSteps, check_budget, chunk_tokens
from model.config import num_parameters
from model.layers.attention import softcap
from model.transformer_lm import TransformerLM
from model.weight_placement import read_weight


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


STEPS = 50  # of the path from the baseline to the embeddings
GRADIENT_PASSES = 3  # as much as a pass takes one with gradients
MAX_CHUNK_NUMBERS = 1 << 22  # of the table of embeddings, read at a time


def embedding_gradients(
    lm: TransformerLM,
    token_ids: Sequence[int],
    interventions: Sequence[Intervention],
    position: int,
    token_id: int,
    contrast_id: int | None = None,
    embeddings: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the values x at `embed`, (N, T, D), the logit f of a token after a position, (N,), and ∂f/∂x, (N, T, D).

    With a contrast token, f is the difference of both logits. The model's weights get no gradients.

    Args:
        embeddings: (N, T, D) to use instead, of N runs; None for the run's own, after its interventions.
    """
    captured, ids = {}, torch.tensor([list(token_ids)], device=lm.device)
    last_only = needs_only_last_logits(interventions, len(token_ids), position)

    def set_embeddings(module, inputs, x: Tensor) -> Tensor:
        captured["x"] = (x if embeddings is None else embeddings).detach().clone().requires_grad_()
        return captured["x"]

    gradient_modes = torch.inference_mode(False), torch.enable_grad()  # also if the caller has disabled gradients
    with (
        gradient_modes[0],
        gradient_modes[1],
        apply_interventions(lm, interventions),
        forward_hooks([lm.taps["embed"]], set_embeddings),
    ):
        logits = lm(ids, last_only=last_only)[:, position - len(token_ids)]
        f = logits[:, token_id] - (0 if contrast_id is None else logits[:, contrast_id])
        (slope,) = torch.autograd.grad(f.sum(), [captured["x"]])
    return captured["x"].detach(), f.detach(), slope


def mean_embedding(lm: TransformerLM, x: Tensor, length: int) -> Tensor:
    """Return the values at `embed`, (T, D), of uninformative tokens: the mean embedding of the vocabulary.

    Position embeddings are included if the model adds them to those of the tokens.
    """
    table = read_weight(lm, "token_embedding.weight")
    chunks = table.split(max(1, MAX_CHUNK_NUMBERS // table.shape[1]))  # of 16 bits, PyTorch copies what it sums to 32
    mean = sum(chunk.sum(0, dtype=torch.float32) for chunk in chunks) / len(table)
    mean = mean.to(x.device) * lm.config.embedding_scale
    rows = mean.expand(length, -1)
    if "position_embed" not in lm.taps:
        return rows.to(x.dtype)
    added = {}
    with forward_hooks([lm.taps["position_embed"]], lambda module, inputs, value: added.update(rows=value)):
        lm(torch.zeros(1, length, dtype=torch.long, device=lm.device))
    return (rows + added["rows"].reshape(-1, length, lm.config.d_model)[0]).to(x.dtype)


def token_contributions(
    lm: TransformerLM,
    token_ids: Sequence[int],
    interventions: Sequence[Intervention],
    position: int,
    token_id: int,
    contrast_id: int | None = None,
    steps: int = STEPS,
) -> JobSteps:
    """Compute the contribution of each token up to a position to the next token's logit f, by three methods.

    With a contrast token, f is the difference of both logits.

    - gradient × input: Σ x ∂f/∂x over the numbers x of the token at `embed`.
    - integrated gradients (Sundararajan et al. 2017, arXiv:1703.01365): Σ (x − x′) mean ∂f/∂x along the straight
      path from the baseline x′, by the midpoints of `steps` equal steps.
    - knock-out: f − f without the edges from the token to all later ones, whose other weights are renormalised, in
      all heads of all layers: one run per token. NaN for the last token, which has no later ones.

    Yields how many of `num_job_units` are done; returns arrays: `embed` x, `baseline` x′, `slope` ∂f/∂x at x and
    `mean_slope` along the path, each (T, D); `f` at x and `f_baseline`; `steps`; `without` (T,), f in the runs of
    the knock-out.
    """
    # A mean needs all its tokens; otherwise later tokens have no influence.
    interventions = [
        intervention if intervention.min_tokens else intervention.for_prompt(token_ids)
        for intervention in interventions
    ]
    length = max(position + 1, *(intervention.min_tokens for intervention in interventions), 0)
    ids = list(token_ids[:length])
    args = interventions, position, token_id, contrast_id
    check_budget(tokens=length)
    x, f, slope = embedding_gradients(lm, ids, *args)
    with torch.inference_mode():
        baseline = mean_embedding(lm, x, length)[None]
    baseline = baseline.clone()
    _x, f_baseline, _slope = embedding_gradients(lm, ids, *args, embeddings=baseline)
    done, total = 1, torch.zeros_like(x)
    yield done
    shares = (torch.arange(steps, device=lm.device, dtype=x.dtype) + 0.5) / steps
    for chunk in shares.split(max(1, chunk_tokens(lm.config, GRADIENT_PASSES) // length)):
        check_budget(tokens=len(chunk) * length)
        path = baseline + chunk[:, None, None] * (x - baseline)
        total = total + embedding_gradients(lm, ids, *args, embeddings=path)[2].sum(0)
        done += len(chunk)
        yield done
    without = np.full(position + 1, np.nan)
    for key in range(position):
        masks = [
            make_intervention(f"blocks.{layer}.attn.pattern", "mask", key, positions=f"{key + 1}-")
            for layer in range(lm.config.num_layers)
        ]
        logits = next_token_logits(lm, ids, [*interventions, *masks], position)
        without[key] = logits[token_id] - (0 if contrast_id is None else logits[contrast_id])
        done += 1
        yield done
    rows = {"embed": x, "baseline": baseline, "slope": slope, "mean_slope": total / steps}
    arrays = {name: value[0, : position + 1].cpu().double().numpy() for name, value in rows.items()}
    ends = {name: value[0].cpu().double().numpy() for name, value in (("f", f), ("f_baseline", f_baseline))}
    return arrays | ends | {"without": without, "steps": np.array(steps)}


def num_job_units(position: int, steps: int = STEPS) -> int:
    """Return the number of units of work of a token attribution."""
    return 1 + steps + position
