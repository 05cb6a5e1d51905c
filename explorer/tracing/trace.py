"""The trace of one run: its captured values."""

import difflib
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from explorer.state.interventions import Intervention
from explorer.tracing.diagnosis_report import DiagnosisReport
from explorer.tracing.lazy_activations import LazyActivations, named_arrays_num_bytes
from explorer.tracing.lazy_layer_stack import LazyLayerStack
from explorer.tracing.logits import Logits, logits_from_array
from explorer.tracing.matrices import Matrix
from explorer.tracing.model_queries import ModelQueries
from explorer.tracing.training_history import TrainingHistory
from model.bpe_merges import MergeRules
from model.config import ModelConfig


@dataclass(frozen=True, eq=False)
class Trace(ModelQueries):
    """The captured values of one forward pass, by name, without the model that ran: it can be pickled.

    Each trace equals only itself, so that results can be cached by trace.

    Attributes:
        config: of the model that ran.
        token_ids: the T input tokens.
        vocabulary: the text of every token id, as displayed.
        values: name -> float32 array without a batch axis, in the order in which they were computed; those inside
            blocks of large runs are computed on access, and need the model then.
        weights: name -> weight of the model that ran, read-only, while that lives: a float32 array, or a
            `StoredMatrix`.
        token_bytes: the bytes of every token id, None for a special token; empty if the tokenizer is unknown.
        merge_rules: how the tokenizer builds tokens; None if it has no merges, or is unknown.
        edits: interventions of the run.
        baseline: the run of the same tokens without interventions; None if the run has none.
        model: identity of the model that ran (see `explorer.tracing.model_registry`); None if none did.
        dtype: the data type of the model's computation, which determines rounding.
        training: history of the model's training; None if unknown.
        diagnosis: differences between the owner's own module and the model made of it; None if there is no such
            module.
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
    training: TrainingHistory | None = None
    diagnosis: DiagnosisReport | None = None

    def __len__(self) -> int:
        return len(self.token_ids)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the value captured at a tap.

        Raises:
            KeyError: nothing was captured under that name; the message has the nearest names.
        """
        if name not in self.values:
            near = difflib.get_close_matches(name, self.values, n=3, cutoff=0.4)
            raise KeyError(f"nothing captured as {name!r}; the nearest names are {', '.join(near) or 'none'}")
        return self.values[name]

    def get_slice(self, name: str, *index: int | slice | np.ndarray) -> np.ndarray:
        """Return `trace[name][index]`; of lazy logits only those of the indexed positions are computed."""
        if name == "logits" and self.is_lazy and index:
            if isinstance(index[0], (int, np.integer)):
                return self.logits.row(index[0])[index[1:]]
            if isinstance(index[0], slice) and index[0].step in (None, 1):
                start, stop, _step = index[0].indices(len(self))
                return self.logits.rows(start, stop)[(slice(None), *index[1:])]
        return self[name][index]

    @cached_property
    def logits(self) -> Logits:
        """The logits after every token, read some positions at a time."""
        return self.values.logits if self.is_lazy else logits_from_array(self.token_ids, self["logits"])

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a captured value without computing it."""
        return self.values.shapes[name] if self.is_lazy else self.values[name].shape

    def head_value(self, name: str, head: int) -> np.ndarray:
        """Return the part of a value that belongs to head h of H: (H, T, …) -> (T, …).

        For keys and values shared in groups, (G, T, d), that of h's group: ⌊h · G / H⌋.
        """
        value = self[name]
        return value[head * len(value) // self.config.num_heads]

    def stack(self, pattern: str) -> np.ndarray:
        """Return the values of all layers: `stack("blocks.*.attn.pattern")` is (L, H, T, T).

        Raises:
            KeyError: a layer has no such value.
        """
        return np.stack([self[pattern.replace("*", str(layer))] for layer in range(self.config.num_layers)])

    @property
    def has_weights(self) -> bool:
        """True if weights are available: not for a module with another architecture."""
        return self.model is not None or bool(self.weights)

    def layers(self, pattern: str) -> LazyLayerStack:
        """Return a value of all layers as a lazy stack, for runs whose layers together may not fit into memory."""
        names = [pattern.replace("*", str(layer)) for layer in range(self.config.num_layers)]
        if self.is_lazy:
            self[names[0]]  # raises if the values are not available
        return LazyLayerStack(len(names), lambda layer: self[names[layer]], self.shape(names[0]))

    def has_tap(self, pattern: str) -> bool:
        """Return True if a value was captured; * stands for any layer; for a weight, if weights are available."""
        if pattern.endswith(".weight"):
            return self.has_weights
        expression = re.compile(re.escape(pattern).replace(r"\*", r"\d+"))
        return any(expression.fullmatch(name) for name in self.values)

    def text(self, token_ids: Iterable[int]) -> str:
        """Return the concatenated texts of tokens."""
        return "".join(self.vocabulary[token_id] for token_id in token_ids)

    def save(self, path: str | Path) -> Path:
        """Write the run to a safetensors file, without the model's weights.

        The file has the stored values of the run and its baseline by name, and in the metadata its tokens, the
        vocabulary, the model's config and the interventions.

        Raises:
            UserError: it has patches from another run.
            OSError: it cannot be written.
        """
        from explorer.tracing.run_files import save_trace

        return save_trace(self, path)

    @staticmethod
    def load(path: str | Path, lm: Any = None) -> "Trace":
        """Read a saved run.

        Values that were not stored, and weights, come from the model: from the one that ran, if it lives in this
        process, or from `lm`, which the caller keeps alive; without it ModelUnloadedError names the missing value.

        Args:
            lm: a model with the weights of the one that ran.

        Raises:
            UserError: the file is missing, damaged or no saved run, or `lm` has other weights.
        """
        from explorer.tracing.run_files import load_trace

        return load_trace(path, lm)

    @property
    def tokens(self) -> tuple[str, ...]:
        """Texts of the input tokens."""
        return tuple(self.vocabulary[token_id] for token_id in self.token_ids)

    @property
    def num_bytes(self) -> int:
        """Memory of the trace's stored values in bytes, without the baseline's, counting shared memory once."""
        return named_arrays_num_bytes(self.stored_values)

    @property
    def stored_values(self) -> Mapping[str, np.ndarray]:
        """Values that are stored, and not computed on access."""
        return self.values.stored if self.is_lazy else self.values

    @property
    def is_lazy(self) -> bool:
        """True if values inside blocks are computed on access (see `explorer.tracing.lazy_activations`)."""
        return isinstance(self.values, LazyActivations)
