"""Forward hooks, interventions in a model's passes, and next tokens, continuations and mean stream of such a run."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from explorer.errors import UserError
from explorer.interventions import CrossRunIntervention, Intervention, sort_interventions
from explorer.interventions.intervention import ForwardPassState
from explorer.state.generation_settings import GenerationSettings
from explorer.tracing.comparison import PatchValues, no_source_message
from explorer.tracing.jobs import check_budget
from explorer.tracing.model_registry import find_model, get_identity
from explorer.tracing.numpy_arrays import StoredWeights
from explorer.tracing.weight_matrices import direction_unit_vector
from model.generation import generate
from model.transformer_lm import TransformerLM, check_finite


@contextmanager
def forward_hooks(modules: Collection[nn.Module], hook: Callable) -> Iterator[None]:
    """Install one forward hook on many modules while the block runs.

    Hooks are shared by all threads that use a model; this one ignores passes of other threads.
    `register_forward_hook` does the same, at the cost of a handle with weak references for every module: for a
    hundred of them that is 6% of a pass over 64 tokens.
    """
    key, thread = object(), threading.get_ident()

    def call_hook(module, inputs, output):
        return hook(module, inputs, output) if threading.get_ident() == thread else None

    try:
        for module in modules:
            module._forward_hooks[key] = call_hook
        yield
    finally:
        for module in modules:
            module._forward_hooks.pop(key, None)


@contextmanager
def use_explicit_attention(lm: TransformerLM, layers: Iterable[int]) -> Iterator[None]:
    """Make layers of a 16-bit model compute scores and patterns explicitly while the block runs.

    Fused kernels round by more than verifications allow between stored and recomputed values. Models in float32 are
    left as they are.
    """
    watched = [lm.taps[f"blocks.{layer}.attn.pattern"] for layer in layers] if lm.dtype != torch.float32 else []
    with forward_hooks(watched, lambda module, inputs, output: None):
        yield


Step = TypeVar("Step")


class InterventionSession:
    """The hooks of a set of interventions, prepared once and activated any number of times.

    Raises:
        UserError: the model has no value that an intervention changes.
    """

    def __init__(self, lm: TransformerLM, interventions: Sequence[Intervention]):
        for intervention in interventions:
            intervention.check(lm.config, lm.taps)
            if isinstance(intervention, CrossRunIntervention) and not isinstance(intervention.source, PatchValues):
                raise UserError(no_source_message())
        unit_vector = partial(
            direction_unit_vector, lm.config, StoredWeights(lm).__getitem__, mean_stream=partial(mean_stream, lm)
        )
        self.lm, self.pass_context = lm, ForwardPassState(sort_interventions(interventions, lm.config), unit_vector)
        edits = self.pass_context.edits
        self.module_hooks = [hook for edit in edits for hook in edit.hooks(lm, self.pass_context)]
        self.module_hooks += [observer for edit in edits for observer in edit.observers(lm, self.pass_context)]

    @contextmanager
    def active(self) -> Iterator[None]:
        """Apply the interventions to this thread's passes of the model while the block runs."""
        with ExitStack() as stack:
            if self.module_hooks:
                stack.enter_context(self.pass_context.tracking(self.lm))
            for module, hook in self.module_hooks:
                stack.enter_context(forward_hooks([module], hook))
            yield


def needs_only_last_logits(interventions: Sequence[Intervention], num_tokens: int, position: int) -> bool:
    """Return True if `position` is the last and no intervention affects logits: earlier logits are not needed."""
    return position == num_tokens - 1 and not any(intervention.affects("logits") for intervention in interventions)


@contextmanager
def apply_interventions(lm: TransformerLM, interventions: Sequence[Intervention]) -> Iterator[None]:
    """Apply interventions to this thread's passes of the model while the block runs.

    The block must not span a `yield`: other code may then run on this thread, and the rest on another. See
    `generate_with_interventions`.

    Raises:
        UserError: the model has no value that an intervention changes; in a pass, a learned position does not
            exist, a mean is over more tokens than there are, or a query has no key left.
    """
    with InterventionSession(lm, interventions).active() if interventions else nullcontext():
        yield


