"""The selection that the page chooses where none is given: the last token, and what has the largest effect there."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.feed_forward import layer_neurons
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.labels import target_and_contrast


def complete_selection(trace: Trace, fields: Mapping[str, Any]) -> Selection:
    """Return the selection with some fields as given, clamped to the run, and the others as the page would choose."""
    query = fields.get("query", len(trace) - 1)
    selection = Selection().replace(query=query, key=max(0, query - 1)).replace(**fields).clamp_to_trace(trace)
    if trace.has_weights and trace.has_tap("blocks.*.attn.z"):
        selection = select_strongest(trace, selection, fields.keys() - {"query"})
    return selection


def select_strongest(trace: Trace, selection: Selection, named: Collection[str]) -> Selection:
    """Select the head with the largest effect on the target's logit, its query's top key, and the top neuron there.

    In the Positions view, which shows two tokens, the key is another token than the query if the run has one.

    Args:
        named: fields that are chosen already, which stay.
    """
    if not named & {"layer", "head"}:
        attribution = direct_logit_attribution(trace, selection.query, *target_and_contrast(trace, selection))
        layer, head = np.unravel_index(np.abs(attribution.heads).argmax(), attribution.heads.shape)
        selection = replace(selection, layer=int(layer), head=int(head))
    if not named & {"key", "query"}:  # a link with a query alone means key 0, which short addresses leave out
        pattern = trace[f"blocks.{selection.layer}.attn.pattern"]  # (H, T, T)
        end = selection.query if selection.view == "positions" and selection.query else selection.query + 1
        selection = replace(selection, key=int(pattern[selection.head, selection.query, :end].argmax()))
    if "neuron" not in named:
        strongest = layer_neurons(trace, selection.layer, selection.query).top(1)
        selection = replace(selection, neuron=int(strongest[0]))
    return selection
