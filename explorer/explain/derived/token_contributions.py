"""Derivations of token contributions to a logit, by each of the methods."""

import math

from explorer.analysis.token_contributions import TokenContributions, token_contributions
from explorer.analysis.tolerance import Check
from explorer.explain.calculation import Calculation, Input, read_input
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import Derivation
from explorer.explain.derived import rollout
from explorer.explain.derived.arithmetic import dot_product
from explorer.explain.labels import format_token_position
from explorer.explain.notation import format_number
from explorer.explain.source_line import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import _

ANALYSIS = "explorer/analysis/token_contributions.py"
TRACING = "explorer/tracing/token_attribution.py"


def token_contribution(
    trace: Trace, position: int, token_id: int, contrast_id: int | None, method: str, key: int
) -> Derivation | None:
    """Derive a token's contribution by one of METHODS; None if the method has no value for it."""
    contributions = token_contributions(trace, position, token_id, contrast_id)
    displayed_value = get_element(contributions.by_method[method], key)
    if math.isnan(displayed_value):
        return None
    if method == "rollout":
        return rollout.rollout_weight(trace, position, key)
    derive_method = {
        "gradient": _gradient_contribution,
        "integrated": _integrated_gradient_contribution,
        "knock_out": _attention_knockout_contribution,
    }[method]
    name, working, fragment = derive_method(trace, contributions, position, token_id, contrast_id, key)
    return Derivation(
        name,
        _("of {token}", token=format_token_position(trace, key)),
        displayed_value,
        working,
        SourceLine(ANALYSIS, fragment),
    )


def _gradient_contribution(
    trace: Trace, contributions: TokenContributions, position: int, token_id: int, contrast_id: int | None, key: int
):
    x, read = read_input(trace, "embed", key)
    slope = contributions.arrays["slope"][key]
    inputs = read, Input(_("gradient of f at embed"), (key,), slope.shape)
    return _("gradient × input"), dot_product("Σ x ∂f/∂x =", x, slope, inputs), '"gradient": (x'


def _integrated_gradient_contribution(
    trace: Trace, contributions: TokenContributions, position: int, token_id: int, contrast_id: int | None, key: int
):
    x, read = read_input(trace, "embed", key)
    slope, baseline = (contributions.arrays[name][key] for name in ("mean_slope", "baseline"))
    inputs = read, Input(_("mean gradient of f along the path"), (key,), slope.shape)
    working = dot_product(_("Σ (x − baseline) · mean ∂f/∂x ="), x - baseline, slope, inputs)
    return _("integrated gradients"), working, '"integrated": ((x'


def _attention_knockout_contribution(
    trace: Trace, contributions: TokenContributions, position: int, token_id: int, contrast_id: int | None, key: int
):
    logits, read = read_input(trace, "logits", position)
    f = float(logits[token_id] - (0 if contrast_id is None else logits[contrast_id]))
    without = float(contributions.arrays["without"][key])
    rerun_input = Input(
        _("logits of a run in which no later token sees it, at [{query}]", query=position), (), read.shape
    )
    change = f - without
    numbers = f"{format_number(f)} − {format_number(without)} = {format_number(change)}"
    working = Calculation(_("f − f without it"), lambda: numbers, change, (read, rerun_input))
    return _("knock-out"), working, '"knock_out": f'


def check_gradient_run(trace: Trace, position: int, token_id: int, contrast_id: int | None) -> Check:
    """Check f of the run that the gradients were computed in against the captured logits."""
    logits = trace.logits.row(position).astype(float)
    captured = logits[token_id] - (0 if contrast_id is None else logits[contrast_id])
    f = token_contributions(trace, position, token_id, contrast_id).f
    return Check.from_arrays(trace.dtype, f, captured, abs(logits).max())
