"""Where heads look back at most."""

from dataclasses import dataclass

import numpy as np

from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Look:
    """The largest weight that any head has from a token to an earlier one, and whose it is."""

    layer: int
    head: int
    query: int
    key: int
    weight: float

    def words(self, trace: Trace) -> str:
        return _(
            "From {query} ({query_place}) layer {layer} head {head} looks back at {key} ({key_place}) with weight "
            "{weight}: no head has a larger one for a token between the first and the one before.",
            query=quoted(trace.tokens[self.query]),
            query_place=self.query,
            layer=self.layer,
            head=self.head,
            key=quoted(trace.tokens[self.key]),
            key_place=self.key,
            weight=number(self.weight),
        )

    def as_selection(self) -> dict[str, str | int]:
        places = {name: getattr(self, name) for name in ("layer", "head", "query", "key")}
        return {"view": "attention", "pattern": "weight"} | places


def furthest_look(trace: Trace, query: int) -> Look | None:
    """Without the first token, at which heads look that look at nothing, the token itself and the one before it; None
    where there is no other."""
    if query < 3:
        return None
    weights = trace.stack("blocks.*.attn.pattern")[:, :, query, 1 : query - 1]  # (L, H, keys)
    layer, head, key = map(int, np.unravel_index(weights.argmax(), weights.shape))
    return Look(layer, head, query, key + 1, float(weights[layer, head, key]))
