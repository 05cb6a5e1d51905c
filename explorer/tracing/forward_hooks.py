"""Forward hooks, interventions in a model's passes, and what such a pass is run for besides a capture."""

import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from explorer.architecture.residual_stream import block_output_tap
from explorer.errors import UserError
from explorer.interventions import CrossRunIntervention, Intervention, sort_interventions
from explorer.interventions.intervention import ForwardPassState
from explorer.interventions.patch import PatchValues, no_source_message
from explorer.state.generation_settings import GenerationSettings
from explorer.tracing.jobs import check_budget
from explorer.tracing.model_registry import find_model, get_identity, get_model
from explorer.tracing.numpy_arrays import StoredWeights, as_array, as_unbatched_arrays
from explorer.tracing.weight_matrices import direction_unit_vector
from model.generation import generate
from model.layers.attention import softcap
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
def record_outputs(modules: Mapping[str, nn.Module], stops: bool = False) -> Iterator[dict[str, torch.Tensor]]:
    """Record the outputs of modules by name, in the order in which they are computed, while the block runs.

    Args:
        stops: end the block once all of them have run: values after them are not needed.
    """
    outputs: dict[str, torch.Tensor] = {}
    names = {module: name for name, module in modules.items()}

    def store_output(module, inputs, output):
        outputs[names[module]] = output
        if stops and len(outputs) == len(names):
            raise _StopForwardError

    with suppress(_StopForwardError), forward_hooks(names, store_output):
        yield outputs


class _StopForwardError(Exception):
    """Raised to end a pass before values that are not needed."""


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


MAX_CACHED_OUTCOMES = 512  # of all models together


@lru_cache(MAX_CACHED_OUTCOMES)
def cached_logit_and_log_probability(
    identity: Hashable,
    token_ids: tuple[int, ...],
    interventions: tuple[Intervention, ...],
    position: int,
    token_id: int,
) -> np.ndarray:
    """Return the result of `logit_and_log_probability`, cached.

    Raises:
        ModelUnloadedError: the model has been unloaded.
    """
    outcome = logit_and_log_probability(get_model(identity)[0], token_ids, interventions, position, token_id)
    outcome.flags.writeable = False
    return outcome


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


def recompute_block(
    lm: TransformerLM,
    token_ids: Sequence[int],
    interventions: Sequence[Intervention],
    stored: Mapping[str, np.ndarray],
    layer: int,
    names: Collection[str],
) -> dict[str, np.ndarray]:
    """Recompute some values of a block as `capture` has them, by name.

    Args:
        stored: values of the pass, at least the input of the block.
        names: of the values, in that block.
    """
    check_budget()
    session = InterventionSession(lm, interventions)
    session.pass_context.ids = list(token_ids)
    with (
        session.active(),
        record_outputs({name: module for name, module in lm.taps.items() if name in names}, stops=True) as outputs,
        use_explicit_attention(lm, [layer]),
        torch.inference_mode(),
    ):
        positions = torch.arange(len(token_ids), device=lm.device)[None]
        rope = lm.local_rope if lm.config.uses_local_rope(layer) else lm.rope
        rotation = rope(positions) if rope else None
        lm.blocks[layer](to_tensor(lm, stored[block_output_tap(lm.config, layer - 1)]), rotation, layer=layer)
    return as_unbatched_arrays(outputs)


def recompute_logits(
    lm: TransformerLM,
    token_ids: Sequence[int],
    interventions: Sequence[Intervention],
    final_norm: np.ndarray,
    start: int,
) -> np.ndarray:
    """Recompute the logits after the positions from `start` on, (n, V).

    Args:
        final_norm: (n, D) the input of the unembedding there.
    """
    check_budget()
    session = InterventionSession(lm, interventions)
    session.pass_context.ids, session.pass_context.start = list(token_ids), start
    with session.active(), torch.inference_mode():
        logits = lm.logits(softcap(lm.lm_head(to_tensor(lm, final_norm)), lm.config.logit_cap))
    check_finite(logits, lm.dtype)
    return as_array(logits)[0]


def to_tensor(lm: TransformerLM, value: np.ndarray) -> torch.Tensor:
    """Convert a captured value to the model's type and device: (n, D) -> (1, n, D)."""
    return torch.tensor(value, device=lm.device, dtype=lm.dtype)[None]


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
