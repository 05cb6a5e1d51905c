import json

import numpy as np

from explorer.analysis.token_shading import SHADES, shade_tokens
from explorer.web.widgets.tokens import TokenStrip


def test_the_value_is_json():
    shades = {"rank": (np.array([0, 0.12345]), ["", "rank 3"])}
    packed = TokenStrip.pack(("<b>", "\n"), shades, num_prompt=1, earlier=7)
    assert packed == {
        "tokens": ["<b>", "\n"],
        "shades": {"rank": {"shares": [0, 0.123], "words": ["", "rank 3"]}},
        "num_prompt": 1,
        "earlier": 7,
        "beginning": ["", False],
    }
    assert json.loads(json.dumps(packed, allow_nan=False)) == packed


def test_every_token_has_every_shade(trace):
    packed = TokenStrip.pack(trace.tokens, {name: shade_tokens(trace, name) for name in SHADES}, len(trace), 0)
    assert packed["tokens"] == list(trace.tokens)
    for shade in packed["shades"].values():
        assert len(shade["shares"]) == len(shade["words"]) == len(trace)


def test_every_shade_can_be_chosen():
    markup = TokenStrip().markup
    assert all(f'<option value="{name}">' in markup for name in SHADES)
