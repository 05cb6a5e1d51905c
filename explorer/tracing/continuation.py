"""Continuations of a run with interventions, drawn with random numbers that do not depend on the interventions."""

from collections.abc import Sequence
from functools import lru_cache

from explorer.state.generation_settings import GenerationSettings
from explorer.state.interventions import Intervention
from explorer.tracing.apply_interventions import generate_with_interventions
from explorer.tracing.model_registry import find_model, get_identity
from explorer.tracing.request_budget import check_budget
from model.generation import generate
from model.transformer_lm import TransformerLM

MAX_CACHED = 256  # each some ids


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


@lru_cache(MAX_CACHED)
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
