"""Expected bars that several figures share, recomputed by hand."""

import numpy as np

from tests.evaluation_case import Case, ExpectedPoint, ExpectedPoints, points_at_tokens


def rollout(case: Case) -> ExpectedPoints:
    mixed = np.eye(len(case.trace))
    for attention in case.trace.stack("blocks.*.attn.pattern").mean(1):
        mixed = (attention + np.eye(len(mixed))) / 2 @ mixed
    return [points_at_tokens(case, "from", mixed[9, :10], "key")]


def logit_parts(case: Case) -> ExpectedPoints:
    """Return the contributions of embedding (green), then attention (blue) and feed-forward (purple) of each layer.

    A bias of W_O follows its layer's attention.
    """
    trace, bias = case.trace, case.trace.config.bias
    positions = trace["position_embed"][9] if "position_embed" in trace else 0
    bars = [ExpectedPoint(case.logit_contributions(trace["embed"][9] - positions), "embedding", {"layer": 1})]
    if "position_embed" in trace:
        bars.append(ExpectedPoint(case.logit_contributions(positions), "position", {"layer": 1}))
    for i in (0, 1):
        heads = case.logit_contributions(case.head_outputs(i)).sum()
        bars.append(ExpectedPoint(heads, f"heads of layer {i}", {"layer": i}))
        if bias:
            vector = case.weight(f"blocks.{i}.attn.o_proj.bias")
            bars.append(ExpectedPoint(case.logit_contributions(vector), f"layer {i}", {"layer": i}))
        bars.append(
            ExpectedPoint(
                case.logit_contributions(trace[f"blocks.{i}.ffn.out"][9]), f"feed-forward of layer {i}", {"layer": i}
            )
        )
    if bias:
        token, rival = (case.weight("lm_head.weight")[i] for i in case.target_and_contrast)
        bars.append(ExpectedPoint(case.weight("final_norm.bias") @ (token - rival), "β", {"layer": 1}))
    return [bars]
