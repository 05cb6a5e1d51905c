"""Shares of attention rollout."""

import numpy as np

from explorer.analysis.rollout import rollout
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, products
from explorer.explain.place import query_and_key
from explorer.explain.point import element
from explorer.explain.source import Source
from explorer.explain.working import Working, take
from explorer.language import _
from explorer.tracing.trace import Trace


def share(trace: Trace, query: int, key: int) -> Derivation:
    """How much of what ends at the query began at the key: the last step, through layer 0."""
    drawn = element(rollout(trace, query), key)
    row, inputs = np.eye(len(trace))[query], []
    for layer in reversed(range(trace.config.num_layers)):
        patterns, read = take(trace, f"blocks.{layer}.attn.pattern")
        mean, above = patterns.mean(0), row
        mean = mean / mean.sum(-1, keepdims=True)
        row = (above @ mean + above) / 2
        inputs.append(read)
    value = float(row[key])
    working = Working(
        _("½ Σ share after layer 0 · mean weight of layer 0’s heads + ½ own share after layer 0"),
        lambda: f"½ {products(above, mean[:, key])} + ½ {number(above[key])} = {number(value)}",
        value,
        tuple(reversed(inputs)),
    )
    source = Source("explorer/analysis/rollout.py", "row = 0.5 * (row @ ")
    return Derivation(_("share of attention rollout"), query_and_key(trace, query, key), drawn, working, source)
