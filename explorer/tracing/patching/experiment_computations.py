"""Computations of patching experiments: every metric of each patched run, as job steps."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from explorer.tracing.jobs import JobSteps, run_to_completion
from explorer.tracing.patching.experiment import BY_POSITION, COMPONENTS, PatchingExperiment, Receiver, component_taps
from explorer.tracing.patching.methods import (
    differences_and_gradients,
    estimate_effects,
    patch_direct_paths,
    patch_each_node,
)
from explorer.tracing.patching.patching_setup import DIRECTIONS, METRICS, PatchingSetup
from model.transformer_lm import TransformerLM


def make_setup(
    lm: TransformerLM, experiment: PatchingExperiment, direction: str = "denoise", metric: str = "logit_difference"
) -> PatchingSetup:
    """Return the setup that patches the experiment's prompts in one direction."""
    partners = experiment.partners[DIRECTIONS.index(direction)]
    args = experiment.clean, experiment.corrupted, experiment.answer, experiment.wrong
    return PatchingSetup(lm, *args, direction, metric, partners)


def unpatched_metrics(lm: TransformerLM, experiment: PatchingExperiment) -> np.ndarray:
    """Return every metric of the clean and the corrupted run, (2, M)."""
    setup = make_setup(lm, experiment)
    with torch.inference_mode():
        both = (experiment.clean, experiment.corrupted)
        metrics = [setup.measure_all(lm(setup.batch(ids)))[:, 0] for ids in both]
    return torch.stack(metrics).numpy()


def patch_components(lm: TransformerLM, experiment: PatchingExperiment) -> JobSteps:
    """Compute every metric after patching each node of every component, in both directions.

    Yields how many nodes are done; returns component -> (2, M, L, P); NaN at positions where nothing is patched,
    and for patterns unless the prompts are aligned position by position.
    """
    metrics: dict[str, list[np.ndarray]] = {component: [] for component in COMPONENTS}
    done, layers = 0, lm.config.num_layers
    for direction in DIRECTIONS:
        setup = make_setup(lm, experiment, direction)
        included = [component for component in COMPONENTS if component != "attn.pattern" or setup.partners is None]
        source_values = setup.source_values(
            [tap for component in included for tap in component_taps(component, layers)]
        )
        for component in COMPONENTS:
            if component not in included:
                metrics[component].append(np.full((len(METRICS), layers, lm.config.num_heads), np.nan))
                continue
            measured = []
            for layer, tap in enumerate(component_taps(component, layers)):
                measured.append((yield from patch_each_node(setup, layer, tap, source_values[tap], done)))
                done += source_values[tap].shape[1]
            both = np.stack(measured, axis=1)  # (M, L, P)
            metrics[component].append(setup.to_clean_positions(both) if component in BY_POSITION else both)
    return {component: np.stack(both) for component, both in metrics.items()}


def patch_neurons(lm: TransformerLM, experiment: PatchingExperiment, layer: int) -> JobSteps:
    """Compute every metric after patching each neuron of a layer, in both directions.

    Yields how many neurons are done; returns (2, M, F).
    """
    metrics, done, tap = [], 0, f"blocks.{layer}.ffn.hidden"
    for direction in DIRECTIONS:
        setup = make_setup(lm, experiment, direction)
        source_value = setup.source_values([tap])[tap]
        metrics.append((yield from patch_each_node(setup, layer, tap, source_value, done)))
        done += source_value.shape[-1]
    return np.stack(metrics)


def patch_paths(lm: TransformerLM, experiment: PatchingExperiment, direction: str, receiver: Receiver) -> JobSteps:
    """Compute every metric after patching the direct path from each head to the receiver.

    Yields how many layers are done; returns (M, L, H); NaN for heads after the receiver.
    """
    num_layers = lm.config.num_layers if receiver == "logits" else receiver[0]
    heads = torch.arange(lm.config.num_heads)
    return (yield from patch_direct_paths(make_setup(lm, experiment, direction), receiver, range(num_layers), heads))


def patch_path(
    lm: TransformerLM, experiment: PatchingExperiment, direction: str, receiver: Receiver, layer: int, head: int
) -> np.ndarray:
    """Return every metric after patching the direct path from one head to the receiver, (M,), in a run of its own."""
    steps = patch_direct_paths(make_setup(lm, experiment, direction), receiver, [layer], torch.tensor([head]))
    return run_to_completion(steps)[:, layer, 0]


def estimate_component_effects(
    lm: TransformerLM, experiment: PatchingExperiment, direction: str, component: str, metric: str
) -> np.ndarray:
    """Return the effects of a component's nodes estimated by gradients, (L, P).

    NaN at positions where nothing is patched.
    """
    setup = make_setup(lm, experiment, direction, metric)
    effects = estimate_effects(setup, component)
    return setup.to_clean_positions(effects) if component in BY_POSITION else effects


def node_difference_and_gradient(
    lm: TransformerLM,
    experiment: PatchingExperiment,
    direction: str,
    component: str,
    metric: str,
    layer: int,
    index: int,
) -> np.ndarray:
    """Return the differences and the metric's gradients of one node, (2, N); its estimate is the sum of their products.

    Args:
        index: of the node; for positions, in the target run.
    """
    step, slope = differences_and_gradients(make_setup(lm, experiment, direction, metric), component)[layer]
    return torch.stack((step[index], slope[index])).cpu().double().numpy()


PATCHING_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "unpatched": unpatched_metrics,
    "parts": patch_components,
    "neurons": patch_neurons,
    "paths": patch_paths,
    "path": patch_path,
    "estimate": estimate_component_effects,
    "summed": node_difference_and_gradient,
}
