"""What is asked of every picture of every view: where it is looked at, and that it can be sent."""

import json

import numpy as np

from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.overview.diagram import Diagram
from explorer.views.view import SmallMultiples
from explorer.web.answers.view_contents import packed
from explorer.web.widgets.model_map import ModelMap
from tests.drawn_parts import numbers_in
from tests.panels import PANELS
from tests.specimens import edited_trace_of

FIGURES = [name for name, (_, panel) in PANELS.items() if panel.kind == "figure"]


def changed(name: str, style: str, length: int = 12) -> Trace:
    return edited_trace_of(style, length)


def selections(trace: Trace) -> list[Selection]:
    """The corners of what can be chosen."""
    most = 10**8
    corners = [
        Selection(),
        Selection(layer=most, head=most, query=most, key=most, tap="logits", dim=most),
        Selection(layer=most, query=most, key=0, tap="blocks.1.attn.pattern", dim=most),
        Selection(head=most, query=len(trace) // 2, key=len(trace) // 2, tap="blocks.0.ffn.hidden", dim=3),
    ]
    return list(dict.fromkeys(selection.within(trace) for selection in corners))


def texts(value) -> list[str]:
    """All strings in a JSON value but the text alternative, which is plain text and no plotly text."""
    if isinstance(value, dict):
        return [text for name, part in value.items() if name not in ("alt", "bdata") for text in texts(part)]
    if isinstance(value, list):
        return [text for part in value for text in texts(part)]
    return [value] if isinstance(value, str) else []


def check(drawn, panel):
    """What is drawn can be sent, says what it shows, and is no other than plotly knows."""
    if panel.kind == "head_grid":
        assert isinstance(drawn, SmallMultiples)
        assert drawn.alt.strip()
        values = np.asarray(drawn.values)
        assert ((values >= 0) & (values <= 1)).all()
    elif panel.kind == "model_map":
        assert isinstance(drawn, Diagram)
        assert drawn.alt.strip()
        assert json.dumps(ModelMap.pack(drawn), allow_nan=False)
    else:
        assert isinstance(drawn, go.Figure)
        assert json.loads(drawn.to_json())["layout"]["meta"]["alt"].strip()


def sent(drawn) -> str:
    """What the browser gets to draw, as JSON; faster than plotly's own, which checks all that it is given."""
    return json.dumps(list(map(json.loads, packed(drawn))) if isinstance(drawn, go.Figure) else packed(drawn))


def numbers_sent(drawn) -> list[float]:
    """All numbers that the browser gets to draw, in order; none of what is written in a text."""
    return numbers_in(json.loads(sent(drawn)))
