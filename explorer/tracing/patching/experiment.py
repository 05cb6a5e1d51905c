"""A patching experiment on two prompts with different answers: its components, and the scale of its effects."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from explorer.errors import UserError
from explorer.interventions import Intervention
from explorer.state.token_alignment import Partners
from explorer.tracing.jobs import RESULTS, Job, get_or_run
from explorer.tracing.model_registry import get_model
from explorer.translations import _

MIN_DIFFERENCE = 1e-6  # between the metric of the clean and of the corrupted run; less has no effects


def normalise_changes(changes: np.ndarray, clean: float, corrupted: float) -> np.ndarray:
    """Return changes of a metric as shares of the difference between the clean and the corrupted run.

    NaN if that difference is less than 1e-6: then there is nothing to explain.
    """
    if abs(clean - corrupted) < MIN_DIFFERENCE:
        return np.full_like(changes, np.nan)
    return changes / (clean - corrupted)


def normalised_effect(patched: np.ndarray, clean: float, corrupted: float, direction: str) -> np.ndarray:
    """Return the normalised effects of patched runs (Heimersheim & Nanda 2024, arXiv:2404.15255).

    (m − m(corrupted)) / (m(clean) − m(corrupted)) if the corrupted run was denoised: 0 if nothing was gained, 1 if
    all was. (m − m(clean)) / (m(clean) − m(corrupted)) if the clean run was noised: 0 if nothing was lost, −1 if
    all was.
    """
    return normalise_changes(patched - (corrupted if direction == "denoise" else clean), clean, corrupted)


DIRECTIONS = ("denoise", "noise")
METRICS = ("logit_difference", "log_probability", "probability")
BY_POSITION = ("resid_pre", "attn.out", "ffn.out")  # values (1, T, D): a position at a time
BY_HEAD = ("attn.z", "attn.q", "attn.k", "attn.v", "attn.pattern")  # (1, H, …): a head at a time, at all positions
Receiver = str | tuple[int, int, str]  # "logits", or a layer, a head and "q", "k" or "v"


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

    def _call(self, name: str, *args):
        lm, functions = get_model(self.model)
        return functions.patching[name](lm, self, *args)

    def _job(self, name: str, *args, num_nodes: int, num_passes: float) -> Job:
        """Return a job over `num_nodes` nodes that costs as much as `num_passes` passes over the prompt."""
        weights = sum(math.prod(weight.shape) for weight in get_model(self.model)[1].weights.values())
        return Job(
            (name, self, *args),
            lambda: self._call(name, *args),
            num_nodes,
            num_passes * weights * max(len(self.clean), len(self.corrupted)),
        )

    @cached_property
    def unpatched_metrics(self) -> np.ndarray:
        """Every metric of the clean and the corrupted run, (2, M)."""
        return RESULTS.get(("unpatched", self), lambda: self._call("unpatched"))

    def component_metrics(self, component: str) -> np.ndarray:
        """Return every metric after patching each node of a component alone, in both DIRECTIONS, (2, M, L, P)."""
        config = get_model(self.model)[0].config
        nodes_per_layer = 2 * (config.kv_heads if component in ("attn.k", "attn.v") else config.num_heads)
        if component in BY_POSITION:
            nodes_per_layer = len(self.clean) + len(self.corrupted)
        num_nodes = config.num_layers * nodes_per_layer
        return get_or_run(self._job("component", component, num_nodes=num_nodes, num_passes=num_nodes * 0.6))

    def neuron_metrics(self, layer: int) -> np.ndarray:
        """Return every metric after patching each neuron of a layer alone, (2, M, F), in both DIRECTIONS."""
        config = get_model(self.model)[0].config
        share = 1 - layer / config.num_layers
        return get_or_run(self._job("neurons", layer, num_nodes=2 * config.d_ff, num_passes=2 * config.d_ff * share))

    def path_metrics(self, direction: str, receiver: Receiver) -> np.ndarray:
        """Return every metric after patching the direct path from each head to the receiver, (M, L, H).

        NaN for heads after the receiver.
        """
        config = get_model(self.model)[0].config
        num_layers = config.num_layers if receiver == "logits" else receiver[0]
        num_passes = 2 * config.num_heads * num_layers
        return get_or_run(self._job("paths", direction, receiver, num_nodes=num_layers, num_passes=num_passes))

    def estimate(self, direction: str, component: str, metric: str) -> np.ndarray:
        """Return the effects of a component's nodes estimated by gradients, (L, P)."""
        key = "estimate", self, direction, component, metric
        return RESULTS.get(key, lambda: self._call("estimate", direction, component, metric))

    def estimate_terms(self, direction: str, component: str, metric: str, layer: int, index: int) -> np.ndarray:
        """Return the differences and gradients of one node, (2, N).

        Their products sum to the change of the metric that the node's estimate is computed from.

        Args:
            index: of a head, or a position of the clean prompt that is patched.
        """
        target_index = self.target_positions(direction)[index] if component in BY_POSITION else index
        return self._call("summed", direction, component, metric, layer, target_index)

    def path(self, direction: str, receiver: Receiver, layer: int, head: int) -> np.ndarray:
        """Return every metric after patching one direct path from a head to the receiver, (M,)."""
        key = "path", self, direction, receiver, layer, head
        return RESULTS.get(key, lambda: self._call("path", direction, receiver, layer, head))

    def rerun_with_patch(self, direction: str, intervention: Intervention) -> np.ndarray:
        """Return every metric of the target run with an ordinary intervention, (M,), for verification."""
        return RESULTS.get(
            ("changed", self, direction, intervention), lambda: self._call("changed", direction, intervention)
        )


COMPONENTS = BY_POSITION + BY_HEAD


def check_component(component: str):
    """Raise UserError if the name is none of COMPONENTS."""
    if component not in COMPONENTS:
        raise UserError(_("wanted one of {known}, got {got!r}", known=", ".join(COMPONENTS), got=component))


def component_taps(component: str, num_layers: int) -> list[str]:
    """Return the taps of a component, layer by layer."""
    return [f"blocks.{layer}.{component}" for layer in range(num_layers)]
