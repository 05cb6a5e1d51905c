"""Contributions of tokens to a prediction: gradient × input, integrated gradients and attention knock-out."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from explorer.interventions import Intervention, make_intervention
from explorer.tracing.forward_hooks import (
    apply_interventions,
    forward_hooks,
    needs_only_last_logits,
    next_token_logits,
)
from explorer.tracing.jobs import JobSteps
from explorer.tracing.request_budget import check_budget, chunk_tokens
from model.transformer_lm import TransformerLM
from model.weight_placement import read_weight

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
