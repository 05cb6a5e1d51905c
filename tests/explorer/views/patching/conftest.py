"""Two prompts of equal length, in a small model of every kind."""

import pytest

from explorer import capture
from explorer.tracing.comparison import Comparison
from tests.sample_models import tokenizer

from .patching_figures import PatchingCase


@pytest.fixture
def patching_case(lms, style, capture_trace) -> PatchingCase:
    trace = capture_trace(style)
    ids = (*trace.token_ids[:5], 70, *trace.token_ids[6:])
    return PatchingCase(Comparison.from_traces(trace, capture(lms[style], ids, tokenizer=tokenizer())), lms[style])
