"""What a run asks the model that ran for, anew."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from explorer.state.interventions import Intervention, Prompts, Recipe
from explorer.state.settings import GenerationSettings
from explorer.tracing.directions import direction
from explorer.tracing.jobs import IN_A_CLICK, worked_out
from explorer.tracing.matrices import Matrix
from explorer.tracing.models import asked, outcome_of
from explorer.tracing.training import Training
from model.config import ModelConfig


class OfItsModel:
    """A run of a model that lives for as long as somebody holds it: see `explorer.tracing.models`."""

    config: ModelConfig
    token_ids: tuple[int, ...]
    weights: Mapping[str, Matrix]
    edits: tuple[Intervention, ...]
    model: Hashable
    training: Training | None

    def ablate(
        self, position: int, token_id: int, edits: tuple[Intervention, ...] = (), waited_for: float = IN_A_CLICK
    ) -> np.ndarray:
        """How probable a token is after a position without each part of the model in turn (see `tracing.ablation`).

        Args:
            edits: that all these runs follow besides the trace's own.
            waited_for: of at most so many products an answer of the page waits for.

        Raises:
            ValueError: no model ran.
            ReferenceError: it is gone.
            NotYet: it takes longer than that, is asked for in an answer of the page, and not there.
        """
        if self.model is None:
            raise ValueError("an ablation runs the model again, and this trace knows none: make it with capture()")
        lm, offered = asked(self.model)
        return worked_out(offered.ablate(lm, self.token_ids, (*self.edits, *edits), position, token_id), waited_for)

    def outcome(
        self,
        position: int,
        token_id: int,
        edits: tuple[Intervention, ...] = (),
        token_ids: tuple[int, ...] | None = None,
    ) -> np.ndarray:
        """(2,) logit and ln p of a token after a position in a run with these edits in place of the trace's own.

        Args:
            token_ids: of that run; None for the trace's.

        Raises:
            ValueError: no model ran.
            ReferenceError: it is gone.
        """
        if self.model is None:
            raise ValueError("what another run gives its model must compute, and this trace knows none: use capture()")
        return outcome_of(self.model, token_ids or self.token_ids, edits, position, token_id)

    def token_contributions(self, position: int, token_id: int, rival_id: int | None) -> Mapping[str, np.ndarray]:
        """What `explorer.tracing.gradients.token_contributions` finds of this run.

        Raises:
            ValueError: no model ran.
            ReferenceError: it is gone.
            NotYet: it is asked for in an answer of the page, and not there.
        """
        if self.model is None:
            raise ValueError("gradients run the model again, and this trace knows none: make it with capture()")
        lm, offered = asked(self.model)
        return worked_out(offered.token_contributions(lm, self.token_ids, self.edits, position, token_id, rival_id))

    def direction(self, recipe: Recipe) -> np.ndarray:
        """(D,) in float64, of length 1, of the model that ran; errors are those of `explorer.tracing.directions`."""

        def mean_stream(layer: int, prompts: Prompts) -> np.ndarray:
            lm, offered = asked(self.model)
            return offered.mean_stream(lm, layer, prompts)

        return direction(self.config, lambda name: self.weights[name], recipe, mean_stream)

    def written(self, count: int, settings: GenerationSettings) -> tuple[int, ...]:
        """The ids of tokens that this run's model goes on with, see `explorer.tracing.going_on`."""
        lm, offered = asked(self.model)
        return offered.write(lm, self.token_ids, self.edits, count, settings)

    def at_steps(self) -> dict[int, tuple[Any, "OfItsModel"]]:
        """The same tokens, with the same edits, read by the model at every step of its training that it was kept at.

        Step -> that model, to be held as long as its trace is asked for weights, and the trace; this one at its own
        step. Nothing where the model was not kept on the way.

        Raises:
            ReferenceError: the trace's model is gone.
            CheckpointError: that of another step cannot be loaded.
            TooMuch: it is more than one answer may read.
        """
        if self.training is None or not self.training.snapshots:
            return {}
        lm, offered = asked(self.model)
        return {
            step: (lm, self) if name == self.training.checkpoint else offered.read(name, self.token_ids, self.edits)
            for step, name in self.training.snapshots.items()
        }
