"""Bars that several pictures have, worked out by hand."""

import numpy as np

from tests.look import Look, Parts, Seen, at_tokens


def rollout(look: Look) -> Parts:
    mixed = np.eye(len(look.trace))
    for attention in look.trace.stack("blocks.*.attn.pattern").mean(1):
        mixed = (attention + np.eye(len(mixed))) / 2 @ mixed
    return [at_tokens(look, "from", mixed[9, :10], "key")]


def logit_parts(look: Look) -> Parts:
    """Green, then blue and orange of each layer, with the biases of W_O after the blue where there are any."""
    trace, bias = look.trace, look.trace.config.bias
    positions = trace["position_embed"][9] if "position_embed" in trace else 0
    seen = [Seen(look.added(trace["embed"][9] - positions), "embedding", {"layer": 1})]
    if "position_embed" in trace:
        seen.append(Seen(look.added(positions), "position", {"layer": 1}))
    for i in (0, 1):
        heads = look.added(look.head_outputs(i)).sum()
        seen.append(Seen(heads, f"heads of layer {i}", {"layer": i}))
        if bias:
            vector = look.weight(f"blocks.{i}.attn.o_proj.bias")
            seen.append(Seen(look.added(vector), f"layer {i}", {"layer": i}))
        seen.append(Seen(look.added(trace[f"blocks.{i}.ffn.out"][9]), f"feed-forward of layer {i}", {"layer": i}))
    if bias:
        token, rival = (look.weight("lm_head.weight")[i] for i in look.explained)
        seen.append(Seen(look.weight("final_norm.bias") @ (token - rival), "β", {"layer": 1}))
    return [seen]
