"""Continuations equal `generate` with the same seed."""

from explorer.interventions import parse_interventions
from explorer.state.generation_settings import GenerationSettings
from explorer.tracing.capture import capture
from explorer.tracing.forward_hooks import continue_tokens, generate_with_interventions
from model.generation import generate
from tests.subtest_loops import each_style, subtest_each

IDS = tuple(range(40, 48))


@each_style
@subtest_each(
    "settings",
    [
        GenerationSettings(),
        GenerationSettings(seed=3, temperature=1.5, top_k=5, max_new_tokens=1, stop_strings=" "),
        GenerationSettings(seed=3, top_p=0.5, min_p=0.1, repetition_penalty=2.0),
    ],
    ids=["default", "top_k", "others"],
)
def test_continuation_equals_generate(lms, style, settings):
    """The continuation uses the panel's sampling settings, except for the number of tokens and stop strings."""
    lm, edits = lms[style], parse_interventions("blocks.1.resid_post*add*unembed.17*3")
    drawn_by = settings.as_dict() | {"max_new_tokens": 10, "stop_strings": ()}
    for changes in ((), edits):
        expected = [step.token_id for step in generate_with_interventions(lm, changes, generate(lm, IDS, **drawn_by))]
        assert list(continue_tokens(lm, IDS, changes, 10, settings)) == expected
        assert capture(lm, IDS, changes).continue_tokens(10, settings) == tuple(expected)


@each_style
def test_settings_and_interventions_change_continuation(lms, style):
    lm, edits = lms[style], parse_interventions("blocks.1.resid_post*add*unembed.17*3")
    plain = GenerationSettings(temperature=1.5)
    continuations = {
        continue_tokens(lm, IDS, *args)
        for args in (((), 10, plain), (edits, 10, plain), ((), 10, GenerationSettings(seed=1, temperature=1.5)))
    }
    assert len(continuations) == 3
