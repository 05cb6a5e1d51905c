"""What one run of the model computed."""

import difflib
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from explorer.state.interventions import Intervention
from explorer.tracing.diagnosis import Report
from explorer.tracing.layers import Layers
from explorer.tracing.logits import Logits, of_array
from explorer.tracing.matrices import Matrix
from explorer.tracing.of_its_model import OfItsModel
from explorer.tracing.on_demand import OnDemand, num_bytes
from explorer.tracing.training import Training
from model.config import ModelConfig
from model.merges import MergeRules


@dataclass(frozen=True, eq=False)
class Trace(OfItsModel):
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

    def part(self, name: str, *index: int | slice | np.ndarray) -> np.ndarray:
        """`trace[name][index]`; of logits, those of the positions in it alone are worked out."""
        if name == "logits" and self.is_on_demand and index:
            if isinstance(index[0], (int, np.integer)):
                return self.logits.at(index[0])[index[1:]]
            if isinstance(index[0], slice) and index[0].step in (None, 1):
                start, stop, _step = index[0].indices(len(self))
                return self.logits.rows(start, stop)[(slice(None), *index[1:])]
        return self[name][index]

    @cached_property
    def logits(self) -> Logits:
        """What the run says of every next token, a few positions at a time."""
        return self.values.logits if self.is_on_demand else of_array(self.token_ids, self["logits"])

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

    def layers(self, pattern: str) -> Layers:
        """The same a layer at a time: of a run that keeps little, all of them together may be too much."""
        names = [pattern.replace("*", str(layer)) for layer in range(self.config.num_layers)]
        if self.is_on_demand:
            self[names[0]]  # where they are not to be had, this says so
        return Layers(len(names), lambda layer: self[names[layer]], self.shape(names[0]))

    def has(self, pattern: str) -> bool:
        """Whether a value was captured, by its name, with * for any layer; of a weight, whether weights are known."""
        if pattern.endswith(".weight"):
            return self.has_weights
        expression = re.compile(re.escape(pattern).replace(r"\*", r"\d+"))
        return any(expression.fullmatch(name) for name in self.values)

    def text(self, token_ids: Iterable[int]) -> str:
        """Of tokens."""
        return "".join(self.vocabulary[token_id] for token_id in token_ids)

    def save(self, path: str | Path) -> Path:
        """Write the run to a safetensors file: what is kept of it and of its baseline by name, and in the metadata its
        tokens, the vocabulary, the model's config and the changes. The weights are not in it.

        Raises:
            UserError: it takes values of another run.
            OSError: it cannot be written.
        """
        from explorer.tracing.saved import save

        return save(self, path)

    @staticmethod
    def load(path: str | Path, lm: Any = None) -> "Trace":
        """A run that was saved. What it has not kept, and weights, it asks of its model: of the one that ran, where
        that lives in this process, or of `lm`, to be held by the caller; ModelGone names what it lacks without.

        Args:
            lm: a model with the weights of the one that ran.

        Raises:
            UserError: the file is missing, damaged or no saved run, or `lm` has other weights.
        """
        from explorer.tracing.saved import load

        return load(path, lm)

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
