"""What the page asks of two runs: every metric of each patched one, in pieces."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from explorer.tracing.jobs import Pieces, finished
from explorer.tracing.patching.activation_patching import patched
from explorer.tracing.patching.attribution_patching import estimated, factors
from explorer.tracing.patching.contrast import DIRECTIONS, METRICS, Contrast
from explorer.tracing.patching.parts import PARTS, taps_of
from explorer.tracing.patching.path_patching import sent_by
from explorer.tracing.patching_question import BY_POSITION, PatchingQuestion, Receiver
from model.transformer_lm import TransformerLM


def contrast_of(
    lm: TransformerLM, question: PatchingQuestion, direction: str = "denoise", metric: str = "logit_difference"
) -> Contrast:
    """The question's prompts, values put from one into the other one way."""
    partners = question.partners[DIRECTIONS.index(direction)]
    asked = question.clean, question.corrupted, question.answer, question.wrong
    return Contrast(lm, *asked, direction, metric, partners)


def unpatched(lm: TransformerLM, question: PatchingQuestion) -> np.ndarray:
    """(2, M) every metric of the clean and of the corrupted run."""
    contrast = contrast_of(lm, question)
    with torch.inference_mode():
        both = (question.clean, question.corrupted)
        found = [contrast.measure_all(lm(contrast.batch(ids)))[:, 0] for ids in both]
    return torch.stack(found).numpy()


def parts(lm: TransformerLM, question: PatchingQuestion) -> Pieces:
    """How many nodes are done; returns part -> (2, M, L, P), each node's metrics in both directions; NaN at positions
    where nothing goes over, and of patterns where the prompts do not stand position by position."""
    found: dict[str, list[np.ndarray]] = {part: [] for part in PARTS}
    done, layers = 0, lm.config.num_layers
    for direction in DIRECTIONS:
        contrast = contrast_of(lm, question, direction)
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


def neurons(lm: TransformerLM, question: PatchingQuestion, layer: int) -> Pieces:
    """How many neurons are done; returns (2, M, F), of each neuron of a layer the metrics in both directions."""
    found, done, tap = [], 0, f"blocks.{layer}.ffn.hidden"
    for direction in DIRECTIONS:
        contrast = contrast_of(lm, question, direction)
        donated = contrast.donated([tap])[tap]
        found.append((yield from patched(contrast, layer, tap, donated, done)))
        done += donated.shape[-1]
    return np.stack(found)


def paths(lm: TransformerLM, question: PatchingQuestion, direction: str, receiver: Receiver) -> Pieces:
    """How many layers are done; returns (M, L, H), of each sending head the metrics once the receiver has read it; NaN
    where it comes after the receiver."""
    before = lm.config.num_layers if receiver == "logits" else receiver[0]
    heads = torch.arange(lm.config.num_heads)
    return (yield from sent_by(contrast_of(lm, question, direction), receiver, range(before), heads))


def path(
    lm: TransformerLM, question: PatchingQuestion, direction: str, receiver: Receiver, layer: int, head: int
) -> np.ndarray:
    """(M,) every metric once the receiver has read what one head sends, run by itself."""
    pieces = sent_by(contrast_of(lm, question, direction), receiver, [layer], torch.tensor([head]))
    return finished(pieces)[:, layer, 0]


def estimate(lm: TransformerLM, question: PatchingQuestion, direction: str, part: str, metric: str) -> np.ndarray:
    """(L, P) effects by gradients; NaN at positions where nothing goes over."""
    contrast = contrast_of(lm, question, direction, metric)
    found = estimated(contrast, part)
    return contrast.by_clean(found) if part in BY_POSITION else found


def summed(
    lm: TransformerLM, question: PatchingQuestion, direction: str, part: str, metric: str, layer: int, place: int
) -> np.ndarray:
    """(2, N) steps, and slopes of the metric, whose products one node's estimate is the sum of; `place` counts the
    recipient's positions."""
    step, slope = factors(contrast_of(lm, question, direction, metric), part)[layer]
    return torch.stack((step[place], slope[place])).cpu().double().numpy()


ASKED: Mapping[str, Callable[..., Any]] = {
    "unpatched": unpatched,
    "parts": parts,
    "neurons": neurons,
    "paths": paths,
    "path": path,
    "estimate": estimate,
    "summed": summed,
}
