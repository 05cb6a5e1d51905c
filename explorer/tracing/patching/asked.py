"""What the page asks of two runs: every metric of each patched one, in pieces."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from explorer.state.alignment import Partners
from explorer.tracing.jobs import Pieces, finished
from explorer.tracing.patching.activation_patching import patched
from explorer.tracing.patching.attribution_patching import estimated, factors
from explorer.tracing.patching.contrast import DIRECTIONS, METRICS, Contrast
from explorer.tracing.patching.parts import PARTS, taps_of
from explorer.tracing.patching.path_patching import Receiver, sent_by
from explorer.tracing.patching_question import BY_POSITION
from model.transformer_lm import TransformerLM

Ids = Sequence[int]
BothWays = tuple[Partners | None, Partners | None]  # of each direction a `Contrast`'s


def unpatched(lm: TransformerLM, clean: Ids, corrupted: Ids, answer: int, wrong: int, partners: BothWays) -> np.ndarray:
    """(2, M) every metric of the clean and of the corrupted run."""
    contrast = Contrast(lm, clean, corrupted, answer, wrong, partners=partners[0])
    with torch.inference_mode():
        found = [contrast.measure_all(lm(contrast.batch(ids)))[:, 0] for ids in (clean, corrupted)]
    return torch.stack(found).numpy()


def parts(lm: TransformerLM, clean: Ids, corrupted: Ids, answer: int, wrong: int, partners: BothWays) -> Pieces:
    """How many nodes are done; returns part -> (2, M, L, P), each node's metrics in both directions; NaN at positions
    where nothing goes over, and of patterns where the prompts do not stand position by position."""
    found: dict[str, list[np.ndarray]] = {part: [] for part in PARTS}
    done = 0
    for place, direction in enumerate(DIRECTIONS):
        contrast = Contrast(lm, clean, corrupted, answer, wrong, direction, partners=partners[place])
        layers = lm.config.num_layers
        whole = [part for part in PARTS if part != "attn.pattern" or contrast.partners is None]
        donated = contrast.donated([tap for part in whole for tap in taps_of(part, layers)])
        for part in PARTS:
            if part not in whole:
                found[part].append(np.full((len(METRICS), layers, lm.config.num_heads), np.nan))
                continue
            measured = []
            for layer, tap in enumerate(taps_of(part, layers)):
                measured.append((yield from patched(contrast, layer, tap, donated[tap], done)))
                done += donated[tap].shape[1]
            both = np.stack(measured, axis=1)  # (M, L, P)
            found[part].append(contrast.by_clean(both) if part in BY_POSITION else both)
    return {part: np.stack(both) for part, both in found.items()}


def neurons(
    lm: TransformerLM, clean: Ids, corrupted: Ids, answer: int, wrong: int, partners: BothWays, layer: int
) -> Pieces:
    """How many neurons are done; returns (2, M, F), of each neuron of a layer the metrics in both directions."""
    found, done, tap = [], 0, f"blocks.{layer}.ffn.hidden"
    for place, direction in enumerate(DIRECTIONS):
        contrast = Contrast(lm, clean, corrupted, answer, wrong, direction, partners=partners[place])
        donated = contrast.donated([tap])[tap]
        found.append((yield from patched(contrast, layer, tap, donated, done)))
        done += donated.shape[-1]
    return np.stack(found)


def paths(
    lm: TransformerLM,
    clean: Ids,
    corrupted: Ids,
    answer: int,
    wrong: int,
    partners: BothWays,
    direction: str,
    receiver: Receiver,
) -> Pieces:
    """How many layers are done; returns (M, L, H), of each sending head the metrics once the receiver has read it; NaN
    where it comes after the receiver."""
    contrast = Contrast(lm, clean, corrupted, answer, wrong, direction, partners=partners[DIRECTIONS.index(direction)])
    before = lm.config.num_layers if receiver == "logits" else receiver[0]
    return (yield from sent_by(contrast, receiver, range(before), torch.arange(lm.config.num_heads)))


def estimate(
    lm: TransformerLM,
    clean: Ids,
    corrupted: Ids,
    answer: int,
    wrong: int,
    partners: BothWays,
    direction: str,
    part: str,
    metric: str,
) -> np.ndarray:
    """(L, P) effects by gradients; NaN at positions where nothing goes over."""
    contrast = Contrast(lm, clean, corrupted, answer, wrong, direction, metric, partners[DIRECTIONS.index(direction)])
    found = estimated(contrast, part)
    return contrast.by_clean(found) if part in BY_POSITION else found


def summed(
    lm: TransformerLM,
    clean: Ids,
    corrupted: Ids,
    answer: int,
    wrong: int,
    partners: BothWays,
    direction: str,
    part: str,
    metric: str,
    layer: int,
    place: int,
) -> np.ndarray:
    """(2, N) steps, and slopes of the metric, whose products one node's estimate is the sum of; `place` counts the
    recipient's positions."""
    contrast = Contrast(lm, clean, corrupted, answer, wrong, direction, metric, partners[DIRECTIONS.index(direction)])
    step, slope = factors(contrast, part)[layer]
    return torch.stack((step[place], slope[place])).cpu().double().numpy()


def path(
    lm: TransformerLM,
    clean: Ids,
    corrupted: Ids,
    answer: int,
    wrong: int,
    partners: BothWays,
    direction: str,
    receiver: Receiver,
    layer: int,
    head: int,
) -> np.ndarray:
    """(M,) every metric once the receiver has read what one head sends, run by itself."""
    contrast = Contrast(lm, clean, corrupted, answer, wrong, direction, partners=partners[DIRECTIONS.index(direction)])
    return finished(sent_by(contrast, receiver, [layer], torch.tensor([head])))[:, layer, 0]


ASKED: Mapping[str, Callable[..., Any]] = {
    "unpatched": unpatched,
    "parts": parts,
    "neurons": neurons,
    "paths": paths,
    "estimate": estimate,
    "summed": summed,
    "path": path,
}
