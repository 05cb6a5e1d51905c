"""What each token contributes to a prediction: by gradients at its embedding, and by hiding it from later tokens."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from explorer.state.interventions import Edit, Intervention
from explorer.tracing.hooks import hooked
from explorer.tracing.intervening import edited, reads_last_alone
from explorer.tracing.jobs import Pieces
from explorer.tracing.outcome import logits_after
from explorer.tracing.work import go_on, tokens_at_once
from model.offloading import weight_of
from model.transformer_lm import TransformerLM

STEPS = 50  # of the path from the baseline to the embeddings
TIMES = 3  # as much as a pass takes one with gradients
MOST_NUMBERS = 1 << 22  # of the table of embeddings, read at a time


def slopes(
    lm: TransformerLM,
    token_ids: Sequence[int],
    edits: Sequence[Intervention],
    position: int,
    token_id: int,
    rival_id: int | None = None,
    embeddings: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """What stands at `embed`, (N, T, D), the logit f of a token after a position, (N,), less that of its rival if there
    is one, and ∂f/∂x of each number x at `embed`, (N, T, D); the model's weights get no gradients.

    Args:
        embeddings: (N, T, D) to put there, of N runs; None for the one run's own, after its edits.
    """
    found, ids = {}, torch.tensor([list(token_ids)], device=lm.device)
    last_only = reads_last_alone(edits, len(token_ids), position)

    def begin(module, inputs, x: Tensor) -> Tensor:
        found["x"] = (x if embeddings is None else embeddings).detach().clone().requires_grad_()
        return found["x"]

    gradients = torch.inference_mode(False), torch.enable_grad()  # also where a caller has switched them off
    with gradients[0], gradients[1], edited(lm, edits), hooked([lm.taps["embed"]], begin):
        logits = lm(ids, last_only=last_only)[:, position - len(token_ids)]
        f = logits[:, token_id] - (0 if rival_id is None else logits[:, rival_id])
        (slope,) = torch.autograd.grad(f.sum(), [found["x"]])
    return found["x"].detach(), f.detach(), slope


def mean_embedding(lm: TransformerLM, x: Tensor, length: int) -> Tensor:
    """(T, D) at `embed`, of tokens that say nothing: the mean of all the vocabulary's embeddings, where the model adds
    positions with those of the tokens."""
    table = weight_of(lm, "token_embedding.weight")
    parts = table.split(max(1, MOST_NUMBERS // table.shape[1]))  # of 16 bits, PyTorch copies what it sums to 32
    mean = sum(part.sum(0, dtype=torch.float32) for part in parts) / len(table)
    mean = mean.to(x.device) * lm.config.embedding_scale
    rows = mean.expand(length, -1)
    if "position_embed" not in lm.taps:
        return rows.to(x.dtype)
    added = {}
    with hooked([lm.taps["position_embed"]], lambda module, inputs, value: added.update(rows=value)):
        lm(torch.zeros(1, length, dtype=torch.long, device=lm.device))
    return (rows + added["rows"].reshape(-1, length, lm.config.d_model)[0]).to(x.dtype)


def token_contributions(
    lm: TransformerLM,
    token_ids: Sequence[int],
    edits: Sequence[Intervention],
    position: int,
    token_id: int,
    rival_id: int | None = None,
    steps: int = STEPS,
) -> Pieces:
    """Of every token up to a position, by three methods, to the logit f of a token after it or its lead over a rival.

    - gradient × input: Σ x ∂f/∂x over the numbers x of the token at `embed`.
    - integrated gradients (Sundararajan et al. 2017, arXiv:1703.01365): Σ (x − x′) mean ∂f/∂x along the straight path
      from the baseline x′, by the midpoints of `steps` equal steps.
    - knock-out: f − f without the edges from the token to all later ones, whose other weights make up for it, in all
      heads of all layers: a run a token. NaN of the last token, which none comes after.

    Gives how many of `units_of` are done, and returns arrays: `embed` x, `baseline` x′, `slope` ∂f/∂x at x and
    `mean_slope` along the path, each (T, D); `f` at x and `f_baseline`; `steps`; `without` (T,), f in the runs of the
    knock-out.
    """
    # A mean is over all of its tokens; else what comes later has no say.
    edits = [edit if edit.least_tokens else edit.of_prompt(token_ids) for edit in edits]
    length = max(position + 1, *(edit.least_tokens for edit in edits), 0)
    ids = list(token_ids[:length])
    asked = edits, position, token_id, rival_id
    go_on(tokens=length)
    x, f, slope = slopes(lm, ids, *asked)
    with torch.inference_mode():
        baseline = mean_embedding(lm, x, length)[None]
    baseline = baseline.clone()
    _x, f_baseline, _slope = slopes(lm, ids, *asked, embeddings=baseline)
    done, total = 1, torch.zeros_like(x)
    yield done
    shares = (torch.arange(steps, device=lm.device, dtype=x.dtype) + 0.5) / steps
    for part in shares.split(max(1, tokens_at_once(lm.config, TIMES) // length)):
        go_on(tokens=len(part) * length)
        path = baseline + part[:, None, None] * (x - baseline)
        total = total + slopes(lm, ids, *asked, embeddings=path)[2].sum(0)
        done += len(part)
        yield done
    without = np.full(position + 1, np.nan)
    for key in range(position):
        hidden = [
            Edit(f"blocks.{layer}.attn.pattern", "mask", key, positions=f"{key + 1}-")
            for layer in range(lm.config.num_layers)
        ]
        logits = logits_after(lm, ids, [*edits, *hidden], position)
        without[key] = logits[token_id] - (0 if rival_id is None else logits[rival_id])
        done += 1
        yield done
    rows = {"embed": x, "baseline": baseline, "slope": slope, "mean_slope": total / steps}
    arrays = {name: value[0, : position + 1].cpu().double().numpy() for name, value in rows.items()}
    ends = {name: value[0].cpu().double().numpy() for name, value in (("f", f), ("f_baseline", f_baseline))}
    return arrays | ends | {"without": without, "steps": np.array(steps)}


def units_of(position: int, steps: int = STEPS) -> int:
    return 1 + steps + position
