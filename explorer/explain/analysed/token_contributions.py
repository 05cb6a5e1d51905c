"""What a token contributes to a logit, by each of the methods."""

import math

from explorer.analysis.rounding import Check
from explorer.analysis.token_contributions import TokenContributions, token_contributions
from explorer.explain.analysed import rollout
from explorer.explain.analysed.arithmetic import product
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number
from explorer.explain.place import at
from explorer.explain.point import element
from explorer.explain.source import Source
from explorer.explain.working import Input, Working, take
from explorer.language import _
from explorer.tracing.trace import Trace

ANALYSIS = "explorer/analysis/token_contributions.py"
TRACING = "explorer/tracing/gradients.py"


def contribution(
    trace: Trace, position: int, token_id: int, rival_id: int | None, method: str, key: int
) -> Derivation | None:
    """Of a token, by one of METHODS; None where the method has no number of it."""
    found = token_contributions(trace, position, token_id, rival_id)
    drawn = element(found.by[method], key)
    if math.isnan(drawn):
        return None
    if method == "rollout":
        return rollout.share(trace, position, key)
    work = {"gradient": _of_gradient, "integrated": _of_integrated, "knock_out": _of_knock_out}[method]
    name, working, fragment = work(trace, found, position, token_id, rival_id, key)
    return Derivation(name, _("of {token}", token=at(trace, key)), drawn, working, Source(ANALYSIS, fragment))


def _of_gradient(trace: Trace, found: TokenContributions, position: int, token_id: int, rival_id: int | None, key: int):
    x, read = take(trace, "embed", key)
    slope = found.arrays["slope"][key]
    inputs = read, Input(_("gradient of f at embed"), (key,), slope.shape)
    return _("gradient × input"), product("Σ x ∂f/∂x =", x, slope, inputs), '"gradient": (x'


def _of_integrated(
    trace: Trace, found: TokenContributions, position: int, token_id: int, rival_id: int | None, key: int
):
    x, read = take(trace, "embed", key)
    slope, baseline = (found.arrays[name][key] for name in ("mean_slope", "baseline"))
    inputs = read, Input(_("mean gradient of f along the path"), (key,), slope.shape)
    working = product(_("Σ (x − baseline) · mean ∂f/∂x ="), x - baseline, slope, inputs)
    return _("integrated gradients"), working, '"integrated": ((x'


def _of_knock_out(
    trace: Trace, found: TokenContributions, position: int, token_id: int, rival_id: int | None, key: int
):
    logits, read = take(trace, "logits", position)
    f = float(logits[token_id] - (0 if rival_id is None else logits[rival_id]))
    without = float(found.arrays["without"][key])
    again = Input(_("logits of a run in which no later token sees it, at [{query}]", query=position), (), read.shape)
    change = f - without
    numbers = f"{number(f)} − {number(without)} = {number(change)}"
    working = Working(_("f − f without it"), lambda: numbers, change, (read, again))
    return _("knock-out"), working, '"knock_out": f'


def again(trace: Trace, position: int, token_id: int, rival_id: int | None) -> Check:
    """f of the run that the gradients were taken of, held against the captured logits."""
    logits = trace.logits.at(position).astype(float)
    captured = logits[token_id] - (0 if rival_id is None else logits[rival_id])
    f = token_contributions(trace, position, token_id, rival_id).f
    return Check.of(trace.dtype, f, captured, abs(logits).max())
