"""Reading a model's inner values by forward hooks."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import torch

from explorer.architecture.stream import block_output
from explorer.state.interventions import Intervention
from explorer.tracing.ablation import ablate, num_runs, products_of
from explorer.tracing.arrays import as_arrays
from explorer.tracing.donation import ready, taken_by
from explorer.tracing.explicit_attention import explicit_attention
from explorer.tracing.going_on import write
from explorer.tracing.gradients import STEPS, token_contributions, units_of
from explorer.tracing.hooks import hooked
from explorer.tracing.intervening import edited
from explorer.tracing.jobs import Job
from explorer.tracing.mean_stream import mean_stream
from explorer.tracing.models import Offer, Weights, asked, offer, reads_with
from explorer.tracing.on_demand import OnDemand
from explorer.tracing.outcome import outcome
from explorer.tracing.patching.asked import ASKED, contrast_of
from explorer.tracing.patching_question import PatchingQuestion
from explorer.tracing.running_again import logits_again, run_again
from explorer.tracing.stored_weights import StoredWeights
from explorer.tracing.tap_shapes import BYTES_A_NUMBER, tap_shapes, trace_bytes, worth_keeping
from explorer.tracing.token_checks import check_tokens
from explorer.tracing.trace import Trace
from model.counting import num_parameters
from model.kv_cache import KVCache
from model.overflow import check_finite
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

# glibc hands large freed blocks back to the system until it has seen one of nearly 32 MB freed; from then on it keeps
# what one capture frees for the next, which is spared thousands of page faults (man mallopt, M_MMAP_THRESHOLD).
torch.empty(31 << 20, dtype=torch.uint8)


def capture(
    lm: TransformerLM,
    token_ids: Sequence[int],
    edits: Sequence[Intervention] = (),
    *,
    tokenizer: Tokenizer | None = None,
    most_bytes: float = math.inf,
) -> Trace:
    """Run the model once over the tokens and keep every value it names; of values that were changed, the changed ones.

    Where these would take more than `most_bytes`, what enters and leaves the blocks is kept, and of what is inside them
    as much as there is room for; the rest is computed when it is looked at (see `explorer.tracing.on_demand`).

    Passes of other threads are neither seen nor changed, and the hooks are gone when this returns or raises. The trace
    does not keep the model alive: its weights can be read while somebody else does.

    Args:
        token_ids: 1 to context_length ids.
        edits: changes that the run follows.
        tokenizer: for the tokens' texts and bytes; without it their ids stand for them.
        most_bytes: that the values may take.

    Raises:
        UserError: there are no tokens, more than the context length, or one that is not in the vocabulary;
            the model has not what an edit changes, or the run that it takes values of has not what it takes.
        OverflowedRunError: the model's numbers are too large for the type that it computes with.
    """
    config = lm.config
    check_tokens(config, token_ids)
    for edit in edits:
        edit.check(config, lm.taps)
    edits = ready(edits, config, token_ids, tokenizer and tokenizer.vocabulary)
    model, ids = offer(lm, offered), tuple(token_ids)
    if trace_bytes(config, len(ids)) <= most_bytes:
        values, dtype = outputs_of(lm, ids, edits, lm.taps)
    else:
        with explicit_attention(lm, range(config.num_layers)):
            kept, dtype = outputs_of(lm, ids, edits, kept_taps(lm, len(ids), most_bytes), lm.final_norm)
        values = OnDemand(kept, tap_shapes(config, len(ids)), model, ids, edits)
    vocabulary = tokenizer.vocabulary if tokenizer else ids_as_text(config.vocab_size)
    known = {"edits": edits, "model": model, "dtype": dtype, "training": asked(model)[1].training}
    known["diagnosis"] = asked(model)[1].diagnosis
    if tokenizer:
        reads_with(lm, tokenizer)
        known |= {"token_bytes": tokenizer.bytes_of_ids, "merge_rules": tokenizer.merge_rules}
    return Trace(config, ids, vocabulary, values, Weights(model), **known)


class _Enough(Exception):
    """What comes later in the pass is not asked for."""


def outputs_of(
    lm: TransformerLM,
    token_ids: Sequence[int],
    edits: Sequence[Intervention],
    modules: Mapping[str, torch.nn.Module],
    last: torch.nn.Module | None = None,
    cache: KVCache | None = None,
) -> tuple[dict[str, np.ndarray], str]:
    """What modules, by name, give out in a pass that ends after the `last`, as arrays without a batch axis in the order
    they are computed; and the type of the numbers that it computed with.

    Args:
        cache: with the keys and values of the tokens before these; who ends a pass advances its length.
    """
    outputs: dict[str, torch.Tensor] = {}
    names = {module: name for name, module in modules.items()}

    def keep(module, inputs, output):
        outputs[names[module]] = output

    def stop(module, inputs, output):
        raise _Enough

    ends = [last] if last else []
    with edited(lm, edits), hooked(names, keep), hooked(ends, stop), torch.inference_mode(), suppress(_Enough):
        lm(torch.tensor([token_ids], device=lm.device), cache)
    final = outputs[next(reversed(outputs))]
    check_finite(final, lm.dtype)
    return as_arrays(outputs), str(final.dtype).removeprefix("torch.")


def outside_blocks(lm: TransformerLM) -> dict[str, torch.nn.Module]:
    """The taps of what enters and leaves the blocks, and of what is in none."""
    leave = {block_output(lm.config, layer) for layer in range(lm.config.num_layers)}
    return {
        name: module
        for name, module in lm.taps.items()
        if name in leave or name.endswith(".resid_pre") or not name.startswith("blocks.")
    }


def kept_taps(lm: TransformerLM, num_tokens: int, most_bytes: float) -> dict[str, torch.nn.Module]:
    """Those, and as many others as there is room for."""
    shapes, outside = tap_shapes(lm.config, num_tokens), outside_blocks(lm)
    enter = {name for name in outside if name.endswith(".resid_pre")}  # in the memory of what leaves the block before
    room = most_bytes - BYTES_A_NUMBER * sum(math.prod(shapes[name]) for name in outside.keys() - enter - {"logits"})
    others = set(worth_keeping(lm.config, num_tokens, room, outside)) | outside.keys()
    return {name: module for name, module in lm.taps.items() if name in others}


def offered(lm: TransformerLM) -> Offer:
    patching = ASKED | {"changed": changed}
    again = run_again, logits_again
    return Offer(StoredWeights(lm), ablation_of, outcome, token_contributions_of, mean_stream, write, *again, patching)


def ablation_of(
    lm: TransformerLM, token_ids: Sequence[int], edits: Sequence[Intervention], position: int, token_id: int
) -> Job:
    """See `explorer.tracing.ablation.ablate`."""
    asked = tuple(token_ids), tuple(edits), position, token_id
    question = "ablation", offer(lm, offered), *asked
    return Job(question, lambda: ablate(lm, *asked), num_runs(lm), products_of(lm, position + 1))


def token_contributions_of(
    lm: TransformerLM,
    token_ids: Sequence[int],
    edits: Sequence[Intervention],
    position: int,
    token_id: int,
    rival_id: int | None,
) -> Job:
    """See `explorer.tracing.gradients.token_contributions`."""
    asked = tuple(token_ids), tuple(edits), position, token_id, rival_id
    passes = units_of(position) + 2 * STEPS  # a gradient costs twice as much again
    products = passes * (position + 1) * num_parameters(lm.config)
    question = "token_contributions", offer(lm, offered), *asked
    return Job(question, lambda: token_contributions(lm, *asked), units_of(position), products)


@cache
def ids_as_text(vocab_size: int) -> tuple[str, ...]:
    return tuple(map(str, range(vocab_size)))


def changed(lm: TransformerLM, question: PatchingQuestion, direction: str, edit: Intervention) -> np.ndarray:
    """(M,) every metric of an ordinary run that takes a value of the other: of the corrupted one where it is denoised,
    else of the clean one."""
    runs = contrast_of(lm, question, direction)
    donor = capture(lm, runs.donor_ids)
    partners = tuple(range(len(donor))) if runs.partners is None else runs.partners
    taken = replace(edit, source=taken_by(partners, donor[edit.tap], tuple(runs.recipient_ids)))
    logits = capture(lm, runs.recipient_ids, [taken])["logits"]
    return runs.measure_all(torch.tensor(logits)[None])[:, 0].numpy()
