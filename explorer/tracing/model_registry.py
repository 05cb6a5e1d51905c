"""Models by identity, and the computations that a trace requests: a trace holds only its model's identity."""

import threading
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from explorer.interventions import DirectionSpec, Intervention, Prompts
from explorer.state.generation_settings import GenerationSettings
from explorer.tracing.diagnosis_report import DiagnosisReport
from explorer.tracing.jobs import MAX_CLICK_MACS, Job, get_or_run
from explorer.tracing.training_history import TrainingHistory
from explorer.tracing.weight_matrices import Matrix, direction_unit_vector
from model.config import ModelConfig

MAX_CACHED = 512  # outcomes, of all models together


@dataclass(frozen=True)
class ModelFunctions:
    """Functions that a trace may call on its model; they hold the memory of the weights, and are freed with the model.

    Attributes:
        weights: name -> weight, read-only (see `explorer.tracing.weight_matrices`).
        ablate: (model, token ids, edits, position, token id, "zero" or "mean") -> the job that computes the token's
            probability with each component ablated (see `explorer.tracing.attribution`).
        logit_and_log_probability: (model, token ids, edits, position, token id) -> its logit and ln p (see
            `explorer.tracing.forward_hooks`).
        token_contributions: (model, token ids, edits, position, token id, contrast id or None) -> the job that
            computes the contribution of each token (see `explorer.tracing.attribution`).
        mean_stream: (model, layer, prompts) -> (D,), see `explorer.tracing.forward_hooks`.
        continue_tokens: (model, token ids, edits, count, settings) -> ids of generated tokens (see
            `explorer.tracing.forward_hooks`).
        recompute_block: (model, token ids, edits, stored values of the pass, layer, names) -> the values of the
            layer (see `explorer.tracing.capture`).
        recompute_logits: (model, token ids, edits, input of the unembedding at some positions, the first of those)
            -> their logits.
        patching: computations of patching experiments, by name
            (see `explorer.tracing.patching.patching_methods`).
        training: history of the model's training; None if unknown.
        diagnosis: differences between the owner's own module and this model; None if there is no such module.
        read: (checkpoint, token ids, edits) -> another model of the same training, and its trace.
    """

    weights: Mapping[str, Matrix]
    ablate: Callable[..., Job]
    logit_and_log_probability: Callable[..., np.ndarray]
    token_contributions: Callable[..., Job]
    mean_stream: Callable[..., np.ndarray]
    continue_tokens: Callable[..., tuple[int, ...]]
    recompute_block: Callable[..., Mapping[str, np.ndarray]]
    recompute_logits: Callable[..., np.ndarray]
    patching: Mapping[str, Callable[..., Any]]
    training: TrainingHistory | None = None
    diagnosis: DiagnosisReport | None = None
    read: Callable[..., tuple[Any, Any]] | None = None


class ModelUnloadedError(ReferenceError):
    """The model of a trace is needed, and has been unloaded.

    Attributes:
        needs: the value or weight that needs it; "" for a computation.
    """

    def __init__(self, needs: str = ""):
        prefix = f"{needs!r} is asked of the model, and " if needs else ""
        super().__init__(
            f"{prefix}the model of this trace is gone: a trace holds none, so keep the model as long as its weights "
            "are "
            "read, or load it and capture again"
        )
        self.needs = needs


_LOCK = threading.RLock()
_MODELS: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
_IDENTITIES: WeakKeyDictionary[Any, Hashable] = WeakKeyDictionary()
_TOKENIZERS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_SERVICES: WeakKeyDictionary[Any, ModelFunctions] = WeakKeyDictionary()


def find_model(identity: Hashable) -> Any:
    """Return the model with this identity; None if it was unloaded, or never existed."""
    return _MODELS.get(identity)


def register_model(lm: Any, identity: Hashable) -> Any:
    """Register a model under an identity and return it, or the model that already lives under this identity."""
    with _LOCK:
        registered = _MODELS.setdefault(identity, lm)
        _IDENTITIES.setdefault(registered, identity)
        return registered


def get_identity(lm: Any) -> Hashable:
    """Return the identity of a model; a model that was not registered gets a globally unique one."""
    with _LOCK:
        if lm not in _IDENTITIES:
            register_model(lm, uuid.uuid4().hex)
        return _IDENTITIES[lm]


def register_tokenizer(lm: Any, tokenizer: Any):
    """Register the tokenizer of a model."""
    with _LOCK:
        _TOKENIZERS[lm] = tokenizer


def find_tokenizer(identity: Hashable) -> Any:
    """Return the tokenizer of a model; None if the model was unloaded, or no tokenizer was registered."""
    lm = find_model(identity)
    return None if lm is None else _TOKENIZERS.get(lm)


