"""Numbers of walkthroughs, computations step by step, which the browser words and draws."""

from typing import Any

import numpy as np

from explorer.analysis.attention import query_attention_stages, select_keys
from explorer.analysis.logit_lens import lens_summaries
from explorer.analysis.positions import main_pair, pair_scales, rotated_pairs, rotation_angles
from explorer.analysis.residual import has_residual_stages, residual_norms
from explorer.architecture.formulas import angles_tap, score_divisor_formula, score_divisor_in_numbers
from explorer.architecture.residual_stream import sublayers
from explorer.errors import UserError
from explorer.explain.captured.formulas import first_token_position
from explorer.explain.notation import (
    escape_token,
    escape_token_in_text,
    format_number,
    quote_token,
    quote_token_in_text,
    token_formatter,
)
from explorer.interventions import PositionShift, RopeBaseReplacement
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import _

MAX_KEYS = 8  # of a long text those that are looked at most
MAX_DIMENSIONS = 16  # of a value, as a strip of cells


def attention_walkthrough(trace: Trace, selection: Selection) -> dict[str, Any]:
    """Return the numbers of dot products, scaling, mask, softmax and the weighted sum of the values.

    Each key has its "numbers": q·k, score, the score after the mask, None for −∞, and weight; and the beginning of its
    value, None for a key after the query.

    Raises:
        UserError: the run has no scores, or no values.
    """
    layer, head, query = selection.layer, selection.head, selection.query
    if not (trace.has_tap("blocks.*.attn.scores") and trace.has_tap("blocks.*.attn.v")):
        raise UserError(_("No attention was captured for this run."))
    steps = query_attention_stages(trace, layer, head, query)
    keys = select_keys(steps.weights, steps.allowed, query, selection.key, MAX_KEYS)
    masked = np.where(steps.allowed, steps.capped, -np.inf)
    numbers = np.stack([steps.dots, steps.scores, masked, steps.weights], axis=-1)
    values = trace.head_value(f"blocks.{layer}.attn.v", head)[:, :MAX_DIMENSIONS]
    return {
        "layer": layer,
        "head": head,
        "query": quote_token_in_text(trace.tokens, query),
        "d_head": trace.config.d_head,
        "divisor": _divisor(trace),
        "is_whole": int(steps.allowed.sum()) == int(steps.allowed[keys].sum()),
        "keys": [
            {
                "label": escape_token_in_text(trace.tokens, key),
                "key": int(key),
                "chosen": bool(key == selection.key),
                "numbers": finite_numbers(numbers[key]),
                "value": values[key].tolist() if key <= query else None,
            }
            for key in keys
        ],
        "sum": trace[f"blocks.{layer}.attn.z"][head, query, :MAX_DIMENSIONS].tolist(),
    }


def finite_numbers(values: np.ndarray) -> list[float | None]:
    """Return numbers for JSON, None for those that are not finite."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


def _divisor(trace: Trace) -> str:
    symbols, in_numbers = score_divisor_formula(trace.config), score_divisor_in_numbers(trace.config)
    return symbols if symbols == in_numbers else f"{symbols} = {in_numbers} = {format_number(trace.config.divisor)}"


MAX_STOPS = 13  # of a deep model some of its sums


def layers_walkthrough(trace: Trace, selection: Selection) -> dict[str, Any]:
    """Return the norms of the selected token's stream from its embedding up, of what each sublayer adds, and guesses.

    Raises:
        UserError: the run has no captured stream or no weights.
    """
    if not has_residual_stages(trace) or not trace.has_weights:
        raise UserError(_("No residual stream was captured for this run."))
    norms, guesses = residual_norms(trace), lens_summaries(trace, range(selection.query, selection.query + 1))
    stream_norms = norms.stream[:, selection.query]
    updates = [
        (stage_index, {"layer": layer, "sublayer": sublayer, "norm": float(norm)})
        for (layer, sublayer), stage_index, norm in zip(
            sublayers(trace.config), norms.stage_indices, norms.updates[:, selection.query], strict=True
        )
    ]
    stops = select_step_indices(len(norms.stages))
    stages = [
        {
            "label": norms.stages[stop],
            "norm": float(stream_norms[stop]),
            "updates": [update for stage_index, update in updates if before < stage_index <= stop],
            "guesses": [
                {"token": escape_token(trace.vocabulary[token_id]), "probability": float(probability)}
                for token_id, probability in zip(guesses.top[stop, 0], guesses.probabilities[stop, 0], strict=True)
            ],
        }
        for before, stop in zip([0, *stops], stops, strict=False)
    ]
    token = quote_token(trace.tokens[selection.query])
    return {"token": token, "largest": float(stream_norms.max()), "stages": stages}


def select_step_indices(count: int) -> list[int]:
    """Return the indices of the sums that get a step, including the first and the last."""
    return sorted({round(index) for index in np.linspace(0, count - 1, min(count, MAX_STOPS))})


def rotation_walkthrough(trace: Trace, selection: Selection) -> dict[str, Any]:
    """Return the pair that the view names (`main_pair`) of the query and of the key, before and after its rotation.

    Raises:
        UserError: the layer has no RoPE.
    """
    if not trace.has_tap("blocks.*.attn.q_rot") or not trace.config.has_rope(selection.layer):
        raise UserError(_("This layer has no RoPE."))
    pair = main_pair(trace, selection.layer, selection.head, selection.query, selection.key)
    angles = rotation_angles(trace, selection.layer)[:, pair].astype(np.float64)
    scale = float(np.broadcast_to(pair_scales(trace, selection.layer), trace.config.d_head // 2)[pair])
    first = first_token_position(trace)  # where the run counts the tokens as standing

    def pack_hand(name: str, token_index: int) -> dict[str, Any]:
        pairs = rotated_pairs(trace, name, selection.layer, selection.head, token_index)
        return {
            "token": quote_token(trace.tokens[token_index]),
            "position": first + token_index,
            "angle": float(angles[token_index]),
            "before": pairs.before[pair].tolist(),
            "after": pairs.after[pair].tolist(),
        }

    q, k = pack_hand("q", selection.query), pack_hand("k", selection.key)
    dot = float(np.dot(q["after"], k["after"]))
    return {
        "pair": pair,
        "scale": scale,
        "changes": _rotation_changes(trace, selection.layer),
        "q": q,
        "k": k,
        "divisor": score_divisor_in_numbers(trace.config),
        "dot": dot,
        "adds": dot / trace.config.divisor,
    }


def _rotation_changes(trace: Trace, layer: int) -> str:
    """Name the interventions that change a rotation beyond its position and base; "" if there are none."""
    taps = (angles_tap(trace.config, layer), *(f"blocks.{layer}.attn.{name}_rot" for name in "qk"))
    interventions = [
        intervention
        for intervention in trace.edits
        if not isinstance(intervention, PositionShift | RopeBaseReplacement) and any(map(intervention.affects, taps))
    ]
    return "; ".join(intervention.describe(trace.config, token_formatter(trace)) for intervention in interventions)


WALKTHROUGHS = {"attention": attention_walkthrough, "rotation": rotation_walkthrough, "layers": layers_walkthrough}


def get_walkthrough(name: str, trace: Trace, selection: Selection) -> dict[str, Any]:
    """Return a walkthrough's name and numbers, at the selected head and tokens.

    Raises:
        UserError: there is no such walkthrough, or this run lacks the values that it needs.
    """
    if not isinstance(name, str) or name not in WALKTHROUGHS:
        raise UserError(_("there is no walk {name!r:.40}", name=name))
    return {"name": name} | WALKTHROUGHS[name](trace, selection.clamp_to_trace(trace))
