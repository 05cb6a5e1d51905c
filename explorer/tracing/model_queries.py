"""Computations that a trace requests from the model that ran."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from explorer.state.generation_settings import GenerationSettings
from explorer.state.interventions import DirectionSpec, Intervention, Prompts
from explorer.tracing.directions import direction_unit_vector
from explorer.tracing.jobs import MAX_CLICK_MACS, get_or_run
from explorer.tracing.matrices import Matrix
from explorer.tracing.model_registry import cached_outcome, get_model
from explorer.tracing.training_history import TrainingHistory
from model.config import ModelConfig


class ModelQueries:
    """Requests of a run to its model, which may be unloaded: see `explorer.tracing.model_registry`."""

    config: ModelConfig
    token_ids: tuple[int, ...]
    weights: Mapping[str, Matrix]
    edits: tuple[Intervention, ...]
    model: Hashable
    training: TrainingHistory | None

    def ablate(
        self,
        position: int,
        token_id: int,
        interventions: tuple[Intervention, ...] = (),
        max_wait_macs: float = MAX_CLICK_MACS,
    ) -> np.ndarray:
        """Compute a token's log-probability after a position with each component ablated.

        See `explorer.tracing.ablation`.

        Args:
            interventions: of all these runs besides the trace's own.
            max_wait_macs: largest cost that a page request waits for, in multiply-accumulates.

        Raises:
            ValueError: no model ran.
            ModelUnloadedError: the model has been unloaded.
            ResultNotReadyError: a page request does not wait for it, and it is not cached.
        """
        if self.model is None:
            raise ValueError("an ablation runs the model again, and this trace knows none: make it with capture()")
        lm, services = get_model(self.model)
        return get_or_run(
            services.ablate(lm, self.token_ids, (*self.edits, *interventions), position, token_id), max_wait_macs
        )

    def outcome(
        self,
        position: int,
        token_id: int,
        interventions: tuple[Intervention, ...] = (),
        token_ids: tuple[int, ...] | None = None,
    ) -> np.ndarray:
        """Compute logit and ln p of a token after a position, (2,), in a run with these interventions.

        They replace the trace's own interventions.

        Args:
            token_ids: of that run; None for the trace's.

        Raises:
            ValueError: no model ran.
            ModelUnloadedError: the model has been unloaded.
        """
        if self.model is None:
            raise ValueError("what another run gives its model must compute, and this trace knows none: use capture()")
        return cached_outcome(self.model, token_ids or self.token_ids, interventions, position, token_id)

    def token_contributions(self, position: int, token_id: int, contrast_id: int | None) -> Mapping[str, np.ndarray]:
        """Compute the contribution of each token (see `explorer.tracing.token_attribution.token_contributions`).

        Raises:
            ValueError: no model ran.
            ModelUnloadedError: the model has been unloaded.
            ResultNotReadyError: a page request does not wait for it, and it is not cached.
        """
        if self.model is None:
            raise ValueError("gradients run the model again, and this trace knows none: make it with capture()")
        lm, services = get_model(self.model)
        return get_or_run(services.token_contributions(lm, self.token_ids, self.edits, position, token_id, contrast_id))

    def direction(self, spec: DirectionSpec) -> np.ndarray:
        """Return a direction of the model as a unit vector, (D,) float64; raises like `explorer.tracing.directions`."""

        def mean_stream(layer: int, prompts: Prompts) -> np.ndarray:
            lm, services = get_model(self.model)
            return services.mean_stream(lm, layer, prompts)

        return direction_unit_vector(self.config, lambda name: self.weights[name], spec, mean_stream)

    def continue_tokens(self, count: int, settings: GenerationSettings) -> tuple[int, ...]:
        """Return the ids of tokens that the model continues this run with (see `explorer.tracing.continuation`)."""
        lm, services = get_model(self.model)
        return services.continue_tokens(lm, self.token_ids, self.edits, count, settings)

    def at_training_steps(self) -> dict[int, tuple[Any, "ModelQueries"]]:
        """Return this run, with the same interventions, by the model at every saved step of its training.

        Step -> the model, to be kept alive while its trace reads weights, and the trace; for the trace's own step,
        the trace itself. Empty if the training has no saved steps.

        Raises:
            ModelUnloadedError: the trace's model has been unloaded.
            CheckpointError: the checkpoint of another step cannot be loaded.
            BudgetExceededError: it is more than one response may compute.
        """
        if self.training is None or not self.training.snapshots:
            return {}
        lm, services = get_model(self.model)
        return {
            step: (lm, self) if name == self.training.checkpoint else services.read(name, self.token_ids, self.edits)
            for step, name in self.training.snapshots.items()
        }
