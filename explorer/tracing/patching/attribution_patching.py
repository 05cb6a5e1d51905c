"""Attribution patching: activation patching estimated by gradients, two passes for all nodes."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np
import torch
from torch import Tensor

from explorer.tracing.hooks import hooked
from explorer.tracing.patching.contrast import METRICS, Contrast
from explorer.tracing.patching.parts import check_part, taps_of
from model.layers.attention import attention_pattern, attention_scores, causal_mask
from model.layers.multihead_attention import repeat_heads
from model.layers.softcap import softcap
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
    found = estimated(contrast, part)
    progress(1.0)
    return found


def estimated(contrast: Contrast, part: str) -> np.ndarray:
    """(L, P) effects of a part's nodes."""
    changes = torch.stack([(step * slope).sum(-1) for step, slope in factors(contrast, part)])
    return contrast.shares(changes.cpu().double().numpy())


def factors(contrast: Contrast, part: str) -> list[tuple[Tensor, Tensor]]:
    """Layer by layer by how much a node's numbers differ, (P, N), and how fast the metric grows with each, (P, N): of
    queries and keys those of the patterns that follow from them."""
    if part in ("attn.q", "attn.k"):
        return _of_pattern(contrast, part)
    taps = taps_of(part, contrast.lm.config.num_layers)
    donated, (own, slopes) = contrast.donated(taps), _slopes(contrast, taps)
    return [((donated[tap] - own[tap])[0].flatten(1), slopes[tap][0].flatten(1)) for tap in taps]


def _of_pattern(contrast: Contrast, part: str) -> list[tuple[Tensor, Tensor]]:
    lm, config = contrast.lm, contrast.lm.config
    turned = ["_rot" if config.rotates(layer) else "" for layer in range(config.num_layers)]
    queries, keys = ([f"blocks.{i}.attn.{of}{end}" for i, end in enumerate(turned)] for of in "qk")
    patterns = taps_of("attn.pattern", config.num_layers)
    donated = _turned(contrast, part, queries if part == "attn.q" else keys)
    own, slopes = _slopes(contrast, [*queries, *keys, *patterns])
    mixed = own | donated  # the donor's queries with the recipient's keys, or the other way round
    length, nodes = own[queries[0]].shape[-2], config.num_heads if part == "attn.q" else config.kv_heads
    found = []
    for layer, (q, k, pattern) in enumerate(zip(queries, keys, patterns, strict=True)):
        mask = causal_mask(length, length, device=lm.device, window=config.window(layer))
        keys_of_all = repeat_heads(mixed[k], config.num_heads)
        scores = attention_scores(mixed[q], keys_of_all, config.score_divisor)  # (1, H, T, T)
        step = attention_pattern(softcap(scores, config.score_cap), mask) - own[pattern]
        found.append((step.reshape(nodes, -1), slopes[pattern].reshape(nodes, -1)))
    return found


def _turned(contrast: Contrast, part: str, taps: Sequence[str]) -> dict[str, Tensor]:
    """The donor's queries or keys as they are at taps once they stand at the recipient's positions."""
    lm = contrast.lm
    with ExitStack() as stack:
        for name, value in contrast.donated(taps_of(part, lm.config.num_layers)).items():
            stack.enter_context(hooked([lm.taps[name]], lambda module, inputs, output, value=value: value))
        return contrast.recorded(contrast.recipient_ids, taps)


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
