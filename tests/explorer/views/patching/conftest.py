"""Two prompts of as many tokens, read by a small model of every kind."""

import pytest

from explorer import capture
from explorer.tracing.comparison import Comparison
from tests.specimens import tokenizer

from .pictures import Two


@pytest.fixture
def two(lms, style, trace_of) -> Two:
    trace = trace_of(style)
    ids = (*trace.token_ids[:5], 70, *trace.token_ids[6:])
    return Two(Comparison.of(trace, capture(lms[style], ids, tokenizer=tokenizer())), lms[style])
