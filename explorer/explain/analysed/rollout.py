"""Shares of attention rollout."""

import numpy as np

from explorer.analysis.rollout import rollout
from explorer.explain.captured.inspect import query_and_key
from explorer.explain.inspection import Inspection, element
from explorer.explain.notation import number
from explorer.explain.source import Source
from explorer.explain.working import products, take
from explorer.tracing.trace import Trace


def share(trace: Trace, query: int, key: int) -> Inspection:
    """How much of what ends at the query began at the key: the last step, through layer 0."""
    value = element(rollout(trace, query), key)
    row, inputs = np.eye(len(trace))[query], []
    for layer in reversed(range(trace.config.num_layers)):
        patterns, read = take(trace, f"blocks.{layer}.attn.pattern")
        mean, above = patterns.mean(0), row
        mean = mean / mean.sum(-1, keepdims=True)
        row = (above @ mean + above) / 2
        inputs.append(read)
    numbers = f"½ {products(above, mean[:, key])} + ½ {number(above[key])} = {number(row[key])}"
    return Inspection(
        name="share of attention rollout",
        place=query_and_key(trace, query, key),
        value=value,
        kind="drawn",
        symbols="½ Σ share after layer 0 · mean weight of layer 0’s heads + ½ own share after layer 0",
        numbers=numbers,
        inputs=tuple(reversed(inputs)),
        recomputed=float(row[key]),
        source=Source("explorer/analysis/rollout.py", "row = 0.5 * (row @ "),
    )
