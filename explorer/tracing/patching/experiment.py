"""A patching experiment on two prompts with different answers."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from explorer.interventions import Intervention
from explorer.state.token_alignment import Partners
from explorer.tracing.jobs import RESULTS, Job, JobSteps, get_or_run, run_to_completion
from explorer.tracing.model_registry import ModelWeights, get_model
from explorer.tracing.patching.patching_methods import (
    differences_and_gradients,
    estimate_effects,
    patch_component,
    patch_direct_paths,
    patch_neurons,
    rerun_with_patch,
)
from explorer.tracing.patching.patching_setup import (
    BY_POSITION,
    DIRECTIONS,
    PatchingSetup,
    Receiver,
    num_layers_before,
)


@dataclass(frozen=True)
class PatchingExperiment:
    """A search for the nodes of a model that carry the answer.

    The model is given by its identity, and must be kept alive by the caller. Methods raise as
    `explorer.activation_patching` does; the long ones raise ResultNotReadyError in a page request.

    Attributes:
        clean, corrupted: ids of two prompts.
        answer, wrong: ids of the right and the wrong token after the clean prompt.
        partners: for each of DIRECTIONS, the source position whose value each target position takes; None: the same
            position.
    """

    model: Hashable
    clean: tuple[int, ...]
    corrupted: tuple[int, ...]
    answer: int
    wrong: int
    partners: tuple[Partners | None, Partners | None] = (None, None)

    @property
    def is_by_position(self) -> bool:
        """True if values are patched at the same position of both prompts."""
        return self.partners == (None, None)

    def target_positions(self, direction: str) -> Partners:
        """Return for each position of the clean prompt the target run's position; None if nothing is patched there."""
        partners = self.partners[DIRECTIONS.index(direction)]
        if partners is None:
            return tuple(range(len(self.clean)))
        if direction == "noise":
            return tuple(None if partner is None else position for position, partner in enumerate(partners))
        return tuple(partners.index(position) if position in partners else None for position in range(len(self.clean)))

    def _setup(self, direction: str = "denoise", metric: str = "logit_difference") -> PatchingSetup:
        """Return the setup that patches the prompts in one direction."""
        lm, partners = get_model(self.model)[0], self.partners[DIRECTIONS.index(direction)]
        return PatchingSetup(lm, self.clean, self.corrupted, self.answer, self.wrong, direction, metric, partners)

    def _both_setups(self) -> list[PatchingSetup]:
        return [self._setup(direction) for direction in DIRECTIONS]

    def _run(self, key: tuple, steps: Callable[[], JobSteps], num_nodes: int, num_passes: float) -> np.ndarray:
        """Run a job over `num_nodes` nodes that costs as much as `num_passes` passes over the prompt."""
        weights = sum(math.prod(weight.shape) for weight in ModelWeights(self.model).values())
        macs = num_passes * weights * max(len(self.clean), len(self.corrupted))
        return get_or_run(Job(key, steps, num_nodes, macs))

    @cached_property
    def unpatched_metrics(self) -> np.ndarray:
        """Every metric of the clean and the corrupted run, (2, M)."""
        return RESULTS.get(("unpatched", self), lambda: self._setup().all_unpatched_metrics)

    def component_metrics(self, component: str) -> np.ndarray:
        """Return every metric after patching each node of a component alone, in both DIRECTIONS, (2, M, L, P)."""
        config = get_model(self.model)[0].config
        nodes_per_layer = 2 * (config.kv_heads if component in ("attn.k", "attn.v") else config.num_heads)
        if component in BY_POSITION:
            nodes_per_layer = len(self.clean) + len(self.corrupted)
        num_nodes, key = config.num_layers * nodes_per_layer, ("component", self, component)
        return self._run(key, lambda: patch_component(self._both_setups(), component), num_nodes, num_nodes * 0.6)

    def neuron_metrics(self, layer: int) -> np.ndarray:
        """Return every metric after patching each neuron of a layer alone, (2, M, F), in both DIRECTIONS."""
        config = get_model(self.model)[0].config
        num_nodes, share = 2 * config.d_ff, 1 - layer / config.num_layers
        key = "neurons", self, layer
        return self._run(key, lambda: patch_neurons(self._both_setups(), layer), num_nodes, num_nodes * share)

    def path_metrics(self, direction: str, receiver: Receiver) -> np.ndarray:
        """Return every metric after patching the direct path from each head to the receiver, (M, L, H).

        NaN for heads after the receiver.
        """
        config = get_model(self.model)[0].config
        layers, heads = range(num_layers_before(config, receiver)), range(config.num_heads)
        return self._run(
            ("paths", self, direction, receiver),
            lambda: patch_direct_paths(self._setup(direction), receiver, layers, heads),
            len(layers),
            2 * len(heads) * len(layers),
        )

    def estimate(self, direction: str, component: str, metric: str) -> np.ndarray:
        """Return the effects of a component's nodes estimated by gradients, (L, P).

        NaN at positions where nothing is patched.
        """

        def estimate() -> np.ndarray:
            setup = self._setup(direction, metric)
            effects = estimate_effects(setup, component)
            return setup.to_clean_positions(effects) if component in BY_POSITION else effects

        return RESULTS.get(("estimate", self, direction, component, metric), estimate)

    def estimate_terms(self, direction: str, component: str, metric: str, layer: int, index: int) -> np.ndarray:
        """Return the differences and gradients of one node, (2, N).

        Their products sum to the change of the metric that the node's estimate is computed from.

        Args:
            index: of a head, or a position of the clean prompt that is patched.
        """
        target_index = self.target_positions(direction)[index] if component in BY_POSITION else index
        terms = differences_and_gradients(self._setup(direction, metric), component)[layer]
        return np.stack([term[target_index].cpu().double().numpy() for term in terms])

    def path(self, direction: str, receiver: Receiver, layer: int, head: int) -> np.ndarray:
        """Return every metric after patching one direct path from a head to the receiver, (M,), in a run of its own."""

        def patch_path() -> np.ndarray:
            steps = patch_direct_paths(self._setup(direction), receiver, [layer], [head])
            return run_to_completion(steps)[:, layer, 0]

        return RESULTS.get(("path", self, direction, receiver, layer, head), patch_path)

    def rerun_with_patch(self, direction: str, intervention: Intervention) -> np.ndarray:
        """Return every metric of the target run with an ordinary intervention, (M,), for verification."""
        key = "changed", self, direction, intervention
        return RESULTS.get(key, lambda: rerun_with_patch(self._setup(direction), intervention))
