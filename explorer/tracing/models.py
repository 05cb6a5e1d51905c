"""Models by their identity: a trace keeps that alone, so that a model lives as long as somebody uses it."""

import threading
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from explorer.state.interventions import Intervention
from explorer.tracing.diagnosis import Report
from explorer.tracing.jobs import Job
from explorer.tracing.matrices import Matrix
from explorer.tracing.training import Training

MOST_KEPT = 512  # outcomes, of all models together


@dataclass(frozen=True)
class Offer:
    """What a trace may ask of its model; holds the memory of the weights, and is let go with the model.

    Attributes:
        weights: name -> weight, not to be written to (see `explorer.tracing.matrices`).
        ablate: (model, token ids, edits, position, token id) -> the job that finds how probable the token is without
            each part (see `explorer.tracing.ablation`).
        outcome: (model, token ids, edits, position, token id) -> its logit and ln p (see `explorer.tracing.outcome`).
        token_contributions: (model, token ids, edits, position, token id, rival id or None) -> the job that finds what
            each token contributes (see `explorer.tracing.gradients`).
        mean_stream: (model, layer, prompts) -> (D,), see `explorer.tracing.mean_stream`.
        write: (model, token ids, edits, count, settings) -> as many ids that it goes on with (see
            `explorer.tracing.going_on`).
        run_again: (model, token ids, edits, what was kept of the pass, layer, names) -> the values there (see
            `explorer.tracing.running_again`).
        logits_again: (model, token ids, edits, what the unembedding reads of some positions, the first of those) ->
            their logits.
        patching: what is asked of values of one run in another, by name (see `explorer.tracing.patching.asked`).
        training: how the model came about; None where nobody knows.
        diagnosis: how somebody's own module differs from it; None where it was made of none.
        read: (checkpoint, token ids, edits) -> another model of the same training, and what it computes.
    """

    weights: Mapping[str, Matrix]
    ablate: Callable[..., Job]
    outcome: Callable[..., np.ndarray]
    token_contributions: Callable[..., Job]
    mean_stream: Callable[..., np.ndarray]
    write: Callable[..., tuple[int, ...]]
    run_again: Callable[..., Mapping[str, np.ndarray]]
    logits_again: Callable[..., np.ndarray]
    patching: Mapping[str, Callable[..., Any]]
    training: Training | None = None
    diagnosis: Report | None = None
    read: Callable[..., tuple[Any, Any]] | None = None


class ModelGone(ReferenceError):
    """The model of a trace is asked for something, and is not there.

    Attributes:
        needs: the value or weight that is asked for; "" where it is a computation.
    """

    def __init__(self, needs: str = ""):
        what = f"{needs!r} is asked of the model, and " if needs else ""
        super().__init__(
            f"{what}the model of this trace is gone: a trace holds none, so keep the model as long as its weights are "
            "read, or load it and capture again"
        )
        self.needs = needs


_LOCK = threading.RLock()
_MODELS: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
_IDENTITIES: WeakKeyDictionary[Any, Hashable] = WeakKeyDictionary()
_TOKENIZERS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_OFFERS: WeakKeyDictionary[Any, Offer] = WeakKeyDictionary()


def living(identity: Hashable) -> Any:
    """The model of that identity; None where it is gone, or never was."""
    return _MODELS.get(identity)


def named(lm: Any, identity: Hashable) -> Any:
    """The model that the identity stands for from now on: `lm`, or one that already lives under it."""
    with _LOCK:
        known = _MODELS.setdefault(identity, lm)
        _IDENTITIES.setdefault(known, identity)
        return known


def identity_of(lm: Any) -> Hashable:
    """Of a model that was not named, one that no other has, in this process or another."""
    with _LOCK:
        if lm not in _IDENTITIES:
            named(lm, uuid.uuid4().hex)
        return _IDENTITIES[lm]


def reads_with(lm: Any, tokenizer: Any):
    """The model's tokenizer is known from now on."""
    with _LOCK:
        _TOKENIZERS[lm] = tokenizer


def tokenizer_of(identity: Hashable) -> Any:
    """Of a model; None where it is gone, or no tokenizer of it was told."""
    lm = living(identity)
    return None if lm is None else _TOKENIZERS.get(lm)


def offer(lm: Any, make: Callable[[Any], Offer]) -> Hashable:
    """The model's identity, under which it answers from now on; `make` is called once a model."""
    with _LOCK:
        if lm not in _OFFERS:
            _OFFERS[lm] = make(lm)
        return identity_of(lm)


def asked(identity: Hashable, needs: str = "") -> tuple[Any, Offer]:
    """The model and what it offers.

    Args:
        needs: what of it is asked for.

    Raises:
        ModelGone: it is gone.
    """
    lm = living(identity)
    if lm is None or lm not in _OFFERS:
        raise ModelGone(needs)
    return lm, _OFFERS[lm]


@lru_cache(MOST_KEPT)
def outcome_of(
    identity: Hashable, token_ids: tuple[int, ...], edits: tuple[Intervention, ...], position: int, token_id: int
) -> np.ndarray:
    """What `explorer.tracing.outcome.outcome` finds, once a question; ReferenceError where the model is gone."""
    lm, offered = asked(identity)
    found = offered.outcome(lm, token_ids, edits, position, token_id)
    found.flags.writeable = False
    return found


@dataclass(frozen=True)
class Weights(Mapping):
    """The weights of a model by name, not to be written to, for as long as the model lives: each a float32 array, or a
    matrix that is stored otherwise, of which any part is one (see `explorer.tracing.matrices`).

    Every access raises ModelGone after that.
    """

    identity: Hashable

    def __getitem__(self, name: str) -> Matrix:
        return asked(self.identity, name)[1].weights[name]

    def __iter__(self) -> Iterator[str]:
        return iter(asked(self.identity)[1].weights)

    def __len__(self) -> int:
        return len(asked(self.identity)[1].weights)
