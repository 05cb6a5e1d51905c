"""Models by identity, with their weights, tokenizers and training: a trace holds only its model's identity."""

import threading
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from explorer.tracing.diagnosis_report import DiagnosisReport
from explorer.tracing.numpy_arrays import StoredWeights
from explorer.tracing.training_history import TrainingHistory
from explorer.tracing.weight_matrices import Matrix


@dataclass(frozen=True)
class ModelFacts:
    """Facts of a model, freed with it.

    Attributes:
        weights: name -> weight, read-only; they hold the memory of the weights.
        training: history of the model's training; None if unknown.
        diagnosis: differences between the owner's own module and this model; None if there is no such module.
        read: (checkpoint, token ids, edits) -> another model of the same training, and its trace.
    """

    weights: StoredWeights
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
_FACTS: WeakKeyDictionary[Any, ModelFacts] = WeakKeyDictionary()


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


def make_model_facts(lm: Any) -> ModelFacts:
    """Return the facts of a model of which only the weights are known."""
    return ModelFacts(StoredWeights(lm))


def register_model_facts(lm: Any, make: Callable[[Any], ModelFacts] = make_model_facts) -> Hashable:
    """Register the facts of a model and return its identity; `make` is called once per model."""
    with _LOCK:
        if lm not in _FACTS:
            _FACTS[lm] = make(lm)
        return get_identity(lm)


def get_model(identity: Hashable, needs: str = "") -> tuple[Any, ModelFacts]:
    """Return the model with this identity and its facts.

    Args:
        needs: the value or weight that is requested, for the error's message.

    Raises:
        ModelUnloadedError: the model has been unloaded.
    """
    lm = find_model(identity)
    if lm is None or lm not in _FACTS:
        raise ModelUnloadedError(needs)
    return lm, _FACTS[lm]


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
