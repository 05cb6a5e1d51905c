"""Attribution patching: activation patching estimated by gradients, two passes for all nodes."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from explorer.tracing.hooks import hooked
from explorer.tracing.patching.contrast import METRICS, Contrast
from explorer.tracing.patching.parts import check_part, taps_of
from model.layers.attention import attention_pattern, attention_scores, causal_mask
from model.layers.multihead_attention import repeat_heads
from model.transformer_lm import TransformerLM


def attribution_patching(
    lm: TransformerLM,
    clean_ids: Sequence[int],
    corrupted_ids: Sequence[int],
    answer: int,
    wrong: int,
    *,
    part: str,
    direction: str = "denoise",
    metric: str = "logit_difference",
    progress: Callable[[float], None] = lambda share: None,
) -> np.ndarray:
    """The effects of `activation_patching`, estimated: (donor's value − recipient's) · ∂metric / ∂value at the
    recipient's (Nanda 2023).

    Of queries and keys the softmax is computed again with the donor's, and only what follows the pattern is taken as
    linear, since saturated attention has no gradient to speak of (AtP*, Kramár et al. 2024, arXiv:2403.00745, §3.1).

    Args, Returns and Raises: as `activation_patching`.
    """
    check_part(part)
    contrast = Contrast(lm, clean_ids, corrupted_ids, answer, wrong, direction, metric)
    estimate = _of_pattern if part in ("attn.q", "attn.k") else _of_value
    changes = estimate(contrast, part)
    progress(1.0)
    return contrast.shares(changes.cpu().double().numpy())


def _of_value(contrast: Contrast, part: str) -> Tensor:
    """(L, P) changes of the metric, with all that follows a value taken as linear."""
    taps = taps_of(part, contrast.lm.config.num_layers)
    donated, (own, slopes) = contrast.recorded(contrast.donor_ids, taps), _slopes(contrast, taps)
    return torch.stack([((donated[tap] - own[tap]) * slopes[tap])[0].flatten(1).sum(-1) for tap in taps])


def _of_pattern(contrast: Contrast, part: str) -> Tensor:
    """(L, H or G) changes of the metric, with all that follows the pattern taken as linear."""
    lm, config = contrast.lm, contrast.lm.config
    turned = "_rot" if config.position == "rope" else ""
    queries, keys, patterns = (
        taps_of(name, config.num_layers) for name in (f"attn.q{turned}", f"attn.k{turned}", "attn.pattern")
    )
    donated = contrast.recorded(contrast.donor_ids, queries if part == "attn.q" else keys)
    own, slopes = _slopes(contrast, [*queries, *keys, *patterns])
    mixed = own | donated  # the donor's queries with the recipient's keys, or the other way round
    mask, found = causal_mask(len(contrast.clean_ids), len(contrast.clean_ids), device=lm.device), []
    for q, k, pattern in zip(queries, keys, patterns, strict=True):
        scores = attention_scores(mixed[q], repeat_heads(mixed[k], config.num_heads))  # (1, H, T, T)
        change = ((attention_pattern(scores, mask) - own[pattern]) * slopes[pattern])[0].flatten(1).sum(-1)  # (H,)
        found.append(change if part == "attn.q" else change.unflatten(0, (config.kv_heads, -1)).sum(-1))
    return torch.stack(found)


def _slopes(contrast: Contrast, taps: Sequence[str]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The recipient's values at taps, and how fast the metric grows with each of their numbers."""
    lm, found = contrast.lm, {}
    names = {lm.taps[name]: name for name in taps}

    def begin(module, inputs, x: Tensor) -> Tensor:
        return x.detach().requires_grad_()  # whether or not the weights have gradients

    def keep(module, inputs, output: Tensor):
        found[names[module]] = output

    gradients = torch.inference_mode(False), torch.enable_grad()  # also where a caller has switched them off
    with gradients[0], gradients[1], hooked([lm.embed], begin), hooked(names, keep):
        logits = lm(contrast.batch(contrast.recipient_ids))
        measured = METRICS[contrast.metric](logits[0, -1], contrast.answer, contrast.wrong)
        # what the last position does not read has no slope: late layers' values at earlier positions
        slopes = torch.autograd.grad(measured, [found[tap] for tap in taps], allow_unused=True, materialize_grads=True)
    return {tap: value.detach() for tap, value in found.items()}, dict(zip(taps, slopes, strict=True))
