"""What a changed model goes on with, on random numbers that do not depend on the changes."""

from collections.abc import Sequence
from functools import lru_cache

from explorer.state.interventions import Intervention
from explorer.state.settings import GenerationSettings
from explorer.tracing.intervening import edited_steps
from explorer.tracing.models import identity_of, living
from explorer.tracing.work import go_on
from model.generation import generate
from model.transformer_lm import TransformerLM

MOST_KEPT = 256  # each some ids


def write(
    lm: TransformerLM,
    token_ids: Sequence[int],
    edits: Sequence[Intervention],
    count: int,
    settings: GenerationSettings,
) -> tuple[int, ...]:
    """The ids of so many tokens after others, drawn by settings with the random numbers of their seed, the same
    whatever the edits are. Of the settings how many tokens there are and where to stop say nothing."""
    sampling = settings.sampling
    return _kept(identity_of(lm), tuple(token_ids), tuple(edits), count, tuple(sampling.items()))


@lru_cache(MOST_KEPT)
def _kept(
    identity, token_ids: tuple[int, ...], edits: tuple[Intervention, ...], count: int, sampling: tuple
) -> tuple[int, ...]:
    lm, written = living(identity), []
    steps = generate(lm, list(token_ids), max_new_tokens=count, **dict(sampling))
    for step in edited_steps(lm, [edit.of_prompt(token_ids) for edit in edits], steps):
        go_on(tokens=1)
        written.append(step.token_id)
    return tuple(written)
