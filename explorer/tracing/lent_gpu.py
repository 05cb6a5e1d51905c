"""A GPU that is lent for one call, as a Space with ZeroGPU does it; elsewhere a plain call.

There what is decorated runs in a copy of this process that has the GPU: what it is given and what it returns is sent
between the two, and what it does to a model is gone with it. So models are kept on the CPU, and a big one goes to the
GPU for the one pass that a prompt takes; all that is asked later, and all of small ones, is computed here.
"""

import logging
import os
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import torch

from explorer.state.errors import UserError
from explorer.state.interventions import Intervention
from explorer.tracing.capture import capture
from explorer.tracing.models import identity_of, living, reads_with
from explorer.tracing.trace import Trace
from model.counting import num_parameters
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

LOG = logging.getLogger(__name__)
IS_LENT = "SPACES_ZERO_GPU" in os.environ  # which the hub sets there
LEAST_PARAMETERS = 100_000_000  # of a model whose pass takes longer here than it takes to be lent a GPU


def lent(function: Callable) -> Callable:
    """`spaces.GPU(function)` where GPUs are lent; elsewhere the function as it is."""
    if not IS_LENT:
        return function
    try:
        import spaces
    except ImportError:
        return function
    return spaces.GPU(function)


@lent
def pass_on_gpu(identity: Hashable, token_ids: tuple[int, ...], edits: tuple[Intervention, ...], most: float) -> Trace:
    """What a model of this process computes, as arrays of the CPU; without what all its traces have alike."""
    lm = living(identity)
    if IS_LENT and torch.cuda.is_available():
        lm = lm.to("cuda")
    return replace(capture(lm, token_ids, edits, most_bytes=most), vocabulary=())


def captured(
    lm: TransformerLM, token_ids: tuple[int, ...], edits: tuple[Intervention, ...], tokenizer: Tokenizer, most: float
) -> Trace:
    """See `capture`; of a big model on a GPU, where one is lent."""

    def here() -> Trace:
        return capture(lm, token_ids, edits, tokenizer=tokenizer, most_bytes=most)

    if not IS_LENT or lm.offloaded or num_parameters(lm.config) < LEAST_PARAMETERS:
        return here()
    try:
        found: Any = pass_on_gpu(identity_of(lm), token_ids, edits, most)
    except UserError:
        raise
    except Exception as error:  # what is told of it depends on the hub: nobody may have one left for this visitor
        LOG.warning("no GPU was lent, so the CPU computes: %s", error)
        return here()
    reads_with(lm, tokenizer)
    known = {"vocabulary": tokenizer.vocabulary, "token_bytes": tokenizer.bytes_of_ids}
    return replace(found, merge_rules=tokenizer.merge_rules, **known)
