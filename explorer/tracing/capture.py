"""Reading a model's inner values by forward hooks."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import torch

from explorer.state.interventions import Intervention
from explorer.tracing.ablation import ablate
from explorer.tracing.donation import ready, taken_by
from explorer.tracing.going_on import write
from explorer.tracing.gradients import STEPS, token_contributions, units_of
from explorer.tracing.hooks import hooked
from explorer.tracing.intervening import edited
from explorer.tracing.jobs import Job
from explorer.tracing.mean_stream import mean_stream
from explorer.tracing.models import Offer, Weights, asked, offer, reads_with
from explorer.tracing.outcome import outcome
from explorer.tracing.patching.asked import ASKED, contrast_of
from explorer.tracing.patching_question import PatchingQuestion
from explorer.tracing.token_checks import check_tokens
from explorer.tracing.trace import Trace
from model.counting import num_parameters
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
) -> Trace:
    """Run the model once over the tokens and keep every value it names; of values that were changed, the changed ones.

    Passes of other threads are neither seen nor changed, and the hooks are gone when this returns or raises. The trace
    does not keep the model alive: its weights can be read while somebody else does.

    Args:
        token_ids: 1 to context_length ids.
        edits: changes that the run follows.
        tokenizer: for the tokens' texts and bytes; without it their ids stand for them.

    Raises:
        UserError: there are no tokens, more than the context length, or one that is not in the vocabulary;
            the model has not what an edit changes, or the run that it takes values of has not what it takes.
    """
    config = lm.config
    check_tokens(config, token_ids)
    outputs: dict[str, torch.Tensor] = {}
    names = {module: name for name, module in lm.taps.items()}

    def keep(module, inputs, output):
        outputs[names[module]] = output

    for edit in edits:
        edit.check(config, lm.taps)
    edits = ready(edits, config, token_ids, tokenizer and tokenizer.vocabulary)
    with edited(lm, edits), hooked(names, keep), torch.inference_mode():
        lm(torch.tensor([token_ids], device=lm.device))
    values = {name: as_array(output)[0] for name, output in outputs.items()}
    vocabulary = tokenizer.vocabulary if tokenizer else ids_as_text(config.vocab_size)
    ids = tuple(token_ids)
    dtype = str(outputs["logits"].dtype).removeprefix("torch.")
    model = offer(lm, offered)
    known = {"edits": edits, "model": model, "dtype": dtype, "training": asked(model)[1].training}
    if tokenizer:
        reads_with(lm, tokenizer)
        known |= {"token_bytes": tokenizer.bytes_of_ids, "merge_rules": tokenizer.merge_rules}
    return Trace(config, ids, vocabulary, values, Weights(model), **known)


def offered(lm: TransformerLM) -> Offer:
    weights = {name: as_array(weight.detach()) for name, weight in lm.state_dict().items()}
    return Offer(weights, ablate, outcome, token_contributions_of, mean_stream, write, ASKED | {"changed": changed})


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


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """As float32, not to be written to; the memory is shared where it can be."""
    if tensor.dtype != torch.float32 or not tensor.is_cpu:
        tensor = tensor.float().cpu()
    array = tensor.numpy()
    array.flags.writeable = False
    return array


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
