"""What one run of the model computed."""

import difflib
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from explorer.state.interventions import Intervention, Prompts, Recipe
from explorer.state.settings import GenerationSettings
from explorer.tracing.diagnosis import Report
from explorer.tracing.directions import direction
from explorer.tracing.jobs import worked_out
from explorer.tracing.matrices import Matrix
from explorer.tracing.models import ablated, asked, outcome_of
from explorer.tracing.on_demand import OnDemand, num_bytes
from explorer.tracing.training import Training
from model.config import ModelConfig
from model.merges import MergeRules


@dataclass(frozen=True, eq=False)
class Trace:
    """The captured values of one forward pass, by name, without the model that ran: it can be pickled.

    Equal to no other, so that results can be kept by trace.

    Attributes:
        config: of the model that ran.
        token_ids: the T input tokens.
        vocabulary: the text of every token id, as shown.
        values: name -> float32 array without a batch axis, in the order they were computed; of large runs those inside
            blocks are computed when they are looked at, and ask for the model then.
        weights: name -> weight of the model that ran, not to be written to, for as long as that lives: a float32
            array, or a `StoredMatrix`, of which any part is one.
        token_bytes: the bytes of every token id, None of a special token; none where the tokenizer is unknown.
        merge_rules: how the tokenizer builds tokens; None where it has no merges, or is unknown.
        edits: changes that the run followed.
        baseline: the same tokens without the edits, to compare with; None where there are none.
        model: identity of the model that ran (see `explorer.tracing.models`); None where none did.
        dtype: the type of the numbers that the model computed with, which says how it rounds.
        training: how the model came about; None where nobody knows.
        diagnosis: how somebody's own module differs from the model that was made of it; None where it was made of none.
    """

    config: ModelConfig
    token_ids: tuple[int, ...]
    vocabulary: Sequence[str]
    values: Mapping[str, np.ndarray]
    weights: Mapping[str, Matrix] = field(default_factory=dict)
    token_bytes: Sequence[bytes | None] = ()
    merge_rules: MergeRules | None = None
    edits: tuple[Intervention, ...] = ()
    baseline: "Trace | None" = None
    model: Hashable = None
    dtype: str = "float32"
    training: Training | None = None
    diagnosis: Report | None = None

    def __len__(self) -> int:
        return len(self.token_ids)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __getitem__(self, name: str) -> np.ndarray:
        """The value captured at a tap.

        Raises:
            KeyError: nothing was captured under that name; the message has the nearest names.
        """
        if name not in self.values:
            near = difflib.get_close_matches(name, self.values, n=3, cutoff=0.4)
            raise KeyError(f"nothing captured as {name!r}; the nearest names are {', '.join(near) or 'none'}")
        return self.values[name]

    def shape(self, name: str) -> tuple[int, ...]:
        """Of a value; nothing is computed for it."""
        return self.values.shapes[name] if self.is_on_demand else self.values[name].shape

    def of_head(self, name: str, head: int) -> np.ndarray:
        """The part of a value that belongs to head h of H: (H, T, …) -> (T, …).

        Of keys and values shared in groups, (G, T, d), that of h's group: ⌊h · G / H⌋.
        """
        value = self[name]
        return value[head * len(value) // self.config.num_heads]

    def stack(self, pattern: str) -> np.ndarray:
        """The values of all layers: `stack("blocks.*.attn.pattern")` is (L, H, T, T).

        Raises:
            KeyError: a layer has no such value.
        """
        return np.stack([self[pattern.replace("*", str(layer))] for layer in range(self.config.num_layers)])

    @property
    def has_weights(self) -> bool:
        """Whether weights are known: not of a module of another build."""
        return self.model is not None or bool(self.weights)

    def has(self, pattern: str) -> bool:
        """Whether a value was captured, by its name, with * for any layer; of a weight, whether weights are known."""
        if pattern.endswith(".weight"):
            return self.has_weights
        expression = re.compile(re.escape(pattern).replace(r"\*", r"\d+"))
        return any(expression.fullmatch(name) for name in self.values)

    def ablate(self, position: int, token_id: int, edits: tuple[Intervention, ...] = ()) -> np.ndarray:
        """How probable a token is after a position without each part of the model in turn (see `tracing.ablation`).

        Args:
            edits: that all these runs follow besides the trace's own.

        Raises:
            ValueError: no model ran.
            ReferenceError: it is gone.
        """
        if self.model is None:
            raise ValueError("an ablation runs the model again, and this trace knows none: make it with capture()")
        return ablated(self.model, self.token_ids, (*self.edits, *edits), position, token_id)

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

    def text(self, token_ids: Iterable[int]) -> str:
        """Of tokens."""
        return "".join(self.vocabulary[token_id] for token_id in token_ids)

    def at_steps(self) -> dict[int, tuple[Any, "Trace"]]:
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

    @property
    def tokens(self) -> tuple[str, ...]:
        """The texts of the input tokens."""
        return tuple(self.vocabulary[token_id] for token_id in self.token_ids)

    @property
    def num_bytes(self) -> int:
        """Of its own values that are kept, those of the baseline being another trace's; memory that two of them share
        counts once."""
        return num_bytes(self.kept)

    @property
    def kept(self) -> Mapping[str, np.ndarray]:
        """The values that are there without being computed anew."""
        return self.values.kept if self.is_on_demand else self.values

    @property
    def is_on_demand(self) -> bool:
        """Whether values inside blocks are computed when they are looked at (see `explorer.tracing.on_demand`)."""
        return isinstance(self.values, OnDemand)
