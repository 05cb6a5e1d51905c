"""Activation patching: a prediction after one value is replaced by that of another run."""

from collections.abc import Callable, Generator, Sequence

import numpy as np
import torch
from torch import Tensor

from explorer.tracing.hooks import forward_hooks
from explorer.tracing.jobs import run_to_completion
from explorer.tracing.patching.components import check_component, component_taps
from explorer.tracing.patching.patching_setup import METRICS, PatchingSetup
from explorer.tracing.request_budget import check_budget, chunk_tokens
from model.transformer_lm import TransformerLM


def activation_patching(
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
    """Return the effect of patching each node of a component alone from one run into the other.

    Meng et al. 2022, arXiv:2202.05262, appendix B; Zhang & Nanda 2023, arXiv:2309.16042. Exact: every effect is a
    run of its own, batched from its layer on. See `PatchingSetup.normalised_effects` for the scale.

    Args:
        answer, wrong: ids of the right and the wrong next token; "log_probability" and "probability" are the
            answer's.
        part: "resid_pre", "attn.out" or "ffn.out" of a layer and a position; "attn.z", "attn.q", "attn.k", "attn.v"
            or "attn.pattern" of a layer and a head, at all positions at once.
        direction: "denoise" patches clean values into the corrupted run, "noise" the other way round.
        metric: at the last position: "logit_difference", "log_probability" or "probability", which hides negative
            effects.
        progress: called with the share that is done; an exception that it raises ends the work.

    Returns:
        (L, T) float64 for positions, (L, H) for heads, (L, G) for keys and values that G heads share; NaN if the
        clean and corrupted metrics differ by less than 1e-6.

    Raises:
        UserError: the prompts differ in length, or a name or id is unknown.
    """
    check_component(part)
    setup = PatchingSetup(lm, clean_ids, corrupted_ids, answer, wrong, direction, metric)
    taps = component_taps(part, lm.config.num_layers)
    source_values, metrics = setup.source_values(taps), []
    row = list(METRICS).index(metric)
    for layer, tap in enumerate(taps):
        metrics.append(run_to_completion(patch_each_node(setup, layer, tap, source_values[tap]))[row])
        progress((layer + 1) / len(taps))
    return setup.normalised_effects(np.stack(metrics))


def patch_each_node(
    setup: PatchingSetup, layer: int, tap: str, source_value: Tensor, done: int = 0
) -> Generator[int, None, np.ndarray]:
    """Compute every metric of the target run with each node of a tap patched alone, in batches.

    Yields how many are done, including `done` earlier ones; returns (M, P).

    Args:
        source_value: (1, P, …), the source run's value; for neurons (1, T, P).
    """
    lm, ids = setup.lm, setup.batch(setup.target_ids)
    is_neurons, metrics = tap.endswith("ffn.hidden"), []
    count = source_value.shape[-1 if is_neurons else 1]
    for indices in torch.arange(count).split(max(1, chunk_tokens(lm.config) // ids.shape[1])):
        check_budget(tokens=len(indices) * ids.shape[1])
        rows = torch.arange(len(indices))

        def expand(module, inputs, x: Tensor, runs: int = len(indices)) -> Tensor:
            return x.expand(runs, -1, -1)  # (1, T, D) -> (N, T, D)

        def patch(module, inputs, value: Tensor, rows: Tensor = rows, indices: Tensor = indices) -> Tensor:
            value = value.clone()
            if is_neurons:
                value[rows, :, indices] = source_value[0, :, indices].T
            else:
                value[rows, indices] = source_value[0, indices]
            return value

        hooks = forward_hooks([lm.blocks[layer].resid_pre], expand), forward_hooks([lm.taps[tap]], patch)
        with hooks[0], hooks[1], torch.inference_mode():
            metrics.append(setup.measure_all(lm(ids, last_only=True)))
        done += len(indices)
        yield done
    return torch.cat(metrics, dim=1).numpy()