def register_model_functions(lm: Any, make: Callable[[Any], ModelFunctions]) -> Hashable:
    """Register the functions of a model and return its identity; `make` is called once per model."""
    with _LOCK:
        if lm not in _SERVICES:
            _SERVICES[lm] = make(lm)
        return get_identity(lm)


def get_model(identity: Hashable, needs: str = "") -> tuple[Any, ModelFunctions]:
    """Return the model with this identity and its functions.

    Args:
        needs: the value or weight that is requested, for the error's message.

    Raises:
        ModelUnloadedError: the model has been unloaded.
    """
    lm = find_model(identity)
    if lm is None or lm not in _SERVICES:
        raise ModelUnloadedError(needs)
    return lm, _SERVICES[lm]


@lru_cache(MAX_CACHED)
def cached_logit_and_log_probability(
    identity: Hashable,
    token_ids: tuple[int, ...],
    interventions: tuple[Intervention, ...],
    position: int,
    token_id: int,
) -> np.ndarray:
    """Return the result of `explorer.tracing.forward_hooks.logit_and_log_probability`, cached.

    Raises:
        ModelUnloadedError: the model has been unloaded.
    """
    lm, functions = get_model(identity)
    outcome = functions.logit_and_log_probability(lm, token_ids, interventions, position, token_id)
    outcome.flags.writeable = False
    return outcome


@dataclass(frozen=True)
class ModelWeights(Mapping):
    """The weights of a model by name, read-only, while the model lives.

    Each is a float32 array, or a `StoredMatrix` (see `explorer.tracing.weight_matrices`). Every access raises
    ModelUnloadedError once the model is unloaded.
    """

    identity: Hashable

    def __getitem__(self, name: str) -> Matrix:
        return get_model(self.identity, name)[1].weights[name]

    def __iter__(self) -> Iterator[str]:
        return iter(get_model(self.identity)[1].weights)

    def __len__(self) -> int:
        return len(get_model(self.identity)[1].weights)


class ModelComputations:
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
        operation: str = "zero",
    ) -> np.ndarray:
        """Compute a token's log-probability after a position with each component ablated.

        See `explorer.tracing.attribution`.

        Args:
            interventions: of all these runs besides the trace's own.
            max_wait_macs: largest cost that a page request waits for, in multiply-accumulates.
            operation: "zero" or "mean".

        Raises:
            ValueError: no model ran.
            ModelUnloadedError: the model has been unloaded.
            ResultNotReadyError: a page request does not wait for it, and it is not cached.
        """
        if self.model is None:
            raise ValueError("an ablation runs the model again, and this trace knows none: make it with capture()")
        lm, functions = get_model(self.model)
        return get_or_run(
            functions.ablate(lm, self.token_ids, (*self.edits, *interventions), position, token_id, operation),
            max_wait_macs,
        )

    def logit_and_log_probability(
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
        return cached_logit_and_log_probability(
            self.model, token_ids or self.token_ids, interventions, position, token_id
        )

    def token_contributions(self, position: int, token_id: int, contrast_id: int | None) -> Mapping[str, np.ndarray]:
        """Compute the contribution of each token (see `explorer.tracing.attribution.token_contributions`).

        Raises:
            ValueError: no model ran.
            ModelUnloadedError: the model has been unloaded.
            ResultNotReadyError: a page request does not wait for it, and it is not cached.
        """
        if self.model is None:
            raise ValueError("gradients run the model again, and this trace knows none: make it with capture()")
        lm, functions = get_model(self.model)
        return get_or_run(
            functions.token_contributions(lm, self.token_ids, self.edits, position, token_id, contrast_id)
        )

    def direction(self, spec: DirectionSpec) -> np.ndarray:
        """Return a direction of the model as a unit vector, (D,) float64; raises like `direction_unit_vector`."""

        def mean_stream(layer: int, prompts: Prompts) -> np.ndarray:
            lm, functions = get_model(self.model)
            return functions.mean_stream(lm, layer, prompts)

        return direction_unit_vector(self.config, lambda name: self.weights[name], spec, mean_stream)

    def continue_tokens(self, count: int, settings: GenerationSettings) -> tuple[int, ...]:
        """Return the ids of the tokens with which the model continues this run."""
        lm, functions = get_model(self.model)
        return functions.continue_tokens(lm, self.token_ids, self.edits, count, settings)

    def at_training_steps(self) -> dict[int, tuple[Any, "ModelComputations"]]:
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
        lm, functions = get_model(self.model)
        return {
            step: (lm, self) if name == self.training.checkpoint else functions.read(name, self.token_ids, self.edits)
            for step, name in self.training.snapshots.items()
        }
