"""Derivations of attention rollout."""

import numpy as np

from explorer.analysis.attention_rollout import attention_rollout
from explorer.explain.calculation import Calculation, read_input
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import Derivation
from explorer.explain.labels import format_query_key
from explorer.explain.notation import format_dot_product, format_number
from explorer.explain.source_line import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import _


def rollout_weight(trace: Trace, query: int, key: int) -> Derivation:
    """Derive an attention rollout weight of a query and a key, from the last step, through layer 0."""
    displayed_value = get_element(attention_rollout(trace, query), key)
    row, inputs = np.eye(len(trace))[query], []
    for layer in reversed(range(trace.config.num_layers)):
        patterns, read = read_input(trace, f"blocks.{layer}.attn.pattern")
        mean, above = patterns.mean(0), row
        mean = mean / mean.sum(-1, keepdims=True)
        row = (above @ mean + above) / 2
        inputs.append(read)
    value = float(row[key])
    working = Calculation(
        _("½ Σ share after layer 0 · mean weight of layer 0’s heads + ½ own share after layer 0"),
        lambda: f"½ {format_dot_product(above, mean[:, key])} + ½ {format_number(above[key])} = {format_number(value)}",
        value,
        tuple(reversed(inputs)),
    )
    source = SourceLine("explorer/analysis/attention_rollout.py", "row = 0.5 * (row @ ")
    return Derivation(
        _("share of attention rollout"), format_query_key(trace, query, key), displayed_value, working, source
    )
