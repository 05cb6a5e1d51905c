"""A GPU borrowed for one call on Hugging Face ZeroGPU."""

import logging
import os
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import torch

from explorer.errors import UserError
from explorer.interventions import Intervention
from explorer.tracing.capture import capture
from explorer.tracing.model_registry import find_model, get_identity, register_tokenizer
from explorer.tracing.trace import Trace
from model.config import num_parameters
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

LOG = logging.getLogger(__name__)
HAS_ZERO_GPU = "SPACES_ZERO_GPU" in os.environ  # set by the hub
MIN_PARAMETERS = 100_000_000  # of a model whose pass takes longer here than it takes to be lent a GPU


def with_gpu(function: Callable) -> Callable:
    """Return `spaces.GPU(function)` on ZeroGPU; elsewhere the function unchanged."""
    if not HAS_ZERO_GPU:
        return function
    try:
        import spaces
    except ImportError:
        return function
    return spaces.GPU(function)


@with_gpu
def run_on_gpu(
    identity: Hashable, token_ids: tuple[int, ...], interventions: tuple[Intervention, ...], max_bytes: float
) -> Trace:
    """Capture a run in the process that ZeroGPU lends a GPU to; return its trace, without the vocabulary."""
    lm = find_model(identity)
    if HAS_ZERO_GPU and torch.cuda.is_available():
        lm = lm.to("cuda")
    return replace(capture(lm, token_ids, interventions, max_bytes=max_bytes), vocabulary=())


def capture_on_gpu(
    lm: TransformerLM,
    token_ids: tuple[int, ...],
    interventions: tuple[Intervention, ...],
    tokenizer: Tokenizer,
    max_bytes: float,
) -> Trace:
    """Capture a run as `capture` does; on a GPU if the model is large and ZeroGPU lends one."""

    def run() -> Trace:
        return capture(lm, token_ids, interventions, tokenizer=tokenizer, max_bytes=max_bytes)

    if not HAS_ZERO_GPU or lm.offloaded or num_parameters(lm.config) < MIN_PARAMETERS:
        return run()
    try:
        trace: Any = run_on_gpu(get_identity(lm), token_ids, interventions, max_bytes)
    except UserError:
        raise
    except Exception as error:  # the hub's exceptions vary: the user's GPU quota may be used up, for example
        LOG.warning("ZeroGPU provided no GPU, computing on the CPU: %s", error)
        return run()
    register_tokenizer(lm, tokenizer)
    metadata = {"vocabulary": tokenizer.vocabulary, "token_bytes": tokenizer.bytes_of_ids}
    return replace(trace, merge_rules=tokenizer.merge_rules, **metadata)
