"""Activation patching: what becomes of a prediction when one value of another run is put in the place of its own."""

from collections.abc import Callable, Generator, Sequence

import numpy as np
import torch
from torch import Tensor

from explorer.tracing.hooks import hooked
from explorer.tracing.jobs import finished
from explorer.tracing.patching.contrast import METRICS, Contrast
from explorer.tracing.patching.parts import check_part, taps_of
from explorer.tracing.work import go_on, tokens_at_once
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
    """The effect of every node of a part, each put alone from one run into the other (Meng et al. 2022,
    arXiv:2202.05262, appendix B; Zhang & Nanda 2023, arXiv:2309.16042).

    Exact: every effect is a run of its own, batched from its layer on. See `Contrast.effects` for the scale.

    Args:
        answer, wrong: ids of the right and the wrong next token; "log_probability" and "probability" are the answer's.
        part: "resid_pre", "attn.out" or "ffn.out" of a layer and a position; "attn.z", "attn.q", "attn.k", "attn.v" or
            "attn.pattern" of a layer and a head, at all positions at once.
        direction: "denoise" puts clean values into the corrupted run, "noise" the other way round.
        metric: at the last position: "logit_difference", "log_probability" or "probability", which hides negative
            effects.
        progress: is told the share that is done; what it raises ends the work.

    Returns:
        (L, T) float64 for positions, (L, H) for heads, (L, G) for keys and values that G heads share; NaN where clean
        and corrupted differ by less than 1e-6.

    Raises:
        UserError: the prompts are not equally long, or anything named is not there.
    """
    check_part(part)
    contrast = Contrast(lm, clean_ids, corrupted_ids, answer, wrong, direction, metric)
    taps = taps_of(part, lm.config.num_layers)
    donated, measured = contrast.donated(taps), []
    row = list(METRICS).index(metric)
    for layer, tap in enumerate(taps):
        measured.append(finished(patched(contrast, layer, tap, donated[tap]))[row])
        progress((layer + 1) / len(taps))
    return contrast.effects(np.stack(measured))


def patched(
    contrast: Contrast, layer: int, tap: str, donated: Tensor, done: int = 0
) -> Generator[int, None, np.ndarray]:
    """Every metric of the recipient with each place along an axis of a tap's value put from the donor, in batches: how
    many are done, with those before; returns (M, P).

    Args:
        donated: (1, P, …), the donor's value; of neurons (1, T, P).
    """
    lm, ids = contrast.lm, contrast.batch(contrast.recipient_ids)
    of_neurons, found = tap.endswith("ffn.hidden"), []
    count = donated.shape[-1 if of_neurons else 1]
    for places in torch.arange(count).split(max(1, tokens_at_once(lm.config) // ids.shape[1])):
        go_on(tokens=len(places) * ids.shape[1])
        rows = torch.arange(len(places))

        def spread(module, inputs, x: Tensor, runs: int = len(places)) -> Tensor:
            return x.expand(runs, -1, -1)  # (1, T, D) -> (N, T, D)

        def put(module, inputs, value: Tensor, rows: Tensor = rows, places: Tensor = places) -> Tensor:
            value = value.clone()
            if of_neurons:
                value[rows, :, places] = donated[0, :, places].T
            else:
                value[rows, places] = donated[0, places]
            return value

        hooks = hooked([lm.blocks[layer].resid_pre], spread), hooked([lm.taps[tap]], put)
        with hooks[0], hooks[1], torch.inference_mode():
            found.append(contrast.measure_all(lm(ids, last_only=True)))
        done += len(places)
        yield done
    return torch.cat(found, dim=1).numpy()
