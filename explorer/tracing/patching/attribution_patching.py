"""Attribution patching: a gradient-based estimate of activation patching, two passes for all nodes."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np
import torch
from torch import Tensor

from explorer.tracing.hooks import forward_hooks
from explorer.tracing.patching.components import check_component, component_taps
from explorer.tracing.patching.patching_setup import METRICS, PatchingSetup
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
    """Return an estimate of the effects of `activation_patching`.

    The estimate is (source value − target value) · ∂metric / ∂value at the target's value (Nanda 2023). For queries
    and keys the softmax is recomputed with the source's, and only what follows the pattern is linearised, since
    saturated attention has vanishing gradients (AtP*, Kramár et al. 2024, arXiv:2403.00745, §3.1).

    Args, Returns and Raises: as `activation_patching`.
    """
    check_component(part)
    setup = PatchingSetup(lm, clean_ids, corrupted_ids, answer, wrong, direction, metric)
    effects = estimate_effects(setup, part)
    progress(1.0)
    return effects


def estimate_effects(setup: PatchingSetup, component: str) -> np.ndarray:
    """Return the estimated effects of a component's nodes, (L, P)."""
    changes = torch.stack([(step * slope).sum(-1) for step, slope in differences_and_gradients(setup, component)])
    return setup.normalise_changes(changes.cpu().double().numpy())


def differences_and_gradients(setup: PatchingSetup, component: str) -> list[tuple[Tensor, Tensor]]:
    """Return for each layer the difference of each node's numbers, (P, N), and the metric's gradient at them, (P, N).

    For queries and keys, the numbers are those of the patterns that follow from them.
    """
    if component in ("attn.q", "attn.k"):
        return _pattern_factors(setup, component)
    taps = component_taps(component, setup.lm.config.num_layers)
    source_values, (target_values, slopes) = setup.source_values(taps), _gradients(setup, taps)
    return [((source_values[tap] - target_values[tap])[0].flatten(1), slopes[tap][0].flatten(1)) for tap in taps]


def _pattern_factors(setup: PatchingSetup, component: str) -> list[tuple[Tensor, Tensor]]:
    lm, config = setup.lm, setup.lm.config
    suffixes = ["_rot" if config.has_rope(layer) else "" for layer in range(config.num_layers)]
    queries, keys = ([f"blocks.{i}.attn.{letter}{suffix}" for i, suffix in enumerate(suffixes)] for letter in "qk")
    patterns = component_taps("attn.pattern", config.num_layers)
    source_values = _rotate_source(setup, component, queries if component == "attn.q" else keys)
    target_values, slopes = _gradients(setup, [*queries, *keys, *patterns])
    mixed = target_values | source_values  # the donor's queries with the recipient's keys, or the other way round
    length, nodes = target_values[queries[0]].shape[-2], config.num_heads if component == "attn.q" else config.kv_heads
    factors = []
    for layer, (q, k, pattern) in enumerate(zip(queries, keys, patterns, strict=True)):
        mask = causal_mask(length, length, device=lm.device, window=config.window(layer))
        keys_of_all = repeat_heads(mixed[k], config.num_heads)
        scores = attention_scores(mixed[q], keys_of_all, config.score_divisor)  # (1, H, T, T)
        step = attention_pattern(softcap(scores, config.score_cap), mask) - target_values[pattern]
        factors.append((step.reshape(nodes, -1), slopes[pattern].reshape(nodes, -1)))
    return factors


def _rotate_source(setup: PatchingSetup, component: str, taps: Sequence[str]) -> dict[str, Tensor]:
    """Return the source's queries or keys after rotation to the target's positions, by tap."""
    lm = setup.lm
    with ExitStack() as stack:
        for name, value in setup.source_values(component_taps(component, lm.config.num_layers)).items():
            stack.enter_context(forward_hooks([lm.taps[name]], lambda module, inputs, output, value=value: value))
        return setup.record(setup.target_ids, taps)


def _gradients(setup: PatchingSetup, taps: Sequence[str]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the target run's values at taps, and the metric's gradients at them."""
    lm, values = setup.lm, {}
    names = {lm.taps[name]: name for name in taps}

    def enable_gradient(module, inputs, x: Tensor) -> Tensor:
        return x.detach().requires_grad_()  # whether or not the weights have gradients

    def store_value(module, inputs, output: Tensor):
        values[names[module]] = output

    gradient_modes = torch.inference_mode(False), torch.enable_grad()  # also if the caller has disabled gradients
    with (
        gradient_modes[0],
        gradient_modes[1],
        forward_hooks([lm.embed], enable_gradient),
        forward_hooks(names, store_value),
    ):
        logits = lm(setup.batch(setup.target_ids))
        metric = METRICS[setup.metric](logits[0, -1], setup.answer, setup.wrong)
        # what the last position does not read has no slope: late layers' values at earlier positions
        slopes = torch.autograd.grad(metric, [values[tap] for tap in taps], allow_unused=True, materialize_grads=True)
    return {tap: value.detach() for tap, value in values.items()}, dict(zip(taps, slopes, strict=True))