def generate_with_interventions(
    lm: TransformerLM, interventions: Sequence[Intervention], steps: Iterator[Step]
) -> Iterator[Step]:
    """Yield the steps of `generate`, each computed with the interventions; between steps the model has no hooks.

    Raises:
        UserError: as `apply_interventions`, at the first step.
    """
    session = InterventionSession(lm, interventions)
    while True:
        with session.active():
            step = next(steps, None)
        if step is None:
            return
        yield step


def logit_and_log_probability(
    lm: TransformerLM, token_ids: Sequence[int], interventions: Sequence[Intervention], position: int, token_id: int
) -> np.ndarray:
    """Compute the logit of a token after a position and ln of its probability, (2,) float64.

    Raises:
        UserError: the model has no value that an intervention changes.
        BudgetExceededError, RequestCancelledError: see `explorer.tracing.jobs.check_budget`.
    """
    logits = next_token_logits(lm, token_ids, interventions, position)
    return torch.stack((logits[token_id], logits.log_softmax(-1)[token_id])).numpy()


def next_token_logits(
    lm: TransformerLM, token_ids: Sequence[int], interventions: Sequence[Intervention], position: int
) -> torch.Tensor:
    """Compute the logits after a position, (V,) float64 on the CPU; raises as `logit_and_log_probability` does."""
    # A mean needs all its tokens; otherwise later tokens have no influence.
    interventions = [
        intervention if intervention.min_tokens else intervention.for_prompt(token_ids)
        for intervention in interventions
    ]
    length = max(position + 1, *(intervention.min_tokens for intervention in interventions), 0)
    check_budget(tokens=length)
    ids = torch.tensor([token_ids[:length]], device=lm.device)
    with apply_interventions(lm, interventions), torch.inference_mode():
        logits = lm(ids, last_only=needs_only_last_logits(interventions, length, position))
    check_finite(logits[0, position - length], lm.dtype)
    return logits[0, position - length].cpu().double()


MAX_CACHED_CONTINUATIONS = 256  # each some ids


def continue_tokens(
    lm: TransformerLM,
    token_ids: Sequence[int],
    interventions: Sequence[Intervention],
    count: int,
    settings: GenerationSettings,
) -> tuple[int, ...]:
    """Return the ids of `count` generated tokens, drawn with the random numbers of the settings' seed.

    The settings' number of tokens and stop strings are ignored.
    """
    sampling = settings.sampling
    return _cached_continuation(
        get_identity(lm), tuple(token_ids), tuple(interventions), count, tuple(sampling.items())
    )


@lru_cache(MAX_CACHED_CONTINUATIONS)
def _cached_continuation(
    identity, token_ids: tuple[int, ...], interventions: tuple[Intervention, ...], count: int, sampling: tuple
) -> tuple[int, ...]:
    lm, continuation = find_model(identity), []
    steps = generate(lm, list(token_ids), max_new_tokens=count, **dict(sampling))
    for step in generate_with_interventions(
        lm, [intervention.for_prompt(token_ids) for intervention in interventions], steps
    ):
        check_budget(tokens=1)
        continuation.append(step.token_id)
    return tuple(continuation)


MAX_CACHED_MEANS = 128  # each a vector


def mean_stream(lm: TransformerLM, layer: int, prompts: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """Return the mean stream after a layer, (D,) float64: over each prompt's tokens, then over the prompts.

    The model runs without interventions. The result is cached.
    """
    return _cached_mean(get_identity(lm), layer, prompts)


@lru_cache(MAX_CACHED_MEANS)
def _cached_mean(identity, layer: int, prompts: tuple[tuple[int, ...], ...]) -> np.ndarray:
    lm, means = find_model(identity), []

    def store_mean(module, inputs, x):
        means.append(x[0].cpu().double().mean(0).numpy())

    for prompt in prompts:
        check_budget(tokens=len(prompt))
        with forward_hooks([lm.blocks[layer].resid_post], store_mean), torch.inference_mode():
            lm(torch.tensor([prompt], device=lm.device))
    mean = np.mean(means, axis=0)
    mean.flags.writeable = False
    return mean
