"""Two continuations on the same random numbers."""

from explorer.state.interventions import parse_edits
from explorer.tracing.capture import capture
from explorer.tracing.going_on import SEED, TEMPERATURE, write
from explorer.tracing.intervening import edited_steps
from model.generation import generate

IDS = tuple(range(40, 48))


def test_it_is_what_generate_writes(lms, style):
    lm, edits = lms[style], parse_edits("blocks.1.resid_post*add*unembed.17*3")
    for changes in ((), edits):
        steps = generate(lm, IDS, max_new_tokens=10, temperature=TEMPERATURE, seed=SEED)
        expected = [step.token_id for step in edited_steps(lm, changes, steps)]
        assert list(write(lm, IDS, changes, 10)) == expected
        assert capture(lm, IDS, changes).written(10) == tuple(expected)
    assert write(lm, IDS, edits, 10) != write(lm, IDS, (), 10)
