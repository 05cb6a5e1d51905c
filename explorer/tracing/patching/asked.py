"""What the page asks of two runs: every metric of each patched one, in pieces."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from explorer.tracing.jobs import Pieces
from explorer.tracing.patching.activation_patching import patched
from explorer.tracing.patching.attribution_patching import attribution_patching
from explorer.tracing.patching.contrast import DIRECTIONS, Contrast
from explorer.tracing.patching.parts import PARTS, taps_of
from explorer.tracing.patching.path_patching import Receiver, sent_by
from model.transformer_lm import TransformerLM

Ids = Sequence[int]


def unpatched(lm: TransformerLM, clean: Ids, corrupted: Ids, answer: int, wrong: int) -> np.ndarray:
    """(2, M) every metric of the clean and of the corrupted run."""
    contrast = Contrast(lm, clean, corrupted, answer, wrong)
    with torch.inference_mode():
        found = [contrast.measure_all(lm(contrast.batch(ids)))[:, 0] for ids in (clean, corrupted)]
    return torch.stack(found).numpy()


def parts(lm: TransformerLM, clean: Ids, corrupted: Ids, answer: int, wrong: int) -> Pieces:
    """How many nodes are done; returns part -> (2, M, L, P), each node's metrics in both directions."""
    found: dict[str, list[np.ndarray]] = {part: [] for part in PARTS}
    done = 0
    for direction in DIRECTIONS:
        contrast = Contrast(lm, clean, corrupted, answer, wrong, direction)
        layers = lm.config.num_layers
        donated = contrast.recorded(contrast.donor_ids, [tap for part in PARTS for tap in taps_of(part, layers)])
        for part in PARTS:
            measured = []
            for layer, tap in enumerate(taps_of(part, layers)):
                measured.append((yield from patched(contrast, layer, tap, donated[tap], done)))
                done += donated[tap].shape[1]
            found[part].append(np.stack(measured, axis=1))
    return {part: np.stack(both) for part, both in found.items()}


def neurons(lm: TransformerLM, clean: Ids, corrupted: Ids, answer: int, wrong: int, layer: int) -> Pieces:
    """How many neurons are done; returns (2, M, F), of each neuron of a layer the metrics in both directions."""
    found, done, tap = [], 0, f"blocks.{layer}.ffn.hidden"
    for direction in DIRECTIONS:
        contrast = Contrast(lm, clean, corrupted, answer, wrong, direction)
        donated = contrast.recorded(contrast.donor_ids, [tap])[tap]
        found.append((yield from patched(contrast, layer, tap, donated, done)))
        done += donated.shape[-1]
    return np.stack(found)


def paths(
    lm: TransformerLM, clean: Ids, corrupted: Ids, answer: int, wrong: int, direction: str, receiver: Receiver
) -> Pieces:
    """How many layers are done; returns (M, L, H), of each sending head the metrics once the receiver has read it; NaN
    where it comes after the receiver."""
    contrast = Contrast(lm, clean, corrupted, answer, wrong, direction)
    before = lm.config.num_layers if receiver == "logits" else receiver[0]
    return (yield from sent_by(contrast, receiver, range(before), torch.arange(lm.config.num_heads)))


def estimate(
    lm: TransformerLM, clean: Ids, corrupted: Ids, answer: int, wrong: int, direction: str, part: str, metric: str
) -> np.ndarray:
    """(L, P) effects by gradients."""
    how = {"part": part, "direction": direction, "metric": metric}
    return attribution_patching(lm, clean, corrupted, answer, wrong, **how)


ASKED: Mapping[str, Callable[..., Any]] = {
    "unpatched": unpatched,
    "parts": parts,
    "neurons": neurons,
    "paths": paths,
    "estimate": estimate,
}
