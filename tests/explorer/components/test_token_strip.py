import json
import math

import numpy as np

from explorer.components.token_strip import TokenStrip


def test_the_value_is_json_with_null_where_there_is_no_surprisal():
    packed = TokenStrip.pack(("<b>", "\n"), np.array([np.nan, 3.14159], np.float32), num_prompt=1, earlier=7)
    assert packed == {"tokens": ["<b>", "\n"], "surprisal": [None, 3.14], "num_prompt": 1, "earlier": 7}
    assert json.loads(json.dumps(packed, allow_nan=False)) == packed


def test_no_tokens_are_no_chips():
    assert TokenStrip.pack((), (), 0, 0) == {"tokens": [], "surprisal": [], "num_prompt": 0, "earlier": 0}


def test_tokens_are_as_many_as_their_surprisal(trace):
    packed = TokenStrip.pack(trace.tokens, [math.nan] * len(trace), len(trace), 0)
    assert len(packed["tokens"]) == len(packed["surprisal"]) == len(trace)
    assert packed["tokens"] == list(trace.tokens)
