"""Registry of models by identity: a trace stores only the identity, so it does not keep its model alive."""

import threading
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from explorer.state.interventions import Intervention
from explorer.tracing.diagnosis_report import DiagnosisReport
from explorer.tracing.jobs import Job
from explorer.tracing.matrices import Matrix
from explorer.tracing.training_history import TrainingHistory

MAX_CACHED = 512  # outcomes, of all models together


@dataclass(frozen=True)
class ModelServices:
    """Functions that a trace may call on its model; they hold the memory of the weights, and are freed with the model.

    Attributes:
        weights: name -> weight, read-only (see `explorer.tracing.matrices`).
        ablate: (model, token ids, edits, position, token id) -> the job that computes the token's probability
            without each component (see `explorer.tracing.ablation`).
        next_token_outcome: (model, token ids, edits, position, token id) -> its logit and ln p (see
            `explorer.tracing.next_token_outcome`).
        token_contributions: (model, token ids, edits, position, token id, contrast id or None) -> the job that
            computes the contribution of each token (see `explorer.tracing.token_attribution`).
        mean_stream: (model, layer, prompts) -> (D,), see `explorer.tracing.mean_stream`.
        continue_tokens: (model, token ids, edits, count, settings) -> ids of generated tokens (see
            `explorer.tracing.continuation`).
        recompute_block: (model, token ids, edits, stored values of the pass, layer, names) -> the values of the
            layer (see `explorer.tracing.recompute`).
        recompute_logits: (model, token ids, edits, input of the unembedding at some positions, the first of those)
            -> their logits.
        patching: computations of patching experiments, by name
            (see `explorer.tracing.patching.experiment_computations`).
        training: history of the model's training; None if unknown.
        diagnosis: differences between the owner's own module and this model; None if there is no such module.
        read: (checkpoint, token ids, edits) -> another model of the same training, and its trace.
    """

    weights: Mapping[str, Matrix]
    ablate: Callable[..., Job]
    next_token_outcome: Callable[..., np.ndarray]
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
_SERVICES: WeakKeyDictionary[Any, ModelServices] = WeakKeyDictionary()


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


def register_services(lm: Any, make: Callable[[Any], ModelServices]) -> Hashable:
    """Register the services of a model and return its identity; `make` is called once per model."""
    with _LOCK:
        if lm not in _SERVICES:
            _SERVICES[lm] = make(lm)
        return get_identity(lm)


def get_model(identity: Hashable, needs: str = "") -> tuple[Any, ModelServices]:
    """Return the model with this identity and its services.

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
def cached_outcome(
    identity: Hashable,
    token_ids: tuple[int, ...],
    interventions: tuple[Intervention, ...],
    position: int,
    token_id: int,
) -> np.ndarray:
    """Return the result of `explorer.tracing.next_token_outcome.next_token_outcome`, cached.

    Raises:
        ModelUnloadedError: the model has been unloaded.
    """
    lm, services = get_model(identity)
    outcome = services.next_token_outcome(lm, token_ids, interventions, position, token_id)
    outcome.flags.writeable = False
    return outcome


@dataclass(frozen=True)
class Weights(Mapping):
    """The weights of a model by name, read-only, while the model lives.

    Each is a float32 array, or a `StoredMatrix` (see `explorer.tracing.matrices`). Every access raises
    ModelUnloadedError once the model is unloaded.
    """

    identity: Hashable

    def __getitem__(self, name: str) -> Matrix:
        return get_model(self.identity, name)[1].weights[name]

    def __iter__(self) -> Iterator[str]:
        return iter(get_model(self.identity)[1].weights)

    def __len__(self) -> int:
        return len(get_model(self.identity)[1].weights)
